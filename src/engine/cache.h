/* The rows in memory, found by (db, key): clean ones that may be evicted, dirty ones that may not.

   A map (base/map.h) that grows one bucket at a time. When the clean rows take more than the budget, a hand
   goes round the buckets: a row that was hit since the last visit cools down by one, a cold one is dropped.
   New rows start cold, so a scan cannot push out what is in use. */
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

/* The row under a key or NULL. Counts a hit or a miss. */
struct row *cache_find(struct cache *c, uint32_t db, struct slice key, uint32_t hash);

/* The same, unnoticed. */
struct row *cache_peek(const struct cache *c, uint32_t db, struct slice key, uint32_t hash);

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

/* Drops cold clean rows until they and `others` bytes fit the budget; at most a bounded number of steps at a
   time. Called between commands, never while a handler holds a row. */
void cache_evict(struct cache *c, size_t others);

/* Drops every clean row. */
void cache_drop(struct cache *c);

const struct cache_stats *cache_get_stats(const struct cache *c);
void cache_reset_stats(struct cache *c);

#endif
