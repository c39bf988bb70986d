/* cjson: the table that scripts see, its settings, and decode, which is Debian's lua-cjson.

   Settings are of a table: cjson.new() makes another with its own. In Redis what one script sets in cjson,
   the next one finds; here lib_cjson_reset takes it back, since a script is to leave no trace, least of all
   when it is run again.

   Decode keeps the text of strings in memory of its own while it runs, and loses it when Lua raises for want
   of memory: a script that is near its bound could have the process lose as much as it likes. So no input is
   given to it that could need more than there is: most are small enough that their length says so, of others
   every value is counted. */
#include "script/libs.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#include <lauxlib.h>
#include <lua.h>

#include <lua-cjson.h>

#include "script/interp.h"
#include "script/lib_cjson_internal.h"
#include "script/sandbox_internal.h"

static const struct json_settings defaults = {.sparse_convert = 0,
                                              .sparse_ratio = 2,
                                              .sparse_safe = 10,
                                              .encode_depth = 1000,
                                              .encode_invalid = JSON_INVALID_REFUSED,
                                              .keep_buffer = 1,
                                              .precision = 14,
                                              .decode_depth = 1000,
                                              .decode_invalid = 1};

/* The key in the registry of the settings of the table `cjson`; their environment is that table. */
static const char registry_key;

/* ---- settings ---- */

/* Upvalues of every function of a table: its settings, and of those about decoding the package's function. */
static struct json_settings *settings_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* At most n arguments; those that are missing are nil. */
static void want_arguments(lua_State *L, int n)
{
    luaL_argcheck(L, lua_gettop(L) <= n, n + 1, "found too many arguments");
    lua_settop(L, n);
}

/* Argument arg sets an integer, if it is not nil. Whichever it is, the error says #1. */
static void set_integer(lua_State *L, int arg, int *setting, int min, int max)
{
    char why[64];
    if (!lua_isnil(L, arg)) {
        int value = (int)luaL_checkinteger(L, arg);
        snprintf(why, sizeof why, "expected integer between %d and %d", min, max);
        luaL_argcheck(L, value >= min && value <= max, 1, why);
        settings_of(L)->changed = true;
        *setting = value;
    }
    lua_pushinteger(L, *setting);
}

/* Argument arg sets a choice, by its name or as a boolean. */
static void set_choice(lua_State *L, int arg, int *setting, const char *const *names)
{
    if (!lua_isnil(L, arg)) {
        int value = lua_isboolean(L, arg) ? lua_toboolean(L, arg) : luaL_checkoption(L, arg, NULL, names);
        settings_of(L)->changed = true;
        *setting = value;
    }
    if (*setting <= 1)
        lua_pushboolean(L, *setting);
    else
        lua_pushstring(L, names[*setting]);
}

static const char *const switch_names[] = {"off", "on", NULL};
static const char *const invalid_names[] = {"off", "on", "null", NULL};

static int encode_sparse_array(lua_State *L)
{
    struct json_settings *set = settings_of(L);
    want_arguments(L, 3);
    set_choice(L, 1, &set->sparse_convert, switch_names);
    set_integer(L, 2, &set->sparse_ratio, 0, INT_MAX);
    set_integer(L, 3, &set->sparse_safe, 0, INT_MAX);
    return 3;
}

static int encode_max_depth(lua_State *L)
{
    want_arguments(L, 1);
    set_integer(L, 1, &settings_of(L)->encode_depth, 1, INT_MAX);
    return 1;
}

static int encode_number_precision(lua_State *L)
{
    want_arguments(L, 1);
    set_integer(L, 1, &settings_of(L)->precision, 1, 14);
    return 1;
}

static int encode_keep_buffer(lua_State *L)
{
    want_arguments(L, 1);
    set_choice(L, 1, &settings_of(L)->keep_buffer, switch_names);
    return 1;
}

static int encode_invalid_numbers(lua_State *L)
{
    want_arguments(L, 1);
    set_choice(L, 1, &settings_of(L)->encode_invalid, invalid_names);
    return 1;
}

/* Hands the value at the top of the stack to the package's setter at an index. */
static void tell_package(lua_State *L, int setter)
{
    lua_pushvalue(L, setter);
    lua_pushvalue(L, -2);
    lua_call(L, 1, 0);
}

static int decode_max_depth(lua_State *L)
{
    want_arguments(L, 1);
    set_integer(L, 1, &settings_of(L)->decode_depth, 1, INT_MAX);
    tell_package(L, lua_upvalueindex(2));
    return 1;
}

static int decode_invalid_numbers(lua_State *L)
{
    want_arguments(L, 1);
    set_choice(L, 1, &settings_of(L)->decode_invalid, switch_names);
    tell_package(L, lua_upvalueindex(2));
    return 1;
}

/* ---- decode ---- */

#define BYTES_OF_TABLE  64
#define BYTES_OF_FIELD  120 /* a node, twice since tables double, and half of that while they are rehashed */
#define BYTES_OF_ITEM   40  /* likewise, in the array part */
#define BYTES_OF_STRING 56  /* its head, and its share of the table of strings */
#define BYTES_PER_BYTE  56  /* more than any input needs for each of its bytes */

