#include "script/run.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "script/convert.h"
#include "script/guards.h"
#include "script/libs.h"
#include "script/sandbox_internal.h"
#include "script/scripts.h"

#define LOOK_US 2000 /* between two calls of executor->script_slow */

/* ---- flags ---- */

static const struct {
    const char *name;
    uint32_t flag;
} flag_names[] = {
    {"no-writes", SCRIPT_NO_WRITES},
    {"allow-oom", SCRIPT_ALLOW_OOM},
    {"allow-stale", SCRIPT_ALLOW_STALE},
    {"no-cluster", SCRIPT_NO_CLUSTER},
    {"allow-cross-slot-keys", SCRIPT_CROSS_SLOT},
    {"rollback", SCRIPT_ROLLBACK},
};

uint32_t script_flag_of(struct slice name)
{
    for (size_t i = 0; i < sizeof flag_names / sizeof *flag_names; i++)
        if (slice_eq(name, slice_str(flag_names[i].name)))
            return flag_names[i].flag;
    return 0;
}

const char *script_flag_name(uint32_t flag)
{
    size_t i = 0;
    while (flag_names[i].flag != flag)
        i++;
    return flag_names[i].name;
}

/* ---- ending a run ---- */

static int end_run(lua_State *L)
{
    return luaL_error(L, "the script has ended");
}

/* at: what runs. */
static void look(lua_State *L, struct script_run *run, lua_Debug *at)
{
    struct executor *executor = run->outer->executor;
    executor->script_slow(executor, run);
    run->slow_at_us = clock_mono_us() + LOOK_US;
    if (run->state == SCRIPT_KILLED && lua_getinfo(L, "Sl", at)) {
        snprintf(run->killed_in, sizeof run->killed_in, "%s", at->source);
        run->killed_at = at->currentline;
    }
}

static bool may_look(const struct script_run *run)
{
    return run->state == SCRIPT_RUNS && run->outer->executor->script_slow;
}

static void tend_garbage(lua_State *L, struct interp *in)
{
    if (interp_collect_due(in, L))
        lua_sethook(in->L, script_hook, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
}

/* Called now and then while a script runs, and for every instruction of one that is to end: it cannot go on,
   whatever it catches. */
void script_hook(lua_State *L, lua_Debug *at)
{
    struct interp *in = interp_of(L);
    struct script_run *run = in->run;
    if (!run)
        return;
    tend_garbage(L, in);
    if (may_look(run) && clock_mono_us() >= run->slow_at_us)
        look(L, run, at);
    if (script_run_ends(run)) {
        lua_sethook(L, script_hook, LUA_MASKCOUNT, 1);
        end_run(L);
    }
}

/* The function that has called one of C, through others of C perhaps (pcall): one of Lua, or the script. */
static bool find_caller(lua_State *L, lua_Debug *ret)
{
    for (int level = 1; lua_getstack(L, level, ret); level++)
        if (lua_getinfo(L, "S", ret) && (ret->what[0] == 'L' || ret->what[0] == 'm'))
            return true;
    return lua_getstack(L, 0, ret);
}

void script_between_calls(lua_State *L, struct script_run *run)
{
    lua_Debug caller;
    tend_garbage(L, run->in);
    if (run->outer->executor->clock_us >= run->slow_at_us && may_look(run) && find_caller(L, &caller))
        look(L, run, &caller);
    if (script_run_ends(run))
        end_run(L);
}

void script_before_much(lua_State *L)
{
    struct script_run *run = interp_of(L)->run;
    lua_Debug caller;
    if (!run)
        return;
    if (may_look(run) && clock_mono_us() >= run->slow_at_us && find_caller(L, &caller))
        look(L, run, &caller);
    if (script_run_ends(run))
        end_run(L);
}

void script_run_kill(struct script_run *run, const char *why)
{
    if (run->state != SCRIPT_RUNS)
        return;
    run->state = SCRIPT_KILLED;
    run->why = why;
}

/* ---- running ---- */

struct job {
    struct script_run *run;
    int ref;
    const struct slice *keys, *args;
    int nkeys, nargs;
    bool error; /* the reply is one: what the script raised or returned */
};

static void push_slices(lua_State *L, const struct slice *s, int n)
{
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushlstring(L, s[i].p, s[i].n);
        lua_rawseti(L, -2, i + 1);
    }
}

/* Pushes the function and its arguments; returns how many. */
static int push_function(lua_State *L, const struct job *job)
{
    const struct interp *in = job->run->in;
    if (in->kind == INTERP_FUNCTIONS) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, job->ref);
        push_slices(L, job->keys, job->nkeys);
        push_slices(L, job->args, job->nargs);
        return 2;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, in->globals);
    lua_pushliteral(L, "KEYS");
    push_slices(L, job->keys, job->nkeys);
    lua_rawset(L, -3);
    lua_pushliteral(L, "ARGV");
    push_slices(L, job->args, job->nargs);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, job->ref);
    return 0;
}

/* The error at the top of the stack, with the script's name and the place: a table, as the handler has made
   it, or (memory is out) a text. */
static void reply_raised(lua_State *L, const struct job *job)
{
    struct reply *r = job->run->outer->reply;
    const char *text = NULL;
    if (lua_type(L, -1) != LUA_TTABLE) {
        text = lua_tostring(L, -1);
        reply_errorf(r, "ERR %s script: %s", text ? text : "(null)", job->run->name);
        return;
    }
    lua_getfield(L, -1, "err");
    text = lua_tostring(L, -1);
    lua_getfield(L, -2, "source");
    const char *source = lua_tostring(L, -1);
    lua_getfield(L, -3, "line");
    const char *line = lua_tostring(L, -1);
    if (!text)
        text = "ERR unknown error";
    if (source && line)
        reply_errorf(r, "%s script: %s, on %s:%s.", text, job->run->name, source, line);
    else
        reply_errorf(r, "%s script: %s", text, job->run->name);
    r->told = interp_is_told(L, -4);
}

