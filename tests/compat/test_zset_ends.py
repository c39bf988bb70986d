"""Both ends of sorted sets that are only in the tables: what is popped, ranged over and ranked there is what redis-server says,
whatever comes, goes, changes its score or is undone in between, in the same batch or another."""

import random

import pytest

from compat.test_zset_sizes import Both

SETTINGS = {
    "default": (0, []),
    "of four": (4, []),
    "of two, hardly any memory": (2, ["--cache-memory", "0", "--page-cache", "256kb", "--journal-max", "1mb"]),
    "of eight, without a journal": (8, ["--journal-max", "0"]),
}
SIZE = 5000  # more than memory takes as a whole
UNDONE = """#!lua flags=rollback
redis.call('ZPOPMIN', KEYS[1], 3) redis.call('ZPOPMAX', KEYS[1]) redis.call('ZADD', KEYS[1], '-inf', 'never') redis.call('ZRANGE', KEYS[1], 0, 9)
return redis.error_reply('ERR no')"""


def name(r):
    return b"m%d" % r.randrange(2 * SIZE)


def score(r):
    """Often near an end, and often that of others."""
    return r.choice([r.randrange(-3, 4), r.randrange(SIZE // 20), SIZE // 20 - r.randrange(4), r.choice(["-inf", "inf", "-0.0", "1e300"])])


def a_look(r):
    start, n = r.choice([0, 0, 0, 1, 5, 30]), r.choice([0, 1, 5, 20, 300])
    low, high = r.choice(["-inf", "(-1", "0"]), r.choice(["+inf", "3", "(2", str(SIZE // 20 - 3)])
    return r.choice([
        ["ZRANGE", "z", start, start + n, "WITHSCORES"],
        ["ZREVRANGE", "z", start, start + n, "WITHSCORES"],
        ["ZRANGE", "z", -n - 1, -1],
        ["ZRANGEBYSCORE", "z", low, high, "WITHSCORES", "LIMIT", start, n],
        ["ZREVRANGEBYSCORE", "z", high, low, "LIMIT", start, n],
        ["ZRANGEBYSCORE", "z", "-inf", r.randrange(-3, 3)],
        ["ZCOUNT", "z", low, high],
        ["ZCOUNT", "z", r.randrange(-3, 3), "+inf"],
        ["ZRANK", "z", name(r)],
        ["ZREVRANK", "z", name(r)],
        ["ZSCORE", "z", name(r)],
    ])


def a_write(r, ends):
    near = r.choice(ends) if ends else name(r)
    return r.choice([
        ["ZPOPMIN", "z"],
        ["ZPOPMAX", "z"],
        ["ZPOPMIN", "z", r.choice([1, 3, 10])],
        ["ZPOPMAX", "z", r.choice([2, 7])],
        ["ZMPOP", 2, "none", "z", r.choice(["MIN", "MAX"]), "COUNT", r.choice([1, 6])],
        ["BZPOPMIN", "z", 0],
        ["ZADD", "z", *[w for _ in range(r.choice([1, 8])) for w in (score(r), name(r))]],
        ["ZADD", "z", score(r), near],
        ["ZINCRBY", "z", r.choice([1, -1, 2.5]), near],
        ["ZREM", "z", near, name(r)],
        ["ZREM", "z", *(r.sample(ends, min(4, len(ends))) or [near])],
        ["ZREMRANGEBYRANK", "z", *r.choice([(0, 2), (-3, -1), (100, 104), (0, 70), (-70, -1), (1, 80)])],
        ["ZREMRANGEBYSCORE", "z", "-inf", "(-2"],
    ])


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_ends_are_what_redis_says(setting, fleet, oracle):
    r = random.Random(setting)
    ends, options = SETTINGS[setting]
    larder = fleet.larder("--durability", "everysec", *options)
    with oracle.connect() as c:
        c("FLUSHALL")
    both = Both(oracle, larder)
    here = both.connections[1]
    here("DEBUG", "ENDS", ends)
    for i in range(0, SIZE, 500):
        both("ZADD", "z", *[w for k in range(i, i + 500) for w in (score(r), b"m%d" % (2 * k))])
    for turn in range(60):
        near = [m for m in both("ZRANGE", "z", 0, 5) + both("ZREVRANGE", "z", 0, 5)]
        both.many([a_look(r) if r.random() < 0.4 else a_write(r, near) for _ in range(r.choice([1, 1, 40]))])
        if turn % 6 == 2:  # what it did is undone, and nothing says otherwise
            assert here.call("EVAL", UNDONE, 1, "z").raw == b"-ERR no\r\n"
            both("ZRANGE", "z", 0, 20, "WITHSCORES")
            both("ZPOPMAX", "z", 2)
        if turn % 10 == 4:
            here("SAVE")
        if turn % 9 == 7:
            both.many([["MULTI"], ["ZPOPMIN", "z", 2], ["INCR", "z"], ["ZADD", "z", "-5", "again"], ["ZRANGE", "z", 0, 3], ["EXEC"]])
        if turn == 30:
            both.many([["RENAME", "z", "other"], ["ZADD", "z", 1, "a"], ["ZPOPMIN", "z"], ["ZPOPMIN", "z"], ["RENAME", "other", "z"], ["ZPOPMIN", "z"]])
    both("ZRANGE", "z", 0, -1, "WITHSCORES")
    both.close()
    larder.stop()
    larder.check()


def test_a_queue_is_emptied_in_order(fleet):
    """From both ends to the last one, over all forms that a sorted set has."""
    larder = fleet.larder("--durability", "everysec")
    with larder.connect() as c:
        c("DEBUG", "ENDS", 64)
        for i in range(0, SIZE, 500):
            c("ZADD", "z", *[w for k in range(i, i + 500) for w in (k, b"m%05d" % k)])
        first, last = 0, SIZE - 1
        while first <= last:
            n = min(100, (last - first + 1 + 1) // 2)
            replies = c.pipeline([[b"ZPOPMIN", b"z"], [b"ZPOPMAX", b"z"]] * n)
            found = [reply.plain() for reply in replies]
            for k in range(n):
                assert found[2 * k] == ([b"m%05d" % first, b"%d" % first] if first <= last else [])
                first += 1
                assert found[2 * k + 1] == ([b"m%05d" % last, b"%d" % last] if first <= last else [])
                last -= first <= last
        assert c("EXISTS", "z") == 0
