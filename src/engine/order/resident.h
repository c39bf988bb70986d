/* The items of one small collection, all of them in memory: what the tables hold plus what the running batch
   changed. It is a part of what memory knows of the collection (memo.h), and is dropped with it.

   Items are kept in the order of their numbers (ord, which may have holes) or by place (a list's items from
   its first position on); names are found by a hash index, a sorted set's order by an array that is sorted
   when a command needs it. */
#ifndef LARDER_ENGINE_ORDER_RESIDENT_H
#define LARDER_ENGINE_ORDER_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

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
    enum item_table table;
    bool sorted_valid;
    struct member **items; /* a ring: item i is at (head + i) % cap */
    size_t head, size, cap;
    struct member **slots; /* open addressing by name; NULL while small */
    size_t nslots;
    struct member **sorted; /* by (score, name), when sorted_valid */
    size_t sorted_cap;
    size_t bytes; /* what all of this points to, as the allocator counts */
};

/* One that is zero but for its table has no items yet. */
void resident_release(struct resident *r);

static inline struct member *resident_at(const struct resident *r, size_t i)
{
    return r->items[(r->head + i) & (r->cap - 1)];
}

/* By name, or NULL. */
struct member *resident_find(const struct resident *r, struct slice name);

/* How many members have a lower number: the place of the one that has it, if there is one. */
size_t resident_place(const struct resident *r, int64_t ord);

/* Adds an item behind the last one: its number is higher than all others'. For a list: at the back. */
void resident_append(struct resident *r, const struct item_row *row);

/* Gives a member another value (copied), score and expiry. m may move: use the returned one. */
struct member *resident_update(struct resident *r, struct member *m, struct slice value, double score,
                               int64_t expire_at);

/* Takes a member out. The others keep their numbers; the pointers to those on the shorter side move. */
void resident_remove(struct resident *r, struct member *m);

/* Lists. i in [0, size]; the shorter side moves. */
void resident_insert(struct resident *r, size_t i, struct slice value);
void resident_set(struct resident *r, size_t i, struct slice value);
void resident_erase(struct resident *r, size_t i);

/* The members by (score, name). */
struct member *const *resident_sorted(struct resident *r);

/* How many members come before (score, name). */
size_t resident_rank(struct resident *r, double score, struct slice name);

#endif
