/* One step of removing what is dead from a database server; see sqlite_sweep.c for what that is. Round trips
   count more than statements here, so a step takes many rows at a time: the dead key rows, then the items of
   many collections at once. Rows that another session has locked are left for the next step. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_names.h"
#include "store/remote/remote_store.h"
#include "store/sweep.h"

#define TRASH_ROWS 256 /* collections looked at in one step */

struct sweep {
    struct sweep_tally tally;
    struct rstore *store;
    struct error *err;
    struct sweep_budget fresh; /* of a shared store */
    /* key rows that were read */
    int64_t *seqs;
    size_t nseqs, seqs_cap;
    struct trash_row *trash;
    size_t ntrash, trash_cap;
    struct key_ref *tables; /* those that are tables; their names are in the store's arena */
    size_t ntables, tables_cap;
};

/* ---- key rows ---- */

static enum status take_dead(void *arg, const struct remote_row *row)
{
    struct sweep *w = arg;
    struct key_row k = {
        .seq = remote_i64(row, 0),
        .db = (uint32_t)remote_i64(row, 1),
        .key = remote_name_whole(&w->store->arena, remote_bytes(row, 2), remote_bytes(row, 3)),
        .type = (enum row_type)remote_i64(row, 4),
        .id = remote_i64(row, 5),
        .expire_at = remote_i64(row, 6),
    };
    VEC_PUSH(w->seqs, w->nseqs, w->seqs_cap) = k.seq;
    if (k.id != 0)
        VEC_PUSH(w->trash, w->ntrash, w->trash_cap) = (struct trash_row){k.id, k.type};
    if (k.type == ROW_TABLE)
        VEC_PUSH(w->tables, w->ntables, w->tables_cap) =
            (struct key_ref){k.db, arena_copy(&w->store->arena, k.key)};
    return sweep_take(&w->tally, &k);
}

/* Who writes rows of a table has read its key's row, and locked it, but does not write it. Where row locks
   end at the node (Galera), the lock of the key is certified in their stead, before the table's rows are
   looked for: one of the two transactions is ended, or the sweeper sees the rows. */
static void lock_tables(struct sweep *w)
{
    if (w->ntables && rgalera(w->store))
        rgalera_lock_keys(w->store, w->tables, w->ntables);
}

/* Removes the rows that a statement finds: ?1 is its parameter, ?2 how many at most. */
static enum status remove_keys(struct sweep *w, enum remote_statement which, int64_t parameter, size_t *ret_n)
{
    struct rstore *s = w->store;
    const struct param p[] = {param_i64(parameter), param_i64(w->tally.left)};
    struct request r = {.text = rtext(s, which), .params = p, .nparams = 2, .fn = take_dead, .arg = w};
    w->nseqs = w->ntrash = w->ntables = 0;
    remote_add(s->conn, &r);
    enum status st = rstore_run(s, w->err);
    *ret_n = w->nseqs;
    if (st != ST_OK || w->nseqs == 0)
        return st;
    lock_tables(w);
    const struct param seqs[] = {param_i64s(w->seqs)};
    r = (struct request){.text = rtext(s, R_DELETE_KEYS), .params = seqs, .nparams = 1, .nrows = w->nseqs};
    remote_add(s->conn, &r);
    rapply_trash(s, w->trash, w->ntrash);
    sweep_spend(&w->tally, w->nseqs);
    return rstore_run(s, w->err);
}

/* ---- trash ---- */

static enum status take_trash(void *arg, const struct remote_row *row)
{
    struct sweep *w = arg;
    VEC_PUSH(w->trash, w->ntrash, w->trash_cap) =
        (struct trash_row){remote_i64(row, 0), (enum row_type)remote_i64(row, 1)};
    return ST_OK;
}

static enum status list_trash(struct sweep *w)
{
    const struct param p[] = {param_i64(TRASH_ROWS)};
    struct request r = {
        .text = rtext(w->store, R_LIST_TRASH), .params = p, .nparams = 1, .fn = take_trash, .arg = w};
    w->ntrash = 0;
    remote_add(w->store->conn, &r);
    return rstore_run(w->store, w->err);
}

