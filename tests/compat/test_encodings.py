"""OBJECT ENCODING and DEBUG OBJECT tell what redis-server would, on both sides of each of its limits."""

import re

import pytest

from harness import servers, wait

LONG = b"x" * 65
FIT = b"x" * 64


def numbered(count):
    return [b"%d" % i for i in range(count)]


def pairs(names):
    return [word for name in names for word in (name, b"1")]


def scores(names):
    return [word for name in names for word in (b"1", name)]


CASES = {
    "set of integers": ["SADD", *numbered(3)],
    "set at its limit": ["SADD", *numbered(512)],
    "set beyond it": ["SADD", *numbered(513)],
    "large set": ["SADD", *numbered(5000)],
    "set of extremes": ["SADD", 2**63 - 1, -(2**63)],
    "set with what is too large": ["SADD", 1, 2**63],
    "set with a word": ["SADD", *numbered(10), "x"],
    "set with what is no integer": ["SADD", "1", "01"],
    "set with nothing": ["SADD", ""],
    "hash": ["HSET", *pairs(numbered(3))],
    "hash at its limit": ["HSET", *pairs(numbered(512))],
    "hash beyond it": ["HSET", *pairs(numbered(513))],
    "large hash": ["HSET", *pairs(numbered(5000))],
    "hash with a field that fits": ["HSET", FIT, FIT],
    "hash with a long field": ["HSET", LONG, "1"],
    "hash with a long value": ["HSET", "f", LONG],
    "sorted set": ["ZADD", *scores(numbered(3))],
    "sorted set at its limit": ["ZADD", *scores(numbered(128))],
    "sorted set beyond it": ["ZADD", *scores(numbered(129))],
    "large sorted set": ["ZADD", *scores(numbered(5000))],
    "sorted set with a member that fits": ["ZADD", "1", FIT],
    "sorted set with a long member": ["ZADD", "1", LONG],
    "list": ["RPUSH", "a"],
    "longer list": ["RPUSH", *numbered(200)],
    "large list": ["RPUSH", *numbered(5000)],
    "list with a long item": ["RPUSH", "x" * 9000],
    "integer": ["SET", "12345"],
    "short string": ["SET", "x" * 44],
    "longer string": ["SET", "x" * 45],
    "long string": ["SET", "x" * 70_000],
}


@pytest.mark.parametrize("name", CASES)
def test_encodings(name, oracle, subject):
    command, *words = CASES[name]
    told = []
    for server in (oracle, subject):
        with server.connect() as c:
            c("DEL", "k")
            c(command, "k", *words)
            encoding = c("OBJECT", "ENCODING", "k")
            described = re.search(rb" encoding:(\w+) ", c("DEBUG", "OBJECT", "k"))[1]
            told.append((encoding, described))
            c("DEL", "k")
    assert told[0] == told[1]


# --- what depends on how a value came to be

