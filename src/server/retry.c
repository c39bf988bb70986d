#include "server/retry.h"

#include "base/mem.h"
#include "base/vec.h"
#include "exec/retry.h"
#include "server/worker_internal.h"
#include "stats/stats.h"

void worker_retry_release(struct worker_retry *r)
{
    mem_free(r->clients);
    *r = (struct worker_retry){0};
}

void worker_retry_begin(struct worker *w)
{
    struct worker_retry *r = &w->retry;
    stats_post(&w->executor);
    r->on = true;
    held_mark(w);
    protocols_mark(w, r->marks);
    retry_begin(&w->executor);
}

void worker_retry_keep(struct worker *w, struct client *c)
{
    struct worker_retry *r = &w->retry;
    if (!r->on || c->kept)
        return;
    c->kept = true;
    VEC_PUSH(r->clients, r->n, r->cap) = client_before(c);
    retry_keep(&w->executor, &c->session);
}

static void finish(struct worker *w)
{
    struct worker_retry *r = &w->retry;
    for (size_t i = 0; i < r->n; i++)
        r->clients[i].client->kept = false;
    r->n = 0;
    r->on = false;
}

void worker_retry_take_back(struct worker *w)
{
    const struct worker_retry *r = &w->retry;
    retry_take_back(&w->executor);
    held_cut(w);
    protocols_rewind(w, r->marks);
    for (size_t i = 0; i < r->n; i++)
        client_take_back(&r->clients[i]);
    finish(w);
}

void worker_retry_end(struct worker *w)
{
    retry_end(&w->executor);
    finish(w);
}
