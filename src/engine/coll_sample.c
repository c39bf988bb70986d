/* Random items. Items are numbered without gaps, so a random one is a look-up of a random number. When many
   are wanted, all are walked over instead, and each is taken with the chance that makes every choice equally
   likely: that reads rows in their order and needs no memory. */
#include "engine/coll.h"

#include <assert.h>

#include "base/rand.h"
#include "engine/coll_internal.h"

#define WALK_SHARE 8 /* when more than one in so many is wanted, all are walked over */

static int64_t random_ord(struct coll *c, int64_t below)
{
    return (int64_t)rand_below(&c->v->rnd, (uint64_t)below);
}

enum status coll_random(struct coll *c, struct coll_item *ret)
{
    assert(coll_size(c) > 0);
    return coll_at(c, random_ord(c, c->size), ret);
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

/* A set of numbers, open addressing. */
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
    struct numbers drawn = numbers_new(&c->v->scratch, n);
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
    if (n < size / WALK_SHARE)
        return draw(c, n, fn, arg);
    struct choosing s = {&c->v->rnd, n, size, fn, arg};
    return coll_each(c, maybe, &s);
}
