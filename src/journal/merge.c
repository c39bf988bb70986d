/* Reading through memory.

   A scan runs through the tables; before each of their rows, rows of memory that come earlier are handed out,
   and a row of the tables only if memory does not know better. What memory has nothing of is passed on as it
   is.

   A table in memory may have range deletes: they hide what is older than it, the frozen table and the tables,
   and a scan in the order of the ranges goes on behind the far end of one that it comes to.

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

/* The newest state of a row; false: memory knows nothing of it. */
static bool find_key(const struct layers *l, uint32_t db, struct slice key, struct mem_key *ret)
{
    for (int i = 0; i < LAYERS; i++)
        if (l->mem[i] && memtable_key(l->mem[i], db, key, ret))
            return true;
    return false;
}

/* The range of one of the first n layers that hides a row of what is older, or NULL. */
static const struct item_range *cover(const struct layers *l, int n, const struct item_row *row)
{
    const struct item_range *r = NULL;
    for (int i = 0; i < n && !r; i++)
        r = l->mem[i] ? memtable_covers(l->mem[i], row) : NULL;
    return r;
}

static bool find_item(const struct layers *l, const struct item_ref *ref, struct mem_item *ret)
{
    for (int i = 0; i < LAYERS; i++) {
        if (l->mem[i] && memtable_item(l->mem[i], ref, ret)) {
            ret->gone = ret->gone || cover(l, i, &ret->row);
            return true;
        }
    }
    return false;
}

/* Whether any of the first n layers knows of it. */
static bool knows_key(const struct layers *l, int n, uint32_t db, struct slice key)
{
    for (int i = 0; i < n; i++)
        if (l->mem[i] && memtable_has_key(l->mem[i], db, key))
            return true;
    return false;
}

static bool knows_item(const struct layers *l, int n, const struct item_ref *ref)
{
    for (int i = 0; i < n; i++)
        if (l->mem[i] && memtable_has_item(l->mem[i], ref))
            return true;
    return false;
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
        struct mem_key k;
        bool known = find_key(p->l, ref->db, ref->key, &k);
        if (!known && row && row->db == ref->db && slice_eq(row->key, ref->key))
            return ST_OK;
        enum status st = known ? hand_point(p, &k.row) : ST_OK;
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
        if (!knows_key(l, LAYERS, refs[i].db, refs[i].key))
            missing[k++] = refs[i];
    enum status st =
        k ? store_get_keys(l->tables, missing, k, k == n ? hand_point : point_key, &p, err) : ST_OK;
    if (missing != few)
        mem_free(missing);
    return status_of_walk(st == ST_OK && k < n && !p.stopped ? keys_up_to(&p, NULL) : st);
}

/* An item's row, which memory does not hide if it is the tables'. */
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
        struct mem_item item;
        bool known = find_item(p->l, ref, &item);
        if (!known && row && refs_compare(&row->ref, ref) == 0)
            return ST_OK;
        enum status st = known && !item.gone ? hand_item_point(p, &item.row) : ST_OK;
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
    return st == ST_OK && !cover(p->l, LAYERS, row) ? hand_item_point(p, row) : st;
}

static bool has_ranges(const struct layers *l)
{
    bool any = false;
    for (int i = 0; i < LAYERS; i++)
        any |= l->mem[i] && memtable_has_ranges(l->mem[i]);
    return any;
}

enum status merge_get_items(const struct layers *l, const struct item_ref *refs, size_t n, store_item_fn *fn,
                            void *arg, struct error *err)
{
    struct points p = {.l = l, .items = refs, .n = n, .item_fn = fn, .arg = arg};
    struct item_ref few[FEW_POINTS], *missing = n > FEW_POINTS ? mem_alloc(n * sizeof *missing) : few;
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (!knows_item(l, LAYERS, &refs[i]))
            missing[k++] = refs[i];
    bool plain = k == n && !has_ranges(l);
    enum status st =
        k ? store_get_items(l->tables, missing, k, plain ? fn : point_item, plain ? arg : &p, err) : ST_OK;
    if (missing != few)
        mem_free(missing);
    return status_of_walk(st == ST_OK && k < n && !p.stopped ? items_up_to(&p, NULL) : st);
}

/* ---- scans of items ---- */

struct item_merge {
    const struct layers *l;
    const struct item_scan *q;
    struct mem_walk walks[LAYERS];
    struct mem_item heads[LAYERS]; /* the next row of each ... */
    bool has_head[LAYERS];         /* ... if there is one */
    uint32_t skip, left;
    bool enough;
    store_item_fn *fn;
    void *arg;
    const struct item_range *passes; /* the tables' rows have come to this range, which hides them */
    struct buf behind;               /* the first name behind it */
    /* A gap may be learnt: rows of the tables that were passed before the first that lives, and that one. */
    uint32_t passed;
    bool lives;
    struct item_row first;
    struct buf name; /* its name */
};

