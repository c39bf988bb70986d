#include "server/rerun.h"

#include "base/mem.h"
#include "base/vec.h"
#include "exec/attempt.h"
#include "http/api.h"
#include "server/worker_internal.h"

void rerun_release(struct rerun *r)
{
    mem_free(r->clients);
    *r = (struct rerun){0};
}

void rerun_begin(struct worker *w)
{
    struct rerun *r = &w->rerun;
    r->on = true;
    r->held = w->held.next ? w->held.next : 1;
    r->outcomes = http_outcomes_made(w->http);
    attempt_begin(&w->executor);
}

void rerun_keep(struct worker *w, struct client *c)
{
    struct rerun *r = &w->rerun;
    if (!r->on || c->kept)
        return;
    c->kept = true;
    VEC_PUSH(r->clients, r->n, r->cap) = client_before(c);
    attempt_keep(&w->executor, &c->session);
}

static void finish(struct worker *w)
{
    struct rerun *r = &w->rerun;
    for (size_t i = 0; i < r->n; i++)
        r->clients[i].client->kept = false;
    r->n = 0;
    r->on = false;
}

void rerun_take_back(struct worker *w)
{
    const struct rerun *r = &w->rerun;
    attempt_take_back(&w->executor);
    held_cut(w, r->held);
    http_drop_outcomes(w->http, r->outcomes);
    for (size_t i = 0; i < r->n; i++)
        client_take_back(&r->clients[i]);
    finish(w);
}

void rerun_end(struct worker *w)
{
    attempt_end(&w->executor);
    finish(w);
}
