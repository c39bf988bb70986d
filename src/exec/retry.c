#include "exec/retry.h"

#include <assert.h>

#include "base/mem.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "exec/executor.h"
#include "stats/slowlog.h"

/* One command in the statistics. */
struct counted {
    int index;
    bool failed;
    int64_t us;
};

struct retry {
    struct session *sessions; /* that it has touched */
    struct counted *counted;
    size_t ncounted, cap_counted;
    struct executor_stats stats;
    struct error_counts errors;
    struct slowlog_entry *slow; /* newest first */
    struct engine_tally tally;
};

struct retry *retry_new(void)
{
    return mem_zalloc(sizeof(struct retry));
}

void retry_free(struct retry *a)
{
    if (!a)
        return;
    mem_free(a->counted);
    mem_free(a);
}

void retry_begin(struct executor *s)
{
    struct retry *a = s->retry;
    assert(!s->may_retry && !a->sessions);
    s->may_retry = true;
    a->ncounted = 0;
    a->stats = s->stats;
    memcpy(a->errors.at, s->errors.at, s->errors.n * sizeof *a->errors.at);
    a->errors.n = s->errors.n;
    a->tally = engine_tally(s->engine);
}

void retry_keep(struct executor *s, struct session *c)
{
    if (c->kept)
        return;
    c->kept = true;
    c->before = session_keep(c);
    c->next_kept = s->retry->sessions;
    s->retry->sessions = c;
}

void retry_counted(struct executor *s, int index, int64_t us, bool failed)
{
    struct retry *a = s->retry;
    VEC_PUSH(a->counted, a->ncounted, a->cap_counted) =
        (struct counted){.index = index, .failed = failed, .us = us};
}

void retry_slow(struct executor *s, struct slowlog_entry *e)
{
    s->retry->slow = slowlog_join(e, s->retry->slow);
}

/* ---- the end ---- */

static void uncount(struct executor *s)
{
    const struct retry *a = s->retry;
    for (size_t i = 0; i < a->ncounted; i++) {
        const struct counted *it = &a->counted[i];
        struct command_stat *stat = &s->command_stats[it->index];
        if (it->us == RETRY_REJECTED)
            stat->rejected--;
        else
            histogram_remove(&stat->us, (uint64_t)it->us);
        stat->failed -= it->failed;
    }
    s->stats = a->stats;
    memcpy(s->errors.at, a->errors.at, a->errors.n * sizeof *a->errors.at);
    s->errors.n = a->errors.n;
    engine_recount(s->engine, &a->tally);
}

static void finish(struct executor *s, bool back)
{
    struct retry *a = s->retry;
    assert(s->may_retry);
    s->may_retry = false;
    for (struct session *c = a->sessions, *next; c; c = next) {
        next = c->next_kept;
        c->kept = false;
        if (back && !c->gone)
            session_restore(c, &c->before);
        session_let_go(c);
    }
    a->sessions = NULL;
    if (back)
        slowlog_drop(a->slow);
    else
        slowlog_add(s->server->slowlog, a->slow, (size_t)s->config->slowlog_max_len);
    a->slow = NULL;
}

void retry_take_back(struct executor *s)
{
    uncount(s);
    s->others_due = 0;
    buf_release(&s->lines);
    finish(s, true);
}

void retry_end(struct executor *s)
{
    finish(s, false);
}
