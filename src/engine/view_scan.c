/* Many keys at once: SCAN, KEYS, RANDOMKEY, counts. What this batch changed is brought into
   the running transaction first, so that SQL sees it and nothing has to be merged. */
#include "engine/view.h"

#include "engine/view_internal.h"

#define SCAN_SPARE_ROWS                                                                                      \
    1024 /* rows of other databases, or dead ones, that a page of SCAN looks at beyond its count */
#define RANDOM_TRIES 8
#define RANDOM_ROWS  64

/* Before keys are walked or counted: whatever was written last may show. */
static enum status begin_walk(struct view *v)
{
    view_saw(v, view_has_changes(v) ? v->batch.ticket : v->batch.ticket - 1);
    return view_flush(v);
}

struct key_walk {
    struct view *v;
    uint32_t number;
    view_key_fn *fn;
    void *arg;
    int64_t last_seq;
    struct arena *arena; /* where the last key is copied; NULL: it is not asked for */
    struct slice last;
    uint32_t seen, limit;
    uint32_t found;
};

static enum status walk_row(void *arg, const struct key_row *k)
{
    struct key_walk *w = arg;
    w->seen++;
    w->last_seq = k->seq;
    if (w->arena && w->seen == w->limit)
        w->last = arena_copy(w->arena, k->key);
    int64_t now = view_now(w->v);
    bool live = k->type != ROW_NONE && (k->expire_at == EXPIRE_NEVER || k->expire_at > now);
    if (k->db != w->number || !live)
        return ST_OK;
    w->found++;
    return w->fn(w->arg, k->key, k);
}

enum status view_scan(struct view *v, uint32_t db, int64_t *cursor, uint32_t count, view_key_fn *fn,
                      void *arg)
{
    enum status st = begin_walk(v);
    struct key_walk w = {.v = v, .number = v->dbs.rows[db].number, .fn = fn, .arg = arg};
    struct key_scan q = {
        .db = w.number,
        .order = KEYS_BY_SEQ_DESC,
        .seq_below = *cursor ? *cursor : INT64_MAX,
        .now = view_now(v),
    };
    uint32_t total = 0;
    while (st == ST_OK && w.found < count && total < count + SCAN_SPARE_ROWS) {
        q.limit = count - w.found;
        w.seen = 0;
        st = store_scan_keys(v->store, &q, walk_row, &w, v->call.err);
        total += w.seen;
        q.seq_below = w.last_seq;
        if (w.seen < q.limit) {
            *cursor = 0;
            return st;
        }
    }
    *cursor = q.seq_below;
    return st;
}

enum status view_each_key(struct view *v, uint32_t db, struct slice prefix, view_key_fn *fn, void *arg)
{
    enum status st = begin_walk(v);
    if (st != ST_OK)
        return st;
    struct key_walk w = {.v = v, .number = v->dbs.rows[db].number, .fn = fn, .arg = arg};
    struct key_scan q = {
        .db = w.number,
        .order = KEYS_BY_KEY,
        .prefix = prefix,
        .now = view_now(v),
        .limit = UINT32_MAX,
    };
    return store_scan_keys(v->store, &q, walk_row, &w, v->call.err);
}

enum status view_each_table(struct view *v, uint32_t db, view_key_fn *fn, void *arg)
{
    enum status st = begin_walk(v);
    struct key_walk w = {.v = v, .number = v->dbs.rows[db].number, .fn = fn, .arg = arg};
    struct key_scan q = {
        .db = w.number, .order = KEYS_TABLES, .now = view_now(v), .with_value = true, .limit = UINT32_MAX};
    return st == ST_OK ? store_scan_keys(v->store, &q, walk_row, &w, v->call.err) : st;
}

enum status view_page_keys(struct view *v, uint32_t db, const struct key_range *range, uint32_t rows,
                           struct arena *arena, struct slice *after, view_key_fn *fn, void *arg)
{
    enum status st = begin_walk(v);
    struct key_walk w = {
        .v = v, .number = v->dbs.rows[db].number, .fn = fn, .arg = arg, .arena = arena, .limit = rows};
    struct key_scan q = {
        .db = w.number,
        .order = KEYS_BY_KEY,
        .prefix = range->prefix,
        .from = range->from,
        .has_after = after->p && !range->reverse,
        .after = *after,
        .has_before = range->to.p != NULL,
        .before = range->to,
        .reverse = range->reverse,
        .now = view_now(v),
        .limit = rows,
    };
    if (range->reverse && after->p && (!q.has_before || slice_cmp(*after, q.before) < 0)) {
        q.has_before = true;
        q.before = *after;
    }
    if (st == ST_OK)
        st = store_scan_keys(v->store, &q, walk_row, &w, v->call.err);
    *after = w.last;
    return st;
}

