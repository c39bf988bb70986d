/* Scripts in an executor without a server: what values become on their way in and out, what ends a run, what
   an interpreter keeps, and which scripts a process knows. */
#include <lua.h>
#include <string.h>

#include "base/mem.h"
#include "exec/books.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "proto/resp_reply.h"
#include "script/cache.h"
#include "script/run.h"
#include "script/sandbox_internal.h"
#include "script/scripts.h"
#include "stats/stats.h"
#include "world.h"

#define WORDS 8

struct fixture {
    struct world world;
    struct config config;
    struct server server;
    struct executor executor;
    struct session session;
    struct buf out; /* the last reply */
};

static const struct session_ops no_socket = {0};

/* In a world that has started. */
static void start_in(struct fixture *f)
{
    config_init(&f->config);
    f->config.script_memory = 16u << 20;
    server_init(&f->server);
    stats_init(&f->server);
    f->server.script_cache = script_cache_new();
    executor_init(&f->executor, &f->server, &f->config, f->world.engine);
    session_init(&f->session, &no_socket, true);
    executor_add_session(&f->executor, &f->session);
}

static bool start(struct fixture *f)
{
    if (!world_start(&f->world))
        return false;
    start_in(f);
    return true;
}

static void stop(struct fixture *f)
{
    buf_release(&f->out);
    executor_remove_session(&f->executor, &f->session);
    session_release(&f->session);
    scripts_free(f->executor.scripts);
    executor_release(&f->executor);
    script_cache_free(f->server.script_cache);
    stats_release(&f->server);
    server_release(&f->server);
    config_release(&f->config);
    world_end(&f->world);
}

/* One command in a transaction of its own; its reply, up to the next call. */
static const char *run(struct fixture *f, int resp, const struct slice *argv, int argc)
{
    struct resp_reply reply;
    struct error write_err;
    f->out.len = 0;
    resp_reply_init(&reply, &f->out, resp);
    CHECK_OK(engine_begin(f->world.engine, true, &write_err, &f->world.err), &f->world.err);
    (void)command_run(&f->executor, &f->session, command_find(argv[0]), argv, argc, &reply.base, &write_err);
    CHECK_OK(engine_commit(f->world.engine, NULL, &f->world.err), &f->world.err);
    stats_post(&f->executor);
    buf_add(&f->out, "", 1);
    return f->out.p;
}

static const char *eval(struct fixture *f, int resp, const char *script)
{
    const struct slice argv[] = {SLICE("eval"), slice_str(script), SLICE("1"), SLICE("key"), SLICE("arg")};
    return run(f, resp, argv, 5);
}

static const char *say(struct fixture *f, const char *words)
{
    struct slice argv[WORDS];
    int argc = 0;
    for (const char *p = words; argc < WORDS; p++) {
        size_t n = strcspn(p, " ");
        argv[argc++] = slice_of(p, n);
        p += n;
        if (!*p)
            break;
    }
    return run(f, 2, argv, argc);
}

/* ---- values ---- */

