/* Orders of a memtable's rows and walks through them.

   An order is a list of leaves, each a sorted array of up to LEAF_MAX rows: a search halves the leaves, then
   the rows of one, and reads memory that lies together; a change moves at most a leaf's rows. A group has the
   orders that scans have asked for; the others cost nothing. */
#include "journal/memtable_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/order.h"

#define LEAF_MIN    8 /* rows that a leaf has room for, doubled as it grows, */
#define LEAF_MAX    (LEAF_MIN << (ORDER_LEAF_SIZES - 1)) /* up to this */
#define LEAF_FILLED (LEAF_MAX * 3 / 4)                   /* in an order that is built from all its rows */

struct spot {
    uint64_t rank; /* of v: decides most comparisons without a look at it */
    const struct version *v;
};

struct leaf {
    struct leaf *spare; /* the next one that is not in use */
    unsigned size;      /* room for LEAF_MIN << size */
    unsigned n;         /* never 0 in an order */
    struct spot at[];
};

struct leaf_ref {
    uint64_t rank; /* of the leaf's first row */
    struct leaf *leaf;
};

struct order {
    struct order *other; /* of the same group */
    bool keys;
    union {
        enum key_order key_order;
        enum item_order item_order;
    };
    struct leaf_ref *leaves;
    size_t n, cap;
};

/* ---- leaves ---- */

static unsigned room(const struct leaf *l)
{
    return (unsigned)LEAF_MIN << l->size;
}

static struct leaf *new_leaf(struct memtable *m, unsigned size)
{
    struct leaf *l = m->spare[size];
    if (l)
        m->spare[size] = l->spare;
    else
        l = memtable_take(m, sizeof *l + ((size_t)LEAF_MIN << size) * sizeof l->at[0]);
    *l = (struct leaf){.size = size};
    return l;
}

static void spare_leaf(struct memtable *m, struct leaf *l)
{
    l->spare = m->spare[l->size];
    m->spare[l->size] = l;
}

/* Puts a leaf at a place in the list. Its first row is there already. */
static void add_leaf(struct memtable *m, struct order *o, size_t place, struct leaf *l)
{
    if (o->n == o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 4;
        struct leaf_ref *leaves = memtable_take(m, cap * sizeof *leaves);
        if (o->n)
            memcpy(leaves, o->leaves, o->n * sizeof *leaves);
        o->leaves = leaves;
        o->cap = cap;
    }
    memmove(o->leaves + place + 1, o->leaves + place, (o->n - place) * sizeof *o->leaves);
    o->leaves[place] = (struct leaf_ref){l->at[0].rank, l};
    o->n++;
}

static void drop_leaf(struct memtable *m, struct order *o, size_t place)
{
    spare_leaf(m, o->leaves[place].leaf);
    o->n--;
    memmove(o->leaves + place, o->leaves + place + 1, (o->n - place) * sizeof *o->leaves);
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
        return rank_of_number(k->first_expiry);
    case KEYS_EXPIRED:
        return rank_of_number(k->expire_at);
    case KEYS_BY_KEY:
    case KEYS_TABLES:
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

static bool comes_before(const struct order *o, struct spot at, uint64_t r, const struct version *v)
{
    return at.rank != r ? at.rank < r : compare(o, at.v, v) < 0;
}

/* Where a row is, or belongs: in the leaf before which no other may be, which may be its end. */
struct place {
    size_t leaf, i;
};

static struct place find_place(const struct order *o, const struct version *v, uint64_t r)
{
    size_t low = 0, high = o->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        struct spot first = {o->leaves[mid].rank, NULL};
        if (first.rank == r)
            first.v = o->leaves[mid].leaf->at[0].v;
        if (comes_before(o, first, r, v))
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return (struct place){0, 0};
    const struct leaf *l = o->leaves[low - 1].leaf;
    size_t from = 1, to = l->n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (comes_before(o, l->at[mid], r, v))
            from = mid + 1;
        else
            to = mid;
    }
    return (struct place){low - 1, from};
}

/* A leaf with room for one more row at this place, which may become another. */
static struct leaf *make_room(struct memtable *m, struct order *o, struct place *p)
{
    struct leaf *l = o->leaves[p->leaf].leaf;
    if (l->n < room(l))
        return l;
    if (room(l) < LEAF_MAX) {
        struct leaf *larger = new_leaf(m, l->size + 1);
        larger->n = l->n;
        memcpy(larger->at, l->at, l->n * sizeof l->at[0]);
        o->leaves[p->leaf].leaf = larger;
        spare_leaf(m, l);
        return larger;
    }
    /* In two, but at the end of all: rows that come in order fill their leaves. */
    unsigned stay = p->leaf + 1 == o->n && p->i == l->n ? l->n - 1 : l->n / 2;
    struct leaf *next = new_leaf(m, l->size);
    next->n = l->n - stay;
    memcpy(next->at, l->at + stay, next->n * sizeof next->at[0]);
    l->n = stay;
    add_leaf(m, o, p->leaf + 1, next);
    if (p->i <= stay)
        return l;
    p->leaf++;
    p->i -= stay;
    return next;
}

