/* What scripts find in a state: Lua's libraries less what reaches outside, Redis' table, the other modules.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <string.h>

#include "script/guards.h"
#include "script/interp.h"
#include "script/sandbox_internal.h"

/* All that stays of Lua's own globals; the rest (print, dofile, require, getfenv, ...) goes. */
static const char *const kept[] = {
    "_VERSION", "assert",   "collectgarbage", "coroutine", "error",  "gcinfo",       "getmetatable",
    "ipairs",   "load",     "loadstring",     "math",      "next",   "pairs",        "pcall",
    "rawequal", "rawget",   "rawset",         "select",    "string", "setmetatable", "table",
    "tonumber", "tostring", "type",           "unpack",    "xpcall", NULL,
};

static int nonexistent(lua_State *L)
{
    if (!lua_isstring(L, 2))
        return luaL_error(L, "Second argument to luaProtectedTableError must be a string or number");
    return luaL_error(L, "Script attempted to access nonexistent global variable '%s'", lua_tostring(L, 2));
}

static void open_library(lua_State *L, lua_CFunction open, const char *name)
{
    lua_pushcfunction(L, open);
    lua_pushstring(L, name);
    lua_call(L, 1, 0);
}

/* Copies what is kept of the table of globals at `from` into the one at `to`. */
static void copy_kept(lua_State *L, int from, int to)
{
    for (size_t i = 0; kept[i]; i++) {
        lua_getfield(L, from, kept[i]);
        lua_setfield(L, to, kept[i]);
    }
}

/* The libraries become read-only, those of Lua and the modules alike. */
static void protect_tables(lua_State *L, int globals)
{
    lua_pushnil(L);
    while (lua_next(L, globals)) {
        if (lua_type(L, -1) == LUA_TTABLE) {
            interp_protect(L);
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, globals); /* a field that is there: the walk goes on */
        } else {
            lua_pop(L, 1);
        }
    }
}

static void add_modules(lua_State *L, int globals)
{
    for (const struct interp_module *m = interp_modules; m->name; m++) {
        lua_pushcfunction(L, m->open);
        lua_pushstring(L, m->name);
        lua_call(L, 1, 1);
        lua_setfield(L, globals, m->name);
    }
}

void sandbox_guard(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, nonexistent);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

/* What getmetatable shows of the guard is read-only too. */
static void guard_globals(lua_State *L, int globals)
{
    lua_pushvalue(L, globals);
    sandbox_guard(L);
    lua_getmetatable(L, -1);
    interp_protect(L);
    sandbox_set_shown(L, globals);
    lua_pop(L, 1);
}

/* What Lua makes where nothing would catch its error for want of memory is made now: the head of the list of
   free references, for luaL_unref, and the text of one of its own errors. */
static void need_no_memory(lua_State *L)
{
    lua_pushliteral(L, "error in error handling");
    (void)luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushboolean(L, 1);
    luaL_unref(L, LUA_REGISTRYINDEX, luaL_ref(L, LUA_REGISTRYINDEX));
}

int sandbox_open(lua_State *L)
{
    struct interp *in = lua_touserdata(L, 1);
    lua_settop(L, 0);
    open_library(L, luaopen_base, "");
    open_library(L, luaopen_table, LUA_TABLIBNAME);
    open_library(L, luaopen_string, LUA_STRLIBNAME);
    open_library(L, luaopen_math, LUA_MATHLIBNAME);
    lua_createtable(L, 0, 64);
    const int globals = lua_gettop(L);
    copy_kept(L, LUA_GLOBALSINDEX, globals);
    guard_libraries(L, globals);
    sandbox_replace_base(L, globals);
    add_modules(L, globals);
    interp_push_api(L);
    lua_setfield(L, globals, "redis");
    if (in->kind == INTERP_EVAL) {
        lua_pushcfunction(L, interp_handle_error);
        lua_setfield(L, globals, "__redis__err__handler");
    }
    protect_tables(L, globals);
    sandbox_show_strings(L, globals);
    guard_globals(L, globals);

    lua_pushcfunction(L, interp_handle_error);
    in->handler = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, globals);
    in->globals = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, globals);
    interp_protect(L);
    lua_pushvalue(L, -1);
    in->face = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, -1);
    lua_setfield(L, globals, "_G");
    lua_replace(L, LUA_GLOBALSINDEX);
    lua_sethook(L, script_hook, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
    need_no_memory(L);
    lua_gc(L, LUA_GCCOLLECT, 0);
    return 0;
}
