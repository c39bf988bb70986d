/* The calls of a batch, in one transaction or a few: begin, run the calls and serve the blocked clients that
   waited for what each of them made appear, commit, act on what they asked for. How a conflict is handled:
   retry.h. What a commit does: engine_commit in engine/engine.c, and from there journal/journal.h. */
#include "server/transaction.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/coll.h"
#include "engine/engine.h"
#include "exec/block.h"
#include "exec/command.h"
#include "server/retry.h"
#include "server/worker_internal.h"
#include "stats/stats.h"

#define PENDING_BYTES ((size_t)32 << 20) /* changes, or replies, beyond which a batch ends early */

#define DECLARED_KEYS 2000 /* in one transaction over tables that are shared */

#define ALONE_US    5000 /* without a command of any other client, the only one is alone ... */
#define ALONE_CALLS 64   /* ... unless it has sent more: the rest of them can be read meanwhile */

#define WRITE_US       20000    /* a client that writes more often than that, on average ... */
#define OWES_LITTLE_US 200000   /* ... but for some writes in a row ... */
#define OWES_MOST_US   10000000 /* ... writes much, and has done so for so long afterwards */

#define LOCK_RETRY_US 5000 /* between two tries to get a lock that another process holds */

/* How many calls ahead keys are fetched, in two steps. */
#define SOON 8
#define NEXT 4

/* Calls whose rows are read at once where reads are near: enough for the order of their keys to pay, few
   enough for the processor's caches. */
#define WINDOW 1024

/* ---- calls ---- */

/* A write is paid for with time. Who owes much writes much: those wait when the store is behind, the others
   only when there is no room left. */
static void pay_for_write(struct worker *w, struct client *c)
{
    int64_t now = worker_now(w), from = c->run.paid_us > now ? c->run.paid_us : now;
    c->run.paid_us = from + WRITE_US < now + OWES_MOST_US ? from + WRITE_US : now + OWES_MOST_US;
}

static bool store_is_full(struct worker *w, const struct client *c)
{
    const struct engine *e = w->executor.engine;
    return engine_full(e) && (engine_stops(e) || c->run.paid_us - worker_now(w) > OWES_LITTLE_US);
}

static bool has_to_wait(struct worker *w, const struct batch_call *call)
{
    bool full = engine_full(w->executor.engine);
    if (w->executor.pause == PAUSE_NONE && !w->lock_since_us && !full)
        return false;
    if (call->deadline_us && worker_now(w) >= call->deadline_us)
        return false;
    bool may_write = call->client->protocol->may_write(call);
    return (may_write && (w->lock_since_us || store_is_full(w, call->client))) ||
           executor_paused(&w->executor, may_write, worker_now(w));
}

/* One transaction: calls from `at` on, as many as are not too much at once. */
struct transaction {
    size_t at;                    /* where it stopped */
    size_t said;                  /* bytes of replies */
    struct command_result result; /* of all its calls */
    bool begun;                   /* else what needs the database has been told why not */
    bool failed;                  /* err says why nothing of it was kept */
    int64_t ticket;
    struct error write_err; /* why nothing can be written */
    struct error err;
};

/* The reply, from `start` on in the client's output, leaves when what it waits for has happened. */
static void hold_reply(struct worker *w, const struct batch_call *call, size_t start,
                       const struct command_result *result)
{
    bool sync = result->wishes && (result->sync || result->durability || result->durable);
    int64_t ticket = sync ? HELD_FOR_SYNC : result->ticket;
    client_touch(call->client);
    if (ticket)
        held_add(w, call->client, start, worker_ticket(w, ticket), call->deadline_us);
}

static void run_call(struct worker *w, const struct batch_call *call, struct transaction *t)
{
    const struct error *write_err = &t->write_err;
    struct client *c = call->client;
    if (!client_batched(c))
        return;
    worker_undo_keep(w, c);
    if (client_must_stall(c)) {
        client_change_state(c, CLIENT_STALLED);
        return;
    }
    if (has_to_wait(w, call)) {
        client_pause(c, call->deadline_us);
        return;
    }
    if (w->legs.routed && !(write_err = legs_enter(w, call, write_err)))
        return;
    size_t start = c->out.len;
    struct command_result result = c->protocol->run(call, write_err);
    if (w->legs.routed)
        legs_leave(w, call);
    if (c->session.state.blocked && block_waits_for_job(&c->session)) {
        c->out.len = start; /* it will be run again */
        return;
    }
    if (c->session.state.answered)
        block_forget_answer(&w->executor, &c->session);
    c->run.done = call->end;
    if (result.ticket)
        pay_for_write(w, c);
    if (c->out.len != start)
        hold_reply(w, call, start, &result);
    if (w->legs.on && result.token)
        legs_note_token(w, call, start + result.token);
    t->said += c->out.len - start;
    command_result_add(&t->result, result);
}