HISTORIES = {
    "appended": [["SET", "k", "abc"], ["APPEND", "k", "d"]],
    "integer appended": [["SET", "k", "12"], ["APPEND", "k", "3"]],
    "created by append": [["APPEND", "k", "12"]],
    "range set": [["SET", "k", "abcdef"], ["SETRANGE", "k", "1", "x"]],
    "range set of nothing": [["SET", "k", "abc"], ["SETRANGE", "k", "1", ""]],
    "created by setrange": [["SETRANGE", "k", "1", "x"]],
    "bit set": [["SET", "k", "a"], ["SETBIT", "k", "6", "1"]],
    "bitfield": [["BITFIELD", "k", "SET", "u8", "0", "65"]],
    "bitop": [["SET", "a", "abc"], ["BITOP", "NOT", "k", "a"]],
    "incremented after append": [["APPEND", "k", "1"], ["APPEND", "k", "2"], ["INCR", "k"]],
    "float": [["SET", "k", "1"], ["INCRBYFLOAT", "k", "2"]],
    "float, then integer": [["INCRBYFLOAT", "k", "2"], ["INCR", "k"]],
    "set anew": [["SET", "k", "1"], ["APPEND", "k", "2"], ["SET", "k", "12"]],
    "expiry keeps raw": [["SET", "k", "a"], ["APPEND", "k", "b"], ["EXPIRE", "k", "1000"], ["PERSIST", "k"]],
    "renamed": [["SET", "a", "x"], ["APPEND", "a", "y"], ["RENAME", "a", "k"]],
    "copied": [["SET", "a", "x"], ["APPEND", "a", "y"], ["COPY", "a", "k"]],
    "hash that shrank": [["HSET", "k", *pairs(numbered(513))], ["HDEL", "k", *numbered(500)]],
    "hash whose long value went": [["HSET", "k", "f", LONG], ["HSET", "k", "f", "1"]],
    "hash whose long field went": [["HSET", "k", LONG, "1", "f", "1"], ["HDEL", "k", LONG]],
    "hash made long by a counter": [["HSET", "k", "f", "1"], ["HINCRBY", "k", LONG, "1"], ["HDEL", "k", LONG]],
    "hash copied": [["HSET", "a", "f", LONG], ["HSET", "a", "f", "1"], ["COPY", "a", "k"]],
    "hash renamed": [["HSET", "a", "f", LONG], ["HSET", "a", "f", "1"], ["RENAME", "a", "k"]],
    "hash made anew": [["HSET", "k", "f", LONG], ["DEL", "k"], ["HSET", "k", "f", "1"]],
    "set that lost its word": [["SADD", "k", "1", "x"], ["SREM", "k", "x"]],
    "set that shrank": [["SADD", "k", *numbered(513)], ["SREM", "k", *numbered(500)]],
    "set popped by one": [["SADD", "k", *numbered(513)], ["SPOP", "k"], ["SPOP", "k"]],
    "set popped by many": [["SADD", "k", *numbered(600)], ["SPOP", "k", "590"]],
    "set popped by some": [["SADD", "k", *numbered(600)], ["SPOP", "k", "300"]],
    "set moved into": [["SADD", "k", "1"], ["SADD", "a", "x"], ["SMOVE", "a", "k", "x"], ["SREM", "k", "x"]],
    "set stored": [["SADD", "a", "1", "x"], ["SADD", "b", "1", "2"], ["SINTERSTORE", "k", "a", "b"]],
    "union stored": [["SADD", "a", "1", "x"], ["SADD", "b", "1"], ["SUNIONSTORE", "k", "a", "b"], ["SREM", "k", "x"]],
    "sorted set that shrank": [["ZADD", "k", *scores(numbered(129))], ["ZREM", "k", *numbered(120)]],
    "sorted set cut": [["ZADD", "k", *scores(numbered(129))], ["ZREMRANGEBYRANK", "k", "1", "-1"]],
    "sorted set whose long member went": [["ZADD", "k", "1", LONG, "2", "b"], ["ZREM", "k", LONG]],
    "sorted set stored": [["ZADD", "a", "1", LONG, "2", "b"], ["ZRANGESTORE", "k", "a", "1", "1"]],
    "sorted set combined": [["ZADD", "a", "1", LONG, "2", "b"], ["ZADD", "b", "1", "b"], ["ZINTERSTORE", "k", "2", "a", "b"]],
    "in a transaction": [["MULTI"], ["SET", "k", "a"], ["APPEND", "k", "b"], ["EXEC"]],
    "fewer entries": [["CONFIG", "SET", "hash-max-listpack-entries", "2"], ["HSET", "k", *pairs(numbered(3))]],
    "no entries": [["CONFIG", "SET", "zset-max-listpack-entries", "0"], ["ZADD", "k", "1", "a"]],
    "old names": [["CONFIG", "SET", "zset-max-ziplist-value", "2"], ["ZADD", "k", "1", "abc"]],
    "shorter values": [["CONFIG", "SET", "hash-max-listpack-value", "2"], ["HSET", "k", "f", "abc"]],
    "smaller sets": [["CONFIG", "SET", "set-max-intset-entries", "2"], ["SADD", "k", "1", "2", "3"]],
    "more entries": [["CONFIG", "SET", "hash-max-listpack-entries", "600"], ["HSET", "k", *pairs(numbered(600))]],
    "a limit that comes later": [["HSET", "k", *pairs(numbered(3))], ["CONFIG", "SET", "hash-max-listpack-entries", "2"]],
    "a limit that goes later": [["HSET", "k", *pairs(numbered(513))], ["CONFIG", "SET", "hash-max-listpack-entries", "600"]],
    "a limit that meets the next write": [
        ["HSET", "k", *pairs(numbered(3))],
        ["CONFIG", "SET", "hash-max-listpack-entries", "2"],
        ["HSET", "k", "0", "2"],
    ],
    "list fill": [["CONFIG", "SET", "list-max-listpack-size", "1"], ["RPUSH", "k", "a", "b", "c"]],
}  # fmt: skip
LIMITS = {
    "hash-max-listpack-entries": "512",
    "hash-max-listpack-value": "64",
    "set-max-intset-entries": "512",
    "zset-max-listpack-entries": "128",
    "zset-max-listpack-value": "64",
    "list-max-listpack-size": "-2",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Both servers, the subject with memory for its rows."""
    redis = servers.Redis(tmp_path_factory.mktemp("redis")).start()
    larder = servers.Larder(tmp_path_factory.mktemp("larder"), ["--cache-memory", "64mb"]).start()
    yield redis, larder
    larder.stop()
    redis.stop()


@pytest.mark.sqlite
@pytest.mark.parametrize("name", HISTORIES)
def test_encodings_remember(name, pair):
    told = []
    for server in pair:
        with server.connect() as c:
            c("FLUSHALL")
            for words in HISTORIES[name]:
                c(*words)
            told.append((c("OBJECT", "ENCODING", "k"), c("OBJECT", "REFCOUNT", "k")))
            c("CONFIG", "SET", *[word for limit in LIMITS.items() for word in limit])
    assert told[0] == told[1]


def test_a_restart_derives_encodings_anew(fleet):
    """As redis-server does when it loads its file."""
    larder = fleet.larder()
    with larder.connect() as c:
        c("HSET", "h", *pairs(numbered(513)))
        c("HDEL", "h", *numbered(500))
        c("SET", "s", "a")
        c("APPEND", "s", "b")
    larder.stop()
    with larder.start().connect() as c:
        assert [c("OBJECT", "ENCODING", k) for k in ("h", "s")] == [b"listpack", b"embstr"]


# --- idle time

USES = {
    "get": ["GET", "get"],
    "set": ["SET", "set", "w"],
    "append": ["APPEND", "append", "w"],
    "strlen": ["STRLEN", "strlen"],
    "touch": ["TOUCH", "touch"],
    "expire": ["EXPIRE", "expire", "1000"],
    "exists": ["EXISTS", "exists"],
    "type": ["TYPE", "type"],
    "ttl": ["TTL", "ttl"],
    "pexpiretime": ["PEXPIRETIME", "pexpiretime"],
    "object": ["OBJECT", "ENCODING", "object"],
    "freq": ["OBJECT", "REFCOUNT", "freq"],
    "debug": ["DEBUG", "OBJECT", "debug"],
    "memory": ["MEMORY", "USAGE", "memory"],
    "copy": ["COPY", "copy", "elsewhere"],
    "nothing": ["PING"],
}


@pytest.mark.sqlite
def test_idle_time(fleet):
    """Which commands count as use: redis-server needs real seconds for it, Larder has a clock to set."""
    told = []
    for server in (fleet.redis(), fleet.larder("--cache-memory", "64mb")):
        with server.connect() as c:
            for key in USES:
                c("SET", key, "v")
            if server.name == "redis":
                wait.until(lambda: c("OBJECT", "IDLETIME", "nothing") >= 3, "a key idle for three seconds", limit=30)
            else:
                c("DEBUG", "CLOCK", "+5000")
            for words in USES.values():
                c(*words)
            told.append({key: c("OBJECT", "IDLETIME", key) >= 3 for key in USES})
    assert told[0] == told[1]


@pytest.mark.sqlite
def test_idle_time_in_seconds(client):
    client("DEBUG", "CLOCK", 1_800_000_000_000)
    client("SET", "k", "v")
    client("HSET", "h", "f", "v")
    assert client("OBJECT", "IDLETIME", "k") == 0
    client("DEBUG", "CLOCK", "+100000")
    client("HGET", "h", "f")
    assert [client("OBJECT", "IDLETIME", k) for k in ("k", "k", "h")] == [100, 100, 0]
    client("DEBUG", "CLOCK", "+7000")
    assert [client("OBJECT", "IDLETIME", k) for k in ("k", "h")] == [107, 7]
    client("GET", "k")
    assert client("OBJECT", "IDLETIME", "k") == 0
    client("DEBUG", "CLOCK", 1_700_000_000_000)  # a clock that goes back
    assert client("OBJECT", "IDLETIME", "k") == 0
