/* The RESP sink: appends to a buffer. */
#ifndef LARDER_PROTO_RESP_REPLY_H
#define LARDER_PROTO_RESP_REPLY_H

#include "base/buf.h"
#include "proto/reply.h"

struct resp_reply {
    struct reply base; /* first: handlers see only this */
    struct buf *out;   /* where bytes go; borrowed */
};

/* version: 2 or 3; may be changed at any time between commands through base.resp. */
void resp_reply_init(struct resp_reply *r, struct buf *out, int version);

#endif
