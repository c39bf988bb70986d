/* Commands about the server as a whole: time, saving, role, shutdown, MONITOR, and a little art. */
#include "command/families.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/rand.h"
#include "exec/args.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "exec/txn.h"
#include "script/running.h"
#include "stats/replication.h"
#include "stats/stats.h"

static enum status time_command(struct call *c)
{
    int64_t now = clock_wall_us();
    reply_array(c->reply, 2);
    reply_bulk_i64(c->reply, now / 1000000);
    reply_bulk_i64(c->reply, now % 1000000);
    return ST_OK;
}

static enum status role(struct call *c)
{
    replication_role(c->executor, c->reply);
    return ST_OK;
}

/* ---- saving ---- */

/* What was acknowledged is in the database already; saving makes it durable now, whatever the durability. The
   worker does that behind this batch's commit, and turns the reply into an error if it fails. */
static void ask_for_sync(struct call *c)
{
    c->result->sync = true;
    c->result->ends = true;
}

static enum status save(struct call *c)
{
    ask_for_sync(c);
    reply_ok(c->reply);
    return ST_OK;
}

static enum status bgsave(struct call *c)
{
    if (c->argc > 2 || (c->argc == 2 && !slice_is(c->argv[1], "schedule"))) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    ask_for_sync(c);
    reply_simple(c->reply, "Background saving started");
    return ST_OK;
}

static enum status lastsave(struct call *c)
{
    reply_integer(c->reply, c->executor->server->last_save_ms / 1000);
    return ST_OK;
}

/* ---- SHUTDOWN ---- */

/* SAVE, NOW and FORCE make no difference here: everything acknowledged is already in the database, and there
   are no replicas to wait for; nor does NOSAVE, but for scripts, which it ends. Without it a busy script goes
   first. ABORT finds nothing to abort, as a shutdown never waits. */
static enum status shutdown_command(struct call *c)
{
    bool save_given = false, nosave = false, abort = false, other = false;
    for (int i = 1; i < c->argc; i++) {
        if (slice_is(c->argv[i], "nosave") && !save_given) {
            nosave = true;
        } else if (slice_is(c->argv[i], "save") && !nosave) {
            save_given = true;
        } else if (slice_is(c->argv[i], "now") || slice_is(c->argv[i], "force")) {
            other = true;
        } else if (slice_is(c->argv[i], "abort")) {
            abort = true;
        } else {
            reply_error(c->reply, ERR_SYNTAX);
            return ST_OK;
        }
    }
    if (abort && (save_given || nosave || other)) {
        reply_error(c->reply, ERR_SYNTAX);
    } else if (abort) {
        reply_error(c->reply, "ERR No shutdown in progress.");
    } else if (!nosave && running_refusal(c->executor->server)) {
        reply_error(c->reply, running_refusal(c->executor->server));
    } else {
        if (nosave)
            running_end_all(c->executor->server);
        c->result->stops = true;
        c->session->ops->close(c->session, true);
    }
    return ST_OK;
}

/* ---- MONITOR ---- */

static enum status monitor(struct call *c)
{
    if (txn_running(c->session)) {
        reply_error(c->reply, "ERR MONITOR isn't allowed for DENY BLOCKING client");
        return ST_OK;
    }
    if (c->session->state.monitor) /* Redis says nothing either */
        return ST_OK;
    stats_post(c->executor); /* what ran before is not for this client */
    executor_set_monitor(c->executor, c->session, true);
    reply_ok(c->reply);
    return ST_OK;
}

/* ---- LOLWUT ---- */

#define SHELVES     3
#define SHELF_WIDTH 60
#define JAR_ROWS    4

/* A jar of `width` columns, from its lid (row 0) down. */
static void draw_jar(char *at, int width, int row, int height, char content, int level)
{
    int top = JAR_ROWS - height;
    if (row < top)
        return;
    at[0] = at[width - 1] = row == top ? '.' : '|';
    for (int i = 1; i < width - 1; i++)
        at[i] = row == top ? '=' : row >= JAR_ROWS - level ? content : row == JAR_ROWS - 1 ? '_' : ' ';
}

