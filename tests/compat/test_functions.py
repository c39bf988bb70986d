"""Libraries of functions, beyond what transcripts say: dumps, what RESTORE keeps and refuses, what a library that came to
nothing leaves, restarts."""

import contextlib
import random
import re
import struct

import pytest

from harness import wait
from harness.resp import ServerError, encode

POLYNOMIAL = 0x95AC9329AC4BC9B5
WORDS = [b"redis.call(", b"local x = ", b"function ", b"return ", b"end\n", b"keys[1]", b"args[2]", b'"abc"', b"if ", b" then "]


def library(name, *functions, comment=b""):
    """The code of a library whose functions return its name."""
    lines = [b"redis.register_function('%s', function() return '%s' end)" % (f, name) for f in functions]
    return b"#!lua name=%s\n%s" % (name, comment) + b"\n".join(lines)


def checksum(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
    return crc


def payload(*codes):
    """A dump of libraries whose code is short, none of them packed."""
    body = b"".join(b"\xf5" + struct.pack(">H", 0x4000 | len(code)) + code for code in codes) + b"\x0a\x00"
    return body + struct.pack("<Q", checksum(body))


@pytest.fixture
def both(oracle, subject):
    """A connection to each, without libraries."""
    with oracle.connect() as theirs, subject.connect() as ours:
        for c in (theirs, ours):
            c("FLUSHALL")
            c("FUNCTION", "FLUSH")
        yield theirs, ours
        for c in (theirs, ours):
            c("FUNCTION", "FLUSH")


def listed(c):
    """Libraries and functions, in one order for both servers."""
    rows = [dict(zip(row[::2], row[1::2])) for row in c("FUNCTION", "LIST")]
    return sorted((row[b"library_name"], sorted(f[1] for f in row[b"functions"])) for row in rows)


def same(pair, *command):
    expected, actual = (c.call(*command) for c in pair)
    assert actual.raw == expected.raw, command
    return actual


def test_dumps_are_the_same_bytes(both):
    """Codes of many lengths and kinds, packed or not."""
    chance = random.Random(17)
    for turn in range(150):
        size = chance.choice([0, 1, 5, 12, 20, 30, 60, 200, 1000, 6000])
        words = [chance.choice(WORDS) if chance.random() < 0.8 else b"%c" % chance.randrange(32, 127) for _ in range(size)]
        code = library(b"lib", b"f", comment=b"--" + b"".join(words).replace(b"\n", b" ") + b"\n")
        same(both, "FUNCTION", "LOAD", "REPLACE", code)
        dumped = same(both, "FUNCTION", "DUMP").value
        if turn % 10 == 0:
            same(both, "FUNCTION", "RESTORE", dumped, "REPLACE")
            same(both, "FUNCTION", "LIST", "WITHCODE")
            same(both, "FCALL", "f", "0")


def test_dumps_of_several_libraries_are_read_by_the_other(both):
    theirs, ours = both
    codes = [library(b"lib%d" % i, b"f%d" % i, b"g%d" % i, comment=b"-- " + b"x" * i * 40 + b"\n") for i in range(8)]
    for c, other in (both, both[::-1]):
        c("FUNCTION", "FLUSH")
        other("FUNCTION", "FLUSH")
        for code in codes:
            c("FUNCTION", "LOAD", code)
        assert other("FUNCTION", "RESTORE", c("FUNCTION", "DUMP")) == b"OK"
        assert listed(other) == listed(c) and len(listed(c)) == 8
        assert other("FCALL", "g7", "0") == b"lib7"
    assert sorted(row[-1] for row in ours("FUNCTION", "LIST", "WITHCODE")) == sorted(codes)


JOINS = {
    "one more": [library(b"c", b"fc")],
    "a library that is there": [library(b"a", b"fx")],
    "the very same": [library(b"a", b"fa")],
    "a function that is there": [library(b"c", b"fa")],
    "a function of another case": [library(b"c", b"FA")],
    "replaced, with another's function": [library(b"a", b"fb")],
    "two that exchange functions": [library(b"a", b"fb"), library(b"b", b"fa")],
    "one twice": [library(b"c", b"fc"), library(b"c", b"fd")],
    "a function twice": [library(b"c", b"fc"), library(b"d", b"fc")],
    "one that is no Lua": [library(b"c", b"fc"), b"#!lua name=d\nx"],
    "one without functions": [library(b"c", b"fc"), b"#!lua name=d\n"],
    "one that fails": [library(b"c", b"fc"), b"#!lua name=d\nredis.call()"],
    "another engine": [library(b"c", b"fc"), b"#!js name=d\n"],
    "no library": [library(b"c", b"fc"), b"return 1"],
    "nothing": [],
}


@pytest.mark.parametrize("codes", JOINS.values(), ids=JOINS.keys())
def test_restore_joins_all_or_nothing(both, codes):
    for policy in ([], ["FLUSH"], ["APPEND"], ["REPLACE"]):
        for c in both:
            c("FUNCTION", "FLUSH")
            c("FUNCTION", "RESTORE", payload(library(b"a", b"fa"), library(b"b", b"fb")))
        replies = [c.call("FUNCTION", "RESTORE", payload(*codes), *policy).raw for c in both]
        # of several that are there already Redis names any
        assert len({re.sub(rb"Library [ab] already", b"Library already", reply) for reply in replies}) == 1, replies
        assert listed(both[1]) == listed(both[0])
        for name in (b"fa", b"fb", b"fc", b"fx"):
            same(both, "FCALL", name, "0")


def test_no_changed_byte_of_a_dump_is_restored(both):
    whole = payload(library(b"c", b"fc"))
    for i in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[i] ^= 0x10
        same(both, "FUNCTION", "RESTORE", bytes(changed))
        same(both, "FUNCTION", "RESTORE", whole[:i])
    assert listed(both[1]) == []


def test_payloads_that_are_made_to_deceive(both):
    """Checksums that fit, and strings that do not."""
    inner = [
        b"\x00\x01x", b"\xf4", b"\xff", b"\xf5", b"\xf5\xc0\x05", b"\xf5\xc1\x05\x00", b"\xf5\xc2\x05\x00\x00\x00", b"\xf5\xc4",
        b"\xf5\x82", b"\xf5\x80\xff\xff\xff\xff", b"\xf5\x81" + b"\xff" * 8, b"\xf5\x30abc", b"\xf5\x03abc", b"\xf5\x00",
        b"\xf5\xc3\x03\x05abcde", b"\xf5\xc3\x00\x00", b"\xf5\xc3\x81" + b"\xff" * 8 + b"\x05a", b"\xf5\xc3\x03\x02\x20\x00a",
        b"\xf6", b"\xf6\x01x", b"\xf6\x01x\x03LUA\x01\x04text\x2dredis.register_function('f', function() end) ",
        b"\xf6\x01y\x03lua\x00\x2dredis.register_function('g', function() end) ",
    ]  # fmt: skip
    for body in inner:
        body += b"\x0a\x00"
        same(both, "FUNCTION", "RESTORE", body + struct.pack("<Q", checksum(body)))
        assert listed(both[1]) == listed(both[0])


def test_a_body_that_does_not_end(both):
    same(both, "FUNCTION", "LOAD", "#!lua name=a\nwhile true do end")
    assert listed(both[1]) == []
    same(both, "FUNCTION", "LOAD", library(b"a", b"f"))
    same(both, "FCALL", "f", "0")


def test_two_names_that_differ_by_case_alone(client):
    """Redis takes them, and fails when the library is deleted."""
    with pytest.raises(ServerError, match="Function already exists in the library"):
        client("FUNCTION", "LOAD", library(b"a", b"f", b"F"))
    assert client("FUNCTION", "LIST") == []


def test_a_library_lives_as_long_as_the_database(fleet):
    server = fleet.larder()
    with server.connect() as c:
        c("FUNCTION", "LOAD", library(b"a", b"fa"))
        c("FUNCTION", "LOAD", library(b"gone", b"fg"))
        c("FUNCTION", "LOAD", "REPLACE", library(b"a", b"fa2"))
        c("FUNCTION", "DELETE", "gone")
        c("FLUSHALL")
        dumped = c("FUNCTION", "DUMP")
    server.kill()
    server.start()
    with server.connect() as c:
        assert c("FCALL", "fa2", "0") == b"a"
        with pytest.raises(ServerError, match="^ERR Function not found$"):
            c("FCALL", "fg", "0")
        assert c("FUNCTION", "DUMP") == dumped and c("DBSIZE") == 0
        c("FUNCTION", "FLUSH")
    server.stop()
    server.check()
    server.start()
    with server.connect() as c:
        assert c("FUNCTION", "LIST") == []


def test_what_a_transaction_loads_it_may_call(client):
    replies = client.pipeline([
        ("MULTI",), ("FUNCTION", "LOAD", library(b"a", b"f")), ("FCALL", "f", "0"),
        ("FUNCTION", "LOAD", "REPLACE", library(b"a", b"g")), ("FCALL", "f", "0"), ("FCALL", "g", "0"),
        ("FUNCTION", "LOAD", library(b"b", b"g")), ("FUNCTION", "DELETE", "a"), ("FCALL", "g", "0"), ("EXEC",),
        ("FCALL", "g", "0"), ("FUNCTION", "LOAD", library(b"a", b"f")), ("FCALL", "f", "0"),
    ])  # fmt: skip
    plain = [str(x) if isinstance(x, ServerError) else x for x in replies[9].plain()]
    missing = "ERR Function not found"
    assert plain == [b"a", b"a", b"a", missing, b"a", "ERR Function g already exists", b"OK", missing]
    assert replies[10].is_error and replies[12].value == b"a"


def test_a_refused_library_leaves_what_was_there(client):
    client("FUNCTION", "LOAD", library(b"a", b"f"))
    client("FUNCTION", "LOAD", library(b"b", b"g"))
    before = client("FUNCTION", "DUMP")
    bad = [
        b"#!lua name=a\nredis.register_function('f', function() return 'new' end) return nil + 1",
        b"#!lua name=a\nredis.register_function('g', function() return 'new' end)",
        b"#!lua name=a\nredis.register_function('f', function() return 'new' end) x = 1",
        b"#!lua name=a\nredis.register_function('f', function() return",
    ]
    for code in bad:
        with pytest.raises(ServerError):
            client("FUNCTION", "LOAD", "REPLACE", code)
        assert client("FCALL", "f", "0") == b"a" and client("FUNCTION", "DUMP") == before


def test_rollback(client):
    """Ours: an error takes back what the function has written."""
    flags = b", flags={'rollback'}"
    for name, more in ((b"keeps", b""), (b"undoes", flags)):
        body = b"function(keys) redis.call('SET', keys[1], 'x') error('no') end"
        client("FUNCTION", "LOAD", b"#!lua name=%s\nredis.register_function{function_name='%s', callback=%s%s}" % (name, name, body, more))
        with pytest.raises(ServerError, match="no script: "):
            client("FCALL", name, "1", name)
    assert client("GET", "keeps") == b"x" and client("EXISTS", "undoes") == 0
    assert client("FUNCTION", "LIST", "LIBRARYNAME", "undoes")[0][5][0][5] == [b"rollback"]


def test_what_a_body_logs_is_logged_once(fleet):
    server = fleet.larder()
    with server.connect() as c:
        c("FUNCTION", "LOAD", b"#!lua name=a\nredis.log(redis.LOG_WARNING, 'the body', 'runs')\n" + library(b"x", b"f").partition(b"\n")[2])
        wait.until(lambda: "the body runs" in server.log_text(), "it is in the log")
        with pytest.raises(ServerError):
            c("FUNCTION", "LOAD", b"#!lua name=b\nredis.log(redis.LOG_WARNING, 'refused')")
    server.kill()
    server.start()
    with server.connect() as c:
        assert c("FCALL", "f", "0") == b"x"
    server.stop()
    assert server.log_text().count("the body runs") == 1


def is_busy(server):
    """A command that came together with the script waits for its end: each look is a new connection's."""
    try:
        with server.connect(timeout=0.3) as c:
            return c.call("PING").is_error
    except TimeoutError:
        return False


@pytest.fixture
def busy(oracle, subjects):
    """busy(command) has both servers busy with it, and gives the connections that sent it and others; at the end none is.
    Of one worker: another one would serve its clients."""
    pair = (oracle, subjects("--workers", "1"))
    code = "#!lua name=a\nredis.register_function('reads', function(keys) redis.call('GET', keys[1]) while true do end end)"
    with contextlib.ExitStack() as stack:

        def connect():
            return [stack.enter_context(server.connect()) for server in pair]

        def begin(*command):
            runners = connect()
            for runner in runners:
                runner.send(encode(command))
            for server in pair:
                wait.until(lambda: is_busy(server), "it is busy")
            return runners, connect()

        for c in connect():
            c("CONFIG", "SET", "busy-reply-threshold", "50")
            c("FUNCTION", "LOAD", "REPLACE", code)
        yield begin
        for c, server in zip(connect(), pair):
            c.call("FUNCTION", "KILL")
            wait.until(lambda: not is_busy(server), "it is busy no more")
            c("CONFIG", "SET", "busy-reply-threshold", "5000")
            c("FUNCTION", "FLUSH")


def test_a_busy_function_is_told_of_and_killed(busy):
    runners, others = busy("FCALL", "reads", "1", "k", "an argument")
    same(others, "PING")
    same(others, "FUNCTION", "LIST")
    same(others, "FCALL", "reads", "1", "k")
    same(others, "SCRIPT", "KILL")
    told = [c.call("FUNCTION", "STATS").plain() for c in others]
    for stats in told:
        assert stats[1][5] >= 50
        stats[1][5] = None
    assert told[0] == told[1] and told[1][1][:4] == [b"name", b"reads", b"command", [b"FCALL", b"reads", b"1", b"k", b"an argument"]]
    same(others, "FUNCTION", "KILL")
    assert len({c.read().raw for c in runners}) == 1
    same(runners, "FUNCTION", "KILL")
    same(runners, "FUNCTION", "STATS")


def test_a_library_that_has_no_memory_is_told_of(fleet):
    """It stays a row, and works again when there is room; the others work."""
    server = fleet.larder()
    with server.connect() as c:
        for i in range(10):
            code = f"#!lua name=lib{i}\nlocal t = '{str(i) * 300000}'\nredis.register_function('f{i}', function() return #t end)"
            assert c("FUNCTION", "LOAD", code) == b"lib%d" % i
    server.stop()
    server.options = ["--script-memory", "1mb"]
    server.start()
    with server.connect() as c:
        assert len(c("FUNCTION", "LIST")) == 10
        working = [i for i in range(10) if not c.call("FCALL", f"f{i}", "0").is_error]
        assert 0 < len(working) < 10
        broken = next(i for i in range(10) if i not in working)
        with pytest.raises(ServerError, match="^ERR Function not found, and library 'lib.' could not be loaded: .*not enough memory$"):
            c("FCALL", f"f{broken}", "0")
        assert c("FUNCTION", "DELETE", f"lib{broken}") == b"OK"
        c("CONFIG", "SET", "script-memory", "64mb")
        assert [c.call("FCALL", f"f{i}", "0").is_error for i in range(10)] == [i == broken for i in range(10)]


def test_monitors_see_functions_as_they_do_in_redis(both, oracle, subject):
    seen = []
    for c, server in zip(both, (oracle, subject)):
        c("FUNCTION", "LOAD", "#!lua name=m\nredis.register_function('m', function(keys) return redis.call('SET', keys[1], 'v') end)")
        with server.connect() as monitor:
            monitor("MONITOR")
            c("FCALL", "m", "1", "k")
            c.call("FCALL", "nope", "0")
            lines = [re.sub(rb"^[0-9.]+ \[(\d+) [^l][^]]*\]", rb"\1", monitor.read().value) for _ in range(3)]
            seen.append([re.sub(rb"^[0-9.]+ ", b"", line) for line in lines])
    assert seen[0] == seen[1]


def random_library(chance):
    """Of few names, so that they meet; some are none."""
    name = chance.choice([b"a", b"b", b"c", b"d"])
    functions = chance.sample([b"f", b"g", b"h", b"i", b"j"], chance.randrange(0, 3))
    flags = [chance.choice([b"", b", flags={'no-writes'}", b", flags={'allow-oom', 'no-writes'}", b", flags={'nope'}"]) for _ in functions]
    bodies = [chance.choice([b"return 1", b"return redis.call('INCR', 'n')", b"return redis.call('GET', 'n')", b"return x", b"error('e')", b"return ("])
              for _ in functions]  # fmt: skip
    lines = [b"redis.register_function{function_name='%s', callback=function() %s end%s}" % row for row in zip(functions, bodies, flags)]
    return b"#!lua name=%s\n" % name + b"\n".join(lines)


def random_command(chance):
    kind = chance.randrange(12)
    if kind < 4:
        return ["FUNCTION", "LOAD", *chance.choice([[], ["REPLACE"]]), random_library(chance)]
    if kind < 8:
        return [chance.choice(["FCALL", "FCALL", "FCALL_RO"]), chance.choice("fghijFG"), "0"]
    if kind < 9:
        return ["FUNCTION", "DELETE", chance.choice("abcd")]
    if kind < 10:
        codes = {code.partition(b"\n")[0]: code for code in (random_library(chance) for _ in range(2))}
        return ["FUNCTION", "RESTORE", payload(*codes.values()), *chance.choice([[], ["FLUSH"], ["APPEND"], ["REPLACE"]])]
    return chance.choice([["FUNCTION", "STATS"], ["GET", "n"], ["FUNCTION", "FLUSH"]])


@pytest.mark.parametrize("seed", range(3))
def test_random_commands(both, seed):
    """One by one, and some as transactions."""
    chance = random.Random(seed)
    for _ in range(150):
        commands = [random_command(chance) for _ in range(chance.choice([1, 1, 1, 5]))]
        if len(commands) > 1:
            commands = [["MULTI"], *commands, [chance.choice(["EXEC", "EXEC", "DISCARD"])]]
        replies = [[reply.raw for reply in c.pipeline(commands)] for c in both]
        # of several things that are wrong Redis names any
        shown = [[re.sub(rb"(Library|Function) '?\w'? already exists", b"exists", raw) for raw in side] for side in replies]
        assert shown[0] == shown[1], commands
        assert listed(both[1]) == listed(both[0]), commands
