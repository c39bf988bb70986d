/* The parts of a request's target. What comes percent-encoded may be any byte, NUL and "/" included: paths
   are cut into segments before they are decoded. */
#ifndef LARDER_PROTO_URI_H
#define LARDER_PROTO_URI_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

/* Every %XX becomes its byte; plus: and every "+" a space, as in queries. Text without any is returned as it
   is, else a copy in arena. False: a "%" without two hexadecimal digits behind it. */
bool uri_decode(struct slice text, bool plus, struct arena *arena, struct slice *ret);

/* The next segment of a path: *path stands at its "/" and moves behind it. False at the end. */
bool uri_segment(struct slice *path, struct slice *ret);

/* The next "name=value" of a query, undecoded, which is taken from *query. *ret_bare: there was no "=". False
   at the end; empty ones are left out. */
bool uri_param(struct slice *query, struct slice *ret_name, struct slice *ret_value, bool *ret_bare);

/* Adds text with every byte encoded that is not a letter, a digit or one of "-._~". */
void uri_encode(struct buf *out, struct slice text);

#endif
