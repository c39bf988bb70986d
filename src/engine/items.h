/* Items that the running batch changed: the last state of each, with undo for the running command.

   Names and values are borrowed; the view sees to it that they live until the commit. */
#ifndef LARDER_ENGINE_ITEMS_H
#define LARDER_ENGINE_ITEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

enum item_state {
    ITEM_UNTOUCHED, /* as the tables have it: a command's change that was undone */
    ITEM_PUT,
    ITEM_GONE
};

struct item_entry {
    struct item_row row;
    enum item_state state;
    bool pending; /* not in the tables of the running transaction yet */
    bool fresh;   /* the tables have no row for it: when it goes again before it got there, nothing is left to
                     do */
    bool listed;  /* in the list of those that are or were pending */
};

struct item_undo {
    uint32_t index;
    struct item_entry before;
};

struct items {
    struct item_entry *entries;
    size_t len, cap;
    uint32_t *slots; /* open addressing: index + 1, 0 = free */
    size_t nslots;
    struct item_undo *undo;
    size_t nundo, undo_cap;
    uint32_t *listed; /* indexes of the entries that became pending since the last flush */
    size_t nlisted, listed_cap;
    size_t npending;
    size_t bytes; /* names and values of pending entries, for bounding a batch */
};

void items_release(struct items *t);

/* What this batch made of an item, or NULL when it did not touch it. */
const struct item_entry *items_find(const struct items *t, const struct item_ref *ref);

/* fresh: the caller knows that no such item exists. */
void items_put(struct items *t, const struct item_row *row, bool fresh);
void items_del(struct items *t, const struct item_ref *ref);

void items_accept(struct items *t); /* the command succeeded */
void items_undo(struct items *t);   /* it did not */
void items_clear(struct items *t);  /* the batch is over */

/* Calls fn for each pending entry; costs what is pending, not what the batch has changed so far. */
typedef void items_fn(void *arg, const struct item_entry *e);
void items_each_pending(const struct items *t, items_fn *fn, void *arg);

/* Calls fn for each item that the batch has made something of. */
void items_each_changed(const struct items *t, items_fn *fn, void *arg);

/* All pending entries are in the tables now. */
void items_flushed(struct items *t);

#endif
