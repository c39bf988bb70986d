/* CONFIG: reading and changing the configuration while running.

   Options come from config/'s table, also those of Redis that mean nothing here: clients ask for them, or set
   them, and go by the answer. */
#include "command/families.h"

#include <assert.h>

#include "base/buf.h"
#include "base/glob.h"
#include "base/hide.h"
#include "config/config.h"
#include "exec/args.h"
#include "exec/executor.h"
#include "stats/stats.h"

/* ---- CONFIG GET ---- */

/* The pattern among the arguments that a name matches, or -1. */
static int matching(const struct call *c, const char *name)
{
    for (int i = 2; i < c->argc; i++)
        if (glob_match(c->argv[i], slice_str(name), true))
            return i;
    return -1;
}

/* A name that was asked for without a pattern is answered in the client's spelling. */
static bool reply_name(struct call *c, const char *name)
{
    int i = matching(c, name);
    if (i < 0)
        return false;
    if (slice_is(c->argv[i], name))
        reply_bulk(c->reply, c->argv[i]);
    else
        reply_bulk_str(c->reply, name);
    return true;
}

static void reply_value(struct call *c, const struct option *o)
{
    struct buf value = {0};
    config_get(c->executor->config, o, false, &value);
    if (o->url) {
        char shown[8192];
        buf_add(&value, "", 1);
        reply_bulk_str(c->reply, o->kind == OPT_URLS ? hide_passwords(shown, sizeof shown, value.p)
                                                     : hide_password(shown, sizeof shown, value.p));
    } else {
        reply_bulk(c->reply, buf_slice(&value));
    }
    buf_release(&value);
}

static enum status config_get_command(struct call *c)
{
    const struct option *o;
    const struct old_name *name;
    size_t n = 0, mark = reply_begin_deferred(c->reply);
    for (int i = 0; (o = config_option(i)); i++) {
        if (!reply_name(c, o->name))
            continue;
        reply_value(c, o);
        n++;
    }
    for (int i = 0; (name = config_old_name(i)); i++) {
        if (!reply_name(c, name->old))
            continue;
        reply_value(c, config_find(slice_str(name->now)));
        n++;
    }
    reply_end_deferred(c->reply, mark, REPLY_MAP, n);
    return ST_OK;
}

/* ---- CONFIG SET ---- */

static void reply_set_failed(struct call *c, struct slice name, const char *reason)
{
    reply_errorf(c->reply, "ERR CONFIG SET failed (possibly related to argument '%.*s') - %s", (int)name.n,
                 name.p, reason);
}

/* The name that an option was called by, in the spelling of the table. */
static struct slice called(struct slice by, const struct option *o)
{
    const struct old_name *n;
    for (int i = 0; (n = config_old_name(i)); i++) {
        if (slice_is(by, n->old))
            return slice_str(n->old);
    }
    return slice_str(o->name);
}

/* Checks the names: known, changeable, none twice. */
static bool check_names(struct call *c)
{
    for (int i = 2; i < c->argc; i += 2) {
        const struct option *o = config_find(c->argv[i]);
        if (!o) {
            reply_errorf(c->reply, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                         (int)c->argv[i].n, c->argv[i].p);
            return false;
        }
        if (!o->live) {
            reply_set_failed(c, called(c->argv[i], o),
                             o->refusal ? o->refusal : "can't set immutable config");
            return false;
        }
        for (int j = 2; j < i; j += 2) {
            if (slice_is(c->argv[j], called(c->argv[i], o).p)) {
                reply_set_failed(c, c->argv[i], "duplicate parameter");
                return false;
            }
        }
    }
    return true;
}

/* Gives back their old values to the options before argument `end`. */
static void restore(struct call *c, const struct buf *old, int end)
{
    for (int i = 2; i < end; i += 2) {
        const struct option *o = config_find(c->argv[i]);
        struct error err;
        bool taken = config_set(c->executor->config, o, buf_slice(&old[i]), NULL, &err) == ST_OK;
        assert(taken); /* it was read from there */
        (void)taken;
    }
}

/* Sets all or none: the old values are kept as text to go back to. */
static bool set_all(struct call *c, struct buf *old)
{
    struct config *config = c->executor->config;
    struct error err = {.code = ST_OK, .text = ""};
    int i;
    for (i = 2; i < c->argc; i += 2) {
        const struct option *o = config_find(c->argv[i]);
        config_get(config, o, false, &old[i]);
        if (config_set(config, o, c->argv[i + 1], NULL, &err) != ST_OK)
            break;
    }
    if (i >= c->argc)
        return true;

    reply_set_failed(c, called(c->argv[i], config_find(c->argv[i])), err.text);
    restore(c, old, i);
    return false;
}

