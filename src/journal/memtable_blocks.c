/* The memory of a memtable: large blocks, so that a change costs no call of the allocator and a table of any
   size is freed by freeing its blocks. */
#include <stdalign.h>
#include <stdlib.h>

#include "base/mem.h"
#include "journal/memtable_internal.h"

#define BLOCK_BYTES ((size_t)512 * 1024)

struct mem_block {
    struct mem_block *next;
    size_t bytes;
    alignas(max_align_t) char data[];
};

/* Under AddressSanitizer a table that is emptied gives everything back, so that using rows after it is
   caught. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEP_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEP_BLOCKS 0
#endif
#endif
#ifndef KEEP_BLOCKS
#define KEEP_BLOCKS 1
#endif

static size_t block_size(const struct mem_block *b)
{
    return sizeof *b + b->bytes;
}

static struct mem_block *new_block(struct memtable *m, size_t bytes)
{
    struct mem_block *b = m->spare_blocks;
    if (b && bytes == BLOCK_BYTES) {
        m->spare_blocks = b->next;
        m->spare_bytes -= block_size(b);
        return b;
    }
    b = mem_alloc(sizeof *b + bytes);
    b->bytes = bytes;
    return b;
}

static struct mem_block *add_block(struct memtable *m, size_t bytes)
{
    struct mem_block *b = new_block(m, bytes);
    m->block_bytes += block_size(b);
    if (bytes != BLOCK_BYTES && m->blocks) {
        /* Large: behind the open one, whose rest stays in use. */
        b->next = m->blocks->next;
        m->blocks->next = b;
        return b;
    }
    b->next = m->blocks;
    m->blocks = b;
    m->free = b->data;
    m->nfree = bytes;
    return b;
}

void *memtable_take_more(struct memtable *m, size_t n)
{
    if (n > SIZE_MAX / 2)
        abort();
    struct mem_block *b = add_block(m, n > BLOCK_BYTES / 8 ? n : BLOCK_BYTES);
    if (b != m->blocks)
        return b->data;
    void *p = m->free;
    m->free += n;
    m->nfree -= n;
    return p;
}

void memtable_drop_blocks(struct memtable *m, size_t keep)
{
    for (struct mem_block *b = m->blocks, *next; b; b = next) {
        next = b->next;
        if (KEEP_BLOCKS && keep && b->bytes == BLOCK_BYTES) {
            keep--;
            b->next = m->spare_blocks;
            m->spare_blocks = b;
            m->spare_bytes += block_size(b);
        } else {
            mem_free(b);
        }
    }
    m->blocks = NULL;
    m->block_bytes = 0;
    m->free = NULL;
    m->nfree = 0;
}

void memtable_drop_spare(struct memtable *m, size_t most)
{
    for (struct mem_block *b; most > 0 && (b = m->spare_blocks); most--) {
        m->spare_blocks = b->next;
        m->spare_bytes -= block_size(b);
        mem_free(b);
    }
}
