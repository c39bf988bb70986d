/* The functions of Lua's base that scripts get in a form of ours, because Lua's would look past the face of a
   read-only table, load bytecode, draw random numbers that differ, or hold back the end of a run. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <stdint.h>

#include "script/interp.h"
#include "script/run.h"
#include "script/sandbox_internal.h"
#include "exec/executor.h"
#include "script/scripts.h"

static const char shown_key = 0; /* in the registry: what getmetatable shows, by the value's true table */

static void push_shown_tables(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)&shown_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
}

void sandbox_set_shown(lua_State *L, int index)
{
    push_shown_tables(L);
    lua_pushvalue(L, index);
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_pop(L, 2);
}

/* ---- metatables ---- */

static int base_getmetatable(lua_State *L)
{
    luaL_checkany(L, 1);
    bool string = lua_type(L, 1) == LUA_TSTRING;
    if (string || interp_is_face(L, 1)) {
        push_shown_tables(L);
        if (string)
            lua_pushliteral(L, "string");
        else
            interp_true(L, 1);
        lua_rawget(L, -2);
        return 1;
    }
    if (!lua_getmetatable(L, 1)) {
        lua_pushnil(L);
        return 1;
    }
    luaL_getmetafield(L, 1, "__metatable");
    return 1;
}

static int base_setmetatable(lua_State *L)
{
    int t = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, t == LUA_TNIL || t == LUA_TTABLE, 2, "nil or table expected");
    interp_check_writable(L, 1);
    if (luaL_getmetafield(L, 1, "__metatable"))
        return luaL_error(L, "cannot change a protected metatable");
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* ---- walking and raw access ---- */

static int base_next(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    interp_true(L, 1);
    lua_replace(L, 1);
    if (lua_next(L, 1))
        return 2;
    lua_pushnil(L);
    return 1;
}

/* upvalues: Lua's next, and ours */
static int base_pairs(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushvalue(L, lua_upvalueindex(interp_is_face(L, 1) ? 2 : 1));
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

static int base_rawget(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    interp_true(L, 1);
    lua_replace(L, 1);
    lua_rawget(L, 1);
    return 1;
}

static int base_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    interp_check_writable(L, 1);
    lua_rawset(L, 1);
    return 1;
}