static void what_a_script_returns(void)
{
    static const struct {
        const char *script, *resp2, *resp3;
    } cases[] = {
        {"return 'x'", "$1\r\nx\r\n", "$1\r\nx\r\n"},
        {"return 3.99", ":3\r\n", ":3\r\n"},
        {"return -3.99", ":-3\r\n", ":-3\r\n"},
        {"return 1e100", ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
        {"return 0/0", ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
        {"return true", ":1\r\n", ":1\r\n"},
        {"return false", "$-1\r\n", "_\r\n"},
        {"redis.setresp(3) return {true,false}", "*2\r\n:1\r\n:0\r\n", "*2\r\n#t\r\n#f\r\n"},
        {"return nil", "$-1\r\n", "_\r\n"},
        {"return print ~= nil", NULL, NULL},
        {"return {1,2,nil,4}", "*2\r\n:1\r\n:2\r\n", "*2\r\n:1\r\n:2\r\n"},
        {"return {{},{{'a'}}}", "*2\r\n*0\r\n*1\r\n*1\r\n$1\r\na\r\n", "*2\r\n*0\r\n*1\r\n*1\r\n$1\r\na\r\n"},
        {"return {ok='fi\\r\\nne'}", "+fi  ne\r\n", "+fi  ne\r\n"},
        {"return {err='MY e\\nr'}", "-MY e r\r\n", "-MY e r\r\n"},
        {"return {double=1.5}", "$3\r\n1.5\r\n", ",1.5\r\n"},
        {"return {map={a={map={b=1}}}}", "*2\r\n$1\r\na\r\n*2\r\n$1\r\nb\r\n:1\r\n",
         "%1\r\n$1\r\na\r\n%1\r\n$1\r\nb\r\n:1\r\n"},
        {"return {set={a=true}}", "*1\r\n$1\r\na\r\n", "~1\r\n$1\r\na\r\n"},
        {"return {big_number='12345'}", "$5\r\n12345\r\n", "(12345\r\n"},
        {"return {verbatim_string={format='txt',string='s'}}", "$1\r\ns\r\n", "=5\r\ntxt:s\r\n"},
        {"return KEYS[1] .. ARGV[1] .. #KEYS .. #ARGV", "$8\r\nkeyarg11\r\n", "$8\r\nkeyarg11\r\n"},
    };
    struct fixture f = {0};
    REQUIRE(start(&f));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check.context = cases[i].script;
        if (!cases[i].resp2) {
            CHECK(strstr(eval(&f, 2, cases[i].script), "nonexistent global variable 'print'"));
            continue;
        }
        CHECK_STR(eval(&f, 2, cases[i].script), cases[i].resp2);
        CHECK_STR(eval(&f, 3, cases[i].script), cases[i].resp3);
    }
    check.context = NULL;
    stop(&f);
}

/* Each of them is a chain of comparisons that ends in 'ok', or says which one does not hold. */
static void what_a_command_gives_a_script(void)
{
    static const char *const scripts[] = {
        "assert(redis.call('set','s','v').ok == 'OK') return 'ok'",
        "assert(redis.call('get','s') == 'v') assert(redis.call('get','no') == false) return 'ok'",
        "assert(redis.call('incr','n') == 1) assert(redis.call('incrby','n',2^40) == 1099511627777) return "
        "'ok'",
        "assert(redis.call('set','s',0.1).ok) assert(redis.call('get','s') == '0.10000000000000001') return "
        "'ok'",
        "redis.call('rpush','l','a','b') local l = redis.call('lrange','l',0,-1) assert(#l == 2 and l[2] == "
        "'b') return 'ok'",
        "local l = redis.call('mget','s','no','no') assert(#l == 3 and l[3] == false) return 'ok'",
        "redis.setresp(3) local l = redis.call('mget','s','no') assert(#l == 1 and l[2] == nil) return 'ok'",
        "redis.call('hset','h','f','v') redis.setresp(3) assert(redis.call('hgetall','h').map.f == 'v') "
        "return 'ok'",
        "redis.call('sadd','t','m') redis.setresp(3) assert(redis.call('smembers','t').set.m == true) return "
        "'ok'",
        "redis.call('zadd','z',1.5,'m') redis.setresp(3) assert(redis.call('zscore','z','m').double == 1.5) "
        "return 'ok'",
        "local e = redis.pcall('incr','l') assert(e.err:find('^WRONGTYPE')) return 'ok'",
        "local done, e = pcall(redis.call,'incr','l') assert(not done and e:find('^WRONGTYPE')) return 'ok'",
        "assert(redis.pcall('nope').err == 'ERR Unknown Redis command called from script') return 'ok'",
        "redis.call('select',1) redis.call('set','there',1) return 'ok'",
        "redis.call('readonly') return 'ok'",
        "assert(redis.pcall('larder.read','strong','eval_ro','return 1','0').err:find('not allowed')) return "
        "'ok'",
        "assert(redis.pcall('eval_ro','return 1','0').err:find('not allowed')) return 'ok'",
        "assert(redis.call('exists','there') == 0) return 'ok'",
    };
    struct fixture f = {0};
    REQUIRE(start(&f));
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        check.context = scripts[i];
        CHECK_STR(eval(&f, 2, scripts[i]), "$2\r\nok\r\n");
    }
    check.context = NULL;
    CHECK_EQ(f.session.state.db, 0);
    CHECK_EQ(f.session.state.consistency.mode, READ_STRONG);
    stop(&f);
}