void transaction_flush(struct worker *w)
{
    for (size_t i = 0; i < w->flush.len; i++) {
        w->flush.items[i]->to_flush = false;
        client_flush(w->flush.items[i]);
    }
    w->flush.len = 0;
}

static void log_failure(const char *what, const struct error *err)
{
    char text[2 * sizeof err->text];
    log_warning(what, "status=%s error=%s", status_name(err->code), log_quote(text, sizeof text, err->text));
}

/* Commits, of this batch or of earlier ones, have failed. */
void transactions_failed(struct worker *w, struct held_for from, const struct error *err)
{
    executor_note_failure(&w->executor, err->code);
    if (worker_may_warn(w, &w->commit_warned_us))
        log_failure("a batch could not be committed", err);
    held_fail(w, from, err);
    protocols_fail(w, from.ticket, err);
}

/* Learns how far one engine's store has got. */
static void progress(struct worker *w, struct engine *engine)
{
    struct error err;
    if (engine_progress(engine, &err) == ST_OK)
        return;
    transactions_failed(w, (struct held_for){engine, engine_durable(engine) + 1}, &err);
    w->stop |= err.code == ST_LOCKED; /* another server has the tables now */
    if (err.code == ST_LOST) {        /* nothing may be built on what memory has */
        w->fatal = err;
        w->stop = true;
    }
}

void transaction_progress(struct worker *w)
{
    for (uint32_t i = 0; i < w->executor.nengines; i++)
        progress(w, w->executor.engines[i]);
    held_settle(w);
    protocols_settle(w);
}

/* SAVE, or WAITAOF, was the last call of the transaction, which has been committed: what it promised comes
   true now, or its reply becomes the error. */
static void sync_saved(struct worker *w, bool all)
{
    struct error err;
    if (engine_sync(w->executor.engine, &err) == ST_OK) {
        if (all)
            server_saved(w->executor.server);
        held_synced(w);
        return;
    }
    w->executor.failed_syncs++;
    executor_note_failure(&w->executor, err.code);
    log_failure("the database could not be synced", &err);
    held_fail(w, worker_ticket(w, HELD_FOR_SYNC), &err);
}

/* Of all workers, who stand still. Where there are several, none of their stores can refuse. Replicas are not
   written to. */
static enum status set_durability(struct workers *t, enum durability d, struct error *err)
{
    enum status st = ST_OK;
    for (uint32_t i = 0; i < t->n && st == ST_OK; i++)
        st = store_set_durability(engine_store(t->workers[i]->executor.engine), d, err);
    return st;
}

/* So with CONFIG SET durability: what waits in the store may have to become durable first, and its tables
   change places only between transactions. */
static void change_durability(struct worker *w, bool committed)
{
    struct config *config = worker_config(w);
    struct error err;
    if (committed && set_durability(w->workers, (enum durability)config->durability, &err) == ST_OK) {
        w->workers->durability = config->durability;
        held_synced(w);
        return;
    }
    config->durability = w->workers->durability;
    if (!committed) /* which it was told */
        return;
    executor_note_failure(&w->executor, err.code);
    log_failure("durability could not be changed", &err);
    held_fail(w, worker_ticket(w, HELD_FOR_SYNC), &err);
}

/* The keys and items of calls that come soon are fetched from memory while this one runs. */
static void look_ahead(const struct worker *w, size_t at)
{
    const struct batch *b = &w->batch;
    struct batch_call *soon = at + SOON < b->ncalls ? &b->calls[at + SOON] : NULL;
    view_prefetch_now(w->executor.view, b->calls[at].keyed ? &b->calls[at].key : NULL);
    if (soon && soon->keyed)
        coll_prefetch(w->executor.view, &soon->key, soon->argv, soon->argc);
    if (at + NEXT < b->ncalls)
        coll_prefetch_next(w->executor.view, &b->calls[at + NEXT].key);
    if (w->batch.window != SIZE_MAX) /* they are there */
        return;
    if (at + SOON < b->ncalls && b->calls[at + SOON].keyed)
        view_prefetch_soon(w->executor.view, &b->calls[at + SOON].key);
    if (at + NEXT < b->ncalls && b->calls[at + NEXT].keyed)
        view_prefetch_next(w->executor.view, &b->calls[at + NEXT].key);
}

