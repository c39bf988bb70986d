"""Dumps restore: under the same name and another, with nothing missing; and what is not whole is refused."""

import pathlib
import re

import pytest

from harness import databases, servers, store

from . import dumps

HERE = pathlib.Path(__file__).parent
BYTES = bytes(range(256))
LONG = b"k" * 3000
FUNCTIONS = {"postgres": "SELECT {}", "mariadb": "CALL {}"}


def fill(c):
    """Keys of every type, with names and values that a dump may stumble over."""
    c("SET", b"s" + BYTES, BYTES)
    c("SET", LONG, "long name")
    c("SET", "chunks", BYTES * 300)
    c("SET", "brief", "x", "EX", 3600)
    c("SETRANGE", "sparse", 70_000, "end")
    c("HSET", "hash", BYTES, "v", "f", BYTES, LONG, "w")
    c("HPEXPIRE", "hash", 3_600_000, "FIELDS", 1, "f")
    c("RPUSH", "list", "b", BYTES)
    c("LPUSH", "list", "a")
    c("SADD", "set", BYTES, LONG, "m")
    c("ZADD", "zset", "-inf", "lo", "inf", "hi", "-0.0", BYTES, "1e-300", LONG)
    c("ZADD", "many", *[w for i in range(2000) for w in (i, b"m%d" % i)])
    c("SET", "gone", "x")
    c("DEL", "gone")
    c("SELECT", 5)
    c("SET", "other", "database")
    c("SELECT", 0)


def content(c):
    """What clients see."""
    found = {}
    for db in range(6):
        c("SELECT", db)
        for key in sorted(c("KEYS", "*")):
            reads = {b"string": ("GET",), b"list": ("LRANGE", 0, -1), b"set": ("SMEMBERS",), b"hash": ("HGETALL",),
                     b"zset": ("ZRANGE", 0, -1, "WITHSCORES")}  # fmt: skip
            name, *rest = reads[c("TYPE", key)]
            value = c(name, key, *rest)
            found[db, key] = (sorted(value) if name in ("SMEMBERS", "HGETALL") else value, c("PEXPIRETIME", key))
    c("SELECT", 0)
    return found


def check(data):
    done = servers.run(["check", "--store", data.url])
    assert done.returncode == 0, done.stdout + done.stderr


def serves(fleet, copy, expected):
    """The copy has what the original had, and is a store like any other."""
    check(copy)
    larder = fleet.larder("--sweep-interval", "1h", data=copy)
    with larder.connect() as c:
        assert content(c) == expected
        for i in range(50):  # numbers and ids that nobody has had
            c("SET", f"new:{i}", i)
            c("RPUSH", f"newlist:{i}", i)
        assert content(c).items() >= expected.items()
        assert c("DBSIZE") == len([k for k in expected if k[0] == 0]) + 100
    larder.stop()
    copy.query(FUNCTIONS[copy.kind].format("larder_set('from sql', 'v', NULL)"))
    assert copy.query("SELECT count(*) FROM larder_strings WHERE db = 5") == [["1"]]
    check(copy)


@pytest.mark.parametrize("kind, way", dumps.PAIRS)
def test_a_dump_restores(fleet, kind, way):
    """Made while a server runs; brought back beside the original, and again when that is gone."""
    data = store.KINDS[kind]()
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        fill(c)
        expected = content(c)
        text = dumps.dump(data, way)
        c("SET", "later", "is not in the dump")
        before = content(c)
        serves(fleet, dumps.copy_of(data, text), expected)
        assert content(c) == before  # nothing of the copy's reached the original
    larder.stop()
    check(data)
    data.server.drop_database(data.name)
    serves(fleet, dumps.copy_of(data, text, name=data.name), expected)
    serves(fleet, dumps.copy_of(data, text), expected)  # the original is not needed


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_dump_of_a_server_alone_has_its_journal(fleet, kind):
    """What was acknowledged is in the dump, in the tables or in the journal; whoever comes next applies it."""
    data = store.KINDS[kind](mode="exclusive")
    larder = fleet.larder("--apply-lag", "1h", data=data)
    with larder.connect() as c:
        fill(c)
        for i in range(200):
            c.send(b"SET many:%d %d\r\n" % (i, i))
        for _ in range(200):
            assert c.read().plain() == b"OK"
        expected = content(c)
        text = dumps.dump(data, next(iter(dumps.WAYS[kind])) if kind == "postgres" else "single-transaction")
    larder.kill()
    copy = dumps.copy_of(data, text)
    serves(fleet, copy, expected)
    serves(fleet, dumps.copy_of(data, text, mode="exclusive"), expected)
