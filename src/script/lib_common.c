#include "script/lib_common.h"

#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include "script/interp.h"
#include "script/sandbox_internal.h"

void lua_out_begin(struct lua_out *o, struct lua_State *L)
{
    luaL_checkstack(L, 2, "too many arguments");
    lua_pushnil(L);
    o->L = L;
    o->p = o->small;
    o->n = 0;
    o->cap = sizeof o->small;
    o->slot = lua_gettop(L);
}

void lua_out_grow(struct lua_out *o, size_t n)
{
    luaL_checkstack(o->L, 1, "too many values");
    script_before_much(o->L);
    size_t cap = o->cap > SIZE_MAX / 4 ? SIZE_MAX / 2 : o->cap * 2;
    if (n > SIZE_MAX / 2 - o->n)
        luaL_error(o->L, "not enough memory");
    if (cap < o->n + n)
        cap = o->n + n;
    char *p = lua_newuserdata(o->L, cap);
    memcpy(p, o->p, o->n);
    lua_replace(o->L, o->slot);
    o->p = p;
    o->cap = cap;
}

void lua_out_end(struct lua_out *o)
{
    lua_pushlstring(o->L, o->p, o->n);
}

void lib_see_through(struct lua_State *L)
{
    if (!lua_getmetatable(L, -1))
        return;
    lua_pop(L, 1);
    if (!interp_is_face(L, -1))
        return;
    interp_true(L, -1);
    lua_replace(L, -2);
}
