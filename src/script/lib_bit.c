/* bit: Debian's lua-bitop, but for bit.tohex, whose count of digits it negates without a look at the smallest
   integer, and then copies as many bytes as a negative number says. */
#include "script/libs.h"

#include <limits.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include <lua-bitop.h>

/* A number as bit operations see it: modulo 2^32, rounded to the nearest even. Adding 2^52 + 2^51 leaves the
   integer in the low bits of the sum. */
static uint32_t bits_of(lua_State *L, int index)
{
    union {
        double number;
        uint64_t bits;
    } sum;
    sum.number = luaL_checknumber(L, index) + 6755399441055744.0;
    return (uint32_t)sum.bits;
}

/* bit.tohex(x [, digits]): a negative count asks for capitals. More than 8 digits are 8. */
static int bit_tohex(lua_State *L)
{
    uint32_t value = bits_of(L, 1);
    int32_t digits = lua_isnone(L, 2) ? 8 : (int32_t)bits_of(L, 2);
    const char *alphabet = digits < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
    uint32_t n = digits < 0 ? 0u - (uint32_t)digits : (uint32_t)digits;
    char out[8];
    if (n > sizeof out)
        n = sizeof out;
    for (uint32_t i = n; i-- > 0; value >>= 4)
        out[i] = alphabet[value & 15];
    lua_pushlstring(L, out, n);
    return 1;
}

int lib_bit_open(struct lua_State *L)
{
    lua_pushcfunction(L, luaopen_bit);
    lua_call(L, 0, 1);
    lua_pushcfunction(L, bit_tohex);
    lua_setfield(L, -2, "tohex");
    return 1;
}
