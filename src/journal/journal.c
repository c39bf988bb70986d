/* Opening and closing a store with a journal. */
#include "journal/journal.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal/journal_internal.h"
#include "journal/owner.h"
#include "journal/redo_start.h"
#include "journal/replay.h"
#include "journal/snapshots.h"
#include "journal/writer.h"

#define GAP_ROWS  16                /* that a scan passes before a gap is remembered (gaps.h) */
#define FAR_BYTES ((size_t)2 << 20) /* of a group on a database server: packets have limits there ... */
#define LOG_BYTES ((size_t)8 << 20) /* ... and elsewhere: its first replies wait for the last */

/* ---- the lock ---- */

void journal_wait(struct journal_store *s, pthread_cond_t *signal, int64_t until)
{
    s->lock.held = false;
    if (until == INT64_MAX) {
        pthread_cond_wait(signal, &s->lock.mutex);
    } else {
        struct timespec ts = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
        pthread_cond_timedwait(signal, &s->lock.mutex, &ts);
    }
    s->lock.holder = pthread_self();
    s->lock.held = true;
}

static void lock_init(struct journal_lock *l)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&l->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->work, &attr);
    pthread_cond_init(&l->log, &attr);
    pthread_cond_init(&l->task, &attr);
    pthread_cond_init(&l->told, &attr);
    pthread_cond_init(&l->clean, &attr);
    pthread_condattr_destroy(&attr);
}

static void lock_release(struct journal_lock *l)
{
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->log);
    pthread_cond_destroy(&l->task);
    pthread_cond_destroy(&l->told);
    pthread_cond_destroy(&l->clean);
    pthread_mutex_destroy(&l->mutex);
}

/* ---- closing ---- */

static void release_shared(struct journal_store *s)
{
    journal_lock(s);
    owner_drop_groups(s);
    logger_release(s);
    mem_free(locked(s)->written);
    mem_free(locked(s)->sweep.dbs);
    journal_unlock(s);
}

/* There is no thread, or it has ended. */
static void free_store(struct journal_store *s)
{
    release_shared(s);
    for (struct journal_group *g = s->kept.first, *next; g; g = next) {
        next = g->next;
        journal_group_free(g);
    }
    memtable_free(s->owner.layers.mem[0]);
    memtable_free(s->owner.layers.mem[1]);
    gaps_free(s->owner.layers.gaps);
    memtable_free(s->owner.spare);
    memtable_free(s->thread.direct);
    mem_apply_free(s->thread.pass.apply);
    store_close(s->reader);
    store_close(s->third);
    store_close(s->writer);
    buf_release(&s->owner.txn.entries);
    mem_free(s->owner.pending);
    mem_free(s->thread.dbs);
    lock_release(&s->lock);
    struct error ignored;
    (void)redo_close(s->redo, false, &ignored);
    mem_free(s);
}

static void end_applier(struct journal_store *s)
{
    if (!s->third)
        return;
    journal_lock(s);
    applier_stop(s);
    journal_unlock(s);
    pthread_join(s->applier.id, NULL);
}

static void close_store(struct store *base)
{
    struct journal_store *s = journal_store_of(base);
    struct error ignored; /* what is not in the tables is in the journal, or in the log */
    owner_rollback(base);
    (void)(owner_drain(s, &ignored) == ST_OK);
    journal_lock(s);
    locked(s)->stop = true;
    pthread_cond_signal(&s->lock.work);
    logger_wake(s);
    journal_unlock(s);
    if (s->redo)
        pthread_join(s->logger.id, NULL);
    pthread_join(s->thread.id, NULL);
    end_applier(s);
    const struct journal_shared *l = &s->under_lock;
    const struct journal_failures *f = &l->failures;
    if (!s->redo && !f->over && f->failed == ST_OK && f->failing == ST_OK)
        run_end(s->writer, &s->run, l->durable);
    if (s->redo && redo_end(s->writer, s->redo, l->applied == l->durable, &ignored) != ST_OK)
        log_warning("the log stays beside the database", "error=\"%s\"", ignored.text);
    else if (s->redo && l->abandon)
        log_info("the log stays beside the database: the next start goes on with it", "left=%lld",
                 (long long)(l->durable - l->applied));
    s->redo = NULL;
    free_store(s);
}

/* ---- opening ---- */

/* What it remembers outlives connections: reconcile.c compares. */
static uint64_t no_connection(const struct store *base)
{
    (void)base;
    return 0;
}

