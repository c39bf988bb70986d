/* Random items. Numbers are drawn, each below `numbers` as likely as the others, until one belongs to an item
   that lives: that is as likely to be any of them. Memory knows of many holes (memo.h), which are not looked
   for in the tables. Several are drawn for one look-up where reads are far, and
   the first in the order drawn counts. In memory items have places without holes, and those are drawn.

   When many items are wanted, all are walked over instead, and each is taken with the chance that makes every
   choice equally likely: that reads rows in their order and needs no memory.

   Where few numbers are taken, because items went faster than those that stay were given others
   (coll_numbers.c), or because fields of a hash have expired, drawing may be in vain for long. After so many
   draws as cost what a walk does, one of the items is chosen by its rank in the order of numbers, which is
   drawn below their count; or, of several, those that are missing are chosen by walking over all others.
   It stays even: that drawing was in vain says nothing about which items there are. */
#include "engine/coll.h"

#include <assert.h>

#include "base/rand.h"
#include "engine/coll_internal.h"

#define WALK_SHARE 8     /* with more draws to be expected than one for so many items, all are walked over */
#define TRIES      64    /* draws in vain that are not counted ... */
#define TRY_COST   64    /* ... and rows that a walk passes in the time of one more */
#define AT_ONCE    16    /* numbers of one look-up */
#define FREE_TRIES 10000 /* draws that memory answers, for one of those */

static int64_t random_below(struct coll *c, int64_t below)
{
    return (int64_t)rand_below(&c->v->rnd, (uint64_t)below);
}

/* ---- walking over all ---- */

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

/* ---- drawing ---- */

/* In memory one that an item has; else any that is not known to be a hole. */
static int64_t random_number(struct coll *c)
{
    if (c->res)
        return resident_at(c->res, (size_t)random_below(c, c->size))->ord;
    const struct memo *m = memos_find(&c->v->memos, c->id);
    int64_t ord = random_below(c, c->numbers);
    for (int i = 0; i < FREE_TRIES && m && memo_is_hole(m, ord); i++)
        ord = random_below(c, c->numbers);
    return ord;
}

/* How many numbers are to be drawn until n items are found, on average. */
static double expected(const struct coll *c, int64_t n)
{
    return (double)n * (double)(c->res ? c->size : c->numbers) / (double)c->size;
}

/* How many to draw for one look-up: twice as many as it takes on average, where there are holes. */
static size_t at_once(const struct coll *c, int64_t wanted)
{
    if (c->res || !c->v->store->far)
        return 1;
    double n = expected(c, wanted) * (c->numbers > c->size ? 2 : 1);
    return n < AT_ONCE ? (size_t)n : AT_ONCE;
}

static bool has_expired(const struct coll *c, int64_t expire_at)
{
    return c->expired && expire_at != EXPIRE_NEVER && expire_at <= view_now(c->v);
}

struct one {
    struct coll *c;
    struct coll_item *item;
    bool found;
};

static enum status keep(void *arg, const struct coll_item *item)
{
    struct one *o = arg;
    *o->item = *item;
    o->item->name = arena_copy(&o->c->v->call.scratch, item->name);
    o->item->value = arena_copy(&o->c->v->call.scratch, item->value);
    o->found = true;
    return ST_STOP;
}

static enum status keep_row(void *arg, const struct item_row *row)
{
    struct one *o = arg;
    struct coll_walk w = {.fn = keep, .arg = o};
    return has_expired(o->c, row->expire_at) ? ST_OK : coll_walk_row(&w, row);
}

/* Draws once, or for one look-up. *ret_n: how many numbers. */
static enum status draw_one(struct coll *c, struct one *o, int64_t *ret_n)
{
    int64_t ords[AT_ONCE];
    size_t n = at_once(c, 1);
    *ret_n = (int64_t)n;
    if (c->res) {
        *o->item = coll_from_member(resident_at(c->res, (size_t)random_below(c, c->size)));
        o->found = !has_expired(c, o->item->expire_at);
        return ST_OK;
    }
    for (size_t i = 0; i < n; i++)
        ords[i] = random_number(c);
    return view_items_at(c->v, c->table, c->id, ords, n, keep_row, o);
}

/* The item that has this rank in the order of numbers, from the nearer end. */
static enum status by_rank(struct coll *c, int64_t rank, struct one *o)
{
    bool reverse = rank >= c->size / 2;
    struct item_scan q = {
        .table = c->table,
        .id = c->id,
        .order = ITEMS_BY_ORD,
        .reverse = reverse,
        .skip = (uint32_t)(reverse ? c->size - 1 - rank : rank),
        .limit = 1,
    };
    enum status st = view_scan_items(c->v, &q, keep_row, o);
    if (st == ST_OK && !o->found)
        st = error_set(c->v->call.err, ST_CORRUPT, "of %lld items %lld are missing", (long long)c->size,
                       (long long)(c->size - rank));
    return st;
}

