/* Reading through memory.

   A scan runs through the tables; before each of their rows, rows of memory that come earlier are handed out,
   and a row of the tables only if memory does not know better. What memory has nothing of is passed on as it
   is.

   A hash is dead when all its fields have expired. That depends on its fields as well as on its key's row,
   and relies on this: a transaction that changes the fields of a hash changes its key's row too, so that a
   row that the tables alone have is judged by the tables alone.

   A row that is gone, in memory or in the tables, is handed out without its number. The tables lose such a
   row, soon or already, and a key that is set again under the number of a row which is not there would be in
   the journal under it. */
#include "journal/merge.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/order.h"

#define LAYERS     2
#define FEW_POINTS 8

/* The newest state of a row in the first n layers, NULL when they know nothing of it. */
static const struct mem_key *find_key(const struct layers *l, int n, uint32_t db, struct slice key)
{
    const struct mem_key *k = NULL;
    for (int i = 0; i < n && !k; i++)
        k = l->mem[i] ? memtable_key(l->mem[i], db, key) : NULL;
    return k;
}

static const struct mem_item *find_item(const struct layers *l, int n, const struct item_ref *ref)
{
    const struct mem_item *item = NULL;
    for (int i = 0; i < n && !item; i++)
        item = l->mem[i] ? memtable_item(l->mem[i], ref) : NULL;
    return item;
}

