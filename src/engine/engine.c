/* Batches: begin, calls, commit, and how far the store has got. The way of a commit from here on:
 * journal/journal.h. */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine_internal.h"
#include "store/replicated.h"
#include "store/shared.h"

enum status engine_load_dbs(struct engine *e, struct error *err)
{
    struct view *v = &e->view;
    enum status st = store_load_dbs(e->store, v->dbs.rows, v->dbs.n, &v->dbs.next_number, err);
    for (uint32_t i = 0; st == ST_OK && i < v->dbs.n; i++)
        v->dbs.counts_stale |= v->dbs.rows[i].keys < 0 || v->dbs.rows[i].expires < 0;
    return st;
}

enum status engine_new(struct store *store, const struct engine_options *o, struct engine **ret,
                       struct error *err)
{
    struct engine *e = mem_zalloc(sizeof *e);
    struct view *v = &e->view;
    e->store = store;
    v->store = store;
    v->stats = &e->stats;
    v->batch.tally = &e->tally;
    v->call.err = &e->call_err;
    v->cache = cache_new(o->cache_memory);
    v->dbs.n = o->databases;
    e->later = store_commits_later(store);
    e->last = e->progress.durable = e->later ? store_last_ticket(store) : 0;
    v->dbs.rows = mem_zalloc((v->dbs.n + 1) * sizeof *v->dbs.rows);
    v->dbs.rows[v->dbs.n] = (struct db_row){.db = v->dbs.n, .number = STORE_HIDDEN_DB};
    v->batch.dbs_before = mem_zalloc(v->dbs.n * sizeof *v->batch.dbs_before);
    v->call.dbs_before = mem_zalloc(v->dbs.n * sizeof *v->call.dbs_before);
    v->batch.db_written = mem_zalloc(v->dbs.n * sizeof *v->batch.db_written);
    rand_init(&v->rnd);
    enum status st = engine_load_dbs(e, err);
    if (st != ST_OK) {
        engine_free(e);
        return st;
    }
    *ret = e;
    return ST_OK;
}

void engine_free(struct engine *e)
{
    if (!e)
        return;
    struct view *v = &e->view;
    cache_free(v->cache);
    memos_release(&v->memos);
    map_release(&v->watches.by_key);
    view_release_items(&v->batch.items);
    arena_release(&v->batch.arena);
    arena_release(&v->call.scratch);
    view_shared_release(v);
    mem_free(v->dbs.rows);
    mem_free(v->batch.dbs_before);
    mem_free(v->call.dbs_before);
    mem_free(v->batch.db_written);
    mem_free(v->batch.changes);
    mem_free(v->batch.trash);
    mem_free(v->batch.ready);
    mem_free(v->call.undo);
    mem_free(v->mark.rows);
    mem_free(e);
}

struct view *engine_view(struct engine *e)
{
    return &e->view;
}

struct cache *engine_cache(struct engine *e)
{
    return e->view.cache;
}

struct store *engine_store(struct engine *e)
{
    return e->store;
}

struct error *engine_error(struct engine *e)
{
    return &e->call_err;
}

const struct engine_stats *engine_get_stats(const struct engine *e)
{
    return &e->stats;
}

void engine_reset_stats(struct engine *e)
{
    uint64_t dirty = e->stats.dirty;
    e->stats = (struct engine_stats){.dirty = dirty};
    e->tally = (struct engine_tally){.dirty = e->tally.dirty};
    cache_reset_stats(e->view.cache);
}

const struct engine_tally *engine_tally(const struct engine *e)
{
    return &e->tally;
}

void engine_add_tally(struct engine_stats *to, const struct engine_tally *t)
{
    to->commands += t->commands;
    to->commit_failures += t->commit_failures;
    to->keyspace_hits += t->keyspace_hits;
    to->keyspace_misses += t->keyspace_misses;
    to->expired_on_read += t->expired_on_read;
    to->dirty += t->dirty;
}

void engine_post_tally(struct engine *e)
{
    engine_add_tally(&e->stats, &e->tally);
    e->tally = (struct engine_tally){0};
}

void engine_drop_tally(struct engine *e)
{
    if (e->tally.expired_on_read) /* what is asked for again is counted again */
        memset(e->view.expired_marks, 0, sizeof e->view.expired_marks);
    e->tally = (struct engine_tally){0};
}

