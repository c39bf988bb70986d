/* Reading rows from a database server: points and ranges. A call is one round trip, whatever the number of
   rows it asks for; long scans take one for each page. Rows are collected before they are handed out, so that
   a callback may take its time and the connection is free. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_names.h"
#include "store/remote/remote_session.h"

static struct slice copy(struct rfound *f, struct slice s)
{
    return arena_copy(&f->store->arena, s);
}

static struct slice take_name(struct rfound *f, struct slice index, struct slice rest)
{
    if (rest.n == 0)
        return copy(f, index);
    return remote_name_whole(&f->store->arena, index, rest);
}

enum status rread_take_key(void *arg, const struct remote_row *row)
{
    struct rfound *f = arg;
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
        .numbers = remote_i64(row, 10),
        .value = copy(f, remote_bytes(row, 11)),
    };
    if (f->store->galera && f->store->galera->guarded)
        rgalera_saw(f->store, f->keys[f->n - 1].seq, f->keys[f->n - 1].version);
    return ST_OK;
}

enum status rread_take_item(void *arg, const struct remote_row *row)
{
    struct rfound *f = arg;
    enum item_table t = f->table;
    struct item_row r = {.ref = {.table = t, .id = remote_i64(row, 0)}};
    if (item_named(t))
        r.ref.name = take_name(f, remote_bytes(row, 1), remote_bytes(row, 2));
    else
        r.ref.pos = remote_i64(row, 1);
    if (item_has(t, COLUMN_VALUE))
        r.value = copy(f, remote_bytes(row, 3));
    if (item_has(t, COLUMN_SCORE))
        r.score = row->binary ? remote_double(row, 4) : score_of_bits(remote_i64(row, 4));
    if (item_has(t, COLUMN_EXPIRY))
        r.expire_at = remote_i64(row, 5);
    if (item_has(t, COLUMN_ORD))
        r.ord = remote_i64(row, 6);
    VEC_PUSH(f->items, f->n, f->cap) = r;
    return ST_OK;
}

void rread_release(struct rfound *f)
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

static void ask_keys(struct rstore *s, const struct key_ref *refs, size_t n, struct rfound *f)
{
    bool locks = s->shared && (s->asked == TXN_WRITE || s->asked == TXN_LAZY);
    if (locks)
        rshared_lock_keys(s, refs, n);
    if (n == 1 && !locks) {
        struct param p[] = {param_i64(refs[0].db), param_bytes(remote_name_index(&s->arena, refs[0].key))};
        struct request r = {
            .text = rtext(s, R_GET_KEY), .params = p, .nparams = 2, .fn = rread_take_key, .arg = f};
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
    struct request r = {.text = rtext(s, locks ? R_GET_KEYS_LOCKED : R_GET_KEYS),
                        .params = p,
                        .nparams = 2,
                        .nrows = n,
                        .fn = rread_take_key,
                        .arg = f};
    remote_add(s->conn, &r);
    if (locks)
        rshared_locked(s);
}

enum status rread_get_keys(struct store *base, const struct key_ref *refs, size_t n, store_key_fn *fn,
                           void *arg, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct rfound f = {.store = s};
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
    rread_release(&f);
    return st;
}

/* Where the seqs of rows go that come in the order in which they were asked for. */
struct seqs {
    const struct key_ref *refs;
    int64_t *ret;
    size_t n, at;
};

static enum status take_seq(void *arg, const struct key_row *k)
{
    struct seqs *q = arg;
    while (q->at < q->n && !(q->refs[q->at].db == k->db && slice_eq(q->refs[q->at].key, k->key)))
        q->at++;
    if (q->at < q->n)
        q->ret[q->at] = k->seq;
    return ST_OK;
}

enum status rread_get_seqs(struct store *base, const struct key_ref *refs, size_t n, int64_t *ret,
                           struct error *err)
{
    struct seqs q = {.refs = refs, .ret = ret, .n = n};
    memset(ret, 0, n * sizeof *ret);
    return rread_get_keys(base, refs, n, take_seq, &q, err);
}

static void ask_items(struct rstore *s, const struct item_ref *refs, size_t n, enum item_table table,
                      struct rfound *f)
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
    struct request r = {.text = rtext_get_items(s, table),
                        .params = p,
                        .nparams = 2,
                        .nrows = k,
                        .fn = rread_take_item,
                        .arg = f};
    remote_add(s->conn, &r);
}

