/* The table `redis`. */
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <string.h>

#include "base/log.h"
#include "exec/books.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "script/cache.h"
#include "script/call.h"
#include "script/convert.h"
#include "script/interp.h"
#include "script/run.h"
#include "script/sandbox_internal.h"
#include "script/scripts.h"

#define REPL_AOF     1
#define REPL_REPLICA 2
#define REPL_ALL     (REPL_AOF | REPL_REPLICA)

enum { LEVEL_DEBUG, LEVEL_VERBOSE, LEVEL_NOTICE, LEVEL_WARNING };

static int error_or_status(lua_State *L, const char *field)
{
    size_t n;
    if (lua_gettop(L) != 1 || lua_type(L, -1) != LUA_TSTRING) {
        interp_push_error(L, SLICE("ERR wrong number or type of arguments"));
        return 1;
    }
    const char *text = lua_tolstring(L, -1, &n);
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, text, n);
    lua_setfield(L, -2, field);
    return 1;
}

/* An error's text begins with a code: one is put in front of a text without a space, and a dash that Redis
   would take for the protocol's goes. */
static int api_error_reply(lua_State *L)
{
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING)
        return error_or_status(L, "err");
    size_t n;
    const char *given = lua_tolstring(L, 1, &n);
    struct slice text = convert_error_text(slice_of(given, n));
    if (text.n > 0 && text.p[0] == '-')
        text = slice_of(text.p + 1, text.n - 1);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, memchr(text.p, ' ', text.n) ? "" : "ERR ");
    lua_pushlstring(L, text.p, text.n);
    lua_concat(L, 2);
    lua_setfield(L, -2, "err");
    return 1;
}

static int api_status_reply(lua_State *L)
{
    return error_or_status(L, "ok");
}

static int api_sha1hex(lua_State *L)
{
    if (lua_gettop(L) != 1)
        interp_raise(L, "ERR wrong number of arguments");
    size_t n = 0;
    const char *bytes = lua_tolstring(L, 1, &n);
    char sha[SCRIPT_SHA_CHARS + 1];
    if (n >= MUCH_BYTES)
        script_before_much(L);
    script_sha1(slice_of(bytes ? bytes : "", n), sha);
    lua_pushstring(L, sha);
    return 1;
}

/* A number as an int; one that is none is INT_MIN, as x86-64 has it. */
static int int_at(lua_State *L, int index)
{
    double d = lua_tonumber(L, index);
    return d > (double)INT_MIN - 1 && d < (double)INT_MAX + 1 ? (int)d : INT_MIN;
}

static int api_setresp(lua_State *L)
{
    if (lua_gettop(L) != 1)
        interp_raise(L, "ERR redis.setresp() requires one argument.");
    int resp = int_at(L, 1);
    if (resp != 2 && resp != 3)
        interp_raise(L, "ERR RESP version must be 2 or 3.");
    struct script_run *run = interp_of(L)->run;
    if (run)
        run->resp = resp;
    return 0;
}

static int api_set_repl(lua_State *L)
{
    if (lua_gettop(L) != 1)
        interp_raise(L, "ERR redis.set_repl() requires two arguments.");
    int flags = int_at(L, 1);
    if (flags & ~REPL_ALL)
        interp_raise(L, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    return 0;
}

static int api_replicate_commands(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

/* There is no debugger. */
static int api_breakpoint(lua_State *L)
{
    lua_pushboolean(L, 0);
    return 1;
}

static int api_debug(lua_State *L)
{
    (void)L;
    return 0;
}

/* The line waits in the books: of a transaction that is run again it is written once. */
static int api_log(lua_State *L)
{
    static const enum log_level levels[] = {
        [LEVEL_DEBUG] = LOG_DEBUG,
        [LEVEL_VERBOSE] = LOG_DEBUG,
        [LEVEL_NOTICE] = LOG_INFO,
        [LEVEL_WARNING] = LOG_WARNING,
    };
    int n = lua_gettop(L);
    if (n < 2)
        interp_raise(L, "ERR redis.log() requires two arguments or more.");
    if (!lua_isnumber(L, -n))
        interp_raise(L, "ERR First argument must be a number (log level).");
    int level = int_at(L, -n);
    if (level < LEVEL_DEBUG || level > LEVEL_WARNING)
        interp_raise(L, "ERR Invalid debug level.");
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 2; i <= n; i++) {
        size_t len;
        const char *text = lua_tolstring(L, i, &len);
        if (!text)
            continue;
        if (i > 2)
            luaL_addchar(&b, ' ');
        luaL_addlstring(&b, text, len);
    }
    luaL_pushresult(&b);
    size_t len;
    const char *text = lua_tolstring(L, -1, &len);
    if (levels[level] >= log_get_level())
        books_log(&interp_of(L)->scripts->executor->books, levels[level], slice_of(text, len));
    return 0;
}

static const luaL_Reg functions[] = {
    {"call", script_call},
    {"pcall", script_pcall},
    {"acl_check_cmd", script_acl_check_cmd},
    {"error_reply", api_error_reply},
    {"status_reply", api_status_reply},
    {"sha1hex", api_sha1hex},
    {"log", api_log},
    {"setresp", api_setresp},
    {"set_repl", api_set_repl},
    {NULL, NULL},
};

static const luaL_Reg eval_functions[] = {
    {"replicate_commands", api_replicate_commands},
    {"breakpoint", api_breakpoint},
    {"debug", api_debug},
    {NULL, NULL},
};

static const struct {
    const char *name;
    int value;
} numbers[] = {
    {"LOG_DEBUG", LEVEL_DEBUG},
    {"LOG_VERBOSE", LEVEL_VERBOSE},
    {"LOG_NOTICE", LEVEL_NOTICE},
    {"LOG_WARNING", LEVEL_WARNING},
    {"REPL_NONE", 0},
    {"REPL_AOF", REPL_AOF},
    {"REPL_SLAVE", REPL_REPLICA},
    {"REPL_REPLICA", REPL_REPLICA},
    {"REPL_ALL", REPL_ALL},
};

void interp_push_api(lua_State *L)
{
    lua_createtable(L, 0, 32);
    luaL_register(L, NULL, functions);
    if (interp_of(L)->kind == INTERP_EVAL)
        luaL_register(L, NULL, eval_functions);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushinteger(L, numbers[i].value);
        lua_setfield(L, -2, numbers[i].name);
    }
    lua_pushliteral(L, REDIS_VERSION);
    lua_setfield(L, -2, "REDIS_VERSION");
    lua_pushinteger(L, REDIS_VERSION_NUM);
    lua_setfield(L, -2, "REDIS_VERSION_NUM");
}
