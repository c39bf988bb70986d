/* clang-format off */
/* Collections as handlers see them: the items of one key. This file decides where they are:

     small   Up to COLL_RESIDENT_LOAD items. All are in memory once the collection is used (resident.h), and
             stay there while it grows up to COLL_RESIDENT_MAX. Every operation is a memory operation.
     large   More items. They are in the tables. Each operation reads and writes the rows it needs; items that
             were found by name stay in the cache one by one (cache.h). Order, ranges and random access go
             through the tables' indexes, after this batch's changes have been brought into the transaction.

   A handler opens a collection, changes items, and saves: the key row then gets its new size (or goes, when
   nothing is left). An item's cost never depends on how many others there are, but for what the operation
   itself walks over.

   Items of hashes, sets and sorted sets are numbered (`ord`): a new one gets the number `numbers` of the key's
   row, which rises by one. One that goes leaves a hole: no row is touched but its own. A random item is a
   look-up of random numbers until one lives (coll_sample.c). A scan goes from the highest number down, with
   no state but the number: it sees every item that stays, whatever else comes and goes, since an item only
   ever gets a lower number. That happens in the background, when fewer than a quarter of the numbers are
   taken (coll_numbers.c).

   A hash's field that has expired is not there, and does not count: see coll_expire.c.

   Names and values given to a write must stay until the batch is committed: argv does; else view_arena().
   Items handed out are valid until the next write to the collection, at most until the handler returns.

   Do not open a key a second time while an unsaved handle to it exists. */
/* clang-format on */
#ifndef LARDER_ENGINE_COLL_H
#define LARDER_ENGINE_COLL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"
#include "engine/view.h"

#define COLL_RESIDENT_LOAD 1024 /* read into memory up to this many items ... */
#define COLL_RESIDENT_MAX  4096 /* ... and kept there while it grows up to this many */

struct coll;

struct coll_item {
    struct slice name;  /* field or member */
    struct slice value; /* hash, list */
    double score;       /* sorted set */
    int64_t expire_at;  /* hash field */
    int64_t ord;
};

/* ---- opening and saving ---- */

/* The collection under a key, or NULL when there is none. *ret_wrong: the key holds another type, and *ret is
   NULL. */
enum status coll_open(struct view *v, uint32_t db, struct slice key, enum row_type type, struct coll **ret,
                      bool *ret_wrong) MUST_CHECK;

/* The same, but an absent key gives an empty collection: the key does not exist before coll_save finds items
   in it. */
enum status coll_make(struct view *v, uint32_t db, struct slice key, enum row_type type, struct coll **ret,
                      bool *ret_wrong) MUST_CHECK;

/* A new empty collection that takes the place of whatever is under key when it is saved (the STORE commands).
   Saving it empty deletes the key. */
enum status coll_replace(struct view *v, uint32_t db, struct slice key, enum row_type type,
                         struct coll **ret) MUST_CHECK;

/* Writes the key row if anything changed: a new size and version, or the deletion of an empty collection.
   The expiry stays. */
enum status coll_save(struct coll *c) MUST_CHECK;

int64_t coll_size(const struct coll *c);

/* What is known of how Redis would keep it, also when it is copied; and whether an item fits the compact
   form. */
enum row_form coll_form(const struct coll *c);
void coll_set_form(struct coll *c, enum row_form form);
bool coll_item_is_small(const struct coll *c, const struct coll_item *item);

/* Marks a change that touches no item, so that coll_save gives the key a new version. */
void coll_touch(struct coll *c);

/* ---- hashes, sets, sorted sets: by name ---- */

enum status coll_find(struct coll *c, struct slice name, bool *ret_found, struct coll_item *ret) MUST_CHECK;

/* Which of several names a set or a sorted set has: ret[i] for names[i], none of which is there twice. */
enum status coll_has(struct coll *c, const struct slice *names, size_t n, bool *ret) MUST_CHECK;

/* Adds or replaces. *ret_added may be NULL. */
enum status coll_put(struct coll *c, const struct coll_item *item, bool *ret_added) MUST_CHECK;
enum status coll_remove(struct coll *c, struct slice name, bool *ret_removed) MUST_CHECK;

/* Takes an item out for a caller that knows that it is there, and its value or score; its ord may be -1. */
enum status coll_remove_known(struct coll *c, const struct coll_item *item) MUST_CHECK;

/* Adds or replaces for a caller that has looked already: old is what coll_find gave, NULL when there is
   none. */
enum status coll_put_known(struct coll *c, const struct coll_item *item,
                           const struct coll_item *old) MUST_CHECK;

/* Every item, in no particular order; fn must not write. ST_STOP from fn ends the walk, which returns ST_OK
   then; anything else but ST_OK ends it and is returned. */
typedef enum status coll_fn(void *arg, const struct coll_item *item);
enum status coll_each(struct coll *c, coll_fn *fn, void *arg) MUST_CHECK;

