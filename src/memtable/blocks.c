/* The memory of a memtable: large blocks, so that a change costs no call of the allocator and a table of any
   size is freed by freeing its blocks. What is given back, states that were replaced above all, is used again
   for the next one of its size; a large state has a block of its own, which goes back at once. */
#include <stdalign.h>
#include <stdlib.h>

#include "base/mem.h"
#include "memtable/memtable_internal.h"

#define BLOCK_BYTES ((size_t)512 * 1024)
#define STEPS       8 /* sizes above MEM_SMALL are rounded up to a power of two in so many steps */

struct mem_block {
    struct mem_block *next, *before; /* before: of large ones */
    size_t bytes;
    alignas(max_align_t) char data[];
};

/* Under AddressSanitizer a table that is emptied gives everything back, and what is given back within it may
   not be touched, so that using rows that are no more is caught. */
#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#define KEEP_BLOCKS 0
#else
#define KEEP_BLOCKS                       1
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

static size_t block_size(const struct mem_block *b)
{
    return sizeof *b + b->bytes;
}

static void free_block(struct mem_block *b)
{
    ASAN_UNPOISON_MEMORY_REGION(b->data, b->bytes);
    mem_free(b);
}

static void add_block(struct memtable *m)
{
    struct mem_block *b = m->spare_blocks;
    if (b) {
        m->spare_blocks = b->next;
        m->spare_bytes -= block_size(b);
    } else {
        b = mem_alloc(sizeof *b + BLOCK_BYTES);
        b->bytes = BLOCK_BYTES;
    }
    m->block_bytes += block_size(b);
    b->next = m->blocks;
    m->blocks = b;
    m->free = b->data;
    m->nfree = b->bytes;
}

static void *take_large(struct memtable *m, size_t n)
{
    if (n > SIZE_MAX / 2)
        abort();
    struct mem_block *b = mem_alloc(sizeof *b + n);
    *b = (struct mem_block){.next = m->large, .bytes = n};
    if (m->large)
        m->large->before = b;
    m->large = b;
    m->block_bytes += block_size(b);
    return b->data;
}

static void give_large(struct memtable *m, void *p)
{
    struct mem_block *b = (struct mem_block *)((char *)p - offsetof(struct mem_block, data));
    *(b->before ? &b->before->next : &m->large) = b->next;
    if (b->next)
        b->next->before = b->before;
    m->block_bytes -= block_size(b);
    free_block(b);
}

/* The list of what was given back of a size between MEM_SMALL and MEM_LARGE, which it rounds up. */
static void **list_of(struct memtable *m, size_t *n)
{
    if (*n <= MEM_SMALL)
        return &m->freed[*n / MEM_UNIT];
    unsigned log = 63 - (unsigned)__builtin_clzll(*n);
    size_t step = ((size_t)1 << log) / STEPS, over = (*n - ((size_t)1 << log) + step - 1) / step;
    *n = ((size_t)1 << log) + over * step;
    return &m->freed_more[((size_t)log - 11) * STEPS + over];
}

_Static_assert(MEM_SMALL >= 2048 && MEM_LARGE <= 65536 && MEM_STEPS >= (16 - 11) * STEPS + 1, "sizes");

void *memtable_take_more(struct memtable *m, size_t n)
{
    if (n > MEM_LARGE)
        return take_large(m, n);
    void **list = list_of(m, &n), *p = *list;
    if (p) {
        ASAN_UNPOISON_MEMORY_REGION(p, n);
        memcpy(list, p, sizeof *list);
        return p;
    }
    if (n > m->nfree)
        add_block(m);
    p = m->free;
    m->free += n;
    m->nfree -= n;
    return p;
}

void memtable_give(struct memtable *m, void *p, size_t n)
{
    n = memtable_rounded(n);
    if (n > MEM_LARGE) {
        give_large(m, p);
        return;
    }
    void **list = list_of(m, &n);
    memcpy(p, list, sizeof *list);
    *list = p;
    ASAN_POISON_MEMORY_REGION((char *)p + sizeof *list, n - sizeof *list);
}

void memtable_drop_blocks(struct memtable *m, size_t keep)
{
    for (struct mem_block *b = m->blocks, *next; b; b = next) {
        next = b->next;
        if (KEEP_BLOCKS && keep) {
            keep--;
            b->next = m->spare_blocks;
            m->spare_blocks = b;
            m->spare_bytes += block_size(b);
        } else {
            free_block(b);
        }
    }
    while (m->large)
        give_large(m, m->large->data);
    m->blocks = NULL;
    m->block_bytes = 0;
    m->free = NULL;
    m->nfree = 0;
    memset(m->freed, 0, sizeof m->freed);
    memset(m->freed_more, 0, sizeof m->freed_more);
}

void memtable_drop_spare(struct memtable *m, size_t most)
{
    for (struct mem_block *b; most > 0 && (b = m->spare_blocks); most--) {
        m->spare_blocks = b->next;
        m->spare_bytes -= block_size(b);
        mem_free(b);
    }
}