size_t engine_pending_bytes(const struct engine *e)
{
    return e->view.batch.bytes + e->view.batch.items.bytes;
}

struct engine_memory engine_memory(const struct engine *e)
{
    return (struct engine_memory){
        .rows = cache_get_stats(e->view.cache)->bytes,
        .collections = e->view.memos.bytes,
        .changes = engine_pending_bytes(e),
        .store = e->progress.memory,
    };
}

bool engine_counts(const struct engine *e, uint32_t db, int64_t *ret_keys, int64_t *ret_expires)
{
    *ret_keys = e->view.dbs.rows[db].keys;
    *ret_expires = e->view.dbs.rows[db].expires;
    return !e->view.dbs.counts_stale;
}

/* ---- a batch ---- */

/* Rows and what memory knows of collections share one budget; memos cannot take more than half of it. What
   the store keeps until it is in the tables is bounded by journal-max, and by what it may borrow here. */
void engine_keep_budget(struct engine *e)
{
    struct view *v = &e->view;
    size_t budget = cache_budget(v->cache), lent = e->progress.borrowed;
    memos_trim(&v->memos, lent < budget ? (budget - lent) / 2 : 0);
    cache_evict(v->cache, v->memos.bytes + lent);
}

/* Whatever memory remembers may be wrong: the tables hold what it does not know of. */
static enum status forget(struct engine *e, struct error *err)
{
    cache_drop(e->view.cache);
    memos_drop_all(&e->view.memos);
    e->view.dbs.counts_stale = e->view.dbs.counts_unsaved = true;
    view_note_undone(&e->view, STORE_HIDDEN_DB);
    e->unsure = false;
    return engine_load_dbs(e, err);
}

void engine_forget(struct engine *e)
{
    e->unsure = true;
}

/* The same over tables that other servers write to: beginning has read the rows of the databases, unless the
   batch is a brief one, which needs no counts. */
static enum status begun_shared(struct engine *e, struct error *err)
{
    enum status st = store_brief(e->store) ? ST_OK : engine_load_dbs(e, err);
    e->unsure = false;
    if (st == ST_OK)
        view_begin_shared(&e->view);
    else
        store_rollback(e->store);
    return st;
}

/* A database that crashed may have taken the word back that a block of ids is ours, if its commit was not
   waited for, and give them to another server. */
static void note_connection(struct engine *e)
{
    uint64_t connection = store_connection(e->store);
    if (connection != e->connection)
        e->view.ids.next = e->view.ids.end = 0;
    e->connection = connection;
}

enum status engine_begun(struct engine *e, bool changed, struct error *err)
{
    enum status st = ST_OK;
    note_connection(e);
    e->view.batch.now_us = clock_wall_us();
    e->view.batch.ticket = e->last + 1;
    e->view.batch.durable = e->progress.durable;
    if (store_shared(e->store))
        return begun_shared(e, err);
    e->view.batch.first_seq = e->progress.first_seq;
    e->stats.external_changes += changed;
    if ((changed || e->unsure) && (st = forget(e, err)) != ST_OK) {
        e->unsure = true;
        store_rollback(e->store);
    }
    return st;
}

/* A conflict is no failure to write: what it concerns may be run again. */
static void note_failure(struct engine *e, enum status st)
{
    e->failed |= st != ST_CONFLICT;
    e->failed_behind = e->progress.durable;
}

bool engine_cannot_write(const struct engine *e)
{
    return e->failed || e->progress.failing;
}

/* The store is told what the batch has declared: a shared one all, another one whether memory is enough. */
static enum status begin(struct engine *e, enum store_txn kind, bool *ret_changed, struct error *err)
{
    if (!store_shared(e->store)) {
        const struct view_declared *v = &e->view.declared;
        struct store_declared d = {.keys = v->keys, .nkeys = v->n, .rows_only = v->rows_only};
        return store_begin(e->store, kind, &d, ret_changed, err);
    }
    e->view.keep.writes = kind != STORE_READ;
    if (e->view.keep.writes)
        view_peek_kept(&e->view);
    struct store_declared d = view_declared(&e->view);
    return store_begin(e->store, kind, &d, ret_changed, err);
}

