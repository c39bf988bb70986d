"""Fields of hashes that expire: the commands of Redis 7.4 and 8 against what its documentation says they answer, with
a clock that stands still until it is moved."""

import pytest

from harness import wait

START = 4_100_000_000_000  # milliseconds: later than real time, which a server goes by until it is told otherwise
MAX_MOMENT = 2**46 - 1
WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


@pytest.fixture
def client(subjects):
    """A connection to an empty server without a sweeper, which tests share."""
    with subjects("--sweep", "no").connect() as connection:
        connection("FLUSHALL")
        yield connection
        connection("DEBUG", "CLOCK", "REAL")


@pytest.fixture
def clock(client):
    """Stops the server's clock at START; clock(ms) moves it to START + ms."""

    def move(to):
        assert client("DEBUG", "CLOCK", START + to) == b"OK"

    move(0)
    return move


@pytest.fixture(params=["unswept", "swept"])
def sweeper(request, client):
    """sweeper(n) lets the sweeper remove n fields, or does not."""

    def work(n):
        if request.param == "swept":
            sweep(client, n)

    return work


def sweep(client, n):
    """Lets the sweeper work until it has removed n fields."""
    seen = swept(client)
    client("CONFIG", "SET", "sweep", "yes")
    wait.until(lambda: swept(client) >= seen + n, "the sweeper removes fields", 60)
    client("CONFIG", "SET", "sweep", "no")
    assert swept(client) == seen + n


def info(client, section, name):
    lines = client("INFO", section).decode().splitlines()
    return int(next(line.split(":")[1] for line in lines if line.startswith(name + ":")))


def swept(client):
    return info(client, "stats", "expired_subkeys")


def fields(client, key):
    """HGETALL as a dict."""
    flat = client("HGETALL", key)
    return dict(zip(flat[::2], flat[1::2]))


# --- HEXPIRE and its forms


