/* Reading rows from a database server: points and ranges. A call is one round trip, whatever the number of
   rows it asks for; long scans take one for each page. Rows are collected before they are handed out, so that
   a callback may take its time and the connection is free. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "store/remote_names.h"
#include "store/remote_store.h"

#define PAGE_ROWS 1000

/* What an answer brought, copied. */
struct found {
    struct rstore *store;
    enum item_table table;
    struct key_row *keys;
    struct item_row *items;
    size_t n, cap;
    bool long_names; /* any of them has one */
};

static struct slice copy(struct found *f, struct slice s)
{
    return arena_copy(&f->store->arena, s);
}

static struct slice take_name(struct found *f, struct slice index, struct slice rest)
{
    if (rest.n == 0)
        return copy(f, index);
    f->long_names = true;
    return remote_name_whole(&f->store->arena, index, rest);
}

static enum status take_key(void *arg, const struct remote_row *row)
{
    struct found *f = arg;
    VEC_PUSH(f->keys, f->n, f->cap) = (struct key_row){
        .seq = remote_i64(row, 0),
        .db = (uint32_t)remote_i64(row, 1),
        .key = take_name(f, remote_bytes(row, 2), remote_bytes(row, 3)),
        .type = (enum row_type)remote_i64(row, 4),
        .id = remote_i64(row, 5),
        .size = remote_i64(row, 6),
        .first = remote_i64(row, 7),
        .version = remote_i64(row, 8),
        .expire_at = remote_i64(row, 9),
        .value = copy(f, remote_bytes(row, 10)),
    };
    return ST_OK;
}

static enum status take_item(void *arg, const struct remote_row *row)
{
    struct found *f = arg;
    enum item_table t = f->table;
    struct item_row r = {.ref = {.table = t, .id = remote_i64(row, 0)}};
    if (item_named(t))
        r.ref.name = take_name(f, remote_bytes(row, 1), remote_bytes(row, 2));
    else
        r.ref.pos = remote_i64(row, 1);
    if (item_valued(t))
        r.value = copy(f, remote_bytes(row, 3));
    if (item_scored(t))
        r.score = row->binary ? remote_double(row, 4) : score_of_bits(remote_i64(row, 4));
    if (t == ITEM_HASH)
        r.expire_at = remote_i64(row, 5);
    if (item_counted(t))
        r.ord = remote_i64(row, 6);
    VEC_PUSH(f->items, f->n, f->cap) = r;
    return ST_OK;
}

static void release(struct found *f)
{
    mem_free(f->keys);
    mem_free(f->items);
    arena_reset(&f->store->arena);
}

/* ---- points ---- */

static int by_db_and_key(const void *a, const void *b)
{
    const struct key_row *x = a, *y = b;
    if (x->db != y->db)
        return x->db < y->db ? -1 : 1;
    return slice_cmp(x->key, y->key);
}

static int by_ref(const void *a, const void *b)
{
    return refs_compare(&((const struct item_row *)a)->ref, &((const struct item_row *)b)->ref);
}

static void ask_keys(struct rstore *s, const struct key_ref *refs, size_t n, struct found *f)
{
    if (n == 1) {
        struct param p[] = {param_i64(refs[0].db), param_bytes(remote_name_index(&s->arena, refs[0].key))};
        struct request r = {.text = rtext(s, R_GET_KEY), .params = p, .nparams = 2, .fn = take_key, .arg = f};
        remote_add(s->conn, &r);
        return;
    }
    int64_t *dbs = arena_alloc(&s->arena, n * sizeof *dbs);
    struct slice *names = arena_alloc(&s->arena, n * sizeof *names);
    for (size_t i = 0; i < n; i++) {
        dbs[i] = refs[i].db;
        names[i] = remote_name_index(&s->arena, refs[i].key);
    }
    struct param p[] = {param_i64s(dbs), param_slices(names)};
    struct request r = {
        .text = rtext(s, R_GET_KEYS), .params = p, .nparams = 2, .nrows = n, .fn = take_key, .arg = f};
    remote_add(s->conn, &r);
}

