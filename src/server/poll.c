/* Serves blocked clients with what appeared through other servers, see poll.h. */
#include "server/poll.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "exec/block.h"
#include "server/retry.h"
#include "server/worker_internal.h"
#include "stats/stats.h"

/* Over tables that other servers write to: how often to look for what blocked clients wait for. Soon after
   there was something, less often while there is nothing, and hardly ever where the database tells
   (wakeup.h). */
#define POLL_MIN_US  5000
#define POLL_MAX_US  100000
#define POLL_TOLD_US 1000000

/* Looks without locking anything. */
static bool anything_there(struct worker *w)
{
    struct error write_err, err;
    struct engine *engine = w->executor.engine;
    block_declare(&w->executor);
    if (engine_begin(engine, false, &write_err, &err) != ST_OK)
        return false;
    engine_enter(engine);
    bool any = block_anything(&w->executor);
    engine_leave(engine, false);
    return engine_commit(engine, NULL, &err) == ST_OK && any;
}

enum outcome { NOTHING, SERVED, CONFLICT };

/* Serves the blocked clients in a transaction of their own, and restores what it changed after a conflict. */
static enum outcome serve_once(struct worker *w)
{
    struct error write_err, err;
    int64_t ticket;
    uint32_t waiting = w->executor.nwaiters;
    if (retry_alone(w, w->poll_tries))
        view_declare_everything(w->executor.view);
    block_declare(&w->executor);
    if (transaction_begin(w, true, &write_err, &err) != ST_OK)
        return err.code == ST_CONFLICT ? CONFLICT : NOTHING;
    worker_undo_begin(w);
    w->executor.clock_us = clock_mono_us();
    if (write_err.code == ST_OK) {
        block_begin(&w->executor);
        block_serve_all(&w->executor, &write_err);
    }
    enum status st = engine_commit(w->executor.engine, &ticket, &err);
    if (st == ST_CONFLICT) {
        worker_undo_take_back(w);
        executor_note_failure(&w->executor, st);
    } else {
        worker_undo_end(w);
    }
    stats_post(&w->executor);
    if (st == ST_CONFLICT)
        return CONFLICT;
    if (st != ST_OK)
        transactions_failed(w, worker_ticket(w, ticket), &err);
    if (write_err.code == ST_CONFLICT)
        return CONFLICT;
    return w->executor.nwaiters != waiting ? SERVED : NOTHING;
}

static enum outcome serve_blocked(struct worker *w)
{
    if (!anything_there(w))
        return NOTHING;
    enum outcome found = serve_once(w);
    executor_tell_others(&w->executor);
    transaction_progress(w);
    transaction_flush(w);
    return found;
}

/* How long until the next look. */
static int64_t next_look_us(struct worker *w, enum outcome found, int64_t now)
{
    int64_t most = wakeup_works(w, now) ? POLL_TOLD_US : POLL_MAX_US;
    w->poll_tries = found == CONFLICT && !retry_is_last(w, w->poll_tries) ? w->poll_tries + 1 : 0;
    if (found != NOTHING)
        w->poll_us = 0;
    w->poll_us = w->poll_us ? w->poll_us * 3 / 2 : POLL_MIN_US;
    if (w->poll_us > most)
        w->poll_us = most;
    return w->poll_tries ? retry_pause_us(w, w->poll_tries) : w->poll_us;
}

void poll_tend(struct worker *w)
{
    bool waiting = view_shared(w->executor.view) && w->executor.nwaiters;
    w->told_to_look |= wakeup_tend(w, waiting);
    if (w->batch.pending) /* it comes first */
        return;
    bool told = w->told_to_look;
    w->told_to_look = false;
    if (!waiting) {
        w->poll_us = 0;
        return;
    }
    int64_t now = clock_mono_us();
    if (legs_primary_away(w)) {
        w->told_to_look |= told;
        w->poll_at_us = now + POLL_MAX_US;
    } else if (w->poll_us == 0 || told || now >= w->poll_at_us) {
        enum outcome found = w->poll_us || told ? serve_blocked(w) : NOTHING;
        now = clock_mono_us();
        int64_t us = next_look_us(w, found, now);
        bool more = wakeup_tend(w, waiting); /* has come meanwhile */
        w->poll_at_us = now + (more ? 0 : us);
    }
    worker_arm(w->poll_timer, w->poll_at_us - now);
}
