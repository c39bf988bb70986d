#include "engine/cache.h"

#include "base/hash.h"
#include "base/mem.h"

#define SEGMENT_BITS 10
#define SEGMENT      (1u << SEGMENT_BITS)
#define EVICT_STEPS  65536

/* Buckets 0 .. low + split are in use, where low + 1 is a power of two: those below split have been divided
   already and are addressed with one bit more. They live in segments that never move. */
struct cache {
    struct row ***segments;
    size_t nsegments;
    size_t segments_cap;
    size_t low;
    size_t split;
    size_t hand;
    size_t budget;
    struct cache_stats stats;
};

static size_t bucket_count(const struct cache *c)
{
    return c->low + 1 + c->split;
}

static struct row **bucket_at(const struct cache *c, size_t i)
{
    return &c->segments[i >> SEGMENT_BITS][i & (SEGMENT - 1)];
}

static struct row **bucket_of(const struct cache *c, uint32_t hash)
{
    size_t i = hash & c->low;
    if (i < c->split)
        i = hash & (c->low * 2 + 1);
    return bucket_at(c, i);
}

static void add_segment(struct cache *c)
{
    if (c->nsegments == c->segments_cap) {
        c->segments_cap = c->segments_cap ? c->segments_cap * 2 : 8;
        c->segments = mem_realloc(c->segments, c->segments_cap * sizeof *c->segments);
    }
    struct row **segment = mem_zalloc(SEGMENT * sizeof *segment);
    c->stats.bytes += mem_size(segment);
    c->segments[c->nsegments++] = segment;
}

/* Divides one bucket in two. */
static void grow(struct cache *c)
{
    size_t fresh = bucket_count(c);
    if (fresh >> SEGMENT_BITS == c->nsegments)
        add_segment(c);
    struct row **from = bucket_at(c, c->split);
    struct row **to = bucket_at(c, fresh);
    size_t bit = c->low + 1;
    while (*from) {
        struct row *r = *from;
        if (r->hash & bit) {
            *from = r->next;
            r->next = *to;
            *to = r;
        } else {
            from = &r->next;
        }
    }
    if (++c->split > c->low) {
        c->low = c->low * 2 + 1;
        c->split = 0;
    }
}

static void start(struct cache *c)
{
    add_segment(c);
    c->low = SEGMENT - 1;
    c->split = 0;
    c->hand = 0;
}

struct cache *cache_new(size_t budget)
{
    struct cache *c = mem_zalloc(sizeof *c);
    c->budget = budget;
    start(c);
    return c;
}

static void free_segments(struct cache *c)
{
    for (size_t i = 0; i < c->nsegments; i++) {
        c->stats.bytes -= mem_size(c->segments[i]);
        mem_free(c->segments[i]);
    }
    c->nsegments = 0;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < bucket_count(c); i++) {
        for (struct row *r = *bucket_at(c, i), *next; r; r = next) {
            next = r->next;
            row_free(r);
        }
    }
    free_segments(c);
    mem_free(c->segments);
    mem_free(c);
}

void cache_set_budget(struct cache *c, size_t budget)
{
    c->budget = budget;
}

size_t cache_budget(const struct cache *c)
{
    return c->budget;
}

uint32_t cache_hash(uint32_t db, struct slice key)
{
    return (uint32_t)hash_bytes(key, db);
}

struct row *cache_peek(const struct cache *c, uint32_t db, struct slice key, uint32_t hash)
{
    struct row *r = *bucket_of(c, hash);
    while (r && !(r->hash == hash && r->db == db && slice_eq(row_key(r), key)))
        r = r->next;
    return r;
}

struct row *cache_find(struct cache *c, uint32_t db, struct slice key, uint32_t hash)
{
    struct row *r = cache_peek(c, db, key, hash);
    if (r) {
        if (r->heat < ROW_HEAT_MAX)
            r->heat++;
        c->stats.hits++;
    } else {
        c->stats.misses++;
    }
    return r;
}

void cache_fetch_bucket(const struct cache *c, uint32_t hash)
{
    __builtin_prefetch(bucket_of(c, hash));
}

/* The header, the key and a short value. */
static void fetch(const struct row *r)
{
    __builtin_prefetch(r);
    __builtin_prefetch((const char *)r + 64);
    __builtin_prefetch((const char *)r + 128);
}

void cache_fetch_first(const struct cache *c, uint32_t hash)
{
    const struct row *r = *bucket_of(c, hash);
    if (r)
        fetch(r);
}

void cache_fetch_row(const struct cache *c, uint32_t hash)
{
    const struct row *r = *bucket_of(c, hash);
    if (r && r->hash != hash && r->next)
        fetch(r->next);
}

void cache_add(struct cache *c, struct row *r)
{
    struct row **bucket = bucket_of(c, r->hash);
    r->next = *bucket;
    *bucket = r;
    c->stats.bytes += mem_size(r);
    if (++c->stats.rows > bucket_count(c))
        grow(c);
}

static struct row **link_to(struct cache *c, const struct row *r)
{
    struct row **link = bucket_of(c, r->hash);
    while (*link != r)
        link = &(*link)->next;
    return link;
}

void cache_replace(struct cache *c, struct row *old, struct row *fresh)
{
    struct row **link = link_to(c, old);
    fresh->next = old->next;
    *link = fresh;
    if (row_footprint(fresh) == row_footprint(old)) /* what asking the allocator would only confirm */
        return;
    c->stats.bytes += mem_size(fresh);
    c->stats.bytes -= mem_size(old);
}

void cache_remove(struct cache *c, struct row *r)
{
    *link_to(c, r) = r->next;
    c->stats.bytes -= mem_size(r);
    c->stats.rows--;
}

void cache_evict(struct cache *c, size_t others)
{
    for (int steps = 0; c->stats.bytes + others > c->budget && c->stats.rows > 0 && steps < EVICT_STEPS;
         steps++) {
        if (++c->hand >= bucket_count(c))
            c->hand = 0;
        struct row **link = bucket_at(c, c->hand);
        while (*link) {
            struct row *r = *link;
            if (r->dirty) {
                link = &r->next;
            } else if (r->heat) {
                r->heat--;
                link = &r->next;
            } else {
                *link = r->next;
                c->stats.bytes -= mem_size(r);
                c->stats.rows--;
                c->stats.evicted++;
                row_free(r);
            }
        }
    }
}

void cache_drop(struct cache *c)
{
    struct row *kept = NULL;
    for (size_t i = 0; i < bucket_count(c); i++) {
        for (struct row *r = *bucket_at(c, i), *next; r; r = next) {
            next = r->next;
            c->stats.bytes -= mem_size(r);
            c->stats.rows--;
            if (r->dirty) {
                r->next = kept;
                kept = r;
            } else {
                c->stats.dropped++;
                row_free(r);
            }
        }
    }
    free_segments(c);
    start(c);
    while (kept) {
        struct row *next = kept->next;
        cache_add(c, kept);
        kept = next;
    }
}

const struct cache_stats *cache_get_stats(const struct cache *c)
{
    return &c->stats;
}

void cache_reset_stats(struct cache *c)
{
    c->stats.hits = c->stats.misses = c->stats.evicted = c->stats.dropped = 0;
}
