/* What Debian's Lua 5.1 leaves open, and Redis' own copy of Lua (but for patterns) does not:

     unpack          counts its results in an int that overflows, and writes beyond the stack (CVE-2025-46817)
     find, match,    call themselves in C for every repetition and capture of a pattern: a long one ends the
   process gmatch, gsub string.rep      of "" does nothing up to 2^31 times, which no hook interrupts
     table.insert    moves 2^31 values that are not there, likewise
     collectgarbage  stops the collector for all scripts to come

   Those that go through much let the script be ended before.

   The pattern functions and rep stay Lua's: they are called in the frame of the guard, so that errors name
   them as ever. */
#include "script/guards.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include "script/interp.h"
#include "script/sandbox_internal.h"

/* Each level of a pattern takes up to 200 bytes of the C stack. */
#define PATTERN_LEVELS 10000

/* How far below its first place a table takes an insertion. */
#define INSERT_BELOW 1000000

/* unpack(table [, from [, to]]) */
static int guard_unpack(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    int from = luaL_optint(L, 2, 1);
    int to = lua_isnoneornil(L, 3) ? (int)lua_objlen(L, 1) : luaL_checkint(L, 3);
    if (from > to)
        return 0;
    int64_t n = (int64_t)to - from + 1;
    if (n > INT_MAX || !lua_checkstack(L, (int)n))
        return luaL_error(L, "too many results to unpack");
    for (int64_t i = from; i <= to; i++)
        lua_rawgeti(L, 1, (int)i);
    return (int)n;
}

/* Whether matching a pattern needs more of the C stack than it may have. */
static bool is_deep(const char *pattern, size_t n)
{
    size_t levels = 0;
    if (n <= PATTERN_LEVELS)
        return false;
    for (size_t i = 0; i < n; i++)
        switch (pattern[i]) {
        case '?':
        case '*':
        case '+':
        case '-':
        case '(':
        case ')':
            levels++;
            break;
        default:
            break;
        }
    return levels > PATTERN_LEVELS;
}

/* Lua's function, the upvalue, in this frame. It has no upvalues that it could miss. */
static int go_on(lua_State *L)
{
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

static bool is_long(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING && lua_objlen(L, index) >= MUCH_BYTES;
}

static int guard_pattern(lua_State *L)
{
    size_t n;
    if (is_long(L, 1))
        script_before_much(L);
    if (lua_type(L, 2) == LUA_TSTRING) {
        const char *pattern = lua_tolstring(L, 2, &n);
        if (is_deep(pattern, n))
            return luaL_error(L, "pattern too complex");
    }
    return go_on(L);
}

static int guard_find(lua_State *L)
{
    return lua_toboolean(L, 4) ? go_on(L) : guard_pattern(L);
}

static int guard_rep(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TSTRING && lua_objlen(L, 1) == 0) {
        luaL_checkint(L, 2);
        lua_pushliteral(L, "");
        return 1;
    }
    if (is_long(L, 1) || lua_tonumber(L, 2) >= MUCH_BYTES)
        script_before_much(L);
    return go_on(L);
}

static int guard_concat(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TTABLE && lua_objlen(L, 1) >= MUCH_ITEMS)
        script_before_much(L);
    return go_on(L);
}

/* table.insert(table [, position], value) */
static int guard_insert(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    int64_t end = (int64_t)lua_objlen(L, 1) + 1;
    int64_t at = end;
    switch (lua_gettop(L)) {
    case 2:
        interp_check_writable(L, 1);
        break;
    case 3:
        at = luaL_checkint(L, 2);
        luaL_argcheck(L, at >= -INSERT_BELOW, 2, "position out of bounds");
        interp_check_writable(L, 1);
        for (int64_t i = at > end ? at : end; i > at; i--) {
            lua_rawgeti(L, 1, (int)i - 1);
            lua_rawseti(L, 1, (int)i);
        }
        break;
    default:
        return luaL_error(L, "wrong number of arguments to 'insert'");
    }
    lua_rawseti(L, 1, (int)at);
    return 0;
}

/* What it changes is noted, and holds until the script has ended. */
static int guard_collectgarbage(lua_State *L)
{
    interp_of(L)->gc_changed = true;
    return go_on(L);
}

void guard_restore_collector(struct interp *in)
{
    if (!in->gc_changed)
        return;
    lua_gc(in->L, LUA_GCSETPAUSE, 200);
    lua_gc(in->L, LUA_GCSETSTEPMUL, 200);
    lua_gc(in->L, LUA_GCRESTART, 0);
    in->gc_changed = false;
}

/* Puts a guard before a function of a library. */
static void put_before(lua_State *L, int globals, const char *library, const char *name, lua_CFunction guard)
{
    lua_getfield(L, globals, library);
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, guard, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

void guard_libraries(struct lua_State *L, int globals)
{
    lua_pushcfunction(L, guard_unpack);
    lua_setfield(L, globals, "unpack");
    lua_getfield(L, globals, "collectgarbage");
    lua_pushcclosure(L, guard_collectgarbage, 1);
    lua_setfield(L, globals, "collectgarbage");
    put_before(L, globals, "string", "find", guard_find);
    put_before(L, globals, "string", "match", guard_pattern);
    put_before(L, globals, "string", "gmatch", guard_pattern);
    put_before(L, globals, "string", "gsub", guard_pattern);
    put_before(L, globals, "string", "rep", guard_rep);
    put_before(L, globals, "table", "concat", guard_concat);
    put_before(L, globals, "table", "insert", guard_insert);
}