enum status rread_get_keys(struct store *base, const struct key_ref *refs, size_t n, store_key_fn *fn,
                           void *arg, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct found f = {.store = s};
    enum status st = n ? rstore_connected(s, err) : ST_OK;
    if (st != ST_OK || n == 0)
        return st;
    ask_keys(s, refs, n, &f);
    st = rstore_run(s, err);
    if (st == ST_OK && f.n > 1)
        qsort(f.keys, f.n, sizeof *f.keys, by_db_and_key);
    for (size_t i = 0; st == ST_OK && i < n && f.n; i++) {
        struct key_row want = {.db = refs[i].db, .key = refs[i].key};
        const struct key_row *row = bsearch(&want, f.keys, f.n, sizeof *f.keys, by_db_and_key);
        if (row)
            st = fn(arg, row);
    }
    release(&f);
    return st;
}

static void ask_items(struct rstore *s, const struct item_ref *refs, size_t n, enum item_table table,
                      struct found *f)
{
    int64_t *ids = arena_alloc(&s->arena, n * sizeof *ids);
    int64_t *places = arena_alloc(&s->arena, n * sizeof *places);
    struct slice *names = arena_alloc(&s->arena, n * sizeof *names);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (refs[i].table != table)
            continue;
        ids[k] = refs[i].id;
        places[k] = refs[i].pos;
        names[k++] = remote_name_index(&s->arena, refs[i].name);
    }
    if (k == 0)
        return;
    struct param p[] = {param_i64s(ids), item_named(table) ? param_slices(names) : param_i64s(places)};
    struct request r = {
        .text = rtext_get_items(s, table), .params = p, .nparams = 2, .nrows = k, .fn = take_item, .arg = f};
    remote_add(s->conn, &r);
}

enum status rread_get_items(struct store *base, const struct item_ref *refs, size_t n, store_item_fn *fn,
                            void *arg, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct found f[ITEM_TABLES];
    enum status st = n ? rstore_connected(s, err) : ST_OK;
    if (st != ST_OK || n == 0)
        return st;
    for (int t = 0; t < ITEM_TABLES; t++) {
        f[t] = (struct found){.store = s, .table = (enum item_table)t};
        ask_items(s, refs, n, (enum item_table)t, &f[t]);
    }
    st = rstore_run(s, err);
    for (int t = 0; t < ITEM_TABLES; t++)
        if (f[t].n > 1)
            qsort(f[t].items, f[t].n, sizeof *f[t].items, by_ref);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        const struct found *of = &f[refs[i].table];
        struct item_row want = {.ref = refs[i]};
        const struct item_row *row =
            of->n ? bsearch(&want, of->items, of->n, sizeof *of->items, by_ref) : NULL;
        if (row)
            st = fn(arg, row);
    }
    for (int t = 0; t < ITEM_TABLES; t++)
        release(&f[t]);
    return st;
}

/* ---- scans of keys ---- */

/* The first byte string behind all that start with prefix: false when there is none. */
static bool prefix_end(struct arena *a, struct slice prefix, struct slice *ret)
{
    size_t n = prefix.n;
    while (n > 0 && (unsigned char)prefix.p[n - 1] == 0xff)
        n--;
    if (n == 0)
        return false;
    char *p = arena_alloc(a, n);
    memcpy(p, prefix.p, n);
    p[n - 1] = (char)((unsigned char)p[n - 1] + 1);
    *ret = slice_of(p, n);
    return true;
}

