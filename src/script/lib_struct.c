/* struct: numbers and strings to bytes and back, by a format, as the library of this name that Redis has.

     b B h H l L T    integers of 1, 1, 2, 2, 8, 8 and 8 bytes; capitals (and T) are unsigned
     i I [size]       of size bytes (4, up to 32); beyond 8 the bytes are what shifting leaves of 64 bits
     f d              float and double
     s                a string that ends with NUL
     c [size]         a string of exactly so many bytes (1); c0: pack all of it; unpack as many as the number
   that was unpacked just before, which is taken back x                a byte of padding > <              big
   and little endian, from here on ! [align]        align to sizes up to a power of two (8), from here on
     (space)          nothing

   Every length is checked before it is used, in 64 bits; a format ends at its first NUL. */
#include "script/libs.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include "script/lib_common.h"

#define INTEGER_MAX 32 /* bytes */
#define ALIGN_MAX   8

struct format {
    const char *at; /* the next character */
    bool big;
    size_t align;
};

static struct format format_of(lua_State *L)
{
    return (struct format){.at = luaL_checkstring(L, 1), .big = false, .align = 1};
}

/* The number at this place of the format, or otherwise. */
static size_t format_number(lua_State *L, struct format *f, size_t otherwise)
{
    if (!isdigit((unsigned char)*f->at))
        return otherwise;
    size_t n = 0;
    do {
        n = n * 10 + (size_t)(*f->at++ - '0');
        if (n > INT_MAX)
            luaL_error(L, "integral size overflow");
    } while (isdigit((unsigned char)*f->at));
    return n;
}

/* Bytes of an option, whose own number is read with it; 0 for those that have none or no fixed size. */
static size_t format_size(lua_State *L, struct format *f, char option)
{
    size_t n;
    switch (option) {
    case 'b':
    case 'B':
    case 'x':
        return 1;
    case 'h':
    case 'H':
        return 2;
    case 'l':
    case 'L':
    case 'T':
    case 'd':
        return 8;
    case 'f':
        return 4;
    case 'c':
        return format_number(L, f, 1);
    case 'i':
    case 'I':
        n = format_number(L, f, sizeof(int));
        if (n > INTEGER_MAX)
            luaL_error(L, "integral size %d is larger than limit of %d", (int)n, INTEGER_MAX);
        return n;
    default:
        return 0;
    }
}

/* Padding before an option of this size at pos. Sizes that are no power of two are masked as if they were. */
static size_t format_padding(const struct format *f, char option, size_t size, size_t pos)
{
    if (size == 0 || option == 'c')
        return 0;
    if (size > f->align)
        size = f->align;
    return (size - (pos & (size - 1))) & (size - 1);
}

static void format_control(lua_State *L, struct format *f, char option)
{
    switch (option) {
    case ' ':
        return;
    case '>':
        f->big = true;
        return;
    case '<':
        f->big = false;
        return;
    case '!': {
        size_t n = format_number(L, f, ALIGN_MAX);
        if (n == 0 || (n & (n - 1)) != 0)
            luaL_error(L, "alignment %d is not a power of 2", (int)n);
        f->align = n;
        return;
    }
    default:
        luaL_argerror(L, 1, lua_pushfstring(L, "invalid format option '%c'", option));
    }
}

/* A number modulo 2^64, and what x86-64 makes of those beyond: defined here for every machine. */
static uint64_t whole(double d)
{
    const double half = 9223372036854775808.0;
    if (d >= half) {
        d -= half;
        return d < half ? (uint64_t)(int64_t)d ^ (1ull << 63) : 0;
    }
    return d >= -half ? (uint64_t)(int64_t)d : 1ull << 63;
}

/* n bytes, turned around if the format wants the other order. Numbers are little endian here, as the machine.
 */
static void put_bytes(struct lua_out *o, const struct format *f, const void *bytes, size_t n)
{
    const char *from = bytes;
    char *to = lua_out_room(o, n);
    for (size_t i = 0; i < n; i++)
        to[f->big ? n - 1 - i : i] = from[i];
    o->n += n;
}

static void put_integer(lua_State *L, struct lua_out *o, const struct format *f, int arg, size_t size)
{
    uint64_t value = whole(luaL_checknumber(L, arg));
    unsigned char bytes[INTEGER_MAX] = {0};
    for (size_t i = 0; i < size && i < sizeof value; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    put_bytes(o, f, bytes, size);
}

static void put_string(lua_State *L, struct lua_out *o, int arg, char option, size_t size)
{
    size_t n;
    const char *s = luaL_checklstring(L, arg, &n);
    if (size == 0)
        size = n;
    /* The number in this error is one too high, as it always was. */
    luaL_argcheck(L, n >= size, arg + 1, "string too short");
    lua_out_add(o, s, size);
    if (option == 's')
        lua_out_byte(o, '\0');
}

/* Writes what one option takes from the arguments; how many that were. */
static int put_option(lua_State *L, struct lua_out *o, struct format *f, char option, size_t size, int arg)
{
    switch (option) {
    case 'b':
    case 'B':
    case 'h':
    case 'H':
    case 'l':
    case 'L':
    case 'T':
    case 'i':
    case 'I':
        put_integer(L, o, f, arg, size);
        return 1;
    case 'f': {
        float number = (float)luaL_checknumber(L, arg);
        put_bytes(o, f, &number, sizeof number);
        return 1;
    }
    case 'd': {
        double number = luaL_checknumber(L, arg);
        put_bytes(o, f, &number, sizeof number);
        return 1;
    }
    case 'c':
    case 's':
        put_string(L, o, arg, option, size);
        return 1;
    case 'x':
        lua_out_byte(o, '\0');
        return 0;
    default:
        format_control(L, f, option);
        return 0;
    }
}

/* struct.pack(format, ...) */
static int struct_pack(lua_State *L)
{
    struct format f = format_of(L);
    struct lua_out out;
    int arg = 2;
    lua_pushnil(L); /* what an argument too few is */
    lua_out_begin(&out, L);
    while (*f.at) {
        char option = *f.at++;
        size_t size = format_size(L, &f, option);
        for (size_t n = format_padding(&f, option, size, out.n); n > 0; n--)
            lua_out_byte(&out, '\0');
        arg += put_option(L, &out, &f, option, size, arg);
    }
    lua_out_end(&out);
    return 1;
}

/* The integer of size bytes at p, of which the last 64 bits that are shifted in count. A sign wider than that
   is looked for at its place modulo 64. */
static double take_integer(const struct format *f, const char *p, size_t size, bool is_signed)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | (unsigned char)p[f->big ? i : size - 1 - i];
    if (!is_signed)
        return (double)value;
    uint64_t mask = ~0ull << ((size * 8 - 1) & 63);
    if (value & mask)
        value |= mask;
    return (double)(int64_t)value;
}