enum status rread_get_items(struct store *base, const struct item_ref *refs, size_t n, store_item_fn *fn,
                            void *arg, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct rfound f[ITEM_TABLES];
    enum status st = n ? rstore_connected(s, err) : ST_OK;
    if (st != ST_OK || n == 0)
        return st;
    for (int t = 0; t < ITEM_TABLES; t++) {
        f[t] = (struct rfound){.store = s, .table = (enum item_table)t};
        ask_items(s, refs, n, (enum item_table)t, &f[t]);
    }
    st = rstore_run(s, err);
    for (int t = 0; t < ITEM_TABLES; t++)
        if (f[t].n > 1)
            qsort(f[t].items, f[t].n, sizeof *f[t].items, by_ref);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        const struct rfound *of = &f[refs[i].table];
        struct item_row want = {.ref = refs[i]};
        const struct item_row *row =
            of->n ? bsearch(&want, of->items, of->n, sizeof *of->items, by_ref) : NULL;
        if (row)
            st = fn(arg, row);
    }
    for (int t = 0; t < ITEM_TABLES; t++)
        rread_release(&f[t]);
    return st;
}

/* By id, and in the order that a collection has. */
static int by_id_and_number(const void *a, const void *b)
{
    const struct item_row *x = a, *y = b;
    if (x->ref.id != y->ref.id)
        return x->ref.id < y->ref.id ? -1 : 1;
    int64_t m = x->ref.pos, n = y->ref.pos;
    if (item_named(x->ref.table)) {
        m = x->ord;
        n = y->ord;
    }
    return (m > n) - (m < n);
}

enum status rread_whole(struct store *base, enum item_table table, const int64_t *ids, size_t n,
                        store_item_fn *fn, void *arg, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct rfound f = {.store = s, .table = table};
    enum status st = n && !rloose_reads_items(s) ? rstore_connected(s, err) : ST_OK;
    if (st != ST_OK || n == 0)
        return st;
    struct param p[] = {param_i64s(ids)};
    struct request r = {.text = rtext_read_whole(s, table),
                        .params = p,
                        .nparams = 1,
                        .nrows = n,
                        .fn = rread_take_item,
                        .arg = &f};
    remote_add(s->conn, &r);
    st = rstore_run(s, err);
    if (f.n > 1)
        qsort(f.items, f.n, sizeof *f.items, by_id_and_number);
    for (size_t i = 0; st == ST_OK && i < f.n; i++)
        st = fn(arg, &f.items[i]);
    rread_release(&f);
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
    assert(q->has_min && q->has_max);
    struct slice min = q->min_name.p ? q->min_name : SLICE(""), max = q->max_name.p ? q->max_name : SLICE("");
    struct param p[6] = {param_i64(q->id), param_i64(q->min), param_i64(q->max),
                         param_i64(0),     param_bytes(min),  param_bytes(max)};
    if (by_score) {
        p[1] = rstore_score(s, q->min_score);
        p[2] = rstore_score(s, q->max_score);
    }
    struct request r = {.text = rtext_count_items(s, q, min.n > NAME_LEFT || max.n > NAME_LEFT),
                        .params = p,
                        .nparams = by_score ? 6 : 3,
                        .fn = rread_two,
                        .arg = two};
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

struct id_list {
    int64_t *ids;
    size_t n;
};

static enum status take_id(void *arg, const struct remote_row *row)
{
    struct id_list *l = arg;
    l->ids[l->n++] = remote_i64(row, 0);
    return ST_OK;
}

enum status rread_due_rows(struct store *base, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                           size_t *ret_n, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct id_list found = {.n = 0};
    const struct param p[] = {param_i64(after), param_i64(now), param_i64((int64_t)max)};
    struct request r = {
        .text = rtext(s, R_DUE_ROWS), .params = p, .nparams = 3, .fn = take_id, .arg = &found};
    enum status st = rstore_connected(s, err);
    found.ids = ret_ids;
    if (st == ST_OK) {
        remote_add(s->conn, &r);
        st = rstore_run(s, err);
    }
    *ret_n = found.n;
    return st;
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
