/* clang-format off */
/* Passes: the frozen memtable goes into the tables in one transaction, sorted in the order of their trees, so
   that whoever reads them by SQL always sees a state that was. Commits of clients go into the log meanwhile,
   and wait for none of it.

   THE ORDER of what makes a pass durable, and what a crash of the machine leaves behind each step:

     all of the frozen memtable is synced in the log     all of it, by the log. (Without this step the tables could
                                                         be ahead of the log.)
     BEGIN, rows, larder_meta (applied), COMMIT          nothing syncs it: the state before the pass or after it; the
                                                         log has what is missing
     the owner retires the memtable                      the same; while we live SQLite gives back what was committed
     the tables' own log (WAL) is synced: store_sync     the state after the pass
     redo_applied: segments are used again               the same: the sync above is what it goes by
     the WAL is copied into the tables: store_checkpoint the same; the next pass begins at the WAL's start

   larder_meta is written once and last: SQLite would rewrite the checksums of all frames between a page that
   is written to the WAL first and again at the end.

   What cannot be written is undone as a whole, and tried again: another process's lock, a full disk. The log
   has it all. Only a sync of the WAL that fails is for good (sql/wal.h): no pass begins after it, no segment
   is used again, and the next start brings everything in anew.

   Small passes, of a server that is nearly idle, are not synced one by one: their segments wait for a second,
   or for SETTLE_BYTES. */
/* clang-format on */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/reconcile.h"
#include "journal/redo_state.h"
#include "journal/writer.h"

#define STEP_ROWS    2048                 /* between two looks at what else is going on */
#define SETTLE_US    1000000              /* how long segments may wait for a sync of the tables ... */
#define SETTLE_BYTES ((uint64_t)32 << 20) /* ... or until their own log is so long, which is then copied */
#define WAL_LOOK_US  100000               /* between two looks whether the WAL can start over */
#define WAL_SAY_US   10000000             /* between two lines about that */

/* ---- the transaction; without the lock ---- */

static enum status say_all_in(struct journal_store *s, struct error *err)
{
    int64_t upto = s->thread.pass.upto;
    char at[24];
    if (!s->redo) /* a group that goes straight into the tables does not tell when that was */
        return store_journal_applied(s->writer, upto, err);
    snprintf(at, sizeof at, "%" PRId64, s->thread.pass.wall_ms);
    enum status st = writer_doubt_counts(s, err);
    if (st == ST_OK)
        st = redo_state_follow(s->writer, err);
    if (st == ST_OK)
        st = store_set_word(s->writer, "applied_at", at, err);
    return st == ST_OK ? store_journal_applied(s->writer, upto, err) : st;
}

/* The next rows. *ret_last: there were none any more. */
static enum status apply_rows(struct journal_store *s, bool *ret_last, struct error *err)
{
    struct changes c;
    int64_t next_id;
    *ret_last = !mem_apply_next(s->thread.pass.apply, STEP_ROWS, &c, &next_id);
    c.next_id = next_id;
    c.replay = true;
    return *ret_last ? say_all_in(s, err) : store_apply(s->writer, &c, err);
}

void writer_meanwhile(void *arg)
{
    struct journal_store *s = arg;
    struct error ignored; /* without room the logger finds out when it needs it */
    bool more;
    if (s->redo) /* until it is closed, before the tables are */
        (void)(redo_prepare(s->redo, &more, &ignored) == ST_OK);
}

enum status writer_look_around(struct journal_store *s, size_t done, struct error *err)
{
    enum status st = ST_OK;
    journal_lock(s);
    struct journal_shared *l = locked(s);
    throttle_step(&l->throttle, done, clock_mono_us());
    if (l->failures.over) {
        *err = l->failures.why;
        st = err->code;
    } else if (l->abandon) {
        st = error_set(err, ST_BUSY, "the server ends before all is in the tables");
    }
    journal_unlock(s);
    return st;
}

void writer_tell_phase(struct journal_store *s, void (*phase)(struct throttle *t, int64_t now))
{
    journal_lock(s);
    phase(&locked(s)->throttle, clock_mono_us());
    journal_unlock(s);
}

