"""Commands with many arguments: the rows that they name are read as they come in, slice by slice, between which other clients
have their turn; then the command runs from memory. What it answers, and what it leaves, is redis-server's, whatever others
do to the same keys while it is on its way."""

import contextlib
import random

import pytest

from harness import resp, wait

pytestmark = pytest.mark.sqlite  # reads of a database server are round trips, which are not divided

N = 4500
SLICE = 4096  # rows that are read at once, at most
PIECE = 64 << 10  # bytes of a command that come at once, at most
VALUE = b"v" * 50
KEYS = [b"key:%012d" % i for i in range(N)]
NAMES = [b"name:%012d" % i for i in range(N)]
NEW = [b"new:%012d" % i for i in range(N)]
random.Random(7).shuffle(NAMES)


def pairs(a, b):
    return [word for pair in zip(a, b) for word in pair]


SCORES = [b"%d" % (i * 7919 % N) for i in range(N)]
COMMANDS = {
    "MSET": [b"MSET", *pairs(KEYS, SCORES)],
    "MSETNX": [b"MSETNX", *pairs(NEW, SCORES), KEYS[7], b"x"],
    "MGET": [b"MGET", *KEYS, b"nothing"],
    "DEL": [b"DEL", *KEYS, *KEYS[:10]],
    "EXISTS": [b"EXISTS", *KEYS, *NEW],
    "HSET": [b"HSET", b"hash", *pairs(NAMES, SCORES)],
    "HMGET": [b"HMGET", b"hash", *NAMES, *NEW],
    "HDEL": [b"HDEL", b"hash", *NAMES],
    "SADD": [b"SADD", b"set", *NAMES[: N // 2], *NEW],
    "SREM": [b"SREM", b"set", *NEW, *NAMES],
    "SMISMEMBER": [b"SMISMEMBER", b"set", *NAMES, *NEW],
    "ZADD": [b"ZADD", b"zset", *pairs(SCORES[::-1], NAMES)],
    "ZADD XX CH": [b"ZADD", b"zset", b"XX", b"CH", *pairs(SCORES[::-1], NAMES)],
    "ZADD GT": [b"ZADD", b"zset", b"GT", *pairs(SCORES[::-1], NAMES)],
    "ZREM": [b"ZREM", b"zset", *NAMES],
    "ZMSCORE": [b"ZMSCORE", b"zset", *NAMES, *NEW],
    "wrong type": [b"SREM", b"hash", *NAMES],
    "wrong arity": [b"HSET", b"hash", *pairs(NAMES, SCORES), b"odd"],
    "unknown": [b"NOSUCH", *NAMES],
}
QUIET = ["MSETNX", "MGET", "EXISTS", "HMGET", "SMISMEMBER", "ZMSCORE", "wrong type", "wrong arity", "unknown"]  # change nothing
STATE = [(b"DBSIZE",), (b"HLEN", b"hash"), (b"SCARD", b"set"), (b"ZCARD", b"zset"), (b"ZRANGE", b"zset", b"0", b"20", b"WITHSCORES"),
         (b"MGET", *KEYS[:20]), (b"HMGET", b"hash", *NAMES[:20])]  # fmt: skip


def fill(connection):
    connection("FLUSHALL")
    step = 500
    for i in range(0, N, step):
        part = slice(i, i + step)
        connection("MSET", *pairs(KEYS[part], [VALUE] * step))
        connection("SADD", "set", *NAMES[part])
        connection("HSET", "hash", *pairs(NAMES[part], [VALUE] * step))
        connection("ZADD", "zset", *pairs(SCORES[part], NAMES[part]))


def counts(connection):
    return {k: int(v) for k, _, v in (line.partition(":") for line in connection("INFO", "larder").decode().split("\r\n"))
            if k in ("ahead_rows", "ahead_slices", "cache_misses")}  # fmt: skip


@pytest.fixture
def cold(fleet):
    """Starts a Larder whose rows are in the tables, none of them in memory."""
    larder = fleet.larder("--durability", "everysec")
    with larder.connect() as c:
        fill(c)

    def start(*options):
        larder.stop()
        larder.options = [*larder.options, *options]
        return larder.start()

    return start


def test_answers_are_redis_own_and_rows_come_in_slices(cold, oracle):
    larder = cold()
    with oracle.connect() as theirs, larder.connect() as ours, larder.connect() as other:
        for name, words in sorted(COMMANDS.items(), key=lambda command: command[0] not in QUIET):
            if name not in QUIET or name == QUIET[0]:
                fill(ours)
                fill(theirs)
            assert ours.call(*words).raw == theirs.call(*words).raw, name
            for state in STATE:
                assert other.call(*state).raw == theirs.call(*state).raw, (name, state)
        seen = counts(other)
    assert seen["ahead_rows"] <= SLICE * seen["ahead_slices"]


@pytest.mark.parametrize("name", ["MGET", "DEL", "HMGET", "SREM", "ZMSCORE", "ZADD", "HSET"])
def test_the_command_itself_reads_no_more_than_its_last_piece(cold, name):
    larder = cold()
    words = COMMANDS[name]
    data = resp.encode(words)
    with larder.connect() as c:
        before = counts(c)
        c.send(data)
        assert not c.read().is_error
        after = counts(c)
    rows, slices = (after[k] - before[k] for k in ("ahead_rows", "ahead_slices"))
    last = PIECE * len(words) // len(data)
    named = len(words) // (2 if name in ("ZADD", "HSET") else 1)
    assert rows >= named - last - 600, "the first arguments wait until there are many"
    assert slices >= len(data) // PIECE - 1 and rows <= SLICE * slices
    if name not in ("MGET", "DEL"):  # whose look-ups count as misses when they are read ahead, too
        assert after["cache_misses"] - before["cache_misses"] <= last + 600


CHANGES = {
    "value": [("SET", KEYS[1], "other"), ("HSET", "hash", NAMES[1], "other"), ("ZADD", "zset", "-5", NAMES[1])],
    "gone": [("DEL", KEYS[1]), ("HDEL", "hash", NAMES[1]), ("ZREM", "zset", NAMES[1]), ("SREM", "set", NAMES[1])],
    "key gone": [("DEL", "hash", "set", "zset", KEYS[2])],
    "another type": [("DEL", "hash", "set"), ("SET", "hash", "x"), ("LPUSH", "set", "x"), ("DEL", KEYS[3]), ("SADD", KEYS[3], "x")],
    "moved": [("RENAME", "hash", "elsewhere"), ("HSET", "hash", "a", "b"), ("RENAME", KEYS[4], KEYS[5])],
    "flushed": [("FLUSHDB",), ("SET", KEYS[1], "again")],
    "swapped": [("SWAPDB", "0", "1")],
}  # fmt: skip


def answers(server, change):
    """What six commands answer, and what is left, when `change` comes between two pieces of all of them."""
    commands = [resp.encode(COMMANDS[name]) for name in ("MGET", "MSET", "HMGET", "HSET", "SREM", "ZREM")]
    with contextlib.ExitStack() as stack:
        other, *senders = (stack.enter_context(server.connect()) for _ in range(1 + len(commands)))
        fill(other)
        pieces = 0
        if server.name == "larder":
            other("SAVE")
            pieces = counts(other)["ahead_slices"] + sum(len(data) * 2 // 3 // PIECE for data in commands)
        for sender, data in zip(senders, commands):
            sender.send(data[: len(data) * 2 // 3])
        if server.name == "larder":
            wait.until(lambda: counts(other)["ahead_slices"] >= pieces, "slices of the first parts")
        told = [other.call(*words).raw for words in change]
        for sender, data in zip(senders, commands):
            sender.send(data[len(data) * 2 // 3 :])
            told.append(sender.read().raw)
        return told + [other.call(*state).raw for state in STATE]


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_two_pieces_is_seen(subject, oracle, change):
    assert answers(subject, CHANGES[change]) == answers(oracle, CHANGES[change])


def test_nothing_is_read_ahead_that_memory_has_no_room_for(cold):
    larder = cold("--cache-memory", "1mb")
    with larder.connect() as c:
        assert c("MGET", *KEYS) == [VALUE] * N
        assert counts(c)["ahead_slices"] == 0
        assert c("MGET", *KEYS[:1500]) == [VALUE] * 1500
        assert c("CONFIG", "SET", "cache-memory", "64mb") == b"OK"
        assert c("MGET", *KEYS) == [VALUE] * N
        assert counts(c)["ahead_slices"] > 0


def test_a_client_that_goes_in_between_leaves_nothing(cold):
    larder = cold()
    with larder.connect() as other:
        for name in ("MSET", "DEL", "SADD", "HDEL", "ZREM"):
            state = [other.call(*words).raw for words in STATE]
            before = counts(other)["ahead_slices"]
            with larder.connect() as sender:
                data = resp.encode(COMMANDS[name])
                sender.send(data[: len(data) // 2])
                wait.until(lambda: counts(other)["ahead_slices"] > before, "a slice")
            assert [other.call(*words).raw for words in STATE] == state, name
    larder.stop()
    larder.check()
