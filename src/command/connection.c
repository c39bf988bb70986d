/* Commands about the connection itself: greeting, password, database, farewell. */
#include "command/families.h"

#include <limits.h>

#include "base/num.h"
#include "engine/view.h"
#include "exec/args.h"
#include "exec/auth.h"
#include "exec/executor.h"
#include "exec/session.h"

static const char ERR_BAD_NAME[] = "ERR Client names cannot contain spaces, newlines or special characters.";
static const char ERR_WRONGPASS[] = "WRONGPASS invalid username-password pair or user is disabled.";

static enum status ping(struct call *c)
{
    if (c->argc > 2)
        reply_wrong_arity(c);
    else if (c->argc == 2)
        reply_bulk(c->reply, c->argv[1]);
    else
        reply_simple(c->reply, "PONG");
    return ST_OK;
}

static enum status echo(struct call *c)
{
    reply_bulk(c->reply, c->argv[1]);
    return ST_OK;
}

/* ---- authentication ---- */

static bool authenticate(struct call *c, struct slice user, struct slice password)
{
    bool known = auth_login(c->session, user, password);
    if (!known)
        reply_error(c->reply, ERR_WRONGPASS);
    return known;
}

static enum status auth(struct call *c)
{
    struct slice user = c->argc == 3 ? c->argv[1] : SLICE("default");
    if (c->argc > 3) {
        reply_error(c->reply, ERR_SYNTAX);
    } else if (c->argc == 2 && auth_is_open(c->executor->config)) {
        reply_error(c->reply, "ERR AUTH <password> called without any password configured for the default "
                              "user. Are you sure your configuration is correct?");
    } else if (authenticate(c, user, c->argv[c->argc - 1])) {
        reply_ok(c->reply);
    }
    return ST_OK;
}

/* ---- HELLO ---- */

/* HELLO [version [AUTH user password] [SETNAME name]]. Options count as they are read, even when one behind
   them is wrong: Redis does it so. *ret_resp is 0 when no version was given. */
static bool parse_hello(struct call *c, int *ret_resp)
{
    int64_t version;
    *ret_resp = 0;
    if (c->argc < 2)
        return true;
    if (!arg_i64(c, 1, &version, "ERR Protocol version is not an integer or out of range"))
        return false;
    if (version < 2 || version > 3) {
        reply_error(c->reply, "NOPROTO unsupported protocol version");
        return false;
    }
    *ret_resp = (int)version;
    for (int i = 2; i < c->argc; i++) {
        int more = c->argc - 1 - i;
        if (slice_is(c->argv[i], "auth") && more >= 2) {
            if (!authenticate(c, c->argv[i + 1], c->argv[i + 2]))
                return false;
            i += 2;
        } else if (slice_is(c->argv[i], "setname") && more >= 1) {
            if (!session_name_valid(c->argv[++i])) {
                reply_error(c->reply, ERR_BAD_NAME);
                return false;
            }
            session_set_text(c->session, SESSION_NAME, c->argv[i]);
        } else {
            reply_errorf(c->reply, "ERR Syntax error in HELLO option '%.*s'",
                         (int)strnlen(c->argv[i].p, c->argv[i].n), c->argv[i].p);
            return false;
        }
    }
    return true;
}

/* Answers in the protocol that was asked for. Clients check that the server calls itself "redis", and which
   version's commands they may use. */
static void reply_greeting(struct call *c)
{
    struct reply *r = c->reply;
    reply_map(r, 7);
    reply_bulk_str(r, "server");
    reply_bulk_str(r, "redis");
    reply_bulk_str(r, "version");
    reply_bulk_str(r, REDIS_VERSION);
    reply_bulk_str(r, "proto");
    reply_integer(r, c->session->state.resp);
    reply_bulk_str(r, "id");
    reply_integer(r, (int64_t)c->session->id);
    reply_bulk_str(r, "mode");
    reply_bulk_str(r, "standalone");
    reply_bulk_str(r, "role");
    reply_bulk_str(r, executor_only_reads(c->executor) ? "replica" : "master");
    reply_bulk_str(r, "modules");
    reply_array(r, 0);
}

