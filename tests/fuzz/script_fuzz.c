/* Random scripts in an interpreter without commands: as they are, and made of the words of the language and
   the sandbox. Whatever they do, they end, and the next script finds the interpreter as it was. First lines
   of scripts too. */
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "fuzz.h"

#include "base/buf.h"
#include "exec/executor.h"
#include "proto/resp_reply.h"
#include "script/convert.h"
#include "script/guards.h"
#include "script/interp.h"
#include "script/libs.h"
#include "script/run.h"
#include "script/scripts.h"
#include "script/shebang.h"

#define MEMORY       (96u << 10) /* beyond what an interpreter has when it begins */
#define INSTRUCTIONS 20000

static const char *const words[] = {"local ",
                                    "a",
                                    "b",
                                    "t",
                                    "f",
                                    "=",
                                    ",",
                                    "(",
                                    ")",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    "function(",
                                    " end ",
                                    "return ",
                                    "if ",
                                    " then ",
                                    " else ",
                                    "while ",
                                    " do ",
                                    "for i=1,9 do ",
                                    "for k,v in pairs(",
                                    " in ",
                                    "nil",
                                    "true",
                                    "false",
                                    "0",
                                    "1",
                                    "-1",
                                    "2^31",
                                    "1e300",
                                    "0/0",
                                    "'a'",
                                    "''",
                                    "'%s%d'",
                                    "('x'):rep(99)",
                                    "..",
                                    "+",
                                    "-",
                                    "*",
                                    "/",
                                    "%",
                                    "==",
                                    "~=",
                                    "<",
                                    "#",
                                    " not ",
                                    " and ",
                                    " or ",
                                    "...",
                                    ";",
                                    ".",
                                    ":",
                                    "a.b",
                                    "t[1]",
                                    "t={}",
                                    "f=function(a,b) ",
                                    "pcall(",
                                    "xpcall(",
                                    "error(",
                                    "assert(",
                                    "tostring(",
                                    "tonumber(",
                                    "type(",
                                    "select(",
                                    "unpack(",
                                    "next(",
                                    "rawget(",
                                    "rawset(",
                                    "rawequal(",
                                    "setmetatable(",
                                    "getmetatable(",
                                    "collectgarbage(",
                                    "load(",
                                    "loadstring(",
                                    "coroutine.wrap(",
                                    "coroutine.create(",
                                    "coroutine.resume(",
                                    "coroutine.yield(",
                                    "string.format(",
                                    "string.gsub(",
                                    "string.find(",
                                    "string.byte(",
                                    "string.sub(",
                                    "string.dump(",
                                    "table.insert(",
                                    "table.remove(",
                                    "table.concat(",
                                    "table.sort(",
                                    "math.random(",
                                    "math.floor(",
                                    "redis.call(",
                                    "redis.pcall(",
                                    "redis.error_reply(",
                                    "redis.sha1hex(",
                                    "redis.status_reply(",
                                    "redis.setresp(",
                                    "cjson.encode(",
                                    "cjson.decode(",
                                    "cjson.new(",
                                    "cjson.encode_max_depth(",
                                    "cjson.encode_sparse_array(",
                                    "cmsgpack.pack(",
                                    "cmsgpack.unpack(",
                                    "struct.pack(",
                                    "struct.unpack(",
                                    "bit.band(",
                                    "bit.tohex(",
                                    "__index",
                                    "__tostring",
                                    "__call",
                                    "__concat",
                                    "__newindex",
                                    "_G",
                                    "string",
                                    "redis",
                                    "KEYS",
                                    "ARGV",
                                    "[[x]]",
                                    "--",
                                    "\n",
                                    " ",
                                    "'[[1]]'",
                                    "'>I4c0'",
                                    "'\\147\\1\\2'",
                                    "repeat ",
                                    " until ",
                                    "break "};

static void text_of(const uint8_t *data, size_t size, struct buf *out)
{
    for (size_t i = 0; i < size; i++) {
        const char *word = words[data[i] % (sizeof words / sizeof *words)];
        buf_add(out, word, strlen(word));
    }
}

static struct script_run ended = {.state = SCRIPT_KILLED};
static long instructions;

/* A script that has run for long is ended, as a killed one is: what it catches does not help it. */
static void count(lua_State *L, lua_Debug *at)
{
    (void)at;
    instructions += 1000;
    if (instructions < INSTRUCTIONS)
        return;
    interp_of(L)->run = &ended;
    luaL_error(L, "enough");
}

struct job {
    int ref;
    struct buf out;
    struct resp_reply reply;
};

static int run(lua_State *L)
{
    struct job *job = lua_touserdata(L, 1);
    lib_cjson_reset(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, interp_of(L)->handler);
    lua_rawgeti(L, LUA_REGISTRYINDEX, job->ref);
    if (lua_pcall(L, 0, 1, -2) == 0)
        convert_reply(L, &job->reply.base, 3);
    return 0;
}

/* True: it has returned "sound". */
static bool run_text(struct interp *in, struct slice text)
{
    struct buf err = {0};
    struct job job = {0};
    bool sound = false;
    resp_reply_init(&job.reply, &job.out, 3);
    instructions = 0;
    lua_sethook(in->L, count, LUA_MASKCOUNT, 1000);
    if (interp_compile(in, text, "@user_script", &job.ref, &err)) {
        (void)lua_cpcall(in->L, run, &job);
        sound = slice_eq(buf_slice(&job.out), SLICE("$5\r\nsound\r\n"));
        in->run = NULL;
        guard_restore_collector(in);
        lua_settop(in->L, 0);
        interp_forget(in, job.ref);
    } else {
        CHECK_OR_DIE(err.len > 0);
    }
    buf_release(&err);
    buf_release(&job.out);
    interp_collect(in);
    return sound;
}

static const char check[] =
    "assert(string.len('abc') == 3 and ('x'):upper() == 'X' and getmetatable('').__index == string)\n"
    "assert(cjson.encode({1, {}}) == '[1,{}]' and cjson.decode('[[nan]]')[1][1] ~= nil)\n"
    "assert(not pcall(function() undefined_global() end) and not pcall(rawset, _G, 'x', 1))\n"
    "assert(cmsgpack.unpack(cmsgpack.pack({a = 1})).a == 1 and struct.size('i4') == 4 and bit.band(7, 3) == "
    "3)\n"
    "local n = 0 for k in pairs(_G) do n = n + 1 end assert(n == 33, n)\n"
    "return 'sound'";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct executor executor;
    static struct scripts scripts = {.executor = &executor};
    static struct interp *in;
    struct buf text = {0}, err = {0};
    struct slice lua;
    uint32_t flags;
    if (!in) {
        in = interp_new(&scripts, INTERP_EVAL, SIZE_MAX);
        CHECK_OR_DIE(in);
    }
    if (size == 0)
        return 0;
    if (data[0] & 1)
        text_of(data + 1, size - 1, &text);
    else
        buf_add(&text, (const char *)data + 1, size - 1);
    if (shebang_parse(buf_slice(&text), &lua, &flags, &err)) {
        CHECK_OR_DIE(lua.n <= text.len && err.len == 0);
        in->memory_max = in->memory + MEMORY;
        (void)run_text(in, lua);
        in->memory_max = SIZE_MAX;
        CHECK_OR_DIE(run_text(in, slice_str(check)));
    } else {
        CHECK_OR_DIE(err.len > 0);
    }
    buf_release(&text);
    buf_release(&err);
    return 0;
}
