/* Orders of a memtable's rows and walks through them.

   An order is a list of leaves, each a sorted array of up to LEAF_MAX rows: a search halves the leaves, then
   the rows of one, and reads memory that lies together; a change moves at most a leaf's rows. A group has the
   orders that scans have asked for; the others cost nothing. */
#include "memtable/memtable_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/order.h"

#define LEAF_MIN    8                  /* rows that a leaf has room for, doubled as it grows, */
#define LEAF_MAX    (LEAF_MIN << 4)    /* up to this */
#define LEAF_FILLED (LEAF_MAX * 3 / 4) /* in an order that is built from all its rows */

struct spot {
    uint64_t rank; /* of v: decides most comparisons without a look at it */
    const struct state *v;
};

struct leaf {
    unsigned size; /* room for LEAF_MIN << size */
    unsigned n;    /* never 0 in an order */
    struct spot at[];
};

struct leaf_ref {
    uint64_t rank; /* of the leaf's first row */
    struct leaf *leaf;
};

struct order {
    const struct memtable *m;
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

static size_t leaf_bytes(unsigned size)
{
    return sizeof(struct leaf) + ((size_t)LEAF_MIN << size) * sizeof(struct spot);
}

static struct leaf *new_leaf(struct memtable *m, unsigned size)
{
    struct leaf *l = memtable_take(m, leaf_bytes(size));
    *l = (struct leaf){.size = size};
    return l;
}

static void give_leaf(struct memtable *m, struct leaf *l)
{
    memtable_give(m, l, leaf_bytes(l->size));
}

/* Puts a leaf at a place in the list. Its first row is there already. */
static void add_leaf(struct memtable *m, struct order *o, size_t place, struct leaf *l)
{
    if (o->n == o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 4;
        struct leaf_ref *leaves = memtable_take(m, cap * sizeof *leaves);
        if (o->cap) {
            memcpy(leaves, o->leaves, o->n * sizeof *leaves);
            memtable_give(m, o->leaves, o->cap * sizeof *leaves);
        }
        o->leaves = leaves;
        o->cap = cap;
    }
    memmove(o->leaves + place + 1, o->leaves + place, (o->n - place) * sizeof *o->leaves);
    o->leaves[place] = (struct leaf_ref){l->at[0].rank, l};
    o->n++;
}

static void drop_leaf(struct memtable *m, struct order *o, size_t place)
{
    give_leaf(m, o->leaves[place].leaf);
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

/* A state, unpacked as an order needs it. */
union row {
    struct mem_key key;
    struct mem_item item;
};

static void unpack(const struct order *o, const struct state *v, union row *ret)
{
    if (o->keys)
        state_key(o->m, v, &ret->key);
    else
        state_item(o->m, v, &ret->item);
}

static uint64_t rank(const struct order *o, const struct state *v)
{
    union row r;
    unpack(o, v, &r);
    return o->keys ? rank_of_key(o->key_order, &r.key.row) : rank_of_item(o->item_order, &r.item.row);
}

static int compare(const struct order *o, const struct state *x, const struct state *y)
{
    union row a, b;
    unpack(o, x, &a);
    unpack(o, y, &b);
    return o->keys ? keys_compare(o->key_order, &a.key.row, &b.key.row)
                   : items_compare(o->item_order, &a.item.row, &b.item.row);
}

/* Whether a state of a row is in an order. */
static bool belongs(const struct order *o, const struct state *v)
{
    if (!v)
        return false;
    if (!o->keys)
        return !item_gone(v) && (o->item_order != ITEMS_BY_EXPIRY || (v->link.tag & TAG_EXPIRES));
    switch (o->key_order) {
    case KEYS_DUE:
        return state_is_due(v);
    case KEYS_EXPIRED:
        return v->link.tag & TAG_EXPIRES;
    case KEYS_TABLES:
        return state_type(v) == ROW_TABLE;
    case KEYS_BY_KEY:
    case KEYS_BY_SEQ_DESC:
        break;
    }
    return state_type(v) != ROW_NONE;
}

static bool comes_before(const struct order *o, struct spot at, uint64_t r, const struct state *v)
{
    return at.rank != r ? at.rank < r : compare(o, at.v, v) < 0;
}

/* Where a row is, or belongs: in the leaf before which no other may be, which may be its end. */
struct place {
    size_t leaf, i;
};

static struct place find_place(const struct order *o, const struct state *v, uint64_t r)
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
        give_leaf(m, l);
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

static void insert(struct memtable *m, struct order *o, const struct state *v)
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

static void replace(struct memtable *m, struct order *o, const struct state *from, const struct state *to)
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

/* A key's row that is only in orders of all rows: it does not expire, and is neither a hash nor a table. */
static inline bool is_plain(const struct state *v)
{
    return !v || (!(v->link.tag & TAG_EXPIRES) && state_type(v) != ROW_HASH && state_type(v) != ROW_TABLE);
}

static inline bool is_of_few(const struct order *o)
{
    return o->keys && o->key_order != KEYS_BY_KEY && o->key_order != KEYS_BY_SEQ_DESC;
}

void orders_change(struct memtable *m, struct group *g, const struct state *from, const struct state *to)
{
    bool plain = is_plain(from) && is_plain(to);
    for (struct order *o = g->orders; o; o = o->other) {
        if (plain && is_of_few(o))
            continue;
        bool was = belongs(o, from), is = belongs(o, to);
        if (was)
            replace(m, o, from, is ? to : NULL);
        else if (is)
            insert(m, o, to);
    }
}

/* Of the rows of a leaf, those stay whose rank is outside. */
static void cut_leaf(struct leaf *l, uint64_t low, uint64_t high)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->n; i++)
        if (l->at[i].rank < low || l->at[i].rank > high)
            l->at[n++] = l->at[i];
    l->n = n;
}

