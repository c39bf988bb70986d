"""Tables over hashes: whatever commands do to hashes, queries by an index find what the hashes hold."""

import random
import time

import pytest

from compat import grammar
from harness import servers
from harness.resp import ServerError

START = 4_100_000_000_000
USERS = "id TEXT, name TEXT, age INTEGER, INDEX by_age (age), INDEX by_name (name, age DESC)"


@pytest.fixture
def client(subjects):
    with subjects("--sweep", "no", "--databases", "16").connect() as connection:
        connection("FLUSHALL")
        connection("HELLO", 3)
        yield connection
        connection("DEBUG", "CLOCK", "REAL")


def create(client, name="users", text=USERS, prefix="users:"):
    assert client("TABLE.CREATE", name, text, "ON", "HASH", "PREFIX", prefix) == b"OK"


def state(client, table="users"):
    return {i[b"name"].decode(): i[b"state"].decode() for i in client("TABLE.INFO", table)[b"indexes"]}


def ids(client, *words, table="users"):
    return [row[b"id"].decode() for row in client("ROW.QUERY", table, *words)[0]]


def by_age(client, *words):
    return ids(client, "INDEX", "by_age", *words)


def test_what_commands_do_to_hashes_is_in_the_index(client):
    create(client)
    assert state(client) == {"by_age": "ready", "by_name": "ready"}
    client("HSET", "users:1", "name", "Mary", "age", 30)
    client("HSET", "users:2", "name", "John", "age", 9)
    client("HSET", "other:3", "age", 10)
    assert client("ROW.GET", "users", 1) == {b"id": b"1", b"name": b"Mary", b"age": 30}
    assert ids(client) == ["1", "2"] and by_age(client) == ["2", "1"]
    assert by_age(client, "EQ", 1, 30) == ["1"] and by_age(client, "FROM", "[10") == ["1"]
    client("HINCRBY", "users:2", "age", 100)
    assert by_age(client) == ["1", "2"]
    client("HDEL", "users:2", "age")
    assert by_age(client) == ["2", "1"]  # NULL comes first
    client("RENAME", "users:1", "users:0")
    client("COPY", "users:0", "users:5")
    assert by_age(client, "EQ", 1, 30) == ["0", "5"]
    client("SET", "users:0", "a string")
    client("RENAME", "users:5", "elsewhere")
    client("RENAME", "other:3", "users:3")
    assert by_age(client) == ["2", "3"]
    client("DEL", "users:2")
    client("RPUSH", "list", 1)
    client("SORT", "list", "STORE", "users:3")
    assert by_age(client) == [] and ids(client) == []


def test_transactions_and_scripts(client):
    create(client)
    client("MULTI")
    client("HSET", "users:1", "age", 1)
    client("HSET", "users:2", "age", 2)
    client("ROW.QUERY", "users", "INDEX", "by_age", "COUNT")
    client("UNLINK", "users:1")
    assert client("EXEC")[2][0] == 2
    assert by_age(client) == ["2"]
    client("EVAL", "redis.call('HSET', KEYS[1], 'age', 7); return redis.call('DEL', KEYS[2])", 2, "users:3", "users:2")
    assert by_age(client) == ["3"]


def test_hashes_that_are_there_already(client):
    for i in range(300):
        client("HSET", f"users:{i:03}", "age", 300 - i)
    client("HSET", "users:odd", "age", "unknown")
    create(client)
    assert set(state(client).values()) == {"ready"}
    assert by_age(client, "LIMIT", 301) == ["odd"] + [f"{i:03}" for i in reversed(range(300))]
    assert client("TABLE.INFO", "users")[b"unparsable"] == 1


