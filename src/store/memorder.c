/* Orders of a memtable's rows and walks through them.

   An order is a skip list of versions: it can be walked both ways, and a change costs what a search does. A
   group has those that scans have asked for; the others cost nothing. */
#include "store/memtable_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/rows.h"

struct mem_node {
    uint64_t rank; /* of v: decides most comparisons without a look at it */
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

static struct mem_node *new_node(struct memtable *m, const struct version *v, uint64_t rank)
{
    unsigned height = throw_height(m);
    struct mem_node *n = m->spare[height - 1];
    if (n)
        m->spare[height - 1] = n->next[0];
    else
        n = mem_take(m, sizeof *n + height * sizeof n->next[0]);
    n->rank = rank;
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

/* A score, with 0.0 for both zeros. */
static uint64_t rank_of_score(double score)
{
    uint64_t bits;
    score = score == 0 ? 0 : score;
    memcpy(&bits, &score, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* A number that ascends with an order, equal for some rows that are not. */
static uint64_t rank_of_key(enum key_order order, const struct key_row *k)
{
    switch (order) {
    case KEYS_BY_SEQ_DESC:
        return rank_of_number(k->seq);
    case KEYS_DUE:
        return rank_of_number(k->first);
    case KEYS_EXPIRED:
        return rank_of_number(k->expire_at);
    case KEYS_BY_KEY:
        break;
    }
    return (uint64_t)k->db << 32 | rank_of_name(k->key, 0) >> 32;
}

static uint64_t rank_of_item(enum item_order order, const struct item_row *i)
{
    switch (order) {
    case ITEMS_BY_POS:
        return rank_of_number(i->ref.pos);
    case ITEMS_BY_ORD:
        return rank_of_number(i->ord);
    case ITEMS_BY_EXPIRY:
        return rank_of_number(i->expire_at);
    case ITEMS_BY_SCORE:
        return rank_of_score(i->score);
    case ITEMS_BY_NAME:
        break;
    }
    return rank_of_name(i->ref.name, 0);
}

static uint64_t rank(const struct order *o, const struct version *v)
{
    return o->keys ? rank_of_key(o->key_order, &v->key.row) : rank_of_item(o->item_order, &v->item.row);
}

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

static bool comes_before(const struct order *o, const struct mem_node *n, uint64_t r, const struct version *v)
{
    return n->rank != r ? n->rank < r : compare(o, n->v, v) < 0;
}

/* The links that a node at v's place hangs in, one for each level; the node before it, if any. */
struct path {
    struct mem_node **links[ORDER_LEVELS];
    struct mem_node *before;
};

static void find_place(struct order *o, const struct version *v, uint64_t r, struct path *p)
{
    struct mem_node **links = o->first;
    p->before = NULL;
    for (unsigned level = ORDER_LEVELS; level-- > 0;) {
        if (level < o->height) {
            struct mem_node *n;
            while ((n = links[level]) && comes_before(o, n, r, v)) {
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
    uint64_t r = rank(o, v);
    find_place(o, v, r, &p);
    hang(o, new_node(m, v, r), &p);
}

static void replace(struct memtable *m, struct order *o, const struct version *from, const struct version *to)
{
    struct path p;
    find_place(o, from, rank(o, from), &p);
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

/* A version on its way into an order. Of names, what they all begin with does not count in its rank. */
struct ranked {
    uint32_t db; /* of a key in the order of keys */
    uint64_t rank;
    const struct version *v;
};

static int by_order(const void *a, const void *b, void *order)
{
    const struct ranked *x = a, *y = b;
    if (x->db != y->db)
        return x->db < y->db ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return compare(order, x->v, y->v);
}

static struct ranked rank_in(const struct order *o, const struct group *g, const struct version *v)
{
    if (o->keys && o->key_order == KEYS_BY_KEY)
        return (struct ranked){v->key.row.db, rank_of_name(v->key.row.key, g->common), v};
    if (!o->keys && o->item_order == ITEMS_BY_NAME)
        return (struct ranked){0, rank_of_name(v->item.row.ref.name, g->common), v};
    return (struct ranked){0, rank(o, v), v};
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

/* Sorting and then appending looks at rows in the order of their memory, mostly; inserting them would not. */
static void fill(struct memtable *m, struct order *o, const struct group *g)
{
    size_t cap = most(o, g), n = 0;
    if (cap == 0)
        return;
    struct ranked *all = mem_alloc(cap * sizeof *all);
    bool sorted = true;
    for (const struct entry *e = g->first; e && n < cap; e = e->later) {
        if (!belongs(o, e->now))
            continue;
        all[n] = rank_in(o, g, e->now);
        sorted = sorted && (n == 0 || by_order(&all[n - 1], &all[n], o) < 0);
        n++;
    }
    if (!sorted)
        qsort_r(all, n, sizeof *all, by_order, o);
    struct path end = {.before = NULL};
    for (unsigned level = 0; level < ORDER_LEVELS; level++)
        end.links[level] = &o->first[level];
    for (size_t i = 0; i < n; i++)
        hang(o, new_node(m, all[i].v, rank(o, all[i].v)), &end);
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
