/* SCRIPT: what the server knows of scripts. */
#include "exec/args.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "script/scripts.h"

static enum status load(struct call *c)
{
    struct buf err = {0};
    struct compiled *script = scripts_by_body(scripts_of(c->executor), c->argv[2], true, &err);
    if (script)
        reply_bulk_str(c->reply, script->script->sha);
    else
        reply_errorf(c->reply, "%.*s", (int)err.len, err.p);
    buf_release(&err);
    return ST_OK;
}

static enum status exists(struct call *c)
{
    reply_array(c->reply, (size_t)c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        struct script *s = script_cache_find(c->executor->server->script_cache, c->argv[i]);
        reply_integer(c->reply, s != NULL);
        if (s)
            script_let_go(s);
    }
    return ST_OK;
}

/* Others' compiled ones go when they are looked for. */
static enum status flush(struct call *c)
{
    bool mode = c->argc == 3 && (slice_is(c->argv[2], "sync") || slice_is(c->argv[2], "async"));
    if (c->argc != 2 && !mode) {
        reply_error(c->reply, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return ST_OK;
    }
    script_cache_flush(c->executor->server->script_cache);
    reply_ok(c->reply);
    return ST_OK;
}

/* Ours: the text of a script. */
static enum status show(struct call *c)
{
    struct script *s = script_cache_find(c->executor->server->script_cache, c->argv[2]);
    if (!s) {
        reply_error(c->reply, "NOSCRIPT No matching script. Please use EVAL.");
        return ST_OK;
    }
    reply_bulk(c->reply, s->body);
    script_let_go(s);
    return ST_OK;
}

/* There is no debugger: only that it stays off can be asked for. */
static enum status debug(struct call *c)
{
    if (slice_is(c->argv[2], "no"))
        reply_ok(c->reply);
    else if (slice_is(c->argv[2], "yes") || slice_is(c->argv[2], "sync"))
        reply_error(c->reply, "ERR The debugger of scripts is not supported");
    else
        reply_error(c->reply, "ERR Use SCRIPT DEBUG YES/SYNC/NO");
    return ST_OK;
}

static enum status help(struct call *c)
{
    static const char *const lines[] = {
        "DEBUG (YES|SYNC|NO)",
        "    Set the debug mode for subsequent scripts executed.",
        "EXISTS <sha1> [<sha1> ...]",
        "    Return information about the existence of the scripts in the script cache.",
        "FLUSH [ASYNC|SYNC]",
        "    Flush the Lua scripts cache. Very dangerous on replicas.",
        "    When called without the optional mode argument, the behavior is determined by the",
        "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
        "    * ASYNC: Asynchronously flush the scripts cache.",
        "    * SYNC: Synchronously flush the scripts cache.",
        "KILL",
        "    Kill the currently executing Lua script.",
        "LOAD <script>",
        "    Load a script into the scripts cache without executing it.",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

/* clang-format off */
#define SCRIPT_SUB(n, f, a, fl, v, text, ...) \
    {.name = n, .fn = f, .arity = a, .flags = fl, .categories = CAT_SLOW | CAT_SCRIPTING, .summary = text, .since = v, \
     .group = "scripting", __VA_ARGS__}
static const struct command script_subs[] = {
    SCRIPT_SUB("flush", flush, -2, CMD_NOSCRIPT, "2.6.0", "Forgets all scripts.", .complexity = "O(N) for N scripts",
               .tips = {"request_policy:all_nodes", "response_policy:all_succeeded"}),
    SCRIPT_SUB("debug", debug, 3, CMD_NOSCRIPT, "3.2.0", "Answers that there is no debugger.", .complexity = "O(1)"),
    SCRIPT_SUB("help", help, 2, CMD_LOADING | CMD_STALE, "5.0.0", "Lists the subcommands.", .complexity = "O(1)"),
    SCRIPT_SUB("exists", exists, -3, CMD_NOSCRIPT, "2.6.0", "Tells which scripts are known.", .complexity = "O(1) for each",
               .tips = {"request_policy:all_shards", "response_policy:agg_logical_and"}),
    SCRIPT_SUB("load", load, 3, CMD_NOSCRIPT | CMD_STALE, "2.6.0", "Makes a script known by its SHA1.",
               .complexity = "O(N) for N bytes", .tips = {"request_policy:all_nodes", "response_policy:all_succeeded"}),
    SCRIPT_SUB("show", show, 3, CMD_NOSCRIPT, "7.0.0", "Gives the text of a script.", .complexity = "O(1)"),
    {.name = NULL},
};

const struct command script_commands[] = {
    {
        .name = "script", .arity = -2, .categories = CAT_SLOW, .subs = script_subs,
        .summary = "What concerns scripts that the server knows.", .since = "2.6.0", .group = "scripting", .complexity = "Depends on the subcommand.",
    },
    {.name = NULL},
};
/* clang-format on */