enum status engine_begin(struct engine *e, bool write, struct error *ret_write_err, struct error *err)
{
    bool changed = false;
    ret_write_err->code = ST_OK;
    enum status st = ST_OK;
    if (write)
        st = begin(e, STORE_WRITE, &changed, ret_write_err);
    if (st != ST_OK && st != ST_BUSY && !e->later && !store_only_reads(e->store)) /* others tell later */
        note_failure(e, st);
    e->in_write = write && st == ST_OK;
    if (!e->in_write)
        st = begin(e, STORE_READ, &changed, err);
    if (st != ST_OK) {
        view_undeclare(&e->view);
        return st;
    }
    e->stats.batches++;
    st = engine_begun(e, changed, err);
    if (st == ST_OK && !store_shared(e->store) && e->view.declared.n) {
        struct error ignored; /* a command that asks for a key which is missing then fails itself */
        (void)view_load_declared(&e->view, &ignored);
    } else {
        view_undeclare(&e->view);
    }
    return st;
}

void engine_enter(struct engine *e)
{
    struct view *v = &e->view;
    v->call.wrote = v->call.steps_wrote = v->call.flushed = v->call.dbs_changed = v->call.look_only = false;
    v->call.number++;
    v->call.step_undo = 0;
    e->steps = e->steps_dirty = 0;
    e->call_err.code = ST_OK;
    /* After a command that failed midway its rows are still in the transaction: whatever is read there, the
       batch fails. */
    v->call.wait = v->batch.poison != ST_OK ? v->batch.ticket : 0;
    v->batch.doubtful |= v->batch.poison != ST_OK;
    v->call.ntrash_before = v->batch.ntrash;
    v->call.nready_before = v->batch.nready;
    v->call.nranges_before = v->batch.items.nranges;
}

void engine_ignore_batch(struct engine *e)
{
    e->view.call.wait = 0;
}

void engine_step(struct engine *e)
{
    struct view *v = &e->view;
    e->steps++;
    e->steps_dirty += v->call.wrote;
    view_step(v);
    v->call.look_only = false;
    arena_reset(&v->call.scratch);
    engine_keep_budget(e);
}

void engine_mark(struct engine *e)
{
    struct view *v = &e->view;
    e->steps_dirty += v->call.wrote;
    e->marked_dirty = e->steps_dirty;
    view_step(v);
    view_mark(v);
}

bool engine_is_marked(const struct engine *e)
{
    return e->view.mark.on;
}

void engine_forget_mark(struct engine *e)
{
    view_forget_mark(&e->view);
}

enum status engine_undo_to_mark(struct engine *e)
{
    enum status st = view_undo_to_mark(&e->view);
    e->steps_dirty = e->marked_dirty;
    arena_reset(&e->view.call.scratch);
    engine_keep_budget(e);
    return st;
}

struct engine_trace engine_leave(struct engine *e, bool keep)
{
    struct view *v = &e->view;
    v->mark.on = false;
    enum status failure = keep ? ST_OK : e->call_err.code;
    bool wrote = keep && (v->call.wrote || v->call.steps_wrote);
    /* What a command found wrong behind one that failed midway is not: the batch's failure is told. */
    bool told = failure == ST_OK || (failure == ST_CORRUPT && v->batch.doubtful);
    int64_t wait = told && v->call.wait > v->batch.durable ? v->call.wait : 0;
    e->tally.commands += 1 + e->steps;
    if (keep)
        e->tally.dirty += e->steps_dirty + v->call.wrote;
    if (keep)
        view_accept(v);
    else
        view_undo(v, failure);
    if (e->call_err.code == ST_CONFLICT)
        v->batch.poison = ST_CONFLICT;
    /* A call may be within another one, which has its own. */
    v->call.wrote = v->call.steps_wrote = v->call.flushed = false;
    e->steps = e->steps_dirty = 0;
    arena_reset(&v->call.scratch);
    engine_keep_budget(e);
    return (struct engine_trace){.wrote = wrote, .wait = wait};
}

bool engine_conflicted(const struct engine *e)
{
    return e->view.batch.poison == ST_CONFLICT;
}

static enum status commit(struct engine *e, struct error *err)
{
    struct view *v = &e->view;
    if (v->batch.poison != ST_OK)
        return error_set(err, v->batch.poison,
                         "a command of this batch failed midway; nothing of it was kept");
    v->call.err = err;
    v->batch.ends = true;
    enum status st = view_flush(v);
    v->batch.ends = false;
    v->call.err = &e->call_err;
    arena_reset(&v->call.scratch);
    return st == ST_OK ? store_commit(e->store, err) : st;
}