static const struct store_ops journal_ops = {
    .close = close_store,
    .begin = owner_begin,
    .get_keys = owner_get_keys,
    .get_items = owner_get_items,
    .scan_keys = owner_scan_keys,
    .scan_items = owner_scan_items,
    .count_items = owner_count_items,
    .due_rows = owner_due_rows,
    .count_dead = owner_count_dead,
    .count_keys = owner_count_keys,
    .load_dbs = owner_load_dbs,
    .reserve_ids = owner_reserve_ids,
    .apply = owner_apply,
    .mark = owner_mark,
    .undo = owner_undo,
    .commit = owner_commit,
    .rollback = owner_rollback,
    .sweep = owner_sweep,
    .info = owner_info,
    .set_durability = owner_set_durability,
    .sync = owner_sync,
    .connection = no_connection,
};

static const struct deferred_ops journal_deferred_ops = {
    .last_ticket = owner_last_ticket,
    .durable = owner_durable,
    .progress = owner_progress,
    .on_progress = owner_on_progress,
    .alone = owner_alone,
    .ending = owner_ending,
};

static struct journal_store *new_store(struct store *reader, struct store *writer,
                                       const struct store_options *o, const struct journal_options *j)
{
    struct journal_store *s = mem_zalloc(sizeof *s);
    s->base.ops = &journal_ops;
    s->base.deferred = &journal_deferred_ops;
    s->base.snapshots = &journal_snapshot_ops;
    s->base.far = reader->far;
    s->reader = s->owner.layers.tables = reader;
    s->writer = writer;
    s->options = *j;
    s->group_bytes = reader->far ? FAR_BYTES : LOG_BYTES;
    s->set_bytes = reader->far ? FAR_BYTES : SIZE_MAX;
    s->owner.layers.mem[0] = memtable_new(0);
    s->owner.layers.gaps = gaps_new(GAP_ROWS);
    s->thread.direct = memtable_new(0);
    s->thread.ndbs = o->databases;
    s->thread.dbs = mem_zalloc((s->thread.ndbs + 1) * sizeof *s->thread.dbs);
    lock_init(&s->lock);
    return s;
}

/* What an earlier process left and is not in the tables: as if we had frozen it. It is in the log still, or
   could not be applied. Holding the lock. */
static void inherit(struct journal_store *s, const struct journal_past *past)
{
    struct journal_shared *l = locked(s);
    l->frozen = s->owner.layers.mem[1] = past->mem;
    l->frozen_upto = past->last;
    s->thread.torn = !past->redo;
    if (!past->redo) {
        l->inherited = true;
        l->failures.stuck = past->why.code;
        l->failures.waits = past->why;
    }
    s->owner.frozen_seq = s->owner.next_seq = past->next_seq;
    s->thread.pass.bytes = past->bytes;
    s->thread.pass.counted = true;
    l->frozen_us = clock_mono_us();
    l->frozen_wall_ms = clock_wall_us() / 1000;
    throttle_freeze(&l->throttle, memtable_stats(past->mem).rows, l->frozen_us);
    atomic_store(&s->atomics.journal_bytes, past->bytes);
}

/* Tickets go on where the journal has ended. */
static void begin_behind(struct journal_store *s, const struct journal_past *past, enum durability d)
{
    journal_lock(s);
    locked(s)->durability = d;
    locked(s)->durable = locked(s)->committed = past->last;
    locked(s)->applied = locked(s)->in_tables = past->applied;
    s->owner.last_ticket = past->last;
    s->owner.next_seq = s->owner.first_seq = STORE_PROVISIONAL;
    locked(s)->journaled = past->last;
    s->thread.dropping = true;
    s->kept.synced = s->kept.safe = past->last;
    s->redo = past->redo;
    s->third = past->third;
    locked(s)->log.synced = past->last;
    s->thread.released = past->applied;
    s->kept.going_by = s->redo ? DURABILITY_ALWAYS : d;
    s->run = past->run;
    s->thread.records = !s->redo && s->run.database && d != DURABILITY_ALWAYS;
    s->base.replicated = s->run.database ? &owner_replicated_ops : NULL;
    if (past->mem)
        inherit(s, past);
    journal_unlock(s);
}

static enum status take_next_id(struct journal_store *s, struct error *err)
{
    int64_t *next = &s->owner.next_id;
    const struct memtable *inherited = s->owner.layers.mem[1];
    enum status st = store_reserve_ids(s->writer, 0, next, err);
    int64_t left = inherited ? memtable_next_id(inherited) : 0;
    if (st == ST_OK && left > *next)
        *next = left;
    return st;
}

