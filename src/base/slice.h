/* A slice borrows bytes that it does not own. It is never NUL-terminated. */
#ifndef LARDER_BASE_SLICE_H
#define LARDER_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *p;
    size_t n;
};

/* A slice of a string literal. */
#define SLICE(lit) ((struct slice){(lit), sizeof(lit) - 1})

static inline struct slice slice_of(const void *p, size_t n)
{
    return (struct slice){p, n};
}

static inline struct slice slice_str(const char *s)
{
    return (struct slice){s, strlen(s)};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Byte order, a prefix before what it is a prefix of: the order of a BLOB column. */
static inline int slice_cmp(struct slice a, struct slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

/* Equal to a NUL-terminated word, ASCII case ignored: for options such as "EX" and "ex". */
bool slice_is(struct slice s, const char *word);

#endif
