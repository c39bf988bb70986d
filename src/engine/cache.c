/* The index of rows in memory, see cache.h. */
#include "engine/cache.h"

#include "base/hash.h"
#include "base/mem.h"
#include "store/order.h"

#define EVICT_STEPS 65536
#define MOST_RANGES 256 /* that were forgotten, before the items in them are looked for */

struct cache {
    struct map rows;
    size_t hand;
    size_t budget;
    uint64_t changes; /* see cache_changes */
    struct forgotten {
        struct item_range what;
        char *names;
    } ranges[MOST_RANGES]; /* the last ones that were forgotten ... */
    size_t nranges;
    uint32_t stamp; /* ... and how many have been */
    struct cache_stats stats;
};

struct cache *cache_new(size_t budget)
{
    struct cache *c = mem_zalloc(sizeof *c);
    c->budget = budget;
    return c;
}

static struct row *row_of(struct map_link *l)
{
    return (struct row *)l;
}

static struct item *item_of(struct map_link *l)
{
    return (struct item *)l;
}

static struct row_head *head_of(struct map_link *l)
{
    return (struct row_head *)l;
}

static void free_row(void *arg, struct map_link *l)
{
    (void)arg;
    if (l->tag < ITEM_TAGS)
        row_free(row_of(l));
    else if (!item_of(l)->dirty)
        item_free(item_of(l));
}

static void release_ranges(struct cache *c)
{
    for (size_t i = 0; i < c->nranges; i++)
        mem_free(c->ranges[i].names);
    c->nranges = 0;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    release_ranges(c);
    map_each(&c->rows, free_row, NULL);
    map_release(&c->rows);
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
    struct map_link *l = map_first(&c->rows, hash);
    while (l && !(l->hash == hash && l->tag == db && slice_eq(row_key(row_of(l)), key)))
        l = l->next;
    return row_of(l);
}

void cache_hit(struct cache *c, struct row *r)
{
    if (r->heat < ROW_HEAT_MAX)
        r->heat++;
    c->stats.hits++;
}

struct row *cache_find(struct cache *c, uint32_t db, struct slice key, uint32_t hash)
{
    struct row *r = cache_peek(c, db, key, hash);
    if (r)
        cache_hit(c, r);
    else
        c->stats.misses++;
    return r;
}

uint64_t cache_changes(const struct cache *c)
{
    return c->changes;
}

void cache_fetch_bucket(const struct cache *c, uint32_t hash)
{
    if (c->rows.count)
        __builtin_prefetch(map_chain(&c->rows, hash));
}

/* The header, the key and a short value. */
static void fetch(const struct map_link *l)
{
    __builtin_prefetch(l);
    __builtin_prefetch((const char *)l + 64);
    __builtin_prefetch((const char *)l + 128);
}

void cache_fetch_first(const struct cache *c, uint32_t hash)
{
    const struct map_link *l = map_first(&c->rows, hash);
    if (l)
        fetch(l);
}

void cache_fetch_row(const struct cache *c, uint32_t hash)
{
    const struct map_link *l = map_first(&c->rows, hash);
    if (l && l->hash != hash && l->next)
        fetch(l->next);
}

void cache_add(struct cache *c, struct row *r)
{
    size_t before = c->rows.bytes;
    map_add(&c->rows, &r->link);
    c->stats.bytes += c->rows.bytes - before + mem_size(r);
    c->stats.rows++;
}

void cache_replace(struct cache *c, struct row *old, struct row *fresh)
{
    c->changes++;
    map_replace(&c->rows, &old->link, &fresh->link);
    if (row_footprint(fresh) == row_footprint(old)) /* what asking the allocator would only confirm */
        return;
    c->stats.bytes += mem_size(fresh);
    c->stats.bytes -= mem_size(old);
}

void cache_remove(struct cache *c, struct row *r)
{
    size_t before = c->rows.bytes;
    c->changes++;
    map_remove(&c->rows, &r->link);
    c->stats.bytes -= before - c->rows.bytes + mem_size(r);
    c->stats.rows--;
}

/* ---- items ---- */

/* Whether a range was forgotten since a clean item came, and has it. Those that came before the first range
   that is kept were looked at when that one was. */
static bool is_forgotten(struct cache *c, struct item *i)
{
    bool gone = false;
    if (i->dirty || i->change == c->stamp)
        return false;
    if (!i->absent && i->link.tag == ITEM_TAG(ITEM_ZSET)) {
        struct item_row row = item_to_row(i);
        size_t newer = c->stamp - i->change; /* the last so many came behind it */
        for (size_t k = newer < c->nranges ? c->nranges - newer : 0; k < c->nranges && !gone; k++)
            gone = item_in_range(&c->ranges[k].what, &row);
    }
    i->change = c->stamp;
    return gone;
}

