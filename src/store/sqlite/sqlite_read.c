/* Reading rows: points and ranges. Every statement is found once, used and reset; the row handed to a
   callback borrows SQLite's memory, so a callback must not call the store. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/item_tables.h"
#include "store/sqlite/sqlite_store.h"

static struct key_row read_key(struct sqlite_stmt *q)
{
    return (struct key_row){
        .seq = sqlite_column_i64(q, 0),
        .db = (uint32_t)sqlite_column_i64(q, 1),
        .key = sqlite_column_blob(q, 2),
        .type = (enum row_type)sqlite_column_i64(q, 3),
        .id = sqlite_column_i64(q, 4),
        .size = sqlite_column_i64(q, 5),
        .first = sqlite_column_i64(q, 6),
        .version = sqlite_column_i64(q, 7),
        .expire_at = sqlite_column_i64(q, 8),
        .numbers = sqlite_column_i64(q, 9),
        .value = sqlite_column_blob(q, 10),
    };
}

static struct item_row read_item(struct sqlite_stmt *q, enum item_table table, int64_t id)
{
    struct item_row r = {.ref = {.table = table, .id = id}};
    if (item_named(table))
        r.ref.name = sqlite_column_blob(q, 0);
    else
        r.ref.pos = sqlite_column_i64(q, 0);
    if (item_has(table, COLUMN_VALUE))
        r.value = sqlite_column_blob(q, 1);
    if (item_has(table, COLUMN_SCORE))
        r.score = sqlite_column_double(q, 2);
    if (item_has(table, COLUMN_EXPIRY))
        r.expire_at = sqlite_column_i64(q, 3);
    if (item_has(table, COLUMN_ORD))
        r.ord = sqlite_column_i64(q, 4);
    return r;
}

/* Hands every row of a bound statement out and resets it. */
static enum status each_key(struct sqlite_stmt *q, store_key_fn *fn, void *arg, struct error *err)
{
    enum status st;
    bool more;
    while ((st = sqlite_step(q, &more, err)) == ST_OK && more) {
        struct key_row row = read_key(q);
        st = fn(arg, &row);
        if (st != ST_OK)
            break;
    }
    sqlite_reset(q);
    return st;
}

static enum status each_item(struct sqlite_stmt *q, enum item_table table, int64_t id, store_item_fn *fn,
                             void *arg, struct error *err)
{
    enum status st;
    bool more;
    while ((st = sqlite_step(q, &more, err)) == ST_OK && more) {
        struct item_row row = read_item(q, table, id);
        st = fn(arg, &row);
        if (st != ST_OK)
            break;
    }
    sqlite_reset(q);
    return st;
}

static int by_key(const void *a, const void *b)
{
    const struct key_ref *x = *(const struct key_ref *const *)a, *y = *(const struct key_ref *const *)b;
    return x->db != y->db ? (x->db < y->db ? -1 : 1) : slice_cmp(x->key, y->key);
}

/* An index has all of it. Many are looked up in the order of that, so that each of its pages is read once. */
enum status sqlite_read_get_seqs(struct store *base, const struct key_ref *refs, size_t n, int64_t *ret,
                                 struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct sqlite_stmt *q;
    const struct key_ref **sorted = mem_alloc((n + 1) * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &refs[i];
    qsort(sorted, n, sizeof *sorted, by_key);
    enum status st = stmt_fixed(s, Q_GET_SEQ, &q, err);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        bool found;
        sqlite_bind_i64(q, 1, sorted[i]->db);
        sqlite_bind_blob(q, 2, sorted[i]->key);
        st = sqlite_step(q, &found, err);
        ret[sorted[i] - refs] = st == ST_OK && found ? sqlite_column_i64(q, 0) : 0;
        sqlite_reset(q);
    }
    mem_free(sorted);
    return st;
}

enum status sqlite_read_get_keys(struct store *base, const struct key_ref *refs, size_t n, store_key_fn *fn,
                                 void *arg, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_GET_KEY, &q, err);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        sqlite_bind_i64(q, 1, refs[i].db);
        sqlite_bind_blob(q, 2, refs[i].key);
        st = each_key(q, fn, arg, err);
    }
    return st;
}

/* How many of n items are at one place after the other, from the first on. */
static size_t places_in_a_row(const struct item_ref *refs, size_t n)
{
    size_t k = 1;
    if (item_named(refs->table))
        return 1;
    while (k < n && refs[k].table == refs->table && refs[k].id == refs->id &&
           refs[k].pos == refs->pos + (int64_t)k)
        k++;
    return k;
}

