#include "script/convert.h"

#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/reply.h"
#include "script/sandbox_internal.h"

/* ---- RESP to Lua ---- */

/* RESP of our own making: whole, and well formed. */
struct reader {
    lua_State *L;
    const char *p;
    int resp;
};

static void push_value(struct reader *r);

/* The number up to CR LF. */
static int64_t read_number(struct reader *r)
{
    bool minus = *r->p == '-';
    uint64_t n = 0;
    for (r->p += minus; *r->p != '\r'; r->p++)
        n = n * 10 + (uint64_t)(*r->p - '0');
    r->p += 2;
    return (int64_t)(minus ? 0 - n : n);
}

static struct slice read_line(struct reader *r)
{
    const char *start = r->p;
    while (*r->p != '\r')
        r->p++;
    struct slice line = slice_of(start, (size_t)(r->p - start));
    r->p += 2;
    return line;
}

/* The bytes of a bulk string; false: it is null. */
static bool read_bulk(struct reader *r, struct slice *ret)
{
    int64_t n = read_number(r);
    if (n < 0)
        return false;
    *ret = slice_of(r->p, (size_t)n);
    r->p += n + 2;
    return true;
}

static void set_string(lua_State *L, const char *field, struct slice s)
{
    lua_pushlstring(L, s.p, s.n);
    lua_setfield(L, -2, field);
}

/* {field = line} */
static void push_line_table(struct reader *r, const char *field, int more)
{
    lua_createtable(r->L, 0, 1 + more);
    set_string(r->L, field, read_line(r));
}

/* So that the error is not counted again when the script passes it on. */
static void push_error(struct reader *r)
{
    push_line_table(r, "err", 1);
    interp_mark_told(r->L);
}

static void push_bulk(struct reader *r)
{
    struct slice s;
    if (read_bulk(r, &s))
        lua_pushlstring(r->L, s.p, s.n);
    else
        lua_pushboolean(r->L, 0);
}

static void push_array(struct reader *r)
{
    int64_t n = read_number(r);
    if (n < 0) {
        lua_pushboolean(r->L, 0);
        return;
    }
    lua_createtable(r->L, r->resp == 2 && n < INT32_MAX ? (int)n : 0,
                    0); /* nil is in RESP3 alone: # shows it */
    for (int64_t i = 1; i <= n; i++) {
        push_value(r);
        lua_rawseti(r->L, -2, (int)i);
    }
}

/* {map = {key = value}}, {set = {member = true}} */
static void push_keyed(struct reader *r, const char *field, bool values)
{
    int64_t n = read_number(r);
    lua_createtable(r->L, 0, 1);
    lua_createtable(r->L, 0, n < INT32_MAX ? (int)n : 0);
    for (int64_t i = 0; i < n; i++) {
        push_value(r);
        if (values)
            push_value(r);
        else
            lua_pushboolean(r->L, 1);
        if (lua_isnil(r->L, -2))
            lua_pop(r->L, 2);
        else
            lua_rawset(r->L, -3);
    }
    lua_setfield(r->L, -2, field);
}

static void push_verbatim(struct reader *r)
{
    struct slice s = {0};
    (void)read_bulk(r, &s); /* "txt:..." */
    lua_createtable(r->L, 0, 1);
    lua_createtable(r->L, 0, 2);
    set_string(r->L, "format", slice_of(s.p, 3));
    set_string(r->L, "string", slice_of(s.p + 4, s.n - 4));
    lua_setfield(r->L, -2, "verbatim_string");
}

static void push_double(struct reader *r)
{
    lua_createtable(r->L, 0, 1);
    lua_pushnumber(r->L, strtod(r->p, NULL));
    lua_setfield(r->L, -2, "double");
    (void)read_line(r);
}

