/* Where the calls of a transaction read, see legs.h. */
#include "server/legs.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "engine/recent.h"
#include "exec/memory_reads.h"
#include "exec/reads.h"
#include "exec/txn.h"
#include "replica/replicas.h"
#include "replica/token.h"
#include "server/worker_internal.h"
#include "store/replicated.h"

#define HOLD_RETRY_US 20000 /* between two tries of a call that is held */

/* A replica's leg begins while those before it have taken less than one part in so many of replica-timeout.
 */
#define BRISK 10

static struct replicas *replicas_of(const struct worker *w)
{
    return w->executor.server->replicas;
}

static struct engine *engine_of(const struct worker *w, int leg)
{
    return leg == LEG_MEMORY ? recent_engine(w->executor.recent) : w->executor.engines[leg];
}

static void use(struct worker *w, int leg)
{
    executor_use_engine(&w->executor, engine_of(w, leg));
}

/* Whether what the call writes and sees counts for those behind it: of HTTP, each stands alone. */
static bool is_of_session(const struct batch_call *call)
{
    return call->client->protocol->reads(call).need == &call->client->session.state.position;
}

void legs_release(struct legs *l)
{
    mem_free(l->tokens);
    *l = (struct legs){0};
}

/* ---- routing ---- */

void legs_start(struct worker *w)
{
    struct legs *l = &w->legs;
    l->ntokens = 0;
    l->failed = 0;
    l->over = false;
    l->at[0].wanted = l->at[0].begun = l->at[0].ran = false;
    l->routed = replicas_of(w) || w->executor.recent;
    if (!l->routed)
        return;
    memory_reads_start(&w->executor);
    l->number++;
    l->eventual = LEG_UNROUTED;
    l->bound_ms = 0;
    for (uint32_t i = 1; i < w->executor.nengines; i++)
        l->at[i].wanted = l->at[i].begun = l->at[i].ran = false;
}

/* What is behind MULTI in the same pipeline is queued, and asks for nothing. */
static bool is_queued(struct client_route *at, const struct batch_call *call)
{
    bool queued = at->queues;
    if (call->cmd && txn_opens(call->cmd))
        at->queues = true;
    else if (call->cmd && txn_closes(call->cmd))
        at->queues = queued = false;
    return queued;
}

static int route_bounded(struct worker *w, const struct reads *r)
{
    struct legs *l = &w->legs;
    if (l->bound_ms != r->how.bound_ms)
        l->bounded = replicas_route(replicas_of(w), r->how, r->need);
    l->bound_ms = r->how.bound_ms;
    return l->bounded;
}

static int route_eventual(struct worker *w, const struct reads *r)
{
    struct legs *l = &w->legs;
    if (l->eventual == LEG_UNROUTED)
        l->eventual = replicas_route(replicas_of(w), r->how, r->need);
    return l->eventual;
}

/* A read of a client, of which it is known where its earlier calls in this transaction went. */
static int route_read(struct worker *w, const struct client_route *at, const struct reads *r)
{
    static const struct position nothing = {0};
    if (!replicas_of(w))
        return 0;
    switch (r->how.mode) {
    case READ_SESSION:
        if (at->leg == LEG_MEMORY) /* what it has seen there, the primary has for certain */
            return 0;
        if (at->leg != LEG_UNROUTED)
            return at->leg;
        return r->unplaced ? 0 : replicas_route(replicas_of(w), r->how, r->need ? r->need : &nothing);
    case READ_BOUNDED:
        return route_bounded(w, r);
    case READ_EVENTUAL:
        return route_eventual(w, r);
    case READ_STRONG:
        break;
    }
    return 0;
}

/* Whether a call in this mode is to see, and to have seen, what others of its client do. */
static bool is_tied(const struct batch_call *call)
{
    return !call->reads || call->mode == READ_SESSION || call->mode == READ_STRONG;
}

/* Whether memory serves the call. A session that has been elsewhere in this transaction stays there. */
static bool is_in_memory(struct worker *w, struct batch_call *call, const struct reads *r)
{
    struct client_route *at = &call->client->route;
    bool stays = r->how.mode == READ_SESSION && at->leg != LEG_UNROUTED && at->leg != LEG_MEMORY;
    if (at->strayed || stays || call->off_memory || !memory_reads_begin(&w->executor, r))
        return false;
    use(w, LEG_MEMORY);
    call->client->protocol->declare(call);
    use(w, 0);
    return memory_reads_serves(&w->executor, r, call->placed, &at->seen, &call->as_of_us);
}

