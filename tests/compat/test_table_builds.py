"""TABLE.ALTER and TABLE.REBUILD: indexes that are built behind, what happens meanwhile, and what `larder check` says of the
end. DEBUG SET-ACTIVE-EXPIRE 0 keeps a server from working behind."""

import contextlib
import shutil
import sqlite3
import time

import pytest

from harness import servers, wait
from harness.resp import ServerError
from harness.builds import MANY, ROWS, fill, hold, ids, index, pairs, put, state, wait_ready


@pytest.fixture
def larder(fleet):
    return fleet.larder("--sweep-interval", "20ms", "--sweep-pause", "1ms", "--apply-lag", "50ms")


def end(larder):
    larder.stop()
    larder.check()


def refused(code):
    return pytest.raises(ServerError, match=f"^{code} ")


# --- what is altered


def test_columns_and_indexes_of_a_small_table(larder, client):
    fill(client, 10)
    assert client("TABLE.ALTER", "t", "ADD INDEX by_age (age)") == b"OK"
    assert state(client, "by_age") == "ready", "few rows are indexed at once"
    assert ids(client, "by_age", 3) == [3]
    assert client("TABLE.ALTER", "t", "ADD", "COLUMN", "city", "TEXT", "DEFAULT", "'Oslo'") == b"OK"
    assert pairs(client("ROW.GET", "t", 3))[b"city"] == b"Oslo"
    assert client("TABLE.ALTER", "t", "RENAME COLUMN age TO years") == b"OK"
    assert pairs(client("ROW.GET", "t", 3))[b"years"] == 3 and ids(client, "by_age", 3) == [3]
    with refused("REFUSED|CONSTRAINT|SYNTAX|BUILDING"):
        client("TABLE.ALTER", "t", "DROP COLUMN years")
    assert client("TABLE.ALTER", "t", "DROP INDEX by_age") == b"OK"
    assert client("TABLE.ALTER", "t", "DROP COLUMN years") == b"OK"
    assert b"years" not in pairs(client("ROW.GET", "t", 3))
    with refused("NOINDEX"):
        client("ROW.QUERY", "t", "INDEX", "by_age")
    end(larder)


def test_what_cannot_be_altered(larder, client):
    fill(client, 10, age=lambda i: i // 2)
    client("SET", "s", "v")
    for words, code in [
        (["nothing", "ADD INDEX i (age)"], "NOTABLE"),
        (["s", "ADD INDEX i (age)"], "WRONGTYPE"),
        (["t", "ADD INDEX i (nothing)"], "NOCOLUMN"),
        (["t", "DROP INDEX nothing"], "NOINDEX"),
        (["t", "ADD COLUMN name TEXT"], "EXISTS"),
        (["t", "MAKE IT FASTER"], "SYNTAX"),
        (["t", "ADD UNIQUE INDEX by_age (age)"], "DUPLICATE"),
    ]:
        with refused(code):
            client("TABLE.ALTER", *words)
    with refused("NOINDEX"):
        client("TABLE.REBUILD", "t", "nothing")
    with refused("NOTABLE"):
        client("TABLE.REBUILD", "nothing")
    assert pairs(client("TABLE.INFO", "t"))[b"indexes"] == []
    end(larder)
    if larder.store.kind == "sqlite":
        assert larder.store.query("SELECT count(*) FROM larder_entry") == [(0,)]


def test_a_dropped_index_leaves_nothing(larder, client):
    fill(client, 100)
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    client("TABLE.ALTER", "t", "DROP INDEX by_age")
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age, name)")
    number = "SELECT count(*) FROM larder_entry"
    wait.until(lambda: int(larder.store.query(number)[0][0]) == 100, "the old entries are swept")
    assert ids(client, "by_age", 3) == [3, 53]
    end(larder)


def test_a_row_that_a_build_has_passed_over_comes_back(larder, client):
    fill(client, 10)
    hold(client)
    client("ROW.PUT", "t", "PX", 1, "FIELDS", 3, "id", 77, "name", "short", "age", 3)
    wait.until(lambda: client("ROW.GET", "t", 77) is None, "the row expires")
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    client("TABLE.ALTER", "t", "ADD UNIQUE INDEX by_name (name)")
    put(client, 77, name="short", age=3)
    assert ids(client, "by_age", 3) == [3, 77] and ids(client, "by_name", "short") == [77]
    end(larder)


# --- built behind


def test_readers_and_writers_during_a_build(larder, client):
    fill(client)
    hold(client)
    assert client("TABLE.ALTER", "t", "ADD INDEX by_age (age)") == b"OK"
    assert state(client, "by_age") == "building" and index(client, "by_age")[b"progress"] == 0
    with refused("BUILDING"):
        client("ROW.QUERY", "t", "INDEX", "by_age", "EQ", 1, 7)
    put(client, 7, name="new", age=1000)
    put(client, MANY, name="added", age=1000)
    client("ROW.DEL", "t", 57)
    client("ROW.UPDATE", "t", "KEY", 107, "FIELDS", 1, "age", 1000)
    hold(client, False)
    wait_ready(client, "by_age")
    assert ids(client, "by_age", 1000) == [7, 107, MANY]
    assert ids(client, "by_age", 7) == [i for i in range(7, MANY, 50) if i not in (7, 57, 107)]
    assert index(client, "by_age")[b"error"] is None and index(client, "by_age")[b"progress"] is None
    end(larder)