/* Items at places in a row are a range, which costs one search and not one for each. */
enum status sqlite_read_get_items(struct store *base, const struct item_ref *refs, size_t n,
                                  store_item_fn *fn, void *arg, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    enum status st = ST_OK;
    for (size_t i = 0, k; st == ST_OK && i < n; i += k) {
        const struct item_ref *r = &refs[i];
        k = places_in_a_row(r, n - i);
        if (k > 1) {
            struct item_scan q = {.table = r->table,
                                  .id = r->id,
                                  .order = ITEMS_BY_POS,
                                  .has_min = true,
                                  .has_max = true,
                                  .min = r->pos,
                                  .max = r->pos + (int64_t)k - 1,
                                  .limit = UINT32_MAX};
            st = sqlite_read_scan_items(base, &q, fn, arg, err);
            continue;
        }
        struct sqlite_stmt *q = s->get_item[r->table];
        if (!q)
            st = stmt_get_item(s, r->table, &q, err);
        if (st != ST_OK)
            break;
        stmt_bind_ref(q, r);
        st = each_item(q, r->table, r->id, fn, arg, err);
    }
    return st;
}

struct key_count {
    store_key_fn *fn;
    void *arg;
    uint32_t n;
};

static enum status count_key(void *arg, const struct key_row *row)
{
    struct key_count *c = arg;
    c->n++;
    return c->fn(c->arg, row);
}

/* Expired rows behind a place: first those of the same moment, then later ones. */
static enum status scan_behind(struct sqlite_store *s, const struct key_scan *q, store_key_fn *fn, void *arg,
                               struct error *err)
{
    const struct expiry_place *p = &q->behind;
    struct key_count c = {fn, arg, 0};
    struct key_scan k = *q;
    enum status rc = ST_OK;
    k.has_after = true;
    k.reverse = false;
    for (int later = 0; rc == ST_OK && p->expire_at <= q->now && later <= 1 && c.n < q->limit; later++) {
        struct sqlite_stmt *st;
        if ((rc = stmt_scan_keys(s, &k, later, &st, err)) != ST_OK)
            break;
        sqlite_bind_i64(st, 1, p->db);
        sqlite_bind_i64(st, 2, p->expire_at);
        if (!later)
            sqlite_bind_i64(st, 3, p->seq);
        sqlite_bind_i64(st, 4, q->limit - c.n);
        if (later)
            sqlite_bind_i64(st, 5, q->now);
        rc = each_key(st, count_key, &c, err);
    }
    return rc;
}

enum status sqlite_read_scan_keys(struct store *base, const struct key_scan *q, store_key_fn *fn, void *arg,
                                  struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool by_key = keys_bounded(q), has_end = false;
    struct key_scan k = *q;
    struct slice from = SLICE(""), end = SLICE("");
    struct arena arena = {0};
    if (q->order == KEYS_EXPIRED && q->has_behind)
        return scan_behind(s, q, fn, arg, err);
    k.has_after = false;
    k.reverse = q->order == KEYS_BY_KEY && q->reverse;
    if (by_key) {
        from = keys_low(q, &k.has_after);
        has_end = keys_high(q, &arena, &end);
    }
    struct sqlite_stmt *st;
    enum status rc = stmt_scan_keys(s, &k, has_end, &st, err);
    if (rc == ST_OK) {
        if (k.order == KEYS_BY_SEQ_DESC) {
            sqlite_bind_i64(st, 2, k.seq_below);
        } else if (by_key) {
            sqlite_bind_i64(st, 1, k.db);
            sqlite_bind_blob(st, 2, from);
        }
        if (k.order != KEYS_TABLES)
            sqlite_bind_i64(st, 5, k.now);
        if (has_end)
            sqlite_bind_blob(st, 3, end);
        sqlite_bind_i64(st, 4, k.limit);
        rc = each_key(st, fn, arg, err);
    }
    arena_release(&arena);
    return rc;
}

static void bind_bounds(struct sqlite_stmt *st, const struct item_scan *q, enum scan_end end)
{
    switch (q->order) {
    case ITEMS_BY_POS:
    case ITEMS_BY_ORD:
    case ITEMS_BY_EXPIRY:
        sqlite_bind_i64(st, 2, q->has_min ? q->min : INT64_MIN);
        if (end)
            sqlite_bind_i64(st, 3, q->max);
        break;
    case ITEMS_BY_NAME:
        sqlite_bind_blob(st, 2, q->has_min ? q->min_name : SLICE(""));
        if (end)
            sqlite_bind_blob(st, 3, q->max_name);
        break;
    case ITEMS_BY_SCORE:
        sqlite_bind_double(st, 2, q->has_min ? q->min_score : -INFINITY);
        if (!begins_with_score(q))
            sqlite_bind_blob(st, 5, q->min_name);
        if (end)
            sqlite_bind_double(st, 3, q->max_score);
        if (end == END_AT || end == END_BELOW)
            sqlite_bind_blob(st, 6, q->max_name);
        break;
    }
}

