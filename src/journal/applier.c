/* clang-format off */
/* The applier: on a database server, a thread with a session of its own brings the frozen memtable into the tables,
   in ONE transaction (a pass), while the thread that writes goes on writing groups as rows of larder_journal. So what
   anybody reads there with SQL is a state that was: everything up to larder_meta's `applied`, nothing of what
   came later, no change set in part. The applier sweeps, too, between two passes.

   The thread that writes gives it one task at a time (struct applier_task, under the lock) and takes the end of it.
   Everything that both threads look at is changed by the thread that writes, as before.

   Which rows the two sessions touch:

                                            thread, writer's session          applier, third session
     larder_journal                         adds, drops up to `applied`,      reads its last number, on a new
                                            forgets                           connection
     larder_key, items, larder_db,          direct groups, outsized change    passes, sweeps
     larder_trash; next_id, applied         sets
     next_db_number                         raised only, by both
     reached, synced (larder_meta)          with groups; syncs                never
     owner (larder_meta)                    never, while it runs              locked for share, first of all
     larder_seq                             each takes blocks of its own

   So the tables have one writer at a time: a group goes straight into them, or an outsized change set, only while
   nothing is frozen, and a pass begins when something is (goes_direct, may_apply). A sweep begins when nothing is
   frozen; a direct group beside it touches other rows (what is swept is dead), unless it is written for the second
   time: then it goes into the journal. No session ever waits for a row that the other one has, but for `applied`
   between the last statement of a pass and the end of its commit, when a group behind a commit without an answer
   looks whether it has to be lowered: no deadlock.

   What makes a pass applied: its commit was waited for, whatever the durability is, AND the thread that writes has
   read `applied` through its own session (arrived): with several hosts, or after a failover, the two may be connected
   to two different databases, one of which is not it any more. Only then the memtable is let go, and the rows of the
   journal.

   What is left when it ends between any two steps:

     the connection is lost before COMMIT was sent   nothing: the database rolls back
     ... behind it, without an answer                all of the pass, or nothing. All of it is done again: entries are
                                                     states. Nothing newer has come into the tables meanwhile: the
                                                     memtable is still the frozen one. A new session has the applier's
                                                     lock first, which the lost one held: what that was still doing
                                                     is over by then (remote_lock.c)
     the server is killed                            the same; the next one replays the journal's rows behind
                                                     `applied`, in one transaction
     the database crashes, or a standby takes over   as above. A new connection of the applier writes nothing before
                                                     the database has everything that memory takes for written
                                                     (reconcile_applier): the thread that writes brings it up to date,
                                                     or finds that it cannot
     the server is frozen, or cut off, and another   that one comes in when none of the three sessions is there. Who
     server or an application takes over             does not know of the third waits for the row of `owner`, which
                                                     the transaction holds; the next transaction finds another name
                                                     there: ST_LOCKED
     a row is not where it should be                 ST_CONFLICT: all again, by names (remote_apply.c)

   A pass holds at most half of journal-max, or what came in before it could begin. In a Galera cluster, whose write
   sets are bounded, no server can have the tables for itself, so there is no pass. Where a transaction may not take
   long (PostgreSQL's transaction_timeout) it has to be allowed as long as a pass takes. */
/* clang-format on */

#include "base/clock.h"
#include "journal/reconcile.h"
#include "journal/writer.h"

#define PASS_ROWS 2048 /* in one round trip */

/* ---- the applier; without the lock ---- */

/* On a connection on which the database was compared. */
static enum status begin(struct journal_store *s, struct error *err)
{
    enum status st = store_begin(s->third, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK || store_connection(s->third) == s->applier.proven)
        return st;
    st = reconcile_applier(s, err);
    if (st != ST_OK)
        store_rollback(s->third);
    return st;
}

static enum status bring_in(struct journal_store *s, const struct applier_task *t, struct mem_apply *a,
                            struct error *err)
{
    struct changes c;
    int64_t next_id;
    size_t rows = mem_apply_left(a);
    enum status st = begin(s, err);
    if (st != ST_OK)
        return st;
    writer_tell_phase(s, throttle_begin);
    while (st == ST_OK && mem_apply_next(a, PASS_ROWS, &c, &next_id)) {
        c.next_id = next_id;
        c.replay = true;
        st = store_apply(s->third, &c, err);
        if (st == ST_OK)
            st = writer_look_around(s, rows - mem_apply_left(a), err);
    }
    if (st == ST_OK)
        st = store_journal_applied(s->third, t->upto, err);
    writer_tell_phase(s, throttle_commit);
    if (st == ST_OK)
        return store_commit(s->third, err);
    store_rollback(s->third);
    return st;
}

