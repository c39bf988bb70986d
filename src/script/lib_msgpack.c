/* cmsgpack: MessagePack, with the names and the rules of the library that Redis has.

   Packing is libmsgpackc's, into Lua's memory. A number that is whole is an integer, one that a float holds
   is a float; a table is an array if its keys are 1 to n, else a map; beyond 16 levels, and for what
   MessagePack does not know, there is nil.

   Unpacking is ours: libmsgpackc's parser builds a tree of the whole input beside Lua's memory first, takes
   an array's word for its size and ends at 32 levels. Here every value is pushed as it is read, so that what
   is claimed and not there costs nothing, and depth is bounded by Lua's stack. Binary and extension types are
   refused, as in Redis. */
#include "script/libs.h"

#include <stdbool.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>
#include <msgpack/pack.h>

#include "script/lib_common.h"
#include "script/sandbox_internal.h"

#define PACK_LEVELS 16

/* ---- pack ---- */

static int write_out(void *data, const char *p, size_t n)
{
    lua_out_add(data, p, n);
    return 0;
}

static void pack_value(lua_State *L, msgpack_packer *to, int level);

static void pack_number(msgpack_packer *to, double d)
{
    const double half = 9223372036854775808.0;
    if (d >= -half && d < half && (double)(int64_t)d == d)
        msgpack_pack_int64(to, (int64_t)d);
    else if ((double)(float)d == d)
        msgpack_pack_float(to, (float)d);
    else
        msgpack_pack_double(to, d);
}

/* How many pairs the table at the top has, and whether their keys are 1 to that many. */
static size_t count_pairs(lua_State *L, bool *is_array)
{
    double highest = 0;
    size_t n = 0;
    *is_array = true;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        n++;
        double key = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
        if (!(key >= 1 && key < 9007199254740992.0 && (double)(int64_t)key == key))
            *is_array = false;
        else if (key > highest)
            highest = key;
    }
    if (highest != (double)n)
        *is_array = false;
    return n;
}

/* The table at the top of the stack. */
static void pack_table(lua_State *L, msgpack_packer *to, int level)
{
    bool is_array;
    luaL_checkstack(L, 6, "in function mp_encode_lua_table_as_map");
    size_t n = count_pairs(L, &is_array);
    if (is_array) {
        msgpack_pack_array(to, n);
        for (size_t i = 1; i <= n; i++) {
            lua_rawgeti(L, -1, (int)i);
            pack_value(L, to, level);
        }
        return;
    }
    msgpack_pack_map(to, n);
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pushvalue(L, -2);
        pack_value(L, to, level);
        pack_value(L, to, level);
    }
}

/* Packs the value at the top of the stack and pops it. */
static void pack_value(lua_State *L, msgpack_packer *to, int level)
{
    size_t n;
    const char *s;
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        s = lua_tolstring(L, -1, &n);
        msgpack_pack_str(to, n);
        msgpack_pack_str_body(to, s, n);
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(L, -1))
            msgpack_pack_true(to);
        else
            msgpack_pack_false(to);
        break;
    case LUA_TNUMBER:
        pack_number(to, lua_tonumber(L, -1));
        break;
    case LUA_TTABLE:
        if (level < PACK_LEVELS) {
            lib_see_through(L);
            pack_table(L, to, level + 1);
            break;
        }
        msgpack_pack_nil(to);
        break;
    default:
        msgpack_pack_nil(to);
    }
    lua_pop(L, 1);
}

/* cmsgpack.pack(...): the values one after the other. */
static int msgpack_lua_pack(lua_State *L)
{
    int n = lua_gettop(L);
    struct lua_out out;
    msgpack_packer to;
    if (n == 0)
        return luaL_argerror(L, 0, "MessagePack pack needs input.");
    if (!lua_checkstack(L, n))
        return luaL_argerror(L, 0, "Too many arguments for MessagePack pack.");
    lua_out_begin(&out, L);
    msgpack_packer_init(&to, &out, write_out);
    for (int i = 1; i <= n; i++) {
        lua_pushvalue(L, i);
        pack_value(L, &to, 0);
    }
    lua_out_end(&out);
    return 1;
}

/* ---- unpack ---- */

struct input {
    const unsigned char *p;
    size_t left;
};

/* The next n bytes, which are in the input. */
static const unsigned char *take(lua_State *L, struct input *in, size_t n)
{
    if (in->left < n)
        luaL_error(L, "Missing bytes in input.");
    const unsigned char *p = in->p;
    in->p += n;
    in->left -= n;
    return p;
}

/* A big-endian number of n bytes. */
static uint64_t take_number(lua_State *L, struct input *in, size_t n)
{
    const unsigned char *p = take(L, in, n);
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | p[i];
    return value;
}

static void unpack_value(lua_State *L, struct input *in);

static void unpack_string(lua_State *L, struct input *in, uint64_t n)
{
    const unsigned char *p = take(L, in, n);
    lua_pushlstring(L, (const char *)p, n);
}

static void unpack_array(lua_State *L, struct input *in, uint64_t n)
{
    lua_newtable(L);
    luaL_checkstack(L, 1, "in function mp_decode_to_lua_array");
    for (uint64_t i = 1; i <= n; i++) {
        lua_pushnumber(L, (double)i);
        unpack_value(L, in);
        lua_settable(L, -3);
    }
}

static void unpack_map(lua_State *L, struct input *in, uint64_t n)
{
    lua_newtable(L);
    for (; n > 0; n--) {
        unpack_value(L, in);
        unpack_value(L, in);
        lua_settable(L, -3);
    }
}

