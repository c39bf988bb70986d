/* cjson.encode, with the rules and the errors of lua-cjson 2.1.

   It is not that package's: its buffer is beside Lua's memory, unbounded and counted in int (CVE-2022-24834,
   which Debian's has), so a script of one line that nests a table in itself a few times ends the process.
   This one writes into Lua's memory; what does not fit raises Lua's error. */
#include "script/lib_cjson_internal.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <lauxlib.h>
#include <lua.h>

#include "script/lib_common.h"

#define NOT_AN_ARRAY (-1)

struct encoder {
    lua_State *L;
    const struct json_settings *set;
    struct lua_out out;
};

static void refuse(lua_State *L, int index, const char *why)
{
    luaL_error(L, "Cannot serialise %s: %s", luaL_typename(L, index), why);
}

/* What a JSON string has as it is. */
static inline bool is_plain(unsigned char c)
{
    return c >= 32 && c != 127 && c != '"' && c != '\\' && c != '/';
}

/* The escape of a byte that is not plain. */
static const char *escape_of(unsigned char c, char hex[8])
{
    switch (c) {
    case '\b':
        return "\\b";
    case '\t':
        return "\\t";
    case '\n':
        return "\\n";
    case '\f':
        return "\\f";
    case '\r':
        return "\\r";
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '/':
        return "\\/";
    default:
        snprintf(hex, 8, "\\u%04x", c);
        return hex;
    }
}

static void add_string(struct encoder *e, int index)
{
    size_t n, from = 0;
    const char *s = lua_tolstring(e->L, index, &n);
    lua_out_byte(&e->out, '"');
    for (size_t i = 0; i < n; i++) {
        char hex[8];
        if (is_plain((unsigned char)s[i]))
            continue;
        const char *escape = escape_of((unsigned char)s[i], hex);
        lua_out_add(&e->out, s + from, i - from);
        lua_out_add(&e->out, escape, strlen(escape));
        from = i + 1;
    }
    lua_out_add(&e->out, s + from, n - from);
    lua_out_byte(&e->out, '"');
}

static void add_number(struct encoder *e, int index)
{
    double d = lua_tonumber(e->L, index);
    if (!isfinite(d)) {
        if (e->set->encode_invalid == JSON_INVALID_REFUSED)
            refuse(e->L, index, "must not be NaN or Inf");
        if (e->set->encode_invalid == JSON_INVALID_NULL) {
            lua_out_add(&e->out, "null", 4);
            return;
        }
        if (isnan(d)) { /* its sign is nobody's business */
            lua_out_add(&e->out, "nan", 3);
            return;
        }
    }
    char *to = lua_out_room(&e->out, 32);
    e->out.n += (size_t)snprintf(to, 32, "%.*g", e->set->precision, d);
}

/* How long the array is that the table at the top is; NOT_AN_ARRAY: an object. The highest key is kept in an
   int: one beyond is not seen, and is left out or makes an object, as ever. */
static int array_length(struct encoder *e)
{
    lua_State *L = e->L;
    int highest = 0;
    uint32_t items = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        if (!(key >= 1 && floor(key) == key)) {
            lua_pop(L, 2);
            return NOT_AN_ARRAY;
        }
        if (key > highest)
            highest = key <= INT_MAX ? (int)key : INT_MIN;
        items++;
        lua_pop(L, 1);
    }
    if (e->set->sparse_ratio > 0 && highest > (int32_t)(items * (uint32_t)e->set->sparse_ratio) &&
        highest > e->set->sparse_safe) {
        if (!e->set->sparse_convert)
            refuse(L, -1, "excessively sparse array");
        return NOT_AN_ARRAY;
    }
    return highest;
}

static void add_value(struct encoder *e, int depth);

static void add_array(struct encoder *e, int depth, int n)
{
    lua_out_byte(&e->out, '[');
    for (int64_t i = 1; i <= n; i++) {
        if (i > 1)
            lua_out_byte(&e->out, ',');
        lua_rawgeti(e->L, -1, (int)i);
        add_value(e, depth);
        lua_pop(e->L, 1);
    }
    lua_out_byte(&e->out, ']');
}

static void add_object(struct encoder *e, int depth)
{
    bool first = true;
    lua_out_byte(&e->out, '{');
    lua_pushnil(e->L);
    while (lua_next(e->L, -2)) {
        if (!first)
            lua_out_byte(&e->out, ',');
        first = false;
        switch (lua_type(e->L, -2)) {
        case LUA_TNUMBER:
            lua_out_byte(&e->out, '"');
            add_number(e, -2);
            lua_out_byte(&e->out, '"');
            break;
        case LUA_TSTRING:
            add_string(e, -2);
            break;
        default:
            refuse(e->L, -2, "table key must be a number or string");
        }
        lua_out_byte(&e->out, ':');
        add_value(e, depth);
        lua_pop(e->L, 1);
    }
    lua_out_byte(&e->out, '}');
}

static void add_table(struct encoder *e, int depth)
{
    /* Key and value, beside the place that the buffer has: one in all that lua-cjson does not need. */
    if (depth > e->set->encode_depth || !lua_checkstack(e->L, 2))
        luaL_error(e->L, "Cannot serialise, excessive nesting (%d)", depth);
    lib_see_through(e->L);
    int n = array_length(e);
    if (n > 0)
        add_array(e, depth, n);
    else
        add_object(e, depth);
}

/* The value at the top of the stack, which stays there. */
static void add_value(struct encoder *e, int depth)
{
    switch (lua_type(e->L, -1)) {
    case LUA_TSTRING:
        add_string(e, -1);
        break;
    case LUA_TNUMBER:
        add_number(e, -1);
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(e->L, -1))
            lua_out_add(&e->out, "true", 4);
        else
            lua_out_add(&e->out, "false", 5);
        break;
    case LUA_TTABLE:
        add_table(e, depth + 1);
        break;
    case LUA_TNIL:
        lua_out_add(&e->out, "null", 4);
        break;
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(e->L, -1)) {
            lua_out_add(&e->out, "null", 4);
            break;
        }
        refuse(e->L, -1, "type not supported");
        break;
    default:
        refuse(e->L, -1, "type not supported");
    }
}

int lib_cjson_encode(struct lua_State *L)
{
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    struct encoder e = {.L = L, .set = lua_touserdata(L, lua_upvalueindex(1))};
    lua_out_begin(&e.out, L);
    lua_insert(L, 1); /* the value is at the top then */
    e.out.slot = 1;
    add_value(&e, 0);
    lua_out_end(&e.out);
    return 1;
}
