#include "server/busy.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"
#include "script/run.h"
#include "server/worker_internal.h"
#include "stats/stats.h"

#define CLIENT_CALLS 1000 /* of one client in a look */

/* ---- other clients ---- */

bool busy_defers(const struct worker *w, const struct client *c)
{
    return w->busy.on && (c->in_batch || c->kept || c->session.kept);
}

/* What the command asked for that has run: it may have been SHUTDOWN NOSAVE. */
static void answer_call(struct worker *w, const struct batch_call *call, const char *refusal)
{
    struct client *c = call->client;
    struct command_result result = c->protocol->run_busy(call, refusal);
    w->stop |= result.stops;
    client_touch(c);
}

void busy_answer(struct worker *w, struct client *c)
{
    const char *refusal = running_refusal(w->executor.server);
    if (client_must_stall(c)) {
        if (c->run.state != CLIENT_STALLED)
            client_change_state(c, CLIENT_STALLED);
        return;
    }
    for (int share = CLIENT_CALLS; share > 0 && client_open(c); share--) {
        struct batch_call call = {.client = c, .db = c->session.state.db};
        arena_reset(&w->busy.arena);
        enum parse_result found = c->protocol->parse(c, &w->busy.arena, &call);
        if (found == PARSE_MORE) {
            client_found_nothing(c);
            return;
        }
        c->broken |= found == PARSE_BROKEN;
        if (found != PARSE_EMPTY)
            answer_call(w, &call, refusal);
        c->run.done = c->parsed;
    }
    if (client_open(c) && c->run.state != CLIENT_READY)
        client_change_state(c, CLIENT_READY);
}

/* Clients whose input a look before this one, or the turn, has left. */
static void answer_ready(struct worker *w)
{
    struct client *c = w->ready.first;
    for (size_t n = w->ready.n; n > 0; n--) {
        struct client *next = c->next;
        if (!busy_defers(w, c))
            busy_answer(w, c);
        c = next;
    }
}

/* Output leaves, but for what belongs to the running call; of clients in the batch it stays in its buffer,
   where the batch knows its place. */
static void flush(struct worker *w, const struct session *running)
{
    struct client_vec *v = &w->flush;
    size_t n = 0;
    for (size_t i = 0; i < v->len; i++) {
        struct client *c = v->items[i];
        if (!busy_defers(w, c)) {
            c->to_flush = false;
            client_flush(c);
            continue;
        }
        if (!c->kept && &c->session != running)
            client_send(c);
        v->items[n++] = c;
    }
    v->len = n;
}

/* ---- a look ---- */

static void look(struct worker *w, const struct session *running)
{
    struct executor *e = &w->executor;
    struct books of_transaction = e->books;
    e->books = w->busy.books;
    w->busy.on = true;
    w->now_us = 0;
    for (uint32_t i = 0; i < e->nengines; i++)
        engine_peek(e->engines[i]);
    held_settle_durable(w);
    if (w->busy.listed) {
        event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        answer_ready(w);
    }
    flush(w, running);
    worker_free_dead(w);
    w->busy.on = false;
    stats_post_books(e, &e->books);
    w->busy.books = e->books;
    e->books = of_transaction;
}

static void list(struct worker *w, const struct script_run *run)
{
    struct busy *b = &w->busy;
    bool function = run->in->kind == INTERP_FUNCTIONS;
    b->script = (struct running_script){.kind = run->in->kind,
                                        .name = run->name,
                                        .argv = run->outer->argv,
                                        .argc = run->outer->argc,
                                        .start_us = run->start_us,
                                        .wrote = run->wrote};
    b->listed = true;
    running_add(w->executor.server, &b->script);
    workers_script_busy(w->workers);
    gather_give_back(w);
    log_warning("a script is busy; other clients are told so", "script=%s ms=%lld ends_it=%s", run->name,
                (long long)(clock_mono_us() - run->start_us) / 1000,
                run->wrote ? "SHUTDOWN NOSAVE"
                : function ? "FUNCTION KILL"
                           : "SCRIPT KILL");
}

static void script_slow(struct executor *e, struct script_run *run)
{
    struct worker *w = e->worker;
    struct busy *b = &w->busy;
    int64_t threshold = e->config->busy_reply_threshold_ms;
    if (!b->listed && threshold && (clock_mono_us() - run->start_us) / 1000 >= threshold)
        list(w, run);
    atomic_store(&b->script.wrote, run->wrote);
    if (b->listed || w->flush.len || w->held.first < w->held.next)
        look(w, run->outer->session);
    if (running_all_end(e->server))
        script_run_kill(run, "ERR Script killed by SHUTDOWN NOSAVE...");
    else if (b->listed && atomic_load(&b->script.killed))
        script_run_kill(run, "ERR Script killed by user with SCRIPT KILL...");
}

static void script_over(struct executor *e, struct script_run *run)
{
    struct worker *w = e->worker;
    if (!w->busy.listed)
        return;
    w->busy.listed = false;
    running_remove(e->server, &w->busy.script);
    log_warning("a busy script has ended", "script=%s ms=%lld killed=%s", run->name,
                (long long)(clock_mono_us() - run->start_us) / 1000,
                run->state == SCRIPT_KILLED ? "yes" : "no");
}

/* ---- a call of this worker, while a script is busy on another ---- */

bool busy_refuse(struct worker *w, const struct batch_call *call)
{
    struct client *c = call->client;
    const char *refusal = running_refusal(w->executor.server);
    if (!refusal)
        return false;
    if (client_batched(c)) {
        answer_call(w, call, refusal);
        c->run.done = call->end;
        stats_post(&w->executor);
    }
    return true;
}

/* ---- life ---- */

void busy_init(struct worker *w)
{
    w->executor.script_slow = script_slow;
    w->executor.script_over = script_over;
}

void busy_release(struct worker *w)
{
    arena_release(&w->busy.arena);
    books_release(&w->busy.books);
}