/* Leaves are looked at by the rank of their first row, but for the two that the ends are in. */
static void cut(struct memtable *m, struct order *o, uint64_t low, uint64_t high)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++) {
        struct leaf_ref r = o->leaves[i];
        bool below = i + 1 < o->n && o->leaves[i + 1].rank <= low;
        bool inside = r.rank >= low && i + 1 < o->n && o->leaves[i + 1].rank <= high;
        if (inside)
            r.leaf->n = 0;
        else if (!below && r.rank <= high)
            cut_leaf(r.leaf, low, high);
        if (r.leaf->n == 0) {
            give_leaf(m, r.leaf);
            continue;
        }
        r.rank = below || r.rank > high ? r.rank : r.leaf->at[0].rank;
        o->leaves[n++] = r;
    }
    o->n = n;
}

void orders_cut(struct memtable *m, struct group *g, int64_t min, int64_t max)
{
    for (struct order *o = g->orders; o; o = o->other) {
        assert(o->item_order == ITEMS_BY_POS); /* the only one that rows without names have */
        cut(m, o, rank_of_number(min), rank_of_number(max));
    }
}

void orders_drop(struct memtable *m, struct group *g)
{
    for (struct order *o = g->orders, *other; o; o = other) {
        other = o->other;
        for (size_t i = 0; i < o->n; i++)
            give_leaf(m, o->leaves[i].leaf);
        if (o->cap)
            memtable_give(m, o->leaves, o->cap * sizeof *o->leaves);
        memtable_give(m, o, sizeof *o);
    }
    g->orders = NULL;
}

/* ---- building ---- */