static enum status hello(struct call *c)
{
    int resp;
    if (!parse_hello(c, &resp))
        return ST_OK;
    if (!auth_is_known(c->session)) {
        reply_error(c->reply,
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
                    "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
                    "protocol version at the same time");
        return ST_OK;
    }
    if (resp)
        c->session->state.resp = c->reply->resp = resp;
    reply_greeting(c);
    return ST_OK;
}

/* ---- state ---- */

static enum status select_db(struct call *c)
{
    int64_t db;
    if (!arg_range(c, 1, INT_MIN, INT_MAX, &db, NULL))
        return ST_OK;
    if (db < 0 || db >= (int64_t)view_databases(c->view)) {
        reply_error(c->reply, "ERR DB index is out of range");
    } else {
        c->session->state.db = (uint32_t)db;
        reply_ok(c->reply);
    }
    return ST_OK;
}

static enum status reset(struct call *c)
{
    if (c->session->state.monitor) {
        executor_set_monitor(c->executor, c->session, false);
    }
    session_reset(c->session, auth_is_open(c->executor->config));
    c->reply->resp = c->session->state.resp;
    reply_simple(c->reply, "RESET");
    return ST_OK;
}

static enum status quit(struct call *c)
{
    reply_ok(c->reply);
    c->session->ops->close(c->session, true);
    return ST_OK;
}

#define HANDSHAKE                                                                                            \
    (CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_FAST | CMD_NO_AUTH | CMD_ALLOW_BUSY | CMD_SESSION)

/* clang-format off */
const struct command connection_commands[] = {
    {
        .name = "ping", .fn = ping, .arity = -1, .flags = CMD_FAST | CMD_SESSION, .categories = CAT_FAST | CAT_CONNECTION,
        .summary = "Answers PONG, or the given message.", .since = "1.0.0", .group = "connection",
        .complexity = "O(1)", .tips = {"request_policy:all_shards", "response_policy:all_succeeded"},
    },
    {
        .name = "echo", .fn = echo, .arity = 2, .flags = CMD_LOADING | CMD_STALE | CMD_FAST | CMD_SESSION,
        .categories = CAT_FAST | CAT_CONNECTION, .summary = "Answers the given message.", .since = "1.0.0",
        .group = "connection", .complexity = "O(1)",
    },
    {
        .name = "hello", .fn = hello, .arity = -1, .flags = HANDSHAKE, .categories = CAT_FAST | CAT_CONNECTION,
        .summary = "Chooses the protocol, and with it authenticates and names the connection.",
        .since = "6.0.0", .group = "connection", .complexity = "O(1)",
    },
    {
        .name = "auth", .fn = auth, .arity = -2, .flags = HANDSHAKE, .categories = CAT_FAST | CAT_CONNECTION,
        .summary = "Authenticates the connection.", .since = "1.0.0", .group = "connection",
        .complexity = "O(1)",
    },
    {
        .name = "select", .fn = select_db, .arity = 2, .flags = CMD_LOADING | CMD_STALE | CMD_FAST | CMD_SESSION,
        .categories = CAT_FAST | CAT_CONNECTION, .summary = "Chooses the connection's database.",
        .since = "1.0.0", .group = "connection", .complexity = "O(1)",
    },
    {
        .name = "quit", .fn = quit, .arity = -1, .flags = HANDSHAKE, .categories = CAT_FAST | CAT_CONNECTION,
        .summary = "Closes the connection once everything has been answered.", .since = "1.0.0",
        .group = "connection", .complexity = "O(1)",
    },
    {
        .name = "reset", .fn = reset, .arity = 1, .flags = HANDSHAKE, .categories = CAT_FAST | CAT_CONNECTION,
        .summary = "Brings the connection back to the state of a new one.", .since = "6.2.0",
        .group = "connection", .complexity = "O(1)",
    },
    {.name = NULL},
};
/* clang-format on */
