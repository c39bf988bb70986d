/* Random bytes to cmsgpack.unpack, cjson.decode and struct: no byte outside of the input is read, memory
   stays within its bound, and what was understood is written as what is understood alike. */
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

#include "base/buf.h"
#include "exec/executor.h"
#include "script/interp.h"
#include "script/scripts.h"

#define MEMORY (1u << 20)

/* Called with a kind and the data. What was too deep is nil when it is packed for the first time, which may
   turn an array into a map; from then on keys may change their order, but not the length. */
static const char checks[] =
    "local kind, data = ...\n"
    "local function again(write, read, ok, ...)\n"
    "    if not ok then assert(type((...)) == 'string') return end\n"
    "    local written, text = pcall(write, ...)\n"
    "    if not written then return end\n"
    "    local good, value = pcall(read, text)\n"
    "    if not good then assert(value == 'table index is nil' or value:find('memory'), value) return end\n"
    "    local ok, once = pcall(write, read(text))\n"
    "    local ok_too, twice = pcall(write, read(once))\n"
    "    assert(not ok or not ok_too or #once == #twice, text)\n"
    "end\n"
    "if kind == 0 then\n"
    "    again(cmsgpack.pack, cmsgpack.unpack, pcall(cmsgpack.unpack, data))\n"
    "    local ok, at = pcall(cmsgpack.unpack_one, data)\n"
    "    while ok and at > 0 do ok, at = pcall(cmsgpack.unpack_limit, data, 2, at) end\n"
    "elseif kind == 1 then\n"
    "    again(cjson.encode, cjson.decode, pcall(cjson.decode, data))\n"
    "else\n"
    "    local format, rest = data:sub(1, 12), data:sub(13)\n"
    "    if kind == 3 then format, rest = data, data end\n"
    "    local sized, size = pcall(struct.size, format)\n"
    "    local packed, bytes = pcall(struct.pack, format, 1, -2, 3.5, 1e300, 255, 2^53, 12345678, 0, 77, "
    "1/0)\n"
    "    assert(not sized or not packed or #bytes == size, format)\n"
    "    local found = {pcall(struct.unpack, format, rest)}\n"
    "    assert(not found[1] or not sized or found[#found] == size + 1, format)\n"
    "end\n"
    "return true\n";

struct job {
    const uint8_t *data;
    size_t size;
    int ref;
    bool sound;
};

static int run(lua_State *L)
{
    struct job *job = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, job->ref);
    lua_pushinteger(L, job->data[0] & 3);
    lua_pushlstring(L, (const char *)job->data + 1, job->size - 1);
    int rc = lua_pcall(L, 2, 1, 0);
    job->sound = rc == LUA_ERRMEM || (rc == 0 && lua_toboolean(L, -1));
    if (rc == LUA_ERRRUN) {
        const char *why = lua_tostring(L, -1);
        job->sound = why && strstr(why, "not enough memory");
        if (!job->sound)
            fprintf(stderr, "%s\n", why ? why : "(no text)");
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct executor executor;
    static struct scripts scripts = {.executor = &executor};
    static struct interp *in;
    static int ref;
    struct buf err = {0};
    if (!in) {
        in = interp_new(&scripts, INTERP_EVAL, SIZE_MAX);
        CHECK_OR_DIE(in && interp_compile(in, slice_str(checks), "@checks", &ref, &err));
    }
    if (size == 0)
        return 0;
    struct job job = {data, size, ref, false};
    in->memory_max = in->memory + MEMORY;
    int rc = lua_cpcall(in->L, run, &job);
    CHECK_OR_DIE(rc == LUA_ERRMEM || (rc == 0 && job.sound));
    CHECK_OR_DIE(in->memory <= in->memory_max);
    lua_settop(in->L, 0);
    interp_collect(in);
    return 0;
}