void engine_abandon(struct engine *e)
{
    store_rollback(e->store);
    view_rolled_back(&e->view);
}

/* A batch that changed nothing. */
static enum status end_reading(struct engine *e, struct error *err)
{
    enum status st = ST_OK;
    bool brief = store_shared(e->store) && store_brief(e->store);
    bool proves = e->in_write && (e->store->certified || brief);
    if (proves)
        st = store_commit(e->store, err);
    if (!proves || st != ST_OK)
        engine_abandon(e);
    else
        view_rolled_back(&e->view);
    return st;
}

enum status engine_commit(struct engine *e, int64_t *ret_ticket, struct error *err)
{
    struct view *v = &e->view;
    if (ret_ticket)
        *ret_ticket = v->batch.ticket;
    if (!v->batch.kept && !v->batch.doubtful && v->batch.poison != ST_CONFLICT)
        return end_reading(e, err);
    int64_t start = clock_mono_us();
    enum status st = commit(e, err);
    if (st != ST_OK) {
        engine_abandon(e);
        e->unsure |= st == ST_UNKNOWN;
        e->tally.commit_failures++;
        note_failure(e, st);
        return st;
    }
    view_committed(v);
    /* A store gives no ticket to what comes to nothing: a key that was made and deleted again, say. */
    e->last = e->later ? store_last_ticket(e->store) : v->batch.ticket;
    if (!e->later) {
        e->progress.durable = e->last;
        e->failed = false;
    }
    engine_keep_budget(e);
    e->stats.commits++;
    histogram_add(&e->stats.commit_us, (uint64_t)(clock_mono_us() - start));
    return ST_OK;
}

/* ---- between batches ---- */

enum status engine_chore(struct engine *e, bool lazy, engine_chore_fn *fn, void *arg, struct error *err)
{
    struct view *v = &e->view;
    bool changed = false;
    view_declare_more(v, false);
    enum status st = begin(e, lazy ? STORE_WRITE_LAZY : STORE_WRITE, &changed, err);
    if (st == ST_OK)
        st = engine_begun(e, changed, err);
    view_undeclare(v);
    if (st != ST_OK)
        return st;
    e->in_write = true;
    engine_enter(e);
    v->call.err = err;
    st = fn(arg, v);
    v->call.err = &e->call_err;
    arena_reset(&v->call.scratch);
    if (st == ST_OK) {
        view_accept(v);
        return engine_commit(e, NULL, err);
    }
    view_undo(v, st);
    engine_abandon(e);
    return st;
}

enum status engine_progress(struct engine *e, struct error *err)
{
    if (!e->later)
        return ST_OK;
    enum status st = store_progress(e->store, &e->progress, err);
    e->failed &= e->progress.durable <= e->failed_behind;
    if (st == ST_OK)
        return ST_OK;
    struct error again;
    note_failure(e, st);
    e->last = e->progress.durable;
    e->view.dbs.ticket = e->view.ids.next = e->view.ids.end = 0;
    e->stats.commit_failures++;
    e->unsure |= forget(e, &again) != ST_OK;
    return st;
}

void engine_peek(struct engine *e)
{
    if (!e->later)
        return;
    int64_t durable = store_durable(e->store);
    if (durable > e->progress.durable)
        e->progress.durable = durable;
}

int64_t engine_durable(const struct engine *e)
{
    return e->progress.durable;
}

bool engine_settled(const struct engine *e, int64_t ticket)
{
    return ticket <= e->progress.durable || e->progress.durable == e->last;
}

bool engine_full(const struct engine *e)
{
    return e->progress.full;
}

bool engine_stops(const struct engine *e)
{
    return e->progress.stops;
}

void engine_on_progress(struct engine *e, store_wake_fn *fn, void *arg)
{
    if (e->later)
        store_on_progress(e->store, fn, arg);
}

void engine_alone(struct engine *e, bool alone)
{
    if (e->later)
        store_alone(e->store, alone);
}

void engine_ending(struct engine *e, int64_t ms)
{
    if (store_commits_later(e->store))
        store_ending(e->store, ms);
}

enum status engine_sync(struct engine *e, struct error *err)
{
    return store_sync(e->store, err);
}