static void pass(struct journal_store *s, struct applier_task *t)
{
    int64_t start = clock_mono_us();
    struct mem_apply *a = mem_apply_new(t->mem);
    while (mem_apply_sort(a, WRITER_MANY_ROWS))
        continue;
    t->rows = mem_apply_left(a);
    t->status = bring_in(s, t, a, &t->err);
    t->us = clock_mono_us() - start;
    mem_apply_free(a);
}

/* What others may change meanwhile is theirs: when it may be tried again, whether to stop. */
static void run(struct journal_store *s)
{
    struct applier_task *shared = &locked(s)->task, t = *shared;
    struct sweep_budget b = writer_sweep_budget(s);
    journal_unlock(s);
    if (t.kind == APPLIER_PASS)
        pass(s, &t);
    else
        t.status = store_sweep(s->third, &b, &t.swept, &t.err);
    journal_lock(s);
    t.retry_us = shared->retry_us;
    t.stop = shared->stop;
    t.done = true;
    *shared = t;
    pthread_cond_signal(&s->lock.work);
}

void *applier_run(void *arg)
{
    struct journal_store *s = arg;
    journal_lock(s);
    const struct applier_task *t = &locked(s)->task;
    while (!t->stop) {
        if (t->kind != APPLIER_NOTHING && !t->done)
            run(s);
        else
            journal_wait(s, &s->lock.task, INT64_MAX);
    }
    journal_unlock(s);
    return NULL;
}

/* ---- the thread that writes; holding the lock ---- */

static void ask(struct journal_store *s, enum applier_kind kind)
{
    struct applier_task *t = &locked(s)->task;
    t->kind = kind;
    t->done = false;
    pthread_cond_signal(&s->lock.task);
}

static void ask_pass(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    writer_count_pass(s);
    locked(s)->task.mem = l->frozen;
    locked(s)->task.upto = l->frozen_upto;
    ask(s, APPLIER_PASS);
}

void applier_stop(struct journal_store *s)
{
    locked(s)->task.stop = true;
    pthread_cond_signal(&s->lock.task);
}

int64_t applier_due(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    const struct applier_task *t = &l->task;
    if (t->kind != APPLIER_NOTHING)
        return t->done ? 0 : INT64_MAX;
    if (l->frozen)
        return l->durable >= l->frozen_upto && !l->frozen_outsized ? t->retry_us : INT64_MAX;
    return l->sweep.rows && !s->thread.unanswered ? t->retry_us : INT64_MAX;
}

/* Whether the database of the writer's session has it. Without the lock. */
static enum status arrived(struct journal_store *s, int64_t upto, struct error *err)
{
    struct journal_state now = {0};
    enum status st = writer_begin(s, STORE_READ, err);
    if (st != ST_OK)
        return st;
    st = store_journal_state(s->writer, &now, err);
    store_rollback(s->writer);
    if (st != ST_OK || now.applied >= upto)
        return st;
    store_reconnect(s->third); /* the other one is another database */
    return error_set(err, ST_IO, "the database has not got what was brought into its tables");
}

static void pass_over(struct journal_store *s)
{
    struct applier_task *t = &locked(s)->task;
    struct error err = t->err;
    enum status st = t->status;
    int64_t upto = t->upto;
    if (st == ST_OK) {
        journal_unlock(s);
        st = arrived(s, upto, &err);
        journal_lock(s);
    }
    t->kind = APPLIER_NOTHING;
    if (st == ST_OK) {
        struct journal_passes *n = &locked(s)->passes;
        n->count++;
        n->rows = t->rows;
        n->us = t->us;
        writer_all_in(s);
    } else {
        throttle_again(&locked(s)->throttle, clock_mono_us());
        writer_pass_failed(s, &err);
    }
    writer_tell(s);
}

/* A sweep that failed is asked for again by the owner. */
static void sweep_over(struct journal_store *s)
{
    struct applier_task *t = &locked(s)->task;
    t->kind = APPLIER_NOTHING;
    if (t->status != ST_OK)
        (void)writer_is_over(s, t->status, &t->err);
    writer_swept(s, t->status, &t->swept);
}

void applier_proceed(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (l->task.done && l->task.kind == APPLIER_PASS)
        pass_over(s);
    else if (l->task.done && l->task.kind == APPLIER_SWEEP)
        sweep_over(s);
    else if (l->frozen)
        ask_pass(s);
    else
        ask(s, APPLIER_SWEEP);
}