/* When it cannot begin, what was sorted stays so. */
static enum status apply_everything(struct journal_store *s, enum store_txn kind, struct error *err)
{
    struct writer_pass_state *p = &s->thread.pass;
    bool last = false;
    while (p->sorting)
        p->sorting = mem_apply_sort(p->apply, WRITER_MANY_ROWS);
    p->rows = mem_apply_left(p->apply);
    enum status st = writer_begin(s, kind, err);
    if (st != ST_OK)
        return st;
    writer_tell_phase(s, throttle_begin);
    p->begun = true;
    while (st == ST_OK && !last) {
        st = apply_rows(s, &last, err);
        if (st == ST_OK && !last)
            st = writer_look_around(s, p->rows - mem_apply_left(p->apply), err);
    }
    if (st == ST_OK && s->thread.records)
        st = run_record(s->writer, &s->run, p->upto, err);
    writer_tell_phase(s, throttle_commit);
    st = writer_end(s, st, err);
    return st == ST_OK && s->base.far && !writer_waits_for(s, kind) ? writer_sync(s, err) : st;
}

/* ---- beginning and ending; holding the lock ---- */

void writer_count_pass(struct journal_store *s)
{
    struct writer_pass_state *p = &s->thread.pass;
    struct journal_shared *l = locked(s);
    p->upto = l->frozen_upto;
    if (!p->counted) { /* else it begins again after a failure */
        p->bytes = l->behind_bytes;
        l->behind_bytes = 0;
        p->counted = true;
    }
    l->freeze_wanted = false;
}

static void begin_pass(struct journal_store *s)
{
    struct writer_pass_state *p = &s->thread.pass;
    p->wall_ms = locked(s)->frozen_wall_ms;
    p->began_us = clock_mono_us();
    p->begun = false;
    if (p->apply) /* it could not begin: what was sorted is so */
        return;
    writer_count_pass(s);
    p->apply = mem_apply_new(locked(s)->frozen);
    p->sorting = true;
}

void writer_all_in(struct journal_store *s)
{
    struct writer_pass_state *p = &s->thread.pass;
    struct journal_shared *l = locked(s);
    mem_apply_free(p->apply);
    p->apply = NULL;
    l->frozen = NULL;
    l->applied = l->in_tables = p->upto;
    s->thread.torn = false;
    s->thread.dropping |= !s->redo;
    l->failures.stuck = ST_OK;
    s->thread.pass_since_us = l->task.retry_us = 0;
    if (s->base.far && s->kept.synced < p->upto)
        s->kept.synced = p->upto;
    if (s->base.far)
        reconcile_release(s);
    atomic_fetch_sub(&s->atomics.journal_bytes, p->bytes);
    p->counted = false;
    if (l->inherited)
        log_info("replayed the journal", "bytes=%zu", p->bytes);
    l->inherited = false;
    pthread_cond_broadcast(&s->lock.clean);
}

/* Rows that were handed out and not committed have to be sorted again. */
static void undone(struct journal_store *s)
{
    struct writer_pass_state *p = &s->thread.pass;
    throttle_again(&locked(s)->throttle, clock_mono_us());
    if (!p->begun)
        return;
    mem_apply_free(p->apply);
    p->apply = NULL;
}

static void committed(struct journal_store *s)
{
    struct writer_pass_state *p = &s->thread.pass;
    struct journal_passes *n = &locked(s)->passes;
    int64_t now = clock_mono_us();
    if (!p->unsynced_us)
        p->unsynced_us = now;
    n->count++;
    n->rows = p->rows;
    n->us = now - p->began_us;
    writer_all_in(s);
    writer_works_again(s);
    s->thread.preparing = s->redo != NULL;
    s->thread.chores_first = true;
}

void writer_pass(struct journal_store *s)
{
    struct error err;
    begin_pass(s);
    journal_unlock(s);
    enum status st = apply_everything(s, s->base.far ? STORE_WRITE : STORE_WRITE_LAZY, &err);
    journal_lock(s);
    if (st == ST_OK) {
        committed(s);
    } else {
        undone(s);
        writer_pass_failed(s, &err);
    }
    if (locked(s)->failures.stuck != ST_OK || st == ST_OK)
        writer_tell(s);
}