/* A version on its way into an order. Of names, what they all begin with does not count in its rank. */
struct ranked {
    uint32_t db; /* of a key in the order of keys */
    uint64_t rank;
    const struct state *v;
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

static struct ranked rank_in(const struct order *o, const struct group *g, const struct state *v)
{
    union row r;
    unpack(o, v, &r);
    if (o->keys && o->key_order == KEYS_BY_KEY)
        return (struct ranked){r.key.row.db, rank_of_name(r.key.row.key, g->common), v};
    if (!o->keys && o->item_order == ITEMS_BY_NAME)
        return (struct ranked){0, rank_of_name(r.item.row.ref.name, g->common), v};
    return (struct ranked){0, rank(o, v), v};
}

/* How many rows an order will have at most: none is known without looking at rows. */
static size_t most(const struct order *o, const struct group *g)
{
    if (o->keys && o->key_order == KEYS_DUE)
        return o->m->due;
    if (o->keys && o->key_order == KEYS_TABLES)
        return o->m->tables;
    if (o->keys ? o->key_order == KEYS_EXPIRED : o->item_order == ITEMS_BY_EXPIRY)
        return g->expiring;
    return g->count;
}

/* The rows of a group, in no order. */
struct rows {
    const struct memtable *m;
    const struct member *at; /* the next item */
    bool keys;
    const struct map_link *link; /* the next row in a bucket that has keys ... */
    size_t bucket;               /* ... and the next one of those */
};

static const struct state *next_row(struct rows *r)
{
    if (!r->keys) {
        const struct member *x = r->at;
        r->at = x ? x->later : NULL;
        return x ? &x->state : NULL;
    }
    for (;;) {
        while (!r->link && r->bucket < map_buckets(&r->m->rows))
            r->link = *map_bucket(&r->m->rows, r->bucket++);
        const struct state *s = (const struct state *)r->link;
        if (!s)
            return NULL;
        r->link = s->link.next;
        if (state_kind(s) == KIND_KEY)
            return s;
    }
}

/* Sorting and then appending looks at rows in the order of their memory, mostly; inserting them would not. */
static void fill(struct memtable *m, struct order *o, const struct group *g)
{
    size_t cap = most(o, g), n = 0;
    if (cap == 0)
        return;
    struct ranked *all = mem_alloc(cap * sizeof *all);
    struct rows all_rows = {.m = m, .at = g->first, .keys = o->keys};
    bool sorted = true;
    for (const struct state *v; n < cap && (v = next_row(&all_rows));) {
        if (!belongs(o, v))
            continue;
        all[n] = rank_in(o, g, v);
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
    return add_order(m, &m->keys, (struct order){.m = m, .keys = true, .key_order = order});
}

static struct order *built_order(const struct group *g, enum item_order order)
{
    struct order *o = g->orders;
    while (o && o->item_order != order)
        o = o->other;
    return o;
}

static struct order *item_order(struct memtable *m, struct group *g, enum item_order order)
{
    struct order *o = built_order(g, order);
    return o ? o : add_order(m, g, (struct order){.m = m, .item_order = order});
}

/* ---- walking ---- */

/* Whether a walk begins behind a row: forward what is below the range, backward all that is not above it. */
static bool passes(const struct order *o, const struct mem_walk *w, const struct state *v)
{
    union row r;
    unpack(o, v, &r);
    if (o->keys)
        return w->backward ? !key_above(w->query, &r.key.row) : key_below(w->query, &r.key.row);
    return w->backward ? !item_above(w->query, &r.item.row) : item_below(w->query, &r.item.row);
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

static const struct state *step(struct mem_walk *w)
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

bool mem_walk_key(struct mem_walk *w, struct mem_key *ret)
{
    const struct state *v = step(w);
    if (!v)
        return false;
    state_key(w->m, v, ret);
    bool behind = w->backward ? key_below(w->query, &ret->row) : key_above(w->query, &ret->row);
    if (behind)
        w->in = NULL;
    return !behind;
}

/* How many places a scan has to look at, if that is less work than building an order. */
static uint64_t few_places(const struct group *g, const struct item_scan *q)
{
    if (q->order != ITEMS_BY_POS || !q->has_min || !q->has_max || q->min > q->max || built_order(g, q->order))
        return 0;
    uint64_t places = (uint64_t)q->max - (uint64_t)q->min + 1;
    return places <= g->count / 4 ? places : 0;
}

void memtable_walk_items(struct memtable *m, const struct item_scan *q, struct mem_walk *w)
{
    assert(item_ordered(q->table, q->order));
    *w = (struct mem_walk){.m = m, .query = q, .order = (int)q->order, .backward = q->reverse};
    struct group *g = memtable_group(m, q->table, q->id);
    w->places = g ? few_places(g, q) : 0;
    if (w->places)
        w->place = q->reverse ? q->max : q->min;
    else if (g)
        begin(item_order(m, g, q->order), w);
}

/* The next row of a walk from place to place. */
static bool next_place(struct mem_walk *w, struct mem_item *ret)
{
    const struct item_scan *q = w->query;
    struct item_ref ref = {.table = q->table, .id = q->id, .pos = w->place};
    bool found = false;
    for (; w->places && !found; w->places--) {
        found = memtable_item(w->m, &ref, ret) && !ret->gone;
        ref.pos += w->places == 1 ? 0 : w->backward ? -1 : 1;
    }
    w->place = ref.pos;
    return found;
}

void memtable_due_rows(struct memtable *m, int64_t now, mem_id_fn *fn, void *arg)
{
    for (const struct group *g = m->first_group; g; g = g->later) {
        if (g->table != ITEM_ROW || g->expiring == 0)
            continue;
        struct mem_walk w;
        struct mem_item first;
        struct item_scan q = {
            .table = ITEM_ROW, .id = g->id, .order = ITEMS_BY_EXPIRY, .has_max = true, .max = now};
        memtable_walk_items(m, &q, &w);
        if (mem_walk_item(&w, &first))
            fn(arg, g->id);
    }
}

bool mem_walk_item(struct mem_walk *w, struct mem_item *ret)
{
    if (w->places)
        return next_place(w, ret);
    const struct state *v = step(w);
    if (!v)
        return false;
    state_item(w->m, v, ret);
    bool behind = w->backward ? item_below(w->query, &ret->row) : item_above(w->query, &ret->row);
    if (behind)
        w->in = NULL;
    return !behind;
}
