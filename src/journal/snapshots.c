#include "journal/snapshots.h"

#include "base/clock.h"
#include "journal/writer.h"

#define HOLD_US     100000  /* how long writing waits for those who were let in ... */
#define HOLD_FAR_US 1000000 /* ... where opening a snapshot takes round trips */
#define LOOK_US     20000   /* between two looks whether to give up */

/* One who waits; on its own stack. */
struct snapshot_wait {
    struct snapshot_wait *next;
    int64_t ticket;
    enum status failed; /* the tables cannot be brought so far; why says more */
    struct error why;
};

/* ---- who waits; holding the lock ---- */

/* A ticket whose commit has failed since will not come. */
static bool has_enough(struct journal_store *s, const struct snapshot_wait *w)
{
    const struct journal_shared *l = locked(s);
    int64_t needed = w->ticket < l->committed ? w->ticket : l->committed;
    return l->in_tables >= needed;
}

static bool anybody_has_enough(struct journal_store *s)
{
    const struct snapshot_wait *w = locked(s)->snapshots.first;
    while (w && !has_enough(s, w))
        w = w->next;
    return w != NULL;
}

bool snapshots_are_behind(struct journal_store *s)
{
    const struct snapshot_wait *w = locked(s)->snapshots.first;
    while (w && has_enough(s, w))
        w = w->next;
    return w != NULL;
}

bool snapshots_are_due(struct journal_store *s)
{
    return !s->redo && locked(s)->snapshots.first && !s->thread.torn && !s->thread.unanswered &&
           anybody_has_enough(s);
}

static void join(struct journal_store *s, struct snapshot_wait *w)
{
    struct journal_snapshots *n = &locked(s)->snapshots;
    w->next = n->first;
    n->first = w;
    pthread_cond_signal(&s->lock.work);
    logger_wake(s);
}

static void leave(struct journal_store *s, struct snapshot_wait *w)
{
    struct snapshot_wait **at = &locked(s)->snapshots.first;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
}

/* Why the tables do not get further now. */
static enum status failure(struct journal_store *s, const struct snapshot_wait *w, struct error *err)
{
    const struct journal_failures *f = &locked(s)->failures;
    if (f->over || w->failed == ST_OK)
        return journal_failure(f, true, err);
    *err = w->why;
    return w->failed;
}

/* ---- the thread that writes ---- */

/* On a server: it is as we left it, and the tables are still ours. Without the lock. */
static enum status confirm(struct journal_store *s, struct error *err)
{
    enum status st = writer_begin(s, STORE_READ, err);
    if (st != ST_OK)
        return st;
    store_rollback(s->writer);
    return store_confirm(s->writer, err);
}

static void fail_all(struct journal_store *s, const struct error *err)
{
    for (struct snapshot_wait *w = locked(s)->snapshots.first; w; w = w->next) {
        w->failed = err->code;
        w->why = *err;
    }
    pthread_cond_broadcast(&s->lock.clean);
}

void snapshots_let_in(struct journal_store *s)
{
    struct journal_snapshots *n = &locked(s)->snapshots;
    if (s->base.far) {
        struct error err;
        journal_unlock(s);
        enum status st = confirm(s, &err);
        journal_lock(s);
        if (st != ST_OK) {
            (void)writer_is_over(s, st, &err);
            fail_all(s, &err);
            return;
        }
    }
    int64_t until = clock_mono_us() + (s->base.far ? HOLD_FAR_US : HOLD_US);
    n->open = true;
    n->number++;
    pthread_cond_broadcast(&s->lock.clean);
    while ((n->inside || anybody_has_enough(s)) && clock_mono_us() < until)
        journal_wait(s, &s->lock.work, until);
    n->open = false;
}

/* ---- other threads ---- */

static enum status enter(struct store *base, const struct snapshot_want *want, uint64_t *ret_number,
                         struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    struct snapshot_wait w = {.ticket = want->ticket};
    enum status st = ST_OK;
    journal_lock(s);
    struct journal_snapshots *n = &locked(s)->snapshots;
    join(s, &w);
    while (!((s->redo || n->open) && has_enough(s, &w)) && (st = failure(s, &w, err)) == ST_OK) {
        if (want->stop(want->arg)) {
            st = error_set(err, ST_BUSY, "the tables did not have what was committed in time");
            break;
        }
        journal_wait(s, &s->lock.clean, clock_mono_us() + LOOK_US);
    }
    leave(s, &w);
    n->inside += st == ST_OK && !s->redo;
    *ret_number = n->number;
    journal_unlock(s);
    return st;
}

/* Of those who are late, `inside` was for another time. */
static bool leave_again(struct store *base, uint64_t number)
{
    struct journal_store *s = journal_store_of(base);
    journal_lock(s);
    struct journal_snapshots *n = &locked(s)->snapshots;
    bool held = s->redo || (n->open && n->number == number);
    if (!s->redo) {
        n->inside--;
        pthread_cond_signal(&s->lock.work);
    }
    journal_unlock(s);
    return held;
}

const struct snapshot_ops journal_snapshot_ops = {.enter = enter, .leave = leave_again};
