/* The libraries of scripts when memory runs out at any point: an error, nothing lost (which the sanitizers
   watch), and an interpreter that goes on. */
#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

#include "base/buf.h"
#include "check.h"
#include "exec/executor.h"
#include "script/interp.h"
#include "script/libs.h"
#include "script/scripts.h"

/* It uses every library, with results that do not fit into a few bytes. */
static const char work[] =
    "local t = {} for i = 1, 40 do t[i] = {name = 'n' .. i, at = i / 3, list = {i, {i}, tostring(i)}} end\n"
    "local json = cjson.encode(t)\n"
    "assert(#cjson.decode(json) == 40)\n"
    "local other = cjson.new() assert(other.decode(other.encode(t))[3].name == 'n3')\n"
    "local packed = cmsgpack.pack(t, json, 1.5)\n"
    "assert(select('#', cmsgpack.unpack(packed)) == 3)\n"
    "local numbers = {} for i = 1, 200 do numbers[i] = i end\n"
    "local bytes = struct.pack('>I4s' .. ('i8'):rep(200), 7, json, unpack(numbers))\n"
    "assert(select(202, struct.unpack('>I4s' .. ('i8'):rep(200), bytes)) == 200)";

static const char small[] = "return cjson.encode({1}) .. cmsgpack.pack('a') .. struct.pack('b', 65) .. "
                            "bit.tohex(1, 2) .. cjson.encode_max_depth()";

static int run(lua_State *L)
{
    lib_cjson_reset(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, *(int *)lua_touserdata(L, 1));
    if (lua_pcall(L, 0, 1, 0) != 0)
        return lua_error(L);
    return 1;
}

/* How a run ends, with so much memory beyond what there is. */
static int run_with(struct interp *in, int ref, size_t more)
{
    in->memory_max = more > SIZE_MAX - in->memory ? SIZE_MAX : in->memory + more;
    int rc = lua_cpcall(in->L, run, &ref);
    in->memory_max = SIZE_MAX;
    lua_settop(in->L, 0);
    interp_collect(in);
    return rc;
}

static void memory_that_runs_out_is_an_error(void)
{
    struct executor executor = {0};
    struct scripts scripts = {.executor = &executor};
    struct interp *in = interp_new(&scripts, INTERP_EVAL, SIZE_MAX);
    struct buf err = {0};
    int ref, next, refused = 0;
    REQUIRE(in && interp_compile(in, slice_str(work), "@work", &ref, &err));
    REQUIRE(interp_compile(in, slice_str(small), "@small", &next, &err));
    CHECK_EQ(run_with(in, ref, SIZE_MAX), 0);
    size_t before = in->memory;
    for (size_t more = 0; more < 96u << 10; more += 97) {
        if (run_with(in, ref, more) != 0)
            refused++;
        CHECK_EQ(run_with(in, next, SIZE_MAX), 0);
    }
    CHECK(refused > 100 && refused < 1000);
    CHECK(in->memory < before + 4096); /* tables of Lua's own may have grown, and nothing else */
    interp_forget(in, ref);
    interp_forget(in, next);
    interp_free(in);
    buf_release(&err);
}

/* At whichever allocation that shows. */
static void an_interpreter_that_does_not_fit_is_none(void)
{
    struct executor executor = {0};
    struct scripts scripts = {.executor = &executor};
    struct interp *in = NULL;
    size_t max = 0;
    for (; max < 1u << 20 && !in; max += 1009)
        in = interp_new(&scripts, INTERP_EVAL, max);
    CHECK(in && max > 20u << 10);
    interp_free(in);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(memory_that_runs_out_is_an_error);
    RUN(an_interpreter_that_does_not_fit_is_none);
    return check_done();
}