def test_builds_of_one_table_come_one_after_the_other(larder, client):
    fill(client)
    hold(client)
    for name in "by_age (age)", "by_name (name)", "both (name, age DESC)":
        assert client("TABLE.ALTER", "t", f"ADD INDEX {name}") == b"OK"
    hold(client, False)
    for name in "by_age", "by_name", "both":
        wait_ready(client, name)
    assert ids(client, "both", "n9", 9) == ids(client, "by_name", "n9") == [9]
    end(larder)


def test_a_duplicate_fails_the_build_and_names_both_rows(larder, client):
    fill(client, name=lambda i: "twice" if i in (11, 1111) else f"n{i}")
    assert client("TABLE.ALTER", "t", "ADD UNIQUE INDEX by_name (name)") == b"OK"
    wait.until(lambda: state(client, "by_name") == "failed", "the build fails")
    error = index(client, "by_name")[b"error"].decode()
    assert "(11)" in error and "(1111)" in error and "by_name" in error
    with refused("BUILDING"):
        client("ROW.QUERY", "t", "INDEX", "by_name", "EQ", 1, "n1")
    assert put(client, MANY, name="twice") == 1, "it does not count any more"
    client("ROW.DEL", "t", 11)
    client("ROW.DEL", "t", MANY)
    assert client("TABLE.REBUILD", "t", "by_name") == b"OK"
    wait_ready(client, "by_name")
    assert ids(client, "by_name", "twice") == [1111]
    with refused("DUPLICATE"):
        put(client, MANY, name="twice")
    end(larder)


def test_a_writer_takes_what_a_row_ahead_of_the_walker_has(larder, client):
    """The row that was there first has no entry yet, so that nobody refuses the second: the walker finds both."""
    fill(client)
    hold(client)
    client("TABLE.ALTER", "t", "ADD UNIQUE INDEX by_name (name)")
    assert put(client, MANY, name="n1200") == 1
    with refused("DUPLICATE"):
        put(client, MANY + 1, name="n1200")
    hold(client, False)
    wait.until(lambda: state(client, "by_name") == "failed", "the build fails")
    assert all(f"({i})" in index(client, "by_name")[b"error"].decode() for i in (1200, MANY))
    end(larder)


def test_a_row_that_has_expired_is_no_duplicate(larder, client):
    fill(client)
    hold(client)
    client("ROW.PUT", "t", "PX", 1, "FIELDS", 2, "id", -1, "name", "n5")
    time.sleep(0.01)
    client("TABLE.ALTER", "t", "ADD UNIQUE INDEX by_name (name)")
    hold(client, False)
    wait_ready(client, "by_name")
    assert ids(client, "by_name", "n5") == [5]
    end(larder)


def test_an_entry_that_would_be_too_long_fails_the_build(larder, client):
    fill(client, name=lambda i: "x" * 1200 if i == 1077 else f"n{i}")
    client("TABLE.ALTER", "t", "ADD INDEX by_name (name)")
    wait.until(lambda: state(client, "by_name") == "failed", "the build fails")
    assert "(1077)" in index(client, "by_name")[b"error"].decode()
    put(client, 5, name="y" * 1200)
    with refused("TOOLONG"):
        client("TABLE.REBUILD", "t")
    assert state(client, "by_name") == "failed", "a fault among the first rows is told at once, and nothing changes"
    end(larder)


@pytest.mark.parametrize(
    "commands",
    [
        [["TABLE.ALTER", "t", "DROP INDEX by_age"]],
        [["TABLE.DROP", "t"]],
        [["DEL", "t"]],
        [["FLUSHDB"]],
        [["PEXPIRE", "t", "1"]],
        [["TABLE.DROP", "t"], ["TABLE.CREATE", "t", ROWS]],
    ],
    ids=lambda commands: " ".join(commands[-1]),
)
def test_what_ends_a_build(larder, client, commands):
    fill(client)
    hold(client)
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    for command in commands:
        client(*command)
    hold(client, False)
    rows = MANY if commands[0][1:] == ["t", "DROP INDEX by_age"] else 0
    count = "SELECT (SELECT count(*) FROM larder_row), (SELECT count(*) FROM larder_entry)"
    wait.until(lambda: [int(n) for n in larder.store.query(count)[0]] == [rows, 0], "nothing of it is left")
    assert client("EXISTS", "t") == 0 or pairs(client("TABLE.INFO", "t"))[b"indexes"] == []
    end(larder)


