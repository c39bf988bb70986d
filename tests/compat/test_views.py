"""The views, read with the sqlite3 shell while the server runs: live data only, as clients see it."""

import json
import random
import shutil
import sqlite3
import subprocess
import threading

import pytest

from harness import redolog, store, wait

pytestmark = [
    pytest.mark.sqlite,
    pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed"),
]

ITEMS = {"larder_hashes": "field, value", "larder_lists": "position, value", "larder_sets": "member", "larder_zsets": "member, score"}
COLUMNS = {
    "larder_keys": ["db", "key", "type", "size", "expires", "ttl", "version", "key_bytes"],
    "larder_strings": ["db", "key", "value", "expires", "key_bytes"],
    "larder_hashes": ["db", "key", "field", "value", "expires", "key_bytes"],
    "larder_lists": ["db", "key", "position", "value", "expires", "key_bytes"],
    "larder_sets": ["db", "key", "member", "expires", "key_bytes"],
    "larder_zsets": ["db", "key", "member", "score", "expires", "key_bytes"],
}


def shell(server, sql, mode="-json"):
    done = subprocess.run(
        ["sqlite3", "-readonly", "-bail", mode, str(server.store.path), sql],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, f"{sql}: {done.stderr}"
    return done.stdout


def rows(server, sql):
    server.store.query("SELECT 1")  # waits for tables that are current
    out = shell(server, sql)
    return [tuple(row.values()) for row in json.loads(out)] if out else []


@pytest.fixture
def server(fleet):
    """A server that leaves what is dead in the tables, so that it is for the views to leave it out."""
    return fleet.larder("--sweep-interval", "1h")


@pytest.fixture
def c(server):
    with server.connect() as connection:
        yield connection


def everything(server):
    """What the views show: {(db, key): (type, value)} as seen_by_clients has it."""
    found = {}
    for db, key, value in rows(server, "SELECT db, key, value FROM larder_strings"):
        found[db, key] = ("string", value)
    for view, columns in ITEMS.items():
        kind = {"larder_hashes": "hash", "larder_lists": "list", "larder_sets": "set", "larder_zsets": "zset"}[view]
        for db, key, *item in rows(server, f"SELECT db, key, {columns} FROM {view}"):
            found.setdefault((db, key), (kind, []))[1].append(item[0] if len(item) == 1 else tuple(item))
    return {where: (kind, value if kind == "string" else sorted(value)) for where, (kind, value) in found.items()}


def seen_by_clients(server, databases=4):
    found = {}
    with server.connect() as c:
        for db in range(databases):
            c("SELECT", db)
            for key in c("KEYS", "*"):
                kind = c("TYPE", key).decode()
                if kind == "string":
                    value = c("GET", key).decode()
                elif kind == "hash":
                    flat = [x.decode() for x in c("HGETALL", key)]
                    value = sorted(zip(flat[::2], flat[1::2]))
                elif kind == "list":
                    value = [(i, x.decode()) for i, x in enumerate(c("LRANGE", key, 0, -1))]
                elif kind == "set":
                    value = sorted(x.decode() for x in c("SMEMBERS", key))
                else:
                    flat = [x.decode() for x in c("ZRANGE", key, 0, -1, "WITHSCORES")]
                    value = sorted((m, float(s)) for m, s in zip(flat[::2], flat[1::2]))
                found[db, key.decode()] = (kind, value)
    return found


def agree(server):
    shown, seen = everything(server), seen_by_clients(server)
    assert shown == seen
    sizes = {(db, key): (kind, size) for db, key, kind, size in rows(server, "SELECT db, key, type, size FROM larder_keys")}
    lengths = {where: (kind, len(value.encode() if kind == "string" else value)) for where, (kind, value) in seen.items()}
    assert sizes == lengths


def fill(c, db=0, prefix=""):
    c("SELECT", db)
    c("SET", prefix + "string", "Grüße")
    c("SET", prefix + "long", "x" * 100_000 + "ende")
    c("HSET", prefix + "hash", "name", "Ada", "born", 1815)
    c("RPUSH", prefix + "list", "b", "c", "b")
    c("LPUSH", prefix + "list", "a")
    c("SADD", prefix + "set", "red", "green")
    c("ZADD", prefix + "zset", 1.5, "one and a half", -2, "minus two")


def test_columns(server):
    for view, columns in COLUMNS.items():
        assert [name for _, name, *_ in rows(server, f"PRAGMA table_info({view})")] == columns


def test_what_people_read(server, c):
    fill(c)
    c("PEXPIREAT", "hash", 4_000_000_000_123)
    c("SAVE")  # then they are in the tables
    assert shell(server, "SELECT db, key, type, size, expires FROM larder_keys ORDER BY key", "-list").splitlines() == [
        "0|hash|hash|2|2096-10-02 07:06:40.123",
        "0|list|list|4|",
        "0|long|string|100004|",
        "0|set|set|2|",
        "0|string|string|7|",
        "0|zset|zset|2|",
    ]
    assert rows(server, "SELECT field, value, expires FROM larder_hashes ORDER BY field") == [
        ("born", "1815", "2096-10-02 07:06:40.123"),
        ("name", "Ada", "2096-10-02 07:06:40.123"),
    ]
    assert rows(server, "SELECT position, value FROM larder_lists ORDER BY position") == [(0, "a"), (1, "b"), (2, "c"), (3, "b")]
    assert rows(server, "SELECT member, score FROM larder_zsets ORDER BY score") == [("minus two", -2.0), ("one and a half", 1.5)]
    agree(server)


def test_deleted_and_emptied_keys_are_gone(server, c):
    fill(c)
    fill(c, prefix="kept:")
    c("DEL", "string", "long", "hash")
    c("LTRIM", "list", 1, 0)
    c("SREM", "set", "red", "green")
    c("ZREMRANGEBYRANK", "zset", 0, -1)
    agree(server)
    assert all(key.startswith("kept:") for _, key in everything(server))


def test_overwritten_renamed_copied_and_moved_keys(server, c):
    fill(c)
    fill(c, prefix="other:")
    c("SET", "hash", "now a string")
    c("RENAME", "list", "other:set")
    c("COPY", "zset", "copy")
    c("COPY", "zset", "copy", "DB", 2)
    c("MOVE", "set", 1)
    c("SUNIONSTORE", "other:zset", "none")
    c("LSET", "other:set", 1, "changed")
    agree(server)
    assert everything(server)[0, "hash"] == ("string", "now a string")


def test_expired_keys_are_gone(server, c):
    fill(c)
    fill(c, prefix="kept:")
    for key in ("string", "long", "hash", "list", "set", "zset"):
        c("PEXPIRE", key, 50)
        c("PEXPIRE", "kept:" + key, 1_000_000)
    wait.until(lambda: len(c("KEYS", "*")) == 6, "the keys expire")
    agree(server)
    assert len(server.store.query("SELECT 1 FROM larder_key")) == 12  # the dead are still in the table
    assert all(990 < ttl <= 1000 for (ttl,) in rows(server, "SELECT ttl FROM larder_keys"))


def test_expired_fields_are_gone(server, c):
    c("HSET", "mixed", "stays", 1, "goes", 2, "later", 3)
    c("HSET", "all", "a", 1, "b", 2)
    c("HPEXPIRE", "mixed", 50, "FIELDS", 1, "goes")
    c("HPEXPIREAT", "mixed", 4_000_000_000_000, "FIELDS", 1, "later")
    c("HPEXPIRE", "all", 50, "FIELDS", 2, "a", "b")
    wait.until(lambda: c("HGET", "mixed", "goes") is None and not c("EXISTS", "all"), "the fields expire")
    assert rows(server, "SELECT key, field, expires FROM larder_hashes ORDER BY field") == [
        ("mixed", "later", "2096-10-02 07:06:40.000"),
        ("mixed", "stays", None),
    ]
    assert rows(server, "SELECT key, size FROM larder_keys") == [("mixed", 2)]
    assert len(server.store.query("SELECT 1 FROM larder_hash")) == 5


def test_flushed_and_swapped_databases(server, c):
    for db in range(4):
        fill(c, db, f"db{db}:")
    c("SELECT", 3)
    c("FLUSHDB")
    c("SWAPDB", 0, 1)
    agree(server)
    assert {(db, key.split(":")[0]) for db, key in everything(server)} == {(0, "db1"), (1, "db0"), (2, "db2")}
    c("SET", "after", "the flush")
    c("SWAPDB", 2, 3)
    agree(server)
    c("FLUSHALL")
    assert everything(server) == {} and rows(server, "SELECT * FROM larder_keys") == []


def test_bytes_that_are_no_text(server, c):
    key, value = b"k\x00\xff", bytes(range(256))
    c("SET", key, value)
    c("HSET", b"h", key, value)
    sql = "SELECT hex(key_bytes) AS k, hex(CAST(value AS BLOB)) AS v FROM larder_strings"
    assert rows(server, sql) == [(key.hex().upper(), value.hex().upper())]
    sql = "SELECT hex(CAST(field AS BLOB)) AS f, hex(CAST(value AS BLOB)) AS v FROM larder_hashes"
    assert rows(server, sql) == [(key.hex().upper(), value.hex().upper())]


def test_larger_collections_in_whatever_form(server, c):
    r = random.Random(5)
    for n in (1024, 4097, 10_000):
        c("RPUSH", f"list{n}", *range(n))
        c("SADD", f"set{n}", *range(n))
        c("ZADD", f"zset{n}", *(x for i in range(n) for x in (i / 4, i)))
        c("HSET", f"hash{n}", *(x for i in range(n) for x in (i, i)))
        for _ in range(50):
            i = r.randrange(n)
            c("LREM", f"list{n}", 1, i)
            c("LINSERT", f"list{n}", "AFTER", n // 2, "new")
            c("SREM", f"set{n}", i)
            c("ZINCRBY", f"zset{n}", 0.5, i)
            c("HDEL", f"hash{n}", i)
    agree(server)


@pytest.mark.parametrize("journal", ["64mb", "0"])
def test_a_reader_sees_transactions_whole_while_the_server_writes(fleet, journal):
    """At any moment: what is brought into the tables is one transaction, however many of the clients' are in it."""
    server = fleet.larder("--sweep-interval", "10ms", "--apply-lag", "20ms", "--journal-max", journal)
    done = threading.Event()

    def work():
        with server.connect() as c:
            i = 0
            while not done.is_set():
                i += 1
                c.pipeline(
                    [["MULTI"], ["SET", "counter", i], ["DEL", "list", "old"], ["RPUSH", "list", *[i] * 300],
                     ["HSET", "hash", "a", i, "b", i], ["ZADD", "zset", i, "m"], ["RENAME", "hash", "old"], ["COPY", "old", "hash"], ["EXEC"]]
                )  # fmt: skip

    sql = """
        SELECT CAST(value AS REAL) AS v FROM larder_strings WHERE key = 'counter'
        UNION SELECT CAST(value AS REAL) FROM larder_lists
        UNION SELECT CAST(value AS REAL) FROM larder_hashes
        UNION SELECT score FROM larder_zsets"""
    worker = threading.Thread(target=work)
    worker.start()
    reader = sqlite3.connect(server.store.path, isolation_level=None)
    seen = set()

    def look():
        values = reader.execute(sql).fetchall()
        assert len(values) <= 1, values
        seen.update(values)
        return len(seen) >= 30

    try:
        wait.until(look, "transactions are seen", pause=0)
    finally:
        done.set()
        worker.join()
        reader.close()
    agree(server)


def test_the_tables_are_current_after_save(fleet):
    """When SAVE has answered, a reader finds everything, however far the tables may be behind otherwise."""
    server = fleet.larder("--journal-max", "64mb", "--apply-lag", "1h", "--sweep-interval", "1h")
    current = sqlite3.connect(server.store.path, isolation_level=None)
    try:
        with server.connect() as c:
            for round in range(5):
                for reply in c.pipeline([["SET", f"{round}:{i}", i] for i in range(5000)] + [["SAVE"]]):
                    assert reply.plain() == b"OK"
                assert current.execute(store.CURRENT, [redolog.last_seq(server.store.path)]).fetchone() == (1,)
                assert current.execute("SELECT count(*) FROM larder_strings").fetchone() == ((round + 1) * 5000,)
    finally:
        current.close()


def test_durability_changes_between_what_is_written(fleet):
    """It may bring everything into the tables: whoever reads or writes in the same pipeline sees all of it."""
    server = fleet.larder("--apply-lag", "1h", "--durability", "everysec", "--cache-memory", "0")
    keys = [f"k{i}" for i in range(50)]
    with server.connect() as c:
        for round in range(5):
            c.pipeline([["SET", key, round] for key in keys] + [["RPUSH", "list", round]])
            change = [["GET", "none"], ["CONFIG", "SET", "durability", "always"], ["MGET", *keys], ["SET", "last", round]]
            replies = c.pipeline([*change, ["CONFIG", "SET", "durability", "everysec"], ["LLEN", "list"], ["GET", "last"]])
            value = str(round).encode()
            expected = [None, b"OK", [value] * len(keys), b"OK", b"OK", round + 1, value]
            assert [reply.plain() for reply in replies] == expected


def test_a_durability_that_is_not_to_be_had_is_told(fleet):
    server = fleet.larder("--durability", "everysec", "--busy-timeout", "100ms", "--journal-max", "0")
    other = sqlite3.connect(server.store.path, isolation_level=None)
    try:
        with server.connect() as c:
            other.execute("BEGIN IMMEDIATE")
            replies = c.pipeline([["SET", "k", "v"], ["CONFIG", "SET", "durability", "always"], ["GET", "k"]])
            assert [reply.is_error for reply in replies] == [False, True, False]
            assert c("CONFIG", "GET", "durability") == [b"durability", b"everysec"]
            other.execute("ROLLBACK")
            assert c("CONFIG", "SET", "durability", "always") == b"OK"
            assert c("GET", "k") == b"v"
    finally:
        other.close()
