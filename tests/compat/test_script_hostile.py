"""Scripts that mean harm: each ends in an error, or in nothing special; the server lives, and the next script runs.

What the sandbox refuses word for word as redis-server is in script_cases/sandbox.txt. Here is what would end a
server, or take all of its memory: the ideas of the holes that Redis had in its libraries and in Lua, and bombs.
"""

import pytest

MEMORY = "not enough memory"

# (what, script, a part of the reply)
SCRIPTS = [
    # Lua's own holes
    ("unpack: CVE-2025-46817", "return select('#', unpack({}, -2147483648, 2147483647))", "too many results to unpack"),
    ("unpack, half of it", "return select('#', unpack({}, 0, 2147483647))", "too many results to unpack"),
    ("unpack of millions", "return unpack({}, 1, 1e8)", "too many results to unpack"),
    ("pattern, optional", "return string.find(('a'):rep(3e5), ('a?'):rep(3e5))", "pattern too complex"),
    ("pattern, shortest", "return string.match(('a'):rep(3e5), ('a-'):rep(3e5) .. 'b')", "pattern too complex"),
    ("pattern, longest", "return string.gsub(('a'):rep(3e5), ('a*'):rep(3e5), '')", "pattern too complex"),
    ("pattern, iterated", "for x in string.gmatch('a', ('(a'):rep(3e5)) do return x end", "pattern too complex"),
    ("pattern, as long as may be", "return string.find(('a'):rep(2e4), ('a?'):rep(9e3))", "1"),
    ("a plain text is no pattern", "return string.find('x', ('a?'):rep(3e5), 1, true)", None),
    ("rep of nothing", "return #string.rep('', 2147483647)", "0"),
    ("insert far below", "table.insert({}, -2^31, 1)", "position out of bounds"),
    ("parser and collector: CVE-2025-49844", """local i = 0
        local f, e = load(function() i = i + 1 collectgarbage()
            if i < 100 then return 'local v' .. i .. ' = "' .. ('x'):rep(i) .. '" ' end end, 'name' .. ('n'):rep(500))
        collectgarbage() return type(f)""", "function"),
    ("names that are collected", """for i = 1, 100 do
        local f, e = loadstring('return ' .. ('x'):rep(i) .. '..' .. i .. '(', ('c'):rep(i * 10) .. i)
        collectgarbage('step') assert(e) end return 1""", "1"),
    ("long brackets: CVE-2025-46819", "return #select(2, loadstring('return [' .. ('='):rep(1e6) .. '['))", None),
    ("bytecode", "return tostring(loadstring(string.dump(function() return 1 end)))", "nil"),
    ("bytecode in pieces", """local n = 0 return tostring(load(function() n = n + 1
        return ({'\\27', 'Lua', 'Q'})[n] end))""", "nil"),
    ("strings' metatable: CVE-2022-24735", "getmetatable('').__index = function() return 1 end", "readonly table"),
    ("the library of strings", "getmetatable('').__index.len = function() return 1 end", "readonly table"),
    ("metatables of values: CVE-2025-46818", "setmetatable(nil, {})", "table expected"),
    # libraries
    ("struct: CVE-2015-8080", "return struct.unpack('i2147483648', 'abc')", "integral size overflow"),
    ("struct: CVE-2018-11219", "return struct.unpack('b', 'abc', -2147483648)", "data string too short"),
    ("struct, sizes", "return struct.unpack('Ic0', '\\255\\255\\255\\255abc')", "data string too short"),
    ("struct, larger sizes", "return struct.unpack('lc0', '\\255\\255\\255\\255\\255\\255\\255\\127abc')", "data string too short"),
    ("struct: CVE-2020-14147", "return struct.pack('c2147483647', 'abc')", "string too short"),
    ("struct, alignment", "return struct.unpack('!32 b i31 >I16 d', ('x'):rep(40), 9007199254740992)", "data string too short"),
    ("struct, many", "return #struct.pack(('!8bi'):rep(1e5))", "number expected, got nil"),
    ("struct, much padding", "return #struct.pack(('x'):rep(1e6))", "1000000"),
    ("cmsgpack: CVE-2018-11218", "return cmsgpack.unpack(('\\221\\255\\255\\255\\255'):rep(1e5))", "stack overflow"),
    ("cmsgpack, maps", "return cmsgpack.unpack(('\\223\\255\\255\\255\\255\\1'):rep(1e5))", "stack overflow"),
    ("cmsgpack, strings", "return cmsgpack.unpack('\\219\\255\\255\\255\\255abc')", "Missing bytes in input"),
    ("cmsgpack, many values", "return cmsgpack.unpack(('\\1'):rep(1e5))", "stack overflow"),
    ("cmsgpack, nil keys", "return cmsgpack.unpack('\\129\\192\\1')", "table index is nil"),
    ("cmsgpack, tables of tables", "local t = {1} for i = 1, 15 do t = {t,t,t,t,t,t,t,t,t,t,t,t} end return #cmsgpack.pack(t)", MEMORY),
    ("cjson, tables of tables", "local t = {1} for i = 1, 60 do t = {t, t} end return #cjson.encode(t)", MEMORY),
    ("cjson: CVE-2022-24834", "local s, t = ('x'):rep(1e7), {} for i = 1, 1000 do t[i] = s end return #cjson.encode(t)", MEMORY),
    ("cjson, escapes", "return #cjson.encode(('\\1'):rep(1e7))", MEMORY),
    ("cjson, a table in itself", "local t = {} t[1] = t t[2] = t return cjson.encode(t)", "excessive nesting (1001)"),
    ("cjson, deep", "cjson.encode_max_depth(2^31 - 1) local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)", "excessive nesting"),
    ("cjson, deep text", "cjson.decode_max_depth(2^31 - 1) return cjson.decode(('['):rep(1e5))", "too many nested data structures"),
    ("cjson, holes", "cjson.encode_sparse_array(true, 0, 0) return #cjson.encode({[2147483647] = 1})", MEMORY),
    ("cjson, texts that do not fit", """local s, n = '[' .. ('[],'):rep(5e5) .. '[]]', 0
        for i = 1, 10 do if not pcall(cjson.decode, s) then n = n + 1 end end return n""", "10"),
    ("cjson, tables of functions", "for i = 1, 5000 do cjson.new() end return 1", "1"),
    ("bit: CVE-2024-31449", "return bit.tohex(1, -2147483648) .. bit.tohex(-1, 2147483647)", "00000001ffffffff"),
    # the C stack
    ("recursion", "local function f() return (f()) end return f()", "stack overflow"),
    ("recursion through gsub", "local function f() return ('a'):gsub('a', f) end return f()", "C stack overflow"),
    ("recursion through sort", "local function f() table.sort({1, 2, 3}, f) return true end return f()", "C stack overflow"),
    ("recursion through tostring", "local function f() return tostring(setmetatable({}, {__tostring = f})) end return f()", "C stack overflow"),
    ("recursion through coroutines", "local function f() return (coroutine.wrap(f)()) end return f()", "C stack overflow"),
    ("recursion through pcall", "local function f() return select(2, pcall(f)) end return tostring(f())", "C stack overflow"),
    ("recursion through metatables", "local t = setmetatable({}, {__concat = function(a, b) return a .. b end}) return t .. t", "C stack overflow"),
    ("a script of brackets", "return select(2, loadstring('return ' .. ('('):rep(1e5)))", "too many syntax levels"),
    ("a script of tables", "return select(2, loadstring('return ' .. ('{'):rep(1e5)))", "too many syntax levels"),
    ("CVE-2021-32626: an answer without end", "local t = {} for i = 1, 2e4 do t = {t} end return {type(t)}", "table"),
    ("a small table with a large answer", "local t = {1} for i = 1, 60 do t = {t, t} end return t", MEMORY),
    ("one string in a large answer", "local s, t = ('x'):rep(1e6), {} for i = 1, 1e5 do t[i] = s end return t", MEMORY),
    ("arguments without end", "return redis.call('ECHO', unpack({}, 1, 7000))", "arguments must be strings or integers"),
    ("a string slice", "return ('x'):rep(1e5):byte(1, -1)", "string slice too long"),
    # memory
    ("rep", "return #('x'):rep(2147483647)", MEMORY),
    ("concatenation", "local s = ('x'):rep(1000) while true do s = s .. s end", MEMORY),
    ("tables", "local t = {} while true do t[#t + 1] = {} end", MEMORY),
    ("numbers", "local t = {} for i = 1, 1e9 do t[i] = i end", MEMORY),
    ("coroutines", "local t = {} for i = 1, 1e9 do t[i] = coroutine.create(function() end) end", MEMORY),
    ("closures", "local t = {} for i = 1, 1e9 do t[i] = function() return i end end", MEMORY),
    ("gsub", "return ('a'):rep(1e5):gsub('a', ('b'):rep(1e5))", MEMORY),
    ("table.concat", "local s = ('x'):rep(5e6) return table.concat({s, s, s, s, s, s}, s)", MEMORY),
    ("format", "local s = ('x'):rep(1e7) return ('%s%s%s%s'):format(s, s, s, s)", MEMORY),
    ("what pcall keeps of it", "return select(2, pcall(string.rep, 'x', 2147483647))", MEMORY),
    ("an error with no memory left", """local t = {} pcall(function() while true do t[#t + 1] = {} end end)
        error({err = 'ERR late'})""", "script:"),
    ("an answer with no memory left", "local t = {} pcall(function() while true do t[#t + 1] = {} end end) return 1", "1"),
    ("a command with no memory left", """local t = {} pcall(function() while true do t[#t + 1] = {} end end)
        return redis.call('ECHO', 'x')""", None),
    ("the collector stopped", "collectgarbage('stop') collectgarbage('setpause', 1e6) return 1", "1"),
    ("and what comes after it", "for i = 1, 40 do local s = ('xxxxxxxx'):rep(2e5) end return 1", "1"),
    ("garbage beside much that lives", """local keep = {} for i = 1, 60000 do keep[i] = {i, i, i} end
        for i = 1, 300000 do local t = {i} end return #keep""", "60000"),
    ("a huge error", "error(('x'):rep(1e6))", "xxx"),
    ("a huge error reply", "return redis.error_reply(('x'):rep(1e6))", "xxx"),
    # errors that are none
    ("an error of nothing", "error({})", "script:"),
    ("an error with an error", "error({err = {}})", "script:"),
    ("an error whose fields raise", "error(setmetatable({}, {__index = function() error('deep') end}))", "deep"),
    ("an error whose text raises", "error(setmetatable({}, {__tostring = function() error('deep') end}))", "script:"),
    ("a handler that raises", "return {xpcall(function() error('x') end, function() error('y') end)}", None),
    ("an answer whose fields raise", "return setmetatable({}, {__index = function() error('deep') end})", None),
    ("CVE-2022-24736: a name that is no text", "return redis.call({}, {})", "arguments must be strings or integers"),
    ("coroutines that raise tables", "return coroutine.wrap(function() error({}) end)()", "script:"),
    ("yield across C", "return coroutine.wrap(function() return select(2, pcall(coroutine.yield, 1)) end)()", "attempt to yield"),
    ("yield out of the script", "coroutine.yield(1)", "attempt to yield"),
    ("__gc of tables", "setmetatable({}, {__gc = function() error('gc') end}) collectgarbage() return 1", "1"),
    ("keys that change while walked", "local t = {1, 2, 3} for k in pairs(t) do t[k] = nil t['x' .. k] = 1 end return 1", None),
    ("an order that is none", "table.sort({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, function() return true end)", "invalid order function"),
]