static void push_value(struct reader *r)
{
    luaL_checkstack(r->L, 8, "too many nested replies");
    switch (*r->p++) {
    case ':':
        lua_pushnumber(r->L, (lua_Number)read_number(r));
        break;
    case '$':
        push_bulk(r);
        break;
    case '+':
        push_line_table(r, "ok", 0);
        break;
    case '-':
        push_error(r);
        break;
    case '*':
    case '>':
        push_array(r);
        break;
    case '%':
        push_keyed(r, "map", true);
        break;
    case '~':
        push_keyed(r, "set", false);
        break;
    case ',':
        push_double(r);
        break;
    case '#':
        lua_pushboolean(r->L, read_line(r).p[0] == 't');
        break;
    case '(':
        push_line_table(r, "big_number", 0);
        break;
    case '=':
        push_verbatim(r);
        break;
    default: /* '_' */
        (void)read_line(r);
        lua_pushnil(r->L);
    }
}

void convert_push(lua_State *L, struct slice said, int resp)
{
    struct reader r = {.L = L, .p = said.p, .resp = resp};
    if (said.n == 0)
        lua_pushnil(L);
    else
        push_value(&r);
}

/* ---- Lua to a reply ---- */

struct writer {
    lua_State *L;
    struct reply *reply;
    int resp;   /* the script's */
    size_t end; /* the reply may grow up to there */
};

static void say_value(struct writer *w);

/* Truncated; what an integer cannot hold is what Redis' machine makes of it. */
static int64_t to_integer(lua_Number n)
{
    return n >= -9223372036854775808.0 && n < 9223372036854775808.0 ? (int64_t)n : INT64_MIN;
}

/* Pushes a field of the table at the top; false, and nothing pushed, if it has another type. */
static bool get_field(lua_State *L, const char *field, int type)
{
    lua_pushstring(L, field);
    lua_rawget(L, -2);
    if (lua_type(L, -1) == type)
        return true;
    lua_pop(L, 1);
    return false;
}

static struct slice string_at(lua_State *L, int index)
{
    size_t n;
    const char *p = lua_tolstring(L, index, &n);
    return slice_of(p, n);
}

/* As Redis has it, where texts are C strings. */
static struct slice up_to_nul(struct slice s)
{
    return slice_of(s.p, strnlen(s.p, s.n));
}

struct slice convert_error_text(struct slice text)
{
    text = up_to_nul(text);
    while (text.n > 0 && (text.p[text.n - 1] == '\r' || text.p[text.n - 1] == '\n'))
        text.n--;
    return text;
}

/* The error whose table is at an index. */
static void say_error(lua_State *L, int table, struct reply *r, struct slice text)
{
    text = convert_error_text(text);
    reply_note_error(r, text.p); /* Lua ends strings with a NUL */
    r->told = interp_is_told(L, table);
    r->ops->error(r, text);
}

/* One line: what would end it becomes a space. May push a copy. */
static struct slice one_line(lua_State *L)
{
    struct slice s = string_at(L, -1);
    if (!memchr(s.p, '\r', s.n) && !memchr(s.p, '\n', s.n))
        return s;
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t i = 0; i < s.n; i++)
        luaL_addchar(&b, s.p[i] == '\r' || s.p[i] == '\n' ? ' ' : s.p[i]);
    luaL_pushresult(&b);
    return string_at(L, -1);
}

/* The values up to the first nil. */
static void say_array(struct writer *w)
{
    lua_State *L = w->L;
    size_t n = 0;
    for (;; n++) {
        lua_rawgeti(L, -1, (int)n + 1);
        bool end = lua_isnil(L, -1);
        lua_pop(L, 1);
        if (end)
            break;
    }
    reply_array(w->reply, n);
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(L, -1, (int)i);
        say_value(w);
    }
}

/* The table at the top, as a map or as the set of its keys. */
static void say_keyed(struct writer *w, bool values)
{
    lua_State *L = w->L;
    size_t n = 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        n++;
    w->reply->ops->aggregate(w->reply, values ? REPLY_MAP : REPLY_SET, n);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pushvalue(L, -2);
        say_value(w);
        if (values)
            say_value(w);
        else
            lua_pop(L, 1);
    }
}

