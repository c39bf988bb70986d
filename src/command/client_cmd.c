/* CLIENT: who is connected, how they are called, and what may be done to them. */
#include "command/families.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "exec/args.h"
#include "exec/block.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "exec/txn.h"

/* ---- CLIENT LIST and INFO ---- */

static void describe_flags(const struct session *s, char out[8])
{
    size_t n = 0;
    if (s->state.monitor)
        out[n++] = 'O';
    if (s->state.blocked)
        out[n++] = 'b';
    if (txn_open(s))
        out[n++] = 'x';
    if (s->unix_socket)
        out[n++] = 'U';
    if (s->state.no_evict)
        out[n++] = 'e';
    if (n == 0)
        out[n++] = 'N';
    out[n] = '\0';
}

/* One line for one client: Redis' fields in Redis' order, those of features that there are none of here with
   the value that says so. */
static void describe(const struct session *s, int64_t now_us, struct buf *out)
{
    struct session_usage u = {.events = "r"};
    char flags[8], name[COMMAND_NAME_CHARS] = "NULL";
    s->ops->usage(s, &u);
    describe_flags(s, flags);
    if (s->state.last)
        command_full_name(s->state.last, name);
    buf_addf(out, "id=%llu addr=%s laddr=%s fd=%d name=%s age=%lld idle=%lld flags=%s db=%u",
             (unsigned long long)s->id, s->addr, s->laddr, s->fd, session_text(s, SESSION_NAME),
             (long long)((now_us - s->created_us) / 1000000), (long long)((now_us - s->active_us) / 1000000),
             flags, s->state.db);
    buf_addf(out, " sub=0 psub=0 ssub=0 multi=%d qbuf=%zu qbuf-free=%zu argv-mem=0 multi-mem=0",
             txn_length(s), u.query_buffer, u.query_buffer_free);
    buf_addf(out, " rbs=%zu rbp=%zu obl=%zu oll=0 omem=0 tot-mem=%zu events=%s cmd=%s user=default redir=-1",
             u.output_buffer, u.output_buffer, u.output_buffer, u.total, u.events, name);
    buf_addf(out, " resp=%d lib-name=%s lib-ver=%s\n", s->state.resp, session_text(s, SESSION_LIB_NAME),
             session_text(s, SESSION_LIB_VER));
}

enum client_type { TYPE_NORMAL, TYPE_MASTER, TYPE_REPLICA, TYPE_PUBSUB };

static bool parse_type(struct call *c, int i, enum client_type *ret)
{
    static const struct {
        const char *word;
        enum client_type type;
    } types[] = {{"normal", TYPE_NORMAL},
                 {"slave", TYPE_REPLICA},
                 {"replica", TYPE_REPLICA},
                 {"pubsub", TYPE_PUBSUB},
                 {"master", TYPE_MASTER}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        if (slice_is(c->argv[i], types[t].word)) {
            *ret = types[t].type;
            return true;
        }
    }
    reply_errorf(c->reply, "ERR Unknown client type '%.*s'", (int)c->argv[i].n, c->argv[i].p);
    return false;
}

/* CLIENT LIST ID id...: false when one of them is no number. */
static bool list_by_id(struct call *c, int64_t now, struct buf *out)
{
    for (int i = 3; i < c->argc; i++) {
        int64_t id;
        if (!arg_i64(c, i, &id, "ERR Invalid client ID"))
            return false;
        const struct session *s = server_find_session(c->executor->server, (uint64_t)id);
        if (s)
            describe(s, now, out);
    }
    return true;
}