static void take_bytes(const struct format *f, const char *p, void *number, size_t n)
{
    char *to = number;
    for (size_t i = 0; i < n; i++)
        to[i] = p[f->big ? n - 1 - i : i];
}

static void push_float(lua_State *L, const struct format *f, const char *p, char option)
{
    float single;
    double number;
    if (option == 'f') {
        take_bytes(f, p, &single, sizeof single);
        number = (double)single;
    } else {
        take_bytes(f, p, &number, sizeof number);
    }
    lua_pushnumber(L, number);
}

/* What is unpacked. */
struct data {
    const char *p;
    size_t n, pos;
    int values; /* pushed so far */
};

static void check_left(lua_State *L, const struct data *d, size_t size)
{
    luaL_argcheck(L, size <= d->n && d->pos <= d->n - size, 2, "data string too short");
}

static void take_string(lua_State *L, struct data *d, char option, size_t *size)
{
    if (option == 's') {
        const char *from = d->p + d->pos;
        const char *end = memchr(from, '\0', d->n - d->pos);
        if (!end)
            luaL_error(L, "unfinished string in data");
        else
            *size = (size_t)(end - from) + 1;
        lua_pushlstring(L, from, *size - 1);
        return;
    }
    if (*size == 0) {
        if (d->values == 0 || !lua_isnumber(L, -1))
            luaL_error(L, "format 'c0' needs a previous size");
        *size = whole(lua_tonumber(L, -1));
        lua_pop(L, 1);
        d->values--;
        check_left(L, d, *size);
    }
    lua_pushlstring(L, d->p + d->pos, *size);
}

/* Reads one option's value and pushes it, if it has one. */
static void take_option(lua_State *L, struct data *d, struct format *f, char option, size_t *size)
{
    const char *p = d->p + d->pos;
    switch (option) {
    case 'b':
    case 'h':
    case 'l':
    case 'i':
    case 'B':
    case 'H':
    case 'L':
    case 'T':
    case 'I':
        lua_pushnumber(L, take_integer(f, p, *size, islower((unsigned char)option)));
        break;
    case 'f':
    case 'd':
        push_float(L, f, p, option);
        break;
    case 'c':
    case 's':
        take_string(L, d, option, size);
        break;
    case 'x':
        return;
    default:
        format_control(L, f, option);
        return;
    }
    d->values++;
}

/* struct.unpack(format, data [, position]): the values, and the position behind them. */
static int struct_unpack(lua_State *L)
{
    struct format f = format_of(L);
    struct data d = {0};
    d.p = luaL_checklstring(L, 2, &d.n);
    d.pos = (size_t)luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, d.pos > 0, 3, "offset must be 1 or greater");
    d.pos--;
    while (*f.at) {
        char option = *f.at++;
        size_t size = format_size(L, &f, option);
        d.pos += format_padding(&f, option, size, d.pos);
        check_left(L, &d, size);
        luaL_checkstack(L, 2, "too many results");
        take_option(L, &d, &f, option, &size);
        d.pos += size;
    }
    lua_pushinteger(L, (lua_Integer)d.pos + 1);
    return d.values + 1;
}

/* struct.size(format) */
static int struct_size(lua_State *L)
{
    struct format f = format_of(L);
    size_t pos = 0;
    while (*f.at) {
        char option = *f.at++;
        size_t size = format_size(L, &f, option);
        pos += format_padding(&f, option, size, pos);
        if (option == 's')
            luaL_argerror(L, 1, "option 's' has no fixed size");
        if (option == 'c' && size == 0)
            luaL_argerror(L, 1, "option 'c0' has no fixed size");
        if (!isalnum((unsigned char)option))
            format_control(L, &f, option);
        pos += size;
    }
    lua_pushinteger(L, (lua_Integer)pos);
    return 1;
}

int lib_struct_open(struct lua_State *L)
{
    lua_createtable(L, 0, 3);
    lua_pushcfunction(L, struct_pack);
    lua_setfield(L, -2, "pack");
    lua_pushcfunction(L, struct_unpack);
    lua_setfield(L, -2, "unpack");
    lua_pushcfunction(L, struct_size);
    lua_setfield(L, -2, "size");
    return 1;
}
