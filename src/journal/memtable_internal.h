/* Private to memtable.c (rows, their versions, undoing), memtable_blocks.c (memory), memtable_order.c (orders
   and walks) and memtable_apply.c (handing a frozen table out). */
#ifndef LARDER_JOURNAL_MEMTABLE_INTERNAL_H
#define LARDER_JOURNAL_MEMTABLE_INTERNAL_H

#include <stdalign.h>

#include "base/map.h"
#include "journal/memtable.h"

/* What a row is: a value of enum item_table, or one of these. */
enum { KIND_KEY = ITEM_TABLES, KIND_DB, KIND_NEXT_ID };

/* One change: the state that it gave a row, or a row of trash. All versions are in the sequence of changes,
   those of one row behind each other as well. */
struct version {
    struct version *older, *newer; /* in the sequence of changes */
    struct version *before;        /* of the same row; of trash, the trash before it */
    struct entry *entry;           /* NULL: trash */
    mem_mark mark;
    union {
        struct mem_key key;
        struct mem_item item;
        struct db_row db;
        int64_t next_id;
        struct trash_row trash;
    };
};

struct entry {
    struct map_link link; /* first */
    struct version *now;  /* never NULL; it also says which row this is */
    struct group *group;
    struct entry *earlier, *later; /* of the same group, in order of creation */
    uint8_t kind;
    bool fresh; /* the tables do not have the row: repeated in `now` */
};

/* The rows that scans go through together: the items of one table and id, or all keys. */
struct group {
    struct map_link link; /* first */
    enum item_table table;
    int64_t id;
    struct group *earlier, *later; /* all groups of items */
    struct entry *first, *last;
    size_t count;
    size_t expiring; /* rows with an expiry: keys, fields of a hash */
    size_t due;      /* keys of hashes that have a `first` */
    size_t tables;   /* keys of tables */
    struct slice sample;
    size_t common; /* so many bytes all names begin with that have been here, as the sample does */
    struct order *orders;
};

struct mem_block;

#define ORDER_LEAF_SIZES 5

struct memtable {
    struct map rows, groups;
    struct group keys;  /* KIND_KEY */
    struct group extra; /* KIND_DB, KIND_NEXT_ID */
    struct group *first_group, *last_group;
    struct version *oldest, *newest; /* the sequence of changes, from the first that has not left */
    struct version *trash;           /* the newest; what is older than `left` has left */
    size_t ntrash;
    mem_mark next;    /* of the next change */
    mem_mark settled; /* what is older is not undone */
    mem_mark left;    /* what is older is not here */
    size_t nrows, peak;
    struct mem_block *blocks; /* the open one first */
    char *free;
    size_t nfree;
    size_t block_bytes;
    struct mem_block *spare_blocks; /* of an earlier round, to be used again */
    size_t spare_bytes;
    struct leaf *spare[ORDER_LEAF_SIZES]; /* leaves of orders to be used again, by their size */
};

/* ---- memtable_blocks.c ---- */

/* From another block. n is a multiple of the alignment. */
void *memtable_take_more(struct memtable *m, size_t n) __attribute__((returns_nonnull));

/* Gives all blocks back but for up to `keep`, which will be used again; gives up to `most` of those back. */
void memtable_drop_blocks(struct memtable *m, size_t keep);
void memtable_drop_spare(struct memtable *m, size_t most);

/* Memory that lives until the table is emptied. */
static inline void *memtable_take(struct memtable *m, size_t n)
{
    n = (n + alignof(struct version) - 1) / alignof(struct version) * alignof(struct version);
    if (n > m->nfree)
        return memtable_take_more(m, n);
    void *p = m->free;
    m->free += n;
    m->nfree -= n;
    return p;
}

/* Numbers and names as unsigned numbers that compare as they do; of a name, eight bytes from a place on. */
static inline uint64_t rank_of_number(int64_t v)
{
    return (uint64_t)v ^ (uint64_t)1 << 63;
}

static inline uint64_t rank_of_name(struct slice s, size_t from)
{
    unsigned char b[8] = {0};
    if (s.n > from)
        memcpy(b, s.p + from, s.n - from < sizeof b ? s.n - from : sizeof b);
    uint64_t v = 0;
    for (size_t i = 0; i < sizeof b; i++)
        v = v << 8 | b[i];
    return v;
}

/* The group of a table and id, or NULL. */
struct group *memtable_group(const struct memtable *m, enum item_table table, int64_t id);

/* ---- memtable_order.c ---- */

/* A row of a group goes from one state to another, or appears or disappears (NULL). */
void orders_change(struct memtable *m, struct group *g, const struct version *from, const struct version *to);

#endif