/* The same in pieces, of a set or a sorted set, for a caller that has to use the view in between: up to limit
   items behind the one named `after` (p is NULL: from the first). Nothing may be written to the collection
   before the last piece. */
enum status coll_piece(struct coll *c, struct slice after, uint32_t limit, coll_fn *fn, void *arg) MUST_CHECK;

/* Any item, each as likely as the others; there is one. */
enum status coll_random(struct coll *c, struct coll_item *ret) MUST_CHECK;

/* n different items, 0 <= n <= size, every choice as likely as the others; fn must not write. */
enum status coll_sample(struct coll *c, int64_t n, coll_fn *fn, void *arg) MUST_CHECK;

/* Takes n random items out, 0 <= n <= size, as coll_sample chooses them; fn sees each of them before. Writes
   the smaller of what stays and what goes. Not for sorted sets. */
enum status coll_take_random(struct coll *c, int64_t n, coll_fn *fn, void *arg) MUST_CHECK;

/* One page of HSCAN, SSCAN, ZSCAN: *cursor 0 starts; it is set for the next page, 0 at the end. A page reads
   count rows (all of a small collection), expired fields among them; holes cost nothing. */
enum status coll_page(struct coll *c, int64_t *cursor, int64_t count, coll_fn *fn, void *arg) MUST_CHECK;

/* ---- lists: by place, 0 <= i < size ---- */

enum status coll_index(struct coll *c, int64_t i, struct slice *ret) MUST_CHECK;
enum status coll_push(struct coll *c, bool front, struct slice value) MUST_CHECK;
enum status coll_pop(struct coll *c, bool front,
                     struct slice *ret) MUST_CHECK; /* size > 0; ret lives until the commit */
enum status coll_set(struct coll *c, int64_t i, struct slice value) MUST_CHECK;

/* Puts a value before place i (i = size: at the end), or takes places [i, i + n) out. The shorter side
   moves. */
enum status coll_insert(struct coll *c, int64_t i, struct slice value) MUST_CHECK;
enum status coll_erase(struct coll *c, int64_t i, int64_t n) MUST_CHECK;

/* Takes single places out, given from the last to the first; what is between them moves together. */
enum status coll_erase_places(struct coll *c, const int64_t *places, size_t n) MUST_CHECK;

/* Places [from, to], in order or (reverse) from `to` down; fn must not write. */
enum status coll_range(struct coll *c, int64_t from, int64_t to, bool reverse, coll_fn *fn,
                       void *arg) MUST_CHECK;

/* Keeps only places [from, to]. Of a large list the rest goes at once, however much it is. */
enum status coll_trim(struct coll *c, int64_t from, int64_t to) MUST_CHECK;

/* ---- sorted sets: by score, then name ---- */

/* A bound in the order: by score, with the name as tie-break when has_name. */
struct coll_bound {
    double score;
    bool has_name; /* false: before (or, as an upper bound, behind) every member with this score */
    struct slice name;
    bool exclusive;
};

/* How many members come before the bound (a lower bound: those that do not satisfy it). In O(log n)-like
   time. */
enum status coll_rank_of(struct coll *c, const struct coll_bound *b, bool upper, int64_t *ret) MUST_CHECK;

/* The same for a caller that needs no more than `depth` members before the bound, or (reverse) behind it: the
   rank may be told as if there were no more. */
enum status coll_rank_within(struct coll *c, const struct coll_bound *b, bool upper, bool reverse,
                             int64_t depth, int64_t *ret) MUST_CHECK;

/* Members with rank in [from, to], 0 <= from <= to < size, ascending or (reverse) from rank `to` down. Their
   ord is not told. */
enum status coll_by_rank(struct coll *c, int64_t from, int64_t to, bool reverse, coll_fn *fn,
                         void *arg) MUST_CHECK;

/* Takes members with rank in [from, to] out: of a large set at once, however many they are. */
enum status coll_remove_ranks(struct coll *c, int64_t from, int64_t to) MUST_CHECK;

/* How many members memory may read ahead at each end of a sorted set in the tables; for tests. */
void coll_set_ends(struct view *v, uint32_t members);

/* ---- ahead of a command ---- */

/* What view_prefetch is for keys, for the item that a command names, if its key has a large collection. A few
   commands later the item itself is fetched. Only hints: e->key is the command's first key, and the name is
   guessed from where most commands have it. */
void coll_prefetch(const struct view *v, struct prefetch *e, const struct slice *argv, int argc);
void coll_prefetch_next(const struct view *v, const struct prefetch *e);

/* Before a command that will ask for items of these names, if the key has a large collection: those that
   memory lacks are read at once, in the order of their names. */
enum status coll_read_ahead(struct view *v, uint32_t db, struct slice key, const struct slice *names,
                            size_t n) MUST_CHECK;

#endif
