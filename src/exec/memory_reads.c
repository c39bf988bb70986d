#include "exec/memory_reads.h"

#include "base/clock.h"
#include "config/config.h"
#include "engine/recent.h"
#include "exec/executor.h"

void memory_reads_start(struct executor *s)
{
    s->from_memory = (struct from_memory){0};
    if (s->recent)
        recent_settle(s->recent);
}

void memory_reads_end(struct executor *s)
{
    if (s->from_memory.begun)
        recent_end(s->recent);
    s->from_memory.begun = false;
}

/* What a session reads moves its position on for certain only where the primary always tells its own: where
   there are replicas. */
static bool may_serve(const struct executor *s, const struct reads *r)
{
    if (!s->recent || !r->replica || !r->by_key || r->how.mode == READ_STRONG)
        return false;
    return r->how.mode != READ_SESSION || (s->server->replicas && !r->unplaced);
}

bool memory_reads_begin(struct executor *s, const struct reads *r)
{
    if (!may_serve(s, r))
        return false;
    if (!s->from_memory.begun) {
        s->from_memory = (struct from_memory){.begun = true, .ran = true, .now_us = clock_mono_us()};
        recent_begin(s->recent, s->from_memory.now_us);
    }
    return true;
}

/* As of when a read has to be true. */
static int64_t oldest(const struct executor *s, struct consistency how)
{
    int64_t bound_ms = how.mode == READ_BOUNDED ? how.bound_ms : (int64_t)s->config->replica_max_lag_ms;
    return s->from_memory.now_us - bound_ms * 1000;
}

bool memory_reads_serves(struct executor *s, const struct reads *r, bool placed, struct position *seen,
                         int64_t *ret_as_of_us)
{
    struct position need = {0};
    struct recent_served served;
    bool session = r->how.mode == READ_SESSION;
    if (session && r->need)
        need = *r->need;
    if (session)
        position_merge(&need, seen);
    struct recent_demand d = {.as_of_us = oldest(s, r->how), .need = session ? &need : NULL};
    if (!recent_serves(s->recent, &d, &served))
        return false;
    if (session || placed)
        position_merge(seen, served.seen);
    *ret_as_of_us = served.as_of_us;
    return true;
}
