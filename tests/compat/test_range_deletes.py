"""Many items that go at once, of large lists and sorted sets: the same answers as redis-server's to whatever is asked in
the same pipeline, in a transaction, after an undo and after a restart, while the tables still have what is gone."""

import random

import pytest

SETTINGS = {
    "default": [],
    "small": ["--cache-memory", "0", "--page-cache", "256kb", "--journal-max", "1mb"],
    "without a journal": ["--journal-max", "0"],
}
SIZE = 6000  # more than memory takes as a whole


class Both:
    """The same commands on both servers, each list of them in one pipeline."""

    def __init__(self, oracle, subject):
        self.connections = [oracle.connect(), subject.connect()]

    def __call__(self, *commands):
        expected, actual = (c.pipeline(commands) for c in self.connections)
        for command, a, b in zip(commands, expected, actual):
            assert a.raw == b.raw, command[:6]
        return [reply.value for reply in expected]

    def close(self):
        for c in self.connections:
            c.close()


def fill(both):
    both(*[["RPUSH", "list", *[b"v%d" % n for n in range(i, i + 500)]] for i in range(0, SIZE, 500)])
    both(*[["ZADD", "z", *[word for n in range(i, i + 500) for word in (n // 3, b"m%d" % n)]] for i in range(0, SIZE, 500)])


def ask_list(r):
    at = r.randrange(-SIZE, SIZE)
    return r.choice([["LLEN", "list"], ["LINDEX", "list", at], ["LRANGE", "list", at, at + 20], ["LRANGE", "list", 0, 5], ["LRANGE", "list", -5, -1]])


def cut_list(r):
    low, high = r.choice([(0, 300), (300, 0), (200, 150), (70, 66), (5, 400)])
    return [["LTRIM", "list", low, -1 - high]]


def refill_list(r):
    items = [b"new %d" % r.randrange(1000) for _ in range(150)]
    return [["LPUSH", "list", *items], ["RPUSH", "list", *items[:90]], ["LINSERT", "list", "BEFORE", items[3], b"between"]]


def ask_zset(r):
    name, low = b"m%d" % r.randrange(SIZE), r.randrange(SIZE // 3)
    return r.choice(
        [
            ["ZCARD", "z"],
            ["ZSCORE", "z", name],
            ["ZRANK", "z", name],
            ["ZCOUNT", "z", low, low + 200],
            ["ZRANGE", "z", low * 3, low * 3 + 30, "WITHSCORES"],
            ["ZRANGE", "z", low + 100, low, "BYSCORE", "REV", "LIMIT", 3, 20],
            ["ZMSCORE", "z", *[b"m%d" % n for n in range(low, low + 40)]],
        ]
    )


def cut_zset(r):
    low = r.randrange(SIZE // 3)
    return [
        r.choice(
            [
                ["ZREMRANGEBYRANK", "z", low, low + r.choice([65, 300, 700])],
                ["ZREMRANGEBYSCORE", "z", low, "(%d" % (low + 150)],
                ["ZREMRANGEBYSCORE", "z", "-inf", low // 8],
                ["ZREMRANGEBYRANK", "z", -200, -1],
            ]
        )
    ]


def refill_zset(r):
    """Some that are there, some that were, some with scores that they did not have."""
    numbers = r.sample(range(SIZE), 400)
    words = [word for n in numbers for word in (n // 3 if r.random() < 0.7 else r.randrange(SIZE), b"m%d" % n)]
    return [["ZADD", "z", *words], ["ZREM", "z", *[b"m%d" % n for n in numbers[:20]]], ["ZINCRBY", "z", 7, b"m%d" % numbers[50]]]


def turn(r):
    commands = []
    for _ in range(r.randrange(1, 4)):
        ask, cut, refill = r.choice([(ask_list, cut_list, refill_list), (ask_zset, cut_zset, refill_zset)])
        commands += [ask(r) for _ in range(12)] + (refill(r) if r.random() < 0.6 else []) + cut(r) + [ask(r) for _ in range(12)]
        if r.random() < 0.5:
            commands += refill(r) + [ask(r) for _ in range(6)]
    return commands


def all_of_it(both):
    both(["LRANGE", "list", 0, -1], ["ZRANGE", "z", 0, -1, "WITHSCORES"], ["ZRANGE", "z", 0, -1, "REV"])
    names = [c("ZSCAN", "z", 0, "COUNT", 100000)[1] for c in both.connections]
    assert dict(zip(names[0][::2], names[0][1::2])) == dict(zip(names[1][::2], names[1][1::2]))


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_same_answers(setting, fleet, oracle):
    r = random.Random(len(setting))
    with oracle.connect() as c:
        c("FLUSHALL")
    larder = fleet.larder(*SETTINGS[setting])
    both = Both(oracle, larder)
    fill(both)
    for n in range(10):
        if n % 5 == 2:
            both.connections[1]("SAVE")  # the rest is in the tables
        commands = turn(r)
        if n % 4 == 1:
            commands = [["MULTI"], *commands, ["EXEC" if n % 8 == 1 else "DISCARD"]]
        both(*commands)
        if n % 6 == 0:
            fill(both)
            both(*[ask_zset(r) for _ in range(40)])
            all_of_it(both)
    all_of_it(both)
    both.close()
    larder.kill()  # what was written last is in the journal
    larder.start()
    both = Both(oracle, larder)
    all_of_it(both)
    both.close()
    larder.stop()
    larder.check()
    larder.start()


def state(c):
    return c("LRANGE", "list", 0, -1), c("ZRANGE", "z", 0, -1, "WITHSCORES"), c("ZMSCORE", "z", *[b"m%d" % n for n in range(0, SIZE, 7)])


UNDONE = """#!lua flags=rollback
redis.call('ZADD', KEYS[2], 1, 'more')
redis.call('ZREMRANGEBYRANK', KEYS[2], 100, 900)
redis.call('LTRIM', KEYS[1], 1000, -1)
redis.call('ZADD', KEYS[2], 1, 'm400', 2, 'more')
redis.call('RPUSH', KEYS[1], 'more')
redis.call('ZRANGE', KEYS[2], 0, -1)
if ARGV[1] == 'fail' then error('no') end
return redis.call('ZCARD', KEYS[2])
"""


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_is_undone_is_as_it_was(setting, fleet, oracle):
    """A script that goes back, alone and between commands that stay; one that does not is watched."""
    with oracle.connect() as c:
        c("FLUSHALL")
    larder = fleet.larder(*SETTINGS[setting])
    both = Both(oracle, larder)
    fill(both)
    with larder.connect() as c, larder.connect() as other:
        state(c)  # memory has some of them
        c("LTRIM", "list", 100, -1)
        c("ZREMRANGEBYSCORE", "z", 1000, 1100)
        before = state(c)
        replies = c.pipeline([["EVAL", UNDONE, 2, "list", "z", "fail"], ["LLEN", "list"], ["ZCARD", "z"]])
        assert replies[0].raw.startswith(b"-") and replies[1].value == b"%d" % len(before[0])
        assert state(c) == before
        c.pipeline([["MULTI"], ["ZREMRANGEBYRANK", "z", 0, 99], ["EVAL", UNDONE, 2, "list", "z", "fail"], ["ZREM", "z", "m5999"], ["EXEC"]])
        assert c("ZCARD", "z") == len(before[1]) // 2 - 101
        assert c("LRANGE", "list", 0, -1) == before[0]
        c("WATCH", "z")
        assert other("EVAL", UNDONE, 2, "list", "z", "go") == len(before[1]) // 2 - 101 - 801 + 1 + 1
        assert c.pipeline([["MULTI"], ["PING"], ["EXEC"]])[2].raw == b"*-1\r\n"
        assert c("ZMSCORE", "z", "m400", "m401", "more") == [b"1", None, b"2"]
        assert c("LLEN", "list") == len(before[0]) - 1000 + 1
        after = state(c)
    both.close()
    larder.kill()
    larder.start()
    with larder.connect() as c:
        assert state(c) == after
    larder.stop()
    larder.check()
    larder.start()
