/* What the owner asks the thread for: that everything is in the tables, or durable, another durability, a
   step of the sweeper, and how it goes. */
#include <string.h>

#include "base/mem.h"
#include "journal/owner.h"

/* ---- draining ---- */

static bool all_applied(struct journal_store *s)
{
    return locked(s)->durable >= s->owner.last_ticket && !s->owner.layers.mem[1] &&
           memtable_stats(active(s)).empty;
}

/* Why not all of it is in the tables. */
static enum status why_not_drained(struct journal_store *s, struct error *err)
{
    const struct journal_failures *f = &locked(s)->failures;
    enum status st = f->over               ? f->why.code
                     : f->failed != ST_OK  ? f->failed
                     : f->failing != ST_OK ? f->failing
                                           : f->stuck;
    if (st != ST_OK)
        *err = f->failed != ST_OK && !f->over ? f->undone : f->why;
    return st;
}

enum status owner_drain(struct journal_store *s, struct error *err)
{
    journal_lock(s);
    struct journal_shared *l = locked(s);
    const struct journal_failures *f = &l->failures;
    uint64_t times = f->times;
    l->hurry = true;
    l->retry_us = 0;
    for (;;) {
        owner_advance(s);
        bool in_vain = f->times != times && (f->failing != ST_OK || f->stuck != ST_OK);
        if (f->failed != ST_OK || in_vain || f->over || all_applied(s))
            break;
        if (l->durable >= s->owner.last_ticket && !s->owner.layers.mem[1]) {
            l->freeze_wanted = true;
            continue;
        }
        pthread_cond_signal(&s->lock.work);
        journal_wait(s, &s->lock.told, INT64_MAX);
    }
    l->hurry = false;
    enum status st = why_not_drained(s, err);
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
    return st == ST_OK ? run_job(s, JOB_SYNC, err) : st;
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
    enum status st = d == DURABILITY_ALWAYS ? owner_drain(s, err) : ST_OK;
    if (st != ST_OK)
        return st;
    enum durability before = change_durability(s, d);
    st = run_job(s, JOB_DURABILITY, err);
    if (st == ST_OK && d == DURABILITY_ALWAYS) /* what was not waited for before */
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

enum status owner_info(struct store *base, struct store_info *ret, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = store_info(s->reader, ret, err);
    ret->sync_us = s->sync_us;
    ret->commit_us = &s->atomics.commit_us;
    ret->journal_bytes = atomic_load(&s->atomics.journal_bytes);
    for (int i = 0; i < 2; i++)
        ret->memtable_rows += s->owner.layers.mem[i] ? memtable_stats(s->owner.layers.mem[i]).rows : 0;
    return st;
}
