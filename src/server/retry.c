/* When a transaction is tried again, see retry.h. */
#include "server/retry.h"

#include "base/rand.h"
#include "engine/engine.h"
#include "server/worker_internal.h"

#define TRIES           8 /* of a transaction that conflicts with others */
#define ALONE_TRY       4 /* from this one on it keeps other writers out */
#define CERTIFIED_TRIES 1000
#define PAUSE_TRIES     8 /* the pause does not grow further */

static bool certified(const struct worker *w)
{
    return engine_store(w->executor.engine)->certified;
}

bool retry_alone(const struct worker *w, int tries)
{
    return tries + 1 >= ALONE_TRY && !certified(w);
}

bool retry_is_last(const struct worker *w, int tries)
{
    return tries + 1 >= (certified(w) ? CERTIFIED_TRIES : TRIES);
}

int64_t retry_pause_us(struct worker *w, int tries)
{
    tries = tries < PAUSE_TRIES ? tries : PAUSE_TRIES;
    return tries * (int64_t)(1000 + rand_below(view_rand(w->executor.view), 4000));
}

void retry_later(struct worker *w)
{
    struct batch *b = &w->batch;
    w->executor.stats.reruns++;
    b->tries++;
    b->pending = true;
    b->due = false;
    worker_arm(w->retry_timer, retry_pause_us(w, b->tries));
}
