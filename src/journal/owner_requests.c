/* What the owner asks the thread for: that everything is in the tables, or durable, another durability, a
   step of the sweeper, and how it goes. */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "journal/owner.h"
#include "journal/writer.h"

/* ---- draining ---- */

static bool all_applied(struct journal_store *s)
{
    return locked(s)->durable >= s->owner.last_ticket && !s->owner.layers.mem[1] &&
           memtable_stats(active(s)).empty;
}

/* Why not all of it is durable, or in the tables. */
static enum status why_not_drained(struct journal_store *s, bool tables, struct error *err)
{
    const struct journal_failures *f = &locked(s)->failures;
    if (f->over || f->failed == ST_OK)
        return journal_failure(f, tables, err);
    *err = f->undone;
    return f->failed;
}

/* At the end: whether the tables have been waited for long enough, and the log has what they lack. */
static bool leaves_the_rest(struct journal_store *s)
{
    int64_t end_us = s->owner.end_us;
    return end_us && clock_mono_us() >= end_us && locked(s)->durable >= s->owner.last_ticket;
}

/* Whether trying again is in vain. Another process's lock is waited for at the end, however short
   busy-timeout is: what waits for it is in the log. */
static bool drains_in_vain(struct journal_store *s)
{
    const struct journal_failures *f = &locked(s)->failures;
    bool waits = s->owner.end_us && f->stuck == ST_BUSY;
    return f->failing != ST_OK || (f->stuck != ST_OK && !waits);
}

enum status owner_drain(struct journal_store *s, struct error *err)
{
    journal_lock(s);
    struct journal_shared *l = locked(s);
    const struct journal_failures *f = &l->failures;
    uint64_t times = f->times;
    l->hurry = true;
    l->retry_us = l->log.retry_us = l->task.retry_us = 0;
    for (;;) {
        owner_advance(s);
        bool in_vain = f->times != times && drains_in_vain(s);
        if (f->failed != ST_OK || in_vain || f->over || all_applied(s))
            break;
        if (leaves_the_rest(s)) {
            l->abandon = true;
            break;
        }
        if (l->durable >= s->owner.last_ticket && !s->owner.layers.mem[1]) {
            l->freeze_wanted = true;
            continue;
        }
        pthread_cond_signal(&s->lock.work);
        logger_wake(s);
        journal_wait(s, &s->lock.told, s->owner.end_us ? s->owner.end_us : INT64_MAX);
    }
    l->hurry = false;
    enum status st = why_not_drained(s, !l->abandon, err);
    journal_unlock(s);
    return st;
}

/* Waits until all that was committed is durable in the log, or that was tried once more in vain. */
static enum status flush_log(struct journal_store *s, struct error *err)
{
    journal_lock(s);
    struct journal_shared *l = locked(s);
    const struct journal_failures *f = &l->failures;
    uint64_t times = f->times;
    l->log.retry_us = 0;
    for (;;) {
        owner_advance(s);
        bool in_vain = f->times != times && f->failing != ST_OK;
        if (f->failed != ST_OK || in_vain || f->over || l->log.synced >= s->owner.last_ticket)
            break;
        logger_ask_sync(s, s->owner.last_ticket);
        journal_wait(s, &s->lock.told, INT64_MAX);
    }
    enum status st = why_not_drained(s, false, err);
    journal_unlock(s);
    return st;
}

/* ---- jobs ---- */

static enum status run_job(struct journal_store *s, enum journal_job job, struct error *err)
{
    journal_lock(s);
    struct journal_shared *l = locked(s);
    const struct journal_failures *f = &l->failures;
    l->job = job;
    pthread_cond_signal(&s->lock.work);
    while (l->job != JOB_NONE && f->failed == ST_OK && !f->over)
        journal_wait(s, &s->lock.told, INT64_MAX);
    enum status st = f->over ? f->why.code : f->failed;
    *err = f->over ? f->why : st != ST_OK ? f->undone : l->job_error;
    if (st == ST_OK)
        st = l->job_status;
    l->job = JOB_NONE;
    journal_unlock(s);
    return st;
}

