#include "script/load.h"

#include <ctype.h>
#include <lauxlib.h>
#include <lua.h>
#include <strings.h>

#include "base/clock.h"
#include "script/library.h"
#include "script/run.h"
#include "script/sandbox_internal.h"

#define CHUNK         "@user_function"
#define TIMEOUT_US    500000
#define TIMEOUT_AGAIN 10000000 /* it was quick enough once; what is slow now is the machine */
#define NAME          "redis.register_function"

static const char globals_key = 0; /* in the registry: the true table of globals while a library loads */

/* The library whose body runs. */
struct loading {
    struct library *lib;
    bool again;
    int64_t until_us; /* monotonic */
    int ref;          /* of the body */
    struct buf *err;
};

/* ---- redis.register_function ---- */

/* What its arguments say; the strings are Lua's. */
struct registration {
    struct slice name, description;
    bool named, described;
    int callback; /* where it is on the stack; 0: not given */
    uint32_t flags;
};

/* The string at the top of the stack, which stays referred to by a table or the stack. */
static bool take_string(lua_State *L, int index, struct slice *ret)
{
    if (!lua_isstring(L, index))
        return false;
    ret->p = lua_tolstring(L, index, &ret->n);
    return true;
}

/* Flags have no case here. */
static uint32_t flag_of(struct slice name)
{
    char lower[32];
    if (name.n > sizeof lower)
        return 0;
    for (size_t i = 0; i < name.n; i++)
        lower[i] = (char)tolower((unsigned char)name.p[i]);
    return script_flag_of(slice_of(lower, name.n));
}

/* The flags in the table at an index. */
static void take_flags(lua_State *L, int index, struct registration *r)
{
    if (lua_type(L, index) != LUA_TTABLE)
        interp_raise(L, "ERR flags argument to " NAME " must be a table representing function flags");
    for (int i = 1;; i++) {
        struct slice flag;
        lua_rawgeti(L, index, i);
        if (lua_isnil(L, -1))
            break;
        uint32_t bit = take_string(L, -1, &flag) ? flag_of(flag) : 0;
        if (!bit)
            interp_raise(L, "ERR unknown flag given");
        r->flags |= bit;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* One field of the table of named arguments: its key is at index - 1, its value at index. What is taken stays
   on the stack, below them. */
static void take_named(lua_State *L, int index, struct registration *r)
{
    lua_pushvalue(L, index - 1); /* lua_tolstring would change the key itself, if it is a number */
    const char *key = lua_tostring(L, -1);
    if (!key)
        interp_raise(L, "ERR named argument key given to " NAME " is not a string");
    if (strcasecmp(key, "function_name") == 0) {
        r->named = true;
        lua_pushvalue(L, index);
        if (!take_string(L, -1, &r->name))
            interp_raise(L, "ERR function_name argument given to " NAME " must be a string");
        lua_replace(L, 2);
    } else if (strcasecmp(key, "description") == 0) {
        r->described = true;
        lua_pushvalue(L, index);
        if (!take_string(L, -1, &r->description))
            interp_raise(L, "ERR description argument given to " NAME " must be a string");
        lua_replace(L, 3);
    } else if (strcasecmp(key, "callback") == 0) {
        if (lua_type(L, index) != LUA_TFUNCTION)
            interp_raise(L, "ERR callback argument given to " NAME " must be a function");
        r->callback = 4;
        lua_pushvalue(L, index);
        lua_replace(L, 4);
    } else if (strcasecmp(key, "flags") == 0) {
        take_flags(L, index, r);
    } else {
        interp_raise(L, "ERR unknown argument given to " NAME);
    }
    lua_settop(L, index - 1);
}

static void take_table(lua_State *L, struct registration *r)
{
    if (lua_type(L, 1) != LUA_TTABLE)
        interp_raise(L, "ERR calling " NAME " with a single argument is only applicable to Lua table "
                        "(representing named arguments).");
    lua_settop(L, 4);
    lua_pushnil(L);
    while (lua_next(L, 1))
        take_named(L, lua_gettop(L), r);
    if (!r->named)
        interp_raise(L, "ERR " NAME " must get a function name argument");
    if (!r->callback)
        interp_raise(L, "ERR " NAME " must get a callback argument");
}

static void take_positions(lua_State *L, struct registration *r)
{
    if (!take_string(L, 1, &r->name))
        interp_raise(L, "ERR first argument to " NAME " must be a string");
    if (lua_type(L, 2) != LUA_TFUNCTION)
        interp_raise(L, "ERR second argument to " NAME " must be a function");
    r->callback = 2;
}

static int register_function(lua_State *L)
{
    struct loading *now = interp_of(L)->loading;
    struct registration r = {0};
    int n = lua_gettop(L);
    if (!now)
        interp_raise(L, "ERR " NAME " can only be called on FUNCTION LOAD command");
    if (n < 1 || n > 2)
        interp_raise(L, "ERR wrong number of arguments to " NAME);
    if (n == 1)
        take_table(L, &r);
    else
        take_positions(L, &r);
    if (!library_name_is_valid(r.name))
        interp_raise(L, "ERR " LIBRARY_BAD_NAME);
    lua_pushvalue(L, r.callback);
    int ref = luaL_ref(L, LUA_REGISTRYINDEX);
    if (!library_add(now->lib, r.name, r.flags, ref, r.described ? &r.description : NULL)) {
        luaL_unref(L, LUA_REGISTRYINDEX, ref);
        interp_raise(L, "ERR Function already exists in the library");
    }
    return 0;
}

/* ---- the globals while a library loads ---- */

static int log_once(lua_State *L)
{
    if (interp_of(L)->loading && interp_of(L)->loading->again)
        return 0;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

/* Pushes their true table, made on first use. */
static void push_load_globals(lua_State *L)
{
    static const char *const kept[] = {"LOG_DEBUG",   "LOG_VERBOSE",   "LOG_NOTICE",
                                       "LOG_WARNING", "REDIS_VERSION", "REDIS_VERSION_NUM"};
    lua_pushlightuserdata(L, (void *)(uintptr_t)&globals_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_isnil(L, -1))
        return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 1); /* globals */
    lua_createtable(L, 0, 8); /* redis */
    interp_push_api(L);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        lua_getfield(L, -1, kept[i]);
        lua_setfield(L, -3, kept[i]);
    }
    lua_getfield(L, -1, "log");
    lua_pushcclosure(L, log_once, 1);
    lua_setfield(L, -3, "log");
    lua_pop(L, 1);
    lua_pushcfunction(L, register_function);
    lua_setfield(L, -2, "register_function");
    sandbox_guard(L);
    interp_protect(L);
    lua_setfield(L, -2, "redis");
    sandbox_guard(L);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&globals_key);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

/* The face of the globals leads to the table at the top of the stack, which is popped. Allocates nothing. */
static void lead_face(lua_State *L, const struct interp *in)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, in->face);
    lua_getmetatable(L, -1);
    lua_pushliteral(L, "__index");
    lua_pushvalue(L, -4);
    lua_rawset(L, -3);
    lua_pop(L, 3);
}

