"""Memory and recursion of scripts are bounded: what goes beyond ends in an error, and the next script finds everything as it
should be."""

import random

import pytest

from harness import wait
from harness.resp import encode

MAX = 16 << 20
OPTIONS = ("--script-memory", "16mb", "--workers", "1")


@pytest.fixture
def server(subjects):
    server = subjects(*OPTIONS)
    with server.connect() as c:
        c("FLUSHALL")
    return server


@pytest.fixture
def client(server):
    with server.connect() as c:
        yield c


def figures(client, section="memory"):
    lines = client("INFO", section).decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


TOO_MUCH = [
    "return #string.rep('x', 600 * 1024 * 1024)",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do t[#t + 1] = {} end",
    "local t = {} while true do t[#t + 1] = redis.call('GET', KEYS[1]) .. #t end",
    "local t = {} while true do t[#t + 1] = redis.call('LRANGE', KEYS[2], 0, -1) end",
    "local s = ('x'):rep(4 * 1024 * 1024) return #cjson.encode({s, s, s, s})",
]


@pytest.mark.parametrize("script", TOO_MUCH)
def test_too_much_memory_is_an_error(client, script):
    client("SET", "big", "x" * (2 << 20))
    client("RPUSH", "list", *["y" * 100] * 1000)
    assert "not enough memory" in client.error("EVAL", script, 2, "big", "list")
    assert client("EVAL", "return #KEYS[1]", 1, "abc") == 3
    assert int(figures(client)["used_memory_vm_eval"]) < MAX


def test_what_was_written_before_stays_as_with_any_error(client):
    assert "not enough memory" in client.error("EVAL", "redis.call('SET', 'k', '1') return ('x'):rep(1e9)", 0)
    assert client("GET", "k") == b"1"
    undone = "#!lua flags=rollback\nredis.call('SET', 'k', '2') return ('x'):rep(1e9)"
    assert "not enough memory" in client.error("EVAL", undone, 0)
    assert client("GET", "k") == b"1"


def test_arguments_count(client):
    r = random.Random(1)  # Lua looks at a part of a long string only: similar ones would take it long
    words = [b"%x" % r.getrandbits(800) for i in range(100000)]
    reply = client.call("EVAL", "return #ARGV", 0, *words)
    assert b"not enough memory" in bytes(reply.raw)
    assert client("EVAL", "return #ARGV", 0, *words[:1000]) == 1000


def test_garbage_makes_room(client):
    """Far more passes through than fits, while half of what fits is in use."""
    script = """
        local kept = {}
        for i = 1, 7 do kept[i] = ('x'):rep(1024 * 1024) .. i end
        for i = 1, 100 do kept[i % 7 + 1] = ('y'):rep(1024 * 1024) .. i end
        return #kept
    """
    assert client("EVAL", script, 0) == 7
    inside = script.replace("('y'):rep(1024 * 1024)", "redis.call('ECHO', ('y'):rep(512 * 1024))")
    assert client("EVAL", "return coroutine.wrap(function() " + inside + " end)()", 0) == 7


def test_the_bound_can_be_changed(client):
    script = "return #string.rep('x', 40 * 1024 * 1024)"
    assert "not enough memory" in client.error("EVAL", script, 0)
    client("CONFIG", "SET", "script-memory", "256mb")
    assert client("EVAL", script, 0) == 40 << 20
    client("CONFIG", "SET", "script-memory", "16mb")
    assert "not enough memory" in client.error("EVAL", script, 0)
    assert client("EVAL", "return 1", 0) == 1


RECURSION = [
    "local function f() return 1 + f() end return f()",
    "local s = 'x' local function f() s:gsub('x', f) end return f()",
    "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. 'x'] end return t.x",
    "local function f() local t = {2, 1} table.sort(t, function(a, b) f() return a < b end) end return f()",
    "local function f(n) return coroutine.wrap(f)(n + 1) end return f(1)",
    "return loadstring('return ' .. ('('):rep(100000) .. '1' .. (')'):rep(100000))()",
    "local t = {} for i = 1, 20000 do t = {t} end return cjson.encode(t)",
    "local t = {} for i = 1, 20000 do t = {t} end return #cmsgpack.pack(t) > 1e9 and 1 or error('shallow')",
    "return cjson.decode(('['):rep(100000))",
    "return cmsgpack.unpack(('\\145'):rep(100000))",
    "return ('x'):rep(300000):find(('x?'):rep(300000))",
]


@pytest.mark.parametrize("script", RECURSION)
def test_recursion_ends_in_an_error(server, client, script):
    assert client.error("EVAL", script, 0)
    assert client("EVAL", "return 1", 0) == 1
    assert server.alive


def test_pcall_within_pcall(client):
    assert client("EVAL", "local function f(n) return pcall(f, n + 1) end return f(1) and 'ended'", 0) == b"ended"


def test_a_deep_reply(oracle, server):
    """Lua's stack bounds it: what is deeper is an error within the reply."""
    script = "local t = {} for i = 1, 100000 do t = {t} end return t"
    for each in (oracle, server):
        with each.connect() as c:
            c.send(encode(["EVAL", script, 0]))
            reply = bytearray()
            while not reply.endswith(b"-ERR reached lua stack limit\r\n"):
                reply += wait.until(lambda c=c: c.read_available(0.05)[0], "the reply")
            assert 7900 < reply.count(b"*1\r\n") < 8000
            c.send(encode(["PING"]))
            assert wait.until(lambda c=c: c.read_available(0.05)[0], "PONG") == b"+PONG\r\n"


def test_figures(client):
    client("SCRIPT", "FLUSH")
    client("EVAL", "return 1", 0)
    names = [
        "used_memory_lua",
        "used_memory_vm_eval",
        "used_memory_lua_human",
        "used_memory_scripts_eval",
        "number_of_cached_scripts",
        "number_of_functions",
        "number_of_libraries",
        "used_memory_vm_functions",
        "used_memory_vm_total",
        "used_memory_vm_total_human",
        "used_memory_functions",
        "used_memory_scripts",
        "used_memory_scripts_human",
    ]
    got = figures(client)
    assert [name for name in got if name in names] == names
    assert got["number_of_cached_scripts"] == "1"
    assert got["used_memory_lua"] == got["used_memory_vm_eval"]
    assert 10000 < int(got["used_memory_vm_eval"]) < MAX
    code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
    client("FUNCTION", "LOAD", "REPLACE", code)
    client("FCALL", "f", 0)
    after = figures(client)
    assert (after["number_of_functions"], after["number_of_libraries"]) == ("1", "1")
    assert int(after["used_memory_vm_functions"]) > 10000
    assert int(after["used_memory_functions"]) >= len(code)
    assert int(after["used_memory_vm_total"]) == int(after["used_memory_vm_eval"]) + int(after["used_memory_vm_functions"])
    stats = client("MEMORY", "STATS")
    stats = dict(zip(stats[::2], stats[1::2]))
    assert stats[b"lua.caches"] == int(after["used_memory_scripts_eval"])
    assert stats[b"functions.caches"] == int(after["used_memory_functions"])
    client("FUNCTION", "FLUSH")
