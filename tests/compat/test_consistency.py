"""Modes of reads and tokens on one server: what is taken, what is refused and changes nothing. What the modes promise over
replicas is tested in tests/databases."""

import base64
import pathlib
import shutil
import struct

import pytest

HUGE = b"x" * 65536
NOTHING = b"AQAAAAAAAAAAAAAAAAAAABSXfLA"  # the token of a client that has neither written nor seen anything


def lsn_of_nobody():
    """A sound token of a PostgreSQL that nobody has."""
    body = struct.pack("<BBHIQQ", 1, 1, 0, 3, 99, 0x3000148)
    crc = 0xFFFFFFFF
    for byte in body:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return base64.urlsafe_b64encode(body + struct.pack("<I", crc ^ 0xFFFFFFFF)).rstrip(b"=")


def error(c, *command):
    reply = c.call(*command)
    assert reply.is_error, (command, reply)
    return reply.plain().decode() if isinstance(reply.plain(), bytes) else str(reply.plain())


def test_a_connection_has_a_mode(larder):
    with larder.connect() as a, larder.connect() as b:
        assert a("LARDER.CONSISTENCY") == b"strong"
        for words, told in (
            (["SESSION"], b"session"),
            (["bounded", "500"], b"bounded=500"),
            (["Bounded=7"], b"bounded=7"),
            (["BOUNDED", "86400000"], b"bounded=86400000"),
            (["eventual"], b"eventual"),
        ):
            assert a("LARDER.CONSISTENCY", *words) == b"OK"
            assert a("LARDER.CONSISTENCY") == told
        assert b("LARDER.CONSISTENCY") == b"strong"
        assert a("RESET") == b"RESET"
        assert a("LARDER.CONSISTENCY") == b"strong"
        assert a("READONLY") == b"OK"
        assert a("LARDER.CONSISTENCY") == b"eventual"
        assert a("READWRITE") == b"OK"
        assert a("LARDER.CONSISTENCY") == b"strong"


BAD_MODES = [[""], ["weak"], [HUGE], ["BOUNDED"], ["STRONG", "5"], ["BOUNDED", "5", "5"]] + [
    ["BOUNDED", bound] for bound in ("0", "-1", "1000000000000000000", "99999999999999999999", "1e3", "1.5", "", " 5", HUGE)
]


@pytest.mark.parametrize("words", BAD_MODES, ids=lambda w: "-".join(str(x)[:12] for x in w))
def test_a_mode_that_is_none_changes_nothing(client, words):
    client("SET", "k", "v")
    client("LARDER.CONSISTENCY", "BOUNDED", "9")
    assert error(client, "LARDER.CONSISTENCY", *words).startswith("ERR ")
    assert client("LARDER.CONSISTENCY") == b"bounded=9"
    if len(words) == 1 or words[0] == "BOUNDED" and len(words) == 2:
        assert error(client, "LARDER.READ", *words, "GET", "k").startswith("ERR ")


def test_a_command_has_a_mode_of_its_own(client):
    client("SET", "k", "v")
    client("RPUSH", "l", "a", "b")
    for mode in (["STRONG"], ["session"], ["bounded", "1"], ["bounded=50"], ["EVENTUAL"]):
        assert client("LARDER.READ", *mode, "GET", "k") == b"v"
        assert client("LARDER.READ", *mode, "LRANGE", "l", "0", "-1") == [b"a", b"b"]
        assert client("LARDER.READ", *mode, "OBJECT", "ENCODING", "l") == client("OBJECT", "ENCODING", "l")
        assert client("LARDER.READ", *mode, "GET", "absent") is None
        assert error(client, "LARDER.READ", *mode, "GET", "l").startswith("WRONGTYPE")
    assert client("LARDER.CONSISTENCY") == b"strong"
    assert client("COMMAND", "GETKEYS", "LARDER.READ", "BOUNDED", "5", "MGET", "k", "l")[0] == b"k"


@pytest.mark.parametrize(
    "command",
    ["SET k w", "DEL k", "INCR n", "BLPOP l 0", "MULTI", "EXEC", "WATCH k", "PING", "SELECT 1", "INFO", "WAIT 0 0", "NOSUCH",
     "LARDER.READ STRONG GET k", "LARDER.TOKEN", "OBJECT", "CONFIG GET port", "GETDEL k"],
)
def test_what_does_not_only_read_is_refused_inside(client, command):
    client("SET", "k", "v")
    assert error(client, "LARDER.READ", "EVENTUAL", *command.split()) == "ERR LARDER.READ is for one command that only reads"
    assert client("GET", "k") == b"v"
    assert client("PING") == b"PONG"


def test_inside_exec_everything_is_the_primarys(client):
    client("SET", "k", "old")
    assert client("MULTI") == b"OK"
    for command in (["SET", "k", "new"], ["LARDER.READ", "EVENTUAL", "GET", "k"], ["READONLY"], ["GET", "k"]):
        assert client(*command) == b"QUEUED"
    assert client("EXEC") == [b"OK", b"new", b"OK", b"new"]
    assert client("LARDER.CONSISTENCY") == b"eventual"
    client("MULTI")
    assert error(client, "LARDER.TOKEN").startswith("ERR ")
    assert error(client, "EXEC").startswith("EXECABORT")


