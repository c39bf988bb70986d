"""Expiry with a clock that stands still until it is moved, the sweeper as the tables show it, and real time once."""

import time

import pytest

from harness import wait

START = 1_700_000_000_000  # milliseconds


@pytest.fixture
def clock(client):
    """Stops the server's clock at START; clock(ms) moves it to START + ms."""

    def move(to):
        assert client("DEBUG", "CLOCK", START + to) == b"OK"

    move(0)
    return move


def test_to_the_millisecond(client, clock):
    client("SET", "k", "v", "PX", 1000)
    assert client("PTTL", "k") == 1000
    assert client("PEXPIRETIME", "k") == START + 1000
    clock(999)
    assert client("PTTL", "k") == 1
    assert client("GET", "k") == b"v"
    clock(1001)
    assert client("GET", "k") is None
    assert client("PTTL", "k") == -2
    assert client("EXPIRETIME", "k") == -2
    assert client("TYPE", "k") == b"none"
    assert client("EXISTS", "k", "k") == 0


def test_the_clock_moves_by_steps_too(client, clock):
    client("SET", "k", "v", "PX", 1000)
    assert client("DEBUG", "CLOCK", "+400") == b"OK"
    assert client("PTTL", "k") == 600
    assert client("DEBUG", "CLOCK", "+400") == b"OK"
    assert client("PTTL", "k") == 200
    assert client("DEBUG", "CLOCK", "REAL") == b"OK"
    assert abs(client("TIME")[0] and int(client("TIME")[0]) - time.time()) < 60