/* Notes whether another process holds the database's lock. Clients that write wait for up to busy-timeout,
   then they get the error. */
static void note_lock(struct worker *w, bool held)
{
    int64_t now = worker_now(w);
    if (held && !w->lock_since_us)
        w->lock_since_us = now;
    if (!held || now - w->lock_since_us >= (int64_t)worker_config(w)->busy_timeout_ms * 1000)
        w->lock_since_us = 0;
    else
        w->lock_retry_us = now + LOCK_RETRY_US;
}

enum status transaction_begin(struct worker *w, bool write, struct error *write_err, struct error *err)
{
    write &= !(w->lock_since_us && worker_now(w) < w->lock_retry_us);
    enum status st = engine_begin(w->executor.engine, write, write_err, err);
    if (write)
        note_lock(w, write_err->code == ST_BUSY);
    bool refused = write_err->code != ST_OK && !executor_only_reads(&w->executor);
    if (refused)
        executor_note_failure(&w->executor, write_err->code);
    if (refused && write_err->code != ST_BUSY && worker_may_warn(w, &w->commit_warned_us))
        log_failure("the database cannot be written", write_err);
    if (st != ST_OK)
        executor_note_failure(&w->executor, st);
    return st;
}

/* Whether the call is run again when its transaction conflicts with another server's. */
static bool may_run_again(const struct worker *w, const struct batch_call *call)
{
    return engine_store(w->executor.engine)->contended && !call->client->protocol->goes_outside(call);
}

/* What the call would use is not this worker's alone. */
static bool needs_all(const struct worker *w, const struct batch_call *call)
{
    return !workers_alone(w->workers) && call->client->protocol->stops_workers(call);
}

/* Whether a call has no place in a transaction with others. */
static bool stands_alone(const struct worker *w, const struct batch_call *call)
{
    return call->alone || call->client->session.state.monitor ||
           (engine_store(w->executor.engine)->contended && !may_run_again(w, call)) || needs_all(w, call);
}

/* The next window of calls, where reads are near. Returns its end. */
static size_t declare_window(struct worker *w, size_t at, bool *ret_rows_only)
{
    size_t left = w->batch.ncalls - at, end = at + (left < WINDOW ? left : WINDOW);
    *ret_rows_only = gather_rows(w, at, end) && end == w->batch.ncalls;
    return end;
}

/* In the middle of a transaction: a row that cannot be read fails the command that asks for it. */
static size_t load_window(struct worker *w, size_t at)
{
    bool ignored;
    size_t end = declare_window(w, at, &ignored);
    (void)(view_fetch_declared(w->executor.view) == ST_OK);
    return end;
}

/* The keys of a call, where it reads. One of several keys sees them in one state. A call that comes behind
   another of its own client must not see less than that one did: it may have written, or have read what a
   third call of the batch is about to write; and both may be queued, and become one transaction (EXEC). */
static size_t declare_one(struct worker *w, struct batch_call *call)
{
    struct client *c = call->client;
    size_t n = legs_route(w, call);
    if (n > 1 || (n && c->declared))
        view_declare_tied(w->executor.view);
    c->declared |= n > 0;
    return n;
}

/* What the calls from `at` on will use. Where reads are round trips, also where they read: returns where it
   is enough, at the latest before a call that has no place with them. */
static size_t declare(struct worker *w, size_t at)
{
    struct batch *b = &w->batch;
    size_t n = 0, first = at;
    if (!view_wants_declarations(w->executor.view)) {
        bool rows_only;
        w->batch.window = declare_window(w, at, &rows_only);
        if (rows_only)
            view_declare_rows_only(w->executor.view);
        return b->ncalls;
    }
    while (at < b->ncalls && n < DECLARED_KEYS) {
        bool alone = b->calls[at].alone;
        if (alone && at > first)
            break;
        n += declare_one(w, &b->calls[at++]);
        if (alone)
            break;
    }
    return at;
}

