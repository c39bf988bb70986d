/* clang-format off */
/* The sweep removes dead rows step by step, between batches:

     what                       who         how
     expired fields of hashes   the engine  as a command would: numbers, sizes, the copy in memory stay right
     expired keys               the engine  where the store keeps rows in memory: they may be newer than those
                                            in the tables; and while something is kept in step with hashes,
                                            which goes with them (keeper.h)
                                the store   elsewhere, by its index
     deleted rows and trash     the store

   No removal has to be durable: a row that a crash brings back is dead, and the sweep removes it again. */
/* clang-format on */
#include <stdlib.h>

#include "base/clock.h"
#include "engine/coll_internal.h"
#include "engine/engine_internal.h"
#include "engine/keeper.h"

#define FIELD_STEPS 8        /* that remove fields, between two that remove other rows */
#define DUE_TABLES  16       /* that are asked for at once */
#define FEW_ROWS    4000     /* that a scan may pass for nothing */
#define REST_US     15000000 /* within which what was removed has gone from the tables, as a rule */

/* Keys that something may have to be done about. */
struct victims {
    struct view *v;
    struct {
        uint32_t db;
        struct slice key;
    } * at;
    size_t n;
    struct expiry_place last;
};

static enum status note_victim(void *arg, const struct key_row *k)
{
    struct victims *d = arg;
    d->last = (struct expiry_place){k->expire_at, k->db, k->seq};
    for (uint32_t i = 0; i < d->v->dbs.n; i++) {
        if (d->v->dbs.rows[i].number == k->db) {
            d->at[d->n].db = i;
            d->at[d->n++].key = arena_copy(&d->v->batch.arena, k->key);
        }
    }
    return ST_OK;
}

/* Rows that were removed are in the tables' index until the store has brought the removal there, and each
   scan from the first one on has to pass them. So one for expired keys goes on behind the last one. What
   expires later lies behind that place; only what others write, a clock that is set back or a removal that
   was undone can leave something before it, which is found when the place is forgotten (forget_place). */
static struct key_scan question(const struct engine *e, enum key_order order, int64_t now, uint32_t max)
{
    return (struct key_scan){
        .order = order, .now = now, .limit = max, .has_behind = e->swept.known, .behind = e->swept.place};
}

static enum status find_victims(struct engine *e, enum key_order order, uint32_t max, struct victims *ret)
{
    struct view *v = &e->view;
    *ret = (struct victims){.v = v, .at = arena_alloc(&v->batch.arena, max * sizeof *ret->at)};
    struct key_scan q = question(e, order, view_now(v), max);
    return store_scan_keys(v->store, &q, note_victim, ret, v->call.err);
}

/* Hashes that may have fields to remove. */
static enum status purge_fields(struct engine *e, uint32_t max, uint64_t *ret_rows)
{
    struct view *v = &e->view;
    struct victims due;
    enum status st = find_victims(e, KEYS_DUE, max, &due);
    for (size_t i = 0; st == ST_OK && i < due.n && *ret_rows < max; i++) {
        uint32_t did;
        st = coll_purge(v, due.at[i].db, due.at[i].key, max - (uint32_t)*ret_rows, &did);
        *ret_rows += did;
    }
    return st;
}

/* Their rows, in one round trip. */
static enum status fetch_victims(const struct victims *d)
{
    for (size_t i = 0; i < d->n; i++)
        view_declare(d->v, d->at[i].db, d->at[i].key);
    return view_fetch_declared(d->v);
}

static enum status purge_keys(struct engine *e, uint32_t max, uint64_t *ret_rows)
{
    struct view *v = &e->view;
    struct victims dead;
    enum status st = find_victims(e, KEYS_EXPIRED, max, &dead);
    if (st == ST_OK && v->store->far)
        st = fetch_victims(&dead);
    for (size_t i = 0; st == ST_OK && i < dead.n; i++) {
        struct row *r;
        st = view_row(v, v->dbs.rows[dead.at[i].db].number, dead.at[i].key, &r);
        if (st == ST_OK && r->type != ROW_NONE && !row_live(r, view_now(v))) {
            st = view_bury(v, r);
            ++*ret_rows;
        }
    }
    if (st == ST_OK && dead.last.expire_at > 0) {
        e->swept.place = dead.last;
        e->swept.known = true;
        e->swept.rows += *ret_rows;
        e->swept.at_us = clock_mono_us();
    }
    return st;
}

