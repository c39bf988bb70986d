/* Base64 (RFC 4648): what JSON has to carry bytes that are not UTF-8, and HTTP a basic password. */
#ifndef LARDER_PROTO_BASE64_H
#define LARDER_PROTO_BASE64_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

/* The standard alphabet, padded. */
void base64_add(struct buf *out, struct slice bytes);

/* The URL alphabet, not padded. */
void base64_add_url(struct buf *out, struct slice bytes);

/* Takes the standard and the URL alphabet, with or without padding; anything else, white space or bits that
   belong to no byte included, is refused. The bytes are in arena. */
bool base64_decode(struct slice text, struct arena *arena, struct slice *ret);

#endif