void writer_apply_outsized(struct journal_store *s)
{
    const struct writer_pass_state *p = &s->thread.pass;
    struct error err;
    begin_pass(s);
    journal_unlock(s);
    enum status st = apply_everything(s, STORE_WRITE, &err);
    journal_lock(s);
    struct journal_shared *l = locked(s);
    if (st == ST_OK) {
        l->durable = l->journaled = p->upto;
        l->log.marker = s->redo ? p->upto : 0;
        logger_wake(s);
        committed(s);
        s->kept.safe = p->upto;
        VEC_PUSH(l->written, l->nwritten, l->cap_written) = (struct written_group){p->upto, false};
        l->frozen_outsized = false;
    } else if (writer_is_over(s, st, &err) || writer_keeps_trying(s, &err)) {
        undone(s);
    } else {
        writer_give_up(s, NULL, &err);
        if (s->redo && err.code == ST_UNKNOWN)
            writer_end_writing(s, &err);
    }
    writer_tell(s);
}

/* ---- what follows a pass; holding the lock ---- */

static bool wal_is_long(struct journal_store *s)
{
    uint64_t most =
        s->options.wal_max && s->options.wal_max < SETTLE_BYTES ? s->options.wal_max : SETTLE_BYTES;
    return store_wal_bytes(s->writer) >= most;
}

static bool log_is_long(struct journal_store *s)
{
    struct redo_info info;
    redo_info(s->redo, &info);
    return info.bytes >= s->options.log_max / 4;
}

int64_t writer_settle_due(struct journal_store *s)
{
    const struct journal_thread *t = &s->thread;
    if (!s->redo)
        return INT64_MAX;
    if (t->released >= locked(s)->applied) /* the WAL may be long because somebody reads in it */
        return wal_is_long(s) ? t->pass.copied_us + SETTLE_US : INT64_MAX;
    int64_t due = wal_is_long(s) || log_is_long(s) ? 0 : t->pass.unsynced_us + SETTLE_US;
    return due > t->pass.retry_us ? due : t->pass.retry_us;
}

/* Without the lock. Reads of the loop and commits go on meanwhile. */
static enum status settle(struct journal_store *s, int64_t upto, struct error *err)
{
    bool copies = wal_is_long(s);
    writer_writes_begin(s);
    enum status st = store_sync(s->writer, err);
    if (st == ST_OK && upto > s->thread.released)
        st = redo_applied(s->redo, upto, err);
    if (st == ST_OK && copies)
        st = store_checkpoint(s->writer, err);
    writer_writes_end(s);
    return st;
}

void writer_settle(struct journal_store *s)
{
    struct writer_pass_state *p = &s->thread.pass;
    struct error err;
    int64_t upto = writer_applied(s), start = clock_mono_us();
    journal_unlock(s);
    enum status st = settle(s, upto, &err);
    journal_lock(s);
    p->copied_us = clock_mono_us();
    p->retry_us = 0;
    s->thread.preparing = true;
    struct journal_passes *n = &locked(s)->passes;
    n->settle_us = p->copied_us - start;
    n->wal_bytes = store_wal_bytes(s->writer);
    if (st == ST_OK) {
        s->thread.released = upto;
        p->unsynced_us = 0;
        return;
    }
    p->retry_us = p->copied_us + SETTLE_US;
    if (s->options.wal_max && n->wal_bytes >= s->options.wal_max) { /* no pass begins that would find out */
        writer_pass_failed(s, &err);
        writer_tell(s);
    }
    if (p->copied_us - p->said_us < WAL_SAY_US)
        return;
    p->said_us = p->copied_us;
    log_warning("what is in the tables cannot be made durable there: the log is kept",
                "status=%s error=\"%s\"", status_name(st), err.text);
}

bool writer_wal_is_short(struct journal_store *s)
{
    struct writer_pass_state *p = &s->thread.pass;
    struct journal_passes *n = &locked(s)->passes;
    uint64_t most = s->options.wal_max ? s->options.wal_max : UINT64_MAX;
    n->wal_bytes = store_wal_bytes(s->writer);
    if (n->wal_bytes >= most)
        writer_settle(s);
    n->wal_waits = n->wal_bytes >= most;
    if (!n->wal_waits)
        return true;
    locked(s)->retry_us = p->copied_us + WAL_LOOK_US;
    if (p->copied_us - p->said_us >= WAL_SAY_US) {
        p->said_us = p->copied_us;
        log_warning(
            "another process reads an old state of the database: nothing is brought into the tables until "
            "it has ended",
            "wal_bytes=%" PRIu64, n->wal_bytes);
    }
    return false;
}
