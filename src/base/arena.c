#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

#define BLOCK_BYTES 16384

struct arena_block {
    struct arena_block *next;
    size_t bytes; /* of data */
    alignas(max_align_t) char data[];
};

/* Under AddressSanitizer a reset gives everything back, so that using memory after it is caught. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEP_BLOCK 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEP_BLOCK 0
#endif
#endif
#ifndef KEEP_BLOCK
#define KEEP_BLOCK 1
#endif

static struct arena_block *block_new(size_t bytes)
{
    struct arena_block *b = mem_alloc(sizeof *b + bytes);
    b->bytes = bytes;
    return b;
}

static void open_block(struct arena *a, struct arena_block *b)
{
    a->next = b->data;
    a->left = b->bytes;
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > SIZE_MAX / 2)
        abort();
    n = ((n ? n : 1) + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if (n > a->left) {
        struct arena_block *b = block_new(n > BLOCK_BYTES / 4 ? n : BLOCK_BYTES);
        if (b->bytes != BLOCK_BYTES && a->blocks) {
            /* Large: a block of its own, behind the open one, whose rest stays in use. */
            b->next = a->blocks->next;
            a->blocks->next = b;
            return b->data;
        }
        b->next = a->blocks;
        a->blocks = b;
        open_block(a, b);
    }
    void *p = a->next;
    a->next += n;
    a->left -= n;
    return p;
}

struct slice arena_copy(struct arena *a, struct slice s)
{
    if (s.n == 0)
        return (struct slice){"", 0};
    char *p = arena_alloc(a, s.n);
    memcpy(p, s.p, s.n);
    return (struct slice){p, s.n};
}

struct slice arena_next(struct arena *a, struct slice s)
{
    char *next = arena_alloc(a, s.n + 1);
    if (s.n)
        memcpy(next, s.p, s.n);
    next[s.n] = '\0';
    return slice_of(next, s.n + 1);
}

void arena_adopt(struct arena *a, struct arena *from)
{
    if (!a->blocks) {
        *a = *from;
    } else if (from->blocks) {
        struct arena_block *last = from->blocks;
        while (last->next)
            last = last->next;
        last->next = a->blocks->next;
        a->blocks->next = from->blocks;
    }
    *from = (struct arena){0};
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = NULL;
    for (struct arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        if (KEEP_BLOCK && !keep && b->bytes == BLOCK_BYTES)
            keep = b;
        else
            mem_free(b);
    }
    *a = (struct arena){.blocks = keep};
    if (keep) {
        keep->next = NULL;
        open_block(a, keep);
    }
}

void arena_release(struct arena *a)
{
    for (struct arena_block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        mem_free(b);
    }
    *a = (struct arena){0};
}