/* A larder: shelves of jars, some taller, some fuller. */
static void draw_larder(struct buf *out, struct rand *rnd)
{
    static const char contents[] = "o*#~:%@";
    char rows[JAR_ROWS][SHELF_WIDTH];
    for (int shelf = 0; shelf < SHELVES; shelf++) {
        memset(rows, ' ', sizeof rows);
        for (int x = 1; x < SHELF_WIDTH;) {
            int width = 4 + (int)rand_below(rnd, 5), height = 2 + (int)rand_below(rnd, JAR_ROWS - 1);
            int level = (int)rand_below(rnd, (uint64_t)height);
            char content = contents[rand_below(rnd, sizeof contents - 1)];
            if (x + width >= SHELF_WIDTH)
                break;
            for (int row = 0; row < JAR_ROWS; row++)
                draw_jar(&rows[row][x], width, row, height, content, level);
            x += width + 1 + (int)rand_below(rnd, 3);
        }
        for (int row = 0; row < JAR_ROWS; row++)
            buf_addf(out, " |%.*s|\n", SHELF_WIDTH, rows[row]);
        buf_addf(out, " |%.*s|\n", SHELF_WIDTH,
                 "____________________________________________________________");
    }
}

static enum status lolwut(struct call *c)
{
    int64_t version;
    if (c->argc >= 3 && slice_is(c->argv[1], "version") && !arg_i64(c, 2, &version, NULL))
        return ST_OK;
    struct buf out = {0};
    buf_addf(&out, "\n");
    draw_larder(&out, view_rand(c->view));
    buf_addf(&out, "\nA larder, well kept. Larder ver. %s\n", LARDER_VERSION);
    c->reply->ops->verbatim(c->reply, "txt", buf_slice(&out));
    buf_release(&out);
    return ST_OK;
}

/* clang-format off */
const struct command server_commands[] = {
    {
        .name = "time", .fn = time_command, .arity = 1, .flags = CMD_LOADING | CMD_STALE | CMD_FAST,
        .categories = CAT_FAST, .summary = "Tells the server's time in seconds and microseconds.",
        .since = "2.6.0", .group = "server", .complexity = "O(1)", .tips = {"nondeterministic_output"},
    },
    {
        .name = "role", .fn = role, .arity = 1, .flags = CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_FAST,
        .categories = CAT_ADMIN | CAT_FAST | CAT_DANGEROUS,
        .summary = "Tells that this server is a master, and which replicas of its database are read from.", .since = "2.8.12",
        .group = "server", .complexity = "O(N) for N replicas",
    },
    {
        .name = "save", .fn = save, .arity = 1,
        .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_NO_ASYNC_LOADING | CMD_NO_MULTI | CMD_STOPS_WORKERS,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS,
        .summary = "Answers when everything written so far is durable, whatever the durability, and in the tables.",
        .since = "1.0.0",
        .group = "server", .complexity = "O(N) for N bytes not yet on the disk",
    },
    {
        .name = "bgsave", .fn = bgsave, .arity = -1,
        .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_NO_ASYNC_LOADING | CMD_STOPS_WORKERS,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "The same as SAVE.", .since = "1.0.0",
        .group = "server", .complexity = "O(N) for N bytes not yet on the disk",
    },
    {
        .name = "lastsave", .fn = lastsave, .arity = 1, .flags = CMD_LOADING | CMD_STALE | CMD_FAST,
        .categories = CAT_ADMIN | CAT_FAST | CAT_DANGEROUS,
        .summary = "Tells when SAVE last succeeded, or the server started.", .since = "1.0.0",
        .group = "server", .complexity = "O(1)", .tips = {"nondeterministic_output"},
    },
    {
        .name = "shutdown", .fn = shutdown_command, .arity = -1,
        .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_NO_MULTI | CMD_ALLOW_BUSY,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "Ends the server.", .since = "1.0.0",
        .group = "server", .complexity = "O(N) for N bytes not yet on the disk",
    },
    {
        .name = "monitor", .fn = monitor, .arity = 1, .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS,
        .summary = "Sends every command that runs from now on to this connection.", .since = "1.0.0",
        .group = "server", .complexity = "O(1); each command then costs O(N) for N monitors",
    },
    {
        .name = "lolwut", .fn = lolwut, .arity = -1, .flags = CMD_READONLY | CMD_FAST,
        .categories = CAT_READ | CAT_FAST, .summary = "Draws a larder and tells the version.",
        .since = "5.0.0", .group = "server", .complexity = "O(1)",
    },
    {.name = NULL},
};
/* clang-format on */