/* Where the store could remove them itself: only if something is kept, which the transaction tells. */
static enum status purge_kept_keys(struct engine *e, uint32_t max, uint64_t *ret_rows)
{
    enum status st = view_keeps_any(&e->view, &e->keeps);
    return st == ST_OK && e->keeps ? purge_keys(e, max, ret_rows) : st;
}

/* Nothing lies behind the place. Whether to look from the first row on again: when there cannot be many on
   the way, or they have had the time to go from the tables. */
static bool forget_place(struct engine *e, int64_t now)
{
    if (!e->swept.known || (e->swept.rows > FEW_ROWS && clock_mono_us() - e->swept.at_us < REST_US &&
                            now >= e->swept.place.expire_at))
        return false;
    e->swept.known = false;
    e->swept.rows = 0;
    return true;
}

static enum status note_any(void *arg, const struct key_row *k)
{
    (void)k;
    *(bool *)arg = true;
    return ST_OK;
}

/* Removes what fn finds in a transaction of its own, when there is anything to do. */
struct purge {
    struct engine *e;
    enum status (*fn)(struct engine *, uint32_t, uint64_t *);
    uint32_t max;
    uint64_t rows;
};

static enum status run_purge(void *arg, struct view *v)
{
    struct purge *p = arg;
    (void)v;
    return p->fn(p->e, p->max, &p->rows);
}

static enum status purge(struct engine *e, enum key_order order,
                         enum status (*fn)(struct engine *, uint32_t, uint64_t *), uint32_t max,
                         uint64_t *ret_rows, struct error *err)
{
    int64_t now = clock_wall_us() / 1000;
    bool any = false;
    enum status st;
    do {
        struct key_scan q = question(e, order, now, 1);
        st = store_scan_keys(e->store, &q, note_any, &any, err);
    } while (st == ST_OK && !any && order == KEYS_EXPIRED && forget_place(e, now));
    if (st != ST_OK || !any || max == 0)
        return st;
    struct purge p = {.e = e, .fn = fn, .max = max};
    st = engine_chore(e, true, run_purge, &p, err);
    *ret_rows += p.rows;
    e->swept.known &= st == ST_OK;
    return st;
}

static enum status forget_row(void *arg, const struct key_row *k)
{
    struct engine *e = arg;
    struct row *r = cache_find(e->view.cache, k->db, k->key, cache_hash(k->db, k->key));
    if (r) {
        cache_remove(e->view.cache, r);
        row_free(r);
    }
    return ST_OK;
}

static enum status sweep_store(struct engine *e, uint32_t max_rows, struct sweep_result *ret,
                               struct error *err)
{
    struct view *v = &e->view;
    struct sweep_budget budget = {
        .now = e->keeps ? 0 : clock_wall_us() / 1000, /* 0: expired keys are not its business */
        .max_rows = max_rows,
        .dbs = v->dbs.rows,
        .ndbs = v->dbs.n,
        .fn = forget_row,
        .arg = e,
    };
    enum status st = store_sweep(e->store, &budget, ret, err);
    if (st != ST_OK) {
        struct error again;
        cache_drop(v->cache);
        e->unsure |= engine_load_dbs(e, &again) != ST_OK;
        v->dbs.counts_stale |= v->dbs.counts_unsaved;
    }
    return st;
}

static enum status note_backlog(void *arg, const struct key_row *k)
{
    struct engine_backlog *b = arg;
    if (b->keys++ == 0)
        b->since = k->expire_at;
    return ST_OK;
}