def test_many_hashes_are_indexed_behind(client):
    """Writers maintain the index meanwhile; what the walk passes is listed."""
    client.pipeline([[b"HSET", b"users:%04d" % i, b"age", b"%d" % (i * 7 % 2000)] for i in range(2000)])
    client("HSET", b"users:\xff", "age", 1)
    client("HSET", "users:odd", "age", "unknown")
    create(client)
    client("HSET", "users:0001", "age", -1)
    client("DEL", "users:0002", "users:1999")
    deadline = time.monotonic() + 30
    while set(state(client).values()) != {"ready"}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    found = client("ROW.QUERY", "users", "INDEX", "by_age", "LIMIT", 3000)[0]
    rows = client("ROW.QUERY", "users", "LIMIT", 3000)[0]
    assert len(rows) == 1999 and found == sorted(rows, key=lambda row: order_of(row, b"age"))
    assert by_age(client, "LIMIT", 2) == ["odd", "0001"]
    assert client("TABLE.UNPARSED", "users")[0] == [[b"users:odd", b"column", b"age"], [b"users:\xff", b"key", None]]
    client("TABLE.ALTER", "users", "ADD INDEX more (name, age)")
    while set(state(client).values()) != {"ready"}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(ids(client, "INDEX", "more", "LIMIT", 3000)) == 1999


@pytest.mark.sqlite
def test_a_rebuild_mends_what_foreign_sql_has_done(fleet):
    server = fleet.larder()
    with server.connect() as client:
        create(client)
        client("HSET", "users:1", "age", 5, "name", "x")
        client("HSET", "users:2", "age", "odd")
        client("HSET", b"users:\xff", "age", "odd")
    server.stop()
    server.check()
    server.store.query("UPDATE larder_hash SET value = CAST('6' AS BLOB) WHERE field = CAST('age' AS BLOB)")
    found = servers.run(["check", "--store", server.store.url])
    assert found.returncode != 0
    assert "index by_age has no entry of the hash '1' as it is" in found.stdout
    assert "index by_age has 2 entries of no hash" in found.stdout
    server.start()
    with server.connect() as client:
        client("HELLO", 3)
        assert by_age(client, "EQ", 1, 5) == [] and by_age(client, "EQ", 1, 6) == []
        assert ids(client, "FILTER", "age", "=", 6) == ["1", "2"]
        client("TABLE.REBUILD", "users")
        assert by_age(client, "EQ", 1, 5) == [] and by_age(client, "EQ", 1, 6) == ["1", "2"]
        assert client("TABLE.UNPARSED", "users") == [[[b"users:\xff", b"key", None]], None]
    server.stop()
    server.check()


def test_values_that_do_not_parse_are_listed(client):
    create(client)
    client("HSET", "users:1", "age", "young", "name", b"\xff")
    client("HSET", "users:2", "age", 5)
    client("HSET", b"users:\xff", "age", 5)
    client("HSET", "users:3", "name", "x" * 2000)
    info = client("TABLE.INFO", "users")
    assert info[b"prefix"] == b"users:" and info[b"unparsable"] == 4
    assert info[b"unparsable_keys"] == [b"users:1", b"users:3", b"users:\xff"]
    flaws = [
        [b"users:1", b"column", b"name"],
        [b"users:1", b"column", b"age"],
        [b"users:3", b"index", b"by_name"],
        [b"users:\xff", b"key", None],
    ]
    assert client("TABLE.UNPARSED", "users") == [flaws, None]
    seen, token = [], None
    while True:
        page, token = client("TABLE.UNPARSED", "users", "LIMIT", 1, *(["AFTER", token] if token else []))
        seen += page
        if token is None:
            break
    assert seen == flaws
    assert by_age(client, "EQ", 1, 5) == ["2"]
    assert client("ROW.GET", "users", 1) == {b"id": b"1", b"name": None, b"age": None}
    client("HSET", "users:1", "age", 6, "name", "Mary")
    client("DEL", "users:3", b"users:\xff")
    assert client("TABLE.UNPARSED", "users") == [[], None]
    assert by_age(client) == ["2", "1"]
    for words in (["LIMIT", 0], ["AFTER", "!"], ["AFTER", "AAAA"], ["X"]):
        with pytest.raises(ServerError, match="SYNTAX|BADTOKEN"):
            client("TABLE.UNPARSED", "users", *words)


