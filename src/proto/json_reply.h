/* The JSON sink: a command's reply as the value it would be in RESP2, appended to a buffer. A map is a flat
   array, a double a string, an error {"error": "..."}; what closes an array is written when the next value
   begins, so that taking back the last value (rewind) is cutting the buffer. */
#ifndef LARDER_PROTO_JSON_REPLY_H
#define LARDER_PROTO_JSON_REPLY_H

#include <stdbool.h>

#include "base/buf.h"
#include "proto/reply.h"

struct json_frame {
    size_t start; /* where its bracket stands */
    size_t last;  /* where its last value begins */
    size_t left;  /* values to come; SIZE_MAX: until end_deferred */
};

struct json_reply {
    struct reply base;         /* first: handlers see only this */
    struct buf *out;           /* where bytes go; borrowed */
    bool base64;               /* strings travel so, but for +OK */
    size_t piece;              /* where the bytes of a bulk in pieces begin */
    struct json_frame *frames; /* arrays that are open, the outermost first */
    size_t depth, cap;
};

/* Of this sink, for one that does some of it in its own way. */
extern const struct reply_ops json_reply_ops;

void json_reply_init(struct json_reply *r);
void json_reply_release(struct json_reply *r);

/* What is said from here on is one value, appended to out. */
void json_reply_begin(struct json_reply *r, struct buf *out, bool base64);

/* The value is not wanted: forgets what is open. */
void json_reply_drop(struct json_reply *r);

/* The value is whole: closes what is open. */
void json_reply_end(struct json_reply *r);

#endif
