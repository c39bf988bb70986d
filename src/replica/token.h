/* A position as a word that clients carry from one connection, server or protocol to another. Opaque to them:
   base64url of a version, the shard, the position and a checksum. */
#ifndef LARDER_REPLICA_TOKEN_H
#define LARDER_REPLICA_TOKEN_H

#include "base/slice.h"
#include "base/status.h"
#include "store/position.h"

#define TOKEN_TEXT 128 /* room for the longest, with its NUL */

/* POSITION_NONE is a token, too: "nothing written or seen yet". Returns the length. */
size_t token_write(const struct position *p, char out[TOKEN_TEXT]);

/* The same, without a NUL and behind spaces that fill the rest: what may be put in the place of another one.
   (In front of a header's value everybody skips spaces; behind it, not all do.) */
#define TOKEN_ROOM (TOKEN_TEXT - 1)
void token_fill(const struct position *p, char room[TOKEN_ROOM]);

/* ST_INVALID, with a message for the client: no token, torn, changed, of a later version. */
enum status token_read(struct slice text, struct position *ret, struct error *err) MUST_CHECK;

#endif
