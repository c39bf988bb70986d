/* One step of removing what is dead: key rows whose time has come or that a command deleted, items that
   nothing refers to, rows of flushed databases. Everything is found by an index, a step removes a bounded
   number of rows, and nothing that a client could see is touched.

   A key row's items are not removed with it but named in larder_trash, so that a step's cost does not depend
   on how large a dead collection is. The commit need not be durable: a crash brings dead rows back. */
#include <stdlib.h>

#include "store/sqlite/sqlite_store.h"
#include "store/sweep.h"

/* Pages given back to the system in one step. */
#define RECLAIM_PAGES 64

struct victim {
    int64_t seq;
    int64_t id;
    enum row_type type;
};

struct sweep {
    struct sweep_tally tally;
    struct sqlite_store *store;
    struct error *err;
};

/* ---- key rows ---- */

static int by_seq(const void *a, const void *b)
{
    int64_t x = ((const struct victim *)a)->seq, y = ((const struct victim *)b)->seq;
    return (x > y) - (x < y);
}

/* Reads the rows of a bound Q_DEAD_KEYS or Q_DB_KEYS. */
static enum status read_victims(struct sweep *w, struct sqlite_stmt *q, struct victim *out, size_t *ret_n)
{
    enum status st;
    bool row;
    *ret_n = 0;
    while ((st = sqlite_step(q, &row, w->err)) == ST_OK && row) {
        struct key_row k = {
            .seq = sqlite_column_i64(q, 0),
            .db = (uint32_t)sqlite_column_i64(q, 1),
            .key = sqlite_column_blob(q, 2),
            .type = (enum row_type)sqlite_column_i64(q, 3),
            .id = sqlite_column_i64(q, 4),
            .expire_at = sqlite_column_i64(q, 5),
        };
        st = sweep_take(&w->tally, &k);
        if (st != ST_OK)
            break;
        out[(*ret_n)++] = (struct victim){k.seq, k.id, k.type};
    }
    sqlite_reset(q);
    return st;
}

static enum status remove_victims(struct sweep *w, struct victim *v, size_t n)
{
    struct sqlite_stmt *del, *trash;
    enum status st = stmt_fixed(w->store, Q_DELETE_KEY, &del, w->err);
    if (st == ST_OK)
        st = stmt_fixed(w->store, Q_PUT_TRASH, &trash, w->err);
    qsort(v, n, sizeof *v, by_seq);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        sqlite_bind_i64(del, 1, v[i].seq);
        st = sqlite_run(del, w->err);
        if (st == ST_OK && v[i].id != 0) {
            sqlite_bind_i64(trash, 1, v[i].id);
            sqlite_bind_i64(trash, 2, v[i].type);
            st = sqlite_run(trash, w->err);
        }
    }
    sweep_spend(&w->tally, n);
    return st;
}

static enum status sweep_keys(struct sweep *w)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(w->store, Q_DEAD_KEYS, &q, w->err);
    if (st != ST_OK)
        return st;
    size_t n = 0;
    struct victim *v = sqlite_store_scratch(w->store, w->tally.left * sizeof *v);
    sqlite_bind_i64(q, 1, w->tally.budget->now);
    sqlite_bind_i64(q, 2, w->tally.left);
    st = read_victims(w, q, v, &n);
    return st == ST_OK && n ? remove_victims(w, v, n) : st;
}

/* ---- trash ---- */

static enum status forget_trash(struct sweep *w, const struct trash_row *t)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(w->store, Q_DELETE_TRASH, &q, w->err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, t->id);
    sqlite_bind_i64(q, 2, t->type);
    return sqlite_run(q, w->err);
}

static enum status sweep_database(struct sweep *w, const struct trash_row *t)
{
    struct sqlite_stmt *q;
    enum status st = sweep_check_flushed(&w->tally, t->id, w->err);
    if (st == ST_OK)
        st = stmt_fixed(w->store, Q_DB_KEYS, &q, w->err);
    if (st != ST_OK)
        return st;
    size_t n = 0;
    uint32_t limit = w->tally.left;
    struct victim *v = sqlite_store_scratch(w->store, limit * sizeof *v);
    sqlite_bind_i64(q, 1, t->id);
    sqlite_bind_i64(q, 2, limit);
    st = read_victims(w, q, v, &n);
    if (st == ST_OK && n)
        st = remove_victims(w, v, n);
    return st == ST_OK && n < limit ? forget_trash(w, t) : st;
}

