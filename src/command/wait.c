/* WAIT and WAITAOF: how many replicas have replayed what a client has written, and whether it is durable
   here.

   Neither touches a row. Both are in a transaction of their own, so that what the client has written before
   is committed, and behind it ask the database where that is in its log, unless that is known: a round trip.
   A replica counts when it has told a position at or behind that one: what is replayed there is what its
   snapshots show. A client that waits blocks as in BLPOP; a crash while it waits leaves nothing. Expired keys
   and large values make no difference. */
#include "command/families.h"

#include "exec/args.h"
#include "exec/block.h"
#include "exec/executor.h"
#include "exec/reads.h"
#include "exec/session.h"
#include "exec/txn.h"
#include "replica/replicas.h"

/* How many replicas have replayed what this client has written: those that have told a position at or behind
   it. Inside of EXEC that is what it had written before. */
static uint32_t replayed(const struct executor *s, const struct session *c)
{
    struct replicas *r = s->server->replicas;
    if (!r || c->state.unplaced)
        return 0;
    return replicas_reached(r, &c->state.position);
}

/* Whether the client may wait for replicas at all. Without replicas none will ever come. */
static bool may_wait(const struct call *c)
{
    return c->executor->server->replicas && !txn_running(c->session) && !c->session->no_block;
}

/* Learns where this client's writes are. Inside EXEC, that would be asked for behind writes that are not
   committed. What a failover has lost no replica will ever have. */
static enum status place_writes(struct call *c)
{
    return c->executor->server->replicas && !txn_running(c->session) ? session_placed(c) : ST_OK;
}

static bool read_timeout(struct call *c, int i, int64_t *ret_us)
{
    int64_t ms;
    if (!arg_i64(c, i, &ms, "ERR timeout is not an integer or out of range"))
        return false;
    if (ms < 0) {
        reply_error(c->reply, "ERR timeout is negative");
        return false;
    }
    *ret_us = ms > INT64_MAX / 4000 ? INT64_MAX / 4 : ms * 1000;
    return true;
}

static bool answer_wait(const struct executor *s, const struct session *c, struct reply *reply,
                        const struct block_poll *p, bool last)
{
    uint32_t n = replayed(s, c);
    if ((int64_t)n < p->replicas && !last)
        return false;
    reply_integer(reply, n);
    return true;
}

static enum status wait_command(struct call *c)
{
    struct block_poll p = {.answer = answer_wait};
    int64_t timeout_us;
    if (executor_only_reads(c->executor)) {
        reply_error(
            c->reply,
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "
            "replica is configured to be writable (which is not the default) writes to replicas are just "
            "local and are not propagated.");
        return ST_OK;
    }
    if (!arg_i64(c, 1, &p.replicas, NULL) || !read_timeout(c, 2, &timeout_us))
        return ST_OK;
    enum status st = place_writes(c);
    if (st == ST_OK && !answer_wait(c->executor, c->session, c->reply, &p, !may_wait(c)))
        block_until(c, &p, timeout_us);
    return st;
}

/* What was acknowledged is durable where durability says always; else this command's own sync, behind the
   commit of its transaction, makes it so: `local` says that it was asked for. A sync that fails is counted,
   and its caller's answer is 0. */
static bool answer_waitaof(const struct executor *s, const struct session *c, struct reply *reply,
                           const struct block_poll *p, bool last)
{
    uint32_t n = replayed(s, c);
    if ((int64_t)n < p->replicas && !last)
        return false;
    bool synced = p->local && s->failed_syncs == p->failed_syncs;
    reply_array(reply, 2);
    reply_integer(reply, synced || s->config->durability == DURABILITY_ALWAYS);
    reply_integer(reply, n);
    return true;
}

static enum status waitaof(struct call *c)
{
    struct block_poll p = {.answer = answer_waitaof, .failed_syncs = c->executor->failed_syncs};
    int64_t local, timeout_us;
    if (!arg_range(c, 1, 0, 1, &local, NULL) ||
        !arg_range(c, 2, 0, INT64_MAX, &p.replicas, "ERR value is out of range, must be positive") ||
        !read_timeout(c, 3, &timeout_us))
        return ST_OK;
    if (executor_only_reads(c->executor)) {
        reply_error(c->reply,
                    "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
                    "replicas are just local and are not propagated.");
        return ST_OK;
    }
    enum status st = place_writes(c);
    if (st != ST_OK)
        return st;
    p.local = local && !txn_running(c->session);
    c->result->durable = p.local && c->executor->config->durability != DURABILITY_ALWAYS;
    if (!answer_waitaof(c->executor, c->session, c->reply, &p, !may_wait(c)))
        block_until(c, &p, timeout_us);
    return ST_OK;
}

/* clang-format off */
const struct command wait_commands[] = {
    {
        .name = "wait", .fn = wait_command, .arity = 3, .flags = CMD_NOSCRIPT | CMD_ALONE,
        .categories = CAT_SLOW | CAT_CONNECTION,
        .summary = "Waits until so many replicas have replayed this connection's writes; tells how many have.",
        .since = "3.0.0", .group = "generic", .complexity = "O(N) for N replicas",
        .tips = {"request_policy:all_shards", "response_policy:agg_min"},
    },
    {
        .name = "waitaof", .fn = waitaof, .arity = 4, .flags = CMD_BLOCKING | CMD_ALONE,
        .categories = CAT_SLOW | CAT_BLOCKING | CAT_CONNECTION,
        .summary = "Waits until this connection's writes are durable here, and replayed by so many replicas; tells both.",
        .since = "7.2.0", .group = "generic", .complexity = "O(N) for N replicas, and for N bytes not yet on the disk",
        .tips = {"request_policy:all_shards", "response_policy:agg_min"},
    },
    {.name = NULL},
};
/* clang-format on */