/* ---- running the body ---- */

static void load_hook(lua_State *L, lua_Debug *at)
{
    (void)at;
    if (clock_mono_us() > interp_of(L)->loading->until_us)
        interp_raise(L, "ERR FUNCTION LOAD timeout");
}

/* The error at the top of the stack: an error object's text, or Lua's own message. */
static void describe(lua_State *L, struct buf *err)
{
    bool object = lua_type(L, -1) == LUA_TTABLE;
    if (object)
        lua_getfield(L, -1, "err");
    const char *text = lua_tostring(L, -1);
    buf_addf(err, "ERR Error registering functions: %s%s", object ? "" : "ERR ", text ? text : "(null)");
}

static int run_body(lua_State *L)
{
    struct loading *now = lua_touserdata(L, 1);
    struct interp *in = interp_of(L);
    push_load_globals(L);
    lead_face(L, in);
    in->loading = now;
    lua_sethook(L, load_hook, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
    lua_rawgeti(L, LUA_REGISTRYINDEX, now->ref);
    int rc = lua_pcall(L, 0, 0, 0);
    lua_sethook(L, script_hook, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
    in->loading = NULL;
    lua_rawgeti(L, LUA_REGISTRYINDEX, in->globals);
    lead_face(L, in);
    if (rc != 0)
        describe(L, now->err);
    return 0;
}

bool load_library(struct interp *in, struct library *lib, struct slice code, bool again, struct buf *err)
{
    struct loading now = {.lib = lib, .again = again, .err = err};
    struct buf why = {0};
    if (!interp_compile(in, code, CHUNK, &now.ref, &why)) {
        buf_addf(err, "ERR Error compiling function: %.*s", (int)why.len, why.p);
        buf_release(&why);
        return false;
    }
    now.until_us = clock_mono_us() + (again ? TIMEOUT_AGAIN : TIMEOUT_US);
    if (lua_cpcall(in->L, run_body, &now) != 0 && !err->len)
        buf_addf(err, "ERR Error registering functions: ERR not enough memory");
    lua_settop(in->L, 0);
    interp_forget(in, now.ref);
    return err->len == 0;
}