static enum status remove_items(struct sweep *w, enum item_table t, enum row_type type, const int64_t *ids,
                                size_t n)
{
    int64_t removed = 0;
    char low[2] = {0}, high[2] = {0};
    enum trash_part part = item_trashed(t, type, low, high);
    if (part == TRASH_NONE)
        return ST_OK;
    const struct param p[] = {param_i64s(ids), param_i64(w->tally.left), param_bytes(slice_of(low, 2)),
                              param_bytes(slice_of(high, 2))};
    struct request r = {.text = rtext_sweep_items(w->store, t, part),
                        .params = p,
                        .nparams = part == TRASH_RANGE ? 4 : 2,
                        .nrows = n,
                        .ret_changed = &removed};
    remote_add(w->store->conn, &r);
    enum status st = rstore_run(w->store, w->err);
    if (st == ST_OK) {
        w->tally.result->items += (uint64_t)removed;
        sweep_spend(&w->tally, (uint64_t)removed);
    }
    return st;
}

/* Removes items of the trash rows of one type, and the trash rows that have none left: that goes out with
   what is asked next. */
static enum status sweep_type(struct sweep *w, const struct trash_row *rows, size_t n)
{
    struct rstore *s = w->store;
    enum row_type type = rows[0].type;
    char low[2] = {0}, high[2] = {0};
    int64_t *ids = arena_alloc(&s->arena, n * sizeof *ids);
    enum status st = ST_OK;
    for (size_t i = 0; i < n; i++)
        ids[i] = rows[i].id;
    for (int t = 0; st == ST_OK && t < ITEM_TABLES && w->tally.left > 0; t++)
        st = remove_items(w, (enum item_table)t, type, ids, n);
    if (st != ST_OK)
        return st;
    if (item_trashed(ITEM_ENTRY, type, low, high) == TRASH_RANGE && w->tally.left == 0)
        return ST_OK; /* as many were removed as were asked for: there may be more */
    const struct param p[] = {param_i64s(ids), param_i64(type)};
    struct request r = {.text = rtext_sweep_trash(s, type), .params = p, .nparams = 2, .nrows = n};
    remote_add(s->conn, &r);
    sweep_spend(&w->tally, 1);
    return ST_OK;
}

static enum status sweep_database(struct sweep *w, int64_t number)
{
    struct rstore *s = w->store;
    size_t n = 0;
    uint32_t limit = w->tally.left;
    enum status st = sweep_check_flushed(&w->tally, number, w->err);
    if (st == ST_OK)
        st = remove_keys(w, R_DB_KEYS, number, &n);
    if (st != ST_OK || n == limit)
        return st;
    /* Fewer than asked for: none is left, or others are locked (by who has declared keys under the number
       that the database had before), which the next look will show: the trash row stays while there is any.
     */
    if (n == 0) {
        const struct param p[] = {param_i64(number), param_i64(ROW_DB)}, counts = param_i64s(&number);
        struct request r = {.text = rtext(s, R_FORGET_DB), .params = p, .nparams = 2};
        remote_add(s->conn, &r);
        r = (struct request){.text = rtext(s, R_DROP_COUNTS), .params = &counts, .nparams = 1, .nrows = 1};
        remote_add(s->conn, &r);
        sweep_spend(&w->tally, 1);
    }
    return ST_OK;
}

