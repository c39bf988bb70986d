#include "server/rerun.h"

#include "base/mem.h"
#include "base/vec.h"
#include "command/attempt.h"
#include "command/http.h"
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
    r->waits = w->waits.next ? w->waits.next : 1;
    r->outcomes = http_outcomes_made(w->http);
    attempt_begin(&w->server);
}

void rerun_keep(struct worker *w, struct client *c)
{
    struct rerun *r = &w->rerun;
    if (!r->on || c->kept)
        return;
    c->kept = true;
    VEC_PUSH(r->clients, r->n, r->cap) = client_before(c);
    attempt_keep(&w->server, &c->session);
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
    attempt_take_back(&w->server);
    waits_cut(w, r->waits);
    http_drop_outcomes(w->http, r->outcomes);
    for (size_t i = 0; i < r->n; i++)
        client_take_back(&r->clients[i]);
    finish(w);
}

void rerun_end(struct worker *w)
{
    attempt_end(&w->server);
    finish(w);
}