def test_rows_are_written_as_hashes(client):
    create(client)
    assert client("ROW.PUT", "users", "FIELDS", 3, "id", 1, "name", "Mary", "age", 30) == 1
    assert client("HGETALL", "users:1") == {b"id": b"1", b"name": b"Mary", b"age": b"30"}
    client("HSET", "users:1", "more", "stays")
    assert client("ROW.PUT", "users", "FIELDS", 2, "id", 1, "age", 31) == 0
    assert client("HGETALL", "users:1") == {b"id": b"1", b"age": b"31", b"more": b"stays"}
    assert client("ROW.PUT", "users", "NX", "FIELDS", 1, "id", 1) is None
    row, version = client("ROW.GET", "users", 1, "WITHVER")
    assert row[b"age"] == 31
    assert client("ROW.PUT", "users", "IFVER", version + 1, "FIELDS", 1, "id", 1) is None
    client("ROW.UPDATE", "users", "KEY", 1, "IFVER", version, "FIELDS", 1, "name", "Ann", "INCR", "age", 5)
    assert client("HMGET", "users:1", "name", "age", "more") == [b"Ann", b"36", b"stays"]
    assert by_age(client, "EQ", 1, 36) == ["1"]
    client("HSET", "users:1", "age", "old")
    client("ROW.UPDATE", "users", "KEY", 1, "FIELDS", 1, "name", "Eve")
    assert client("HGET", "users:1", "age") == b"old"  # what does not parse stays until it gets a value
    assert client("ROW.EXPIRE", "users", 100, 1) == 1 and client("TTL", "users:1") == 100
    client("ROW.UPDATE", "users", "KEY", 1, "FIELDS", 1, "id", 7)
    assert client("EXISTS", "users:1") == 0 and client("HGET", "users:7", "name") == b"Eve"
    client("SET", "users:8", "a string")
    with pytest.raises(ServerError, match="WRONGTYPE"):
        client("ROW.PUT", "users", "FIELDS", 2, "id", 8, "age", 1)
    assert client("ROW.DEL", "users", 7) == 1 and client("EXISTS", "users:7") == 0


def test_keys_and_fields_that_expire(client):
    client("DEBUG", "CLOCK", START)
    create(client)
    client("HSET", "users:1", "age", 1, "name", "a")
    client("HSET", "users:2", "age", 2, "name", "b")
    client("HSET", "users:3", "age", 3, "name", "c")
    client("PEXPIRE", "users:1", 100)
    client("HPEXPIRE", "users:2", 100, "FIELDS", 1, "age")
    client("DEBUG", "CLOCK", START + 200)
    assert ids(client) == ["2", "3"]
    assert by_age(client) == ["2", "3"] and by_age(client, "EQ", 1, 2) == []
    assert by_age(client, "FILTER", "age", "ISNULL") == ["2"]
    assert client("ROW.QUERY", "users", "INDEX", "by_age", "COUNT")[0] == 2
    assert ids(client, "INDEX", "by_name", "EQ", 1, "b") == ["2"]
    assert by_age(client, "LIMIT", 1, "REV") == ["3"]
    client("HSET", "users:1", "age", 9)  # in the place of one that has expired
    client("HSET", "users:2", "age", 8)
    assert by_age(client) == ["3", "2", "1"]


