/* Where a handler's answer goes. The handler says what it is (a bulk, a map of n, a null); the sink decides
   how it looks: RESP2 or RESP3 bytes (resp_reply.c), later JSON. A handler never knows who asked.

   Aggregates announce their length first and are followed by exactly that many values; an aggregate whose
   length is not known in advance uses reply_begin_deferred / reply_end_deferred. */
#ifndef LARDER_PROTO_REPLY_H
#define LARDER_PROTO_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct buf;
struct reply;

enum reply_kind { REPLY_ARRAY, REPLY_SET, REPLY_MAP, REPLY_PUSH }; /* a map of n takes 2n values */

struct reply_ops {
    void (*simple)(struct reply *r, struct slice s);   /* +OK */
    void (*error)(struct reply *r, struct slice s);    /* -ERR ... (no CR or LF inside: they become spaces) */
    void (*integer)(struct reply *r, int64_t v);       /* :1 */
    void (*bulk)(struct reply *r, struct slice s);     /* $3 */
    void (*bulk_begin)(struct reply *r, size_t total); /* $N, the bytes follow in pieces */
    void (*bulk_piece)(struct reply *r, struct slice s);                     /* ... */
    void (*bulk_end)(struct reply *r);                                       /* ... and are all there */
    void (*null)(struct reply *r);                                           /* $-1 or _ */
    void (*null_array)(struct reply *r);                                     /* *-1 or _ */
    void (*number)(struct reply *r, double v);                               /* , or a bulk */
    void (*boolean)(struct reply *r, bool v);                                /* # or :1/:0 */
    void (*verbatim)(struct reply *r, const char format[3], struct slice s); /* = or a bulk */
    void (*big_number)(struct reply *r, struct slice digits);                /* ( or a bulk */
    void (*aggregate)(struct reply *r, enum reply_kind kind, size_t n);
    size_t (*begin_deferred)(struct reply *r); /* a mark for end_deferred; they nest */
    void (*end_deferred)(struct reply *r, size_t mark, enum reply_kind kind, size_t n);
    /* A sink of the same kind over another buffer, where another thread makes a value; ending it makes that
       whole and frees the sink. What is in the buffer then, `made` says here. */
    struct reply *(*twin)(const struct reply *r, struct buf *out);
    void (*end_twin)(struct reply *twin);
    void (*made)(struct reply *r, struct slice bytes);
    size_t (*mark)(struct reply *r);              /* how much has been said */
    void (*rewind)(struct reply *r, size_t mark); /* takes back all that was said since */
};

struct reply {
    const struct reply_ops *ops;
    int resp;        /* 2 or 3: for the few commands whose content, not form, differs */
    uint64_t errors; /* how many errors were said: command statistics compare before and after */
    bool told;       /* the last of them was counted already: a script passes it on */
    char code[31];   /* of the last error: its first word, or ERR (a longer one is no code for Redis) */
};

static inline void reply_simple(struct reply *r, const char *s)
{
    r->ops->simple(r, slice_str(s));
}

static inline void reply_ok(struct reply *r)
{
    r->ops->simple(r, SLICE("OK"));
}

/* Counts an error; reply_error and reply_errorf do. A text without a code, which a script may have, counts as
   "ERR". */
static inline void reply_note_error(struct reply *r, const char *s)
{
    size_t n = strcspn(s, " ");
    if (s[n] == '\0' || n > sizeof r->code - 1) {
        s = "ERR";
        n = 3;
    }
    memcpy(r->code, s, n);
    r->code[n] = '\0';
    r->errors++;
    r->told = false;
}

/* The text starts with its code: "ERR syntax error", "WRONGTYPE ...". */
static inline void reply_error(struct reply *r, const char *s)
{
    reply_note_error(r, s);
    r->ops->error(r, slice_str(s));
}

void reply_errorf(struct reply *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void reply_integer(struct reply *r, int64_t v)
{
    r->ops->integer(r, v);
}

static inline void reply_bulk(struct reply *r, struct slice s)
{
    r->ops->bulk(r, s);
}

static inline void reply_bulk_str(struct reply *r, const char *s)
{
    r->ops->bulk(r, slice_str(s));
}

/* An integer as a bulk string. */
void reply_bulk_i64(struct reply *r, int64_t v);

/* A number in the human form of INCRBYFLOAT, as a bulk. */
void reply_bulk_long_double(struct reply *r, long double v);

static inline void reply_null(struct reply *r)
{
    r->ops->null(r);
}

static inline void reply_null_array(struct reply *r)
{
    r->ops->null_array(r);
}

static inline void reply_double(struct reply *r, double v)
{
    r->ops->number(r, v);
}

static inline void reply_bool(struct reply *r, bool v)
{
    r->ops->boolean(r, v);
}

static inline void reply_array(struct reply *r, size_t n)
{
    r->ops->aggregate(r, REPLY_ARRAY, n);
}

static inline void reply_set(struct reply *r, size_t n)
{
    r->ops->aggregate(r, REPLY_SET, n);
}

static inline void reply_map(struct reply *r, size_t n)
{
    r->ops->aggregate(r, REPLY_MAP, n);
}

static inline struct reply *reply_twin(const struct reply *r, struct buf *out)
{
    return r->ops->twin(r, out);
}

static inline void reply_end_twin(struct reply *twin)
{
    twin->ops->end_twin(twin);
}

static inline void reply_made(struct reply *r, struct slice bytes)
{
    r->ops->made(r, bytes);
}

static inline size_t reply_begin_deferred(struct reply *r)
{
    return r->ops->begin_deferred(r);
}

static inline void reply_end_deferred(struct reply *r, size_t mark, enum reply_kind kind, size_t n)
{
    r->ops->end_deferred(r, mark, kind, n);
}

#endif
