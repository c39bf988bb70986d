/* redis.call and redis.pcall: from Lua's arguments straight to the handler and back.

   An inner command is a step of the script's own call: same transaction, same undo. What it replies is
   gathered as RESP in a buffer of the executor's; when the handler has returned, and nothing of ours is on
   the C stack, that becomes Lua values, which may raise.

   Arguments of a command that only reads are Lua's own strings, which stay on its stack meanwhile; those of
   one that writes are copied, because rows borrow them until the commit. Numbers become text in a buffer that
   is used again and again. */
#include "script/call.h"

#include <lauxlib.h>
#include <lua.h>

#include "base/mem.h"
#include "base/num.h"
#include "engine/view.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "script/convert.h"
#include "script/interp.h"
#include "script/run.h"
#include "script/sandbox_internal.h"
#include "script/scripts.h"

#define NUMBER_CHARS 32  /* of "%.17g" */
#define NUMBER_ROOM  128 /* that num_format_double wants to have */

static const char ERR_NO_ARGS[] = "ERR Please specify at least one argument for this redis lib call";
static const char ERR_ARG_TYPE[] = "ERR Lua redis lib command arguments must be strings or integers";
static const char ERR_UNKNOWN[] = "ERR Unknown Redis command called from script";
static const char ERR_ARITY[] = "ERR Wrong number of args calling Redis command from script";
static const char ERR_NOSCRIPT[] = "ERR This Redis command is not allowed from script";
static const char ERR_READ_ONLY[] = "ERR Write commands are not allowed from read-only scripts.";

/* All values on the stack as s->argv. NULL, or why they cannot be. */
static const char *gather(lua_State *L, struct scripts *s, int argc)
{
    if (argc == 0)
        return ERR_NO_ARGS;
    if (argc > s->argv_cap) {
        s->argv_cap = argc * 2;
        s->argv = mem_realloc(s->argv, (size_t)s->argv_cap * sizeof *s->argv);
    }
    s->numbers.len = 0;
    for (int i = 0; i < argc; i++) {
        int type = lua_type(L, i + 1);
        if (type == LUA_TSTRING) {
            s->argv[i].p = lua_tolstring(L, i + 1, &s->argv[i].n);
        } else if (type == LUA_TNUMBER) {
            if (s->numbers.len == 0)
                (void)buf_reserve(&s->numbers, (size_t)argc * NUMBER_CHARS + NUMBER_ROOM);
            char *text = s->numbers.p + s->numbers.len;
            size_t n = num_format_double(text, lua_tonumber(L, i + 1));
            s->argv[i] = slice_of(text, n);
            s->numbers.len += n;
        } else {
            return ERR_ARG_TYPE;
        }
    }
    return NULL;
}

static const struct command *find(const struct slice *argv, int argc)
{
    const struct command *cmd = command_find(argv[0]);
    return cmd && cmd->subs && argc > 1 ? command_find_sub(cmd, argv[1]) : cmd;
}

/* Why a script may not run the command, in Redis' order of checks; NULL: it may. */
static const char *refusal(const struct script_run *run, const struct command *cmd, const struct slice *argv,
                           int argc)
{
    if (!cmd)
        return ERR_UNKNOWN;
    if (!command_arity_fits(cmd, argc))
        return ERR_ARITY;
    if (cmd->flags & CMD_NOSCRIPT)
        return ERR_NOSCRIPT;
    if (run->only_reads && command_writes(cmd, argv, argc))
        return ERR_READ_ONLY;
    return NULL;
}

/* A command that does not run; cmd may be NULL. */
static void count_refusal(const struct script_run *run, const struct command *cmd, const char *code)
{
    struct executor *executor = run->outer->executor;
    if (cmd)
        books_count(&executor->books, BOOKS_REJECTED, (uint32_t)command_index(cmd));
    executor_note_error(executor, code);
}

/* Whether the command is one that runs while the other workers stand still. That they do is asked for between
   transactions only: this one is run again then, as after a conflict. */
static bool has_to_wait(const struct script_run *run, const struct command *cmd)
{
    struct executor *executor = run->outer->executor;
    if (!(cmd->flags & CMD_STOPS_WORKERS) || executor->others_stand || executor->server->nexecutors == 1)
        return false;
    executor->wants_others_to = true;
    error_set(run->outer->err, ST_CONFLICT, "the other workers have to stand still for %s", cmd->name);
    return true;
}

/* Runs the command; its reply is in s->said. What the database fails ends the script. */
static void run_command(struct script_run *run, struct scripts *s, const struct command *cmd, int argc)
{
    struct call call = *run->outer;
    s->said.len = 0;
    s->reply.base.resp = run->resp;
    call.reply = &s->reply.base;
    call.script = true;
    if (command_writes(cmd, s->argv, argc)) {
        if (call.write_err && call.write_err->code != ST_OK) {
            reply_status(call.reply, call.write_err->code, call.write_err);
            count_refusal(run, cmd, call.reply->code);
            return;
        }
        run->wrote = true;
        for (int i = 0; i < argc; i++)
            s->argv[i] = arena_copy(view_arena(call.view), s->argv[i]);
    }
    enum status st = has_to_wait(run, cmd) ? ST_CONFLICT : command_run_step(&call, cmd, s->argv, argc);
    if (st != ST_OK) {
        run->state = SCRIPT_FAILED;
        run->failure = st;
    }
}

/* Leaves the reply on the stack; true: it is an error. */
static bool run_inside(lua_State *L)
{
    struct interp *in = interp_of(L);
    struct script_run *run = in->run;
    struct scripts *s = in->scripts;
    int argc = lua_gettop(L);
    if (!run)
        interp_raise(L, "ERR redis.call/pcall can only be called inside a script invocation");
    script_between_calls(L, run);
    const struct command *cmd = NULL;
    const char *why = gather(L, s, argc);
    if (why) {
        interp_push_error(L, slice_str(why));
        return true;
    }
    why = refusal(run, cmd = find(s->argv, argc), s->argv, argc);
    if (why) {
        interp_push_error(L, slice_str(why));
        interp_mark_told(L);
        count_refusal(run, cmd, "ERR");
        return true;
    }
    run_command(run, s, cmd, argc);
    if (script_run_ends(run))
        interp_raise(L, "ERR the script has ended");
    convert_push(L, buf_slice(&s->said), run->resp);
    return s->said.len > 0 && s->said.p[0] == '-';
}

int script_call(lua_State *L)
{
    return run_inside(L) ? lua_error(L) : 1;
}

int script_pcall(lua_State *L)
{
    run_inside(L);
    return 1;
}

/* There are no users but one, who may do everything. */
int script_acl_check_cmd(lua_State *L)
{
    struct scripts *s = interp_of(L)->scripts;
    int argc = lua_gettop(L);
    const char *why = gather(L, s, argc);
    if (why)
        interp_raise(L, why);
    if (!find(s->argv, argc))
        interp_raise(L, "ERR Invalid command passed to redis.acl_check_cmd()");
    lua_pushboolean(L, 1);
    return 1;
}