@pytest.mark.parametrize("command", [["RENAME", "t", "u"], ["MOVE", "t", "1"], ["SWAPDB", "0", "1"]], ids=lambda c: c[0])
def test_a_table_that_moves_during_a_build(larder, client, command):
    fill(client)
    hold(client)
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    client(*command)
    hold(client, False)
    if command[0] != "RENAME":
        client("SELECT", 1)
    name = "u" if command[0] == "RENAME" else "t"
    wait_ready(client, "by_age", name)
    assert len(ids(client, "by_age", 7, table=name)) == MANY // 50
    end(larder)


def test_columns_change_during_a_build(larder, client):
    fill(client)
    hold(client)
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    client("TABLE.ALTER", "t", "RENAME COLUMN age TO years")
    client("TABLE.ALTER", "t", "ADD COLUMN city TEXT")
    client("TABLE.ALTER", "t", "DROP COLUMN name")
    hold(client, False)
    wait_ready(client, "by_age")
    assert len(ids(client, "by_age", 7)) == MANY // 50
    end(larder)


def test_what_is_undone_is_not_built(larder, client):
    fill(client)
    script = "#!lua flags=rollback\nredis.call('TABLE.ALTER', KEYS[1], 'ADD INDEX by_age (age)') error('no')"
    with pytest.raises(ServerError, match="no"):
        client("EVAL", script, 1, "t")
    assert pairs(client("TABLE.INFO", "t"))[b"indexes"] == []
    client("MULTI")
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    client("ROW.PUT", "t", "FIELDS", 2, "id", MANY, "age", 7)
    client("ROW.PUT", "t", "FIELDS", 1, "nothing", 1)
    replies = client("EXEC")
    assert replies[:2] == [b"OK", 1] and isinstance(replies[2], ServerError)
    wait_ready(client, "by_age")
    assert len(ids(client, "by_age", 7)) == MANY // 50 + 1
    end(larder)


def test_a_build_goes_on_after_a_kill(larder, client):
    fill(client)
    hold(client)
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    put(client, MANY, age=7)
    larder.kill()
    larder.start()
    with larder.connect() as again:
        wait_ready(again, "by_age")
        assert len(ids(again, "by_age", 7)) == MANY // 50 + 1
    end(larder)


# --- `larder check` can find what is wrong


FIRST = "name = (SELECT min(name) FROM {})"
DAMAGE = [
    (f"DELETE FROM larder_entry WHERE {FIRST.format('larder_entry')}", "index by_age has no entry of row (0)"),
    (f"DELETE FROM larder_row WHERE {FIRST.format('larder_row')}", "names row (0), which is not there"),
    ("UPDATE larder_row SET value = CAST(replace(CAST(value AS TEXT), '\"n3\"', '\"other\"') AS BLOB)",
     "index by_name: an entry of row (3) is not what the row says"),
    (f"UPDATE larder_row SET value = x'78' WHERE {FIRST.format('larder_row')}", "row (0): "),
    (f"UPDATE larder_row SET name = x'290c' WHERE {FIRST.format('larder_row')}", "row (12) has another name"),
    ("INSERT INTO larder_entry (id, name, value) SELECT id, x'0063281501', x'' FROM larder_entry LIMIT 1",
     "entries of index 99, which the table does not have"),
    ("INSERT INTO larder_entry (id, name, value) SELECT id, x'00000001', x'' FROM larder_entry LIMIT 1",
     "index 1 is, which is not being built"),
    ("INSERT INTO larder_entry (id, name, value) SELECT id, x'00', x'' FROM larder_entry LIMIT 1", "an entry of 1 bytes"),
    ("UPDATE larder_entry SET value = x'2901' WHERE name = (SELECT min(name) FROM larder_entry WHERE length(value) > 0)",
     "index by_name: an entry of row (1) is not what the row says"),
    ("UPDATE larder_entry SET value = x'01' WHERE length(value) = 0 AND " + FIRST.format("larder_entry"), "index by_age: "),
    ("UPDATE larder_key SET value = x'7b7d' WHERE type = 6", "table 't'"),
    ("INSERT INTO larder_row (id, name, expire_at, value) SELECT id + 5, name, 0, value FROM larder_row LIMIT 1",
     "no key refers to it"),
]  # fmt: skip


@pytest.mark.sqlite
def test_check_finds_damage(larder, client, tmp_path):
    """And TABLE.REBUILD mends what is wrong with entries."""
    fill(client, 10)
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    client("TABLE.ALTER", "t", "ADD UNIQUE INDEX by_name (name)")
    end(larder)
    for i, (sql, text) in enumerate(DAMAGE):
        path = tmp_path / f"damaged{i}.db"
        shutil.copy(larder.store.path, path)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            assert connection.execute(sql).rowcount > 0, f"done: {sql}"
        done = servers.run(["check", "--store", f"sqlite:{path}"])
        assert done.returncode == 3 and text in done.stdout, f"{sql}\n{done.stdout}"
    shutil.copy(tmp_path / "damaged0.db", larder.store.path)
    larder.start()
    with larder.connect() as again:
        assert ids(again, "by_age", 0) == []
        assert again("TABLE.REBUILD", "t") == b"OK"
        assert ids(again, "by_age", 0) == [0]
    end(larder)