/* Removes rows of one id from one table; *ret_empty: there are no more. */
static enum status sweep_table(struct sweep *w, const struct trash_row *t, enum item_table table,
                               bool *ret_empty)
{
    char low[2] = {0}, high[2] = {0};
    bool range = item_trashed(table, t->type, low, high) == TRASH_RANGE;
    uint32_t weight = item_tables[table].sweep_weight;
    uint32_t limit = w->tally.left / weight ? w->tally.left / weight : 1;
    struct sqlite_stmt *q;
    enum status st = stmt_sweep_items(w->store, table, range, &q, w->err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, t->id);
    sqlite_bind_i64(q, 2, limit);
    if (range) {
        sqlite_bind_blob(q, 3, slice_of(low, sizeof low));
        sqlite_bind_blob(q, 4, slice_of(high, sizeof high));
    }
    st = sqlite_run(q, w->err);
    if (st != ST_OK)
        return st;
    uint64_t n = (uint64_t)sqlite_changed_rows(w->store->sql);
    w->tally.result->items += n;
    sweep_spend(&w->tally, n * weight);
    *ret_empty = n < limit;
    return ST_OK;
}

/* The tables of its type one after the other, while something is left of the budget. */
static enum status sweep_items(struct sweep *w, const struct trash_row *t)
{
    bool empty = true;
    char low[2] = {0}, high[2] = {0};
    enum status st = ST_OK;
    for (int i = 0; st == ST_OK && empty && i < ITEM_TABLES; i++) {
        if (item_trashed((enum item_table)i, t->type, low, high) == TRASH_NONE)
            continue;
        empty = w->tally.left > 0;
        if (empty)
            st = sweep_table(w, t, (enum item_table)i, &empty);
    }
    return st == ST_OK && empty ? forget_trash(w, t) : st;
}

static enum status first_trash(struct sqlite_store *s, bool *ret_found, struct trash_row *ret,
                               struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_FIRST_TRASH, &q, err);
    if (st != ST_OK)
        return st;
    st = sqlite_step(q, ret_found, err);
    if (st == ST_OK && *ret_found)
        *ret = (struct trash_row){sqlite_column_i64(q, 0), (enum row_type)sqlite_column_i64(q, 1)};
    sqlite_reset(q);
    return st;
}

static enum status sweep_trash(struct sweep *w)
{
    while (w->tally.left > 0) {
        struct trash_row t;
        bool found;
        enum status st = first_trash(w->store, &found, &t, w->err);
        if (st != ST_OK || !found)
            return st;
        st = t.type == ROW_DB ? sweep_database(w, &t) : sweep_items(w, &t);
        if (st != ST_OK)
            return st;
        sweep_spend(&w->tally, 1); /* also an empty one costs something */
    }
    return ST_OK;
}

/* ---- the step ---- */

static enum status dead_keys(struct sqlite_store *s, int64_t now, bool *ret, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_DEAD_KEYS, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, now);
    sqlite_bind_i64(q, 2, 1);
    st = sqlite_step(q, ret, err);
    sqlite_reset(q);
    return st;
}

static enum status anything(struct sqlite_store *s, int64_t now, bool *ret, struct error *err)
{
    struct trash_row t;
    enum status st = dead_keys(s, now, ret, err);
    return st == ST_OK && !*ret ? first_trash(s, ret, &t, err) : st;
}

static enum status save_counts(struct sweep *w)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(w->store, Q_TAKE_OFF_DB, &q, w->err);
    for (size_t i = 0; st == ST_OK && i < w->tally.budget->ndbs; i++) {
        if (w->tally.counted[i] == 0)
            continue;
        sqlite_bind_i64(q, 1, w->tally.budget->dbs[i].number);
        sqlite_bind_i64(q, 2, w->tally.counted[i]);
        st = sqlite_run(q, w->err);
    }
    return st;
}

static enum status remove_dead(struct sweep *w)
{
    struct sqlite *sql = w->store->sql;
    enum status st = sqlite_begin(sql, SQL_WRITE_LAZY, NULL, w->err);
    if (st != ST_OK)
        return st;
    st = sweep_keys(w);
    if (st == ST_OK)
        st = sweep_trash(w);
    if (st == ST_OK)
        st = save_counts(w);
    if (st == ST_OK)
        st = anything(w->store, w->tally.budget->now, &w->tally.result->more, w->err);
    if (st == ST_OK)
        return sqlite_commit(sql, w->err);
    sqlite_rollback(sql);
    return st;
}

enum status sweep_step(struct store *base, const struct sweep_budget *b, struct sweep_result *ret,
                       struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    *ret = (struct sweep_result){0};
    bool work;
    enum status st = anything(s, b->now, &work, err);
    if (st != ST_OK)
        return st;
    if (!work || b->max_rows == 0)
        return s->read_only ? ST_OK : sqlite_reclaim(s->sql, RECLAIM_PAGES, &ret->more, err);

    struct sweep w = {.store = s, .err = err};
    sweep_begin(&w.tally, b, ret);
    st = sweep_end(&w.tally, b, remove_dead(&w));
    /* Space is given back when nothing is left to remove; what keeps it from that will show again. */
    if (st == ST_OK && !ret->more && sqlite_reclaim(s->sql, RECLAIM_PAGES, &ret->more, NULL) != ST_OK)
        ret->more = false;
    return st;
}