enum status coll_random(struct coll *c, struct coll_item *ret)
{
    assert(coll_size(c) > 0);
    struct one o = {.c = c, .item = ret};
    enum status st = ST_OK;
    int64_t n, most = TRIES + c->size / TRY_COST;
    for (int64_t tried = 0; st == ST_OK && !o.found && tried < most; tried += n)
        st = draw_one(c, &o, &n);
    if (st != ST_OK || o.found)
        return st;
    return c->expired ? choose(c, 1, keep, &o) : by_rank(c, random_below(c, c->size), &o);
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

/* Where it is, or would be. */
static int64_t *numbers_find(const struct numbers *s, int64_t v)
{
    size_t i = (size_t)((uint64_t)v * UINT64_C(0x9E3779B97F4A7C15) >> 20) & s->mask;
    while (s->at[i] != -1 && s->at[i] != v)
        i = (i + 1) & s->mask;
    return &s->at[i];
}

/* A few of many: of numbers that were not drawn before. */
struct drawing {
    struct coll *c;
    struct numbers drawn;
    int64_t wanted;
    coll_fn *fn;
    void *arg;
    struct choosing rest; /* of those that were not drawn */
};

static enum status take_drawn(void *arg, const struct item_row *row)
{
    struct drawing *d = arg;
    struct coll_walk w = {.fn = d->fn, .arg = d->arg};
    enum status st = coll_walk_row(&w, row);
    d->wanted = w.stopped ? 0 : d->wanted - 1;
    return st == ST_OK && d->wanted == 0 ? ST_STOP : st;
}

static enum status maybe_rest(void *arg, const struct coll_item *item)
{
    struct drawing *d = arg;
    return *numbers_find(&d->drawn, item->ord) == item->ord ? ST_OK : maybe(&d->rest, item);
}

/* Looks for the items of k numbers that were drawn. */
static enum status take_numbers(struct drawing *d, const int64_t *ords, size_t k)
{
    struct coll *c = d->c;
    if (!c->res)
        return view_items_at(c->v, c->table, c->id, ords, k, take_drawn, d);
    struct coll_item item = coll_from_member(resident_at(c->res, resident_place(c->res, ords[0])));
    enum status st = d->fn(d->arg, &item);
    d->wanted = st == ST_STOP ? 0 : d->wanted - 1;
    return status_of_walk(st);
}

static enum status draw(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    int64_t most = TRIES + (int64_t)(4 * expected(c, n)), ords[AT_ONCE];
    struct drawing d = {.c = c, .wanted = n, .fn = fn, .arg = arg};
    enum status st = ST_OK;
    d.drawn = numbers_new(&c->v->call.scratch, most + AT_ONCE);
    for (int64_t tried = 0; st == ST_OK && d.wanted && tried < most;) {
        size_t k = 0, room = at_once(c, d.wanted);
        for (size_t i = 0; i < room; i++, tried++) {
            int64_t ord = random_number(c), *place = numbers_find(&d.drawn, ord);
            if (*place == -1)
                ords[k++] = *place = ord;
        }
        if (k)
            st = take_numbers(&d, ords, k);
    }
    if (st != ST_OK || d.wanted == 0)
        return st;
    d.rest = (struct choosing){&c->v->rnd, d.wanted, c->size - (n - d.wanted), fn, arg};
    return coll_each(c, maybe_rest, &d);
}

enum status coll_sample(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    assert(n >= 0 && n <= coll_size(c));
    bool few = n == 0 || (!c->expired && expected(c, n) < (double)c->size / WALK_SHARE);
    return few ? draw(c, n, fn, arg) : choose(c, n, fn, arg);
}

/* ---- taking them out ---- */

static enum status take_one(struct coll *c, coll_fn *fn, void *arg)
{
    struct coll_item item;
    enum status st = coll_random(c, &item);
    if (st == ST_OK)
        st = fn(arg, &item);
    return st == ST_OK ? coll_remove_known(c, &item) : st;
}

struct taking {
    struct coll *c;
    coll_fn *fn;
    void *arg;
    struct slice *names;
    size_t n;
};

static enum status note_taken(void *arg, const struct coll_item *item)
{
    struct taking *t = arg;
    t->names[t->n++] = arena_copy(&t->c->v->batch.arena, item->name);
    return t->fn(t->arg, item);
}

/* The rows of what goes are removed. */
static enum status take_rows(struct coll *c, int64_t n, coll_fn *fn, void *arg)
{
    struct arena *a = &c->v->call.scratch;
    struct taking t = {.c = c, .fn = fn, .arg = arg};
    t.names = arena_alloc(a, (size_t)n * sizeof *t.names);
    enum status st = coll_sample(c, n, note_taken, &t);
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
