#include "exec/txn.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "exec/args.h"
#include "exec/declare.h"
#include "exec/session.h"

struct queued {
    const struct command *cmd;
    struct slice *argv;
    int argc;
};

struct watch {
    struct view_watch in_view;
    int64_t version;
    int64_t tombstone; /* of a key that is not there */
};

/* What tells one state of a key from another. */
static enum status look_at(struct call *c, struct watch *w)
{
    enum status st = view_version(c->view, w->in_view.db, w->in_view.key, &w->version);
    return st == ST_OK ? view_tombstone(c->view, w->in_view.db, w->in_view.key, &w->tombstone) : st;
}

/* Both grow at their ends only: an earlier txn_state counts fewer of the same ones. */
struct txn {
    struct txn *next; /* in session->txns */
    struct queued *queue;
    size_t queue_cap;
    struct watch **watches;
    size_t nwatches, watches_cap;
    struct arena arena; /* the queue's arguments */
};

static struct txn *txn_of(struct session *s)
{
    if (!s->state.txn.txn) {
        struct txn *t = mem_zalloc(sizeof *t);
        t->next = s->txns;
        s->txns = s->state.txn.txn = t;
    }
    return s->state.txn.txn;
}

bool txn_open(const struct session *s)
{
    return s->state.txn.phase == TXN_OPEN;
}

bool txn_watches(const struct session *s)
{
    return s->state.txn.nwatches > 0;
}

bool txn_running(const struct session *s)
{
    return s->state.txn.phase == TXN_RUNNING;
}

int txn_length(const struct session *s)
{
    return txn_open(s) ? (int)s->state.txn.nqueue : -1;
}

void txn_spoil(struct session *s)
{
    if (txn_open(s))
        s->state.txn.spoilt = true;
}

static void forget_watches(struct txn *t, size_t from)
{
    for (size_t i = from; i < t->nwatches; i++) {
        view_unwatch(&t->watches[i]->in_view);
        mem_free(t->watches[i]);
    }
    t->nwatches = from;
}

static void txn_free(struct txn *t)
{
    forget_watches(t, 0);
    mem_free(t->watches);
    mem_free(t->queue);
    arena_release(&t->arena);
    mem_free(t);
}

void txn_free_unused(struct session *s)
{
    for (struct txn **at = &s->txns, *t; (t = *at);) {
        if (t == s->state.txn.txn) {
            at = &t->next;
        } else {
            *at = t->next;
            txn_free(t);
        }
    }
}

void txn_end(struct session *s)
{
    s->state.txn = (struct txn_state){0};
    if (!s->copies)
        txn_free_unused(s);
}

void txn_restored(struct session *s)
{
    if (s->state.txn.txn)
        forget_watches(s->state.txn.txn, s->state.txn.nwatches);
}

/* ---- queueing ---- */

/* These are never queued. SLOWLOG RESET and LATENCY RESET are none of them. */
static bool runs_at_once(const struct command *cmd)
{
    static const char *const words[] = {"exec", "discard", "multi", "watch", "quit", "reset"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(cmd->name, words[i]) == 0)
            return !command_parent(cmd);
    return false;
}

bool txn_queues(const struct command *cmd)
{
    return !runs_at_once(cmd);
}

bool txn_queue(struct session *s, const struct command *cmd, const struct slice *argv, int argc)
{
    struct txn_state *now = &s->state.txn;
    struct txn *t = now->txn;
    if (now->phase != TXN_OPEN || runs_at_once(cmd))
        return false;
    struct slice *copy = arena_alloc(&t->arena, (size_t)argc * sizeof *copy);
    for (int i = 0; i < argc; i++)
        copy[i] = arena_copy(&t->arena, argv[i]);
    VEC_PUSH(t->queue, now->nqueue, t->queue_cap) = (struct queued){cmd, copy, argc};
    bool writes = command_writes(cmd, argv, argc);
    now->writes |= writes || (cmd->flags & CMD_MAY_WRITE);
    now->must_write |= writes;
    now->outside |= (cmd->flags & CMD_OUTSIDE) != 0;
    now->stops_workers |= (cmd->flags & CMD_STOPS_WORKERS) != 0;
    return true;
}