static enum status read_keys(struct rstore *s, const struct key_scan *q, uint32_t skip, struct found *f,
                             struct error *err)
{
    struct key_scan k = *q;
    struct slice from = k.prefix.p ? k.prefix : SLICE(""), end = SLICE("");
    bool has_end = false, by_key = k.order == KEYS_BY_KEY;
    if (by_key) {
        if (k.has_after && slice_cmp(k.after, k.prefix) >= 0)
            from = k.after;
        else
            k.has_after = false; /* the prefix begins later */
        has_end = prefix_end(&s->arena, k.prefix, &end);
    }
    bool exact = f->long_names || from.n > NAME_LEFT || end.n > NAME_LEFT;
    for (;;) {
        struct param p[] = {param_i64(k.db),  by_key ? param_bytes(from) : param_i64(k.seq_below),
                            param_bytes(end), param_i64(k.limit),
                            param_i64(k.now), param_i64(skip)};
        struct request r = {.text = rtext_scan_keys(s, &k, has_end, by_key && exact),
                            .params = p,
                            .nparams = 6,
                            .fn = take_key,
                            .arg = f};
        f->n = 0;
        remote_add(s->conn, &r);
        enum status st = rstore_run(s, err);
        if (st != ST_OK || !by_key || exact || !f->long_names)
            return st;
        exact = true;
    }
}

enum status rread_scan_keys(struct store *base, const struct key_scan *q, store_key_fn *fn, void *arg,
                            struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct key_scan page = *q;
    struct buf last = {0};
    bool long_names = false;
    uint32_t left = q->limit, skip = 0;
    enum status st = rstore_connected(s, err);
    while (st == ST_OK && left > 0) {
        struct found f = {.store = s, .long_names = long_names};
        page.limit = left < PAGE_ROWS ? left : PAGE_ROWS;
        st = read_keys(s, &page, skip, &f, err);
        for (size_t i = 0; st == ST_OK && i < f.n; i++)
            st = fn(arg, &f.keys[i]);
        left -= (uint32_t)f.n;
        if (f.n < page.limit)
            left = 0;
        if (st == ST_OK && left > 0 && page.order == KEYS_BY_SEQ_DESC) {
            page.seq_below = f.keys[f.n - 1].seq;
        } else if (st == ST_OK && left > 0 && page.order == KEYS_BY_KEY) {
            last.len = 0;
            buf_add_slice(&last, f.keys[f.n - 1].key);
            page.has_after = true;
            page.after = buf_slice(&last);
        } else {
            skip += page.limit;
        }
        long_names = f.long_names;
        release(&f);
    }
    buf_release(&last);
    return st;
}

/* ---- scans of items ---- */

/* Where a page goes on: behind this row. */
struct place {
    bool given;
    int64_t number;
    double score;
    struct buf name;
};

static struct slice bound(bool given, struct slice name)
{
    return given && name.p ? name : SLICE("");
}

static enum status read_items(struct rstore *s, const struct item_scan *q, const struct place *after,
                              struct found *f, struct error *err)
{
    bool by_score = q->order == ITEMS_BY_SCORE, named = by_score || q->order == ITEMS_BY_NAME;
    bool exact = named && (f->long_names || bound(q->has_min, q->min_name).n > NAME_LEFT ||
                           bound(q->has_max, q->max_name).n > NAME_LEFT);
    struct slice name = after->given ? buf_slice(&after->name) : SLICE("");
    for (;;) {
        struct param p[9] = {
            param_i64(q->id),
            param_i64(q->has_min ? q->min : INT64_MIN),
            param_i64(q->max),
            param_i64(q->limit),
            param_bytes(bound(q->has_min, q->min_name)),
            param_bytes(bound(q->has_max, q->max_name)),
            param_i64(q->skip),
            param_i64(after->number),
            param_bytes(name.p ? name : SLICE("")),
        };
        if (by_score) {
            p[1] = rstore_score(s, q->has_min ? q->min_score : -INFINITY);
            p[2] = rstore_score(s, q->max_score);
            p[7] = rstore_score(s, after->score);
        } else if (named) {
            p[1] = p[4];
            p[2] = p[5];
        }
        struct request r = {.text = rtext_scan_items(s, q, after->given, exact),
                            .params = p,
                            .nparams = 9,
                            .fn = take_item,
                            .arg = f};
        f->n = 0;
        remote_add(s->conn, &r);
        enum status st = rstore_run(s, err);
        if (st != ST_OK || !named || exact || !f->long_names)
            return st;
        exact = true;
    }
}

