/* Private to memtable.c (rows and how they change), changes.c (undoing, settling, leaving),
   state.c (how a state is packed), blocks.c (memory), order.c (orders and walks), ranges.c (range deletes)
   and apply.c (handing a frozen table out). */
#ifndef LARDER_MEMTABLE_MEMTABLE_INTERNAL_H
#define LARDER_MEMTABLE_MEMTABLE_INTERNAL_H

#include <string.h>

#include "base/map.h"
#include "memtable/memtable.h"

/* What a row is: a value of enum item_table, or one of these. */
enum { KIND_KEY = ITEM_TABLES, KIND_DB, KIND_NEXT_ID, KIND_RANGE };

/* One state of a row: what a change made it. A row is its newest state, which stands in the map; the one
   before it is in the list of changes (below) until it cannot come back, and then its memory is used again.

   The numbers and bytes of a key's row stand right behind this, those of an item behind struct member. The
   link's tag says the rest: the TAG_* below, and how many bytes each number takes (state.c). But for links,
   TAG_FRESH and, when a range has it, TAG_GONE a state never changes. Nor does it when a shade has it. */
struct state {
    struct map_link link; /* first */
};

#define TAG_KIND    0xfu
#define TAG_FRESH   0x10u  /* the tables do not have the row */
#define TAG_GONE    0x20u  /* of items; keys that are gone have the type ROW_NONE */
#define TAG_STAYS   0x40u  /* while others leave */
#define TAG_EXPIRES 0x80u  /* the row is in the order of those with an expiry */
#define TAG_TYPE    8      /* from this bit on, three: of a key's row */
#define TAG_HOLES   0x800u /* of a key's row: `numbers` stands behind its value */
#define TAG_WIDTHS  12     /* and from here on, two for each number */

/* The states of a group that came between two ranges that shade it: each leads to its era, and by that to its
   group. */
struct era {
    struct group *group;
    struct era *older;
    uint32_t number; /* from 0 on */
};

/* Places, of a group whose rows have places, at which all states of eras before one are gone. */
struct shade {
    int64_t min, max;
    uint32_t before;
};

/* A row of a group: an item, or one of the few others. */
struct member {
    struct state state; /* first */
    struct era *era;
    struct member *earlier, *later; /* in the order in which the rows came */
};

struct member_db {
    struct member member;
    struct db_row row;
};

struct member_next_id {
    struct member member;
    int64_t next_id;
};

/* A range delete, as a change: it is in no map. */
struct range {
    struct state state; /* first */
    struct group *group;
    struct range *older; /* of the same group */
    struct era *begins;  /* what it shades came before; NULL: it shades nothing */
    mem_mark mark;
    struct item_range what;
    char names[];
};

/* The rows that scans go through together: the items of one table and id, or all keys. */
struct group {
    struct map_link link; /* first */
    struct era first_era;
    struct era *era; /* the newest */
    int64_t id;
    enum item_table table;
    uint32_t common; /* so many bytes all names begin with that have been here, as the sample does */
    char *sample;    /* NULL: there has been one name at most */
    uint32_t nsample;
    struct group *earlier, *later; /* all groups of items */
    struct member *first, *last;   /* not of keys: the map has those */
    size_t count;
    size_t expiring; /* rows with an expiry: keys, fields of a hash */
    struct order *orders;
    struct range *ranges;     /* the newest first */
    struct item_range *spans; /* their sum: none touches another, in order; names are the ranges' */
    uint32_t nspans, cap_spans;
    struct shade *shades; /* none meets another, in order */
    uint32_t nshades, cap_shades;
    bool stale; /* a range was taken back: spans and shades have to be summed up again */
    struct group *next_stale;
};

/* A change that may be undone. */
struct change {
    mem_mark mark;
    struct state *now;    /* NULL: a row of trash */
    struct state *before; /* NULL: the row was not here; the same as now: it went with a range */
};

static inline bool change_hides(const struct change *c)
{
    return c->now && c->now == c->before;
}

struct trash {
    struct trash_row row;
    mem_mark mark;
};

struct mem_block;

#define MEM_UNIT  8    /* memory is handed out in so many bytes ... */
#define MEM_SMALL 2112 /* ... and what is given back is used again for the same size up to this, */
#define MEM_SIZES (MEM_SMALL / MEM_UNIT + 1)
#define MEM_LARGE ((size_t)64 * 1024) /* or for about the same size up to this */
#define MEM_STEPS 48

struct memtable {
    struct map rows, groups;
    struct group keys;  /* KIND_KEY */
    struct group extra; /* KIND_DB, KIND_NEXT_ID */
    struct group *first_group, *last_group;
    size_t due;       /* keys of hashes that have a `first` */
    size_t tables;    /* keys of tables */
    uint32_t key_db;  /* of the first key that came ... */
    bool many_dbs;    /* ... and others came of another database */
    int64_t max_id;   /* of all groups that have been */
    bool based;       /* numbers of states are told from these on */
    int64_t version0; /* the version, */
    int64_t ms0;      /* the moment that goes with it, if versions are microseconds, */
    int64_t ticket0;  /* and the ticket of the first row that came */
    struct change *changes;
    size_t first_change, nchanges, cap_changes;
    struct trash *trash;
    size_t ntrash, cap_trash;
    mem_mark next;    /* of the next change */
    mem_mark settled; /* what is older is not undone */
    mem_mark left;    /* what is older is not here */
    size_t nrows, peak;
    size_t nranges;
    struct group *stale;      /* the first group that is */
    struct mem_block *blocks; /* the open one first */
    struct mem_block *large;  /* one for each large state */
    char *free;
    size_t nfree;
    size_t block_bytes;
    struct mem_block *spare_blocks; /* of an earlier round, to be used again */
    size_t spare_bytes;
    void *freed[MEM_SIZES]; /* given back, by size in units; the first bytes lead to the next one */
    void *freed_more[MEM_STEPS];
};