size_t txn_declare(const struct session *s, struct view *v)
{
    const struct txn *t = s->state.txn.txn;
    uint32_t db = s->state.db;
    size_t n = 0;
    for (size_t i = 0; i < s->state.txn.nqueue; i++) {
        const struct queued *q = &t->queue[i];
        int64_t chosen;
        if (strcmp(q->cmd->name, "select") == 0 && num_parse_i64(q->argv[1], &chosen) && chosen >= 0 &&
            chosen < view_databases(v))
            db = (uint32_t)chosen;
        n += declare_keys(v, db, q->cmd, q->argv, q->argc);
    }
    for (size_t i = 0; i < s->state.txn.nwatches; i++, n++)
        view_declare(v, t->watches[i]->in_view.db, t->watches[i]->in_view.key);
    return n;
}

static enum status multi(struct call *c)
{
    if (c->session->state.txn.phase != TXN_NONE) {
        reply_error(c->reply, "ERR MULTI calls can not be nested");
        return ST_OK;
    }
    (void)txn_of(c->session);
    c->session->state.txn.phase = TXN_OPEN;
    reply_ok(c->reply);
    return ST_OK;
}

static enum status discard(struct call *c)
{
    if (!txn_open(c->session)) {
        reply_error(c->reply, "ERR DISCARD without MULTI");
        return ST_OK;
    }
    txn_end(c->session);
    reply_ok(c->reply);
    return ST_OK;
}

/* ---- running ---- */

static enum status exec(struct call *c);

bool txn_is_exec(const struct command *cmd)
{
    return cmd->fn == exec;
}

bool txn_opens(const struct command *cmd)
{
    return cmd->fn == multi;
}

bool txn_closes(const struct command *cmd)
{
    return cmd->fn == exec || cmd->fn == discard;
}

bool txn_may_write(const struct session *s, const struct command *cmd)
{
    return txn_is_exec(cmd) && txn_open(s) && s->state.txn.writes;
}

bool txn_goes_outside(const struct session *s, const struct command *cmd)
{
    return txn_is_exec(cmd) && txn_open(s) && s->state.txn.outside;
}

bool txn_stops_workers(const struct session *s)
{
    return s->state.txn.stops_workers;
}

/* Whether a watched key is not what it was. */
static enum status watched_changed(struct call *c, const struct txn_state *t, bool *ret)
{
    *ret = false;
    for (size_t i = 0; i < t->nwatches && !*ret; i++) {
        const struct watch *was = t->txn->watches[i];
        struct watch now = {.in_view = {.db = was->in_view.db, .key = was->in_view.key}};
        enum status st = look_at(c, &now);
        if (st != ST_OK)
            return st;
        /* a key that is gone as before, but was there through another server meanwhile, has another
           tombstone */
        *ret = was->in_view.touched || now.version != was->version ||
               (now.tombstone && now.tombstone != was->tombstone);
    }
    return ST_OK;
}

/* The arguments stay until the commit: rows borrow them. The session may begin another transaction before
   that. When the database fails, nothing that the commands did to rows or to the session remains. */
static enum status run_queue(struct call *c)
{
    struct session *s = c->session;
    struct txn *t = s->state.txn.txn;
    struct queued *queue = t->queue;
    size_t n = s->state.txn.nqueue;
    if (!s->copies) { /* else they stay until it is known whether all of this runs again */
        arena_adopt(view_arena(c->view), &t->arena);
        forget_watches(t, 0);
        s->state.txn.nwatches = 0;
    }
    s->state.txn.phase = TXN_RUNNING;
    const struct session_state before = session_keep(s);
    const uint64_t errors = c->reply->errors;
    enum status st = ST_OK;
    reply_array(c->reply, n);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = command_run_step(c, queue[i].cmd, queue[i].argv, queue[i].argc);
    c->reply->errors = errors; /* each command's are counted as its own */
    if (st != ST_OK)
        session_restore(s, &before);
    session_let_go(s);
    c->reply->resp = s->state.resp;
    txn_end(s);
    return st;
}

static enum status exec(struct call *c)
{
    const struct txn_state *t = &c->session->state.txn;
    if (!txn_open(c->session)) {
        reply_error(c->reply, "ERR EXEC without MULTI");
        return ST_OK;
    }
    if (t->spoilt) {
        reply_error(c->reply, "EXECABORT Transaction discarded because of previous errors.");
        txn_end(c->session);
        return ST_OK;
    }
    bool changed;
    c->all_of_it = true;
    enum status st = watched_changed(c, t, &changed);
    if (st == ST_OK && !changed && t->must_write && c->write_err && c->write_err->code != ST_OK) {
        *c->err = *c->write_err;
        st = c->write_err->code;
    }
    if (st != ST_OK || changed) {
        txn_end(c->session);
        if (st == ST_OK)
            reply_null_array(c->reply);
        return st;
    }
    return run_queue(c);
}

