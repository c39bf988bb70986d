/* EVAL and its like: a script that the client brings, or names by its SHA1.

   Rows: those of the commands that it runs, in one change set with them: after a crash all of it is there or
   nothing. Two clients: no command of another one runs between two of a script's. An expired key: one clock
   value for all of the script. A huge value: as with the commands; what Lua holds of it counts for
   script-memory. */
#include <stdio.h>

#include "exec/args.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "script/run.h"
#include "script/scripts.h"

/* How many of the arguments from argv[3] on are keys; false: the error has been replied. */
static bool count_keys(struct call *c, int *ret)
{
    int64_t n;
    if (!arg_i64(c, 2, &n, NULL))
        return false;
    if (n > c->argc - 3)
        reply_error(c->reply, "ERR Number of keys can't be greater than number of args");
    else if (n < 0)
        reply_error(c->reply, "ERR Number of keys can't be negative");
    else
        *ret = (int)n;
    return n >= 0 && n <= c->argc - 3;
}

/* There is no such script, or it is none. */
static void refuse(struct call *c, enum status st, struct buf *err)
{
    if (st == ST_OK && err->len)
        reply_errorf(c->reply, "%.*s", (int)err->len, err->p);
    else if (st == ST_OK)
        reply_error(c->reply, "NOSCRIPT No matching script. Please use EVAL.");
    buf_release(err);
}

static enum status run(struct call *c, bool by_sha, bool only_reads)
{
    struct scripts *s = scripts_of(c->executor);
    struct buf err = {0};
    int nkeys = 0;
    command_tell_monitors(c);
    if (!count_keys(c, &nkeys))
        return ST_OK;
    struct compiled *script = NULL;
    enum status st = scripts_begin(s, c->view);
    if (st == ST_OK && by_sha)
        st = scripts_by_sha(s, c, c->argv[1], &script, &err);
    else if (st == ST_OK)
        script = scripts_by_body(s, c->argv[1], &err);
    if (st != ST_OK || !script) {
        refuse(c, st, &err);
        return st;
    }
    struct script_run r = {
        .in = s->interps[INTERP_EVAL],
        .outer = c,
        .name = script->script->sha,
        .flags = script->script->flags,
        .only_reads = only_reads,
    };
    return script_run(&r, script->ref, c->argv + 3, nkeys, c->argv + 3 + nkeys, c->argc - 3 - nkeys);
}

static enum status eval(struct call *c)
{
    return run(c, false, false);
}

static enum status evalsha(struct call *c)
{
    return run(c, true, false);
}

static enum status eval_ro(struct call *c)
{
    return run(c, false, true);
}

static enum status evalsha_ro(struct call *c)
{
    return run(c, true, true);
}

/* clang-format off */
#define EVAL_FLAGS (CMD_SCRIPTS | CMD_NOSCRIPT | CMD_STALE | CMD_SKIP_MONITOR | CMD_NO_MANDATORY_KEYS | CMD_MOVABLEKEYS)
#define EVAL_KEYS(f, text) {{.flags = f, .index = 2, .keynum = true, .first = 0, .keynum_first = 1, .step = 1, .notes = text}}
#define KEYS_RW (KEY_RW | KEY_ACCESS | KEY_UPDATE)
#define KEYS_RO (KEY_RO | KEY_ACCESS)
const struct command eval_commands[] = {
    {
        .name = "eval", .fn = eval, .arity = -3, .flags = EVAL_FLAGS | CMD_RUNS_SCRIPT,
        .categories = CAT_SLOW | CAT_SCRIPTING,
        .keys = EVAL_KEYS(KEYS_RW, "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"),
        .summary = "Runs a Lua script as one transaction.", .since = "2.6.0", .group = "scripting",
        .complexity = "That of the script.",
    },
    {
        .name = "evalsha", .fn = evalsha, .arity = -3, .flags = EVAL_FLAGS | CMD_RUNS_SCRIPT,
        .categories = CAT_SLOW | CAT_SCRIPTING, .keys = EVAL_KEYS(KEYS_RW, NULL),
        .summary = "Runs a Lua script that the server knows by its SHA1.", .since = "2.6.0", .group = "scripting",
        .complexity = "That of the script.",
    },
    {
        .name = "eval_ro", .fn = eval_ro, .arity = -3, .flags = EVAL_FLAGS | CMD_READONLY,
        .categories = CAT_SLOW | CAT_SCRIPTING,
        .keys = EVAL_KEYS(KEYS_RO, "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"),
        .summary = "Runs a Lua script that only reads.", .since = "7.0.0", .group = "scripting",
        .complexity = "That of the script.",
    },
    {
        .name = "evalsha_ro", .fn = evalsha_ro, .arity = -3, .flags = EVAL_FLAGS | CMD_READONLY,
        .categories = CAT_SLOW | CAT_SCRIPTING, .keys = EVAL_KEYS(KEYS_RO, NULL),
        .summary = "Runs a Lua script that only reads and that the server knows by its SHA1.", .since = "7.0.0",
        .group = "scripting", .complexity = "That of the script.",
    },
    {.name = NULL},
};
/* clang-format on */