/* upvalue: table.foreach, called in this frame, so that its errors name the script's line */
static int call_foreach(lua_State *L)
{
    if (interp_is_face(L, 1)) {
        interp_true(L, 1);
        lua_replace(L, 1);
    }
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* ---- what catches errors ---- */

/* Errors that end the run are not caught. */
static void pass_end_on(lua_State *L)
{
    if (script_run_ends(interp_of(L)->run))
        lua_error(L);
}

/* As Redis' does, it gives an error object's text in the place of the object. */
static int base_pcall(lua_State *L)
{
    if (lua_gettop(L) == 0)
        lua_pushboolean(L, 1); /* which cannot be called, says Redis */
    if (lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0) == 0) {
        lua_pushboolean(L, 1);
        lua_insert(L, 1);
        return lua_gettop(L);
    }
    pass_end_on(L);
    if (lua_type(L, -1) == LUA_TTABLE) {
        lua_getfield(L, -1, "err");
        if (!lua_isstring(L, -1))
            lua_pop(L, 1);
    }
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

/* upvalue: the script's function for errors. It is not called for the error that ends the run: while that is
   raised by the hook, the hook would not end the function. */
static int handle_error(lua_State *L)
{
    if (script_run_ends(interp_of(L)->run))
        return 1;
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int base_xpcall(lua_State *L)
{
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    if (lua_isfunction(L, 2) && lua_tocfunction(L, 2) != interp_handle_error) /* which looks at its caller */
        lua_pushcclosure(L, handle_error, 1);
    lua_insert(L, 1);
    int rc = lua_pcall(L, 0, LUA_MULTRET, 1);
    if (rc != 0)
        pass_end_on(L);
    lua_pushboolean(L, rc == 0);
    lua_replace(L, 1);
    return lua_gettop(L);
}

/* upvalue: Lua's resume, called in this frame, so that its errors name the script's line */
static int base_resume(lua_State *L)
{
    int n = lua_tocfunction(L, lua_upvalueindex(1))(L);
    pass_end_on(L);
    return n;
}

/* ---- loading ---- */

static int loaded(lua_State *L, int rc)
{
    if (rc == 0)
        return 1;
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

static int base_loadstring(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    const char *chunk = luaL_optstring(L, 2, text);
    return loaded(L, interp_load(L, slice_of(text, n), chunk));
}

#define PIECE 3 /* where the last piece stands, so that it stays */

/* In front of the first piece there is a space: bytecode would be known by its first byte. */
static const char *next_piece(lua_State *L, void *arg, size_t *ret_n)
{
    bool *begun = arg;
    if (!*begun) {
        *begun = true;
        *ret_n = 1;
        return " ";
    }
    luaL_checkstack(L, 2, "too many nested functions");
    lua_pushvalue(L, 1);
    lua_call(L, 0, 1);
    if (lua_isnil(L, -1)) {
        *ret_n = 0;
        return NULL;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "reader function must return a string");
    lua_replace(L, PIECE);
    return lua_tolstring(L, PIECE, ret_n);
}

static int base_load(lua_State *L)
{
    const char *chunk = luaL_optstring(L, 2, "=(load)");
    bool begun = false;
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, PIECE);
    return loaded(L, lua_load(L, next_piece, &begun, chunk));
}

/* ---- random numbers ---- */

/* POSIX' 48-bit generator. As in Redis 7.0 each script goes on where the one before it has ended. */
static int32_t draw(struct scripts *s)
{
    uint64_t *state = &s->executor->random;
    *state = (*state * 0x5DEECE66Du + 0xB) & 0xFFFFFFFFFFFFu;
    return (int32_t)(*state >> 17);
}

static int base_random(lua_State *L)
{
    lua_Number r = (lua_Number)(draw(interp_of(L)->scripts) % INT32_MAX) / (lua_Number)INT32_MAX;
    switch (lua_gettop(L)) {
    case 0:
        lua_pushnumber(L, r);
        return 1;
    case 1: {
        int to = luaL_checkint(L, 1);
        luaL_argcheck(L, 1 <= to, 1, "interval is empty");
        lua_pushnumber(L, floor(r * to) + 1);
        return 1;
    }
    case 2: {
        int from = luaL_checkint(L, 1), to = luaL_checkint(L, 2);
        luaL_argcheck(L, from <= to, 2, "interval is empty");
        /* The width wraps around, as Redis' does. */
        lua_pushnumber(L, floor(r * (int32_t)((uint32_t)to - (uint32_t)from + 1)) + from);
        return 1;
    }
    default:
        return luaL_error(L, "wrong number of arguments");
    }
}

static int base_randomseed(lua_State *L)
{
    interp_of(L)->scripts->executor->random = (uint64_t)(uint32_t)luaL_checkint(L, 1) << 16 | 0x330E;
    return 0;
}

/* ---- all of them ---- */

/* Wraps a field of a library at the top of the stack. */
static void wrap(lua_State *L, const char *field, lua_CFunction fn)
{
    lua_getfield(L, -1, field);
    lua_pushcclosure(L, fn, 1);
    lua_setfield(L, -2, field);
}

static void replace_in_libraries(lua_State *L, int globals)
{
    static const luaL_Reg random[] = {{"random", base_random}, {"randomseed", base_randomseed}, {NULL, NULL}};
    lua_getfield(L, globals, "table");
    /* remove and sort find nothing in a face, and write nothing there; guards.c has insert */
    wrap(L, "foreach", call_foreach);
    lua_pop(L, 1);
    lua_getfield(L, globals, "coroutine");
    wrap(L, "resume", base_resume);
    lua_pop(L, 1);
    lua_getfield(L, globals, "math");
    luaL_register(L, NULL, random);
    lua_pop(L, 1);
}

void sandbox_replace_base(lua_State *L, int globals)
{
    static const luaL_Reg base[] = {
        {"getmetatable", base_getmetatable},
        {"setmetatable", base_setmetatable},
        {"rawget", base_rawget},
        {"rawset", base_rawset},
        {"pcall", base_pcall},
        {"xpcall", base_xpcall},
        {"load", base_load},
        {"loadstring", base_loadstring},
        {NULL, NULL},
    };
    lua_pushvalue(L, globals);
    luaL_register(L, NULL, base);
    lua_getfield(L, -1, "next");
    lua_pushcfunction(L, base_next);
    lua_pushvalue(L, -1);
    lua_setfield(L, globals, "next");
    lua_pushcclosure(L, base_pairs, 2);
    lua_setfield(L, globals, "pairs");
    lua_pop(L, 1);
    replace_in_libraries(L, globals);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&shown_key);
    lua_createtable(L, 0, 2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

void sandbox_show_strings(lua_State *L, int globals)
{
    push_shown_tables(L);
    lua_createtable(L, 0, 1);
    lua_getfield(L, globals, "string");
    lua_setfield(L, -2, "__index");
    interp_protect(L);
    lua_setfield(L, -2, "string");
    lua_pop(L, 1);
}
