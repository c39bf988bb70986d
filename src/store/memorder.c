/* Orders of a memtable's rows and walks through them.

   An order is a skip list of versions: it can be walked both ways, and a change costs what a search does. A
   group has those that scans have asked for; the others cost nothing. */
#include "store/memtable_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/rows.h"

struct mem_node {
    const struct version *v;
    struct mem_node *prev;
    unsigned height;         /* 1 and more */
    struct mem_node *next[]; /* height of them */
};

struct order {
    struct order *other; /* of the same group */
    bool keys;
    union {
        enum key_order key_order;
        enum item_order item_order;
    };
    unsigned height; /* of the highest node */
    struct mem_node *first[ORDER_LEVELS];
};

/* ---- nodes ---- */

/* A node is one higher with a chance of one in four. */
static unsigned throw_height(struct memtable *m)
{
    m->dice ^= m->dice << 13;
    m->dice ^= m->dice >> 7;
    m->dice ^= m->dice << 17;
    unsigned zeros = (unsigned)__builtin_ctzll(m->dice | (uint64_t)1 << (2 * (ORDER_LEVELS - 1)));
    return 1 + zeros / 2;
}

static struct mem_node *new_node(struct memtable *m, const struct version *v)
{
    unsigned height = throw_height(m);
    struct mem_node *n = m->spare[height - 1];
    if (n)
        m->spare[height - 1] = n->next[0];
    else
        n = mem_take(m, sizeof *n + height * sizeof n->next[0]);
    n->v = v;
    n->height = height;
    return n;
}

static void spare_node(struct memtable *m, struct mem_node *n)
{
    n->next[0] = m->spare[n->height - 1];
    m->spare[n->height - 1] = n;
}

/* ---- places ---- */

static int compare(const struct order *o, const struct version *x, const struct version *y)
{
    return o->keys ? keys_compare(o->key_order, &x->key.row, &y->key.row)
                   : items_compare(o->item_order, &x->item.row, &y->item.row);
}

/* Whether a state of a row is in an order. */
static bool belongs(const struct order *o, const struct version *v)
{
    if (!v)
        return false;
    if (o->keys)
        return v->key.row.type != ROW_NONE && keys_order_has(o->key_order, &v->key.row);
    return !v->item.gone && items_order_has(o->item_order, &v->item.row);
}

/* The links that a node at v's place hangs in, one for each level; the node before it, if any. */
struct path {
    struct mem_node **links[ORDER_LEVELS];
    struct mem_node *before;
};

static void find_place(struct order *o, const struct version *v, struct path *p)
{
    struct mem_node **links = o->first;
    p->before = NULL;
    for (unsigned level = ORDER_LEVELS; level-- > 0;) {
        if (level < o->height) {
            struct mem_node *n;
            while ((n = links[level]) && compare(o, n->v, v) < 0) {
                p->before = n;
                links = n->next;
            }
        }
        p->links[level] = &links[level];
    }
}

/* Hangs a node in at a place, and sets the path behind it. */
static void hang(struct order *o, struct mem_node *n, struct path *p)
{
    for (unsigned level = 0; level < n->height; level++) {
        n->next[level] = *p->links[level];
        *p->links[level] = n;
        p->links[level] = &n->next[level];
    }
    n->prev = p->before;
    if (n->next[0])
        n->next[0]->prev = n;
    p->before = n;
    if (n->height > o->height)
        o->height = n->height;
}

static void insert(struct memtable *m, struct order *o, const struct version *v)
{
    struct path p;
    find_place(o, v, &p);
    hang(o, new_node(m, v), &p);
}

static void replace(struct memtable *m, struct order *o, const struct version *from, const struct version *to)
{
    struct path p;
    find_place(o, from, &p);
    struct mem_node *n = *p.links[0];
    assert(n && n->v == from);
    if (to && compare(o, from, to) == 0) {
        n->v = to;
        return;
    }
    for (unsigned level = 0; level < n->height; level++)
        *p.links[level] = n->next[level];
    if (n->next[0])
        n->next[0]->prev = n->prev;
    spare_node(m, n);
    if (to)
        insert(m, o, to);
}

void orders_change(struct memtable *m, struct group *g, const struct version *from, const struct version *to)
{
    for (struct order *o = g->orders; o; o = o->other) {
        bool was = belongs(o, from), is = belongs(o, to);
        if (was)
            replace(m, o, from, is ? to : NULL);
        else if (is)
            insert(m, o, to);
    }
}

/* ---- building ---- */

