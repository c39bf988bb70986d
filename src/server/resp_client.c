/* Clients that speak the Redis protocol. */
#include "server/protocol.h"

#include <limits.h>

#include "base/log.h"
#include "engine/engine.h"
#include "exec/auth.h"
#include "exec/command.h"
#include "exec/declare.h"
#include "exec/txn.h"
#include "server/worker_internal.h"

#define MAX_INLINE ((uint64_t)64 << 10)
#define AHEAD_ARGS 512 /* from so many on, what they name is read while others come */

static const char full[] = "-ERR max number of clients reached\r\n";

static const char denied[] =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set "
    "for the default user. In this mode connections are only accepted from the loopback interface. If "
    "you want to connect from external computers to Redis you may adopt one of the following solutions: "
    "1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback "
    "interface by connecting to Redis from the same host the server is running, however MAKE SURE Redis "
    "is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change "
    "permanent. 2) Alternatively you can just disable the protected mode by editing the Redis "
    "configuration file, and setting the protected mode option to 'no', and then restarting the server. "
    "3) If you started the server manually just for testing, restart it with the '--protected-mode no' "
    "option. 4) Setup a an authentication password for the default user. NOTE: You only need to do one "
    "of the above things in order for the server to start accepting connections from the outside.\r\n";

static void open_resp(struct client *c)
{
    resp_init(&c->parser);
    resp_reply_init(&c->reply, &c->out, c->session.state.resp);
}

static void release(struct client *c)
{
    resp_release(&c->parser);
}

static enum parse_result parse(struct client *c, struct arena *arena, struct batch_call *ret)
{
    const struct config *config = worker_config(c->worker);
    struct resp_limits limits = {
        .max_bulk = config->proto_max_bulk_len,
        .max_args = INT_MAX,
        .max_inline = MAX_INLINE,
        .unauthenticated = !auth_is_known(&c->session),
    };
    struct slice data = slice_of(c->in.p + c->parsed, c->in.len - c->parsed);
    size_t used;
    switch (resp_parse(&c->parser, data, &limits, arena, &ret->argv, &ret->argc, &used)) {
    case RESP_MORE:
        return PARSE_MORE;
    case RESP_ERROR:
        ret->argc = 0;
        return PARSE_BROKEN;
    case RESP_COMMAND:
        break;
    }
    c->parsed += used;
    if (ret->argc == 0)
        return PARSE_EMPTY;
    ret->cmd = command_find(ret->argv[0]);
    ret->alone = ret->cmd && (ret->cmd->flags & CMD_ALONE);
    return PARSE_CALL;
}

static void parse_again(struct client *c)
{
    resp_reset(&c->parser);
}

/* Where the rows stand that a command of argc arguments names. False: elsewhere, or it names few. */
static bool names_of(const struct command *cmd, int64_t argc, bool *ret_keys, size_t *ret_first,
                     size_t *ret_step)
{
    const struct key_spec *spec = &cmd->keys[0];
    *ret_keys = spec->flags && spec->last == -1 && !spec->keyword && !spec->keynum && !spec->unknown;
    if (*ret_keys) {
        *ret_first = (size_t)spec->index;
        *ret_step = (size_t)spec->step;
        return true;
    }
    if (!cmd->names.step || spec->index != 1)
        return false;
    size_t last = (size_t)argc - 1 - cmd->names.behind; /* options may stand before the first one */
    *ret_step = cmd->names.step;
    *ret_first = cmd->names.first + (last - cmd->names.first) % *ret_step;
    return true;
}

static bool ahead(struct client *c, struct arena *arena, size_t max, struct engine_ahead *ret)
{
    struct resp_parser *p = &c->parser;
    const char *data = c->in.p + c->parsed;
    int64_t argc = resp_coming(p);
    size_t first, step, n = 0;
    bool keys;
    if (argc < AHEAD_ARGS || p->nspans < AHEAD_ARGS || p->looked == p->nspans)
        return false;
    const struct command *cmd = command_find(resp_arg(p, data, 0));
    if (!cmd || !names_of(cmd, argc, &keys, &first, &step)) {
        p->looked = p->nspans;
        return false;
    }
    struct slice *names = arena_alloc(arena, max * sizeof *names);
    size_t i = p->looked > first ? first + (p->looked - first + step - 1) / step * step : first;
    for (; i < p->nspans && n < max; i += step)
        names[n++] = resp_arg(p, data, i);
    p->looked = i < p->nspans ? i : p->nspans;
    *ret = (struct engine_ahead){.db = c->session.state.db,
                                 .names = names,
                                 .n = n,
                                 .all = (size_t)argc / step,
                                 .writes = cmd->flags & CMD_WRITE};
    if (!keys)
        ret->key = resp_arg(p, data, 1);
    return n > 0;
}

static size_t wanted(const struct client *c)
{
    return c->parser.want;
}

static bool may_write(const struct batch_call *call)
{
    return command_may_write(&call->client->session, call->cmd, call->argv, call->argc);
}

static bool is_http(struct slice name);