static void unpack_float(lua_State *L, struct input *in)
{
    union {
        uint32_t bits;
        float number;
    } u = {.bits = (uint32_t)take_number(L, in, 4)};
    lua_pushnumber(L, (double)u.number);
}

static void unpack_double(lua_State *L, struct input *in)
{
    union {
        uint64_t bits;
        double number;
    } u = {.bits = take_number(L, in, 8)};
    lua_pushnumber(L, u.number);
}

/* What a type byte from 0xc0 to 0xdf begins. */
static void unpack_typed(lua_State *L, struct input *in, unsigned type)
{
    switch (type) {
    case 0xc0:
        lua_pushnil(L);
        break;
    case 0xc2:
    case 0xc3:
        lua_pushboolean(L, type == 0xc3);
        break;
    case 0xca:
        unpack_float(L, in);
        break;
    case 0xcb:
        unpack_double(L, in);
        break;
    case 0xcc: /* unsigned; those of 64 bits become signed, as in Redis */
    case 0xcd:
    case 0xce:
    case 0xcf:
        lua_pushnumber(L, (double)(int64_t)take_number(L, in, (size_t)1 << (type - 0xcc)));
        break;
    case 0xd0:
        lua_pushnumber(L, (double)(int8_t)take_number(L, in, 1));
        break;
    case 0xd1:
        lua_pushnumber(L, (double)(int16_t)take_number(L, in, 2));
        break;
    case 0xd2:
        lua_pushnumber(L, (double)(int32_t)take_number(L, in, 4));
        break;
    case 0xd3:
        lua_pushnumber(L, (double)(int64_t)take_number(L, in, 8));
        break;
    case 0xd9:
    case 0xda:
    case 0xdb:
        unpack_string(L, in, take_number(L, in, (size_t)1 << (type - 0xd9)));
        break;
    case 0xdc:
    case 0xdd:
        unpack_array(L, in, take_number(L, in, type == 0xdc ? 2 : 4));
        break;
    case 0xde:
    case 0xdf:
        unpack_map(L, in, take_number(L, in, type == 0xde ? 2 : 4));
        break;
    default:
        luaL_error(L, "Bad data format in input.");
    }
}

/* Pushes one value. */
static void unpack_value(lua_State *L, struct input *in)
{
    luaL_checkstack(L, 1, "too many return values at once; use unpack_one or unpack_limit instead.");
    unsigned type = *take(L, in, 1);
    if (type < 0x80 || type >= 0xe0)
        lua_pushnumber(L, (double)(int8_t)type);
    else if (type < 0x90)
        unpack_map(L, in, type & 0x0f);
    else if (type < 0xa0)
        unpack_array(L, in, type & 0x0f);
    else if (type < 0xc0)
        unpack_string(L, in, type & 0x1f);
    else
        unpack_typed(L, in, type);
}

/* Up to limit values from offset on; both 0: all of them. Pushes the offset behind them first (-1 at the
   end), but not if it is all. */
static int unpack_some(lua_State *L, int64_t limit, int64_t offset)
{
    size_t n;
    const char *s = luaL_checklstring(L, 1, &n);
    lua_settop(L, 1);
    if (n >= MUCH_BYTES)
        script_before_much(L);
    bool all = limit == 0 && offset == 0;
    int values = 0;
    if (offset < 0 || limit < 0)
        return luaL_error(L, "Invalid request to unpack with offset of %d and limit of %d.", (int)offset,
                          (int)n);
    if ((uint64_t)offset > n)
        return luaL_error(L, "Start offset %d greater than input length %d.", (int)offset, (int)n);
    struct input in = {(const unsigned char *)s + offset, n - (size_t)offset};
    for (; in.left > 0 && (all || values < limit); values++)
        unpack_value(L, &in);
    if (all)
        return values;
    luaL_checkstack(L, 1, "too many return values at once; use unpack_one or unpack_limit instead.");
    lua_pushinteger(L, in.left == 0 ? -1 : (lua_Integer)(n - in.left));
    lua_insert(L, -values - 1);
    return values + 1;
}

static int msgpack_lua_unpack(lua_State *L)
{
    return unpack_some(L, 0, 0);
}

/* cmsgpack.unpack_one(data [, offset]) */
static int msgpack_lua_unpack_one(lua_State *L)
{
    int64_t offset = luaL_optinteger(L, 2, 0);
    return unpack_some(L, 1, offset);
}

/* cmsgpack.unpack_limit(data, limit [, offset]) */
static int msgpack_lua_unpack_limit(lua_State *L)
{
    int64_t limit = luaL_checkinteger(L, 2);
    int64_t offset = luaL_optinteger(L, 3, 0);
    return unpack_some(L, limit, offset);
}

int lib_msgpack_open(struct lua_State *L)
{
    static const luaL_Reg functions[] = {{"pack", msgpack_lua_pack},
                                         {"unpack", msgpack_lua_unpack},
                                         {"unpack_one", msgpack_lua_unpack_one},
                                         {"unpack_limit", msgpack_lua_unpack_limit},
                                         {NULL, NULL}};
    static const char *const texts[][2] = {{"_NAME", "cmsgpack"},
                                           {"_VERSION", "lua-cmsgpack 0.4.0"},
                                           {"_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"},
                                           {"_DESCRIPTION", "MessagePack C implementation for Lua"}};
    lua_createtable(L, 0, 8);
    luaL_register(L, NULL, functions);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        lua_pushstring(L, texts[i][1]);
        lua_setfield(L, -2, texts[i][0]);
    }
    return 1;
}