static enum status start_thread(struct journal_store *s, pthread_t *id, void *(*run)(void *),
                                struct error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals stay with the threads that were there before */
    int e = pthread_create(id, NULL, run, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e == 0 ? ST_OK : error_set(err, ST_INTERNAL, "cannot start a thread: %s", strerror(e));
}

/* The thread that writes, and the logger or the applier. */
static enum status start_threads(struct journal_store *s, struct error *err)
{
    enum status st = start_thread(s, &s->thread.id, writer_run, err);
    if (st != ST_OK || !(s->redo || s->third))
        return st;
    st = s->redo ? start_thread(s, &s->logger.id, logger_run, err)
                 : start_thread(s, &s->applier.id, applier_run, err);
    if (st == ST_OK)
        return ST_OK;
    journal_lock(s);
    locked(s)->stop = true;
    pthread_cond_signal(&s->lock.work);
    journal_unlock(s);
    pthread_join(s->thread.id, NULL);
    return st;
}

/* With a log, what the tables sync of their own accord is what the log does not have. */
static enum status prepare_writer(struct journal_store *s, struct error *err)
{
    struct store_info info = {0};
    struct redo_info log;
    enum status st = ST_OK;
    if (s->base.far) /* an earlier process may have waited for less */
        st = store_sync(s->writer, err);
    else if (s->redo)
        st = store_set_durability(s->writer, DURABILITY_ALWAYS, err);
    if (st == ST_OK && s->redo)
        st = store_write_in_bulk(s->writer, writer_meanwhile, s, err);
    s->kept.proven = store_connection(s->writer);
    s->owner.reader_proven = store_connection(s->reader);
    s->applier.proven = s->third ? store_connection(s->third) : 0;
    if (st == ST_OK)
        st = store_info(s->writer, &info, err);
    s->sync_us = info.sync_us;
    if (s->redo) {
        redo_info(s->redo, &log);
        s->sync_us = log.sync_us;
    }
    return st;
}

enum status journal_store_over(struct store *reader, struct store *writer, const struct journal_past *past,
                               const struct store_options *o, const struct journal_options *j,
                               struct store **ret, struct error *err)
{
    struct journal_store *s = new_store(reader, writer, o, j);
    begin_behind(s, past, o->durability);
    enum status st = take_next_id(s, err);
    if (st == ST_OK)
        st = prepare_writer(s, err);
    if (st == ST_OK)
        st = start_threads(s, err);
    if (st != ST_OK) {
        free_store(s);
        return st;
    }
    *ret = &s->base;
    return ST_OK;
}

/* Its commits are waited for, whatever the durability is. */
static enum status open_third(const struct store_options *o, struct store **ret, struct error *err)
{
    struct store_options third = *o;
    third.applies = true;
    third.durability = DURABILITY_ALWAYS;
    return store_open(&third, ret, err);
}

enum status journal_store_open(const struct store_options *o, const struct journal_options *j,
                               struct store **ret, struct error *err)
{
    struct store *reader = NULL, *writer = NULL;
    struct store_options half = *o;
    struct journal_past past = {0};
    half.page_cache /= 2;
    half.journaled = true;
    half.replay = journal_replay;
    enum status st = store_open(&half, &writer, err);
    if (st == ST_OK)
        st = replay_or_keep(writer, o->url, &past, err);
    if (st == ST_OK && !writer->far && !past.mem)
        st = j->max_bytes ? redo_start(writer, o->url, j->log_max, &past, err)
                          : redo_apply_all(writer, o->url, &past, err);
    if (st == ST_OK && (past.redo || !past.mem))
        st = run_begin(writer, o->durability, past.redo, past.last, &past.run, err);
    half.beside = writer;
    if (st == ST_OK && writer->far)
        st = open_third(&half, &past.third, err);
    half.read_only = true;
    if (st == ST_OK)
        st = store_open(&half, &reader, err);
    if (st == ST_OK)
        return journal_store_over(reader, writer, &past, o, j, ret, err);
    memtable_free(past.mem);
    struct error ignored;
    (void)redo_close(past.redo, false, &ignored);
    store_close(past.third);
    store_close(writer);
    return st;
}

struct store *journal_store_writer(struct store *s)
{
    return journal_store_of(s)->writer;
}

enum status journal_replay(struct store *s, const char *url, struct error *err)
{
    struct journal_past past;
    return replay_all(s, url, &past, err);
}
