/* The rows in memory: of keys, found by (db, key), and of items, found by what names them. Clean ones may be
   evicted, dirty ones, which the running batch made, may not.

   One map (base/map.h) that grows a bucket at a time. When the clean rows take more than the budget, a hand
   goes round the buckets: a row that was hit since the last visit cools down by one, a cold one is dropped.
   New rows start cold, so a scan cannot push out what is in use.

   The items in here are those of collections that are too large to be in memory as a whole: those that were
   asked for by name, so that a field that is in use is read and written without the tables, however many
   others its hash has; and, dirty, those of any collection that the running batch has changed. Ids are never
   used twice, so what is left of a collection that is gone is only cold memory. */
#ifndef LARDER_ENGINE_CACHE_H
#define LARDER_ENGINE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/row.h"

struct cache;

struct cache_stats {
    uint64_t hits, misses, evicted, dropped;
    size_t rows;
    size_t bytes; /* rows and table, as the allocator counts them */
};

struct cache *cache_new(size_t budget);
void cache_free(struct cache *c);
void cache_set_budget(struct cache *c, size_t budget);
size_t cache_budget(const struct cache *c);

uint32_t cache_hash(uint32_t db, struct slice key);

/* ---- keys ---- */

/* The row under a key or NULL. Counts a hit or a miss. */
struct row *cache_find(struct cache *c, uint32_t db, struct slice key, uint32_t hash);

/* The same; it is no use of the row, and nothing is counted. */
struct row *cache_peek(const struct cache *c, uint32_t db, struct slice key, uint32_t hash);

/* A row that cache_peek has found is used after all. */
void cache_hit(struct cache *c, struct row *r);

/* How often a row has left its place: while that is the same number, what cache_peek found is there. */
uint64_t cache_changes(const struct cache *c);

/* Hints for a key that will be looked up soon, so that memory comes in while other work is done: first its
   bucket, when that is there the first row in it, when that is there the row itself if it is another. */
void cache_fetch_bucket(const struct cache *c, uint32_t hash);
void cache_fetch_first(const struct cache *c, uint32_t hash);
void cache_fetch_row(const struct cache *c, uint32_t hash);

/* Adds a row; there is none under its key yet. The cache owns it from here on. */
void cache_add(struct cache *c, struct row *r);

/* Puts fresh in the place of old, which the caller owns from here on. */
void cache_replace(struct cache *c, struct row *old, struct row *fresh);

/* Takes a row out; the caller owns it. */
void cache_remove(struct cache *c, struct row *r);

/* ---- items ---- */

/* Names and values that are longer are left to the tables. */
#define CACHE_ITEM_NAME  512
#define CACHE_ITEM_VALUE 4096

/* The item, clean or dirty, or NULL; its hash is item_hash. Counts nothing. */
struct item *cache_item(struct cache *c, const struct item_ref *ref, uint32_t hash);

/* A clean item was looked for: counts a hit, or a miss when i is NULL. */
void cache_count_item(struct cache *c, struct item *i);

/* As for keys. The cache owns clean items only, and only those count as rows and bytes. */
void cache_add_item(struct cache *c, struct item *i);
void cache_replace_item(struct cache *c, struct item *old, struct item *fresh);
void cache_remove_item(struct cache *c, struct item *i);

/* Every clean item inside a range by score is here no more. Who is asked for finds that out, so that it costs
   the same however many there are; others of that collection may be found to be gone with them. */
void cache_forget_range(struct cache *c, const struct item_range *r);

/* ---- all ---- */

/* Drops cold clean rows until they and `others` bytes fit the budget; at most a bounded number of steps at a
   time. Called between commands, never while a handler holds a row. */
void cache_evict(struct cache *c, size_t others);

/* Drops every clean row. */
void cache_drop(struct cache *c);

const struct cache_stats *cache_get_stats(const struct cache *c);
void cache_reset_stats(struct cache *c);

#endif
