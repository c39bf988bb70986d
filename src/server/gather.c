#include "server/gather.h"

#include "base/mem.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "exec/auth.h"
#include "exec/command.h"
#include "server/worker_internal.h"

#define CLIENT_CALLS 1000 /* of one client in a turn */
#define PUT_OFF_MOST 3    /* batches that a client leaves in a row */
#define AHEAD_ROWS   4096 /* that are read ahead in a slice */

void batch_release(struct batch *b)
{
    for (size_t i = 0; i < b->nclients; i++)
        b->clients[i]->in_batch = false;
    mem_free(b->calls);
    mem_free(b->clients);
    mem_free(b->claimed);
    arena_release(&b->arena);
    *b = (struct batch){0};
}

static void add_call(struct batch *b, const struct batch_call *call)
{
    struct client *c = call->client;
    VEC_PUSH(b->calls, b->ncalls, b->cap_calls) = *call;
    if (!c->in_batch) {
        c->in_batch = true;
        client_change_state(c, CLIENT_BATCHED);
        VEC_PUSH(b->clients, b->nclients, b->cap_clients) = c;
    }
}

static bool has_one_key(const struct batch_call *call)
{
    const struct key_spec *spec = &call->cmd->keys[0];
    if (spec->keynum || spec->unknown || spec[1].flags)
        return false;
    return spec->last == 0 || (spec->last == -1 && call->argc <= spec->index + spec->step);
}

/* The first key of a call, for the view to prefetch. A guess: SELECT may be on its way, too. */
static void prefetch_key(struct worker *w, struct batch_call *call)
{
    const struct key_spec *spec = &call->cmd->keys[0];
    if (!spec->flags || spec->keyword || spec->index >= call->argc)
        return;
    call->keyed = true;
    call->one_row = (call->cmd->flags & CMD_ROWS_ONLY) && has_one_key(call);
    call->key = view_prefetch(w->executor.view, call->db, call->argv[spec->index]);
}

/* How many calls ahead a row is fetched from memory. */
#define SOON 8

bool gather_rows(struct worker *w, size_t from, size_t to)
{
    const struct batch *b = &w->batch;
    struct view *v = w->executor.view;
    bool only = true;
    for (size_t i = from; i < to; i++) {
        struct batch_call *call = &b->calls[i];
        if (i + SOON < to && call[SOON].keyed)
            view_prefetch_soon(v, &call[SOON].key);
        bool missing = call->keyed && view_declare_missing(v, &call->key);
        if (missing && call->cmd->keys[0].last != 0) /* then its other keys may be, too */
            call->client->protocol->declare(call);
        only &= call->one_row;
    }
    return only;
}

/* The rows that a long command names are read as it comes in, a slice for each piece of input, before other
   clients have their turn: when it runs, it runs from memory. */
static void read_ahead(struct worker *w, struct client *c)
{
    struct engine_ahead ahead;
    if (c->protocol->ahead && c->protocol->ahead(c, &w->batch.arena, AHEAD_ROWS, &ahead))
        engine_read_ahead(w->executor.engine, &ahead);
}

void gather_calls(struct worker *w, struct client *c)
{
    if (client_must_stall(c)) {
        if (c->run.state != CLIENT_STALLED)
            client_change_state(c, CLIENT_STALLED);
        return;
    }
    struct batch *b = &w->batch;
    /* What a client may send changes with AUTH: until then, one command at a time. */
    int share = auth_is_known(&c->session) ? CLIENT_CALLS : 1;
    while (share > 0) {
        struct batch_call call = {.client = c, .db = c->session.state.db};
        enum parse_result found = c->protocol->parse(c, &b->arena, &call);
        if (found == PARSE_MORE) {
            read_ahead(w, c);
            if (!c->in_batch)
                client_found_nothing(c);
            return;
        }
        if (found == PARSE_EMPTY)
            continue;
        call.end = c->parsed;
        if (call.cmd)
            prefetch_key(w, &call);
        call.writes = c->protocol->may_write(&call);
        add_call(b, &call);
        b->write |= call.writes;
        b->placed |= call.placed;
        share--;
        if (found == PARSE_BROKEN) {
            c->broken = true;
            return;
        }
    }
    if (c->parsed < c->in.len)
        client_change_state(c, CLIENT_BATCHED_MORE);
}