static void go_on_behind(struct place *p, const struct item_scan *q, const struct item_row *row)
{
    p->given = true;
    p->number = q->order == ITEMS_BY_ORD ? row->ord : row->ref.pos;
    p->score = row->score;
    p->name.len = 0;
    buf_add_slice(&p->name, row->ref.name);
}

enum status rread_scan_items(struct store *base, const struct item_scan *q, store_item_fn *fn, void *arg,
                             struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct item_scan page = *q;
    struct place after = {0};
    bool long_names = false;
    uint32_t left = q->limit;
    enum status st = rstore_connected(s, err);
    while (st == ST_OK && left > 0) {
        struct found f = {.store = s, .table = q->table, .long_names = long_names};
        page.limit = left < PAGE_ROWS ? left : PAGE_ROWS;
        st = read_items(s, &page, &after, &f, err);
        for (size_t i = 0; st == ST_OK && i < f.n; i++)
            st = fn(arg, &f.items[i]);
        left -= (uint32_t)f.n;
        if (f.n < page.limit) {
            left = 0;
        } else if (page.order == ITEMS_BY_EXPIRY) { /* moments are not unique */
            page.skip += page.limit;
        } else if (f.n > 0) {
            page.skip = 0;
            go_on_behind(&after, &page, &f.items[f.n - 1]);
        }
        long_names = f.long_names;
        release(&f);
    }
    buf_release(&after.name);
    return st;
}

/* ---- counts ---- */

enum status rread_two(void *arg, const struct remote_row *row)
{
    int64_t *two = arg;
    two[0] = remote_i64(row, 0);
    two[1] = remote_i64(row, 1);
    return ST_OK;
}

enum status rread_count_items(struct store *base, const struct item_scan *q, int64_t *ret, struct error *err)
{
    struct rstore *s = rstore_of(base);
    bool by_score = q->order == ITEMS_BY_SCORE;
    int64_t two[2] = {0, 0};
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    assert(q->has_min && q->has_max && (by_score ? q->table == ITEM_ZSET : q->table == ITEM_HASH));
    struct slice min = bound(true, q->min_name), max = bound(true, q->max_name);
    struct param p[6] = {param_i64(q->id), param_i64(q->min), param_i64(q->max),
                         param_i64(0),     param_bytes(min),  param_bytes(max)};
    struct request r = {.params = p, .nparams = 3, .fn = rread_two, .arg = two};
    if (by_score) {
        bool one = !(q->min_score < q->max_score);
        p[1] = rstore_score(s, q->min_score);
        p[2] = rstore_score(s, q->max_score);
        r.text = rtext_count_scores(s, one, min.n > NAME_LEFT || max.n > NAME_LEFT);
        r.nparams = 6;
    } else {
        r.text = rtext(s, R_COUNT_FIELDS);
    }
    remote_add(s->conn, &r);
    st = rstore_run(s, err);
    *ret = two[0];
    return st;
}

/* Two counts in one round trip. */
static enum status count_twice(struct rstore *s, enum remote_statement a, enum remote_statement b,
                               const struct param *p, int64_t ret[4], struct error *err)
{
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, a), .params = p, .nparams = 2, .fn = rread_two, .arg = ret};
    remote_add(s->conn, &r);
    r.text = rtext(s, b);
    r.arg = ret + 2;
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

enum status rread_count_dead(struct store *base, uint32_t db, int64_t now, int64_t *ret_keys,
                             int64_t *ret_expires, struct error *err)
{
    const struct param p[] = {param_i64(db), param_i64(now)};
    int64_t n[4] = {0};
    enum status st = count_twice(rstore_of(base), R_COUNT_EXPIRED, R_COUNT_DEAD_HASHES, p, n, err);
    *ret_keys = n[0] + n[2];
    *ret_expires = n[0] + n[3];
    return st;
}

enum status rread_count_keys(struct store *base, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                             struct error *err)
{
    const struct param p[] = {param_i64(db), param_i64(0)};
    int64_t n[4] = {0};
    enum status st = count_twice(rstore_of(base), R_COUNT_KEYS, R_COUNT_EXPIRES, p, n, err);
    *ret_keys = n[0] - n[3];
    *ret_expires = n[2];
    return st;
}
