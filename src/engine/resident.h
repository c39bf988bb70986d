/* Small collections, all of whose items are in memory: what the tables hold plus what the running batch
   changed.

   A resident is only a copy that answers faster. A command that fails midway, a commit that fails and
   another process's write drop it, and the next use reads the rows again. So nothing here
   knows about undo.

   Items are kept by ord (their place in larder_hash/set/zset) or by place (a list's items from its first
   position on); names are found by a hash index, a sorted set's order by an array that is sorted when
   a command needs it. */
#ifndef LARDER_ENGINE_RESIDENT_H
#define LARDER_ENGINE_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "store/store.h"

struct blocks;

struct member {
    int64_t ord; /* hash, set, sorted set */
    int64_t expire_at;
    double score;
    uint32_t hash;
    uint32_t nname;
    uint32_t nvalue;
    char data[]; /* name, value */
};

static inline struct slice member_name(const struct member *m)
{
    return (struct slice){m->data, m->nname};
}

static inline struct slice member_value(const struct member *m)
{
    return (struct slice){m->data + m->nname, m->nvalue};
}

struct resident {
    struct map_link link; /* by id; no tag */
    int64_t id;
    enum item_table table;
    bool touched;  /* changed by the running batch */
    bool oversize; /* empty: stands for a collection of few but huge items, which stays in the tables */
    struct blocks *blocks; /* empty but for them: a sorted set in the tables, see coll_zset.c */
    size_t blocks_bytes;   /* what they take of bytes */
    bool counts;           /* empty but for `expired`: a hash in the tables */
    int64_t expired;       /* a hash's fields that had expired at the moment expired_as_of, ... */
    int64_t expired_as_of; /* ... 0: not known, see coll_expire.c */
    bool sorted_valid;
    struct resident *prev, *next; /* by last use, newest first */
    struct member **items;        /* a ring: item i is at (head + i) % cap */
    size_t head, size, cap;
    struct member **slots; /* open addressing by name; NULL while small */
    size_t nslots;
    struct member **sorted; /* by (score, name), when sorted_valid */
    size_t sorted_cap;
    size_t bytes; /* all of it, as the allocator counts */
};

/* Nothing but a mark, the blocks or a count of a collection that is only in the tables. */
static inline bool resident_stands_in(const struct resident *r)
{
    return r->oversize || r->blocks || r->counts;
}

struct resident *resident_new(int64_t id, enum item_table table);
void resident_free(struct resident *r);

static inline struct member *resident_at(const struct resident *r, size_t i)
{
    return r->items[(r->head + i) & (r->cap - 1)];
}

/* By name, or NULL. */
struct member *resident_find(const struct resident *r, struct slice name);

/* Adds an item behind the last one: its ord is the size before. For a list: at the back. */
void resident_append(struct resident *r, const struct item_row *row);

/* Gives a member another value (copied), score and expiry. m may move: use the returned one. */
struct member *resident_update(struct resident *r, struct member *m, struct slice value, double score,
                               int64_t expire_at);

/* Takes a member out; the last one takes over its ord. */
void resident_remove(struct resident *r, struct member *m);

/* Lists. i in [0, size]; the shorter side moves. */
void resident_insert(struct resident *r, size_t i, struct slice value);
void resident_set(struct resident *r, size_t i, struct slice value);
void resident_erase(struct resident *r, size_t i);

/* The members by (score, name). */
struct member *const *resident_sorted(struct resident *r);

/* How many members come before (score, name). */
size_t resident_rank(struct resident *r, double score, struct slice name);

/* ---- all of them, by id, within a budget ---- */

struct residents {
    struct map by_id;
    size_t bytes;
    struct resident *newest, *oldest;
    int64_t *touched; /* ids of those that the running batch changed */
    size_t ntouched, touched_cap;
};

void residents_release(struct residents *t);
struct resident *residents_find(struct residents *t, int64_t id); /* counts as a use */
void residents_add(struct residents *t, struct resident *r);
void residents_drop(struct residents *t, struct resident *r);
void residents_drop_touched(struct residents *t);
void residents_drop_all(struct residents *t);

/* Around a change of a resident: it is marked as touched, and what it takes is counted anew. */
size_t residents_before(struct residents *t, struct resident *r);
void residents_after(struct residents *t, const struct resident *r, size_t before);

/* The batch was committed: nothing is touched any more. */
void residents_settle(struct residents *t);

/* Drops the least recently used ones until they take at most budget bytes. */
void residents_trim(struct residents *t, size_t budget);

#endif