static void insert(struct memtable *m, struct order *o, const struct version *v)
{
    struct spot fresh = {rank(o, v), v};
    if (o->n == 0) {
        struct leaf *l = new_leaf(m, 0);
        l->at[l->n++] = fresh;
        add_leaf(m, o, 0, l);
        return;
    }
    struct place p = find_place(o, v, fresh.rank);
    struct leaf *l = make_room(m, o, &p);
    memmove(l->at + p.i + 1, l->at + p.i, (l->n - p.i) * sizeof l->at[0]);
    l->at[p.i] = fresh;
    l->n++;
    if (p.i == 0)
        o->leaves[p.leaf].rank = fresh.rank;
}

static void erase(struct memtable *m, struct order *o, struct place p)
{
    struct leaf *l = o->leaves[p.leaf].leaf;
    if (--l->n == 0) {
        drop_leaf(m, o, p.leaf);
        return;
    }
    memmove(l->at + p.i, l->at + p.i + 1, (l->n - p.i) * sizeof l->at[0]);
    if (p.i == 0)
        o->leaves[p.leaf].rank = l->at[0].rank;
}

static void replace(struct memtable *m, struct order *o, const struct version *from, const struct version *to)
{
    struct place p = find_place(o, from, rank(o, from));
    if (p.i == o->leaves[p.leaf].leaf->n)
        p = (struct place){p.leaf + 1, 0};
    struct spot *at = &o->leaves[p.leaf].leaf->at[p.i];
    assert(at->v == from);
    if (to && compare(o, from, to) == 0) {
        at->v = to;
        return;
    }
    erase(m, o, p);
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
    if (o->keys && o->key_order == KEYS_TABLES)
        return g->tables;
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
    for (size_t i = 0; i < n; i += LEAF_FILLED) {
        unsigned rows = n - i < LEAF_FILLED ? (unsigned)(n - i) : LEAF_FILLED, size = 0;
        while ((unsigned)LEAF_MIN << size < rows)
            size++;
        struct leaf *l = new_leaf(m, size);
        for (; l->n < rows; l->n++)
            l->at[l->n] = (struct spot){rank(o, all[i + l->n].v), all[i + l->n].v};
        add_leaf(m, o, o->n, l);
    }
    mem_free(all);
}

static struct order *add_order(struct memtable *m, struct group *g, struct order wanted)
{
    struct order *o = memtable_take(m, sizeof *o);
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

/* To the first row that the walk does not pass; from there it goes either way. */
static void begin(const struct order *o, struct mem_walk *w)
{
    size_t low = 0, high = o->n;
    w->in = o;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (passes(o, w, o->leaves[mid].leaf->at[0].v))
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return;
    const struct leaf *l = o->leaves[low - 1].leaf;
    size_t from = 1, to = l->n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (passes(o, w, l->at[mid].v))
            from = mid + 1;
        else
            to = mid;
    }
    w->leaf = low - 1;
    w->i = from;
}

static const struct version *step(struct mem_walk *w)
{
    const struct order *o = w->in;
    if (!o)
        return NULL;
    if (w->backward) {
        if (w->i == 0) {
            if (w->leaf == 0)
                return NULL;
            w->i = o->leaves[--w->leaf].leaf->n;
        }
        return o->leaves[w->leaf].leaf->at[--w->i].v;
    }
    if (w->leaf < o->n && w->i == o->leaves[w->leaf].leaf->n) {
        w->leaf++;
        w->i = 0;
    }
    return w->leaf < o->n ? o->leaves[w->leaf].leaf->at[w->i++].v : NULL;
}

void memtable_walk_keys(struct memtable *m, const struct key_scan *q, struct mem_walk *w)
{
    *w = (struct mem_walk){.m = m, .query = q, .order = (int)q->order, .backward = keys_backward(q)};
    if (m->keys.count)
        begin(key_order(m, q->order), w);
}

const struct mem_key *mem_walk_key(struct mem_walk *w)
{
    const struct version *v = step(w);
    if (v && (w->backward ? key_below(w->query, &v->key.row) : key_above(w->query, &v->key.row))) {
        w->in = NULL;
        v = NULL;
    }
    return v ? &v->key : NULL;
}

void memtable_walk_items(struct memtable *m, const struct item_scan *q, struct mem_walk *w)
{
    assert(item_ordered(q->table, q->order));
    *w = (struct mem_walk){.m = m, .query = q, .order = (int)q->order, .backward = q->reverse};
    struct group *g = memtable_group(m, q->table, q->id);
    if (g)
        begin(item_order(m, g, q->order), w);
}

void memtable_due_rows(struct memtable *m, int64_t now, mem_id_fn *fn, void *arg)
{
    for (const struct group *g = m->first_group; g; g = g->later) {
        if (g->table != ITEM_ROW || g->expiring == 0)
            continue;
        struct mem_walk w;
        struct item_scan q = {
            .table = ITEM_ROW, .id = g->id, .order = ITEMS_BY_EXPIRY, .has_max = true, .max = now};
        memtable_walk_items(m, &q, &w);
        if (mem_walk_item(&w))
            fn(arg, g->id);
    }
}

const struct mem_item *mem_walk_item(struct mem_walk *w)
{
    const struct version *v = step(w);
    if (v && (w->backward ? item_below(w->query, &v->item.row) : item_above(w->query, &v->item.row))) {
        w->in = NULL;
        v = NULL;
    }
    return v ? &v->item : NULL;
}
