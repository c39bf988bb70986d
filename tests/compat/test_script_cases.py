"""Scripts whose texts and arguments are too large for a transcript, what is counted of them, and what they write to the log."""

import re

import pytest

from harness import wait

KB = 1024
MB = 1024 * KB

# name: (script, keys, other arguments)
LARGE = {
    "many arguments": (b"return {#KEYS, #ARGV, KEYS[1], KEYS[#KEYS], ARGV[1], ARGV[#ARGV]}", range(20_000), range(50_000)),
    "a long argument": (b"redis.call('set', KEYS[1], ARGV[1]) return {#ARGV[1], redis.call('get', KEYS[1])}", ["k"], [b"\x00\xff" * MB]),
    "a long reply": (b"return ARGV[1]:rep(64)", [], ["y" * 64 * KB]),
    "a long list": (b"local t = {} for i = 1, 100000 do t[i] = i end return t", [], []),
    "lists in lists": (b"local t = {} for i = 1, 300 do t[i] = {} for j = 1, 300 do t[i][j] = j end end return t", [], []),
    "a long script": (b"local t = {}\n" + b"t[#t + 1] = 'x'\n" * 50_000 + b"return #t", [], []),
    "a long line of an error": (b"\n" * 100_000 + b"error('far below')", [], []),
    "a long literal": (b"return #[[" + b"z" * MB + b"]]", [], []),
    "a long error": (b"error(ARGV[1])", [], ["e" * 100 * KB]),
    "a long compile error": (b"return '" + b"q" * 10_000, [], []),
    "a long name in an error": (b"return " + b"n" * 5000, [], []),
    "a long error of a command": (b"return redis.call(ARGV[1])", [], ["c" * 10_000]),
    "a long status": (b"return redis.status_reply(ARGV[1])", [], ["s" * 100 * KB]),
    "as many as unpack can": (b"return redis.call('rpush', 'l', unpack(ARGV))", [], range(7900)),
    "more than unpack can": (b"return redis.call('rpush', 'l', unpack(ARGV))", [], range(8100)),
    "in portions": (
        b"for i = 1, #ARGV, 5000 do redis.call('rpush', 'p', unpack(ARGV, i, math.min(i + 4999, #ARGV))) end"
        b" return {redis.call('llen', 'p'), redis.call('lrange', 'p', 0, -1)}",
        [],
        range(23_456),
    ),
    "many calls": (b"for i = 1, 20000 do redis.call('incrby', KEYS[1], i) end return redis.call('get', KEYS[1])", ["c"], []),
    "many keys": (b"for i = 1, 5000 do redis.call('set', 'many:' .. i, i) end return redis.call('dbsize')", [], []),
    "many errors": (b"local n = 0 for i = 1, 20000 do if redis.pcall('nosuch').err then n = n + 1 end end return n", [], []),
    "much garbage": (b"local s for i = 1, 20000 do s = ('g'):rep(1000) .. i end return #s", [], []),
}


@pytest.mark.parametrize("name", LARGE)
def test_large(name, oracle, subject):
    script, keys, args = LARGE[name]
    keys, args = list(keys), list(args)
    replies = []
    for server in (oracle, subject):
        with server.connect() as c:
            c("FLUSHALL")
            reply, more = c.pipeline([["EVAL", script, len(keys), *keys, *args], ["DBSIZE"]])
            replies.append((reply.raw, more.raw))
    assert replies[0] == replies[1]


def script(text, *args, name="EVAL"):
    return [name, text, 0, *args]


# What is counted of errors: commands that run one after the other, with the key s that is no number.
COUNTED = [
    [["MULTI"], ["INCR", "s"], ["EXEC"]],
    [["MULTI"], script("error('x')"), ["EXEC"]],
    [["MULTI"], script("return redis.call('incr', 's')"), ["EXEC"]],
    [["MULTI"], script("return redis.pcall('incr', 's')"), ["EXEC"]],
    [["MULTI"], ["EVALSHA", "f" * 40, "0"], ["EXEC"]],
    [script("return redis.pcall('incr', 's')")],
    [script("return {1, redis.pcall('incr', 's')}")],
    [script("redis.pcall('incr', 's') return 1")],
    [script("return redis.call('incr', 's')")],
    [script("error('x')")],
    [script("return {err = 'X y'}")],
    [script("return {err = 'X'}")],
    [script("return {1, {err = 'X y'}}")],
    [script("return {err = ('x'):rep(200)}")],
    [script("return {err = ('x'):rep(30) .. ' y'}")],
    [script("return {err = ('x'):rep(31) .. ' y'}")],
    [script("return redis.error_reply('MY')")],
    [script("return redis.error_reply()")],
    [script("return redis.call('nosuch')")],
    [script("return redis.pcall('nosuch')")],
    [script("redis.pcall('nosuch') redis.pcall('get') redis.pcall() redis.pcall('multi') return 1")],
    [script("redis.pcall('set', 'a', 'b') return 1", name="EVAL_RO")],
    [script("return redis.call('set', 'a', 'b')", name="EVAL_RO")],
    [script("#!lua\nreturn 1", name="EVAL_RO")],
    [script("x x")],
    [["EVAL", "return 1", "x"], ["EVAL", "return 1"], ["EVALSHA", "f" * 40, "0"], ["SCRIPT", "LOAD", "x x"], ["FCALL", "x", 0]],
    [script("local ok, e = pcall(redis.call, 'incr', 's') return e")],
    [script("local ok, e = pcall(redis.call, 'incr', 's') error(e)")],
    [script("local e = redis.pcall('incr', 's') error(e)")],
    [script("local e = redis.pcall('incr', 's') e.err = 'CHANGED x' return e")],
]


def counts(server, commands):
    """Calls, refusals and failures by command, and errors by their code."""
    with server.connect() as c:
        c("FLUSHALL")
        c("SET", "s", "x")
        c("CONFIG", "RESETSTAT")
        for args in commands:
            c.call(*args)
        text = (c("INFO", "commandstats") + c("INFO", "errorstats")).decode()
    lines = (re.sub(r"usec[a-z_]*=[0-9.]+,", "", line) for line in text.split("\r\n"))
    return sorted(line for line in lines if re.match("cmdstat_(?!config|info)|errorstat_", line))


@pytest.mark.parametrize("commands", COUNTED, ids=[str(commands)[:70] for commands in COUNTED])
def test_statistics(commands, oracle, subject):
    assert counts(subject, commands) == counts(oracle, commands)


def test_log(fleet):
    """redis.log writes the texts, joined by spaces, if the level is at or above the server's."""
    larder = fleet.larder("--loglevel", "info")
    with larder.connect() as c:
        c("EVAL", "redis.log(redis.LOG_WARNING, 'a warning', 5, true, 'more')", 0)
        c("EVAL", "redis.log(redis.LOG_NOTICE, 'a\\nnotice')", 0)
        c("EVAL", "redis.log(redis.LOG_VERBOSE, 'verbose') redis.log(redis.LOG_DEBUG, 'debugging')", 0)
        c("EVAL", "redis.log(redis.LOG_WARNING, 'the last')", 0)
    text = wait.until(lambda: "the last" in larder.log_text() and larder.log_text(), "the last line is in the log")
    assert "a warning 5 more" in text
    assert "debugging" not in text and "verbose" not in text.replace("notice", "")
    # What a script writes stays one line of the log.
    assert not any(line.startswith("notice") for line in text.splitlines())
