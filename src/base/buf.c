/* Growth: small buffers double, which keeps appending linear; beyond a mebibyte they grow by a quarter (at
   least a mebibyte), so that a value of hundreds of megabytes does not take twice its size. A reservation
   larger than that step is taken exactly. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define FIRST_CAP  64
#define DOUBLE_MAX ((size_t)1 << 20)

static size_t next_cap(size_t cap, size_t need)
{
    size_t step = cap < FIRST_CAP ? FIRST_CAP : cap < DOUBLE_MAX ? cap : cap / 4;
    if (cap >= DOUBLE_MAX && step < DOUBLE_MAX)
        step = DOUBLE_MAX;
    return need - cap > step ? need : cap + step;
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (b->cap - b->len < n) {
        if (n > SIZE_MAX / 4 - b->len)
            abort();
        b->cap = next_cap(b->cap, b->len + n);
        b->p = mem_realloc(b->p, b->cap);
    }
    return b->p + b->len;
}

void buf_grow_add(struct buf *b, const void *p, size_t n)
{
    char *to = buf_reserve(b, n);
    memcpy(to, p, n);
    b->len += n;
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    /* Most of what is printed is short: try in the room there is, and make room when it was not enough. */
    char *to = buf_reserve(b, 128);
    size_t room = b->cap - b->len;
    int n = vsnprintf(to, room, fmt, args);
    va_end(args);
    assert(n >= 0);
    if ((size_t)n >= room)
        vsnprintf(buf_reserve(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
    va_end(again);
    b->len += (size_t)n;
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->len);
    b->len -= n;
    if (b->len)
        memmove(b->p, b->p + n, b->len);
}

void buf_shrink(struct buf *b, size_t keep)
{
    if (b->cap <= keep || b->len > keep / 2)
        return;
    if (keep == 0) {
        buf_release(b);
        return;
    }
    b->p = mem_realloc(b->p, keep);
    b->cap = keep;
}

void buf_release(struct buf *b)
{
    mem_free(b->p);
    *b = (struct buf){0};
}