static int choose(struct worker *w, struct batch_call *call)
{
    struct client_route *at = &call->client->route;
    struct reads r = call->client->protocol->reads(call);
    if (at->number != w->legs.number)
        *at = (struct client_route){
            .number = w->legs.number, .leg = LEG_UNROUTED, .queues = txn_open(&call->client->session)};
    if (r.watches || at->watches)
        call->on_primary = call->off_memory = true;
    call->reads = r.replica;
    call->mode = (uint8_t)r.how.mode;
    at->watches |= call->cmd && txn_begins_watch(call->cmd);
    if (is_queued(at, call))
        return 0;
    int leg = 0;
    if (is_in_memory(w, call, &r))
        leg = LEG_MEMORY;
    else if (r.replica && !call->on_primary)
        leg = route_read(w, at, &r);
    at->strayed |= !r.replica;
    if (is_tied(call) && call->client->protocol->needs_database(call))
        at->leg = leg;
    return leg;
}

size_t legs_route(struct worker *w, struct batch_call *call)
{
    if (!w->legs.routed)
        return call->client->protocol->declare(call);
    call->leg = (int16_t)choose(w, call);
    if (call->leg == ROUTE_NONE || call->leg == LEG_MEMORY)
        return 0;
    if (call->leg > 0)
        w->legs.at[call->leg].wanted = true;
    use(w, call->leg);
    size_t n = call->client->protocol->declare(call);
    use(w, 0);
    return n;
}

/* ---- beginning ---- */

/* A replica that is in the way of its own replay (ST_CONFLICT) is as sound as before. */
static void note_failure(struct worker *w, int leg, const struct error *err)
{
    executor_note_failure(&w->executor, err->code);
    int64_t took = clock_mono_us() - w->legs.at[leg].asked_us;
    bool hangs = took >= (int64_t)worker_config(w)->replica_timeout_ms * 1000;
    if (err->code != ST_CONFLICT && err->code != ST_CORRUPT)
        replicas_failed(replicas_of(w), (uint32_t)leg, hangs, err->text);
}

/* How old what a replica has is at most. The clock is read first: never younger than it is. */
static void judge_age(struct worker *w, struct leg *leg)
{
    int64_t now = clock_mono_us();
    leg->age_us = replicas_of(w) ? replicas_age_us(replicas_of(w), &leg->admitted) : INT64_MAX;
    leg->as_of_us = leg->age_us == INT64_MAX ? INT64_MIN : now - leg->age_us;
}

static void begin_leg(struct worker *w, int i)
{
    struct leg *leg = &w->legs.at[i];
    struct error write_err, err;
    const struct store *store = engine_store(engine_of(w, i));
    leg->asked_us = clock_mono_us();
    leg->begun = engine_begin(engine_of(w, i), false, &write_err, &err) == ST_OK;
    if (!leg->begun) {
        note_failure(w, i, &err);
        return;
    }
    store->replicated->admitted(store, &leg->admitted);
    judge_age(w, leg);
}

/* Whether the snapshot of a replica is good enough for a call. */
static bool is_recent(const struct leg *leg, const struct batch_call *call)
{
    struct reads r = call->client->protocol->reads(call);
    if (r.how.mode == READ_SESSION)
        return !r.need || position_reached(&leg->admitted, r.need);
    return r.how.mode != READ_BOUNDED || leg->age_us <= r.how.bound_ms * 1000;
}

static void end_leg(struct worker *w, int i)
{
    if (w->legs.at[i].begun) /* it has only read */
        engine_abandon(engine_of(w, i));
    w->legs.at[i].begun = false;
}

/* Moves what a leg cannot serve; a leg that serves nobody then ends. */
static void admit(struct worker *w, size_t from, size_t to)
{
    struct legs *l = &w->legs;
    bool used[READ_PLACES] = {false};
    for (size_t i = from; i < to; i++) {
        struct batch_call *call = &w->batch.calls[i];
        const struct leg *leg = call->leg > 0 && call->leg != LEG_MEMORY ? &l->at[call->leg] : NULL;
        if (leg && !(leg->begun && is_recent(leg, call))) {
            call->leg = 0;
            call->on_primary = true;
            call->client->protocol->declare(call);
        }
        if (call->leg >= 0)
            used[call->leg] = true;
        l->at[0].wanted |= call->leg == 0 && call->client->protocol->needs_database(call);
    }
    for (uint32_t i = 1; i < w->executor.nengines; i++)
        if (l->at[i].begun && !used[i])
            end_leg(w, (int)i);
}

