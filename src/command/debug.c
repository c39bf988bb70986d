/* DEBUG: for tests. Only there where enable-debug-command allows it (see dispatch.c). */
#include "command/families.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/num.h"
#include "engine/coll.h"
#include "exec/args.h"
#include "exec/executor.h"

/* Stops the whole server, as Redis does; what is no number counts as 0. */
static enum status debug_sleep(struct call *c)
{
    double seconds;
    if (num_parse_double(c->argv[2], &seconds) && seconds > 0 && seconds < 1e9) {
        struct timespec t = {.tv_sec = (time_t)seconds};
        t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
        nanosleep(&t, NULL);
    }
    reply_ok(c->reply);
    return ST_OK;
}

/* Redis' fields, then the row's own. */
static enum status debug_object(struct call *c)
{
    const struct row *r;
    view_look_only(c->view);
    enum status st = arg_any(c, 2, &r);
    if (st != ST_OK)
        return st;
    if (!r) {
        reply_error(c->reply, ERR_NO_KEY);
        return ST_OK;
    }
    char text[320];
    struct row_ext items = row_items(r);
    const char *encoding;
    if ((st = arg_encoding(c, 2, r, &encoding)) != ST_OK)
        return st;
    snprintf(text, sizeof text,
             "Value at:%p refcount:1 encoding:%s serializedlength:%lld lru:0 lru_seconds_idle:0 seq:%lld "
             "version:%lld id:%lld size:%lld",
             (const void *)r, encoding, (long long)row_string_size(r), (long long)r->seq,
             (long long)r->version, (long long)items.id, (long long)items.size);
    reply_simple(c->reply, text);
    return ST_OK;
}

static enum status debug_set_active_expire(struct call *c)
{
    int64_t on;
    c->executor->server->sweep_active = num_parse_i64(c->argv[2], &on) && on != 0;
    reply_ok(c->reply);
    return ST_OK;
}

/* DEBUG CLOCK unix-ms | +ms | REAL: sets the clock, moves it on, or gives the real one back. A clock that was
   set stands still. It counts from the next batch on, so this one ends here. */
static enum status debug_clock(struct call *c)
{
    struct slice arg = c->argv[2];
    int64_t ms, base = 0;
    if (slice_is(arg, "real")) {
        clock_fake_us(0);
    } else {
        if (arg.n > 1 && arg.p[0] == '+') {
            base = clock_wall_us();
            arg = slice_of(arg.p + 1, arg.n - 1);
        }
        if (!num_parse_i64(arg, &ms) || ms <= 0 || ms > (INT64_MAX - base) / 1000) {
            reply_error(c->reply, ERR_NOT_INT);
            return ST_OK;
        }
        clock_fake_us(base + ms * 1000);
    }
    c->result->ends = true;
    reply_ok(c->reply);
    return ST_OK;
}

/* DEBUG ENDS members: how many members of a sorted set in the tables this worker reads ahead at each end, at
   most; 0: as many as a server does. */
static enum status debug_ends(struct call *c)
{
    int64_t members;
    if (!arg_range(c, 2, 0, UINT32_MAX / 4, &members, NULL))
        return ST_OK;
    coll_set_ends(c->view, (uint32_t)members);
    reply_ok(c->reply);
    return ST_OK;
}

static enum status debug_help(struct call *c)
{
    static const char *const lines[] = {
        "CLOCK (<unix-ms>|+<ms>|REAL)",
        "    Set the clock that expiry goes by, move it on, or give the real one back.",
        "ENDS <members>",
        "    Read so many members of a large sorted set ahead at each end. 0 is the default.",
        "OBJECT <key>",
        "    Show low level info about <key> and its row.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Setting it to 0 stops the sweeper. Setting it to 1 starts it again.",
        "SLEEP <seconds>",
        "    Stop the server for <seconds>. Decimals allowed.",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

static enum status debug(struct call *c)
{
    static const struct {
        const char *word;
        int argc;
        command_fn *fn;
    } subs[] = {
        {"help", 2, debug_help},     {"clock", 3, debug_clock},
        {"object", 3, debug_object}, {"set-active-expire", 3, debug_set_active_expire},
        {"sleep", 3, debug_sleep},   {"ends", 3, debug_ends},
    };
    for (size_t i = 0; i < sizeof subs / sizeof *subs; i++)
        if (slice_is(c->argv[1], subs[i].word) && c->argc == subs[i].argc)
            return subs[i].fn(c);
    reply_unknown_sub(c);
    return ST_OK;
}

/* clang-format off */
const struct command debug_commands[] = {
    {
        .name = "debug", .fn = debug, .arity = -2,
        .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_PROTECTED | CMD_STOPS_WORKERS,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "Commands for tests.",
        .since = "1.0.0", .group = "server", .complexity = "Depends on the subcommand.",
    },
    {.name = NULL},
};
/* clang-format on */