void gather_later(struct worker *w, struct client *c)
{
    conn_watch_reading(&c->conn, false);
    if (!c->unread) {
        c->unread = true;
        VEC_PUSH(w->unread.items, w->unread.len, w->unread.cap) = c;
    }
}

void gather_resume(struct worker *w)
{
    for (size_t i = 0; i < w->unread.len; i++) {
        struct client *c = w->unread.items[i];
        c->unread = false;
        if (client_open(c) && c->run.state != CLIENT_PAUSED && !c->eof)
            conn_watch_reading(&c->conn, true);
    }
    w->unread.len = 0;
}

static bool waits_behind(const struct client *c)
{
    return !c->bound && !c->kept && client_batched(c);
}

void gather_give_back(struct worker *w)
{
    struct batch *b = &w->batch;
    size_t n = 0;
    for (size_t i = b->at; i <= b->now; i++)
        b->calls[i].client->bound = true;
    for (size_t i = 0; i < b->nclients; i++) {
        struct client *c = b->clients[i];
        if (waits_behind(c))
            client_leave_batch(c);
        else
            b->clients[n++] = c;
        c->bound = false;
    }
    b->nclients = n;
    for (size_t i = b->now + 1; i < b->ncalls; i++)
        if (!b->calls[i].client->in_batch)
            b->calls[i] = (struct batch_call){.client = &w->nobody};
}

/* ---- workers that write the same keys ---- */

static uint8_t number_of(const struct worker *w)
{
    uint8_t i = 0;
    while (w->workers->workers[i] != w)
        i++;
    return i + 1;
}

/* False: another worker's batch has it. */
static bool claim(struct worker *w, uint8_t number, uint32_t hash)
{
    struct batch *b = &w->batch;
    uint32_t at = hash % CLAIMS;
    uint8_t has = 0;
    if (!atomic_compare_exchange_strong_explicit(&w->workers->claims[at], &has, number, memory_order_relaxed,
                                                 memory_order_relaxed))
        return has == number;
    VEC_PUSH(b->claimed, b->nclaimed, b->cap_claimed) = at;
    return true;
}

/* Notes which clients want what another has; returns whether there are any, and others. */
static bool some_meet(struct worker *w)
{
    struct batch *b = &w->batch;
    uint8_t number = number_of(w);
    size_t n = 0;
    for (size_t i = 0; i < b->nclients; i++)
        b->clients[i]->met = false;
    for (size_t i = 0; i < b->ncalls; i++) {
        const struct batch_call *call = &b->calls[i];
        struct client *c = call->client;
        if (call->writes && call->keyed && !claim(w, number, call->key.hash))
            c->met = client_batched(c) && c->put_off < PUT_OFF_MOST;
    }
    for (size_t i = 0; i < b->nclients; i++)
        n += b->clients[i]->met;
    return n > 0 && n < b->nclients;
}

void gather_apart(struct worker *w)
{
    struct batch *b = &w->batch;
    size_t ncalls = 0, nclients = 0;
    if (!w->workers->claims || !b->write || b->nclaimed || !some_meet(w))
        return;
    for (size_t i = 0; i < b->ncalls; i++)
        if (!b->calls[i].client->met)
            b->calls[ncalls++] = b->calls[i];
    b->ncalls = ncalls;
    for (size_t i = 0; i < b->nclients; i++) {
        struct client *c = b->clients[i];
        if (!c->met) {
            b->clients[nclients++] = c;
            continue;
        }
        c->put_off++;
        client_leave_batch(c);
    }
    b->nclients = nclients;
}

void gather_unclaim(struct worker *w)
{
    struct batch *b = &w->batch;
    for (size_t i = 0; i < b->nclaimed; i++)
        atomic_store_explicit(&w->workers->claims[b->claimed[i]], 0, memory_order_relaxed);
    b->nclaimed = 0;
}