/* ---- what ends a run ---- */

static void kill_it(struct executor *s, struct script_run *r)
{
    (void)s;
    script_run_kill(r, "ERR killed");
}

/* Whatever catches errors does not catch this one; nothing that it wrote stays, and the next script runs. */
static void a_killed_script_ends(void)
{
    static const char *const scripts[] = {
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function h() while true do end end while true do xpcall(function() while true do end end, h) "
        "end",
        "while true do local c = coroutine.create(function() while true do end end) coroutine.resume(c) end",
        "local c = coroutine.wrap(function() while true do pcall(error) coroutine.yield() end end) "
        "while true do pcall(c) end",
        "while true do redis.pcall('incr','n') end",
        "while true do pcall(string.gsub, ('x'):rep(100), '.', function() while true do end end) end",
        "local t = setmetatable({}, {__index = function() while true do end end}) while true do "
        "pcall(function() "
        "return t.x end) end",
        "while true do pcall(redis.call, 'ping') end",
        "while true do local s = ('x'):rep(1e6) end",
        "local s = ('x'):rep(1e6) while true do pcall(string.gsub, s, 'x', 'y') end",
        "local s = ('x'):rep(1e6) while true do pcall(string.find, s, 'y') end",
        "local s = ('x'):rep(1e6) while true do redis.sha1hex(s) end",
        "local t = {} for i = 1, 1e5 do t[i] = 'x' end while true do pcall(table.concat, t) end",
        "local t = {} for i = 1, 1e4 do t[i] = i end while true do pcall(cjson.encode, t) end",
        "local s = '[1' .. (',1'):rep(1e4) .. ']' while true do pcall(cjson.decode, s) end",
        "local t = {} for i = 1, 1e4 do t[i] = i end while true do pcall(cmsgpack.pack, t) end",
        "local s = '\\220\\39\\16' .. ('x'):rep(1e4) while true do pcall(cmsgpack.unpack, s) end",
    };
    struct fixture f = {0};
    REQUIRE(start(&f));
    f.executor.script_slow = kill_it;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char script[512], sha[SCRIPT_SHA_CHARS + 1], killed[128];
        snprintf(script, sizeof script, "redis.call('set','n','0') %s", scripts[i]);
        script_sha1(slice_str(script), sha);
        snprintf(killed, sizeof killed, "-ERR killed script: %s, on @user_script:1.\r\n", sha);
        check.context = script;
        CHECK_STR(eval(&f, 2, script), killed);
        CHECK_STR(say(&f, "exists n"), ":0\r\n");
        CHECK_STR(eval(&f, 2, "return 1"), ":1\r\n");
    }
    check.context = NULL;
    stop(&f);
}

/* The database fails an inner command, which asks for a row that is not in memory: the error cannot be
   caught, and all is undone. */
static void a_failing_database_ends_it(void)
{
    struct fixture f = {0};
    REQUIRE(world_start(&f.world));
    REQUIRE(world_begin(&f.world));
    world_enter(&f.world);
    CHECK_OK(view_set_string(f.world.view, 0, SLICE("known"), SLICE("v"), EXPIRE_NEVER), &f.world.err);
    (void)engine_leave(f.world.engine, true);
    CHECK_OK(engine_commit(f.world.engine, NULL, &f.world.err), &f.world.err);
    REQUIRE(world_reopen(&f.world));
    start_in(&f);
    CHECK_STR(eval(&f, 2, "return 1"), ":1\r\n"); /* which reads what scripts were flushed */
    CHECK_STR(say(&f, "set a 0"), "+OK\r\n");
    store_fault_set(f.world.store, (struct store_fault){
                                       .nth = 2, .status = ST_IO, .sticky = true}); /* behind the beginning */
    CHECK(strncmp(eval(&f, 2,
                       "redis.call('set','a','1') local done = pcall(redis.call,'get','known') "
                       "redis.call('set','a','2') return tostring(done)"),
                  "-IOERR", 6) == 0);
    CHECK(fault_happened(f.world.store));
    store_fault_set(f.world.store, (struct store_fault){0});
    CHECK_STR(say(&f, "get a"), "$1\r\n0\r\n");
    CHECK_STR(say(&f, "get known"), "$1\r\nv\r\n");
    stop(&f);
}