enum status engine_backlog(struct engine *e, uint32_t max, struct engine_backlog *ret, struct error *err)
{
    struct key_scan q = question(e, KEYS_EXPIRED, clock_wall_us() / 1000, max);
    *ret = (struct engine_backlog){0};
    return store_scan_keys(e->store, &q, note_backlog, ret, err);
}

static enum status sweep_expired(struct engine *e, uint32_t max_rows, uint64_t *ret_rows, struct error *err)
{
    const struct view *v = &e->view;
    bool ours = e->later;
    e->keeps = !ours && v->keep.by && (view_shared(v) || keep_any(&v->keep));
    if (!ours && !e->keeps)
        return ST_OK;
    return purge(e, KEYS_EXPIRED, ours ? purge_keys : purge_kept_keys, max_rows, ret_rows, err);
}

/* ---- rows of tables ---- */

static void swept(struct engine *e, int64_t start)
{
    histogram_add(&e->stats.sweep_us, (uint64_t)(clock_mono_us() - start));
}

struct due_walk {
    const struct view *v;
    int64_t now;
    const int64_t *ids;
    size_t n;
    engine_table_fn *fn;
    void *arg;
};

static int by_id(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum status due_row(void *arg, const struct key_row *k)
{
    const struct due_walk *w = arg;
    bool live = k->expire_at == EXPIRE_NEVER || k->expire_at > w->now;
    if (!live || !bsearch(&k->id, w->ids, w->n, sizeof *w->ids, by_id))
        return ST_OK;
    for (uint32_t db = 0; db < w->v->dbs.n; db++)
        if (w->v->dbs.rows[db].number == k->db)
            return w->fn(w->arg, db, k->key);
    return ST_OK; /* of a database that was flushed */
}

enum status engine_due_tables(struct engine *e, int64_t *after, size_t max, engine_table_fn *fn, void *arg,
                              struct error *err)
{
    int64_t ids[DUE_TABLES];
    struct due_walk w = {.v = &e->view, .now = clock_wall_us() / 1000, .ids = ids, .fn = fn, .arg = arg};
    struct key_scan q = {.order = KEYS_TABLES, .every_db = true, .limit = UINT32_MAX};
    if (max > DUE_TABLES)
        max = DUE_TABLES;
    enum status st = store_due_rows(e->store, w.now, *after, ids, max, &w.n, err);
    if (st == ST_OK)
        *after = w.n == max && max ? ids[w.n - 1] : 0;
    return st == ST_OK && w.n ? store_scan_keys(e->store, &q, due_row, &w, err) : st;
}

void engine_swept_rows(struct engine *e, uint64_t rows, int64_t start_us)
{
    e->stats.expired_rows += rows;
    swept(e, start_us);
}

/* ---- a step ---- */

enum status engine_sweep(struct engine *e, uint32_t max_rows, bool *ret_more, uint64_t *ret_rows,
                         struct error *err)
{
    int64_t start = clock_mono_us();
    enum status st;
    *ret_rows = 0;
    if (e->field_steps < FIELD_STEPS &&
        (st = purge(e, KEYS_DUE, purge_fields, max_rows, ret_rows, err)) != ST_OK)
        return st;
    if (*ret_rows) {
        swept(e, start);
        e->field_steps++;
        *ret_more = true;
        return ST_OK;
    }
    bool more_fields = e->field_steps == FIELD_STEPS;
    e->field_steps = 0;
    struct sweep_result result = {0};
    uint64_t expired = 0;
    if ((st = sweep_expired(e, max_rows, &expired, err)) != ST_OK)
        return st;
    if ((st = sweep_store(e, max_rows, &result, err)) != ST_OK)
        return st;
    result.expired += expired;
    *ret_more = result.more || more_fields || expired == max_rows;
    *ret_rows = result.expired + result.deleted + result.items;
    if (*ret_rows) {
        swept(e, start);
        e->stats.expired_by_sweep += result.expired;
        e->stats.deleted_by_sweep += result.deleted;
        e->stats.items_by_sweep += result.items;
    }
    return ST_OK;
}
