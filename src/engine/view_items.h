/* What a batch does to items, and how it ends: private to the view's files (view_items.c has it). */
#ifndef LARDER_ENGINE_VIEW_ITEMS_H
#define LARDER_ENGINE_VIEW_ITEMS_H

#include "engine/row.h"
#include "store/store.h"

struct view;

/* An item that changed: what was in its place in the cache (NULL: nothing), and the dirty one that is. */
struct item_change {
    struct item *was;
    struct item *now;
};

/* A range delete. What the batch made of items before it is in the running transaction. */
struct range_change {
    struct item_range what; /* names in the batch's arena */
    size_t at;              /* how many changes of items came before it */
};

/* The items that the batch changed (view_items.c), in the order in which they first did. */
struct item_changes {
    struct item_change *all;
    size_t n, cap;
    size_t flushed;           /* how many of them are in the running transaction */
    size_t bytes;             /* of the others, for bounding a batch */
    struct item_change *undo; /* every change of the running call */
    size_t nundo, undo_cap;
    struct range_change *ranges; /* what it removed at once, in the order in which it did */
    size_t nranges, ranges_cap, ranges_flushed;
    bool puts; /* of those that are not flushed some may be more than removals */
    bool any;  /* an item was changed, though it may have been undone: the transaction may have it */
};

/* Items (view_items.c): what the running batch made of one, or NULL when it did not touch it. */
const struct item *view_changed_item(const struct view *v, const struct item_ref *ref);

/* The changes of the running call are kept, or undone. */
void view_accept_items(struct view *v);
void view_undo_items(struct view *v, size_t to);  /* so many entries stay */
void view_undo_ranges(struct view *v, size_t to); /* so many of the batch's */

/* From this change on nothing is in the running transaction any more, nor was it before. */
void view_items_unflushed(struct view *v, size_t from);

/* What of them is not in the running transaction yet goes to a change set; all of it is there now. */
void view_gather_items(struct view *v, struct changes *out);
void view_items_flushed(struct view *v);

/* The batch is committed: the items that are in the cache say what it made of them. Or it is not, and they
   say what they said before. */
void view_items_committed(struct view *v);
void view_items_rolled_back(struct view *v);
void view_release_items(struct item_changes *t);

/* Whether all of it is in the running transaction. */
static inline bool items_are_flushed(const struct item_changes *t)
{
    return t->flushed == t->n && t->ranges_flushed == t->nranges;
}

#endif