/* Memory is bounded; the interpreter is of use afterwards, as fast as before, and gives back what it had. */
static void memory_runs_out(void)
{
    static const char *const scripts[] = {
        "return #string.rep('x', 2^30)",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        "local s = ('x'):rep(5e6) local t = {} for i = 1, 100 do t[i] = s .. i end return t",
        "local function f() return {f()} end return f()",
        "local t = {} for i = 1, 1e6 do t[i] = coroutine.create(function() end) end",
        "error(string.rep('x', 7 * 2^20))",
    };
    struct fixture f = {0};
    REQUIRE(start(&f));
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        check.context = scripts[i];
        const char *reply = eval(&f, 2, scripts[i]);
        CHECK(strstr(reply, "not enough memory") || strstr(reply, "stack overflow"));
        CHECK_EQ(lua_gethookcount(f.executor.scripts->interps[INTERP_EVAL]->L), HOOK_INSTRUCTIONS);
        CHECK(eval(&f, 2, "return redis.call('incr','n')")[0] == ':');
    }
    check.context = NULL;
    CHECK(scripts_memory(f.executor.scripts) < 4u << 20);
    stop(&f);
}

/* ---- what is kept ---- */

/* Nothing that a script tries changes what the next one finds. */
static void the_sandbox_stays_as_it_is(void)
{
    static const char *const scripts[] = {
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "redis.call = nil",
        "string.len = nil",
        "table.insert(redis, 1)",
        "setmetatable(_G, {})",
        "setmetatable(string, {})",
        "getmetatable('').__index = nil",
        "rawset(getmetatable(''), '__index', nil)",
        "getmetatable(_G).__index = nil",
        "rawset(getmetatable(_G), '__index', nil)",
        "for k in pairs(_G) do _G[k] = nil end",
        "table.foreach(_G, function(k) rawset(_G, k, nil) end)",
        "KEYS = nil",
    };
    struct fixture f = {0};
    REQUIRE(start(&f));
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        check.context = scripts[i];
        CHECK(strstr(eval(&f, 2, scripts[i]), "Attempt to modify a readonly table"));
        CHECK_STR(eval(&f, 2,
                       "return {rawget(_G,'x') == nil, ('ab'):len(), redis[1] == nil, #KEYS, "
                       "type(redis.call), getmetatable('').__index == string}"),
                  "*6\r\n:1\r\n:2\r\n:1\r\n:1\r\n$8\r\nfunction\r\n:1\r\n");
    }
    check.context = NULL;
    stop(&f);
}

/* No value of the sandbox leads to the true table behind a face. */
static void no_true_table_is_reached(void)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    CHECK_STR(eval(&f, 2,
                   "local seen, found = {}, {} "
                   "local function look(t, name) if seen[t] then return end seen[t] = true "
                   "  local m = getmetatable(t) if type(m) == 'table' then look(m, name .. '.meta') end "
                   "  if t ~= seen and t ~= found and t ~= KEYS and t ~= ARGV and "
                   "    pcall(function() t[1] = nil t.__x = 1 end) then found[#found + 1] = name end "
                   "  for k, v in pairs(t) do if type(v) == 'table' then look(v, name .. '.' .. tostring(k)) "
                   "end end "
                   "end look(_G, '_G') look(getmetatable(''), 'string') return found"),
              "*0\r\n");
    stop(&f);
}