static int by_order(const void *a, const void *b, void *order)
{
    return compare(order, *(const struct version *const *)a, *(const struct version *const *)b);
}

/* How many rows an order will have at most: none is known without looking at rows. */
static size_t most(const struct order *o, const struct group *g)
{
    if (o->keys && o->key_order == KEYS_DUE)
        return g->due;
    if (o->keys ? o->key_order == KEYS_EXPIRED : o->item_order == ITEMS_BY_EXPIRY)
        return g->expiring;
    return g->count;
}

/* Sorting and then appending reads rows in the order of their memory more often than inserting them would. */
static void fill(struct memtable *m, struct order *o, const struct group *g)
{
    size_t cap = most(o, g), n = 0;
    if (cap == 0)
        return;
    const struct version **all = mem_alloc(cap * sizeof *all);
    for (const struct entry *e = g->first; e && n < cap; e = e->later) {
        if (belongs(o, e->now))
            all[n++] = e->now;
    }
    qsort_r(all, n, sizeof *all, by_order, o);
    struct path end = {.before = NULL};
    for (unsigned level = 0; level < ORDER_LEVELS; level++)
        end.links[level] = &o->first[level];
    for (size_t i = 0; i < n; i++)
        hang(o, new_node(m, all[i]), &end);
    mem_free(all);
}

static struct order *add_order(struct memtable *m, struct group *g, struct order wanted)
{
    struct order *o = mem_take(m, sizeof *o);
    *o = wanted;
    fill(m, o, g);
    o->other = g->orders;
    g->orders = o;
    return o;
}

static struct order *key_order(struct memtable *m, enum key_order order)
{
    for (struct order *o = m->keys.orders; o; o = o->other) {
        if (o->key_order == order)
            return o;
    }
    return add_order(m, &m->keys, (struct order){.keys = true, .key_order = order});
}

static struct order *item_order(struct memtable *m, struct group *g, enum item_order order)
{
    for (struct order *o = g->orders; o; o = o->other) {
        if (o->item_order == order)
            return o;
    }
    return add_order(m, g, (struct order){.item_order = order});
}

/* ---- walking ---- */

/* Whether a walk begins behind a row: forward what is below the range, backward all that is not above it. */
static bool passes(const struct order *o, const struct mem_walk *w, const struct version *v)
{
    if (o->keys)
        return w->backward ? !key_above(w->query, &v->key.row) : key_below(w->query, &v->key.row);
    return w->backward ? !item_above(w->query, &v->item.row) : item_below(w->query, &v->item.row);
}

static void begin(struct order *o, struct mem_walk *w)
{
    struct mem_node **links = o->first, *last = NULL;
    for (unsigned level = o->height; level-- > 0;) {
        struct mem_node *n;
        while ((n = links[level]) && passes(o, w, n->v)) {
            last = n;
            links = n->next;
        }
    }
    w->at = w->backward ? last : links[0];
}

static const struct version *step(struct mem_walk *w)
{
    const struct mem_node *n = w->at;
    if (!n)
        return NULL;
    w->at = w->backward ? n->prev : n->next[0];
    return n->v;
}

void memtable_walk_keys(struct memtable *m, const struct key_scan *q, struct mem_walk *w)
{
    *w = (struct mem_walk){
        .m = m, .query = q, .order = (int)q->order, .backward = q->order == KEYS_BY_SEQ_DESC};
    if (m->keys.count)
        begin(key_order(m, q->order), w);
}

const struct mem_key *mem_walk_key(struct mem_walk *w)
{
    const struct version *v = step(w);
    if (v && (w->backward ? key_below(w->query, &v->key.row) : key_above(w->query, &v->key.row))) {
        w->at = NULL;
        v = NULL;
    }
    return v ? &v->key : NULL;
}

void memtable_walk_items(struct memtable *m, const struct item_scan *q, struct mem_walk *w)
{
    assert(q->order != ITEMS_BY_SCORE || q->table == ITEM_ZSET);
    assert(q->order != ITEMS_BY_EXPIRY || q->table == ITEM_HASH);
    *w = (struct mem_walk){.m = m, .query = q, .order = (int)q->order, .backward = q->reverse};
    struct group *g = memtable_group(m, q->table, q->id);
    if (g)
        begin(item_order(m, g, q->order), w);
}

const struct mem_item *mem_walk_item(struct mem_walk *w)
{
    const struct version *v = step(w);
    if (v && (w->backward ? item_below(w->query, &v->item.row) : item_above(w->query, &v->item.row))) {
        w->at = NULL;
        v = NULL;
    }
    return v ? &v->item : NULL;
}