@pytest.mark.parametrize(
    "command, expected",
    [
        (["EXPIRE", "k", "10"], 10_000),
        (["PEXPIRE", "k", "10"], 10),
        (["EXPIREAT", "k", START // 1000 + 7], 7000),
        (["PEXPIREAT", "k", START + 7], 7),
        (["GETEX", "k", "EX", "3"], 3000),
        (["GETEX", "k", "PXAT", START + 3], 3),
        (["SETEX", "k", "4", "v"], 4000),
        (["PSETEX", "k", "4", "v"], 4),
        (["SET", "k", "v", "EXAT", START // 1000 + 2], 2000),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
def test_each_way_to_set_a_time(client, clock, command, expected):
    client("SET", "k", "v")
    client(*command)
    assert client("PTTL", "k") == expected
    clock(expected - 1)
    assert client("EXISTS", "k") == 1
    clock(expected + 1)
    assert client("EXISTS", "k") == 0


def test_seconds_are_rounded(client, clock):
    client("SET", "k", "v", "PX", 1499)
    assert client("TTL", "k") == 1
    client("SET", "k", "v", "PX", 1500)
    assert client("TTL", "k") == 2
    assert client("EXPIRETIME", "k") == (START + 1500 + 500) // 1000


@pytest.mark.parametrize(
    "command, reply, value",
    [
        (["INCR", "k"], 1, b"1"),
        (["INCRBY", "k", "5"], 5, b"5"),
        (["INCRBYFLOAT", "k", "0.5"], b"0.5", b"0.5"),
        (["APPEND", "k", "x"], 1, b"x"),
        (["SETRANGE", "k", "2", "x"], 3, b"\0\0x"),
        (["SETBIT", "k", "7", "1"], 0, b"\x01"),
        (["BITFIELD", "k", "INCRBY", "u8", "0", "1"], [1], b"\x01"),
        (["GETSET", "k", "x"], None, b"x"),
        (["SETNX", "k", "x"], 1, b"x"),
        (["SET", "k", "x", "NX"], b"OK", b"x"),
        (["SET", "k", "x", "XX"], None, None),
        (["SET", "k", "x", "KEEPTTL"], b"OK", b"x"),
        (["SET", "k", "x", "GET"], None, b"x"),
        (["MSETNX", "k", "x", "l", "y"], 1, b"x"),
        (["RENAMENX", "other", "k"], 1, b"other"),
        (["COPY", "other", "k"], 1, b"other"),
        (["GETDEL", "k"], None, None),
        (["GETEX", "k", "PERSIST"], None, None),
        (["PERSIST", "k"], 0, None),
        (["EXPIRE", "k", "100"], 0, None),
        (["DEL", "k"], 0, None),
        (["UNLINK", "k"], 0, None),
        (["TOUCH", "k"], 0, None),
        (["COPY", "k", "l"], 0, None),
        (["MOVE", "k", "1"], 0, None),
        (["STRLEN", "k"], 0, None),
        (["BITOP", "NOT", "k", "k"], 0, None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value and isinstance(value[0], str) else "",
)
@pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
def test_an_expired_key_is_not_there_for_anyone(client, clock, command, reply, value, swept):
    """Each command finds what it would find had the key never been; what it makes has no time to live."""
    if not swept:
        client("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    client("SET", "k", "7", "PX", 100)
    client("SET", "other", "other")
    clock(101)
    if swept:
        wait.until(lambda: client("DBSIZE") == 1, "the sweeper removes the key")
    assert client(*command) == reply
    assert client("GET", "k") == value
    assert client("PTTL", "k") == (-2 if value is None else -1)


def test_an_expired_destination_in_another_database(client, clock):
    client("SELECT", 1)
    client("SET", "k", "old", "PX", 100)
    client("SELECT", 0)
    client("SET", "k", "new")
    assert client("MOVE", "k", 1) == 0
    clock(101)
    assert client("MOVE", "k", 1) == 1
    client("SELECT", 1)
    assert client("GET", "k") == b"new"
    assert client("PTTL", "k") == -1


def test_expired_keys_are_not_listed(client, clock):
    client("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    for i in range(50):
        client("SET", f"gone:{i}", "v", "PX", 100)
    client("SET", "stays", "v")
    clock(101)
    assert client("KEYS", "*") == [b"stays"]
    assert client("RANDOMKEY") == b"stays"
    cursor, found = b"0", []
    while True:
        cursor, keys = client("SCAN", cursor, "COUNT", 10)
        found += keys
        if cursor == b"0":
            break
    assert found == [b"stays"]


def test_one_moment_for_a_pipeline(client, clock):
    """Commands of one pipeline agree about what has expired, and a later one sees what an earlier one wrote."""
    client("SET", "k", "old", "PX", 100)
    replies = client.pipeline(
        [
            ["GET", "k"],
            ["DEBUG", "CLOCK", START + 101],
            ["GET", "k"],
            ["INCR", "k"],
            ["GET", "k"],
            ["PTTL", "k"],
        ]
    )
    assert replies[0].plain() == b"old"
    assert [r.plain() for r in replies[3:]] in ([1, b"1", -1], [replies[3].plain(), b"old", 100])
    assert client("GET", "k") in (b"1", b"old", None)


def test_expiry_outlives_a_restart(larder, client, clock):
    """The clock was in the past; the restarted server has the real one."""
    client("SET", "short", "v", "PX", 1000)
    client("SET", "stays", "v")
    client("SET", "far", "v", "PXAT", 4_000_000_000_000)
    larder.stop()
    larder.start()
    with larder.connect() as c:
        assert c("MGET", "short", "stays", "far") == [None, b"v", b"v"]
        assert c("PEXPIRETIME", "far") == 4_000_000_000_000


def rows(larder, table="larder_key"):
    return larder.store.query(f"SELECT count(*) FROM {table}")[0][0]


@pytest.fixture
def sweeping(fleet):
    """A server that sweeps often."""
    return fleet.larder("--sweep-interval", "20ms", "--sweep-pause", "0")


@pytest.mark.sqlite
def test_the_sweeper_removes_rows(sweeping):
    with sweeping.connect() as c:
        c("DEBUG", "CLOCK", START)
        c.pipeline([["SET", f"gone:{i}", "v", "PX", 1000 + i % 10] for i in range(3000)])
        c("SET", "long", "v" * 300_000, "PX", 1000)
        c("SET", "stays", "v")
        c("SET", "later", "v", "PX", 1_000_000)
        assert rows(sweeping) == 3003
        assert rows(sweeping, "larder_chunk") > 0
        c("DEBUG", "CLOCK", START + 2000)
        wait.until(lambda: rows(sweeping) == 2, "only live rows are left")
        wait.until(lambda: rows(sweeping, "larder_chunk") == 0, "the long string's chunks are gone")
        wait.until(lambda: rows(sweeping, "larder_trash") == 0, "nothing is left to remove")
        assert c("DBSIZE") == 2
        assert c("MGET", "stays", "later") == [b"v", b"v"]


@pytest.mark.sqlite
def test_the_sweeper_removes_what_was_deleted(sweeping):
    with sweeping.connect() as c:
        c.pipeline([["SET", f"key:{i}", "v" * 10] for i in range(1000)])
        c("SET", "long", "v" * 300_000)
        c("DEL", "long", *(f"key:{i}" for i in range(500)))
        assert c("DBSIZE") == 500
        wait.until(lambda: rows(sweeping) == 500, "deleted rows are gone")
        wait.until(lambda: rows(sweeping, "larder_chunk") == 0, "the long string's chunks are gone")
        c("SET", "overwritten", "v" * 300_000)
        c("SET", "overwritten", "short")
        wait.until(lambda: rows(sweeping, "larder_chunk") == 0, "the old value's chunks are gone")
        c("FLUSHALL")
        assert c("DBSIZE") == 0
        wait.until(lambda: rows(sweeping) == 0, "flushed rows are gone")
        wait.until(lambda: rows(sweeping, "larder_trash") == 0, "nothing is left to remove")


@pytest.mark.sqlite
def test_the_sweeper_can_be_stopped(sweeping):
    with sweeping.connect() as c:
        c("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        c("DEBUG", "CLOCK", START)
        c("SET", "k", "v", "PX", 100)
        c("DEBUG", "CLOCK", START + 101)
        for _ in range(50):
            assert c("GET", "k") is None
        assert rows(sweeping) == 1
        c("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        wait.until(lambda: rows(sweeping) == 0, "the row is gone")


@pytest.mark.sqlite
def test_real_time(sweeping):
    with sweeping.connect() as c:
        started = time.monotonic()
        c("SET", "k", "v", "PX", 400)
        c("SET", "stays", "v", "EX", 1000)
        left = c("PTTL", "k")
        assert 0 < left <= 400 or time.monotonic() - started > 0.3
        wait.until(lambda: c("GET", "k") is None, "the key expires")
        assert time.monotonic() - started >= 0.39
        wait.until(lambda: rows(sweeping) == 1, "its row is removed")
        assert c("GET", "stays") == b"v"