/* {verbatim_string = {format, string}}; false, and nothing said or pushed, if the table at the top is none.
 */
static bool say_verbatim(struct writer *w)
{
    lua_State *L = w->L;
    int top = lua_gettop(L);
    bool said = false;
    if (get_field(L, "verbatim_string", LUA_TTABLE) && get_field(L, "string", LUA_TSTRING)) {
        struct slice text = string_at(L, -1);
        lua_pushliteral(L, "format");
        lua_rawget(L, -3);
        if (lua_type(L, -1) == LUA_TSTRING) {
            char format[3] = {' ', ' ', ' '};
            struct slice given = string_at(L, -1);
            memcpy(format, given.p, given.n < 3 ? given.n : 3);
            w->reply->ops->verbatim(w->reply, format, text);
            said = true;
        }
    }
    lua_settop(L, top);
    return said;
}

/* A table that stands for a value with a type of its own; false: it is an array. */
static bool say_typed(struct writer *w)
{
    lua_State *L = w->L;
    int top = lua_gettop(L);
    bool said = true;
    if (get_field(L, "err", LUA_TSTRING)) {
        say_error(L, top, w->reply, string_at(L, -1));
    } else if (get_field(L, "ok", LUA_TSTRING)) {
        w->reply->ops->simple(w->reply, up_to_nul(one_line(L)));
    } else if (get_field(L, "double", LUA_TNUMBER)) {
        reply_double(w->reply, lua_tonumber(L, -1));
    } else if (get_field(L, "big_number", LUA_TSTRING)) {
        w->reply->ops->big_number(w->reply, one_line(L));
    } else if (!say_verbatim(w)) {
        if (get_field(L, "map", LUA_TTABLE))
            say_keyed(w, true);
        else if (get_field(L, "set", LUA_TTABLE))
            say_keyed(w, false);
        else
            said = false;
    }
    lua_settop(L, top);
    return said;
}

static void say_boolean(struct writer *w, bool v)
{
    if (w->resp == 3)
        reply_bool(w->reply, v);
    else if (v)
        reply_integer(w->reply, 1);
    else
        reply_null(w->reply);
}

/* A table that has another one many times, and that one a third, is small, and its reply is not: there is no
   more of it than the script may have of memory. */
static void check_size(const struct writer *w)
{
    if (w->reply->ops->mark(w->reply) <= w->end)
        return;
    lua_pushliteral(w->L, "not enough memory");
    lua_error(w->L);
}

/* The value at the top, which is popped. */
static void say_value(struct writer *w)
{
    lua_State *L = w->L;
    if (!lua_checkstack(L, 8)) {
        reply_error(w->reply, "ERR reached lua stack limit");
        lua_pop(L, 1);
        return;
    }
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        check_size(w);
        reply_bulk(w->reply, string_at(L, -1));
        break;
    case LUA_TBOOLEAN:
        say_boolean(w, lua_toboolean(L, -1));
        break;
    case LUA_TNUMBER:
        reply_integer(w->reply, to_integer(lua_tonumber(L, -1)));
        break;
    case LUA_TTABLE:
        check_size(w);
        if (!say_typed(w))
            say_array(w);
        break;
    default:
        reply_null(w->reply);
    }
    lua_pop(L, 1);
}

bool convert_is_error(lua_State *L)
{
    int top = lua_gettop(L);
    bool is = lua_type(L, top) == LUA_TTABLE && get_field(L, "err", LUA_TSTRING);
    lua_settop(L, top);
    return is;
}

void convert_reply(lua_State *L, struct reply *r, int script_resp)
{
    size_t start = r->ops->mark(r), max = interp_of(L)->memory_max;
    struct writer w = {
        .L = L, .reply = r, .resp = script_resp, .end = max > SIZE_MAX - start ? SIZE_MAX : start + max};
    say_value(&w);
}
