/* A Lua state: memory, compiling, read-only tables, errors and where they arose. */
#include "script/interp.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/sandbox_internal.h"

/* ---- memory ---- */

/* Lua 5.1 refuses what does not fit, however much of what there is is garbage, and its collector is lazy: it
   begins again when there is twice as much as it has left, and falls behind where garbage is large. So a
   running script that comes halfway from what was in use to the bound has all its garbage collected before
   its next instruction. Where little is in use that never happens. */
static void collect_soon(struct interp *in)
{
    in->collect_at = SIZE_MAX;
    lua_sethook(in->L, script_hook, LUA_MASKCOUNT, 1);
}

void interp_collected(struct interp *in)
{
    size_t room = in->memory_max > in->memory ? in->memory_max - in->memory : 0;
    size_t least = in->memory_max / 16;
    in->collect_at = in->memory + (room / 2 > least ? room / 2 : least);
}

/* Lua's allocator. What shrinks is never refused: Lua relies on it. */
static void *allocate(void *arg, void *p, size_t old, size_t n)
{
    struct interp *in = arg;
    if (n == 0) {
        free(p);
        in->memory -= old;
        return NULL;
    }
    if (n > old && (in->memory > in->memory_max || n - old > in->memory_max - in->memory))
        return NULL;
    void *q = p ? realloc(p, n) : malloc(n); /* malloc is the faster one for what is new */
    if (!q)
        return n <= old ? p : NULL;
    in->memory = in->memory - old + n;
    if (in->memory > in->collect_at && in->run)
        collect_soon(in);
    return q;
}

struct interp *interp_of(lua_State *L)
{
    void *arg;
    (void)lua_getallocf(L, &arg);
    return arg;
}

struct interp *interp_new(struct scripts *scripts, enum interp_kind kind, size_t memory_max)
{
    struct interp *in = mem_zalloc(sizeof *in);
    *in = (struct interp){.kind = kind, .scripts = scripts, .memory_max = memory_max, .collect_at = SIZE_MAX};
    in->L = lua_newstate(allocate, in);
    if (!in->L || lua_cpcall(in->L, sandbox_open, in) != 0) {
        interp_free(in);
        return NULL;
    }
    return in;
}

void interp_free(struct interp *in)
{
    if (!in)
        return;
    if (in->L)
        lua_close(in->L);
    mem_free(in);
}

/* ---- compiling ---- */

struct text {
    bool begun;
    struct slice rest;
};

/* Lua takes a text for bytecode by its first byte: a space in front makes it what it is not. */
static const char *read_text(lua_State *L, void *arg, size_t *ret_n)
{
    struct text *t = arg;
    const char *p = t->rest.p;
    (void)L;
    if (!t->begun) {
        t->begun = true;
        *ret_n = 1;
        return " ";
    }
    *ret_n = t->rest.n;
    t->rest = (struct slice){0};
    return p;
}

int interp_load(lua_State *L, struct slice text, const char *chunk)
{
    struct text t = {.begun = text.n == 0 || text.p[0] != LUA_SIGNATURE[0], .rest = text};
    return lua_load(L, read_text, &t, chunk);
}

struct job {
    struct slice text;
    const char *chunk;
    int ref;
};