enum status owner_sync(struct store *base, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = owner_drain(s, err);
    if (st != ST_OK)
        return st;
    journal_lock(s);
    bool abandoned = locked(s)->abandon;
    journal_unlock(s);
    return abandoned ? flush_log(s, err) : run_job(s, JOB_SYNC, err);
}

/* What is in the log needs no waiting: the next start goes on with it. */
void owner_ending(struct store *base, int64_t ms)
{
    struct journal_store *s = journal_store_of(base);
    if (s->redo)
        s->owner.end_us = clock_mono_us() + ms * 1000 + 1;
}

static enum durability change_durability(struct journal_store *s, enum durability d)
{
    journal_lock(s);
    enum durability before = locked(s)->durability;
    locked(s)->durability = d;
    journal_unlock(s);
    return before;
}

/* Replies to groups that are not durable yet have left. Under `always` a failure would undo such a group, so
   all are written before. */
enum status owner_set_durability(struct store *base, enum durability d, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = d != DURABILITY_ALWAYS ? ST_OK : s->redo ? flush_log(s, err) : owner_drain(s, err);
    if (st != ST_OK)
        return st;
    enum durability before = change_durability(s, d);
    st = run_job(s, JOB_DURABILITY, err);
    if (st == ST_OK && d == DURABILITY_ALWAYS && !s->redo) /* what was not waited for before */
        st = run_job(s, JOB_SYNC, err);
    if (st != ST_OK)
        change_durability(s, before);
    return st;
}

enum status owner_sweep(struct store *base, const struct sweep_budget *b, struct sweep_result *ret,
                        struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    (void)err;
    journal_lock(s);
    struct journal_shared *l = locked(s);
    *ret = l->sweep.result;
    l->sweep.result = (struct sweep_result){0};
    if (l->sweep.rows == 0 && b->max_rows) {
        l->sweep.rows = b->max_rows;
        l->sweep.dbs = mem_realloc(l->sweep.dbs, (b->ndbs + 1) * sizeof *l->sweep.dbs);
        memcpy(l->sweep.dbs, b->dbs, b->ndbs * sizeof *l->sweep.dbs);
        l->sweep.ndbs = b->ndbs;
        if (l->idle)
            pthread_cond_signal(&s->lock.work);
    }
    journal_unlock(s);
    return ST_OK;
}

static void tell_passes(struct journal_store *s, struct store_info *ret)
{
    struct redo_info log;
    int64_t now = clock_mono_us();
    journal_lock(s);
    const struct journal_shared *l = locked(s);
    const struct journal_passes *p = &l->passes;
    int64_t oldest = l->frozen ? l->frozen_us : l->active_us;
    ret->lag_ms = oldest && oldest < now ? (uint64_t)(now - oldest) / 1000 : 0;
    ret->passes = p->count;
    ret->pass_rows = p->rows;
    ret->pass_ms = (uint64_t)p->us / 1000;
    ret->settle_ms = (uint64_t)p->settle_us / 1000;
    ret->wal_waits = p->wal_waits;
    journal_unlock(s);
    redo_info(s->redo, &log);
    ret->log_bytes = log.bytes;
    ret->log_on_disk = log.on_disk;
}

enum status owner_info(struct store *base, struct store_info *ret, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = store_info(s->reader, ret, err);
    ret->sync_us = s->sync_us;
    ret->commit_us = &s->atomics.commit_us;
    ret->table_reads = s->owner.reads;
    ret->key_lookups = s->owner.lookups;
    ret->journal_bytes = atomic_load(&s->atomics.journal_bytes);
    if (s->redo)
        tell_passes(s, ret);
    for (int i = 0; i < 2; i++)
        ret->memtable_rows += s->owner.layers.mem[i] ? memtable_stats(s->owner.layers.mem[i]).rows : 0;
    return st;
}
