#include "exec/txn.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "exec/args.h"
#include "exec/retry.h"
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

enum txn_state { TXN_NONE, TXN_OPEN, TXN_RUNNING };

struct txn {
    enum txn_state state;
    bool spoilt;
    bool writes;
    bool outside, stops_workers; /* something in the queue is CMD_OUTSIDE, CMD_STOPS_WORKERS */
    struct queued *queue;
    size_t nqueue, queue_cap;
    struct watch **watches;
    size_t nwatches, watches_cap;
    struct arena arena; /* the queue's arguments */
};

static struct txn *txn_of(struct session *s)
{
    if (!s->txn)
        s->txn = mem_zalloc(sizeof *s->txn);
    return s->txn;
}

bool txn_open(const struct session *s)
{
    return s->txn && s->txn->state == TXN_OPEN;
}

bool txn_running(const struct session *s)
{
    return s->txn && s->txn->state == TXN_RUNNING;
}

int txn_length(const struct session *s)
{
    return txn_open(s) ? (int)s->txn->nqueue : -1;
}

void txn_spoil(struct session *s)
{
    if (txn_open(s))
        s->txn->spoilt = true;
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

/* Whether it may be needed again, because the running transaction may be. */
static bool is_kept(const struct session *s)
{
    return s->kept && s->kept->txn == s->txn;
}

void txn_end(struct session *s)
{
    if (s->txn && !is_kept(s))
        txn_free(s->txn);
    s->txn = NULL;
}

struct txn_mark txn_mark(const struct txn *t)
{
    if (!t)
        return (struct txn_mark){.state = TXN_NONE};
    return (struct txn_mark){.state = (int)t->state,
                             .spoilt = t->spoilt,
                             .writes = t->writes,
                             .outside = t->outside,
                             .stops_workers = t->stops_workers,
                             .nqueue = t->nqueue,
                             .nwatches = t->nwatches};
}

void txn_restore(struct session *s, struct txn *was, const struct txn_mark *mark)
{
    if (s->txn && s->txn != was)
        txn_free(s->txn);
    s->txn = was;
    if (!was)
        return;
    was->state = (enum txn_state)mark->state;
    was->spoilt = mark->spoilt;
    was->writes = mark->writes;
    was->outside = mark->outside;
    was->stops_workers = mark->stops_workers;
    was->nqueue = mark->nqueue;
    forget_watches(was, mark->nwatches);
}

void txn_let_go(const struct session *s, struct txn *was)
{
    if (was && was != s->txn)
        txn_free(was);
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
    struct txn *t = s->txn;
    if (t->state != TXN_OPEN || runs_at_once(cmd))
        return false;
    struct slice *copy = arena_alloc(&t->arena, (size_t)argc * sizeof *copy);
    for (int i = 0; i < argc; i++)
        copy[i] = arena_copy(&t->arena, argv[i]);
    VEC_PUSH(t->queue, t->nqueue, t->queue_cap) = (struct queued){cmd, copy, argc};
    t->writes |= (cmd->flags & CMD_WRITE) != 0;
    t->outside |= (cmd->flags & CMD_OUTSIDE) != 0;
    t->stops_workers |= (cmd->flags & CMD_STOPS_WORKERS) != 0;
    return true;
}

size_t txn_declare(const struct session *s, struct view *v)
{
    const struct txn *t = s->txn;
    uint32_t db = s->db;
    size_t n = 0;
    for (size_t i = 0; t && i < t->nqueue; i++) {
        const struct queued *q = &t->queue[i];
        int64_t chosen;
        if (strcmp(q->cmd->name, "select") == 0 && num_parse_i64(q->argv[1], &chosen) && chosen >= 0 &&
            chosen < view_databases(v))
            db = (uint32_t)chosen;
        n += declare_keys(v, db, q->cmd, q->argv, q->argc);
    }
    for (size_t i = 0; t && i < t->nwatches; i++, n++)
        view_declare(v, t->watches[i]->in_view.db, t->watches[i]->in_view.key);
    return n;
}

static enum status multi(struct call *c)
{
    struct txn *t = txn_of(c->session);
    if (t->state != TXN_NONE) {
        reply_error(c->reply, "ERR MULTI calls can not be nested");
        return ST_OK;
    }
    t->state = TXN_OPEN;
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

bool txn_may_write(const struct session *s, const struct command *cmd)
{
    return txn_is_exec(cmd) && txn_open(s) && s->txn->writes;
}

bool txn_goes_outside(const struct session *s, const struct command *cmd)
{
    return txn_is_exec(cmd) && txn_open(s) && s->txn->outside;
}

bool txn_stops_workers(const struct session *s)
{
    return s->txn->stops_workers;
}

/* Whether a watched key is not what it was. */
static enum status watched_changed(struct call *c, const struct txn *t, bool *ret)
{
    *ret = false;
    for (size_t i = 0; i < t->nwatches && !*ret; i++) {
        const struct watch *was = t->watches[i];
        struct watch now = {.in_view = {.db = was->in_view.db, .key = was->in_view.key}};
        enum status st = look_at(c, &now);
        if (st != ST_OK)
            return st;
        /* a key that is gone as before, but has been there through another server, has left another grave */
        *ret = was->in_view.touched || now.version != was->version ||
               (now.tombstone && now.tombstone != was->tombstone);
    }
    return ST_OK;
}

/* The arguments stay until the commit: rows borrow them. The session may begin another transaction before
   that. When the database fails, nothing that the commands did to rows or to the session remains. */
static enum status run_queue(struct call *c)
{
    struct txn *t = c->session->txn;
    struct queued *queue = t->queue;
    size_t n = t->nqueue;
    if (!is_kept(c->session)) {
        arena_adopt(view_arena(c->view), &t->arena);
        forget_watches(t, 0);
    }
    t->state = TXN_RUNNING;
    struct kept before;
    enum status st = ST_OK;
    retry_mark(c->session, &before);
    reply_array(c->reply, n);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = command_run_step(c, queue[i].cmd, queue[i].argv, queue[i].argc);
    retry_unmark(c->executor, c->session, &before, st != ST_OK);
    c->reply->resp = c->session->resp;
    txn_end(c->session);
    return st;
}

static enum status exec(struct call *c)
{
    struct txn *t = c->session->txn;
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
    if (st == ST_OK && !changed && t->writes && c->write_err && c->write_err->code != ST_OK) {
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
    uint32_t db = call_db(c);
    for (size_t i = 0; i < t->nwatches; i++)
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

/* Inside EXEC nothing is watched any more. */
static enum status unwatch(struct call *c)
{
    if (c->session->txn && !txn_running(c->session))
        txn_end(c->session);
    reply_ok(c->reply);
    return ST_OK;
}

/* clang-format off */
#define TXN_FLAGS (CMD_NOSCRIPT | CMD_LOADING | CMD_STALE)
const struct command txn_commands[] = {
    {
        .name = "multi", .fn = multi, .arity = 1, .flags = TXN_FLAGS | CMD_FAST | CMD_ALLOW_BUSY,
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
        .name = "discard", .fn = discard, .arity = 1, .flags = TXN_FLAGS | CMD_FAST | CMD_ALLOW_BUSY,
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
        .name = "unwatch", .fn = unwatch, .arity = 1, .flags = TXN_FLAGS | CMD_FAST | CMD_ALLOW_BUSY,
        .categories = CAT_FAST | CAT_TRANSACTION,
        .summary = "Forgets what was watched.", .since = "2.2.0", .group = "transactions", .complexity = "O(1)",
    },
    {.name = NULL},
};
/* clang-format on */
