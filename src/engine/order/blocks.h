/* The rank blocks of one sorted set that lives in the tables: how many members there are between one fence
   and the next.

   A block holds the members from its fence (a place in the order of (score, name)) up to the next block's;
   the first fence is before everything. A rank is then the sum of the counts of earlier blocks, which a
   Fenwick tree has in O(log n), plus a count inside one block, which an index does. The members themselves
   are not here: a million of them make a few thousand blocks.

   The rows are larder_zset_block (see store/sqlite/schema.h); coll_zset.c keeps them and this copy alike.
   Nothing here is known only to memory. */
#ifndef LARDER_ENGINE_ORDER_BLOCKS_H
#define LARDER_ENGINE_ORDER_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define BLOCK_TARGET 256 /* members of a block when one is divided, ... */
#define BLOCK_MAX    512 /* ... which happens above this */
#define BLOCK_MIN    64  /* below this a block is joined with a neighbour ... */
#define BLOCK_JOIN   320 /* ... unless they would have more than this together */

struct block {
    int64_t number; /* of its row; 0: it has none */
    double score;   /* the fence, with its name */
    char *name;
    size_t nname;
    int64_t count;
};

static inline struct slice block_name(const struct block *b)
{
    return (struct slice){b->name, b->nname};
}

struct blocks {
    struct block *at; /* by fence */
    size_t len, cap;
    int64_t *tree; /* sums of counts, from 1 on, when tree_valid */
    size_t tree_cap;
    bool tree_valid;
    bool grown; /* some block has more than BLOCK_MAX */
    size_t name_bytes;
};

/* The order of members: by score, then by name. -0 and 0 are the same score. */
int score_compare(double score_a, struct slice name_a, double score_b, struct slice name_b);

struct blocks *blocks_new(void);
void blocks_free(struct blocks *b);
size_t blocks_bytes(struct blocks *b);

/* Adds a block without members at place i, which is where its fence belongs; the name is copied. Or takes n
   out. */
struct block *blocks_insert(struct blocks *b, size_t i, double score, struct slice name);
void blocks_erase(struct blocks *b, size_t i, size_t n);

/* Puts blocks that were inserted in any order into order. False: two have the same fence, or none is before
   everything, so they are not the blocks of a set. */
bool blocks_sort(struct blocks *b);

/* The block that a place in the order falls into. */
size_t blocks_find(const struct blocks *b, double score, struct slice name);

void blocks_add(struct blocks *b, size_t i, int64_t delta);

/* How many members there are before block i; i = len: in all. */
int64_t blocks_before(struct blocks *b, size_t i);

/* The block that has the member of a rank, 0 <= rank < all. *ret_before: members before that block. */
size_t blocks_at_rank(struct blocks *b, int64_t rank, int64_t *ret_before);

/* The bytes of a fence that is behind (score_a, name_a) and at or before (score_b, name_b), as few as will
   do: a prefix of name_b. Its score is score_b. */
struct slice blocks_separator(double score_a, struct slice name_a, double score_b, struct slice name_b);

#endif
