/* SCRIPT: what the database, and this process, know of scripts.

   Rows: those of the hidden database (script/rows.h); LOAD writes a field of a hash and the hash's row, FLUSH
   two rows whatever their number, in the change set of the transaction: a crash leaves all of it or nothing.
   Two clients, or servers: whoever loads or flushes second waits for the first, or runs again. There is no
   expiry. A script has up to 512 MB, as a value. */
#include "exec/args.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "script/rows.h"
#include "script/running.h"
#include "script/scripts.h"

/* Whether nothing can be written: then *ret is what the command answers. */
static bool cannot_write(struct call *c, enum status *ret)
{
    if (!c->write_err || c->write_err->code == ST_OK)
        return false;
    *c->err = *c->write_err;
    *ret = c->write_err->code;
    return true;
}

/* Where the database is only read from, the script is known to this process alone, as one of EVAL's. */
static enum status load(struct call *c)
{
    struct buf err = {0};
    struct scripts *s = scripts_of(c->executor);
    enum status st, why;
    if (cannot_write(c, &why) && why != ST_READONLY)
        return why;
    if ((st = scripts_begin(s, c->view)) != ST_OK)
        return st;
    struct compiled *script = scripts_by_body(s, c->argv[2], &err);
    if (script && !cannot_write(c, &why))
        st = rows_put_script(c->view, slice_str(script->script->sha), c->argv[2]);
    if (st == ST_OK && script)
        reply_bulk_str(c->reply, script->script->sha);
    else if (st == ST_OK)
        reply_errorf(c->reply, "%.*s", (int)err.len, err.p);
    buf_release(&err);
    return st;
}

static enum status exists(struct call *c)
{
    struct scripts *s = scripts_of(c->executor);
    enum status st = scripts_begin(s, c->view);
    reply_array(c->reply, (size_t)c->argc - 2);
    for (int i = 2; st == ST_OK && i < c->argc; i++) {
        struct script *known = script_cache_find(c->executor->server->script_cache, c->argv[i], s->flushes);
        bool found = known != NULL;
        if (known)
            script_let_go(known);
        else
            st = rows_has_script(c->view, c->argv[i], &found);
        reply_integer(c->reply, found);
    }
    return st;
}

/* What this process has of them goes now, what others have when they next see that they were flushed. */
static enum status flush(struct call *c)
{
    enum status st;
    bool mode = c->argc == 3 && (slice_is(c->argv[2], "sync") || slice_is(c->argv[2], "async"));
    if (c->argc != 2 && !mode) {
        reply_error(c->reply, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return ST_OK;
    }
    if (cannot_write(c, &st))
        return st;
    st = rows_flush_scripts(c->view);
    if (st == ST_OK)
        st = scripts_begin(scripts_of(c->executor), c->view);
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

/* Ours: the text of a script. */
static enum status show(struct call *c)
{
    struct slice text = {0};
    struct scripts *s = scripts_of(c->executor);
    enum status st = scripts_begin(s, c->view);
    if (st == ST_OK)
        st = scripts_text(s, c, c->argv[2], &text);
    if (st == ST_OK && text.p)
        reply_bulk(c->reply, text);
    else if (st == ST_OK)
        reply_error(c->reply, "NOSCRIPT No matching script. Please use EVAL.");
    return st;
}

static enum status kill_script(struct call *c)
{
    running_kill(c->executor->server, INTERP_EVAL, c->reply);
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
#define CHANGES (CMD_SCRIPTS | CMD_CHANGES_SCRIPTS)
static const struct command script_subs[] = {
    SCRIPT_SUB("flush", flush, -2, CHANGES | CMD_NOSCRIPT, "2.6.0", "Forgets all scripts.", .complexity = "O(1); those that the process has go in O(N)",
               .tips = {"request_policy:all_nodes", "response_policy:all_succeeded"}),
    SCRIPT_SUB("debug", debug, 3, CMD_NOSCRIPT, "3.2.0", "Answers that there is no debugger.", .complexity = "O(1)"),
    SCRIPT_SUB("help", help, 2, CMD_LOADING | CMD_STALE, "5.0.0", "Lists the subcommands.", .complexity = "O(1)"),
    SCRIPT_SUB("exists", exists, -3, CMD_SCRIPTS | CMD_NOSCRIPT, "2.6.0", "Tells which scripts are known.", .complexity = "O(1) for each",
               .tips = {"request_policy:all_shards", "response_policy:agg_logical_and"}),
    SCRIPT_SUB("load", load, 3, CHANGES | CMD_NOSCRIPT | CMD_STALE, "2.6.0", "Makes a script known by its SHA1.",
               .complexity = "O(N) for N bytes", .tips = {"request_policy:all_nodes", "response_policy:all_succeeded"}),
    SCRIPT_SUB("kill", kill_script, 2, CMD_NOSCRIPT | CMD_ALLOW_BUSY, "2.6.0", "Ends scripts that are busy and have not written.",
               .complexity = "O(1)", .tips = {"request_policy:all_shards", "response_policy:one_succeeded"}),
    SCRIPT_SUB("show", show, 3, CMD_SCRIPTS | CMD_NOSCRIPT, "7.0.0", "Gives the text of a script.", .complexity = "O(1)"),
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
