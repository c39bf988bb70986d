"""Hashes of every size around the borders of their forms (in memory, in the tables): the same answers as
redis-server's, before and after a restart; random fields are any of them, scans miss nothing, and `larder check` finds
nothing wrong with the tables."""

import os
import random

import pytest

LONG = os.environ.get("LARDER_LONG") == "1"
SIZES = [1, 129, 1024, 1025, 4096, 4097] + ([2, 127, 128, 1023, 4095, 10_000, 100_000] if LONG else [])
QUICK = ["--durability", "everysec"]
SETTINGS = {"default": QUICK, "uncached": [*QUICK, "--cache-memory", "0", "--page-cache", "256kb"]}


def chunks(items, n):
    return [items[i : i + n] for i in range(0, len(items), n)]


class Both:
    """The same commands on both servers."""

    def __init__(self, oracle, subject):
        self.connections = [oracle.connect(), subject.connect()]

    def __call__(self, *args):
        expected, actual = (c.call(*args) for c in self.connections)
        assert actual.raw == expected.raw, args[:6]
        return expected.plain()

    def unordered(self, *args):
        expected, actual = (c(*args) for c in self.connections)
        assert sorted(actual) == sorted(expected), args
        return expected

    def many(self, commands):
        for part in chunks(commands, 300):
            expected, actual = (c.pipeline(part) for c in self.connections)
            for command, a, b in zip(part, expected, actual):
                assert a.raw == b.raw, command[:6]

    def close(self):
        for c in self.connections:
            c.close()


def scan(connection, key, *options):
    found, cursor = [], b"0"
    while True:
        cursor, words = connection("HSCAN", key, cursor, *options)
        found += zip(words[::2], words[1::2])
        if cursor == b"0":
            return found


def pairs(connection, key):
    words = connection("HGETALL", key)
    return dict(zip(words[::2], words[1::2]))


def look(both, names, r):
    """Reads that must be the same, and choices that must be possible ones."""
    ours = both.connections[1]
    both("HLEN", "h")
    both.unordered("HKEYS", "h")
    both.unordered("HVALS", "h")
    here = pairs(both.connections[0], "h")
    assert pairs(ours, "h") == here
    some = r.sample(names, min(len(names), 50)) + [b"missing", b""]
    both("HMGET", "h", *some)
    both.many([[command, "h", name] for name in some for command in ("HGET", "HEXISTS", "HSTRLEN")])
    assert sorted(scan(ours, "h")) == sorted(scan(ours, "h", "COUNT", 1000)) == sorted(here.items())
    assert sorted(scan(ours, "h", "COUNT", 100, "MATCH", "*7")) == sorted(p for p in here.items() if p[0].endswith(b"7"))
    for count in (1, 3, len(here) // 20, len(here) // 2, len(here) + 5):
        drawn = ours("HRANDFIELD", "h", count)
        assert len(set(drawn)) == len(drawn) == min(count, len(here)) and set(drawn) <= here.keys()
    drawn = ours("HRANDFIELD", "h", -100, "WITHVALUES")
    assert len(drawn) == (200 if here else 0)
    assert all(here[name] == value for name, value in zip(drawn[::2], drawn[1::2]))


def change(both, names, r):
    """Fields come, change and go, here and there, alone, in pipelines and many at once."""
    both.many([["HSET", "h", r.choice(names), r.randrange(1000)] for _ in range(200)])
    both.many([["HINCRBY", "h", r.choice(names), r.randint(-9, 9)] for _ in range(200)])
    both.many([["HINCRBYFLOAT", "h", r.choice(names), "0.25"] for _ in range(50)])
    both.many([["HDEL", "h", r.choice(names)] for _ in range(100)])
    both.many([["HSETNX", "h", r.choice(names), "new"] for _ in range(100)])
    part = r.sample(names, len(names) // 3)
    for group in chunks(part, 700):
        both("HDEL", "h", *group, b"missing", group[0])
    both("HSET", "h", *[word for name in part[: len(part) // 2 + 1] or names[:1] for word in (name, "7")])
    both.many([["HSET", "h", b"more:%d" % i, "x"] for i in range(30)])
    both.many([["HDEL", "h", b"more:%d" % i] for i in range(30)])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("size", SIZES)
def test_every_size(size, setting, oracle, fleet):
    r = random.Random(size)
    larder = fleet.larder(*SETTINGS[setting])
    names = [b"%s:%d" % (r.choice([b"field", b"f", b"a-longer-name-of-a-field"]), i) for i in range(size)]
    r.shuffle(names)
    both = Both(oracle, larder)
    both("FLUSHALL")
    for part in chunks(names, 900):
        both("HSET", "h", *[word for name in part for word in (name, b"%d" % r.randrange(10**6))])
    look(both, names, r)
    for _ in range(2):
        change(both, names, r)
        look(both, names, r)
    both("COPY", "h", "copy")
    both("RENAME", "copy", "h")
    both.close()
    larder.stop()
    larder.check()
    larder.start()
    both = Both(oracle, larder)
    look(both, names, r)
    change(both, names, r)
    look(both, names, r)
    left = both.unordered("HKEYS", "h")
    for group in chunks(left, 800):
        both("HDEL", "h", *group)
    both("EXISTS", "h")
    both.close()
    larder.stop()
    larder.check()