/* Goes on to the next row of a layer that no newer one knows of, or hides. */
static void next_item(struct item_merge *g, int layer)
{
    struct mem_item *head = &g->heads[layer];
    do
        g->has_head[layer] = mem_walk_item(&g->walks[layer], head);
    while (g->has_head[layer] && (knows_item(g->l, layer, &head->row.ref) || cover(g->l, layer, &head->row)));
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
            if (g->has_head[i] &&
                (first < 0 || compare_items(g->q, &g->heads[i].row, &g->heads[first].row) < 0))
                first = i;
        }
        if (first < 0 || (row && compare_items(g->q, &g->heads[first].row, row) > 0))
            return ST_OK;
        struct item_row own = g->heads[first].row;
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
    const struct item_range *hides = st == ST_OK ? cover(g->l, LAYERS, row) : NULL;
    if (st != ST_OK || hides || knows_item(g->l, LAYERS, &row->ref)) {
        g->passed += !g->lives;
        g->passes = hides && hides->order == g->q->order ? hides : NULL;
        return g->passes ? ST_STOP : st;
    }
    return hand_item(g, row);
}

/* What is left of a scan of the tables behind a range that it has come to; false: nothing. */
static bool go_behind(struct item_merge *g, struct item_scan *q)
{
    const struct item_range *r = g->passes;
    if (q->order == ITEMS_BY_POS) {
        bool last = q->reverse ? r->min == INT64_MIN : r->max == INT64_MAX;
        *(q->reverse ? &q->max : &q->min) = last ? 0 : q->reverse ? r->min - 1 : r->max + 1;
        *(q->reverse ? &q->has_max : &q->has_min) = true;
        return !last && (!q->has_min || !q->has_max || q->min <= q->max);
    }
    if (q->reverse) {
        q->has_max = q->below_max = true;
        q->max_score = r->min_score;
        q->max_name = r->min_name;
        return true;
    }
    g->behind.len = 0; /* nothing is between a name and the same with a NUL behind it */
    buf_add(&g->behind, r->max_name.p, r->max_name.n);
    buf_add(&g->behind, "", 1);
    q->has_min = true;
    q->min_score = r->max_score;
    q->min_name = buf_slice(&g->behind);
    return true;
}

/* The tables' part of a scan, from range to range. */
static enum status scan_tables(struct item_merge *g, struct item_scan *q, struct error *err)
{
    for (;;) {
        g->passes = NULL;
        enum status st = store_scan_items(g->l->tables, q, item_of_tables, g, err);
        if (st != ST_OK || !g->passes || !go_behind(g, q))
            return st;
    }
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
    struct mem_item item;
    return find_item(p->l, &ref, &item) && (item.gone || item.row.score != score);
}

/* The part of the tables that a scan has to see: without what is known to be a gap. False: none of it. */
static bool narrow(const struct layers *l, struct item_scan *q)
{
    struct place_of p = {l, q->id};
    return !l->gaps || q->order != ITEMS_BY_SCORE || gaps_narrow(l->gaps, q, has_left, &p);
}

/* Whether ranges may hide rows of the tables here and there in a scan, rather than one stretch after the
   other. */
static bool may_scatter(const struct layers *l, const struct item_scan *q)
{
    return q->order != (item_named(q->table) ? ITEMS_BY_SCORE : ITEMS_BY_POS) && has_ranges(l);
}

static bool knows_items(const struct layers *l, const struct item_scan *q)
{
    bool known = false;
    for (int i = 0; i < LAYERS; i++)
        known |= l->mem[i] && memtable_has_items(l->mem[i], q->table, q->id);
    return known;
}

/* Rows of the tables that have certain numbers, but for those of which memory knows better. */
struct numbered {
    const struct layers *l;
    struct arena arena;
    struct item_row *rows;
    size_t n;
};

static enum status keep_numbered(void *arg, const struct item_row *row)
{
    struct numbered *n = arg;
    if (knows_item(n->l, LAYERS, &row->ref) || cover(n->l, LAYERS, row))
        return ST_OK;
    struct item_row *kept = &n->rows[n->n++];
    *kept = *row;
    kept->ref.name = arena_copy(&n->arena, row->ref.name);
    kept->value = arena_copy(&n->arena, row->value);
    return ST_OK;
}

/* The item with one number, from memory or of those. */
static enum status hand_numbered(const struct numbered *n, const struct item_scan *one, store_item_fn *fn,
                                 void *arg)
{
    struct item_merge g = {.l = n->l, .q = one, .left = UINT32_MAX, .fn = fn, .arg = arg};
    for (int i = 0; i < LAYERS; i++) {
        if (n->l->mem[i]) {
            memtable_walk_items(n->l->mem[i], one, &g.walks[i]);
            next_item(&g, i);
        }
    }
    enum status st = items_before(&g, NULL);
    for (size_t i = 0; st == ST_OK && !g.lives && i < n->n; i++)
        if (n->rows[i].ord == one->min)
            st = hand_item(&g, &n->rows[i]);
    return st;
}

