/* The members of a sorted set that are next to one of its ends, in their order, as far as they are known.

   A large set lives in the tables, and what is popped from it stays there until the removal is applied. A pop
   that asks the tables for the first member walks over all of those. A window has what a scan has read ahead,
   and remembers how far it came: the mark, a place in the order.

   What always holds: the items of a window are exactly the members of the set from its end up to the mark,
   with it. So no member lives there but them, and when there are none of them the mark is a low-water mark: a
   scan that begins behind it misses nothing. It holds because

     a member that comes at or before the mark is put in (window_put), one behind it is not
     a member that goes is taken out, if it is in (window_remove); the mark stays
     only what a scan has found next behind the mark is added there, and raises it (window_add, window_raise)
     too many items: the farthest go, and the mark goes back to the last one that stays (window_cut)

   A window is a part of what memory knows of a set (memo.h): it sees each change when the set does, and is
   dropped whenever that may be wrong: when a change is undone, a commit fails, somebody else has written, a
   batch runs again. It never outlives the id of the set's items, so that a rename, a flush or a swap of
   databases is nothing to it. */
#ifndef LARDER_ENGINE_ORDER_WINDOW_H
#define LARDER_ENGINE_ORDER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slice.h"

struct window_item {
    struct map_link link; /* by name; no tag */
    double score;
    uint32_t nname;
    char name[];
};

static inline struct slice window_name(const struct window_item *i)
{
    return (struct slice){i->name, i->nname};
}

/* One that is zero but for `reverse` knows nothing: its mark is before everything. */
struct window {
    bool reverse;             /* it begins at the last member */
    bool whole;               /* the mark is behind everything */
    struct window_item *mark; /* NULL: before everything, unless whole */
    struct window_item **at;  /* n items from head on */
    size_t head, n, cap;
    struct map by_name;
    size_t bytes;   /* of what the others point to, as the allocator counts */
    uint32_t ahead; /* members that the last scan was asked for */
};

void window_release(struct window *w);

/* All that it points to. */
static inline size_t window_bytes(const struct window *w)
{
    return w->bytes + w->by_name.bytes;
}

/* From the end on, 0 <= i < n. */
static inline const struct window_item *window_at(const struct window *w, size_t i)
{
    return w->at[w->head + i];
}

/* Whether a place is at or before the mark. */
bool window_covers(const struct window *w, double score, struct slice name);

/* How many items come before a place, counted from the window's end. */
size_t window_before(const struct window *w, double score, struct slice name);

/* By name, or NULL. */
const struct window_item *window_find(const struct window *w, struct slice name);

/* A member has come, or is about to go. */
void window_put(struct window *w, double score, struct slice name);
void window_remove(struct window *w, double score, struct slice name);

/* What a scan from the mark on has found next; when it has found all that it will, the mark is raised to the
   last of them, or (whole) behind everything. */
void window_add(struct window *w, double score, struct slice name);
void window_raise(struct window *w, bool whole);

/* Keeps the n items next to the end. */
void window_cut(struct window *w, size_t n);

#endif