/* What ends the connection at once cannot be taken back either. */
static bool goes_outside(const struct batch_call *call)
{
    if (!call->cmd)
        return call->argc && is_http(call->argv[0]);
    return command_goes_outside(&call->client->session, call->cmd, call->argv, call->argc);
}

static bool stops_workers(const struct batch_call *call)
{
    return command_stops_workers(&call->client->session, call->cmd, call->argv, call->argc);
}

/* Commands about the connection (PING) are answered while the database is away. */
static bool needs_database(const struct batch_call *call)
{
    const struct command *cmd = call->cmd;
    return cmd && (cmd->subs || !(cmd->categories & CAT_CONNECTION));
}

static struct reads reads(const struct batch_call *call)
{
    return reads_of(&call->client->session, call->cmd, call->argv, call->argc);
}

static size_t declare(const struct batch_call *call)
{
    const struct client *c = call->client;
    if (!call->cmd || !call->argc)
        return 0;
    return declare_call(c->session.executor, &c->session, call->cmd, call->argv, call->argc);
}

/* A web page that makes its visitor's browser talk to us sends these; the connection ends before the
   request's body is taken for commands. */
static bool is_http(struct slice name)
{
    return slice_is(name, "post") || slice_is(name, "host:");
}

static struct command_result run_unknown(const struct batch_call *call, const struct error *write_err)
{
    struct command_result result = {0};
    struct client *c = call->client;
    struct worker *w = c->worker;
    if (call->argc == 0) {
        if (c->session.state.reply_mode == SESSION_REPLY_ON)
            reply_error(&c->reply.base, c->parser.error);
        executor_note_error(&w->executor, "ERR");
        books_count(&w->executor.books, BOOKS_CLOSED, CLOSED_PROTOCOL);
        client_drain(c);
    } else if (is_http(call->argv[0])) {
        if (worker_may_warn(w, &w->http_warned_us))
            log_warning("a client speaks HTTP, perhaps made to by a web page; closing", "addr=%s",
                        c->session.addr);
        w->executor.stats.closed[CLOSED_PROTOCOL]++;
        client_kill(c);
    } else {
        result =
            command_run(&w->executor, &c->session, NULL, call->argv, call->argc, &c->reply.base, write_err);
    }
    return result;
}

/* Another database has been chosen: by EXEC, whose answer's shape is the one that it left, plus 1; or by the
   client's own word. */
static void note_database(struct client *c, const struct command *cmd, uint32_t db)
{
    c->run.exec_chose = txn_is_exec(cmd);
    c->run.shape = c->run.exec_chose ? db + 1 : 0;
}

static struct command_result run(const struct batch_call *call, const struct error *write_err)
{
    struct client *c = call->client;
    struct worker *w = c->worker;
    c->reply.base.resp = c->session.state.resp;
    c->run.shape = 0;
    if (!call->cmd)
        return run_unknown(call, write_err);
    uint32_t db = c->session.state.db;
    struct command_result result =
        command_run(&w->executor, &c->session, call->cmd, call->argv, call->argc, &c->reply.base, write_err);
    if (c->session.state.db != db)
        note_database(c, call->cmd, db);
    return result;
}

static struct command_result run_busy(const struct batch_call *call, const char *refusal)
{
    struct client *c = call->client;
    c->reply.base.resp = c->session.state.resp;
    c->run.shape = 0;
    if (!call->cmd && (call->argc == 0 || is_http(call->argv[0])))
        return run_unknown(call, NULL);
    return command_run_busy(&c->worker->executor, &c->session, call->cmd, call->argv, call->argc,
                            &c->reply.base, refusal);
}

/* A SELECT in the queue of EXEC is undone with it when its commit fails, unless the client has chosen another
   database since. */
static void fail(struct client *c, uint32_t n, uint32_t left, const struct error *err, struct buf *out)
{
    struct resp_reply sink;
    if (left && c->run.exec_chose) {
        c->session.state.db = left - 1;
        c->run.exec_chose = false;
    }
    resp_reply_init(&sink, out, c->session.state.resp);
    for (uint32_t i = 0; i < n; i++) {
        reply_status(&sink.base, err->code, err);
        executor_note_error(c->session.executor, sink.base.code);
    }
}

static bool tick(struct client *c, int64_t now_us)
{
    (void)c, (void)now_us;
    return true;
}

static size_t memory(const struct client *c)
{
    return c->parser.cap * sizeof *c->parser.spans;
}

const struct protocol resp_protocol = {
    .full = {full, sizeof full - 1},
    .denied = {denied, sizeof denied - 1},
    .open = open_resp,
    .release = release,
    .parse = parse,
    .parse_again = parse_again,
    .wanted = wanted,
    .ahead = ahead,
    .may_write = may_write,
    .goes_outside = goes_outside,
    .stops_workers = stops_workers,
    .needs_database = needs_database,
    .reads = reads,
    .declare = declare,
    .run = run,
    .run_busy = run_busy,
    .fail = fail,
    .tick = tick,
    .memory = memory,
};