@pytest.fixture(scope="module")
def hostile(shared_fleet):
    """A Larder whose scripts have little memory."""
    return shared_fleet.larder("--script-memory", "16mb")


def text_of(reply):
    return reply.raw.decode("latin-1")


def test_every_script_ends_and_the_next_one_runs(hostile):
    with hostile.connect() as client:
        for what, script, part in SCRIPTS:
            reply = client.call("EVAL", script, 0)
            assert part is None or part in text_of(reply), f"{what}: {text_of(reply)[:300]}"
            found = client.call("EVAL", "return {KEYS[1], #ARGV, cjson.encode({1}), string.len('abc')}", 1, "k", "a")
            assert found.plain() == [b"k", 1, b"[1]", 3], f"behind {what}: {text_of(found)[:300]}"


def test_nothing_of_them_stays_in_memory(hostile):
    """What a script took is given back: the same memory suffices for one after the other."""
    with hostile.connect() as client:
        for _ in range(4):
            assert client("EVAL", "return #('xxxxxxxx'):rep(500000)", 0) == 4000000
            assert MEMORY in text_of(client.call("EVAL", "local t = {} while true do t[#t + 1] = {} end", 0))


def test_commands_in_coroutines(hostile):
    with hostile.connect() as client:
        client("FLUSHALL")
        script = """local steps = coroutine.wrap(function()
            for i = 1, 3 do coroutine.yield(redis.call('INCR', KEYS[1])) end
            return redis.call('NOSUCH') end)
        local a, b, c = steps(), steps(), steps()
        return {a, b, c, select(2, pcall(steps))}"""
        found = client("EVAL", script, 1, "n")
        assert found[:3] == [1, 2, 3] and b"Unknown Redis command" in found[3]
        assert client("GET", "n") == b"3"
        assert "Unknown Redis command" in client.error("EVAL", "return coroutine.wrap(function() redis.call('NOSUCH') end)()", 0)
