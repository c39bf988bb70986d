/* Rows that were changed and are not in the tables yet: the last state of each, found by key, walked in any
   order that a scan asks for, and handed out sorted, slice by slice, when their time to be applied has come.

   There are at most two of them at a time: an active one that takes every change, and a frozen one that is
   being applied. What a reader sees is the active one over the frozen one over the tables; merge.h does that.

   Each change makes a new state of a row in the table's own memory, packed (a string of database 0 takes its
   bytes, some 30 more, and a bucket of the map), and no state is ever changed, but that rows go with a range.
   Rows handed out are copies whose slices lead into a state: they are valid until the table is changed next,
   or something of it is settled. The state before it is kept until the change is settled; then its memory is
   used again, so that a row which is written over and over takes what its last few states take. A frozen
   table can be read by two threads without a lock: the one that owns it (which may still build orders for
   scans, and alone reads those, and may settle changes, which touches states that are no row's any more), and
   the one that applies it (mem_apply, which only reads the states of rows).

   Orders (a hash's fields by ord, a sorted set's members by score, keys by seq ...) are built when a scan
   first asks for one and kept up to date from then on; rows that are never scanned pay nothing. Nor do those
   of a list of which scans see a small part, which look at one place after the other. */
#ifndef LARDER_MEMTABLE_MEMTABLE_H
#define LARDER_MEMTABLE_MEMTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct memtable;

/* likely_rows: how many it will probably hold, so that the table does not have to grow while it is busy. */
struct memtable *memtable_new(size_t likely_rows);
void memtable_free(struct memtable *m);

/* The same as freeing m and making a new one, but with m's memory: giving much memory back to the system and
   getting it again, page by page, takes longer than everything else. What a round did not need is given back
   little by little. m may be NULL. */
struct memtable *memtable_renew(struct memtable *m, size_t likely_rows);

/* Gives all memory of an earlier round back that has not been needed. */
void memtable_trim(struct memtable *m);

struct memtable_stats {
    size_t rows;  /* that have a state here, gone ones included */
    bool empty;   /* no row, no range, no trash, no database, no next id */
    size_t bytes; /* the memory they take */
    size_t spare; /* and memory of an earlier round that has not been needed yet */
    size_t peak;  /* most rows it has had: what the next one will probably hold */
};
struct memtable_stats memtable_stats(const struct memtable *m);

/* The state of a key's row. gone: the tables must lose it. fresh: the tables do not have it (and if it is
   gone as well there is nothing to do there). */
struct mem_key {
    struct key_row row; /* type ROW_NONE when gone; seq and ticket are always set */
    bool fresh;
};

struct mem_item {
    struct item_row row; /* only the ref when gone */
    int64_t ticket;
    bool gone;
    bool fresh;
};

/* What is known of a row; false: nothing. */
bool memtable_key(const struct memtable *m, uint32_t db, struct slice key, struct mem_key *ret);
bool memtable_item(const struct memtable *m, const struct item_ref *ref, struct mem_item *ret);
bool memtable_has_key(const struct memtable *m, uint32_t db, struct slice key);
bool memtable_has_item(const struct memtable *m, const struct item_ref *ref);

/* The range in which a row of the frozen table, or of the tables, is gone: as far as those that touch each
   other reach together. NULL: no range has it. Valid as long as rows are. */
const struct item_range *memtable_covers(const struct memtable *m, const struct item_row *row);

bool memtable_has_ranges(const struct memtable *m);

/* Whether any item of this table and id is here, or a range of them: when not, its scans need no merging. */
bool memtable_has_items(const struct memtable *m, enum item_table table, int64_t id);
bool memtable_has_keys(const struct memtable *m);

/* How many there are, gone ones included. */
size_t memtable_count_items(const struct memtable *m, enum item_table table, int64_t id);
size_t memtable_count_keys(const struct memtable *m);

/* ---- changing ---- */

/* Copies what it is given. fresh is believed only when the table knows nothing of the row yet; else what it
   knows decides. The ticket never decreases from one change to the next. */
void memtable_put_key(struct memtable *m, const struct key_row *row, bool fresh, int64_t ticket);
void memtable_put_item(struct memtable *m, const struct item_row *row, bool fresh, int64_t ticket);
void memtable_del_item(struct memtable *m, const struct item_ref *ref, int64_t ticket);

/* Removes what all that is older than this table has inside the range, and what this table has by now. */
void memtable_put_range(struct memtable *m, const struct item_range *r);

