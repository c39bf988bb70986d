/* What is taken back of connections, see undo.h. */
#include "server/undo.h"

#include "base/mem.h"
#include "base/vec.h"
#include "exec/undo.h"
#include "server/worker_internal.h"
#include "stats/stats.h"

void worker_undo_release(struct worker_undo *r)
{
    mem_free(r->clients);
    *r = (struct worker_undo){0};
}

void worker_undo_begin(struct worker *w)
{
    struct worker_undo *r = &w->undo;
    stats_post(&w->executor);
    r->on = true;
    held_mark(w);
    protocols_mark(w, r->marks);
    undo_begin(&w->executor);
}

void worker_undo_keep(struct worker *w, struct client *c)
{
    struct worker_undo *r = &w->undo;
    if (!r->on || c->kept)
        return;
    c->kept = true;
    VEC_PUSH(r->clients, r->n, r->cap) = client_before(c);
    undo_keep(&w->executor, &c->session);
}

static void finish(struct worker *w)
{
    struct worker_undo *r = &w->undo;
    for (size_t i = 0; i < r->n; i++)
        r->clients[i].client->kept = false;
    r->n = 0;
    r->on = false;
}

void worker_undo_take_back(struct worker *w)
{
    const struct worker_undo *r = &w->undo;
    undo_take_back(&w->executor);
    held_cut(w);
    protocols_rewind(w, r->marks);
    for (size_t i = 0; i < r->n; i++)
        client_take_back(&r->clients[i]);
    finish(w);
}

void worker_undo_end(struct worker *w)
{
    undo_end(&w->executor);
    finish(w);
}
