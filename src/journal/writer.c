/* The loop of the thread that writes: it looks what is due, does one thing after the other, and waits when
   there is none. Everything here holds the lock. */
#include "journal/writer.h"

#include "base/clock.h"
#include "journal/snapshots.h"

#define QUIET_US       10000   /* without a group for so long, what is left is applied ... */
#define SCAN_US        200000  /* ... and without a scan */
#define PASS_SHARE     20      /* frequent passes take no more than this part of the time */
#define WRITE_EVERY_US 100000  /* between two groups that no reply waits for */
#define LOOK_US        1000000 /* how often the connection to a server is looked at */
#define SYNC_US        1000000 /* how long a server's commit that was not waited for may stay unsynced */

void writer_tell(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    pthread_cond_signal(&s->lock.told); /* the owner is one */
    if (l->wake)
        l->wake(l->wake_arg);
}

/* ---- what is due when ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t writer_group_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    const struct journal_group *g = l->first;
    if (!g)
        return INT64_MAX;
    bool now = l->durability == DURABILITY_ALWAYS || l->hurry || l->stop || g->sealed || l->job ||
               g->row.len >= WRITER_EAGER_BYTES || snapshots_are_behind(s);
    return now ? 0 : g->born_us + WRITE_EVERY_US;
}

/* When this thread is to write the first group: where there is a log, the logger does. */
static int64_t group_due(struct journal_store *s)
{
    int64_t due = s->redo ? INT64_MAX : writer_group_due(s), retry = locked(s)->retry_us;
    return due > retry ? due : retry;
}

/* How long changes wait while more of them come. Passes that take little of the time may be frequent; the
   others wait for half of what the tables may be behind, the other half is for the pass: the more rows it
   has, the less a row costs. */
static int64_t longest_wait(struct journal_store *s)
{
    const struct journal_passes *p = &locked(s)->passes;
    int64_t most = (int64_t)s->options.lag_ms * 500, often = (int64_t)s->options.often_ms * 1000;
    int64_t cheap = (p->us + p->settle_us) * PASS_SHARE;
    return often ? earlier(most, cheap > often ? cheap : often) : most;
}

/* When the owner is to be asked to freeze the active memtable. */
static int64_t freeze_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    bool empty = s->redo ? l->active_us == 0 : l->behind_bytes == 0;
    if (l->frozen || l->freeze_wanted || empty)
        return INT64_MAX;
    bool much =
        !s->redo && l->behind_bytes >= s->options.max_bytes / 2; /* with a log the owner sees to that */
    if (much || l->stop || l->hurry || snapshots_are_behind(s))
        return 0;
    /* Rows that move under a scan are seen twice by it: it is let through first. */
    int64_t quiet = (s->redo ? l->commit_us : l->written_us) + QUIET_US;
    /* Writers that were slowed down beside a long pass pause, too: small passes would follow, which cost more
       a row. */
    if (s->redo)
        quiet += l->passes.us / 4;
    int64_t scanned = atomic_load_explicit(&s->atomics.scanned_us, memory_order_relaxed) + SCAN_US;
    if (scanned > quiet)
        quiet = scanned;
    return earlier((s->redo ? l->active_us : l->behind_us) + longest_wait(s), quiet);
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

/* Whether all of the frozen memtable is durable without the tables. */
static bool is_safe(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    return l->frozen && (s->redo ? l->log.synced : l->durable) >= l->frozen_upto;
}

static bool may_apply(struct journal_store *s, int64_t now)
{
    return !s->third && is_safe(s) && now >= locked(s)->retry_us;
}

/* When something is to be done to the tables. An outsized change set is this thread's, when the applier has
   nothing to do. */
static int64_t tables_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (s->third && (applier_is_busy(s) || !outsized_is_frozen(s)))
        return applier_due(s);
    bool waits = s->redo && (outsized_is_frozen(s) ? l->log.busy : !is_safe(s)); /* the logger tells */
    bool passes = l->frozen && !waits;
    return passes || l->sweep.rows ? l->retry_us : INT64_MAX;
}

static int64_t next_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (l->failures.failed != ST_OK || l->failures.over)
        return INT64_MAX;
    int64_t drop_due = s->thread.dropping ? l->retry_us : INT64_MAX;
    int64_t due = earlier(earlier(group_due(s), freeze_due(s)), earlier(tables_due(s), drop_due));
    if (s->redo)
        return earlier(due, writer_settle_due(s));
    return earlier(due, earlier(look_due(s), sync_due(s)));
}

/* ---- the loop ---- */

/* Groups behind an outsized change set wait for it; the owner's jobs do not. One that the logger has taken
   already is waited for: whether it is durable decides what is undone if this fails. */
static bool do_outsized(struct journal_store *s, int64_t now)
{
    if (now >= locked(s)->retry_us && !locked(s)->log.busy && !applier_is_busy(s))
        writer_apply_outsized(s);
    else if (locked(s)->job)
        writer_run_job(s);
    else
        return false;
    return true;
}

/* What has to do with the rows of memtables, where there is a log. */
static bool do_pass(struct journal_store *s, int64_t now)
{
    struct journal_shared *l = locked(s);
    if (l->frozen && !is_safe(s))
        logger_ask_sync(s, l->frozen_upto);
    if (writer_settle_due(s) <= now)
        writer_settle(s);
    else if (may_apply(s, now) && writer_wal_is_short(s))
        writer_pass(s);
    else
        return false;
    return true;
}

/* Where there is none this thread writes groups, too; rows only where there is no applier. */
static bool do_group(struct journal_store *s, int64_t now)
{
    if (sync_due(s) <= now)
        writer_sync_idly(s);
    else if (group_due(s) <= now)
        writer_write_next(s);
    else if (may_apply(s, now) && !locked(s)->job) /* one that fails keeps nobody waiting */
        writer_pass(s);
    else
        return false;
    return true;
}

/* What can wait until the rows are in. */
static bool do_chore(struct journal_store *s, int64_t now)
{
    struct journal_shared *l = locked(s);
    if (l->job) {
        writer_run_job(s);
    } else if (freeze_due(s) <= now) {
        l->freeze_wanted = true;
        s->thread.preparing = s->redo != NULL;
        writer_tell(s);
    } else if (s->thread.dropping && now >= l->retry_us) {
        writer_drop_idly(s);
    } else if (s->thread.preparing) {
        writer_prepare_log(s);
    } else if (!s->third && l->sweep.rows && now >= l->retry_us) {
        writer_sweep(s);
    } else if (look_due(s) <= now) {
        writer_look(s);
    } else {
        return false;
    }
    return true;
}

/* Does one thing. False: there was nothing to do. */
static bool do_something(struct journal_store *s, int64_t now)
{
    struct journal_shared *l = locked(s);
    if (l->failures.failed != ST_OK || l->failures.over || l->abandon)
        return false;
    if (snapshots_are_due(s)) {
        snapshots_let_in(s);
        return true;
    }
    if (s->third && applier_due(s) <= now) {
        applier_proceed(s);
        return true;
    }
    if (outsized_is_frozen(s))
        return do_outsized(s, now);
    if (s->redo && (l->job || s->thread.chores_first)) { /* passes may follow each other without a pause */
        s->thread.chores_first = false;
        if (do_chore(s, now))
            return true;
    }
    return (s->redo ? do_pass(s, now) : do_group(s, now)) || do_chore(s, now);
}

void *writer_run(void *arg)
{
    struct journal_store *s = arg;
    journal_lock(s);
    struct journal_shared *l = locked(s);
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
