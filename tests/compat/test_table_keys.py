"""A table is a key: what commands that know nothing of tables do with one."""

import pytest

from harness import resp, servers, wait

COLUMNS = "id INTEGER PRIMARY KEY, name TEXT, age INTEGER, INDEX by_age (age)"


def create(client, name, rows=3):
    assert client("TABLE.CREATE", name, COLUMNS) == b"OK"
    for i in range(rows):
        assert client("ROW.PUT", name, "FIELDS", 3, "id", i, "name", f"n{i}", "age", 20 + i) == 1


def error(client, *words):
    with pytest.raises(resp.ServerError) as caught:
        client(*words)
    return str(caught.value)


@pytest.fixture
def table(client):
    create(client, "people")
    return client


def test_it_has_a_type_and_is_found(table):
    table("SET", "other", "x")
    assert table("TYPE", "people") == b"table"
    assert table("EXISTS", "people", "people") == 2 and table("TOUCH", "people") == 1
    assert table("SCAN", 0, "TYPE", "table", "COUNT", 100) == [b"0", [b"people"]]
    assert table("SCAN", 0, "TYPE", "string", "COUNT", 100) == [b"0", [b"other"]]
    assert sorted(table("KEYS", "*")) == [b"other", b"people"] and table("DBSIZE") == 2
    assert table("OBJECT", "ENCODING", "people") == b"table" and table("OBJECT", "REFCOUNT", "people") == 1
    assert table("OBJECT", "IDLETIME", "people") == 0
    assert "LFU" in error(table, "OBJECT", "FREQ", "people")
    assert b"encoding:table" in table("DEBUG", "OBJECT", "people")
    assert 100 < table("MEMORY", "USAGE", "people") < 4000


@pytest.mark.parametrize(
    "words",
    ["GET people", "APPEND people x", "INCR people", "GETRANGE people 0 1", "SETBIT people 1 1", "SET people x GET",
     "HGET people id", "HSET people f v", "LPUSH people x", "LLEN people", "SADD people x", "SMEMBERS people",
     "ZADD people 1 x", "ZCARD people", "SORT people", "SUNION people", "ZUNION 1 people", "HSCAN people 0",
     "GETEX people", "GETDEL people", "STRLEN people", "LCS people people"],
)  # fmt: skip
def test_it_is_of_another_type_to_all_others(table, words):
    text = error(table, *words.split())
    assert text.startswith(("WRONGTYPE", "ERR The specified keys must contain string values")), text
    assert table("ROW.GET", "people", 1) is not None
    assert table("MGET", "people", "nothing") == [None, None]


def test_it_is_deleted_with_its_rows(larder, table):
    table("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert table("DEL", "people") == 1
    assert table("TYPE", "people") == b"none" and "NOTABLE" in error(table, "ROW.GET", "people", 1)
    create(table, "people", rows=1)  # its rows are others
    assert table("ROW.GET", "people", 2) is None
    assert table("UNLINK", "people") == 1
    left = "SELECT (SELECT count(*) FROM larder_row) + (SELECT count(*) FROM larder_entry) + (SELECT count(*) FROM larder_trash)"
    wait.until(lambda: int(larder.store.query(left)[0][0]) == 0, "rows and entries are swept")


def test_it_expires(table):
    assert table("EXPIRE", "people", 100) == 1 and 0 < table("TTL", "people") <= 100
    assert table("ROW.PUT", "people", "FIELDS", 2, "id", 9, "name", "x") == 1
    assert 0 < table("PTTL", "people") <= 100_000, "a row does not touch its table's expiry"
    assert table("PERSIST", "people") == 1 and table("TTL", "people") == -1
    table("DEBUG", "CLOCK", "+1")
    table("PEXPIRE", "people", 50)
    table("DEBUG", "CLOCK", "+51")
    assert table("EXISTS", "people") == 0 and "NOTABLE" in error(table, "ROW.GET", "people", 1)
    assert "NOTABLE" in error(table, "ROW.PUT", "people", "FIELDS", 1, "id", 9)
    create(table, "people", rows=1)
    assert table("ROW.GET", "people", 2) is None


def test_it_is_renamed_to_names_of_tables_alone(table):
    row = table("ROW.GET", "people", 1)
    assert table("RENAME", "people", "persons") == b"OK"
    assert table("ROW.GET", "persons", 1) == row and table("EXISTS", "people") == 0
    for name in ("with space", "1st", "larder_x", "sqlite_x", "x" * 64, "", "ä"):
        assert error(table, "RENAME", "persons", name).startswith("SYNTAX "), name
        assert error(table, "RENAMENX", "persons", name).startswith("SYNTAX "), name
    create(table, "Others")
    assert error(table, "RENAME", "persons", "OTHERS").startswith("EXISTS ")
    assert table("ROW.GET", "persons", 1) == row and table("EXISTS", "Others") == 1
    assert table("RENAMENX", "persons", "Others") == 0
    assert table("RENAME", "persons", "Persons") == b"OK" and table("RENAME", "Persons", "Persons") == b"OK"
    assert table("RENAME", "Persons", "Others") == b"OK", "in its place"
    assert table("ROW.GET", "Others", 1) == row and table("KEYS", "*") == [b"Others"]
    table("SET", "k", "v")
    assert table("RENAME", "k", "Others") == b"OK" and table("GET", "Others") == b"v", "in a table's place"


def test_it_is_moved_and_swapped(table):
    row = table("ROW.GET", "people", 1)
    assert table("MOVE", "people", 3) == 1 and table("EXISTS", "people") == 0
    table("SELECT", 3)
    assert table("ROW.GET", "people", 1) == row
    table("SELECT", 0)
    create(table, "PEOPLE", rows=1)
    table("SELECT", 3)
    assert error(table, "MOVE", "people", 0).startswith("EXISTS ")
    assert table("ROW.GET", "people", 1) == row
    table("SWAPDB", 0, 3)
    assert table("KEYS", "*") == [b"PEOPLE"]
    table("SELECT", 0)
    assert table("ROW.GET", "people", 1) == row
    assert table("FLUSHDB") == b"OK"
    assert table("EXISTS", "people") == 0 and "NOTABLE" in error(table, "ROW.GET", "people", 1)


def test_it_is_not_copied(table):
    table("SET", "there", "x")
    for words in ("COPY people copy", "COPY people there REPLACE", "COPY people people DB 1"):
        assert error(table, *words.split()).startswith("REFUSED "), words
    assert table("EXISTS", "copy") == 0 and table("GET", "there") == b"x"
    assert table("COPY", "there", "people", "REPLACE") == 1 and table("GET", "people") == b"x"


def test_it_survives_a_restart_and_a_crash(larder):
    with larder.connect() as c:
        create(c, "people")
        c("EXPIRE", "people", 1000)
        row = c("ROW.GET", "people", 2)
    larder.kill()
    larder.start()
    with larder.connect() as c:
        assert c("TYPE", "people") == b"table" and 0 < c("TTL", "people") <= 1000
        assert c("ROW.GET", "people", 2) == row
    larder.stop()
    done = servers.run(["check", "--store", larder.store.url])
    assert done.returncode == 0, done.stdout
