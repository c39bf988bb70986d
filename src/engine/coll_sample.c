/* Random items. Items are numbered without gaps, so a random one is a look-up of a random number. When many
   are wanted, all are walked over instead, and each is taken with the chance that makes every choice equally
   likely: that reads rows in their order and needs no memory.

   While a hash has expired fields, some numbers are theirs. Another number is tried then, and after many
   tries in vain a choice among all fields is made by walking over them. */
#include "engine/coll.h"

#include <assert.h>

#include "base/rand.h"
#include "engine/coll_internal.h"

#define WALK_SHARE 8  /* when more than one in so many is wanted, all are walked over */
#define TRIES      32 /* of numbers that may belong to expired fields */

static int64_t random_ord(struct coll *c, int64_t below)
{
    return (int64_t)rand_below(&c->v->rnd, (uint64_t)below);
}

struct choosing {
    struct rand *rnd;
    int64_t wanted, left; /* of those not yet visited */
    coll_fn *fn;
    void *arg;
};

static enum status maybe(void *arg, const struct coll_item *item)
{
    struct choosing *s = arg;
    bool take = (int64_t)rand_below(s->rnd, (uint64_t)s->left) < s->wanted;
    s->left--;
    s->wanted -= take;
    return take ? s->fn(s->arg, item) : ST_OK;
}

static enum status choose(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    struct choosing s = {&c->v->rnd, n, coll_size(c), fn, arg};
    return coll_each(c, maybe, &s);
}

struct kept {
    struct arena *arena;
    struct coll_item *item;
};

static enum status keep(void *arg, const struct coll_item *item)
{
    const struct kept *k = arg;
    *k->item = *item;
    k->item->name = arena_copy(k->arena, item->name);
    k->item->value = arena_copy(k->arena, item->value);
    return ST_OK;
}

enum status coll_random(struct coll *c, struct coll_item *ret)
{
    assert(coll_size(c) > 0);
    if (!c->expired)
        return coll_at(c, random_ord(c, c->size), ret);
    for (int i = 0; i < TRIES; i++) {
        enum status st = coll_at(c, random_ord(c, c->size), ret);
        if (st != ST_OK || ret->expire_at == EXPIRE_NEVER || ret->expire_at > view_now(c->v))
            return st;
    }
    struct kept k = {&c->v->call.scratch, ret};
    return choose(c, 1, keep, &k);
}

/* A set of numbers, open addressing: they are nothing but numbers, their count is known before and all go at
   once with the arena, so that a base/map's links would only cost memory. */
struct numbers {
    int64_t *at; /* -1: free */
    size_t mask;
};

static struct numbers numbers_new(struct arena *arena, int64_t n)
{
    size_t room = 16;
    while (room < 2 * (size_t)n)
        room *= 2;
    struct numbers s = {arena_alloc(arena, room * sizeof *s.at), room - 1};
    for (size_t i = 0; i < room; i++)
        s.at[i] = -1;
    return s;
}

/* False: it was there already. */
static bool numbers_add(struct numbers *s, int64_t v)
{
    size_t i = (size_t)((uint64_t)v * UINT64_C(0x9E3779B97F4A7C15) >> 20) & s->mask;
    while (s->at[i] != -1 && s->at[i] != v)
        i = (i + 1) & s->mask;
    bool was = s->at[i] == v;
    s->at[i] = v;
    return !was;
}

/* A few of many, by Floyd's method: a random number below a bound that grows to the size, or the bound itself
   when that number was drawn before. */
static enum status draw(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    struct numbers drawn = numbers_new(&c->v->call.scratch, n);
    for (int64_t bound = c->size - n; bound < c->size; bound++) {
        struct coll_item item;
        int64_t ord = random_ord(c, bound + 1);
        if (!numbers_add(&drawn, ord)) {
            ord = bound;
            numbers_add(&drawn, ord);
        }
        enum status st = coll_at(c, ord, &item);
        if (st == ST_OK)
            st = fn(arg, &item);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

enum status coll_sample(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    int64_t size = coll_size(c);
    assert(n >= 0 && n <= size);
    bool few = n < size / WALK_SHARE && !c->expired;
    return few ? draw(c, n, fn, arg) : choose(c, n, fn, arg);
}

/* ---- taking them out ---- */

static enum status take_one(struct coll *c, coll_fn *fn, void *arg)
{
    struct coll_item item;
    bool removed;
    enum status st = coll_random(c, &item);
    if (st == ST_OK)
        st = fn(arg, &item);
    return st == ST_OK ? coll_remove(c, item.name, &removed) : st;
}

struct taking {
    struct coll *c;
    coll_fn *fn;
    void *arg;
    struct slice *names;
    int64_t *ords;
    size_t n;
};

static enum status note_taken(void *arg, const struct coll_item *item)
{
    struct taking *t = arg;
    t->names[t->n] = arena_copy(&t->c->v->batch.arena, item->name);
    t->ords[t->n++] = item->ord;
    return t->fn(t->arg, item);
}

/* The rows of what goes are removed. */
static enum status take_rows(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    struct arena *a = &c->v->call.scratch;
    struct taking t = {.c = c, .fn = fn, .arg = arg};
    t.names = arena_alloc(a, (size_t)n * sizeof *t.names);
    t.ords = arena_alloc(a, (size_t)n * sizeof *t.ords);
    enum status st = coll_sample(c, n, note_taken, &t);
    if (st == ST_OK)
        st = coll_renumber(c, t.ords, t.n);
    for (size_t i = 0; st == ST_OK && i < t.n; i++) {
        struct item_ref ref = {.table = c->table, .id = c->id, .name = t.names[i]};
        st = view_del_item(c->v, &ref);
    }
    c->size -= n;
    c->dirty = true;
    return st;
}

struct keeping {
    struct choosing choosing; /* of those that go */
    struct arena *arena;
    struct coll_item *kept;
    size_t n;
};

static enum status take_or_keep(void *arg, const struct coll_item *item)
{
    struct keeping *k = arg;
    int64_t wanted = k->choosing.wanted;
    enum status st = maybe(&k->choosing, item);
    if (k->choosing.wanted == wanted) {
        struct coll_item *copy = &k->kept[k->n++];
        *copy = *item;
        copy->name = arena_copy(k->arena, item->name);
        copy->value = arena_copy(k->arena, item->value);
    }
    return st;
}

/* What stays gets rows under another id; the old ones go to the trash. It keeps the order of its numbers, so
   that each is at most what it was: a scan that comes down from the end misses nothing. */
static enum status keep_rows(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    struct keeping k = {.choosing = {&c->v->rnd, n, c->size, fn, arg}, .arena = &c->v->batch.arena};
    k.kept = arena_alloc(&c->v->call.scratch, (size_t)(c->size - n + 1) * sizeof *k.kept);
    enum status st = coll_by_ord(c, take_or_keep, &k);
    if (st == ST_OK)
        coll_begin_anew(c);
    for (size_t i = 0; st == ST_OK && i < k.n; i++)
        st = coll_put_known(c, &k.kept[i], NULL);
    return st;
}

enum status coll_take_random(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    assert(n >= 0 && n <= c->size && c->type != ROW_ZSET);
    if ((c->size - n) * 5 <= n) /* Redis then makes a new set of what stays */
        c->form = FORM_UNKNOWN;
    if (n == c->size || (!c->res && n > c->size / 2))
        return keep_rows(c, n, fn, arg);
    if (!c->res && n > 1)
        return take_rows(c, n, fn, arg);
    enum status st = ST_OK;
    for (int64_t i = 0; st == ST_OK && i < n; i++)
        st = take_one(c, fn, arg);
    return st;
}
