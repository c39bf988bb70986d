"""Sorted sets of every size around the borders of their forms (in memory, in the tables, with rank blocks): the same
answers as redis-server's, before and after a restart, and tables that `larder check` finds nothing wrong with."""

import os
import random

import pytest

LONG = os.environ.get("LARDER_LONG") == "1"
SIZES = [1, 128, 129, 1024, 1025, 4096, 4097, 20_000] + ([127, 1023, 4098, 100_000] if LONG else [])
SETTINGS = {"default": [], "uncached": ["--cache-memory", "0", "--page-cache", "256kb"]}


def members(size, seed):
    r = random.Random(seed)
    names = [b"%s:%d" % (r.choice([b"member", b"m", b"a-longer-name-of-a-member"]), i) for i in range(size)]
    r.shuffle(names)
    kinds = [lambda: r.randint(-50, 50), lambda: r.random() * 1e6, lambda: r.choice(["inf", "-inf", "5e-324", "1e300"])]
    return [(r.choices(kinds, [5, 5, 0.2])[0](), name) for name in names]


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

    def many(self, commands):
        for part in chunks(commands, 500):
            expected, actual = (c.pipeline(part) for c in self.connections)
            for command, a, b in zip(part, expected, actual):
                assert a.raw == b.raw, command[:6]

    def close(self):
        for c in self.connections:
            c.close()


def scan(connection, key, count):
    """Everything that a whole iteration tells."""
    found, cursor = {}, b"0"
    while True:
        cursor, words = connection("ZSCAN", key, cursor, "COUNT", count)
        found.update(zip(words[::2], words[1::2]))
        if cursor == b"0":
            return found


def look(both, names, r):
    size = both("ZCARD", "z")
    some = r.sample(names, min(len(names), 60)) + [b"missing"]
    ranks = sorted({0, 1, size // 2, size - 2, size - 1, *(r.randrange(size) for _ in range(30))}) if size else []
    both.many([[command, "z", name] for name in some for command in ("ZRANK", "ZREVRANK", "ZSCORE")])
    both.many([[command, "z", rank, rank + n, "WITHSCORES"] for rank in ranks for n in (0, 20) for command in ("ZRANGE", "ZREVRANGE")])
    ends = ["-inf", "(-inf", "0", "(0", "17", "(17", "250000.5", "(inf", "inf", "5e-324", "(5e-324"]
    both.many([["ZCOUNT", "z", a, b] for a in ends for b in ends])
    both.many([["ZRANGEBYSCORE", "z", a, b, "LIMIT", offset, 7] for a, b in zip(ends, reversed(ends)) for offset in (0, 3, size // 2)])
    both.many([["ZREVRANGEBYSCORE", "z", a, b, "LIMIT", offset, 7] for a, b in zip(ends, reversed(ends)) for offset in (0, 3, size // 2)])
    both("ZRANGE", "z", 0, -1, "WITHSCORES")
    both("ZRANGE", "z", 0, -1, "REV")
    assert scan(both.connections[0], "z", 700).keys() == scan(both.connections[1], "z", 700).keys()
    sample = both.connections[1]("ZRANDMEMBER", "z", size // 2 + 1) if size else []
    assert len(set(sample)) == len(sample) == min(size, size // 2 + 1) or not size


def change(both, names, r):
    """About as many come as go, here and there and all over."""
    both.many([["ZINCRBY", "z", r.randint(-100, 100), r.choice(names)] for _ in range(300)])
    both.many([["ZREM", "z", r.choice(names)] for _ in range(100)])
    both.many([["ZADD", "z", "CH", "17", name] for name in r.sample(names, min(len(names), 300))])
    both.many([["ZADD", "z", "XX", "GT", r.randint(0, 1000), r.choice(names)] for _ in range(100)])
    both("ZPOPMIN", "z", 3)
    both("ZPOPMAX", "z", 3)
    both("ZREMRANGEBYRANK", "z", len(names) // 2, len(names) // 2 + 5)
    both("ZREMRANGEBYSCORE", "z", 16.5, 17.5)
    both("ZADD", "z", 1, "first", 2, "second")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("size", SIZES)
def test_sizes(size, setting, fleet, oracle):
    with oracle.connect() as c:
        c("FLUSHALL")
    larder = fleet.larder(*SETTINGS[setting], "--durability", "everysec")
    r = random.Random(size)
    items = members(size, size)
    names = [name for _, name in items]
    both = Both(oracle, larder)
    both.many([["ZADD", "z", *[word for item in part for word in item]] for part in chunks(items, r.choice([1, 7, 100, 5000]))])
    look(both, names, r)
    both("COPY", "z", "copy")
    change(both, names, r)
    look(both, names, r)
    both.close()

    larder.stop()
    larder.check()
    larder.start()
    both = Both(oracle, larder)
    look(both, names, r)
    both("ZUNIONSTORE", "both", 2, "z", "copy", "AGGREGATE", "MAX")
    both("ZINTERSTORE", "common", 2, "z", "copy")
    both("ZDIFFSTORE", "gone", 2, "copy", "z")
    both("ZRANGESTORE", "z", "both", size // 4, -(size // 4) - 1)
    both("ZREMRANGEBYRANK", "both", size // 10, -(size // 10) - 1)  # most of it
    for key in ("z", "both", "common", "gone"):
        both("ZRANGE", key, 0, -1, "WITHSCORES")
    change(both, names, r)
    look(both, names, r)
    both("RENAME", "copy", "z")
    look(both, names, r)
    both("ZREMRANGEBYRANK", "z", 0, -1)
    both("EXISTS", "z")
    both("ZADD", "z", 1, "a")
    both("ZRANGE", "z", 0, -1)
    both.close()
    larder.stop()
    larder.check()


def test_shrinking_and_growing_through_every_form(fleet, oracle):
    """A set goes from the tables to memory and back with its blocks made, left behind and made again."""
    with oracle.connect() as c:
        c("FLUSHALL")
    larder = fleet.larder("--durability", "everysec")
    both = Both(oracle, larder)
    r = random.Random(5)
    names = [b"m%d" % i for i in range(6000)]
    for _ in range(3):
        both.many([["ZADD", "z", r.randint(0, 500), name] for name in r.sample(names, len(names))])
        both("ZREMRANGEBYRANK", "z", 0, 200)
        both.many([["ZRANK", "z", name] for name in r.sample(names, 50)])
        both("ZREMRANGEBYRANK", "z", 100, 3000)
        both.many([["ZREM", "z", name] for name in r.sample(names, 5500)])
        both.many([["ZADD", "z", 7, name] for name in names[:100]])
        both.many([["ZRANK", "z", name] for name in r.sample(names, 50)])
        both("ZRANGE", "z", 0, -1, "WITHSCORES")
    both.close()
    larder.stop()
    larder.check()


@pytest.mark.parametrize("size", [128, 129, 5000])
def test_a_sorted_set_that_was_large_keeps_the_sign_of_zero(size, fleet, oracle):
    """Redis' compact form has no -0, and a set that has left that form does not come back to it."""
    with oracle.connect() as c:
        c("FLUSHALL")
    both = Both(oracle, fleet.larder("--durability", "everysec"))
    both("ZADD", "z", *[word for i in range(size) for word in (i + 1, b"m%d" % i)])
    both("ZREMRANGEBYRANK", "z", 50, -1)
    both("OBJECT", "ENCODING", "z")
    both("ZADD", "z", "-0.0", "new", "-0.0", "m7")
    both("ZRANGE", "z", 0, 3, "WITHSCORES")
    both.close()