/* Whether none of the calls from `at` on needs the database: those (PING) are answered while it is away. */
static bool needs_none(const struct batch *b, size_t at)
{
    while (at < b->ncalls && !b->calls[at].client->protocol->needs_database(&b->calls[at]))
        at++;
    return at == b->ncalls;
}

/* Whether the transaction ends here: no call is left, one ends it, it has become large, or it conflicts. */
static bool is_over(const struct worker *w, const struct transaction *t, size_t end)
{
    const struct engine *engine = w->executor.engine;
    return t->at >= end || t->result.ends || t->said >= PENDING_BYTES ||
           engine_pending_bytes(engine) >= PENDING_BYTES || engine_conflicted(engine) || w->legs.failed ||
           w->legs.over;
}

/* Runs the calls, and behind each of them serves the clients that waited for what it made appear. */
static void run_calls(struct worker *w, struct transaction *t, size_t end)
{
    struct batch *b = &w->batch;
    size_t first = t->at;
    while (!is_over(w, t, end)) {
        bool alone = stands_alone(w, &b->calls[t->at]);
        if (alone && t->at > first)
            break;
        if (t->at == w->batch.window)
            w->batch.window = load_window(w, t->at);
        look_ahead(w, t->at);
        b->now = t->at++;
        run_call(w, &b->calls[b->now], t);
        block_serve(&w->executor, &t->write_err);
        t->result.ends |= alone;
    }
}

/* Begins the primary's leg. */
static bool begin_primary(struct worker *w, struct transaction *t)
{
    bool write = w->batch.write;
    if (!w->legs.on)
        return transaction_begin(w, write, &t->write_err, &t->err) == ST_OK;
    legs_ask_positions(w);
    bool begun =
        !legs_skip_primary(w, &t->err) && transaction_begin(w, write, &t->write_err, &t->err) == ST_OK;
    legs_begun(w, &t->err, &t->write_err);
    return begun;
}

/* Begins the transaction, unless no call needs the primary. False: it conflicts with another writer's and
   may wait; none of its calls has been run. */
static bool begin_calls(struct worker *w, struct transaction *t, size_t *ret_end, bool may_wait)
{
    struct batch *b = &w->batch;
    *ret_end = b->ncalls;
    w->legs.on = w->executor.server->replicas || w->executor.recent || b->placed || w->legs.placing;
    if (w->legs.on)
        legs_start(w);
    if (needs_none(b, t->at))
        return true;
    *ret_end = declare(w, t->at);
    if (w->legs.on && !legs_begin(w, t->at, *ret_end))
        return true;
    if (b->write && w->executor.nwaiters && view_wants_declarations(w->executor.view))
        block_declare(&w->executor);
    t->begun = begin_primary(w, t);
    w->executor.unreadable = !t->begun;
    if (!t->begun)
        t->write_err = t->err;
    if (t->write_err.code != ST_CONFLICT || !may_wait)
        return true;
    if (t->begun && engine_commit(w->executor.engine, NULL, &t->err) != ST_OK) /* it only read */
        executor_note_failure(&w->executor, t->err.code);
    t->err = t->write_err;
    t->failed = true;
    return false;
}

/* The errors' texts stay unset: there is a lot of them, and no text is read whose code is ST_OK. */
static void run_once(struct worker *w, struct transaction *t, bool may_wait)
{
    size_t end;
    w->batch.window = SIZE_MAX;
    t->at = w->batch.at;
    t->said = 0;
    t->result = (struct command_result){0};
    t->begun = t->failed = false;
    t->ticket = 0;
    t->write_err.code = t->err.code = ST_OK;
    if (!begin_calls(w, t, &end, may_wait)) {
        if (w->legs.on)
            legs_end(w);
        return;
    }
    block_begin(&w->executor);
    w->executor.clock_us = clock_mono_us();
    run_calls(w, t, end);
    if (w->legs.on)
        legs_end(w);
    if (w->legs.failed && t->begun)
        engine_abandon(w->executor.engine);
    else
        t->failed = t->begun && engine_commit(w->executor.engine, &t->ticket, &t->err) != ST_OK;
}

/* ---- once or again ---- */

/* The calls have been run for good: does what they asked for. */
static void conclude(struct worker *w, const struct transaction *t)
{
    if (t->failed)
        transactions_failed(w, worker_ticket(w, t->ticket), &t->err);
    else if (t->result.sync || t->result.durable)
        sync_saved(w, t->result.sync);
    w->executor.failed_syncs += t->failed;
    if (t->result.durability)
        change_durability(w, !t->failed);
    w->stop |= t->result.stops;
    w->batch.at = t->at;
    w->batch.tries = 0;
}