/* A script may log for ever: the books keep so much of it, and count the rest. */
static void what_scripts_log_is_bounded(void)
{
    struct books b = {0};
    char *text = mem_zalloc(BOOKS_LINE_BYTES / 2 + 1);
    memset(text, 'x', BOOKS_LINE_BYTES / 2);
    for (int i = 0; i < 5; i++)
        books_log(&b, LOG_INFO, slice_of(text, BOOKS_LINE_BYTES / 2 - 100));
    CHECK_EQ(b.lost_lines, 3);
    CHECK_EQ(strlen(b.lines->next->text), BOOKS_LINE_BYTES / 2 - 100);
    CHECK(!b.lines->next->next);
    books_empty(&b);
    CHECK(!b.lines && !b.lost_lines);
    books_log(&b, LOG_INFO, SLICE("again"));
    CHECK_STR(b.lines->text, "again");
    mem_free(text);
    books_release(&b);
}

static void bytecode_is_not_loaded(void)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    CHECK(strstr(eval(&f, 2, "\033Lua"), "unexpected symbol near 'char(27)'"));
    CHECK_STR(eval(&f, 2, "return tostring((loadstring(string.dump(function() end))))"), "$3\r\nnil\r\n");
    CHECK_STR(eval(&f, 2,
                   "local s, n = string.dump(function() end), 0 "
                   "return tostring((load(function() n = n + 1 return s:sub(n, n) end)))"),
              "$3\r\nnil\r\n");
    stop(&f);
}

/* Those that were least recently used go, never the one that comes. */
static void a_process_knows_so_many_scripts(void)
{
    struct script_cache *c = script_cache_new();
    char sha[SCRIPT_SHA_CHARS + 1], first[SCRIPT_SHA_CHARS + 1], used[SCRIPT_SHA_CHARS + 1];
    for (int i = 0; i < SCRIPTS_MAX + 100; i++) {
        char body[32];
        snprintf(body, sizeof body, "return %d", i);
        script_sha1(slice_str(body), sha);
        if (i < 2)
            memcpy(i ? used : first, sha, sizeof sha);
        script_let_go(script_cache_add(c, sha, slice_str(body), slice_str(body), 0, 1));
        struct script *s = script_cache_find(c, slice_str(i ? used : first), 1);
        REQUIRE(s != NULL);
        script_touch(c, s);
        script_let_go(s);
    }
    CHECK(script_cache_size(c).scripts <= SCRIPTS_MAX);
    CHECK(script_cache_size(c).scripts > SCRIPTS_MAX / 2);
    CHECK(script_cache_find(c, slice_str(first), 1) == NULL);
    struct script *s = script_cache_find(c, slice_str(sha), 1);
    REQUIRE(s != NULL);
    script_cache_free(c); /* who holds one may go on reading it */
    CHECK_STR(s->sha, sha);
    CHECK(atomic_load(&s->gone));
    script_let_go(s);
}

static void compiled_scripts_give_way(void)
{
    struct fixture f = {0};
    REQUIRE(start(&f));
    for (int i = 0; i < 400; i++) { /* each takes about 100 kB when it is compiled */
        struct buf script = {0};
        buf_addf(&script, "local n = %d ", i);
        for (int j = 0; j < 1000; j++)
            buf_addf(&script, "n = n + %d.5 ", j);
        buf_addf(&script, "return 7");
        buf_add(&script, "", 1);
        CHECK_STR(eval(&f, 2, script.p), ":7\r\n");
        buf_release(&script);
    }
    CHECK(f.executor.scripts->ncompiled < 400);
    CHECK(scripts_memory(f.executor.scripts) < f.config.script_memory);
    stop(&f);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(what_a_script_returns);
    RUN(what_a_command_gives_a_script);
    RUN(a_killed_script_ends);
    RUN(a_failing_database_ends_it);
    RUN(memory_runs_out);
    RUN(the_sandbox_stays_as_it_is);
    RUN(no_true_table_is_reached);
    RUN(what_scripts_log_is_bounded);
    RUN(bytecode_is_not_loaded);
    RUN(a_process_knows_so_many_scripts);
    RUN(compiled_scripts_give_way);
    return check_done();
}