static enum status scan_numbers(struct store *base, const struct item_scan *q, store_item_fn *fn, void *arg,
                                struct error *err)
{
    enum status st = ST_OK;
    for (uint32_t i = 0; st == ST_OK && i < q->nords; i++) {
        struct item_scan one = item_scan_at(q, i);
        st = sqlite_read_scan_items(base, &one, fn, arg, err);
    }
    return st;
}

enum status sqlite_read_scan_items(struct store *base, const struct item_scan *q, store_item_fn *fn,
                                   void *arg, struct error *err)
{
    if (q->nords)
        return scan_numbers(base, q, fn, arg, err);
    struct sqlite_store *s = sqlite_store_of(base);
    enum scan_end end = scan_end_of(q);
    struct sqlite_stmt *st;
    enum status rc = stmt_scan_items(s, q, end, &st, err);
    if (rc != ST_OK)
        return rc;
    sqlite_bind_i64(st, 1, q->id);
    bind_bounds(st, q, end);
    sqlite_bind_i64(st, 4, q->limit);
    sqlite_bind_i64(st, 7, q->skip);
    return each_item(st, q->table, q->id, fn, arg, err);
}

/* Runs a bound statement that gives one row of up to two numbers. */
static enum status read_two(struct sqlite_stmt *q, int64_t *ret_a, int64_t *ret_b, struct error *err)
{
    bool row;
    enum status st = sqlite_step(q, &row, err);
    if (st == ST_OK) {
        assert(row);
        *ret_a = sqlite_column_i64(q, 0);
        if (ret_b)
            *ret_b = sqlite_column_i64(q, 1);
    }
    sqlite_reset(q);
    return st;
}

enum status sqlite_read_count_items(struct store *base, const struct item_scan *q, int64_t *ret,
                                    struct error *err)
{
    assert(q->has_min && q->has_max && (q->order == ITEMS_BY_EXPIRY || q->below_max));
    struct sqlite_stmt *st;
    enum status rc = stmt_count_items(sqlite_store_of(base), q, &st, err);
    if (rc != ST_OK)
        return rc;
    sqlite_bind_i64(st, 1, q->id);
    if (q->order == ITEMS_BY_EXPIRY) {
        sqlite_bind_i64(st, 2, q->min);
        sqlite_bind_i64(st, 3, q->max);
    } else {
        sqlite_bind_double(st, 2, q->min_score);
        if (q->min_score < q->max_score)
            sqlite_bind_double(st, 3, q->max_score);
        sqlite_bind_blob(st, 5, q->min_name);
        sqlite_bind_blob(st, 6, q->max_name);
    }
    return read_two(st, ret, NULL, err);
}

enum status sqlite_read_due_rows(struct store *base, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                                 size_t *ret_n, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(sqlite_store_of(base), Q_DUE_ROWS, &q, err);
    bool row;
    *ret_n = 0;
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, after);
    sqlite_bind_i64(q, 2, now);
    sqlite_bind_i64(q, 3, (int64_t)max);
    while ((st = sqlite_step(q, &row, err)) == ST_OK && row)
        ret_ids[(*ret_n)++] = sqlite_column_i64(q, 0);
    sqlite_reset(q);
    return st;
}

enum status sqlite_read_count_dead(struct store *base, uint32_t db, int64_t now, int64_t *ret_keys,
                                   int64_t *ret_expires, struct error *err)
{
    struct sqlite_stmt *q;
    int64_t expired = 0, hashes = 0, expiring = 0;
    enum status st = stmt_fixed(sqlite_store_of(base), Q_COUNT_EXPIRED, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, db);
    sqlite_bind_i64(q, 2, now);
    st = read_two(q, &expired, NULL, err);
    if (st == ST_OK)
        st = stmt_fixed(sqlite_store_of(base), Q_COUNT_DEAD_HASHES, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, db);
    sqlite_bind_i64(q, 2, now);
    st = read_two(q, &hashes, &expiring, err);
    *ret_keys = expired + hashes;
    *ret_expires = expired + expiring;
    return st;
}

enum status sqlite_read_count_keys(struct store *base, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                                   struct error *err)
{
    struct sqlite_stmt *q;
    int64_t all = 0, expires = 0, deleted = 0;
    enum status st = stmt_fixed(sqlite_store_of(base), Q_COUNT_KEYS, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, db);
    st = read_two(q, &all, NULL, err);
    if (st == ST_OK)
        st = stmt_fixed(sqlite_store_of(base), Q_COUNT_EXPIRES, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, db);
    st = read_two(q, &expires, &deleted, err);
    if (st != ST_OK)
        return st;
    *ret_keys = all - deleted;
    *ret_expires = expires;
    return ST_OK;
}
