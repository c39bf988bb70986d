/* A growable run of bytes. Zero-initialised is empty; buf_release frees. */
#ifndef LARDER_BASE_BUF_H
#define LARDER_BASE_BUF_H

#include <stddef.h>

#include "base/slice.h"

struct buf {
    char *p;
    size_t len;
    size_t cap;
};

void buf_release(struct buf *b);

/* Makes room for at least n more bytes and returns where they go (at p + len). */
char *buf_reserve(struct buf *b, size_t n);

/* Slow path of buf_add; use buf_add. */
void buf_grow_add(struct buf *b, const void *p, size_t n);

static inline void buf_add(struct buf *b, const void *p, size_t n)
{
    if (b->cap - b->len >= n) {
        if (n)
            memcpy(b->p + b->len, p, n);
        b->len += n;
    } else {
        buf_grow_add(b, p, n);
    }
}

static inline void buf_add_slice(struct buf *b, struct slice s)
{
    buf_add(b, s.p, s.n);
}

void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Drops the first n bytes; what follows moves to the front. */
void buf_consume(struct buf *b, size_t n);

/* Gives memory back when cap is above keep and the content is small. */
void buf_shrink(struct buf *b, size_t keep);

static inline struct slice buf_slice(const struct buf *b)
{
    return (struct slice){b->p, b->len};
}

#endif