bool legs_begin(struct worker *w, size_t from, size_t to)
{
    struct legs *l = &w->legs;
    if (!l->routed) {
        l->at[0].wanted = true;
        return true;
    }
    int64_t patience = (int64_t)worker_config(w)->replica_timeout_ms * 1000 / BRISK, start = 0;
    for (uint32_t i = 1; i < w->executor.nengines; i++) {
        if (!l->at[i].wanted)
            continue;
        int64_t now = clock_mono_us();
        if (start == 0)
            start = now;
        if (now - start < patience)
            begin_leg(w, (int)i);
        else
            view_undeclare(engine_view(engine_of(w, (int)i)));
    }
    admit(w, from, to);
    if (!l->at[0].wanted)
        view_undeclare(engine_view(engine_of(w, 0)));
    return l->at[0].wanted;
}

void legs_ask_positions(struct worker *w)
{
    struct store *store = engine_store(engine_of(w, 0));
    bool on = replicas_of(w) || w->batch.placed;
    w->legs.at[0].asked_us = clock_mono_us();
    if (on == w->legs.placing || !store_replicated(store))
        return;
    w->legs.placing = on;
    store->replicated->want(store, on);
}

bool legs_primary_away(const struct worker *w)
{
    return replicas_of(w) && replicas_primary_away(replicas_of(w));
}

bool legs_skip_primary(struct worker *w, struct error *err)
{
    if (!legs_primary_away(w))
        return false;
    view_undeclare(engine_view(engine_of(w, 0)));
    (void)error_set(err, ST_IO, "the primary is away");
    return true;
}

static void note_away(struct worker *w, struct leg_away *a, bool away)
{
    int64_t now = clock_mono_us(), most = (int64_t)worker_config(w)->failover_wait_ms * 1000;
    if (!away)
        a->since_us = 0;
    else if (!a->since_us || now - a->seen_us > most)
        a->since_us = now;
    a->seen_us = now;
}

void legs_begun(struct worker *w, const struct error *err, const struct error *write_err)
{
    struct legs *l = &w->legs;
    const struct store *store = engine_store(engine_of(w, 0));
    l->at[0].begun = l->at[0].ran = err->code == ST_OK;
    l->at[0].admitted.kind = POSITION_NONE;
    l->at[0].as_of_us = l->at[0].asked_us;
    if (l->at[0].begun && store_replicated(store)) /* of a primary: none */
        store->replicated->admitted(store, &l->at[0].admitted);
    if (l->at[0].admitted.kind != POSITION_NONE)
        judge_age(w, &l->at[0]);
    if (!replicas_of(w))
        return;
    note_away(w, &l->away, err->code == ST_IO);
    if (w->batch.write)
        note_away(w, &l->away_to_write, err->code == ST_IO || write_err->code == ST_IO);
    if (err->code == ST_IO)
        replicas_failed(replicas_of(w), 0, false, err->text);
}

/* ---- calls ---- */

static const struct error *hold(struct worker *w, const struct batch_call *call)
{
    w->legs.retry_us = clock_mono_us() + HOLD_RETRY_US;
    client_pause(call->client, call->deadline_us);
    return NULL;
}

/* A read in session mode waits for a while for a database that has what its client has seen. One that a
   replica has failed is tried again, too: there may be another one. */
static bool may_wait(struct worker *w, const struct batch_call *call, int64_t now)
{
    const struct config *config = worker_config(w);
    struct client_progress *run = &call->client->run;
    uint64_t wait_ms = call->mode == READ_SESSION ? config->replica_wait_ms : 0;
    if (call->on_primary && wait_ms < config->replica_timeout_ms)
        wait_ms = config->replica_timeout_ms;
    if (!run->stale_from_us)
        run->stale_from_us = now + (int64_t)wait_ms * 1000;
    return now < run->stale_from_us;
}

/* Whether a failover has lost what the client has seen: it is told so once, and goes on from what there is.
 */
static const struct error *enter_rewound(struct worker *w, const struct batch_call *call)
{
    struct session_state *state = &call->client->session.state;
    const struct position *need = call->client->protocol->reads(call).need;
    if (need != &state->position) /* a request's own, which it judges itself */
        return NULL;
    if (!position_lost(engine_store(engine_of(w, 0)), need))
        return NULL;
    state->position = (struct position){0};
    w->executor.unreadable = true;
    (void)error_set(&w->legs.refusal, ST_REWOUND, SESSION_LOST_TEXT);
    return &w->legs.refusal;
}