/* From the function to the reply, inside lua_cpcall: what runs out of memory on the way raises to there. */
static int run_protected(lua_State *L)
{
    struct job *job = lua_touserdata(L, 1);
    struct script_run *run = job->run;
    lib_cjson_reset(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, run->in->handler);
    int nargs = push_function(L, job);
    int rc = lua_pcall(L, nargs, 1, 2);
    if (script_run_ends(run))
        return 0;
    if (rc == 0) {
        job->error = convert_is_error(L);
        convert_reply(L, run->outer->reply, run->resp);
    } else {
        job->error = true;
        reply_raised(L, job);
    }
    return 0;
}

/* What has to be said when nothing could be said in there. */
static void run_to_reply(struct job *job)
{
    struct script_run *run = job->run;
    struct reply *r = run->outer->reply;
    lua_State *L = run->in->L;
    size_t mark = r->ops->mark(r);
    uint64_t errors = r->errors;
    if (lua_cpcall(L, run_protected, job) != 0 && !script_run_ends(run)) {
        r->ops->rewind(r, mark);
        r->errors = errors;
        job->error = true;
        reply_errorf(r, "ERR %s script: %s", lua_tostring(L, -1), run->name);
    }
    lua_settop(L, 0);
    lua_sethook(L, script_hook, LUA_MASKCOUNT, HOOK_INSTRUCTIONS); /* it may wait for garbage, or the end */
}

/* ---- what is undone ---- */

/* Whether what the run writes is undone by itself, if it is to be: that of one that is a command of EXEC, or
   of a batch over HTTP, stands among what others have written. One that is killed by itself is undone as its
   call is. */
static bool needs_mark(const struct script_run *run)
{
    return !run->only_reads && ((run->flags & SCRIPT_ROLLBACK) || run->outer->all_of_it);
}

/* The reply stands. */
static enum status end_writes(struct script_run *run, bool marked, bool error)
{
    struct engine *engine = run->outer->executor->engine;
    bool killed = run->state == SCRIPT_KILLED;
    if (!killed && !(error && (run->flags & SCRIPT_ROLLBACK))) {
        if (marked)
            engine_forget_mark(engine);
        return ST_OK;
    }
    run->outer->undo |= killed && !marked;
    return marked ? engine_undo_to_mark(engine) : ST_OK;
}

/* ---- all of it ---- */

/* KEYS and ARGV stay until the next script, unless there is much of them. Not protected, so without a bound,
   as interp_forget. */
static void forget_arguments(struct interp *in)
{
    size_t max = in->memory_max;
    in->memory_max = SIZE_MAX;
    lua_rawgeti(in->L, LUA_REGISTRYINDEX, in->globals);
    lua_pushnil(in->L);
    lua_setfield(in->L, -2, "KEYS");
    lua_pushnil(in->L);
    lua_setfield(in->L, -2, "ARGV");
    lua_settop(in->L, 0);
    in->memory_max = max;
    interp_collect(in);
}

/* Says why the script may not run at all, by its flags; those of an old one are not known: it runs, up to a
   command that it may not run. */
static bool refuse(const struct script_run *run)
{
    const struct error *write_err = run->outer->write_err;
    if (run->flags & (SCRIPT_OLD | SCRIPT_NO_WRITES))
        return false;
    if (run->only_reads)
        reply_error(run->outer->reply, "ERR Can not execute a script with write flag using *_ro command.");
    else if (write_err && write_err->code != ST_OK)
        reply_status(run->outer->reply, write_err->code, write_err);
    else
        return false;
    return true;
}

enum status script_run(struct script_run *run, int ref, const struct slice *keys, int nkeys,
                       const struct slice *args, int nargs)
{
    struct job job = {.run = run, .ref = ref, .keys = keys, .args = args, .nkeys = nkeys, .nargs = nargs};
    struct session *session = run->outer->session;
    struct executor *executor = run->outer->executor;
    const uint32_t db = session->state.db;
    const struct consistency consistency = session->state.consistency;
    const bool no_block = session->no_block;
    if (refuse(run))
        return ST_OK;
    run->only_reads |= run->flags & SCRIPT_NO_WRITES;
    const bool marked = needs_mark(run);
    if (marked)
        engine_mark(executor->engine);
    run->resp = 2;
    run->start_us = executor->clock_us;
    run->slow_at_us = run->start_us + LOOK_US;
    run->in->memory_max = executor->config->script_memory;
    interp_collected(run->in);
    session->no_block = true;
    const uint64_t random = executor->random;
    run->in->run = run;
    run_to_reply(&job);
    run->in->run = NULL;
    guard_restore_collector(run->in);
    if (executor->script_over)
        executor->script_over(executor, run);
    session->no_block = no_block;
    session->state.db = db;
    session->state.consistency = consistency;
    if (run->in->scripts->said.cap > SAID_KEPT)
        buf_release(&run->in->scripts->said);
    if (run->in->memory > run->in->memory_max / 2)
        forget_arguments(run->in);
    if (run->state == SCRIPT_FAILED) {
        executor->random = random;
        return run->failure;
    }
    if (run->state == SCRIPT_KILLED)
        reply_errorf(run->outer->reply, "%s script: %s, on %s:%d.", run->why, run->name, run->killed_in,
                     run->killed_at);
    return end_writes(run, marked, job.error);
}