def test_a_token_that_is_none_changes_nothing(client):
    assert client("LARDER.TOKEN") == NOTHING
    assert client("LARDER.TOKEN", NOTHING) == b"OK"
    flipped = [NOTHING[:i] + bytes([NOTHING[i] ^ 1]) + NOTHING[i + 1 :] for i in range(len(NOTHING))]
    for token in ["", "x", "=", "\0", NOTHING[:-1], NOTHING[1:], NOTHING + b"A", HUGE, b"A" * 255, *flipped]:
        assert error(client, "LARDER.TOKEN", token).startswith("BADTOKEN "), token
    assert error(client, "LARDER.TOKEN", NOTHING, NOTHING).startswith("ERR ")
    assert client("LARDER.TOKEN") == NOTHING


def test_a_token_of_another_database_is_told_so(client):
    assert error(client, "LARDER.TOKEN", lsn_of_nobody()).startswith("FOREIGNTOKEN ")
    assert client("LARDER.TOKEN") == NOTHING


def test_a_token_grows_with_what_is_written_and_outlives_a_restart(larder):
    with larder.connect() as a, larder.connect() as b:
        tokens = []
        for i in range(3):
            a.send(b"SET k %d\r\nLARDER.TOKEN\r\n" % i)  # in one batch: it covers the write before it
            assert a.read().plain() == b"OK"
            tokens.append(a.read().plain())
        assert len(set(tokens)) == 3
        for token in tokens:
            assert b("LARDER.TOKEN", token) == b"OK"
        merged = b("LARDER.TOKEN")
        assert b("LARDER.TOKEN", tokens[0]) == b"OK"
        assert b("LARDER.TOKEN") == merged
        assert a("RESET") == b"RESET"
        assert a("LARDER.TOKEN") == tokens[2]  # what it has written it has still
    larder.stop()
    larder.start()
    with larder.connect() as c:
        assert c("LARDER.TOKEN", merged) == b"OK"
        assert c("LARDER.TOKEN", NOTHING) == b"OK"


@pytest.mark.sqlite
def test_a_database_that_has_lost_writes_says_so(larder, tmp_path):
    path = larder.store.path
    with larder.connect() as c:
        c("SET", "k", "1")
        old = c("LARDER.TOKEN")
    larder.stop()
    backup = tmp_path / "backup"
    shutil.copy(path, backup)
    larder.start()
    with larder.connect() as c:
        for i in range(3):
            c("SET", "k", f"new {i}")
        lost = c("LARDER.TOKEN")
    larder.stop()
    for name in (path, f"{path}-wal", f"{path}-shm"):
        pathlib.Path(name).unlink(missing_ok=True)
    shutil.copy(backup, path)
    larder.start()
    with larder.connect() as c:
        assert error(c, "LARDER.TOKEN", lost).startswith("LOSTWRITES ")
        assert c("LARDER.TOKEN") == NOTHING
        assert c("LARDER.TOKEN", old) == b"OK"


# --- WAIT, WAITAOF: without replicas none has acknowledged, and none will


def test_wait_without_replicas_does_not_wait(client):
    client("SET", "k", "v")
    for n, timeout in (("0", "0"), ("1", "0"), ("5", "100000"), ("-1", "0")):
        assert client("WAIT", n, timeout) == 0
    client("MULTI")
    client("SET", "k", "w")
    client("WAIT", "1", "0")
    assert client("EXEC") == [b"OK", 0]


@pytest.mark.parametrize("durability", ["always", "everysec", "off"])
def test_waitaof_makes_writes_durable(larder, durability):
    with larder.connect() as c:
        c("CONFIG", "SET", "durability", durability)
        saves = c("LASTSAVE")
        c("SET", "k", "v")
        assert c("WAITAOF", "0", "0", "0") == [int(durability == "always"), 0]
        assert c("WAITAOF", "1", "0", "0") == [1, 0]
        assert c("WAITAOF", "1", "3", "0") == [1, 0]
        c("MULTI")
        c("SET", "k", "w")
        c("WAITAOF", "1", "0", "0")
        assert c("EXEC") == [b"OK", [int(durability == "always"), 0]]
        assert c("LASTSAVE") == saves
        c.send(b"SET k x\r\nWAITAOF 1 0 0\r\nGET k\r\n")
        assert [c.read().plain() for _ in range(3)] == [b"OK", [1, 0], b"x"]


@pytest.mark.parametrize(
    "words, message",
    [
        ("2 0 0", "value is out of range, value must between 0 and 1"),
        ("-1 0 0", "value is out of range, value must between 0 and 1"),
        ("x 0 0", "value is not an integer or out of range"),
        ("0 -1 0", "value is out of range, must be positive"),
        ("0 x 0", "value is out of range, must be positive"),
        ("0 0 x", "timeout is not an integer or out of range"),
        ("0 0 1.5", "timeout is not an integer or out of range"),
        ("0 0 -1", "timeout is negative"),
        ("0 0", "wrong number of arguments for 'waitaof' command"),
    ],
)
def test_waitaof_refuses_what_redis_does(client, words, message):
    assert error(client, "WAITAOF", *words.split()) == f"ERR {message}"
