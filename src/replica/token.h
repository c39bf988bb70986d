/* A position as a word that clients carry from one connection, server or protocol to another. Opaque to them:
   base64url of a version, the shard, the position and a checksum. */
#ifndef LARDER_REPLICA_TOKEN_H
#define LARDER_REPLICA_TOKEN_H

#include "base/slice.h"
#include "base/status.h"
#include "store/position.h"

#define TOKEN_TEXT 256 /* the longest, with its NUL */

/* POSITION_NONE is a token, too: "nothing written or seen yet". Returns the length. */
size_t token_write(const struct position *p, char out[TOKEN_TEXT]);

/* ST_INVALID, with a message for the client: no token, torn, changed, of a later version. */
enum status token_read(struct slice text, struct position *ret, struct error *err) MUST_CHECK;

#endif