static enum status client_list(struct call *c)
{
    struct buf out = {0};
    int64_t now = clock_mono_us();
    enum client_type type = TYPE_NORMAL;
    bool valid = true;
    if (c->argc == 4 && slice_is(c->argv[2], "type")) {
        valid = parse_type(c, 3, &type);
    } else if (c->argc > 3 && slice_is(c->argv[2], "id")) {
        valid = list_by_id(c, now, &out);
    } else if (c->argc != 2) {
        reply_error(c->reply, ERR_SYNTAX);
        valid = false;
    }
    bool all = c->argc == 2 || slice_is(c->argv[2], "type");
    size_t n = 0;
    struct session **sessions =
        all && type == TYPE_NORMAL ? server_list_sessions(c->executor->server, c->arena, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        describe(sessions[i], now, &out);
    if (valid)
        c->reply->ops->verbatim(c->reply, "txt", buf_slice(&out));
    buf_release(&out);
    return ST_OK;
}

static enum status client_info(struct call *c)
{
    struct buf out = {0};
    describe(c->session, clock_mono_us(), &out);
    c->reply->ops->verbatim(c->reply, "txt", buf_slice(&out));
    buf_release(&out);
    return ST_OK;
}

/* ---- names ---- */

static enum status client_id(struct call *c)
{
    reply_integer(c->reply, (int64_t)c->session->id);
    return ST_OK;
}

static enum status client_getname(struct call *c)
{
    const char *name = session_text(c->session, SESSION_NAME);
    if (name[0])
        reply_bulk_str(c->reply, name);
    else
        reply_null(c->reply);
    return ST_OK;
}

static enum status client_setname(struct call *c)
{
    if (!session_name_valid(c->argv[2])) {
        reply_error(c->reply, "ERR Client names cannot contain spaces, newlines or special characters.");
        return ST_OK;
    }
    session_set_text(c->session, SESSION_NAME, c->argv[2]);
    reply_ok(c->reply);
    return ST_OK;
}

/* From Redis 7.2: client libraries send it on connecting. */
static enum status client_setinfo(struct call *c)
{
    bool name = slice_is(c->argv[2], "lib-name");
    if (!name && !slice_is(c->argv[2], "lib-ver")) {
        reply_errorf(c->reply, "ERR Unrecognized option '%.*s'", (int)c->argv[2].n, c->argv[2].p);
        return ST_OK;
    }
    if (!session_name_valid(c->argv[3])) {
        reply_errorf(c->reply, "ERR %s cannot contain spaces, newlines or special characters.",
                     name ? "lib-name" : "lib-ver");
        return ST_OK;
    }
    session_set_text(c->session, name ? SESSION_LIB_NAME : SESSION_LIB_VER, c->argv[3]);
    reply_ok(c->reply);
    return ST_OK;
}

/* ---- CLIENT KILL ---- */

struct kill_filter {
    int64_t id; /* 0: any */
    struct slice addr, laddr;
    bool has_addr, has_laddr;
    bool has_type;
    enum client_type type;
    bool skip_me;
};

static bool parse_kill(struct call *c, struct kill_filter *f)
{
    *f = (struct kill_filter){.skip_me = true};
    for (int i = 2; i < c->argc; i += 2) {
        struct slice option = c->argv[i];
        bool more = i + 1 < c->argc;
        if (slice_is(option, "id") && more) {
            if (!arg_range(c, i + 1, 1, INT64_MAX, &f->id, "ERR client-id should be greater than 0"))
                return false;
        } else if (slice_is(option, "type") && more) {
            f->has_type = true;
            if (!parse_type(c, i + 1, &f->type))
                return false;
        } else if (slice_is(option, "addr") && more) {
            f->has_addr = true;
            f->addr = c->argv[i + 1];
        } else if (slice_is(option, "laddr") && more) {
            f->has_laddr = true;
            f->laddr = c->argv[i + 1];
        } else if (slice_is(option, "user") && more) {
            if (!slice_eq(c->argv[i + 1], SLICE("default"))) {
                reply_errorf(c->reply, "ERR No such user '%.*s'", (int)c->argv[i + 1].n, c->argv[i + 1].p);
                return false;
            }
        } else if (slice_is(option, "skipme") && more &&
                   (slice_is(c->argv[i + 1], "yes") || slice_is(c->argv[i + 1], "no"))) {
            f->skip_me = slice_is(c->argv[i + 1], "yes");
        } else {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    return true;
}

static bool kill_matches(const struct kill_filter *f, const struct call *c, const struct session *s)
{
    if (f->id && s->id != (uint64_t)f->id)
        return false;
    if (f->has_addr && !slice_eq(f->addr, slice_str(s->addr)))
        return false;
    if (f->has_laddr && !slice_eq(f->laddr, slice_str(s->laddr)))
        return false;
    if (f->has_type && f->type != TYPE_NORMAL)
        return false;
    return !(f->skip_me && s == c->session);
}

static enum status client_kill(struct call *c)
{
    struct kill_filter f;
    bool old_form = c->argc == 3; /* CLIENT KILL addr:port, which may be one's own */
    if (old_form)
        f = (struct kill_filter){.addr = c->argv[2], .has_addr = true};
    else if (!parse_kill(c, &f))
        return ST_OK;

    int64_t killed = 0;
    bool me = false;
    size_t n;
    struct session **sessions = server_list_sessions(c->executor->server, c->arena, &n);
    for (size_t i = 0; i < n; i++) {
        struct session *s = sessions[i];
        if (!kill_matches(&f, c, s))
            continue;
        killed++;
        c->executor->stats.closed[CLOSED_KILLED]++;
        if (s == c->session)
            me = true;
        else
            s->ops->close(s, false);
    }
    if (!old_form)
        reply_integer(c->reply, killed);
    else if (killed)
        reply_ok(c->reply);
    else
        reply_error(c->reply, "ERR No such client");
    if (me)
        c->session->ops->close(c->session, true);
    return ST_OK;
}

/* ---- pause, silence, eviction ---- */

static enum status client_pause(struct call *c)
{
    int64_t ms;
    enum pause_mode mode = PAUSE_ALL;
    if (c->argc > 4) {
        reply_unknown_sub(c);
        return ST_OK;
    }
    if (c->argc == 4 && slice_is(c->argv[3], "write")) {
        mode = PAUSE_WRITE;
    } else if (c->argc == 4 && !slice_is(c->argv[3], "all")) {
        reply_error(c->reply, "ERR CLIENT PAUSE mode must be WRITE or ALL");
        return ST_OK;
    }
    if (!arg_i64(c, 2, &ms, "ERR timeout is not an integer or out of range"))
        return ST_OK;
    if (ms < 0) {
        reply_error(c->reply, "ERR timeout is negative");
        return ST_OK;
    }
    int64_t now = clock_mono_us();
    if (ms > (INT64_MAX - now) / 1000) {
        reply_error(c->reply, "ERR timeout is out of range");
        return ST_OK;
    }
    for (uint32_t i = 0; i < c->executor->server->nexecutors; i++)
        executor_pause(c->executor->server->executors[i], mode, now, now + ms * 1000);
    reply_ok(c->reply);
    return ST_OK;
}

static enum status client_unpause(struct call *c)
{
    for (uint32_t i = 0; i < c->executor->server->nexecutors; i++) {
        struct executor *s = c->executor->server->executors[i];
        s->pause = PAUSE_NONE;
        s->pause_until_us = 0;
    }
    reply_ok(c->reply);
    return ST_OK;
}

static enum status client_reply(struct call *c)
{
    struct session *s = c->session;
    if (slice_is(c->argv[2], "on")) {
        s->state.reply_mode = SESSION_REPLY_ON;
        reply_ok(c->reply);
    } else if (slice_is(c->argv[2], "off")) {
        s->state.reply_mode = SESSION_REPLY_OFF;
    } else if (slice_is(c->argv[2], "skip")) {
        if (s->state.reply_mode != SESSION_REPLY_OFF)
            s->state.reply_mode = SESSION_REPLY_SKIP_NEXT;
    } else {
        reply_error(c->reply, ERR_SYNTAX);
    }
    return ST_OK;
}

static enum status client_no_evict(struct call *c)
{
    if (slice_is(c->argv[2], "on")) {
        c->session->state.no_evict = true;
    } else if (slice_is(c->argv[2], "off")) {
        c->session->state.no_evict = false;
    } else {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    reply_ok(c->reply);
    return ST_OK;
}

/* ---- what there is none of ---- */

static enum status client_unblock(struct call *c)
{
    int64_t id;
    if (c->argc > 4) {
        reply_unknown_sub(c);
        return ST_OK;
    }
    if (c->argc == 4 && !slice_is(c->argv[3], "timeout") && !slice_is(c->argv[3], "error")) {
        reply_error(c->reply, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        return ST_OK;
    }
    if (!arg_i64(c, 2, &id, NULL))
        return ST_OK;
    struct session *s = server_find_session(c->executor->server, (uint64_t)id);
    bool blocked = s && s->state.blocked;
    if (blocked)
        block_give_up(s->executor, s, c->argc == 4 && slice_is(c->argv[3], "error"));
    reply_integer(c->reply, blocked);
    return ST_OK;
}

/* No client is ever tracking keys. */
static enum status client_getredir(struct call *c)
{
    reply_integer(c->reply, -1);
    return ST_OK;
}

static enum status client_trackinginfo(struct call *c)
{
    struct reply *r = c->reply;
    reply_map(r, 3);
    reply_bulk_str(r, "flags");
    reply_set(r, 1);
    reply_bulk_str(r, "off");
    reply_bulk_str(r, "redirect");
    reply_integer(r, -1);
    reply_bulk_str(r, "prefixes");
    reply_array(r, 0);
    return ST_OK;
}

static enum status client_help(struct call *c)
{
    static const char *const lines[] = {
        "GETNAME",
        "    Return the name of the current connection.",
        "GETREDIR",
        "    Return -1: there is no tracking to redirect.",
        "ID",
        "    Return the ID of the current connection.",
        "INFO",
        "    Return information about the current client connection.",
        "KILL <ip:port>",
        "    Kill the connection made from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Kill the connections that all options fit. Options are:",
        "    * ADDR (<ip:port>|<unixsocket>:0)",
        "      Made from this address.",
        "    * ID <client-id>",
        "      With this ID.",
        "    * LADDR (<ip:port>|<unixsocket>:0)",
        "      Made to this local address.",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      Of this type.",
        "    * USER <username>",
        "      Authenticated as <username>.",
        "    * SKIPME (YES|NO)",
        "      Spare the current connection (default: yes).",
        "LIST [options ...]",
        "    Return information about client connections. Options:",
        "    * ID <client-id> [<client-id> ...]",
        "      Return clients with these IDs.",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      Return clients of this type.",
        "NO-EVICT (ON|OFF)",
        "    Protect the current connection from eviction.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Suspend all, or just writing, clients for <timeout> milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Control the replies sent to the current connection.",
        "SETINFO (LIB-NAME|LIB-VER) <value>",
        "    Note the name or version of the client's library.",
        "SETNAME <name>",
        "    Assign the name <name> to the current connection.",
        "TRACKINGINFO",
        "    Report that the current connection tracks no keys.",
        "UNBLOCK <clientid> [TIMEOUT|ERROR]",
        "    Unblock a client that waits in a blocking command.",
        "UNPAUSE",
        "    Stop the current client pause, resuming traffic.",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

#define OPEN  (CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_SESSION)
#define ADMIN (CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_SESSION)

#define CLIENT_SUB(NAME, FN, ARITY, FLAGS, SINCE, SUMMARY, ...)                                              \
    {                                                                                                        \
        .name = NAME, .fn = FN, .arity = ARITY, .flags = FLAGS,                                              \
        .categories =                                                                                        \
            CAT_SLOW | CAT_CONNECTION | ((FLAGS)&CMD_ADMIN ? (uint32_t)(CAT_ADMIN | CAT_DANGEROUS) : 0),     \
        .summary = SUMMARY, .since = SINCE, .group = "connection", __VA_ARGS__                               \
    }

/* clang-format off */
static const struct command subcommands[] = {
    CLIENT_SUB("getname", client_getname, 2, OPEN, "2.6.9", "Tells the connection's name.",
               .complexity = "O(1)"),
    CLIENT_SUB("getredir", client_getredir, 2, OPEN, "6.0.0", "Tells that invalidations go nowhere else.",
               .complexity = "O(1)"),
    CLIENT_SUB("help", client_help, 2, CMD_LOADING | CMD_STALE, "5.0.0", "Lists the subcommands.",
               .complexity = "O(1)"),
    CLIENT_SUB("id", client_id, 2, OPEN, "5.0.0", "Tells the connection's number.", .complexity = "O(1)"),
    CLIENT_SUB("info", client_info, 2, OPEN, "6.2.0", "Describes the connection.", .complexity = "O(1)",
               .tips = {"nondeterministic_output"}),
    CLIENT_SUB("kill", client_kill, -3, ADMIN | CMD_STOPS_WORKERS, "2.4.0", "Closes connections.",
               .complexity = "O(N) for N connections"),
    CLIENT_SUB("list", client_list, -2, ADMIN | CMD_STOPS_WORKERS, "2.4.0", "Describes every connection.",
               .complexity = "O(N) for N connections", .tips = {"nondeterministic_output"}),
    CLIENT_SUB("no-evict", client_no_evict, 3, ADMIN, "7.0.0",
               "Marks the connection as one that is not evicted; none is.", .complexity = "O(1)"),
    CLIENT_SUB("pause", client_pause, -3, ADMIN | CMD_STOPS_WORKERS, "2.9.50", "Lets all commands, or just writes, wait for a while.",
               .complexity = "O(1)"),
    CLIENT_SUB("reply", client_reply, 3, OPEN, "3.2.0", "Turns replies to this connection on or off.",
               .complexity = "O(1)"),
    CLIENT_SUB("setinfo", client_setinfo, 4, OPEN, "7.2.0", "Notes the client library's name or version.",
               .complexity = "O(1)"),
    CLIENT_SUB("setname", client_setname, 3, OPEN, "2.6.9", "Names the connection.", .complexity = "O(1)"),
    CLIENT_SUB("trackinginfo", client_trackinginfo, 2, OPEN, "6.2.0", "Tells that no keys are tracked.",
               .complexity = "O(1)"),
    CLIENT_SUB("unblock", client_unblock, -3, ADMIN | CMD_STOPS_WORKERS, "5.0.0", "Ends a client's wait in a blocking command.",
               .complexity = "O(1)"),
    CLIENT_SUB("unpause", client_unpause, 2, ADMIN | CMD_STOPS_WORKERS, "6.2.0", "Ends a pause.", .complexity = "O(1)"),
    {.name = NULL},
};

const struct command client_commands[] = {
    {
        .name = "client", .arity = -2, .flags = CMD_STOPS_WORKERS, .categories = CAT_SLOW, .since = "2.4.0", .group = "connection",
        .summary = "Commands about client connections.", .complexity = "Depends on the subcommand.",
        .subs = subcommands,
    },
    {.name = NULL},
};
/* clang-format on */