/* What has become of calls that were run: nothing has happened, and they can be run again, but if it was for
   good. */
enum tried { FOR_GOOD, CONFLICT, REPLICA_FAILED };

static enum tried outcome(const struct worker *w, const struct transaction *t, bool again)
{
    if (w->legs.failed)
        return REPLICA_FAILED;
    bool conflict = t->failed && t->err.code == ST_CONFLICT && (again || t->at == w->batch.at);
    return conflict ? CONFLICT : FOR_GOOD;
}

/* Runs the calls once. */
static enum tried try_calls(struct worker *w)
{
    struct batch *b = &w->batch;
    bool undoes = may_run_again(w, &b->calls[b->at]);
    bool last = retry_is_last(w, b->tries) || !engine_store(w->executor.engine)->contended;
    if (retry_alone(w, b->tries))
        view_declare_everything(w->executor.view);
    if (undoes)
        worker_undo_begin(w);
    struct transaction t;
    run_once(w, &t, !last);
    enum tried found = outcome(w, &t, undoes && !last);
    if (undoes && found != FOR_GOOD)
        worker_undo_take_back(w);
    else if (undoes)
        worker_undo_end(w);
    if (found == CONFLICT && undoes)
        executor_note_failure(&w->executor, ST_CONFLICT);
    else if (found == REPLICA_FAILED)
        legs_avoid_failed(w);
    stats_post(&w->executor);
    if (found == FOR_GOOD) {
        if (w->legs.on)
            legs_settle(w, t.at, !t.failed);
        conclude(w, &t);
    }
    return found;
}

static void run_transaction(struct worker *w)
{
    bool stops = needs_all(w, &w->batch.calls[w->batch.at]) || w->executor.wants_others_to;
    if (stops && !workers_hold(w)) {
        if (busy_refuse(w, &w->batch.calls[w->batch.at])) { /* else it is tried again */
            w->batch.at++;
            w->batch.tries = 0;
        }
        transaction_flush(w);
        return;
    }
    enum tried found;
    w->executor.others_stand = stops;
    w->executor.wants_others_to = false;
    do
        found = try_calls(w);
    while (found == REPLICA_FAILED);
    w->executor.others_stand = false;
    if (stops)
        workers_release(w->workers);
    if (found == FOR_GOOD)
        executor_tell_others(&w->executor);
    else
        retry_later(w);
    if (found == FOR_GOOD && w->executor.jobs_due)
        block_start_jobs(&w->executor);
    transaction_progress(w);
    transaction_flush(w);
}

/* All calls have been run, or are to be parsed again. */
static void end_batch(struct worker *w)
{
    struct batch *b = &w->batch;
    if (b->ncalls) {
        w->batches++;
        histogram_add(&w->executor.stats.batch_commands, b->ncalls);
    }
    for (size_t i = 0; i < b->nclients; i++)
        client_batch_done(b->clients[i]);
    b->ncalls = b->nclients = b->at = 0;
    b->write = b->placed = b->pending = false;
    arena_reset(&b->arena);
    gather_unclaim(w);
    gather_resume(w);
}

/* Whether nobody could be served while this batch becomes durable: a few commands of one client, and no other
   has had any lately. */
static void note_company(struct worker *w)
{
    const struct batch *b = &w->batch;
    const struct client *only = b->nclients == 1 ? b->clients[0] : NULL;
    if (!only || only != w->lone.client)
        w->lone.company_us = worker_now(w);
    w->lone.client = only;
    w->lone.alone = only && b->ncalls <= ALONE_CALLS && worker_now(w) - w->lone.company_us >= ALONE_US;
    w->lone.fd = w->lone.alone ? only->conn.fd : -1;
}

void transaction_run_batch(struct worker *w)
{
    struct batch *b = &w->batch;
    transaction_progress(w);
    if (b->at == 0 && !b->pending)
        gather_apart(w);
    if (b->ncalls)
        note_company(w);
    engine_alone(w->executor.engine, b->write && w->lone.alone);
    while (b->at < b->ncalls && (!b->pending || b->due))
        run_transaction(w);
    engine_alone(w->executor.engine, false);
    if (b->at == b->ncalls)
        end_batch(w);
    transaction_flush(w);
}