static int by_type(const void *a, const void *b)
{
    const struct trash_row *x = a, *y = b;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static enum status sweep_trash(struct sweep *w)
{
    enum status st = list_trash(w);
    size_t n = w->ntrash;
    if (st != ST_OK || n == 0)
        return st;
    struct trash_row *rows = arena_alloc(&w->store->arena, n * sizeof *rows);
    memcpy(rows, w->trash, n * sizeof *rows);
    qsort(rows, n, sizeof *rows, by_type);
    for (size_t i = 0, from = 0; st == ST_OK && i < n && w->tally.left > 0; i++) {
        if (rows[i].type == ROW_DB) {
            st = sweep_database(w, rows[i].id);
            from = i + 1;
        } else if (i + 1 == n || rows[i + 1].type != rows[i].type) {
            st = sweep_type(w, rows + from, i + 1 - from);
            from = i + 1;
        }
    }
    return st;
}

/* ---- the step ---- */

static void save_counts(struct sweep *w)
{
    size_t n = 0;
    int64_t *numbers = arena_alloc(&w->store->arena, (w->tally.budget->ndbs + 1) * sizeof *numbers);
    int64_t *counts = arena_alloc(&w->store->arena, (w->tally.budget->ndbs + 1) * sizeof *counts);
    for (size_t i = 0; i < w->tally.budget->ndbs; i++) {
        if (w->tally.counted[i]) {
            numbers[n] = w->tally.budget->dbs[i].number;
            counts[n++] = w->tally.counted[i];
        }
    }
    if (n == 0)
        return;
    const struct param p[] = {param_i64s(numbers), param_i64s(counts)};
    struct request r = {.text = rtext(w->store, R_TAKE_OFF_DB), .params = p, .nparams = 2, .nrows = n};
    remote_add(w->store->conn, &r);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is written when the answer comes */
static enum status anything(struct rstore *s, int64_t now, int64_t ret[2], struct error *err)
{
    const struct param p[] = {param_i64(now)};
    struct request r = {.text = rtext(s, R_ANYTHING), .params = p, .nparams = 1, .fn = rread_two, .arg = ret};
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

/* One server sweeps at a time, by the clock that all share and with the databases as they are now. The lock
   is held for one step: a server that vanishes does not keep it. */
static enum status enter_shared(struct sweep *w, const struct sweep_budget **budget)
{
    struct rstore *s = w->store;
    int64_t mine[2] = {0, 0};
    struct request r = {.text = rtext(s, R_SWEEP_LOCK), .fn = rread_two, .arg = mine};
    remote_add(s->conn, &r);
    enum status st = rstore_run(s, w->err);
    if (st == ST_OK && mine[0] && rgalera(s)) /* of those on this node it is the one */
        rgalera_lock_sweep(s);
    w->fresh = **budget;
    if (w->fresh.now > store_now_us(&s->base) / 1000)
        w->fresh.now = store_now_us(&s->base) / 1000;
    w->fresh.dbs = s->told;
    w->fresh.ndbs = s->databases < w->fresh.ndbs ? s->databases : w->fresh.ndbs;
    *budget = &w->fresh;
    return st == ST_OK && !mine[0] ? ST_BUSY : st;
}

static enum status remove_dead(struct sweep *w)
{
    struct store *base = &w->store->base;
    int64_t more[2] = {0, 0};
    size_t n;
    enum status st = store_begin(base, STORE_WRITE_LAZY, NULL, NULL, w->err);
    if (st != ST_OK)
        return st;
    rstore_begin_write(w->store);
    w->store->dirty = true;
    if (w->store->shared && (st = enter_shared(w, &w->tally.budget)) != ST_OK) {
        store_rollback(base);
        return st == ST_BUSY ? ST_OK : st; /* another server sweeps */
    }
    st = remove_keys(w, R_DEAD_KEYS, w->tally.budget->now, &n);
    if (st == ST_OK && w->tally.left > 0)
        st = sweep_trash(w);
    if (st == ST_OK) {
        save_counts(w);
        st = anything(w->store, w->tally.budget->now, more, w->err);
    }
    w->tally.result->more = more[0] || more[1];
    if (st == ST_OK && w->store->shared && rtext(w->store, R_SWEEP_UNLOCK))
        remote_add_text(w->store->conn, rtext(w->store, R_SWEEP_UNLOCK));
    if (st == ST_OK)
        return store_commit(base, w->err);
    store_rollback(base);
    return st;
}

enum status rsweep(struct store *base, const struct sweep_budget *b, struct sweep_result *ret,
                   struct error *err)
{
    struct rstore *s = rstore_of(base);
    int64_t work[2] = {0, 0};
    *ret = (struct sweep_result){0};
    enum status st = rstore_connected(s, err);
    if (st == ST_OK)
        st = anything(s, b->now, work, err);
    if (st != ST_OK || !(work[0] || work[1]) || b->max_rows == 0)
        return st;
    struct sweep w = {.store = s, .err = err};
    sweep_begin(&w.tally, b, ret);
    st = sweep_end(&w.tally, b, remove_dead(&w));
    mem_free(w.seqs);
    mem_free(w.trash);
    mem_free(w.tables);
    arena_reset(&s->arena);
    return st;
}
