/* The loop of the thread that writes: it looks what is due, does one thing after the other, and waits when
   there is none. Everything here holds the lock. */
#include "journal/writer.h"

#include "base/clock.h"
#include "journal/snapshots.h"

#define QUIET_US       10000             /* without a group for so long, what is left is applied ... */
#define SCAN_US        200000            /* ... and without a scan */
#define WRITE_EVERY_US 100000            /* between two groups that no reply waits for ... */
#define EAGER_BYTES    ((size_t)4 << 20) /* ... unless there is so much */
#define LOOK_US        1000000           /* how often the connection to a server is looked at */
#define SYNC_US        1000000 /* how long a server's commit that was not waited for may stay unsynced */
#define FIRST_SLICE    256     /* rows, while nothing else is to do; it adapts */

void writer_tell(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    pthread_cond_broadcast(&s->lock.told);
    if (l->wake)
        l->wake(l->wake_arg);
}

/* ---- what is due when ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When the first group is to be written. */
static int64_t group_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    const struct journal_group *g = l->first;
    if (!g)
        return INT64_MAX;
    bool now = l->durability == DURABILITY_ALWAYS || l->hurry || l->stop || g->sealed || l->job ||
               g->row.len >= EAGER_BYTES || snapshots_are_behind(s);
    int64_t due = now ? 0 : g->born_us + WRITE_EVERY_US;
    return due > l->retry_us ? due : l->retry_us;
}

/* When the owner is to be asked to freeze the active memtable. */
static int64_t freeze_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    const struct journal_thread *t = &s->thread;
    if (l->frozen || l->freeze_wanted || t->behind_bytes == 0)
        return INT64_MAX;
    if (t->behind_bytes >= s->options.max_bytes / 2 || l->stop || l->hurry || snapshots_are_behind(s))
        return 0;
    /* Rows that move under a scan are seen twice by it: it is let through first. */
    int64_t quiet = t->written_us + QUIET_US;
    int64_t scanned = atomic_load_explicit(&s->atomics.scanned_us, memory_order_relaxed) + SCAN_US;
    if (scanned > quiet)
        quiet = scanned;
    return earlier(t->behind_us + (int64_t)s->options.lag_ms * 500, quiet);
}

static bool outsized_is_frozen(struct journal_store *s)
{
    return locked(s)->frozen && locked(s)->frozen_outsized;
}

static int64_t look_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (!s->base.far || outsized_is_frozen(s))
        return INT64_MAX;
    return l->looked_us + (l->failures.failing != ST_OK ? WRITER_RETRY_US : LOOK_US);
}

static int64_t sync_due(struct journal_store *s)
{
    bool wanted = s->base.far && s->kept.synced < locked(s)->durable && !outsized_is_frozen(s);
    return wanted ? s->kept.unsynced_us + SYNC_US : INT64_MAX;
}

static bool may_apply(struct journal_store *s, int64_t now)
{
    const struct journal_shared *l = locked(s);
    return l->frozen && l->durable >= l->frozen_upto && now >= l->retry_us;
}

/* All rows of the frozen memtable are in the tables; only larder_meta.applied is to be written, and groups
   that no reply waits for do not carry it. */
static bool finish_due(struct journal_store *s)
{
    const struct writer_slices *w = &s->thread.slices;
    const struct journal_group *first = locked(s)->first;
    bool only_word = s->base.far && w->apply && !w->sorting && mem_apply_left(w->apply) == 0;
    return only_word && !(first && writer_waits_for(s, writer_kind_of(first)));
}

/* By itself: when there is nothing that it could go along with. */
static bool apply_due(struct journal_store *s, int64_t now)
{
    return may_apply(s, now) && (finish_due(s) || (group_due(s) > now && !locked(s)->job));
}

static int64_t next_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (l->failures.failed != ST_OK || l->failures.over)
        return INT64_MAX;
    bool retries = l->frozen || l->sweep.rows || s->thread.dropping;
    int64_t due = earlier(group_due(s), earlier(freeze_due(s), retries ? l->retry_us : INT64_MAX));
    return earlier(due, earlier(look_due(s), sync_due(s)));
}

/* ---- the loop ---- */

/* Groups behind an outsized change set wait for it; the owner's jobs do not. */
static bool do_outsized(struct journal_store *s, int64_t now)
{
    if (now >= locked(s)->retry_us)
        writer_apply_outsized(s);
    else if (locked(s)->job)
        writer_run_job(s);
    else
        return false;
    return true;
}

/* Does one thing. False: there was nothing to do. */
static bool do_something(struct journal_store *s, int64_t now)
{
    struct journal_shared *l = locked(s);
    if (l->failures.failed != ST_OK || l->failures.over)
        return false;
    if (snapshots_are_due(s)) {
        snapshots_let_in(s);
        return true;
    }
    if (outsized_is_frozen(s))
        return do_outsized(s, now);
    if (may_apply(s, now) && !s->thread.slices.apply) {
        writer_start_slices(s);
    } else if (sync_due(s) <= now) {
        writer_sync_idly(s);
    } else if (apply_due(s, now)) {
        writer_apply_idly(s);
    } else if (group_due(s) <= now) {
        writer_write_next(s);
    } else if (l->job) {
        writer_run_job(s);
    } else if (freeze_due(s) <= now) {
        l->freeze_wanted = true;
        writer_tell(s);
    } else if (s->thread.dropping && now >= l->retry_us) {
        writer_drop_idly(s);
    } else if (l->sweep.rows && now >= l->retry_us) {
        writer_sweep(s);
    } else if (look_due(s) <= now) {
        writer_look(s);
    } else {
        return false;
    }
    return true;
}

void *writer_run(void *arg)
{
    struct journal_store *s = arg;
    journal_lock(s);
    struct journal_shared *l = locked(s);
    s->thread.slices.idle_rows = FIRST_SLICE;
    for (;;) {
        if (do_something(s, clock_mono_us()))
            continue;
        if (l->stop && !l->hurry)
            break;
        int64_t due = next_due(s);
        l->idle = true;
        journal_wait(s, &s->lock.work, due);
        l->idle = false;
    }
    journal_unlock(s);
    return NULL;
}