/* Puts the options before argument `end` into effect; returns the first that could not be. */
static int apply(struct call *c, int end, struct error *err)
{
    struct executor *s = c->executor;
    for (int i = 2; i < end; i += 2) {
        const struct option *o = config_find(c->argv[i]);
        if (s->config_changed && s->config_changed(s, o, c->result, err) != ST_OK)
            return i;
    }
    return end;
}

static bool apply_all(struct call *c, const struct buf *old)
{
    struct error err;
    int failed = apply(c, c->argc, &err);
    if (failed == c->argc)
        return true;
    reply_set_failed(c, slice_str(config_find(c->argv[failed])->name), err.text);
    restore(c, old, c->argc);
    apply(c, failed, &err);
    return false;
}

static enum status config_set_command(struct call *c)
{
    if (c->argc % 2 != 0) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    if (!check_names(c))
        return ST_OK;
    struct buf *old = arena_alloc(c->arena, (size_t)c->argc * sizeof *old);
    memset(old, 0, (size_t)c->argc * sizeof *old);
    stats_post(c->executor); /* as it is configured until now */
    if (set_all(c, old) && apply_all(c, old))
        reply_ok(c->reply);
    for (int i = 0; i < c->argc; i++)
        buf_release(&old[i]);
    return ST_OK;
}

/* ---- the rest ---- */

static enum status config_resetstat(struct call *c)
{
    stats_post(c->executor);
    for (uint32_t i = 0; i < c->executor->server->nexecutors; i++)
        executor_reset_stats(c->executor->server->executors[i]);
    reply_ok(c->reply);
    return ST_OK;
}

static enum status config_rewrite_command(struct call *c)
{
    const struct config *config = c->executor->config;
    struct error err;
    if (!config->file || !config->file[0])
        reply_error(c->reply, "ERR The server is running without a config file");
    else if (config_rewrite(config, &err) != ST_OK)
        reply_errorf(c->reply, "ERR Rewriting config file: %s", err.text);
    else
        reply_ok(c->reply);
    return ST_OK;
}

static enum status config_help(struct call *c)
{
    static const char *const lines[] = {
        "GET <pattern>",
        "    Return parameters matching the glob-like <pattern> and their values.",
        "SET <directive> <value>",
        "    Set the configuration <directive> to <value>.",
        "RESETSTAT",
        "    Reset statistics reported by the INFO command.",
        "REWRITE",
        "    Rewrite the configuration file.",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

#define ADMIN (CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE)

/* clang-format off */
static const struct command subcommands[] = {
    {
        .name = "get", .fn = config_get_command, .arity = -3, .flags = ADMIN,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "Tells the values of options.",
        .since = "2.0.0", .group = "server", .complexity = "O(N) for N options",
    },
    {
        .name = "help", .fn = config_help, .arity = 2, .flags = CMD_LOADING | CMD_STALE,
        .categories = CAT_SLOW, .summary = "Lists the subcommands.", .since = "5.0.0", .group = "server",
        .complexity = "O(1)",
    },
    {
        .name = "resetstat", .fn = config_resetstat, .arity = 2, .flags = ADMIN | CMD_STOPS_WORKERS,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "Starts the statistics of INFO anew.",
        .since = "2.0.0", .group = "server", .complexity = "O(1)",
    },
    {
        .name = "rewrite", .fn = config_rewrite_command, .arity = 2, .flags = ADMIN | CMD_STOPS_WORKERS,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS,
        .summary = "Writes the configuration into the file it came from.", .since = "2.8.0",
        .group = "server", .complexity = "O(1)",
    },
    {
        .name = "set", .fn = config_set_command, .arity = -4, .flags = ADMIN | CMD_STOPS_WORKERS,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "Changes options, all of them or none.",
        .since = "2.0.0", .group = "server", .complexity = "O(N) for N options",
        .tips = {"request_policy:all_nodes", "response_policy:all_succeeded"},
    },
    {.name = NULL},
};

const struct command config_commands[] = {
    {
        .name = "config", .arity = -2, .flags = CMD_STOPS_WORKERS, .categories = CAT_SLOW, .summary = "Commands about the configuration.",
        .since = "2.0.0", .group = "server", .complexity = "Depends on the subcommand.", .subs = subcommands,
    },
    {.name = NULL},
};
/* clang-format on */