@pytest.mark.parametrize(
    "command, expected",
    [
        (["HEXPIRE", "h", "10"], 10_000),
        (["HPEXPIRE", "h", "10"], 10),
        (["HEXPIREAT", "h", START // 1000 + 7], 7000),
        (["HPEXPIREAT", "h", START + 7], 7),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_each_way_to_set_a_time(client, clock, command, expected):
    client("HSET", "h", "f", "v", "g", "w")
    assert client(*command, "FIELDS", "2", "f", "nothing") == [1, -2]
    assert client("HPTTL", "h", "FIELDS", "3", "f", "g", "nothing") == [expected, -1, -2]
    assert client("HPEXPIRETIME", "h", "FIELDS", "1", "f") == [START + expected]
    assert client("HTTL", "h", "FIELDS", "1", "f") == [-(-expected // 1000)]
    assert client("HEXPIRETIME", "h", "FIELDS", "1", "f") == [-(-(START + expected) // 1000)]
    clock(expected - 1)
    assert client("HGET", "h", "f") == b"v"
    assert client("HPTTL", "h", "FIELDS", "1", "f") == [1]
    clock(expected)
    assert client("HGET", "h", "f") is None
    assert client("HPTTL", "h", "FIELDS", "2", "f", "g") == [-2, -1]
    assert fields(client, "h") == {b"g": b"w"}


def test_conditions(client, clock):
    client("HSET", "h", "never", "v", "later", "v")
    client("HEXPIRE", "h", "100", "FIELDS", "1", "later")

    def expire(seconds, condition):
        return client("HEXPIRE", "h", seconds, condition, "FIELDS", "2", "never", "later")

    assert expire(50, "XX") == [0, 1]
    assert expire(60, "xx") == [0, 1]
    assert expire(60, "GT") == [0, 0]
    assert expire(59, "GT") == [0, 0]
    assert expire(61, "gt") == [0, 1]
    assert client("HTTL", "h", "FIELDS", "2", "never", "later") == [-1, 61]
    assert expire(70, "NX") == [1, 0]
    assert expire(61, "LT") == [1, 0]
    client("HPERSIST", "h", "FIELDS", "1", "never")
    assert expire(10, "LT") == [1, 1]
    assert client("HTTL", "h", "FIELDS", "2", "never", "later") == [10, 10]


def test_a_moment_that_has_come_removes_the_field(client, clock):
    client("HSET", "h", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5")
    assert client("HEXPIRE", "h", "0", "FIELDS", "2", "a", "nothing") == [2, -2]
    assert client("HPEXPIRE", "h", "0", "FIELDS", "1", "b") == [2]
    assert client("HEXPIREAT", "h", "1", "FIELDS", "1", "c") == [2]
    assert client("HPEXPIREAT", "h", START, "FIELDS", "2", "d", "d") == [2, -2]
    assert client("HPEXPIREAT", "h", START + 1, "FIELDS", "1", "e") == [1]
    assert fields(client, "h") == {b"e": b"5"}
    assert client("HEXPIRE", "h", "0", "NX", "FIELDS", "1", "e") == [0]
    assert client("HEXPIRE", "h", "0", "GT", "FIELDS", "1", "e") == [0]
    assert client("HEXPIRE", "h", "0", "LT", "FIELDS", "1", "e") == [2]
    assert client("EXISTS", "h") == 0


def test_no_such_key(client):
    assert client("HEXPIRE", "h", "10", "FIELDS", "2", "a", "b") == [-2, -2]
    assert client("HTTL", "h", "FIELDS", "2", "a", "a") == [-2, -2]
    assert client("HPERSIST", "h", "FIELDS", "1", "a") == [-2]
    assert client("HGETDEL", "h", "FIELDS", "2", "a", "b") == [None, None]
    assert client("HGETEX", "h", "EX", "5", "FIELDS", "2", "a", "b") == [None, None]
    assert client("HSETEX", "h", "FXX", "FIELDS", "1", "a", "1") == 0
    assert client("EXISTS", "h") == 0


def test_persist(client, clock):
    client("HSET", "h", "a", "1", "b", "2")
    client("HPEXPIRE", "h", "100", "FIELDS", "1", "a")
    assert client("HPERSIST", "h", "FIELDS", "4", "a", "b", "c", "a") == [1, -1, -2, -1]
    clock(1000)
    assert fields(client, "h") == {b"a": b"1", b"b": b"2"}


SETTERS = ["HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT"]
TELLERS = ["HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME", "HPERSIST", "HGETDEL"]


@pytest.mark.parametrize("name", SETTERS)
def test_errors_of_setting(client, clock, name):
    arity = f"ERR wrong number of arguments for '{name.lower()}' command"
    fields_missing = "ERR Mandatory argument FIELDS is missing or not at the right position"
    bad_count = "ERR Parameter `numFields` should be greater than 0"
    mismatch = "ERR The `numfields` parameter must match the number of arguments"
    too_late = f"ERR invalid expire time in '{name.lower()}' command"
    client("SET", "s", "text")
    client("HSET", "h", "f", "v")
    for key in ("h", "nothing"):
        assert client.error(name, key, "10", "FIELDS", "1") == arity
        assert client.error(name, key, "x", "FIELDS", "1", "f") == "ERR value is not an integer or out of range"
        assert client.error(name, key, "1.5", "FIELDS", "1", "f") == "ERR value is not an integer or out of range"
        assert client.error(name, key, "-1", "FIELDS", "1", "f") == "ERR invalid expire time, must be >= 0"
        assert client.error(name, key, 2**63 - 1, "FIELDS", "1", "f") == too_late
        assert client.error(name, key, MAX_MOMENT + 1, "FIELDS", "1", "f") == too_late
        assert client.error(name, key, "10", "FOO", "1", "f") == fields_missing
        assert client.error(name, key, "10", "NX", "XX", "FIELDS", "1", "f") == fields_missing
        assert client.error(name, key, "10", "NX", "FOO", "1", "f") == fields_missing
        assert client.error(name, key, "10", "FIELDS", "0", "f") == bad_count
        assert client.error(name, key, "10", "FIELDS", "-1", "f") == bad_count
        assert client.error(name, key, "10", "FIELDS", "x", "f") == bad_count
        assert client.error(name, key, "10", "FIELDS", "2", "f") == mismatch
        assert client.error(name, key, "10", "FIELDS", "1", "f", "g") == mismatch
        assert client.error(name, key, "10", "NX", "FIELDS", "1") == mismatch
    assert client.error(name, "s", "x", "FOO", "0", "f") == WRONGTYPE
    assert client("HTTL", "h", "FIELDS", "1", "f") == [-1]


def test_the_latest_moment(client, clock):
    client("HSET", "h", "f", "v")
    assert client("HPEXPIREAT", "h", MAX_MOMENT, "FIELDS", "1", "f") == [1]
    assert client("HPEXPIRETIME", "h", "FIELDS", "1", "f") == [MAX_MOMENT]
    assert client("HPEXPIRE", "h", MAX_MOMENT - START, "FIELDS", "1", "f") == [1]
    assert client.error("HPEXPIRE", "h", MAX_MOMENT - START + 1, "FIELDS", "1", "f").startswith("ERR invalid expire")
    assert client("HEXPIREAT", "h", MAX_MOMENT // 1000, "FIELDS", "1", "f") == [1]
    assert client.error("HEXPIREAT", "h", MAX_MOMENT // 1000 + 1, "FIELDS", "1", "f").startswith("ERR invalid expire")


@pytest.mark.parametrize("name", TELLERS)
def test_errors_of_telling(client, name):
    client("SET", "s", "text")
    for key in ("h", "nothing"):
        client("HSET", "h", "f", "v")
        assert client.error(name, key, "FIELDS", "1") == f"ERR wrong number of arguments for '{name.lower()}' command"
        assert client.error(name, key, "FOO", "1", "f") == "ERR Mandatory argument FIELDS is missing or not at the right position"
        assert client.error(name, key, "FIELDS", "0", "f") == "ERR Number of fields must be a positive integer"
        assert client.error(name, key, "FIELDS", "x", "f") == "ERR Number of fields must be a positive integer"
        assert client.error(name, key, "FIELDS", "2", "f") == "ERR The `numfields` parameter must match the number of arguments"
        assert client.error(name, key, "FIELDS", "1", "f", "g") == "ERR The `numfields` parameter must match the number of arguments"
    assert client.error(name, "s", "FOO", "0", "f") == WRONGTYPE


# --- what keeps an expiry and what takes it away


@pytest.mark.parametrize(
    "command, kept",
    [
        (["HSET", "h", "f", "5"], False),
        (["HMSET", "h", "f", "5"], False),
        (["HSETNX", "h", "f", "5"], True),
        (["HINCRBY", "h", "f", "5"], True),
        (["HINCRBYFLOAT", "h", "f", "5"], True),
        (["HSETEX", "h", "FIELDS", "1", "f", "5"], False),
        (["HSETEX", "h", "KEEPTTL", "FIELDS", "1", "f", "5"], True),
        (["HGETEX", "h", "FIELDS", "1", "f"], True),
        (["HGETEX", "h", "PERSIST", "FIELDS", "1", "f"], False),
        (["HSET", "h", "g", "5"], True),
        (["EXPIRE", "h", "1000"], True),
        (["PERSIST", "h"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_who_keeps_the_expiry(client, clock, command, kept):
    client("HSET", "h", "f", "1")
    client("HEXPIRE", "h", "100", "FIELDS", "1", "f")
    client(*command)
    assert client("HTTL", "h", "FIELDS", "1", "f") == [100 if kept else -1]


def test_names_take_their_expiry_along(client, clock):
    client("HSET", "h", "f", "1", "g", "2")
    client("HEXPIRE", "h", "100", "FIELDS", "1", "f")
    client("COPY", "h", "copy")
    client("RENAME", "h", "other")
    for key in ("copy", "other"):
        assert client("HTTL", key, "FIELDS", "2", "f", "g") == [100, -1]
    client("HPERSIST", "copy", "FIELDS", "1", "f")
    client("MOVE", "other", 1)
    clock(100_000)
    assert fields(client, "copy") == {b"f": b"1", b"g": b"2"}
    client("SELECT", 1)
    assert fields(client, "other") == {b"g": b"2"}


# --- HSETEX, HGETEX, HGETDEL


def test_hsetex(client, clock):
    assert client("HSETEX", "h", "EX", "10", "FIELDS", "2", "a", "1", "b", "2") == 1
    assert client("HPTTL", "h", "FIELDS", "2", "a", "b") == [10_000, 10_000]
    assert client("HSETEX", "h", "PX", "10", "FIELDS", "1", "a", "3") == 1
    assert client("HSETEX", "h", "EXAT", START // 1000 + 20, "FIELDS", "1", "c", "4") == 1
    assert client("HSETEX", "h", "pxat", START + 30, "fields", "1", "d", "5") == 1
    assert client("HPTTL", "h", "FIELDS", "4", "a", "b", "c", "d") == [10, 10_000, 20_000, 30]
    assert client("HSETEX", "h", "KEEPTTL", "FIELDS", "2", "a", "6", "new", "7") == 1
    assert client("HPTTL", "h", "FIELDS", "2", "a", "new") == [10, -1]
    assert client("HSETEX", "h", "FIELDS", "1", "a", "8") == 1
    assert client("HPTTL", "h", "FIELDS", "1", "a") == [-1]
    assert client("HSETEX", "h", "EX", "5", "FIELDS", "3", "a", "1", "a", "2", "a", "3") == 1
    assert client("HGET", "h", "a") == b"3"


def test_hsetex_conditions(client, clock):
    assert client("HSETEX", "h", "FXX", "FIELDS", "1", "a", "1") == 0
    assert client("EXISTS", "h") == 0
    assert client("HSETEX", "h", "FNX", "FIELDS", "2", "a", "1", "b", "2") == 1
    assert client("HSETEX", "h", "FNX", "FIELDS", "2", "c", "1", "a", "2") == 0
    assert client("HSETEX", "h", "FXX", "FIELDS", "2", "c", "1", "a", "2") == 0
    assert fields(client, "h") == {b"a": b"1", b"b": b"2"}
    assert client("HSETEX", "h", "EX", "1", "FXX", "FIELDS", "2", "a", "3", "b", "4") == 1
    assert client("HSETEX", "h", "FNX", "EX", "1", "FIELDS", "1", "c", "5") == 1
    assert fields(client, "h") == {b"a": b"3", b"b": b"4", b"c": b"5"}
    clock(1000)
    assert client("HSETEX", "h", "FXX", "FIELDS", "1", "a", "6") == 0
    assert client("HSETEX", "h", "FNX", "FIELDS", "1", "a", "6") == 1
    assert fields(client, "h") == {b"a": b"6"}


def test_hsetex_with_a_moment_that_has_come(client, clock):
    assert client("HSETEX", "h", "PXAT", START, "FIELDS", "1", "a", "1") == 1
    assert client("EXISTS", "h") == 0
    client("HSET", "h", "a", "1", "b", "2")
    assert client("HSETEX", "h", "EXAT", "1", "FIELDS", "2", "a", "x", "new", "y") == 1
    assert fields(client, "h") == {b"b": b"2"}
    assert client("HSETEX", "h", "EX", "0", "FXX", "FIELDS", "1", "b", "x") == 1
    assert client("EXISTS", "h") == 0


def test_hgetex(client, clock):
    client("HSET", "h", "a", "1", "b", "2")
    assert client("HGETEX", "h", "FIELDS", "3", "a", "c", "b") == [b"1", None, b"2"]
    assert client("HGETEX", "h", "EX", "10", "FIELDS", "2", "a", "c") == [b"1", None]
    assert client("HGETEX", "h", "PX", "20", "FIELDS", "1", "b") == [b"2"]
    assert client("HPTTL", "h", "FIELDS", "2", "a", "b") == [10_000, 20]
    assert client("HGETEX", "h", "EXAT", START // 1000 + 30, "FIELDS", "1", "a") == [b"1"]
    assert client("HGETEX", "h", "PXAT", START + 40, "FIELDS", "1", "b") == [b"2"]
    assert client("HPTTL", "h", "FIELDS", "2", "a", "b") == [30_000, 40]
    assert client("HGETEX", "h", "PERSIST", "FIELDS", "2", "a", "a") == [b"1", b"1"]
    assert client("HPTTL", "h", "FIELDS", "1", "a") == [-1]
    assert client("HGETEX", "h", "PXAT", START, "FIELDS", "2", "a", "a") == [b"1", None]
    assert client("HLEN", "h") == 1
    assert client("HGETEX", "h", "EX", "0", "FIELDS", "1", "b") == [b"2"]
    assert client("EXISTS", "h") == 0


def test_hgetdel(client, clock):
    client("HSET", "h", "a", "1", "b", "2", "c", "3")
    client("HPEXPIRE", "h", "10", "FIELDS", "1", "c")
    assert client("HGETDEL", "h", "FIELDS", "3", "a", "x", "a") == [b"1", None, None]
    clock(10)
    assert client("HGETDEL", "h", "FIELDS", "1", "c") == [None]
    assert client("HGETDEL", "h", "FIELDS", "1", "b") == [b"2"]
    assert client("EXISTS", "h") == 0


@pytest.mark.parametrize(
    "name, tail, one_of", [("HGETEX", ["f"], "PERSIST"), ("HSETEX", ["f", "v"], "KEEPTTL")], ids=["HGETEX", "HSETEX"]
)
def test_errors_of_options(client, clock, name, tail, one_of):
    arity = f"ERR wrong number of arguments for '{name.lower()}' command"
    only_one = f"ERR Only one of EX, PX, EXAT, PXAT or {one_of} arguments can be specified"
    client("HSET", "h", "f", "v")
    client("SET", "s", "text")
    for key in ("h", "nothing"):
        assert client.error(name, key, "FIELDS", "1") == arity
        assert client.error(name, key, "FIELDS", "2", *tail) == arity
        assert client.error(name, key, "FIELDS", "1", *tail, *tail) == arity
        assert client.error(name, key, "FIELDS", "0", *tail) == "ERR invalid number of fields"
        assert client.error(name, key, "FIELDS", "x", *tail) == "ERR invalid number of fields"
        assert client.error(name, key, "FOO", "FIELDS", "1", *tail) == "ERR unknown argument: FOO"
        assert client.error(name, key, "EX", "10", one_of, "FIELDS", "1", *tail) == only_one
        assert client.error(name, key, one_of, one_of, "FIELDS", "1", *tail) == only_one
        assert client.error(name, key, "EX", "10", "PXAT", "10", "FIELDS", "1", *tail) == only_one
        assert client.error(name, key, "EX", "x", "FIELDS", "1", *tail) == "ERR value is not an integer or out of range"
        assert client.error(name, key, "EX", "-1", "FIELDS", "1", *tail) == "ERR invalid expire time, must be >= 0"
        assert client.error(name, key, "PX", 2**62, "FIELDS", "1", *tail) == f"ERR invalid expire time in '{name.lower()}' command"
    assert client.error(name, "s", "FIELDS", "1", *tail) == WRONGTYPE
    other = "PERSIST" if one_of == "KEEPTTL" else "FNX"
    assert client.error(name, "h", other, "FIELDS", "1", *tail) == f"ERR unknown argument: {other}"
    assert fields(client, "h") == {b"f": b"v"}


def test_errors_of_hsetex(client):
    both = "ERR Only one of FXX or FNX arguments can be specified"
    assert client.error("HSETEX", "h", "FXX", "FNX", "FIELDS", "1", "f", "v") == both
    assert client.error("HSETEX", "h", "FNX", "FNX", "FIELDS", "1", "f", "v") == both
    assert client.error("HSETEX", "h", "FIELDS", "1", "f", "v", "g") == "ERR wrong number of arguments for 'hsetex' command"
    assert client.error("HSETEX", "h", "FNX", "KEEPTTL", "FNX", "FIELDS", "1", "f") == both
    assert client("EXISTS", "h") == 0


# --- an expired field is not there


@pytest.mark.parametrize("size", [3, 200, 1500])
def test_an_expired_field_is_not_there_for_anyone(client, clock, sweeper, size):
    names = [b"f%d" % i for i in range(size)]
    client("HSET", "h", *[word for name in names for word in (name, b"1")])
    gone, left = names[: size // 2], names[size // 2 :]
    client("HPEXPIRE", "h", 100, "FIELDS", len(gone), *gone)
    clock(100)
    sweeper(len(gone))
    assert client("HLEN", "h") == len(left)
    assert client("HGET", "h", gone[0]) is None
    assert client("HMGET", "h", gone[0], left[0]) == [None, b"1"]
    assert client("HEXISTS", "h", gone[-1]) == 0
    assert client("HSTRLEN", "h", gone[0]) == 0
    assert client("HDEL", "h", gone[0]) == 0
    assert client("HPERSIST", "h", "FIELDS", 1, gone[0]) == [-2]
    assert client("HTTL", "h", "FIELDS", 1, gone[0]) == [-2]
    assert client("HGETEX", "h", "PERSIST", "FIELDS", 1, gone[0]) == [None]
    assert sorted(client("HKEYS", "h")) == sorted(left)
    assert len(client("HVALS", "h")) == len(left)
    assert fields(client, "h") == {name: b"1" for name in left}
    assert sorted(client("HRANDFIELD", "h", size)) == sorted(left)
    assert set(client("HRANDFIELD", "h", -200)) <= set(left)
    assert len(set(client("HRANDFIELD", "h", len(left) - 1))) == len(left) - 1
    assert client("HRANDFIELD", "h") in left
    found, cursor = [], b"0"
    while True:
        cursor, page = client("HSCAN", "h", cursor)
        found += page[::2]
        if cursor == b"0":
            break
    assert sorted(found) == sorted(left)
    # What is written in its place is new.
    assert client("HSETNX", "h", gone[0], "2") == 1
    assert client("HINCRBY", "h", gone[0], "5") == 7
    assert client("HTTL", "h", "FIELDS", "1", gone[0]) == [-1]
    assert client("HLEN", "h") == len(left) + 1


@pytest.mark.parametrize("size", [1, 3, 1500])
@pytest.mark.parametrize(
    "command, reply, type_",
    [
        (["EXISTS", "h"], 0, b"none"),
        (["TYPE", "h"], b"none", b"none"),
        (["TTL", "h"], -2, b"none"),
        (["PERSIST", "h"], 0, b"none"),
        (["EXPIRE", "h", "10"], 0, b"none"),
        (["DEL", "h"], 0, b"none"),
        (["UNLINK", "h"], 0, b"none"),
        (["TOUCH", "h"], 0, b"none"),
        (["KEYS", "*"], [b"other"], b"none"),
        (["SCAN", "0"], [b"0", [b"other"]], b"none"),
        (["SCAN", "0", "TYPE", "hash"], [b"0", []], b"none"),
        (["DBSIZE"], 1, b"none"),
        (["RANDOMKEY"], b"other", b"none"),
        (["COPY", "h", "l"], 0, b"none"),
        (["MOVE", "h", "1"], 0, b"none"),
        (["OBJECT", "ENCODING", "h"], None, b"none"),
        (["HLEN", "h"], 0, b"none"),
        (["HGETALL", "h"], [], b"none"),
        (["HRANDFIELD", "h"], None, b"none"),
        (["HSCAN", "h", "0"], [b"0", []], b"none"),
        (["HDEL", "h", "f0"], 0, b"none"),
        (["HGETDEL", "h", "FIELDS", "1", "f0"], [None], b"none"),
        (["HEXPIRE", "h", "10", "FIELDS", "1", "f0"], [-2], b"none"),
        (["GET", "h"], None, b"none"),
        (["SETNX", "h", "v"], 1, b"string"),
        (["SET", "h", "v", "XX"], None, b"none"),
        (["APPEND", "h", "v"], 1, b"string"),
        (["LPUSH", "h", "v"], 1, b"list"),
        (["SADD", "h", "v"], 1, b"set"),
        (["ZADD", "h", "1", "v"], 1, b"zset"),
        (["RENAMENX", "other", "h"], 1, b"string"),
        (["COPY", "other", "h"], 1, b"string"),
        (["HSET", "h", "f0", "v"], 1, b"hash"),
        (["HINCRBY", "h", "f0", "7"], 7, b"hash"),
        (["HSETEX", "h", "FNX", "FIELDS", "1", "f0", "v"], 1, b"hash"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value and isinstance(value[0], str) else "",
)
def test_a_hash_ends_with_its_last_field(client, clock, command, reply, type_, size):
    names = [b"f%d" % i for i in range(size)]
    client("SET", "other", "other")
    client("HSET", "h", *[word for name in names for word in (name, b"1")])
    client("EXPIRE", "h", "100")
    for i, name in enumerate(names[:3]):
        client("HPEXPIRE", "h", 100 - i, "FIELDS", 1, name)
    if size > 3:
        client("HPEXPIRE", "h", 50, "FIELDS", size - 3, *names[3:])
    clock(99)
    assert client("EXISTS", "h") == 1
    clock(100)
    assert client(*command) == reply
    assert client("TYPE", "h") == type_
    if type_ != b"none":
        assert client("TTL", "h") == -1
    if type_ == b"hash":
        assert client("HLEN", "h") == 1


def test_rename_of_an_ended_hash(client, clock):
    client("HSETEX", "h", "PX", "10", "FIELDS", "1", "f", "v")
    clock(10)
    assert client.error("RENAME", "h", "other") == "ERR no such key"


def test_the_last_field_that_has_not_expired_is_removed(client, clock):
    """What is left then are rows that nobody sees."""
    for remove in (["HDEL", "h", "live"], ["HGETDEL", "h", "FIELDS", "1", "live"], ["HEXPIRE", "h", "0", "FIELDS", "1", "live"]):
        client("HSET", "h", "live", "1", "dead", "2")
        clock(0)
        client("HPEXPIRE", "h", 10, "FIELDS", 1, "dead")
        clock(10)
        client(*remove)
        assert client("EXISTS", "h") == 0
        assert client("DBSIZE") == 0
        clock(0)
        assert client("EXISTS", "h") == 0


def test_dbsize_and_keyspace(client, clock):
    for i in range(10):
        client("HSETEX", f"h{i}", "PX", 10 + i, "FIELDS", 1, "f", "v")
    client("EXPIRE", "h0", 100)
    client("EXPIRE", "h9", 100)
    client("PEXPIRE", "h1", 5)
    clock(4)
    assert client("DBSIZE") == 10
    clock(5)
    assert client("DBSIZE") == 9
    clock(14)
    assert client("DBSIZE") == 5
    assert b"db0:keys=5,expires=1" in client("INFO", "keyspace")
    clock(1000)
    assert client("DBSIZE") == 0
    assert client("KEYS", "*") == []


def test_a_watched_hash_changes_when_a_field_expires(client, clock):
    client("HSET", "h", "a", "1", "b", "2")
    client("HPEXPIRE", "h", 10, "FIELDS", 1, "a")
    client("WATCH", "h")
    clock(10)
    client("MULTI")
    client("HLEN", "h")
    assert client("EXEC") is None
    # Once it is over, the sweeper changes nothing that anyone could see.
    client("WATCH", "h")
    sweep(client, 1)
    client("MULTI")
    client("HLEN", "h")
    assert client("EXEC") == [1]


# --- the sweeper


def test_the_sweeper_removes_expired_fields(client, subjects, clock):
    size = 5000
    words = [word for i in range(size) for word in (b"f%d" % i, b"v")]
    client("HSET", "half", *words)
    client("HSET", "all", *words)
    client("HSET", "small", *words[:20])
    client("HSET", "none", *words[:20])
    client("HPEXPIRE", "half", 10, "FIELDS", size // 2, *[b"f%d" % i for i in range(0, size, 2)])
    client("HPEXPIRE", "all", 10, "FIELDS", size, *[b"f%d" % i for i in range(size)])
    client("HPEXPIRE", "small", 10, "FIELDS", 5, *[b"f%d" % i for i in range(5)])
    client("HPEXPIRE", "none", 10, "FIELDS", 1, "f0")
    client("HPERSIST", "none", "FIELDS", 1, "f0")
    clock(10)
    sweep(client, size // 2 + size + 5)
    assert client("HLEN", "half") == size // 2
    assert client("HLEN", "small") == 5
    assert client("HLEN", "none") == 10
    assert client("DBSIZE") == 3
    subjects("--sweep", "no").check()