def test_what_the_sweeper_removes_leaves_no_entries(fleet):
    server = fleet.larder("--sweep-interval", "1ms", "--sweep-pause", "0")
    with server.connect() as client:
        client("HELLO", 3)
        client("DEBUG", "CLOCK", START)
        create(client)
        for i in range(20):
            client("HSET", f"users:{i}", "age", i, "name", "n")
        client("HPEXPIRE", "users:1", 100, "FIELDS", 1, "age")
        client("PEXPIRE", "users:2", 100)
        client("HPEXPIRE", "users:3", 100, "FIELDS", 2, "age", "name")
        client("DEBUG", "CLOCK", START + 200)
        deadline = time.monotonic() + 30
        while any(word not in client("INFO", "stats") for word in (b"expired_subkeys:3\r", b"expired_keys:1\r")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert len(by_age(client)) == 18
    server.stop()
    server.check()


def test_tables_and_databases(client):
    create(client)
    create(client, "everything", "k TEXT, age INTEGER, INDEX by_age (age)", "")
    client("HSET", "users:1", "age", 4)
    client("HSET", "x", "age", 3)
    assert [r[b"k"] for r in client("ROW.QUERY", "everything", "INDEX", "by_age")[0]] == [b"x", b"users:1"]
    client("RENAME", "users", "people")
    client("HSET", "users:2", "age", 1)
    assert ids(client, "INDEX", "by_age", table="people") == ["2", "1"]
    with pytest.raises(ServerError):
        client("MOVE", "people", 1)
    client("SWAPDB", 0, 1)
    client("HSET", "users:3", "age", 1)
    client("SELECT", 1)
    client("HSET", "users:4", "age", 2)
    client("MOVE", "users:1", 0)
    assert ids(client, "INDEX", "by_age", table="people") == ["2", "4"]
    client("SWAPDB", 0, 1)
    client("SELECT", 0)
    client("TABLE.DROP", "people")
    client("HSET", "users:5", "age", 0)
    assert [r[b"k"] for r in client("ROW.QUERY", "everything", "INDEX", "by_age")[0]] == [b"users:5", b"users:2", b"users:4", b"x"]
    client("FLUSHDB")
    create(client)
    client("HSET", "users:6", "age", 0)
    assert by_age(client) == ["6"]


def test_what_is_refused(client):
    for text in ("id TEXT, a TEXT NOT NULL", "id TEXT, a TEXT UNIQUE", "id TEXT, a INTEGER, CHECK (a > 1)", "id INTEGER"):
        with pytest.raises(ServerError, match="REFUSED"):
            client("TABLE.CREATE", "t", text, "ON", "HASH", "PREFIX", "p")
    create(client)
    client("TABLE.CREATE", "own", "id TEXT PRIMARY KEY")
    with pytest.raises(ServerError, match="REFUSED"):
        client("TABLE.UNPARSED", "own")
    with pytest.raises(ServerError, match="EXISTS"):
        create(client)


# ---- random commands

COLUMNS = "id TEXT, a TEXT, b INTEGER, c REAL, d BOOLEAN"
TABLES = {"everything": "", "some": "h"}


def order_of(row, *columns):
    return [(row[c] is not None, row[c]) for c in columns] + [row[b"id"]]


def compare(client, table, prefix):
    """Rows are the hashes, and each index has them all, in order, but for entries that would be too long."""
    rows = client("ROW.QUERY", table, "LIMIT", 10000)[0]
    assert [r[b"id"] for r in rows] == sorted(r[b"id"] for r in rows)
    keys = [k for k in client("KEYS", "*") if k.startswith(prefix.encode()) and client("TYPE", k) == b"hash"]
    named = [k for k in keys if b"\0" not in k and k.decode(errors="replace").encode() == k]
    assert [prefix.encode() + r[b"id"] for r in rows] == sorted(named)
    for r in rows:
        text = client("HGET", prefix.encode() + r[b"id"], "a")
        bad = text is None or b"\0" in text or text.decode(errors="replace").encode() != text
        assert r[b"a"] == (None if bad else text)
    long = {(f[0], f[2]) for f in client("TABLE.UNPARSED", table, "LIMIT", 10000)[0] if f[1] == b"index"}
    for index, columns in {"by_b": [b"b"], "by_ab": [b"a", b"b"], "by_c": [b"c"]}.items():
        found = client("ROW.QUERY", table, "INDEX", index, "LIMIT", 10000)[0]
        want = [r for r in rows if (prefix.encode() + r[b"id"], index.encode()) not in long]
        assert found == sorted(want, key=lambda r: order_of(r, *columns))


@pytest.mark.parametrize("seed", range(3))
def test_random_commands(seed, subjects):
    r = random.Random(seed)
    families = ["hash", "key", "expire", "mixed", "sort", "string"]
    generator = grammar.Generator(r, families, without=("FLUSHDB", "FLUSHALL", "SWAPDB"))
    options = [[], ["--sweep-interval", "1ms", "--sweep-pause", "0"], ["--cache-memory", "0"]][seed]
    with subjects(*options).connect() as client:
        client("FLUSHALL")
        client("HELLO", 3)
        for table, prefix in TABLES.items():
            create(client, table, COLUMNS + ", INDEX by_b (b), INDEX by_ab (a, b), INDEX by_c (c)", prefix)
        for _ in range(6):
            client.pipeline([args for args, _ in (generator.command() for _ in range(250)) if args[0].upper() not in (b"SELECT", b"QUIT", b"RESET")])
            client("SELECT", 0)
            for table, prefix in TABLES.items():
                compare(client, table, prefix)