void memtable_add_trash(struct memtable *m, const struct trash_row *t);
void memtable_put_db(struct memtable *m, const struct db_row *d);
void memtable_put_next_id(struct memtable *m, int64_t next_id);

/* The row of a logical database, or NULL, valid as long as rows are; the next id, or 0. */
const struct db_row *memtable_db(const struct memtable *m, uint32_t db);
int64_t memtable_next_id(const struct memtable *m);

/* For who changes many rows: asks the processor for the memory in which a row will be looked for, and some
   rows later, by the number that it returns, for what is found there. Changes nothing. */
uint32_t memtable_near_key(const struct memtable *m, uint32_t db, struct slice key);
uint32_t memtable_near_item(const struct memtable *m, const struct item_ref *ref);
void memtable_nearer(const struct memtable *m, uint32_t number);

/* ---- undoing, and settling ---- */

/* A place in the sequence of changes. Marks ascend. */
typedef uint64_t mem_mark;
mem_mark memtable_mark(const struct memtable *m);

/* Takes back every change since the mark (which has not been settled). May empty the table, see
   memtable_leave. */
void memtable_undo(struct memtable *m, mem_mark since);

/* Changes before the mark will not be undone: what was kept for that is given up. */
void memtable_settle(struct memtable *m, mem_mark before);

/* The changes between two marks are in the tables now: rows that have not been changed since leave (with
   trash, databases and next_id of that stretch), and everything before `to` is settled. The caller sees to
   it that nothing before `from` is still here. When nothing is left the memory is given back but for a block
   for the next round: rows handed out before are no longer valid. */
void memtable_leave(struct memtable *m, mem_mark from, mem_mark to);

/* ---- walking in order ---- */

/* A walk over the rows that are put (not gone) and within a scan's bounds, in its order. `skip`, `limit` and
   `now` of the scan are the caller's business; so are rows of other databases in a walk by seq. Nothing may
   be changed during a walk. */
struct order;
struct mem_walk {
    const struct memtable *m;
    const struct order *in; /* NULL: at its end, or from place to place */
    size_t leaf, i;         /* behind what a walk backward has yet to show */
    int64_t place;          /* the next one to be looked at ... */
    uint64_t places;        /* ... of so many */
    const void *query;      /* as given to memtable_walk_*: must outlive the walk */
    int order;
    bool backward;
};

void memtable_walk_keys(struct memtable *m, const struct key_scan *q, struct mem_walk *w);
bool mem_walk_key(struct mem_walk *w, struct mem_key *ret); /* the next one; false: there is none */
void memtable_walk_items(struct memtable *m, const struct item_scan *q, struct mem_walk *w);
bool mem_walk_item(struct mem_walk *w, struct mem_item *ret);

/* The ids of tables (ROW_TABLE) of which a row is here that has an expiry at or before now. */
typedef void mem_id_fn(void *arg, int64_t id);
void memtable_due_rows(struct memtable *m, int64_t now, mem_id_fn *fn, void *arg);

/* ---- applying a frozen table ---- */

/* Hands out everything a table holds, in the order of the tables' trees: keys that are in the tables by seq,
   fresh ones by (db, key), then items by table, id and name, position or, of a hash, number. Runs on the
   applier's thread. Beside the table it takes MEM_APPLY_ROW bytes a row, and what a slice takes. */
#define MEM_APPLY_ROW 16
struct mem_apply;
struct mem_apply *mem_apply_new(const struct memtable *m);
void mem_apply_free(struct mem_apply *a);

/* Looks at up to `rows` rows, and sorts when it has seen all; true while there is more to do. */
bool mem_apply_sort(struct mem_apply *a, size_t rows);

/* First of all the ranges, all at once, which must go into the tables before and in one transaction with
   everything else. Then the next up to `rows` rows; when nothing is left but trash, databases and next_id,
   those (last, together). False when all has been handed out before. The slices are valid until the next
   call. Rows of keys that are gone have type ROW_NONE; those that are gone and fresh are left out.
   *ret_next_id is 0 but in the last slice. */
bool mem_apply_next(struct mem_apply *a, size_t rows, struct changes *ret, int64_t *ret_next_id);

/* How many rows and ranges are still to be handed out. */
size_t mem_apply_left(const struct mem_apply *a);

/* Begins again with the slice that was handed out last: it was not committed. */
void mem_apply_again(struct mem_apply *a);

#endif