/* The primary is away, and no replica was good enough for the call. */
static const struct error *enter_nowhere(struct worker *w, const struct batch_call *call,
                                         const struct error *write_err)
{
    struct legs *l = &w->legs;
    int64_t now = clock_mono_us();
    bool late = call->deadline_us && now >= call->deadline_us;
    bool weak = call->reads && call->mode != READ_STRONG;
    int64_t patience = (int64_t)worker_config(w)->failover_wait_ms * 1000;
    bool writes = call->client->protocol->may_write(call);
    int64_t since = writes ? l->away_to_write.since_us : l->away.since_us;
    if (!late && (weak ? may_wait(w, call, now) : now - since < patience))
        return hold(w, call);
    if (!weak)
        return write_err;
    w->executor.unreadable = true;
    (void)error_set(&l->refusal, ST_STALE, "no database that can be reached is recent enough for this read");
    return &l->refusal;
}

/* Whether the call has to read from where it is (the primary, or the replica of a server that has only one)
   and cannot: that is away, or not recent enough. */
static bool is_nowhere(const struct worker *w, const struct batch_call *call, const struct error *write_err)
{
    const struct leg *leg = &w->legs.at[0];
    if (!replicas_of(w))
        return false;
    if (call->leg != 0)
        return call->leg == ROUTE_NONE;
    if (!leg->begun || (write_err->code == ST_IO && call->client->protocol->may_write(call)))
        return leg->wanted && write_err->code == ST_IO && call->client->protocol->needs_database(call);
    /* What a primary admits is what its session happens to know: it has everything. */
    return engine_store(engine_of(w, 0))->replica && call->reads && leg->admitted.kind != POSITION_NONE &&
           !is_recent(leg, call);
}

/* How old what the call reads is at most. */
static int64_t age_at(const struct worker *w, const struct batch_call *call)
{
    if (call->leg == LEG_MEMORY)
        return w->executor.clock_us - call->as_of_us;
    return call->leg > 0 ? w->legs.at[call->leg].age_us : 0;
}

const struct error *legs_enter(struct worker *w, const struct batch_call *call, const struct error *write_err)
{
    static const struct error fine = {.code = ST_OK};
    struct legs *l = &w->legs;
    const struct error *lost;
    l->how = call->client->session.state.consistency;
    l->served = false;
    w->executor.unreadable = l->at[0].wanted && !l->at[0].begun;
    if (is_nowhere(w, call, write_err))
        return enter_nowhere(w, call, write_err);
    if (call->leg == 0 && call->reads && call->mode == READ_SESSION && l->at[0].begun && replicas_of(w) &&
        (lost = enter_rewound(w, call)))
        return lost;
    l->failures = w->executor.failures;
    l->served = call->reads && (call->leg == LEG_MEMORY || l->at[call->leg].begun);
    w->executor.place = (uint32_t)call->leg;
    w->executor.place_age_us = age_at(w, call);
    if (call->leg == 0)
        return write_err;
    w->executor.unreadable = false;
    use(w, call->leg);
    return &fine;
}

void legs_leave(struct worker *w, const struct batch_call *call)
{
    struct legs *l = &w->legs;
    struct consistency how = call->client->session.state.consistency;
    call->client->run.stale_from_us = 0;
    if (is_of_session(call))
        l->over |= how.mode != l->how.mode || how.bound_ms != l->how.bound_ms;
    if (call->leg > 0 && w->executor.failures != l->failures) {
        l->failed = call->leg;
        l->over = true;
    }
    if (l->served && !l->failed)
        books_count(&w->executor.books, BOOKS_READ, READ_PLACES * call->mode + (uint32_t)call->leg);
    w->executor.place = 0;
    use(w, 0);
}

void legs_note_token(struct worker *w, const struct batch_call *call, size_t at)
{
    struct legs *l = &w->legs;
    VEC_PUSH(l->tokens, l->ntokens, l->cap_tokens) =
        (struct leg_token){.client = call->client, .at = call->client->out_base + at, .call = call};
}

/* ---- the end ---- */

/* What was read on a leg, whose transaction has ended well, may serve others for a while
 * (exec/memory_reads.h). */
static void keep_read(struct worker *w, int i, const struct position *admitted)
{
    const struct leg *leg = &w->legs.at[i];
    struct recent_snapshot s = {leg->asked_us, leg->as_of_us, *admitted, leg->seen};
    if (w->executor.recent && leg->as_of_us != INT64_MIN)
        recent_take(w->executor.recent, engine_of(w, i), &s);
}

