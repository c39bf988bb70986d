#include "server/poll.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "exec/block.h"
#include "server/worker_internal.h"
#include "stats/stats.h"

/* Over tables that others write to: how often to look for what blocked clients wait for. Soon after there was
   something, less often while there is nothing, and hardly ever where the database tells (wakeup.h). */
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

static bool serve_blocked(struct worker *w)
{
    struct error write_err, err;
    int64_t ticket;
    uint32_t waiting = w->executor.nwaiters;
    bool again = false;
    if (!anything_there(w))
        return false;
    w->batch.write = true;
    block_declare(&w->executor);
    if (transaction_begin(w, &write_err, &err) == ST_OK) {
        worker_retry_begin(w);
        w->executor.clock_us = clock_mono_us();
        if (write_err.code == ST_OK) {
            block_begin(&w->executor);
            block_serve_all(&w->executor, &write_err);
        }
        enum status st = engine_commit(w->executor.engine, &ticket, &err);
        again = st == ST_CONFLICT;
        if (again) {
            worker_retry_take_back(w);
            executor_note_failure(&w->executor, st);
        } else {
            worker_retry_end(w);
        }
        stats_post(&w->executor);
        if (st != ST_OK && !again)
            transactions_failed(w, worker_ticket(w, ticket), &err);
    }
    w->batch.write = false;
    executor_tell_others(&w->executor);
    transaction_progress(w);
    transaction_flush(w);
    return again || w->executor.nwaiters != waiting;
}

void poll_tend(struct worker *w)
{
    bool told = w->told_to_look;
    w->told_to_look = false;
    bool waiting = view_shared(w->executor.view) && w->executor.nwaiters;
    told |= wakeup_tend(w, waiting);
    if (!waiting) {
        w->poll_us = 0;
        return;
    }
    int64_t now = clock_mono_us();
    if (w->poll_us == 0 || told || now >= w->poll_at_us) {
        if ((w->poll_us || told) && serve_blocked(w))
            w->poll_us = 0;
        now = clock_mono_us();
        int64_t most = wakeup_works(w, now) ? POLL_TOLD_US : POLL_MAX_US;
        w->poll_us = w->poll_us ? w->poll_us * 3 / 2 : POLL_MIN_US;
        if (w->poll_us > most)
            w->poll_us = most;
        bool more = wakeup_tend(w, waiting); /* has come meanwhile */
        w->poll_at_us = now + (more ? 0 : w->poll_us);
    }
    worker_arm(w->poll_timer, w->poll_at_us - now);
}
