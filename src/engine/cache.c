/* The index of rows in memory, see cache.h. */
#include "engine/cache.h"

#include "base/hash.h"
#include "base/mem.h"
#include "store/order.h"

#define EVICT_STEPS 65536
#define SHELVES     64 /* of ranges that were forgotten, by the id of their collection, ... */
#define MOST_RANGES 32 /* ... each with the last so many */

struct cache {
    struct map rows;
    size_t hand;
    size_t budget;
    uint64_t changes;               /* see cache_changes */
    struct shelf *shelves[SHELVES]; /* NULL: nothing was forgotten */
    struct cache_stats stats;
};

struct shelf {
    uint32_t stamp; /* how many have been forgotten: the last one is at stamp - 1, in a ring */
    struct forgotten {
        struct item_range what;
        char *names;
    } ranges[MOST_RANGES];
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

static void free_shelf(struct shelf *s)
{
    for (size_t i = 0; s && i < MOST_RANGES; i++)
        mem_free(s->ranges[i].names);
    mem_free(s);
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < SHELVES; i++)
        free_shelf(c->shelves[i]);
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

static struct shelf **shelf_of(struct cache *c, int64_t id)
{
    return &c->shelves[(uint64_t)id % SHELVES];
}

/* How many ranges have been forgotten where those of an item's collection are. */
static uint32_t stamp_of(struct cache *c, const struct item *i)
{
    const struct shelf *s = i->link.tag == ITEM_TAG(ITEM_ZSET) ? *shelf_of(c, i->id) : NULL;
    return s ? s->stamp : 0;
}

/* Whether a range was forgotten since a clean item came, and has it. When more came than are kept, nobody
   knows: then it counts as forgotten, which costs a look into the tables and no walk through all items. */
static bool is_forgotten(struct cache *c, struct item *i)
{
    uint32_t stamp = stamp_of(c, i);
    if (i->dirty || i->change == stamp)
        return false;
    uint32_t newer = stamp - i->change; /* the last so many came behind it */
    bool gone = !i->absent && newer > MOST_RANGES;
    if (!i->absent && !gone) {
        const struct shelf *s = *shelf_of(c, i->id);
        struct item_row row = item_to_row(i);
        for (; newer > 0 && !gone; newer--)
            gone = item_in_range(&s->ranges[(stamp - newer) % MOST_RANGES].what, &row);
    }
    i->change = stamp;
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
    i->change = stamp_of(c, i);
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

void cache_forget_range(struct cache *c, const struct item_range *r)
{
    struct shelf **at = shelf_of(c, r->id);
    if (!*at)
        *at = mem_zalloc(sizeof **at);
    char *names = mem_alloc(r->min_name.n + r->max_name.n + 1);
    struct forgotten *own = &(*at)->ranges[(*at)->stamp % MOST_RANGES];
    mem_free(own->names);
    *own = (struct forgotten){*r, names};
    own->what.min_name = slice_of(names, r->min_name.n);
    own->what.max_name = slice_of(names + r->min_name.n, r->max_name.n);
    if (r->min_name.n)
        memcpy(names, r->min_name.p, r->min_name.n);
    if (r->max_name.n)
        memcpy(names + r->min_name.n, r->max_name.p, r->max_name.n);
    (*at)->stamp++;
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
