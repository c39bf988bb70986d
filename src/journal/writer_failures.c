/* What becomes of a group or a pass that could not be written. The thread decides, holding the lock:

     it may be over soon   A lock that another process holds, a server that is away: it is tried again, up to
                           lock_ms or away_ms.
     `always`              After that the group is given up: `failed`. The owner undoes it and all behind it,
                           and the clients get the error.
     otherwise             No reply waits for the group: it is tried again until it works, and meanwhile
                           transactions that write are refused: `failing`.
     a pass                Its rows are in the journal: it is tried again until it works: `stuck`. Writers are
                           refused when the journal is full.
     ST_LOCKED, ST_LOST    Another server has the tables, or acknowledged writes are gone: `over`. */
#include "base/clock.h"
#include "base/mem.h"
#include "journal/writer.h"

#define SOON_US 5000 /* until a failure that may be over soon is tried again */

/* ---- how long ---- */

/* How long a failure is waited for: it may be over soon. */
static int64_t patience_us(const struct journal_store *s, enum status st)
{
    if (st == ST_BUSY)
        return (int64_t)s->options.lock_ms * 1000;
    bool away = st == ST_IO || st == ST_UNKNOWN || st == ST_CONFLICT;
    return s->base.far && away ? (int64_t)s->options.away_ms * 1000 : 0;
}

/* since: when it began; 0: it works. retry: nothing is tried before. */
static bool is_passing(struct journal_store *s, const struct error *err, int64_t *since, int64_t *retry)
{
    int64_t now = clock_mono_us(), patience = patience_us(s, err->code);
    if (patience && *since == 0)
        *since = now;
    if (patience && now - *since < patience) {
        *retry = now + SOON_US;
        return true;
    }
    *since = 0;
    return false;
}

/* ---- groups ---- */

/* A group that is given up after a commit without an answer may have been written: the error says so. */
static void admit_doubt(const struct journal_store *s, struct error *err)
{
    struct error why = *err;
    if (s->thread.unanswered && why.code != ST_UNKNOWN)
        (void)error_set(err, ST_UNKNOWN, "whether it was written is unknown: %.180s", why.text);
}

/* They are told that nothing was done, which is true of what they ask for, whatever became of the group. */
static void refuse_writers(struct journal_store *s, const struct error *err)
{
    struct journal_failures *f = &locked(s)->failures;
    f->why = *err;
    if (err->code == ST_UNKNOWN)
        (void)writer_connection_lost(&f->why);
    f->failing = f->why.code;
    f->times++;
}

bool writer_keeps_trying(struct journal_store *s, struct error *err)
{
    struct journal_shared *l = locked(s);
    bool passing = is_passing(s, err, &s->thread.lock_since_us, &l->retry_us);
    l->locked = passing && err->code == ST_BUSY;
    if (passing)
        return true;
    bool lasting = s->base.far && patience_us(s, err->code) > 0;
    if (l->durability != DURABILITY_ALWAYS || lasting) { /* writers are refused until it is over */
        refuse_writers(s, err);
        l->retry_us = clock_mono_us() + WRITER_RETRY_US;
    }
    admit_doubt(s, err);
    return l->durability != DURABILITY_ALWAYS;
}

void writer_give_up(struct journal_store *s, struct journal_group *g, const struct error *err)
{
    struct journal_failures *f = &locked(s)->failures;
    mem_apply_free(s->thread.pass.apply);
    s->thread.pass.apply = NULL;
    f->failed = err->code;
    f->undone = *err;
    if (g)
        journal_group_free(g);
}

/* Nothing clears it: no transaction writes to the tables when a sync of their log has failed (sql/wal.h). */
void writer_end_writing(struct journal_store *s, const struct error *err)
{
    struct journal_failures *f = &locked(s)->failures;
    (void)error_set(&f->why, ST_IO, "the server has to be started again: %.180s", err->text);
    f->failing = f->why.code;
    f->times++;
}

/* ---- passes ---- */

void writer_pass_failed(struct journal_store *s, const struct error *err)
{
    struct journal_shared *l = locked(s);
    int64_t *since = s->third ? &s->thread.pass_since_us : &s->thread.lock_since_us;
    int64_t *retry = s->third ? &l->task.retry_us : &l->retry_us;
    if (writer_is_over(s, err->code, err) || is_passing(s, err, since, retry))
        return;
    l->failures.stuck = err->code;
    l->failures.waits = *err;
    l->failures.times++;
    *retry = clock_mono_us() + WRITER_RETRY_US;
    if (!l->outsized_waits)
        return;
    if (l->durability == DURABILITY_ALWAYS) /* what can only come in behind it cannot */
        writer_give_up(s, NULL, err);
    else
        refuse_writers(s, err);
}

/* ---- both ---- */

bool writer_is_over(struct journal_store *s, enum status st, const struct error *err)
{
    if (st != ST_LOCKED && st != ST_LOST)
        return false;
    locked(s)->failures.over = true;
    locked(s)->failures.why = *err;
    writer_tell(s);
    return true;
}

void writer_works_again(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    l->locked = false;
    s->thread.lock_since_us = l->retry_us = 0;
    if (!s->third) /* else that is about the applier */
        l->failures.stuck = ST_OK;
    if (!l->log.failing)
        l->failures.failing = ST_OK;
}
