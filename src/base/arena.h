/* Bump allocation for what lives exactly as long as one call or one batch. Zero-initialised is empty. */
#ifndef LARDER_BASE_ARENA_H
#define LARDER_BASE_ARENA_H

#include <stddef.h>

#include "base/slice.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    char *next;
    size_t left;
};

/* Aligned for any object. Never fails. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((returns_nonnull));
struct slice arena_copy(struct arena *a, struct slice s);

/* The first byte string behind s: the same with a NUL behind it. */
struct slice arena_next(struct arena *a, struct slice s);

/* Takes over all that `from` holds: it lives as long as what a holds. */
void arena_adopt(struct arena *a, struct arena *from);

/* Forgets everything; keeps one ordinary block for the next round, frees the rest. */
void arena_reset(struct arena *a);
void arena_release(struct arena *a);

#endif