/* ---- watching ---- */

static enum status watch_key(struct call *c, struct slice key)
{
    struct txn *t = txn_of(c->session);
    struct txn_state *now = &c->session->state.txn;
    uint32_t db = call_db(c);
    for (size_t i = 0; i < now->nwatches; i++)
        if (t->watches[i]->in_view.db == db && slice_eq(t->watches[i]->in_view.key, key))
            return ST_OK;
    struct watch *w = mem_zalloc(sizeof *w + key.n); /* the key follows */
    if (key.n)
        memcpy(w + 1, key.p, key.n);
    w->in_view = (struct view_watch){.db = db, .key = slice_of(w + 1, key.n)};
    enum status st = look_at(c, w);
    if (st != ST_OK) {
        mem_free(w);
        return st;
    }
    view_watch(c->view, &w->in_view);
    VEC_PUSH(t->watches, t->nwatches, t->watches_cap) = w;
    now->nwatches = t->nwatches;
    return ST_OK;
}

static enum status watch(struct call *c)
{
    if (txn_open(c->session)) {
        reply_error(c->reply, "ERR WATCH inside MULTI is not allowed");
        return ST_OK;
    }
    for (int i = 1; i < c->argc; i++) {
        enum status st = watch_key(c, c->argv[i]);
        if (st != ST_OK)
            return st;
    }
    reply_ok(c->reply);
    return ST_OK;
}

bool txn_begins_watch(const struct command *cmd)
{
    return cmd->fn == watch;
}

/* Inside EXEC nothing is watched any more. */
static enum status unwatch(struct call *c)
{
    if (c->session->state.txn.txn && !txn_running(c->session))
        txn_end(c->session);
    reply_ok(c->reply);
    return ST_OK;
}

/* clang-format off */
#define TXN_FLAGS (CMD_NOSCRIPT | CMD_LOADING | CMD_STALE)
const struct command txn_commands[] = {
    {
        .name = "multi", .fn = multi, .arity = 1, .flags = TXN_FLAGS | CMD_FAST | CMD_ALLOW_BUSY | CMD_SESSION,
        .categories = CAT_FAST | CAT_TRANSACTION,
        .summary = "Starts to queue commands for EXEC.", .since = "1.2.0", .group = "transactions", .complexity = "O(1)",
    },
    {
        .name = "exec", .fn = exec, .arity = 1, .flags = TXN_FLAGS | CMD_SKIP_SLOWLOG | CMD_STOPS_WORKERS,
        .categories = CAT_SLOW | CAT_TRANSACTION,
        .summary = "Runs the queued commands in one database transaction.", .since = "1.2.0", .group = "transactions",
        .complexity = "That of the queued commands.",
    },
    {
        .name = "discard", .fn = discard, .arity = 1, .flags = TXN_FLAGS | CMD_FAST | CMD_ALLOW_BUSY | CMD_SESSION,
        .categories = CAT_FAST | CAT_TRANSACTION,
        .summary = "Forgets the queued commands and what was watched.", .since = "2.0.0", .group = "transactions",
        .complexity = "O(N) in the queued commands.",
    },
    {
        .name = "watch", .fn = watch, .arity = -2, .flags = TXN_FLAGS | CMD_FAST | CMD_ALLOW_BUSY,
        .categories = CAT_FAST | CAT_TRANSACTION,
        .keys = {{.flags = KEY_RO, .index = 1, .last = -1, .step = 1}},
        .summary = "Makes EXEC do nothing if one of the keys changes before it.", .since = "2.2.0", .group = "transactions",
        .complexity = "O(1) for each key.",
    },
    {
        .name = "unwatch", .fn = unwatch, .arity = 1, .flags = TXN_FLAGS | CMD_FAST | CMD_ALLOW_BUSY | CMD_SESSION,
        .categories = CAT_FAST | CAT_TRANSACTION,
        .summary = "Forgets what was watched.", .since = "2.2.0", .group = "transactions", .complexity = "O(1)",
    },
    {.name = NULL},
};
/* clang-format on */