/* More than the values of a text take in Lua. Text that is not JSON is counted too, and refused later. */
static size_t bytes_of_values(const char *s, size_t n)
{
    size_t tables = 0, commas = 0, fields = 0, strings = 0;
    for (size_t i = 0; i < n; i++) {
        switch (s[i]) {
        case '"':
            strings++;
            for (i++; i < n && s[i] != '"'; i++)
                i += s[i] == '\\';
            break;
        case '[':
        case '{':
            tables++;
            break;
        case ',':
            commas++;
            break;
        case ':':
            fields++;
            break;
        default:
            break;
        }
    }
    return tables * BYTES_OF_TABLE + fields * BYTES_OF_FIELD + (commas + tables) * BYTES_OF_ITEM +
           strings * BYTES_OF_STRING + n;
}

static size_t memory_left(const struct interp *in)
{
    return in->memory < in->memory_max ? in->memory_max - in->memory : 0;
}

/* Raises Lua's error for want of memory unless the text's values fit for certain. */
static void check_room(lua_State *L, const char *s, size_t n)
{
    struct interp *in = interp_of(L);
    if (n < INT_MAX / 2) {
        if (n < memory_left(in) / BYTES_PER_BYTE)
            return;
        size_t bytes = bytes_of_values(s, n);
        if (bytes < memory_left(in))
            return;
        interp_collect(in);
        if (bytes < memory_left(in))
            return;
    }
    lua_pushliteral(L, "not enough memory");
    lua_error(L);
}

/* cjson.decode(text). The package's function is called from here, so its errors know no place: they get one.
 */
static int decode(lua_State *L)
{
    size_t n;
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    const char *s = luaL_checklstring(L, 1, &n);
    if (n >= MUCH_BYTES)
        script_before_much(L);
    check_room(L, s, n);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    int result = lua_pcall(L, 1, 1, 0);
    if (result == LUA_ERRRUN)
        return luaL_error(L, "%s", lua_tostring(L, -1));
    if (result != 0)
        return lua_error(L);
    return 1;
}

/* ---- the table ---- */

struct function {
    const char *name;
    lua_CFunction function;
    bool packaged; /* the package's function of this name is its second upvalue */
};

static int new_table(lua_State *L);

static const struct function functions[] = {
    {"encode", lib_cjson_encode, false},
    {"decode", decode, true},
    {"encode_sparse_array", encode_sparse_array, false},
    {"encode_max_depth", encode_max_depth, false},
    {"decode_max_depth", decode_max_depth, true},
    {"encode_number_precision", encode_number_precision, false},
    {"encode_keep_buffer", encode_keep_buffer, false},
    {"encode_invalid_numbers", encode_invalid_numbers, false},
    {"decode_invalid_numbers", decode_invalid_numbers, true},
    {"new", new_table, false},
};

/* cjson.new(): a table with settings of its own. */
static int new_table(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushcfunction(L, luaopen_cjson);
    lua_call(L, 0, 1);
    struct json_settings *set = lua_newuserdata(L, sizeof *set);
    *set = defaults;
    lua_createtable(L, 0, 16);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        lua_pushvalue(L, 2);
        if (functions[i].packaged)
            lua_getfield(L, 1, functions[i].name);
        lua_pushcclosure(L, functions[i].function, functions[i].packaged ? 2 : 1);
        lua_setfield(L, 3, functions[i].name);
    }
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, 3, "null");
    lua_pushliteral(L, "cjson");
    lua_setfield(L, 3, "_NAME");
    lua_pushliteral(L, "2.1.0");
    lua_setfield(L, 3, "_VERSION");
    return 1;
}

int lib_cjson_open(struct lua_State *L)
{
    lua_pushcfunction(L, new_table);
    lua_call(L, 0, 1);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&registry_key);
    lua_getfield(L, -2, "encode");
    lua_getupvalue(L, -1, 1);
    lua_replace(L, -2);
    lua_pushvalue(L, -3);
    lua_setfenv(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 1;
}

/* Calls the package's setter, the second upvalue of a function of the table at the top, with what is above
   that; pops it. */
static void reset_package(lua_State *L, const char *name)
{
    lua_getfield(L, -2, name);
    lua_getupvalue(L, -1, 2);
    lua_replace(L, -2);
    lua_insert(L, -2);
    lua_call(L, 1, 0);
}

void lib_cjson_reset(struct lua_State *L)
{
    lua_pushlightuserdata(L, (void *)(uintptr_t)&registry_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    struct json_settings *set = lua_touserdata(L, -1);
    if (set->changed) {
        lua_getfenv(L, -1);
        lua_pushinteger(L, defaults.decode_depth);
        reset_package(L, "decode_max_depth");
        lua_pushboolean(L, defaults.decode_invalid);
        reset_package(L, "decode_invalid_numbers");
        lua_pop(L, 1);
        *set = defaults;
    }
    lua_pop(L, 1);
}