/* ---- blocks.c ---- */

/* Other than from the open block. n is a multiple of MEM_UNIT. */
void *memtable_take_more(struct memtable *m, size_t n) __attribute__((returns_nonnull));

/* Gives all blocks back but for up to `keep`, which will be used again; gives up to `most` of those back. */
void memtable_drop_blocks(struct memtable *m, size_t keep);
void memtable_drop_spare(struct memtable *m, size_t most);

static inline size_t memtable_rounded(size_t n)
{
    return (n + MEM_UNIT - 1) / MEM_UNIT * MEM_UNIT;
}

/* Memory until it is given back or the table is emptied. */
static inline void *memtable_take(struct memtable *m, size_t n)
{
    n = memtable_rounded(n);
    if (n > m->nfree || n > MEM_SMALL || m->freed[n / MEM_UNIT])
        return memtable_take_more(m, n);
    void *p = m->free;
    m->free += n;
    m->nfree -= n;
    return p;
}

/* Of the size that it was taken with. */
void memtable_give(struct memtable *m, void *p, size_t n);

/* ---- state.c ---- */

static inline unsigned state_kind(const struct state *s)
{
    return s->link.tag & TAG_KIND;
}

static inline enum row_type state_type(const struct state *s)
{
    return (enum row_type)(s->link.tag >> TAG_TYPE & 7);
}

/* New ones, with a copy of the row, that stand nowhere yet; gone: only the item's ref counts. */
struct state *state_of_key(struct memtable *m, const struct key_row *row, uint32_t hash, int64_t ticket);
struct state *state_of_item(struct memtable *m, struct group *g, const struct item_row *row, bool gone,
                            uint32_t hash, int64_t ticket);

/* What they say. Slices lead into the state. */
void state_key(const struct memtable *m, const struct state *s, struct mem_key *ret);
void state_item(const struct memtable *m, const struct state *s, struct mem_item *ret);
struct slice state_name(const struct state *s);
bool state_is_key(const struct state *s, uint32_t db, struct slice key);
bool state_is_item(const struct state *s, const struct item_ref *ref);
int64_t state_place(const struct state *s); /* of an item without a name */
bool state_is_due(const struct state *s);   /* of a key: in the order KEYS_DUE */

/* Gives its memory back: nothing leads to it any more. */
void state_give(struct memtable *m, struct state *s);

/* ---- memtable.c ---- */

/* The group of a table and id, or NULL. */
struct group *memtable_group(const struct memtable *m, enum item_table table, int64_t id);

/* The same, made if there is none; gives one back that has neither rows nor ranges. */
struct group *memtable_need_group(struct memtable *m, enum item_table table, int64_t id);
void memtable_drop_empty(struct memtable *m, struct group *g);

/* Puts another state of the same row in the place of one; takes a row out. The memory of what is no longer
   there stays. */
void memtable_replace(struct memtable *m, struct state *from, struct state *to);
void memtable_drop(struct memtable *m, struct state *s);

/* The newest state of an item, or NULL. */
struct state *memtable_state(const struct memtable *m, const struct item_ref *ref);

/* ---- order.c ---- */

/* A row of a group goes from one state to another, or appears or disappears (NULL). */
void orders_change(struct memtable *m, struct group *g, const struct state *from, const struct state *to);

/* All rows of a group leave its orders that have places between two, both included. */
void orders_cut(struct memtable *m, struct group *g, int64_t min, int64_t max);

/* Gives the memory of all orders of a group back. */
void orders_drop(struct memtable *m, struct group *g);

/* ---- ranges.c ---- */

/* Takes the newest range of its group back, and that a row has gone with it; when all are back that shall be,
   memtable_sum_ranges makes the groups true again. */
void memtable_undo_range(struct memtable *m, struct state *s);
void memtable_undo_hiding(struct memtable *m, struct state *s);
void memtable_sum_ranges(struct memtable *m);

/* Gives the memory back that a group has for them, of a group that has none. */
void memtable_drop_sums(struct memtable *m, struct group *g);

/* Whether a shade has the place of a state. */
bool memtable_in_shade(const struct group *g, const struct state *s);

static inline struct group *member_group(const struct state *s)
{
    return ((const struct member *)s)->era->group;
}

/* Of an item: whether a range of its own table came behind it that has its place. */
static inline bool item_shaded(const struct state *s)
{
    const struct era *e = ((const struct member *)s)->era;
    return e->number < e->group->era->number && memtable_in_shade(e->group, s);
}

static inline bool item_gone(const struct state *s)
{
    return (s->link.tag & TAG_GONE) || item_shaded(s);
}

/* Those before a mark are in the tables. */
void memtable_leave_ranges(struct memtable *m, mem_mark to);

/* ---- ranks ---- */

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

#endif