void legs_end(struct worker *w)
{
    struct legs *l = &w->legs;
    if (!l->routed)
        return;
    memory_reads_end(&w->executor);
    for (uint32_t i = 1; i < w->executor.nengines; i++) {
        const struct store *store = engine_store(engine_of(w, (int)i));
        l->at[i].ran = l->at[i].begun && l->failed != (int)i;
        end_leg(w, (int)i);
        if (!l->at[i].ran)
            continue;
        store->replicated->seen(store, &l->at[i].seen);
        /* That it has for certain; seen may be what it has received and not replayed. */
        replicas_learned(replicas_of(w), i, &l->at[i].admitted);
        keep_read(w, (int)i, &l->at[i].admitted);
    }
}

void legs_avoid_failed(struct worker *w)
{
    struct batch *b = &w->batch;
    int failed = w->legs.failed;
    if (failed != LEG_MEMORY)
        note_failure(w, failed, engine_error(engine_of(w, failed)));
    for (size_t i = b->at; i < b->ncalls; i++) {
        b->calls[i].on_primary |= b->calls[i].leg == failed && failed != LEG_MEMORY;
        b->calls[i].off_memory |= b->calls[i].leg == failed && failed == LEG_MEMORY;
    }
    w->legs.failed = 0;
}

/* What the call's snapshot had at most; NULL: it had none. */
static const struct position *seen_by(const struct worker *w, const struct batch_call *call)
{
    int leg = w->legs.routed ? call->leg : 0;
    if (leg == LEG_MEMORY)
        return &call->client->route.seen;
    return leg < 0 || !w->legs.at[leg].ran ? NULL : &w->legs.at[leg].seen;
}

/* A session that wrote, or read in a mode that is to see no less afterwards. One that a failover has taken
   something from keeps that position until it is told, though it has gone on meanwhile. */
static void move_session(const struct worker *w, const struct batch_call *call)
{
    struct session_state *state = &call->client->session.state;
    const struct protocol *p = call->client->protocol;
    const struct position *seen = seen_by(w, call);
    if (!seen || !is_tied(call) || !p->needs_database(call) || !is_of_session(call))
        return;
    if (seen->kind == POSITION_NONE || (seen->timeline != state->position.timeline &&
                                        position_lost(engine_store(engine_of(w, 0)), &state->position))) {
        state->unplaced = true;
        return;
    }
    position_merge(&state->position, seen);
    if (call->leg == 0)
        state->unplaced = false;
}

static void write_token(const struct worker *w, const struct leg_token *t)
{
    struct client *c = t->client;
    if (c->run.state == CLIENT_DEAD)
        return;
    struct position p = {0};
    const struct position *need = c->protocol->reads(t->call).need, *seen = seen_by(w, t->call);
    if (need)
        p = *need;
    if (seen && seen->kind != POSITION_NONE)
        position_merge(&p, seen);
    token_fill(&p, c->out.p + (t->at - c->out_base));
}

/* What is known of a primary before it is asked, its snapshot has. */
static void learn_primary(struct worker *w)
{
    struct legs *l = &w->legs;
    const struct leg *leg = &l->at[0];
    keep_read(w, 0, leg->admitted.kind != POSITION_NONE ? &leg->admitted : &l->known);
    if (leg->seen.kind == POSITION_NONE)
        return;
    position_merge(&l->known, &leg->seen);
    if (replicas_of(w))
        replicas_learned(replicas_of(w), 0, &leg->seen);
}

void legs_settle(struct worker *w, size_t to, bool committed)
{
    struct legs *l = &w->legs;
    const struct store *store = engine_store(engine_of(w, 0));
    committed &= l->at[0].begun;
    l->at[0].seen.kind = POSITION_NONE;
    if (committed && l->placing)
        store->replicated->seen(store, &l->at[0].seen);
    if (committed && l->routed)
        learn_primary(w);
    if (!l->placing && !l->ntokens && !w->executor.from_memory.ran)
        return;
    for (size_t i = w->batch.at; replicas_of(w) && i < to; i++)
        move_session(w, &w->batch.calls[i]);
    for (size_t i = 0; i < l->ntokens; i++)
        write_token(w, &l->tokens[i]);
    l->ntokens = 0;
}

int64_t legs_hold_left(struct worker *w)
{
    int64_t left = w->legs.retry_us ? w->legs.retry_us - worker_now(w) : 0;
    if (left <= 0)
        w->legs.retry_us = 0;
    return left > 0 ? left : 0;
}