/* How many rows the tables have to be asked for: memory may hide some of them. */
static uint32_t table_limit(uint32_t skip, uint32_t limit, size_t hidden)
{
    uint64_t n = (uint64_t)skip + limit + hidden;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* ---- single rows ---- */

/* Rows that were asked for one by one: what memory does not know, the tables are asked for at once, and both
   are handed out in the order asked. */
struct points {
    const struct layers *l;
    const struct key_ref *keys;
    const struct item_ref *items;
    size_t n, at; /* those before were handed out */
    bool stopped; /* the caller has seen enough */
    store_key_fn *key_fn;
    store_item_fn *item_fn;
    void *arg;
};

/* A key's row, wherever it is from. */
static enum status hand_point(void *arg, const struct key_row *row)
{
    struct points *p = arg;
    struct key_row gone;
    if (row->type == ROW_NONE && row->seq != 0) {
        gone = *row;
        gone.seq = 0;
        row = &gone;
    }
    enum status st = p->key_fn(p->arg, row);
    p->stopped = st == ST_STOP;
    return st;
}

/* Hands out what memory has of the keys up to the one given, or of all that are left. */
static enum status keys_up_to(struct points *p, const struct key_row *row)
{
    for (; p->at < p->n; p->at++) {
        const struct key_ref *ref = &p->keys[p->at];
        const struct mem_key *k = find_key(p->l, LAYERS, ref->db, ref->key);
        if (!k && row && row->db == ref->db && slice_eq(row->key, ref->key))
            return ST_OK;
        enum status st = k ? hand_point(p, &k->row) : ST_OK;
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status point_key(void *arg, const struct key_row *row)
{
    struct points *p = arg;
    enum status st = keys_up_to(p, row);
    p->at++;
    return st == ST_OK ? hand_point(p, row) : st;
}

enum status merge_get_keys(const struct layers *l, const struct key_ref *refs, size_t n, store_key_fn *fn,
                           void *arg, struct error *err)
{
    struct points p = {.l = l, .keys = refs, .n = n, .key_fn = fn, .arg = arg};
    struct key_ref few[FEW_POINTS], *missing = n > FEW_POINTS ? mem_alloc(n * sizeof *missing) : few;
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (!find_key(l, LAYERS, refs[i].db, refs[i].key))
            missing[k++] = refs[i];
    enum status st =
        k ? store_get_keys(l->tables, missing, k, k == n ? hand_point : point_key, &p, err) : ST_OK;
    if (missing != few)
        mem_free(missing);
    return status_of_walk(st == ST_OK && k < n && !p.stopped ? keys_up_to(&p, NULL) : st);
}

static enum status hand_item_point(struct points *p, const struct item_row *row)
{
    enum status st = p->item_fn(p->arg, row);
    p->stopped = st == ST_STOP;
    return st;
}

static enum status items_up_to(struct points *p, const struct item_row *row)
{
    for (; p->at < p->n; p->at++) {
        const struct item_ref *ref = &p->items[p->at];
        const struct mem_item *item = find_item(p->l, LAYERS, ref);
        if (!item && row && refs_compare(&row->ref, ref) == 0)
            return ST_OK;
        enum status st = item && !item->gone ? hand_item_point(p, &item->row) : ST_OK;
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status point_item(void *arg, const struct item_row *row)
{
    struct points *p = arg;
    enum status st = items_up_to(p, row);
    p->at++;
    return st == ST_OK ? hand_item_point(p, row) : st;
}

enum status merge_get_items(const struct layers *l, const struct item_ref *refs, size_t n, store_item_fn *fn,
                            void *arg, struct error *err)
{
    struct points p = {.l = l, .items = refs, .n = n, .item_fn = fn, .arg = arg};
    struct item_ref few[FEW_POINTS], *missing = n > FEW_POINTS ? mem_alloc(n * sizeof *missing) : few;
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (!find_item(l, LAYERS, &refs[i]))
            missing[k++] = refs[i];
    enum status st =
        k ? store_get_items(l->tables, missing, k, k == n ? fn : point_item, k == n ? arg : &p, err) : ST_OK;
    if (missing != few)
        mem_free(missing);
    return status_of_walk(st == ST_OK && k < n && !p.stopped ? items_up_to(&p, NULL) : st);
}

/* ---- scans of items ---- */

struct item_merge {
    const struct layers *l;
    const struct item_scan *q;
    struct mem_walk walks[LAYERS];
    const struct mem_item *heads[LAYERS]; /* the next row of each */
    uint32_t skip, left;
    bool enough;
    store_item_fn *fn;
    void *arg;
    /* A gap may be learnt: rows of the tables that were passed before the first that lives, and that one. */
    uint32_t passed;
    bool lives;
    struct item_row first;
    struct buf name; /* its name */
};

/* Goes on to the next row of a layer that no newer one knows of. */
static void next_item(struct item_merge *g, int layer)
{
    do
        g->heads[layer] = mem_walk_item(&g->walks[layer]);
    while (g->heads[layer] && find_item(g->l, layer, &g->heads[layer]->row.ref));
}

static bool may_learn(const struct item_merge *g)
{
    return g->l->gaps && g->q->order == ITEMS_BY_SCORE && gaps_worth(g->l->gaps, g->passed);
}

/* A row lives. */
static void note_first(struct item_merge *g, const struct item_row *row)
{
    g->lives = true;
    if (!may_learn(g))
        return;
    buf_add(&g->name, row->ref.name.p, row->ref.name.n);
    g->first = *row;
    g->first.ref.name = buf_slice(&g->name);
}

static enum status hand_item(struct item_merge *g, const struct item_row *row)
{
    if (!g->lives)
        note_first(g, row);
    if (g->skip) {
        g->skip--;
        return ST_OK;
    }
    enum status st = g->fn(g->arg, row);
    g->enough = st == ST_STOP || (st == ST_OK && --g->left == 0);
    return g->enough ? ST_STOP : st;
}

static int compare_items(const struct item_scan *q, const struct item_row *x, const struct item_row *y)
{
    int c = items_compare(q->order, x, y);
    return q->reverse ? -c : c;
}

/* Hands out what memory has before a row of the tables, or all the rest (NULL). */
static enum status items_before(struct item_merge *g, const struct item_row *row)
{
    for (;;) {
        int first = -1;
        for (int i = 0; i < LAYERS; i++) {
            if (g->heads[i] &&
                (first < 0 || compare_items(g->q, &g->heads[i]->row, &g->heads[first]->row) < 0))
                first = i;
        }
        if (first < 0 || (row && compare_items(g->q, &g->heads[first]->row, row) > 0))
            return ST_OK;
        struct item_row own = g->heads[first]->row;
        if (g->q->order == ITEMS_BY_SCORE)
            own.ord = -1;
        enum status st = hand_item(g, &own);
        if (st != ST_OK)
            return st;
        next_item(g, first);
    }
}

static enum status item_of_tables(void *arg, const struct item_row *row)
{
    struct item_merge *g = arg;
    enum status st = items_before(g, row);
    if (st != ST_OK || find_item(g->l, LAYERS, &row->ref)) {
        g->passed += !g->lives;
        return st;
    }
    return hand_item(g, row);
}

/* Whether a member has left its place; memory knows of those that were put there lately. */
struct place_of {
    const struct layers *l;
    int64_t id;
};

static bool has_left(void *arg, double score, struct slice name)
{
    const struct place_of *p = arg;
    struct item_ref ref = {.table = ITEM_ZSET, .id = p->id, .name = name};
    const struct mem_item *item = find_item(p->l, LAYERS, &ref);
    return item && (item->gone || item->row.score != score);
}

/* The part of the tables that a scan has to see: without what is known to be a gap. False: none of it. */
static bool narrow(const struct layers *l, struct item_scan *q)
{
    struct place_of p = {l, q->id};
    return !l->gaps || q->order != ITEMS_BY_SCORE || gaps_narrow(l->gaps, q, has_left, &p);
}

enum status merge_scan_items(const struct layers *l, const struct item_scan *q, store_item_fn *fn, void *arg,
                             struct error *err)
{
    size_t known = 0;
    for (int i = 0; i < LAYERS; i++)
        known += l->mem[i] ? memtable_count_items(l->mem[i], q->table, q->id) : 0;
    if (known == 0)
        return store_scan_items(l->tables, q, fn, arg, err);
    if (q->limit == 0)
        return ST_OK;
    struct item_merge g = {.l = l, .q = q, .skip = q->skip, .left = q->limit, .fn = fn, .arg = arg};
    for (int i = 0; i < LAYERS; i++) {
        if (l->mem[i]) {
            memtable_walk_items(l->mem[i], q, &g.walks[i]);
            next_item(&g, i);
        }
    }
    struct item_scan all = *q;
    all.skip = 0;
    all.limit = table_limit(q->skip, q->limit, known);
    enum status st = narrow(l, &all) ? store_scan_items(l->tables, &all, item_of_tables, &g, err) : ST_OK;
    st = status_of_walk(st == ST_OK && !g.enough ? items_before(&g, NULL) : st);
    if (st == ST_OK && may_learn(&g))
        gaps_learn(l->gaps, q, g.lives ? &g.first : NULL);
    buf_release(&g.name);
    return st;
}

static enum status count_item(void *arg, const struct item_row *row)
{
    (void)row;
    ++*(int64_t *)arg;
    return ST_OK;
}

enum status merge_count_items(const struct layers *l, const struct item_scan *q, int64_t *ret,
                              struct error *err)
{
    bool known = false;
    for (int i = 0; i < LAYERS; i++)
        known |= l->mem[i] && memtable_has_items(l->mem[i], q->table, q->id);
    if (!known)
        return store_count_items(l->tables, q, ret, err);
    struct item_scan all = *q;
    all.reverse = false;
    all.skip = 0;
    all.limit = UINT32_MAX;
    *ret = 0;
    return merge_scan_items(l, &all, count_item, ret, err);
}

/* ---- scans of keys ---- */

/* Keys of one layer that are hashes without living fields, in the order of the scan. */
struct dead {
    const struct mem_key **keys;
    size_t n, cap, at;
};

struct key_merge {
    const struct layers *l;
    const struct key_scan *q;
    struct mem_walk walks[LAYERS];
    const struct mem_key *heads[LAYERS];
    struct dead dead[LAYERS];
    uint32_t left;
    bool enough;
    store_key_fn *fn;
    void *arg;
};

static bool has_keys(const struct layers *l)
{
    bool known = false;
    for (int i = 0; i < LAYERS; i++)
        known |= l->mem[i] && memtable_has_keys(l->mem[i]);
    return known;
}

static const struct mem_key *next_key(const struct layers *l, int layer, struct mem_walk *w)
{
    const struct mem_key *k;
    do
        k = mem_walk_key(w);
    while (k && find_key(l, layer, k->row.db, k->row.key));
    return k;
}

static bool may_be_dead(const struct key_row *k, int64_t now)
{
    return k->type == ROW_HASH && k->first_expiry != 0 && k->first_expiry <= now;
}

static enum status is_dead(const struct layers *l, int64_t id, int64_t size, int64_t now, bool *ret,
                           struct error *err)
{
    struct item_scan q = {.table = ITEM_HASH,
                          .id = id,
                          .order = ITEMS_BY_EXPIRY,
                          .has_min = true,
                          .has_max = true,
                          .min = 1,
                          .max = now};
    int64_t expired = 0;
    enum status st = merge_count_items(l, &q, &expired, err);
    *ret = expired == size;
    return st;
}

/* Finds the dead hashes among the rows that a layer can contribute to a scan. It is done before the scan of
   the tables begins, because nothing can be asked of them during it. */
static enum status find_dead(const struct layers *l, int layer, const struct key_scan *q, struct dead *d,
                             struct error *err)
{
    struct mem_walk w;
    struct key_scan due = {.order = KEYS_DUE, .now = q->now};
    memtable_walk_keys(l->mem[layer], &due, &w);
    if (!mem_walk_key(&w))
        return ST_OK;
    memtable_walk_keys(l->mem[layer], q, &w);
    for (uint32_t i = 0; i < q->limit; i++) {
        const struct mem_key *k = next_key(l, layer, &w);
        if (!k)
            break;
        bool dead = may_be_dead(&k->row, q->now);
        enum status st = dead ? is_dead(l, k->row.id, k->row.size, q->now, &dead, err) : ST_OK;
        if (st != ST_OK)
            return st;
        if (dead)
            VEC_PUSH(d->keys, d->n, d->cap) = k;
    }
    return ST_OK;
}

static enum status hand_key(struct key_merge *g, const struct key_row *row)
{
    enum status st = g->fn(g->arg, row);
    g->enough = st == ST_STOP || (st == ST_OK && --g->left == 0);
    return g->enough ? ST_STOP : st;
}

static enum status hand_memory_key(struct key_merge *g, int layer)
{
    const struct mem_key *k = g->heads[layer];
    struct dead *d = &g->dead[layer];
    struct key_row own = k->row;
    if (!g->q->with_value)
        own.value = SLICE("");
    if (d->at < d->n && d->keys[d->at] == k) {
        own.type = ROW_NONE;
        d->at++;
    }
    return hand_key(g, &own);
}

static int compare_keys(const struct key_scan *q, const struct key_row *x, const struct key_row *y)
{
    int c = keys_compare(q->order, x, y);
    return keys_backward(q) ? -c : c;
}

static enum status keys_before(struct key_merge *g, const struct key_row *row)
{
    for (;;) {
        int first = -1;
        for (int i = 0; i < LAYERS; i++) {
            if (g->heads[i] &&
                (first < 0 || compare_keys(g->q, &g->heads[i]->row, &g->heads[first]->row) < 0))
                first = i;
        }
        if (first < 0 || (row && compare_keys(g->q, &g->heads[first]->row, row) > 0))
            return ST_OK;
        enum status st = hand_memory_key(g, first);
        if (st != ST_OK)
            return st;
        g->heads[first] = next_key(g->l, first, &g->walks[first]);
    }
}

static enum status key_of_tables(void *arg, const struct key_row *row)
{
    struct key_merge *g = arg;
    enum status st = keys_before(g, row);
    if (st != ST_OK || find_key(g->l, LAYERS, row->db, row->key))
        return st;
    return hand_key(g, row);
}

static enum status scan_merged(struct key_merge *g, struct error *err)
{
    const struct layers *l = g->l;
    const struct key_scan *q = g->q;
    size_t known = 0;
    bool judge = q->now != 0 && (q->order == KEYS_BY_KEY || q->order == KEYS_BY_SEQ_DESC);
    for (int i = 0; i < LAYERS; i++) {
        if (!l->mem[i])
            continue;
        known += memtable_count_keys(l->mem[i]);
        enum status st = judge ? find_dead(l, i, q, &g->dead[i], err) : ST_OK;
        if (st != ST_OK)
            return st;
        memtable_walk_keys(l->mem[i], q, &g->walks[i]);
        g->heads[i] = next_key(l, i, &g->walks[i]);
    }
    struct key_scan all = *q;
    all.limit = table_limit(0, q->limit, known);
    enum status st = store_scan_keys(l->tables, &all, key_of_tables, g, err);
    return status_of_walk(st == ST_OK && !g->enough ? keys_before(g, NULL) : st);
}

enum status merge_scan_keys(const struct layers *l, const struct key_scan *q, store_key_fn *fn, void *arg,
                            struct error *err)
{
    if (!has_keys(l))
        return store_scan_keys(l->tables, q, fn, arg, err);
    if (q->limit == 0)
        return ST_OK;
    struct key_merge g = {.l = l, .q = q, .left = q->limit, .fn = fn, .arg = arg};
    enum status st = scan_merged(&g, err);
    for (int i = 0; i < LAYERS; i++)
        mem_free(g.dead[i].keys);
    return st;
}

/* ---- tables with rows that have expired ---- */

/* The lowest ids above one, each once, ascending. */
struct lowest {
    int64_t *ids;
    size_t n, max;
    int64_t after;
};

static void add_id(void *arg, int64_t id)
{
    struct lowest *l = arg;
    size_t at = l->n;
    while (at > 0 && l->ids[at - 1] >= id)
        at--;
    if (id <= l->after || at == l->max || (at < l->n && l->ids[at] == id))
        return;
    l->n -= l->n == l->max;
    memmove(l->ids + at + 1, l->ids + at, (l->n - at) * sizeof *l->ids);
    l->ids[at] = id;
    l->n++;
}

enum status merge_due_rows(const struct layers *l, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                           size_t *ret_n, struct error *err)
{
    struct lowest found = {.ids = ret_ids, .max = max, .after = after};
    enum status st = store_due_rows(l->tables, now, after, ret_ids, max, &found.n, err);
    for (int i = 0; st == ST_OK && i < LAYERS; i++)
        if (l->mem[i])
            memtable_due_rows(l->mem[i], now, add_id, &found);
    *ret_n = found.n;
    return st;
}

/* ---- counts of keys ---- */

struct key_count {
    uint32_t db;
    int64_t now;
    int64_t keys, expires;
    struct due_hash {
        int64_t id, size;
        bool expires;
    } * due;
    size_t ndue, due_cap;
};

static enum status count_key(void *arg, const struct key_row *row)
{
    struct key_count *c = arg;
    if (row->db == c->db && row->expire_at >= 0) {
        c->keys++;
        c->expires += row->expire_at > 0;
    }
    return ST_OK;
}

/* A hash that may be dead, and is not counted as expired. */
static enum status note_due(void *arg, const struct key_row *row)
{
    struct key_count *c = arg;
    if (row->db == c->db && (row->expire_at == 0 || row->expire_at > c->now))
        VEC_PUSH(c->due, c->ndue, c->due_cap) = (struct due_hash){row->id, row->size, row->expire_at != 0};
    return ST_OK;
}

enum status merge_count_dead(const struct layers *l, uint32_t db, int64_t now, int64_t *ret_keys,
                             int64_t *ret_expires, struct error *err)
{
    if (!has_keys(l))
        return store_count_dead(l->tables, db, now, ret_keys, ret_expires, err);
    struct key_count c = {.db = db, .now = now};
    struct key_scan q = {.order = KEYS_EXPIRED, .now = now, .limit = UINT32_MAX};
    enum status st = merge_scan_keys(l, &q, count_key, &c, err);
    q.order = KEYS_DUE;
    if (st == ST_OK)
        st = merge_scan_keys(l, &q, note_due, &c, err);
    for (size_t i = 0; st == ST_OK && i < c.ndue; i++) {
        bool dead;
        st = is_dead(l, c.due[i].id, c.due[i].size, now, &dead, err);
        c.keys += dead;
        c.expires += dead && c.due[i].expires;
    }
    mem_free(c.due);
    *ret_keys = c.keys;
    *ret_expires = c.expires;
    return st;
}

enum status merge_count_keys(const struct layers *l, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                             struct error *err)
{
    if (!has_keys(l))
        return store_count_keys(l->tables, db, ret_keys, ret_expires, err);
    struct key_count c = {.db = db};
    struct key_scan q = {.order = KEYS_BY_KEY, .db = db, .limit = UINT32_MAX};
    enum status st = merge_scan_keys(l, &q, count_key, &c, err);
    *ret_keys = c.keys;
    *ret_expires = c.expires;
    return st;
}