struct item *cache_item(struct cache *c, const struct item_ref *ref, uint32_t hash)
{
    struct map_link *l = map_first(&c->rows, hash);
    while (l && !(l->hash == hash && l->tag == ITEM_TAG(ref->table) && item_is(item_of(l), ref)))
        l = l->next;
    if (l && is_forgotten(c, item_of(l))) {
        cache_remove_item(c, item_of(l));
        item_free(item_of(l));
        return NULL;
    }
    return item_of(l);
}

void cache_count_item(struct cache *c, struct item *i)
{
    c->stats.hits += i != NULL;
    c->stats.misses += !i;
    if (i && i->heat < ROW_HEAT_MAX)
        i->heat++;
}

static void count_item(struct cache *c, struct item *i)
{
    if (i->dirty)
        return;
    i->change = c->stamp;
    c->stats.bytes += mem_size(i);
    c->stats.rows++;
}

static void discount_item(struct cache *c, struct item *i)
{
    if (i->dirty)
        return;
    c->stats.bytes -= mem_size(i);
    c->stats.rows--;
}

void cache_add_item(struct cache *c, struct item *i)
{
    size_t before = c->rows.bytes;
    map_add(&c->rows, &i->link);
    c->stats.bytes += c->rows.bytes - before;
    count_item(c, i);
}

void cache_replace_item(struct cache *c, struct item *old, struct item *fresh)
{
    map_replace(&c->rows, &old->link, &fresh->link);
    discount_item(c, old);
    count_item(c, fresh);
}

void cache_remove_item(struct cache *c, struct item *i)
{
    size_t before = c->rows.bytes;
    map_remove(&c->rows, &i->link);
    c->stats.bytes -= before - c->rows.bytes;
    discount_item(c, i);
}

/* ---- all ---- */

/* Frees the clean row at a place in a chain. */
static void drop(struct cache *c, struct map_link **at)
{
    struct map_link *l = *at;
    c->changes++;
    map_cut(&c->rows, at);
    c->stats.bytes -= mem_size(l);
    c->stats.rows--;
    free_row(NULL, l);
}

/* Removes what was forgotten, so that no range has to be kept for it. */
static void remove_forgotten(struct cache *c)
{
    for (size_t i = 0; i < map_buckets(&c->rows); i++) {
        struct map_link **at = map_bucket(&c->rows, i);
        while (*at) {
            if ((*at)->tag >= ITEM_TAGS && is_forgotten(c, item_of(*at)))
                drop(c, at);
            else
                at = &(*at)->next;
        }
    }
    release_ranges(c);
}

void cache_forget_range(struct cache *c, const struct item_range *r)
{
    if (c->nranges == MOST_RANGES)
        remove_forgotten(c);
    char *names = mem_alloc(r->min_name.n + r->max_name.n + 1);
    struct forgotten *own = &c->ranges[c->nranges++];
    *own = (struct forgotten){*r, names};
    own->what.min_name = slice_of(names, r->min_name.n);
    own->what.max_name = slice_of(names + r->min_name.n, r->max_name.n);
    if (r->min_name.n)
        memcpy(names, r->min_name.p, r->min_name.n);
    if (r->max_name.n)
        memcpy(names + r->min_name.n, r->max_name.p, r->max_name.n);
    c->stamp++;
}

void cache_evict(struct cache *c, size_t others)
{
    for (int steps = 0; c->stats.bytes + others > c->budget && c->stats.rows > 0 && steps < EVICT_STEPS;
         steps++) {
        if (++c->hand >= map_buckets(&c->rows))
            c->hand = 0;
        struct map_link **at = map_bucket(&c->rows, c->hand);
        while (*at) {
            struct row_head *r = head_of(*at);
            if (!r->dirty && r->heat == 0) {
                drop(c, at);
                c->stats.evicted++;
                continue;
            }
            if (!r->dirty)
                r->heat--;
            at = &r->link.next;
        }
    }
}

void cache_drop(struct cache *c)
{
    struct map kept = {0};
    for (size_t i = 0; i < map_buckets(&c->rows); i++) {
        struct map_link **at = map_bucket(&c->rows, i);
        while (*at) {
            struct map_link *l = *at;
            if (head_of(l)->dirty) {
                map_cut(&c->rows, at);
                map_add(&kept, l);
            } else {
                drop(c, at);
                c->stats.dropped++;
            }
        }
    }
    c->stats.bytes -= c->rows.bytes;
    map_release(&c->rows);
    c->rows = kept;
    c->stats.bytes += kept.bytes;
    c->hand = 0;
}

const struct cache_stats *cache_get_stats(const struct cache *c)
{
    return &c->stats;
}

void cache_reset_stats(struct cache *c)
{
    c->stats.hits = c->stats.misses = c->stats.evicted = c->stats.dropped = 0;
}