struct pick {
    struct arena *arena;
    struct slice key;
};

/* Keeps the first key and ends the walk. */
static enum status pick_first(void *arg, struct slice key, const struct key_row *row)
{
    struct pick *p = arg;
    (void)row;
    p->key = arena_copy(p->arena, key);
    return ST_STOP;
}

/* The highest seq below a number, 0 when there is none. */
static enum status highest_seq(struct view *v, int64_t below, int64_t *ret)
{
    struct key_walk top = {.v = v, .number = UINT32_MAX}; /* matches no database */
    struct key_scan q = {.order = KEYS_BY_SEQ_DESC, .seq_below = below, .limit = 1};
    enum status st = store_scan_keys(v->store, &q, walk_row, &top, v->call.err);
    *ret = top.last_seq;
    return st;
}

/* A number up to which to look for a row, any as likely as the others: in the table, or among those that are
   not there yet. */
static int64_t random_seq(struct view *v, int64_t table, int64_t all)
{
    int64_t pending = all >= v->batch.first_seq && v->batch.first_seq ? all - v->batch.first_seq + 1 : 0;
    int64_t pick = (int64_t)rand_below(&v->rnd, (uint64_t)(table + pending));
    return pick < table ? pick + 2 : v->batch.first_seq + (pick - table) + 1;
}

enum status view_random_key(struct view *v, uint32_t db, struct arena *arena, struct slice *ret)
{
    struct pick p = {.arena = arena};
    struct key_walk w = {.v = v, .number = v->dbs.rows[db].number, .fn = pick_first, .arg = &p};
    int64_t all = 0, table = 0;
    enum status st = begin_walk(v);
    if (st == ST_OK)
        st = highest_seq(v, INT64_MAX, &all);
    if (st == ST_OK)
        st = highest_seq(v, STORE_PROVISIONAL, &table);
    struct key_scan q = {.order = KEYS_BY_SEQ_DESC, .now = view_now(v), .limit = RANDOM_ROWS};
    for (int i = 0; st == ST_OK && all && !w.found && i < RANDOM_TRIES; i++) {
        q.seq_below = random_seq(v, table, all);
        st = store_scan_keys(v->store, &q, walk_row, &w, v->call.err);
    }
    struct key_scan every = {.db = w.number, .order = KEYS_BY_KEY, .now = q.now, .limit = UINT32_MAX};
    if (st == ST_OK && all && !w.found)
        st = store_scan_keys(v->store, &every, walk_row, &w, v->call.err);
    *ret = p.key;
    return st;
}

/* Counts again after another process wrote to the tables. They hold this batch's changes already (see
   view_flush); the counts kept in the view are those of before the batch. */
static enum status recount(struct view *v)
{
    struct db_row *now = arena_alloc(&v->call.scratch, v->dbs.n * sizeof *now);
    view_counts(v, now);
    for (uint32_t i = 0; i < v->dbs.n; i++) {
        int64_t keys, expires;
        enum status st = store_count_keys(v->store, v->dbs.rows[i].number, &keys, &expires, v->call.err);
        if (st != ST_OK)
            return st;
        v->dbs.rows[i].keys += keys - now[i].keys;
        v->dbs.rows[i].expires += expires - now[i].expires;
    }
    v->dbs.counts_stale = false;
    v->dbs.counts_unsaved = true;
    return ST_OK;
}

enum status view_db_size(struct view *v, uint32_t db, int64_t *ret_keys, int64_t *ret_expires)
{
    enum status st = begin_walk(v);
    if (st == ST_OK)
        st = view_read_dbs(v);
    if (st == ST_OK && v->dbs.counts_stale)
        st = recount(v);
    int64_t dead = 0, expired = 0;
    struct db_row *now = arena_alloc(&v->call.scratch, v->dbs.n * sizeof *now);
    view_counts(v, now);
    if (st == ST_OK && now[db].keys > 0)
        st = store_count_dead(v->store, now[db].number, view_now(v), &dead, &expired, v->call.err);
    *ret_keys = now[db].keys - dead;
    *ret_expires = now[db].expires - expired;
    return st;
}