static enum status scan_numbers(const struct layers *l, const struct item_scan *q, store_item_fn *fn,
                                void *arg, struct error *err)
{
    struct numbered n = {.l = l};
    n.rows = arena_alloc(&n.arena, q->nords * sizeof *n.rows);
    enum status st = store_scan_items(l->tables, q, keep_numbered, &n, err);
    for (uint32_t i = 0; st == ST_OK && i < q->nords; i++) {
        struct item_scan one = item_scan_at(q, i);
        st = hand_numbered(&n, &one, fn, arg);
    }
    arena_release(&n.arena);
    return status_of_walk(st);
}

enum status merge_scan_items(const struct layers *l, const struct item_scan *q, store_item_fn *fn, void *arg,
                             struct error *err)
{
    if (!knows_items(l, q))
        return store_scan_items(l->tables, q, fn, arg, err);
    if (q->nords > 1)
        return scan_numbers(l, q, fn, arg, err);
    struct item_scan one;
    if (q->nords) {
        one = item_scan_at(q, 0);
        q = &one;
    }
    if (q->limit == 0)
        return ST_OK;
    struct item_merge g = {.l = l, .q = q, .skip = q->skip, .left = q->limit, .fn = fn, .arg = arg};
    size_t known = 0;
    for (int i = 0; i < LAYERS; i++) {
        if (l->mem[i]) {
            known += memtable_count_items(l->mem[i], q->table, q->id);
            memtable_walk_items(l->mem[i], q, &g.walks[i]);
            next_item(&g, i);
        }
    }
    struct item_scan all = *q;
    all.skip = 0;
    all.limit = may_scatter(l, q) ? UINT32_MAX : table_limit(q->skip, q->limit, known);
    enum status st = narrow(l, &all) ? scan_tables(&g, &all, err) : ST_OK;
    st = status_of_walk(st == ST_OK && !g.enough ? items_before(&g, NULL) : st);
    if (st == ST_OK && may_learn(&g))
        gaps_learn(l->gaps, q, g.lives ? &g.first : NULL);
    buf_release(&g.name);
    buf_release(&g.behind);
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
    if (!knows_items(l, q))
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
    const char **names; /* where they are */
    size_t n, cap, at;
};

struct key_merge {
    const struct layers *l;
    const struct key_scan *q;
    struct mem_walk walks[LAYERS];
    struct mem_key heads[LAYERS];
    bool has_head[LAYERS];
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

static bool next_key(const struct layers *l, int layer, struct mem_walk *w, struct mem_key *ret)
{
    bool any;
    do
        any = mem_walk_key(w, ret);
    while (any && knows_key(l, layer, ret->row.db, ret->row.key));
    return any;
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
    struct mem_key k;
    struct key_scan due = {.order = KEYS_DUE, .now = q->now};
    memtable_walk_keys(l->mem[layer], &due, &w);
    if (!mem_walk_key(&w, &k))
        return ST_OK;
    memtable_walk_keys(l->mem[layer], q, &w);
    for (uint32_t i = 0; i < q->limit; i++) {
        if (!next_key(l, layer, &w, &k))
            break;
        bool dead = may_be_dead(&k.row, q->now);
        enum status st = dead ? is_dead(l, k.row.id, k.row.size, q->now, &dead, err) : ST_OK;
        if (st != ST_OK)
            return st;
        if (dead)
            VEC_PUSH(d->names, d->n, d->cap) = k.row.key.p;
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
    struct dead *d = &g->dead[layer];
    struct key_row own = g->heads[layer].row;
    if (!g->q->with_value)
        own.value = SLICE("");
    if (d->at < d->n && d->names[d->at] == own.key.p) {
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
            if (g->has_head[i] &&
                (first < 0 || compare_keys(g->q, &g->heads[i].row, &g->heads[first].row) < 0))
                first = i;
        }
        if (first < 0 || (row && compare_keys(g->q, &g->heads[first].row, row) > 0))
            return ST_OK;
        enum status st = hand_memory_key(g, first);
        if (st != ST_OK)
            return st;
        g->has_head[first] = next_key(g->l, first, &g->walks[first], &g->heads[first]);
    }
}

static enum status key_of_tables(void *arg, const struct key_row *row)
{
    struct key_merge *g = arg;
    enum status st = keys_before(g, row);
    if (st != ST_OK || knows_key(g->l, LAYERS, row->db, row->key))
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
        g->has_head[i] = next_key(l, i, &g->walks[i], &g->heads[i]);
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
        mem_free(g.dead[i].names);
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