static int compile(lua_State *L)
{
    struct job *job = lua_touserdata(L, 1);
    if (interp_load(L, job->text, job->chunk) != 0)
        return lua_error(L);
    job->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

bool interp_compile(struct interp *in, struct slice text, const char *chunk, int *ret_ref, struct buf *err)
{
    struct job job = {.text = text, .chunk = chunk};
    if (lua_cpcall(in->L, compile, &job) != 0) {
        buf_addf(err, "%s", lua_tostring(in->L, -1));
        lua_pop(in->L, 1);
        return false;
    }
    *ret_ref = job.ref;
    return true;
}

/* Not protected: a few bytes beyond the bound are better than an error that nobody catches. */
void interp_forget(struct interp *in, int ref)
{
    size_t max = in->memory_max;
    in->memory_max = SIZE_MAX;
    luaL_unref(in->L, LUA_REGISTRYINDEX, ref);
    in->memory_max = max;
}

/* From L, which may be a coroutine. */
static void collect(struct interp *in, lua_State *L)
{
    size_t max = in->memory_max;
    in->memory_max = SIZE_MAX;
    lua_gc(L, LUA_GCCOLLECT, 0);
    in->memory_max = max;
    interp_collected(in);
}

void interp_collect(struct interp *in)
{
    collect(in, in->L);
}

bool interp_collect_due(struct interp *in, lua_State *L)
{
    if (in->collect_at != SIZE_MAX)
        return false;
    collect(in, L);
    return true;
}

/* ---- read-only tables ---- */

static const char face_key = 0; /* in a face's metatable: the true table stands at this address */

static int refuse_write(lua_State *L)
{
    return luaL_error(L, "Attempt to modify a readonly table");
}

void interp_protect(lua_State *L)
{
    lua_createtable(L, 0, 0); /* the face */
    lua_createtable(L, 0, 3); /* its metatable */
    lua_pushlightuserdata(L, (void *)(uintptr_t)&face_key);
    lua_pushvalue(L, -4);
    lua_rawset(L, -3);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, refuse_write);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
    lua_replace(L, -2);
}

/* Pushes the true table of a face; pushes nothing and returns false if the value is none. */
static bool push_true(lua_State *L, int index)
{
    if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index))
        return false;
    lua_pushlightuserdata(L, (void *)(uintptr_t)&face_key);
    lua_rawget(L, -2);
    lua_replace(L, -2);
    if (!lua_isnil(L, -1))
        return true;
    lua_pop(L, 1);
    return false;
}

bool interp_is_face(lua_State *L, int index)
{
    if (!push_true(L, index))
        return false;
    lua_pop(L, 1);
    return true;
}

void interp_true(lua_State *L, int index)
{
    if (!push_true(L, index))
        lua_pushvalue(L, index);
}

void interp_check_writable(lua_State *L, int index)
{
    if (!interp_is_face(L, index))
        return;
    lua_pushliteral(L, "Attempt to modify a readonly table"); /* without a position, as Redis' Lua says it */
    lua_error(L);
}

/* ---- errors ---- */

void interp_push_error(lua_State *L, struct slice text)
{
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, text.p, text.n);
    lua_setfield(L, -2, "err");
}

static const char TOLD[] = "ignore_error_stats_update";

void interp_mark_told(lua_State *L)
{
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, TOLD);
}

bool interp_is_told(lua_State *L, int table)
{
    lua_pushvalue(L, table);
    lua_pushstring(L, TOLD);
    lua_rawget(L, -2);
    bool told = lua_toboolean(L, -1);
    lua_pop(L, 2);
    return told;
}

int interp_raise(lua_State *L, const char *text)
{
    interp_push_error(L, slice_str(text));
    lua_error(L);
    abort(); /* lua_error does not return, but is not declared so */
}

/* Where an error arose: the function that raised it or, when that is one of C, the one that called it. The
   error becomes a table {err, source, line}. Only this is called with an error before the stack is given
   up. */
int interp_handle_error(lua_State *L)
{
    lua_Debug at;
    bool known = lua_getstack(L, 1, &at) && lua_getinfo(L, "S", &at);
    if (known && strcmp(at.what, "C") == 0)
        known = lua_getstack(L, 2, &at) && lua_getinfo(L, "S", &at);
    lua_settop(L, 1);
    if (lua_type(L, 1) != LUA_TTABLE) {
        size_t n = 0;
        lua_getglobal(L, "tostring");
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        const char *text = lua_tolstring(L, -1, &n);
        lua_createtable(L, 0, 3);
        lua_pushliteral(L, "ERR ");
        lua_pushlstring(L, text ? text : "", text ? n : 0);
        lua_concat(L, 2);
        lua_setfield(L, -2, "err");
    }
    if (known && lua_getinfo(L, "Sl", &at) && !interp_is_face(L, -1)) {
        lua_pushstring(L, at.source);
        lua_setfield(L, -2, "source");
        lua_pushinteger(L, at.currentline);
        lua_setfield(L, -2, "line");
    }
    return 1;
}
