"""Tables and their rows: TABLE.CREATE, INFO, LIST, DROP and ROW.PUT, UPDATE, GET, MGET, DEL, TTL, EXPIRE, with every
option and every error; the entries of indexes are compared with the rows in the database itself."""

import contextlib
import itertools
import random
import re
import sqlite3

import pytest

from crash import power
from harness import servers, store, tables, wait
from harness.resp import ServerError, encode

START = 4_100_000_000_000  # milliseconds: later than real time
WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
PEOPLE = (
    "first TEXT, last TEXT, address TEXT, ssn INTEGER, age INTEGER DEFAULT 7 NOT NULL, PRIMARY KEY (first, last), "
    "INDEX by_ssn (ssn, last), UNIQUE INDEX by_address (address DESC)"
)
TYPES = (
    "id INTEGER PRIMARY KEY, i INTEGER, r REAL, t TEXT, b BLOB, o BOOLEAN, m TIMESTAMP, j JSON, "
    "INDEX by_all (i, r DESC, t, b DESC, o, m)"
)


@pytest.fixture(params=["", "0", "16kb"], ids=["journal", "no journal", "small journal"])
def server(request, subjects):
    """An empty server without a sweeper, which tests share."""
    options = ["--journal-max", request.param] if request.param else []
    server = subjects("--sweep", "no", "--databases", "16", *options)
    with server.connect() as c:
        c("FLUSHALL")
        yield server
        c("DEBUG", "CLOCK", "REAL")


@pytest.fixture
def client(server):
    with server.connect() as connection:
        yield connection


@pytest.fixture
def clock(client):
    """Stops the server's clock at START; clock(ms) moves it to START + ms."""

    def move(to):
        assert client("DEBUG", "CLOCK", START + to) == b"OK"

    move(0)
    return move


def fields(**columns):
    return ["FIELDS", len(columns), *itertools.chain(*columns.items())]


def row(reply):
    """A row's columns as a dict."""
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2])}


@pytest.fixture
def people(client):
    assert client("TABLE.CREATE", "people", PEOPLE) == b"OK"
    assert client("ROW.PUT", "people", *fields(first="Mary", last="Jane", address="Heaven", ssn=9088)) == 1
    assert client("ROW.PUT", "people", *fields(first="John", last="Doe", address="Hell", ssn=9678, age=30)) == 1
    return client


# --- tables


def test_create_list_and_drop(client):
    assert client("TABLE.CREATE", "people", PEOPLE) == b"OK"
    assert client.error("TABLE.CREATE", "people", PEOPLE).startswith("EXISTS ")
    assert client.error("TABLE.CREATE", "People", PEOPLE).startswith("EXISTS ")
    assert client("TABLE.CREATE", "people", PEOPLE, "if", "not", "exists") == b"OK"
    assert client("TABLE.CREATE", "a_b", "k TEXT PRIMARY KEY") == b"OK"
    client("SET", "string", "v")
    assert client("TABLE.LIST") == [b"a_b", b"people"]
    assert client("TYPE", "people") == b"table"
    assert client("TABLE.DROP", "people") == b"OK"
    assert client.error("TABLE.DROP", "people").startswith("NOTABLE ")
    assert client.error("TABLE.DROP", "string") == WRONGTYPE
    assert client("TABLE.LIST") == [b"a_b"]
    client("SELECT", 1)
    assert client("TABLE.LIST") == []
    client("SELECT", 0)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "larder_x", "SQLITE_x", "a" * 64, "tür"])
def test_names_that_no_table_has(client, name):
    assert client.error("TABLE.CREATE", name, "k TEXT PRIMARY KEY").startswith("SYNTAX ")
    assert client("EXISTS", name) == 0


@pytest.mark.parametrize("rest", [["IF"], ["IF", "NOT"], ["IF", "NOT", "EXISTS", "X"], ["NX"]])
def test_create_with_what_is_not_understood(client, rest):
    assert client.error("TABLE.CREATE", "t", "k TEXT PRIMARY KEY", *rest).startswith("SYNTAX ")
    assert client("TABLE.LIST") == []


def test_a_key_of_another_type(client):
    client("SET", "s", "v")
    for command in (
        ["TABLE.CREATE", "s", "k TEXT PRIMARY KEY"],
        ["TABLE.CREATE", "s", "k TEXT PRIMARY KEY", "IF", "NOT", "EXISTS"],
        ["TABLE.INFO", "s"],
        ["ROW.GET", "s", "k"],
        ["ROW.MGET", "s", "KEYS", 1, "k"],
        ["ROW.PUT", "s", *fields(k=1)],
        ["ROW.UPDATE", "s", "KEY", "k", *fields(k=1)],
        ["ROW.DEL", "s", "k"],
        ["ROW.TTL", "s", "k"],
        ["ROW.PTTL", "s", "k"],
        ["ROW.EXPIRE", "s", 1, "k"],
    ):
        assert client.error(*command) == WRONGTYPE, command
    assert client.error("ROW.GET", "nothing", "k").startswith("NOTABLE ")
    assert client.error("ROW.PUT", "nothing", *fields(k=1)).startswith("NOTABLE ")


def test_info(people, server):
    people("HELLO", 3)
    info = people("TABLE.INFO", "people")
    people("HELLO", 2)
    assert info[b"name"] == b"people" and info[b"id"] > 0
    assert [c[b"name"] for c in info[b"columns"]] == [b"first", b"last", b"address", b"ssn", b"age"]
    assert info[b"columns"][4] == {b"name": b"age", b"type": b"INTEGER", b"not_null": True, b"default": 7}
    assert info[b"key"] == [{b"column": b"first", b"desc": False}, {b"column": b"last", b"desc": False}]
    assert [(i[b"name"], i[b"unique"], i[b"state"], i[b"error"]) for i in info[b"indexes"]] == [
        (b"by_ssn", False, b"ready", None),
        (b"by_address", True, b"ready", None),
    ]
    assert info[b"indexes"][1][b"columns"] == [{b"column": b"address", b"desc": True}]
    assert info[b"rows_estimate"] == 2 and set(info[b"view"]) == {b"sqlite", b"postgresql", b"mariadb"}
    assert people("TABLE.CREATE", "again", info[b"create"]) == b"OK"
    if server.store.kind == "sqlite":
        with contextlib.closing(sqlite3.connect(server.store.path)) as database:
            database.execute(info[b"view"][b"sqlite"].decode().replace("CREATE VIEW", "CREATE TEMP VIEW"))
            name = database.execute("SELECT name FROM temp.sqlite_schema").fetchone()[0]
            server.store.query("SELECT 1")  # waits until the tables are not behind
            rows = database.execute(f"SELECT ssn FROM temp.{name} ORDER BY 1").fetchall()
            assert rows == [(9088,), (9678,)]


def test_a_table_is_a_key(people):
    assert people("RENAME", "people", "folk") == b"OK"
    assert row(people("ROW.GET", "folk", "Mary", "Jane"))["ssn"] == 9088
    assert people("DEL", "folk") == 1
    assert people("TABLE.CREATE", "folk", PEOPLE) == b"OK"
    assert people("ROW.GET", "folk", "Mary", "Jane") is None


def test_rows_go_with_their_table(people, clock):
    assert people("PEXPIRE", "people", 10) == 1
    clock(9)
    assert row(people("ROW.GET", "people", "Mary", "Jane"))["ssn"] == 9088
    clock(10)
    assert people.error("ROW.GET", "people", "Mary", "Jane").startswith("NOTABLE ")
    assert people("TABLE.LIST") == []
    assert people("TABLE.CREATE", "people", PEOPLE) == b"OK"
    assert people("ROW.GET", "people", "Mary", "Jane") is None


# --- reading and writing


def test_put_and_get(people, server):
    mary = [b"first", b"Mary", b"last", b"Jane", b"address", b"Heaven", b"ssn", 9088, b"age", 7]
    assert people("ROW.GET", "people", "Mary", "Jane") == mary
    assert people("ROW.GET", "people", "Mary", "Jane", "FIELDS", 2, "AGE", "first") == [b"age", 7, b"first", b"Mary"]
    got, version = people("ROW.GET", "people", "Mary", "Jane", "FIELDS", 1, "ssn", "WITHVER")
    assert got == [b"ssn", 9088] and version > 1_600_000_000_000_000
    assert people("ROW.GET", "people", "Mary", "Jan") is None
    assert people("ROW.GET", "people", "Mary", "Jan", "WITHVER") is None
    assert people("ROW.MGET", "people", "KEYS", 3, "John", "Doe", "x", "y", "Mary", "Jane", "FIELDS", 1, "ssn") == [
        [b"ssn", 9678],
        None,
        [b"ssn", 9088],
    ]
    assert people("ROW.PUT", "people", *fields(last="Jane", first="Mary", ssn=1)) == 0
    assert people("ROW.GET", "people", "Mary", "Jane")[4:] == [b"address", None, b"ssn", 1, b"age", 7]
    assert people("ROW.MGET", "people", "KEYS", 2, "Mary", "Jane", "Mary", "Jane", "FIELDS", 1, "age") == [[b"age", 7]] * 2
    with server.connect() as other:
        other("HELLO", 3)
        assert other("ROW.GET", "people", "John", "Doe") == {
            b"first": b"John",
            b"last": b"Doe",
            b"address": b"Hell",
            b"ssn": 9678,
            b"age": 30,
        }
        assert other("ROW.GET", "people", "no", "one") is None


def test_values_of_every_type(client, server):
    assert client("TABLE.CREATE", "t", TYPES) == b"OK"
    values = {"id": -5, "i": 2**63 - 1, "r": 0.1, "t": "zwölf", "b": b"\0\xff\r\n", "o": "yes", "m": 5, "j": '{"a": [1]}'}
    assert client("ROW.PUT", "t", *fields(**values)) == 1
    assert client("ROW.PUT", "t", "FIELDS", 1, "id", 2, "NULLS", 2, "r", "t") == 1
    assert row(client("ROW.GET", "t", -5)) == {
        "id": -5,
        "i": 2**63 - 1,
        "r": b"0.10000000000000001",
        "t": "zwölf".encode(),
        "b": b"\0\xff\r\n",
        "o": 1,
        "m": 5,
        "j": b'{"a": [1]}',
    }
    with server.connect() as other:
        other("HELLO", 3)
        got = other("ROW.GET", "t", -5)
        assert (got[b"r"], got[b"o"]) == (0.1, True)
        assert set(other("ROW.GET", "t", 2, "FIELDS", 3, "i", "r", "o").values()) == {None}
    assert client("ROW.UPDATE", "t", "KEY", 2, *fields(m="2026-11-16T10:00:00Z", o="f", r="-1e300")) == 1
    assert client("ROW.GET", "t", 2, "FIELDS", 3, "m", "o", "r")[1::2] == [1794823200000, 0, b"-1.0000000000000001e+300"]


@pytest.mark.parametrize(
    "column, value",
    [("i", "x"), ("i", "1.5"), ("i", 2**63), ("r", "nan"), ("r", "inf"), ("r", ""), ("t", b"a\0b"), ("t", b"\xff"),
     ("t", b"\xed\xa0\x80"), ("o", "maybe"), ("m", "yesterday"), ("j", "{"), ("j", "")],
)  # fmt: skip
def test_values_that_a_column_cannot_hold(client, column, value):
    client("TABLE.CREATE", "t", TYPES)
    reply = client.error("ROW.PUT", "t", "FIELDS", 2, "id", 1, column, value)
    assert reply.startswith("BADTYPE ") and len(reply) < 400 and column in reply
    assert client("ROW.GET", "t", 1) is None
    client("ROW.PUT", "t", *fields(id=1))
    assert client.error("ROW.UPDATE", "t", "KEY", 1, "FIELDS", 1, column, value).startswith("BADTYPE ")


def test_errors_are_short_and_printable(client):
    client("TABLE.CREATE", "t", TYPES + ", UNIQUE (t), UNIQUE (b)")
    assert len(client.error("ROW.PUT", "t", *fields(id="x" * 100000))) < 500
    assert len(client.error("ROW.PUT", "t", *fields(**{"c" * 100000: 1}))) < 500
    client("ROW.PUT", "t", "FIELDS", 3, "id", 1, "t", "ü" * 100, "b", b"\1\0\xff\r\n")
    for column, value in (("t", "ü" * 100), ("b", b"\1\0\xff\r\n")):
        reply = client.error("ROW.PUT", "t", "FIELDS", 2, "id", 2, column, value)
        assert reply.startswith("DUPLICATE index ") and len(reply) < 200 and reply.isprintable()


SYNTAX = [
    ["ROW.PUT", "people", "FIELDS", "0", "first", "Mary"],
    ["ROW.PUT", "people", "FIELDS", "x", "first", "Mary"],
    ["ROW.PUT", "people", "FIELDS", "2", "first", "Mary", "last"],
    ["ROW.PUT", "people", "FIELDS", "1", "first", "Mary", "last"],
    ["ROW.PUT", "people", "NX", "XX", "FIELDS", "1", "first", "Mary"],
    ["ROW.PUT", "people", "NX", "IFVER", "1", "FIELDS", "1", "first", "Mary"],
    ["ROW.PUT", "people", "IFVER", "x", "FIELDS", "1", "first", "Mary"],
    ["ROW.PUT", "people", "EX", "1", "PX", "1", "FIELDS", "1", "first", "Mary"],
    ["ROW.PUT", "people", "EX", "0", "FIELDS", "1", "first", "Mary"],
    ["ROW.PUT", "people", "EX", str(2**63 - 1), "FIELDS", "1", "first", "Mary"],
    ["ROW.PUT", "people", "EX", "KEEPTTL", "FIELDS", "1", "first", "Mary"],
    ["ROW.PUT", "people", "FIELDS", "2", "first", "Mary", "FIRST", "Mary"],
    ["ROW.PUT", "people", "FIELDS", "1", "first", "Mary", "NULLS", "1", "first"],
    ["ROW.PUT", "people", "FIELDS", "1", "first", "Mary", "NULLS", "2", "ssn"],
    ["ROW.PUT", "people", "NX", "KEEPTTL", "XX"],
    ["ROW.PUT", "people", "INCR", "age", "1"],
    ["ROW.UPDATE", "people", "Mary", "Jane", "FIELDS", "1", "age", "1"],
    ["ROW.UPDATE", "people", "KEY", "Mary", "Jane", "Mary"],
    ["ROW.UPDATE", "people", "KEY", "Mary", "Jane", "IFVER", "1"],
    ["ROW.UPDATE", "people", "KEY", "Mary", "Jane", "INCR", "age"],
    ["ROW.UPDATE", "people", "KEY", "Mary", "Jane", "FIELDS", "1", "age", "1", "NX"],
    ["ROW.GET", "people", "Mary"],
    ["ROW.GET", "people", "Mary", "Jane", "Joe"],
    ["ROW.GET", "people", "Mary", "Jane", "FIELDS", "1"],
    ["ROW.GET", "people", "Mary", "Jane", "FIELDS", "1", "age", "FIELDS", "1", "age"],
    ["ROW.MGET", "people", "2", "Mary", "Jane"],
    ["ROW.MGET", "people", "KEYS", "2", "Mary", "Jane"],
    ["ROW.MGET", "people", "KEYS", "99999999999", "Mary", "Jane"],
    ["ROW.DEL", "people", "Mary"],
    ["ROW.DEL", "people", "Mary", "Jane", "IFVER"],
    ["ROW.DEL", "people", "Mary", "Jane", "IFVER", "x"],
    ["ROW.TTL", "people", "Mary"],
    ["ROW.EXPIRE", "people", "1", "Mary"],
    ["ROW.EXPIRE", "people", "1", "Mary", "Jane", "Joe"],
]


def test_arguments_that_make_no_sense(people):
    before = people("ROW.GET", "people", "Mary", "Jane", "WITHVER")
    for command in SYNTAX:
        assert people.error(*command).startswith("SYNTAX "), command
    assert people.error("ROW.EXPIRE", "people", "x", "Mary", "Jane").startswith("ERR value is not an integer")
    assert people.error("ROW.EXPIRE", "people", 2**62, "Mary", "Jane").startswith("ERR invalid expire time")
    assert people.error("ROW.GET", "people").startswith("ERR wrong number of arguments")
    for command in (
        ["ROW.PUT", "people", *fields(first="a", last="b", nothing="c")],
        ["ROW.PUT", "people", *fields(first="a", last="b"), "NULLS", 1, "nothing"],
        ["ROW.UPDATE", "people", "KEY", "Mary", "Jane", *fields(nothing="c")],
        ["ROW.UPDATE", "people", "KEY", "Mary", "Jane", "INCR", "nothing", 1],
        ["ROW.GET", "people", "Mary", "Jane", "FIELDS", 1, "nothing"],
        ["ROW.MGET", "people", "KEYS", 1, "Mary", "Jane", "FIELDS", 1, "nothing"],
    ):
        assert people.error(*command).startswith("NOCOLUMN "), command
    assert people("ROW.GET", "people", "Mary", "Jane", "WITHVER") == before


def test_constraints(client, server):
    client("TABLE.CREATE", "t", "k TEXT PRIMARY KEY, n INTEGER NOT NULL, a INTEGER CHECK (a > 0), b INTEGER, CHECK (a < b)")
    for told, text in (
        (fields(k="x"), "n"),
        ([*fields(k="x"), "NULLS", 1, "n"], "n"),
        (fields(k="x", n=1, a=0), "a > 0"),
        (fields(k="x", n=1, a=2, b=2), "a < b"),
        (fields(n=1), "k"),
    ):
        reply = client.error("ROW.PUT", "t", *told)
        assert reply.startswith("CONSTRAINT ") and text in reply
    assert client("ROW.PUT", "t", *fields(k="x", n=1, a=1)) == 1
    assert client.error("ROW.UPDATE", "t", "KEY", "x", "NULLS", 1, "n").startswith("CONSTRAINT ")
    assert client.error("ROW.UPDATE", "t", "KEY", "x", "NULLS", 1, "k").startswith("CONSTRAINT ")
    assert client.error("ROW.UPDATE", "t", "KEY", "x", "INCR", "a", -1).startswith("CONSTRAINT ")
    assert client("ROW.GET", "t", "x") == [b"k", b"x", b"n", 1, b"a", 1, b"b", None]


def test_the_longest_key(client, server):
    client("TABLE.CREATE", "t", "k TEXT PRIMARY KEY, v TEXT, w TEXT, INDEX by_v (v), UNIQUE INDEX by_w (w)")
    longest = "x" * 997  # and a byte before it, two behind it
    assert client.error("ROW.PUT", "t", *fields(k=longest)).startswith("TOOLONG ")  # an entry has the key as well
    client("TABLE.CREATE", "alone", "k TEXT PRIMARY KEY")
    assert client("ROW.PUT", "alone", *fields(k=longest)) == 1
    assert client("ROW.GET", "alone", longest) == [b"k", longest.encode()]
    assert client.error("ROW.PUT", "alone", *fields(k=longest + "x")).startswith("TOOLONG ")
    assert client.error("ROW.GET", "alone", longest + "x").startswith("TOOLONG ")
    assert client.error("ROW.PUT", "t", *fields(k="a", w="x" * 996)).startswith("TOOLONG ")
    assert client("ROW.PUT", "t", *fields(k="a", w="x" * 995)) == 1
    assert tables.check(server.store) == (2, 2)


# --- conditions and versions


def version(client, table, *key):
    return client("ROW.GET", table, *key, "WITHVER")[1]


def test_conditions(people):
    mary = fields(first="Mary", last="Jane", ssn=5)
    assert people("ROW.PUT", "people", "NX", *mary) is None
    assert people("ROW.PUT", "people", "XX", *fields(first="no", last="one")) is None
    assert people("ROW.GET", "people", "no", "one") is None
    assert people("ROW.PUT", "people", "xx", *mary) == 0
    seen = version(people, "people", "Mary", "Jane")
    assert people("ROW.PUT", "people", "IFVER", seen + 1, *mary) is None
    assert people("ROW.PUT", "people", "IFVER", seen, *mary) == 0
    assert people("ROW.PUT", "people", "IFVER", seen, *mary) is None
    assert people("ROW.UPDATE", "people", "KEY", "Mary", "Jane", "IFVER", seen, *fields(ssn=6)) is None
    seen = version(people, "people", "Mary", "Jane")
    assert people("ROW.UPDATE", "people", "KEY", "Mary", "Jane", "IFVER", seen, *fields(ssn=6)) == 1
    assert people("ROW.DEL", "people", "Mary", "Jane", "IFVER", seen) is None
    assert people("ROW.DEL", "people", "Mary", "Jane", "IFVER", version(people, "people", "Mary", "Jane")) == 1
    assert people("ROW.DEL", "people", "Mary", "Jane", "IFVER", seen) is None
    assert people("ROW.DEL", "people", "Mary", "Jane") == 0
    assert people("ROW.PUT", "people", "NX", *mary) == 1
    assert people("ROW.PUT", "people", "IFVER", 1, *fields(first="no", last="one")) is None
    assert people("ROW.UPDATE", "people", "KEY", "no", "one", *fields(ssn=6)) is None


def test_a_version_never_comes_again(client, clock):
    """Not even where the clock stands still, and a row goes and comes in one batch."""
    client("TABLE.CREATE", "t", "k TEXT PRIMARY KEY, v INTEGER")
    seen = []
    for _ in range(3):
        replies = client.pipeline(
            [
                ["ROW.PUT", "t", *fields(k="a", v=1)],
                ["ROW.GET", "t", "a", "WITHVER"],
                ["ROW.UPDATE", "t", "KEY", "a", "INCR", "v", 1],
                ["ROW.GET", "t", "a", "WITHVER"],
                ["ROW.EXPIRE", "t", 100, "a"],
                ["ROW.GET", "t", "a", "WITHVER"],
                ["ROW.DEL", "t", "a"],
            ]
        )
        seen += [reply.plain()[1] for reply in replies[1:6:2]]
    assert seen == sorted(set(seen))


# --- update


def test_update(people, server):
    assert people("ROW.UPDATE", "people", "KEY", "Mary", "Jane", *fields(address="Earth"), "INCR", "age", 3) == 1
    assert people("ROW.GET", "people", "Mary", "Jane")[4:] == [b"address", b"Earth", b"ssn", 9088, b"age", 10]
    assert people("ROW.UPDATE", "people", "KEY", "Mary", "Jane", "NULLS", 1, "address", "incr", "ssn", -9089) == 1
    assert people("ROW.GET", "people", "Mary", "Jane")[4:] == [b"address", None, b"ssn", -1, b"age", 10]
    assert tables.check(server.store) == (2, 4)


def test_increase(client):
    client("TABLE.CREATE", "t", TYPES)
    client("ROW.PUT", "t", *fields(id=1, i=2**63 - 2, r="1.5e308", t="x", m=1))
    assert client("ROW.UPDATE", "t", "KEY", 1, "INCR", "i", 1, "INCR", "m", -5) == 1
    assert client("ROW.GET", "t", 1, "FIELDS", 2, "i", "m") == [b"i", 2**63 - 1, b"m", -4]
    for told in (["INCR", "i", 1], ["INCR", "r", "1.5e308"], ["INCR", "t", 1], ["INCR", "i", "1.5"], ["INCR", "i", "x"]):
        assert client.error("ROW.UPDATE", "t", "KEY", 1, *told).startswith("BADTYPE "), told
    client("ROW.PUT", "t", *fields(id=2))
    assert client("ROW.UPDATE", "t", "KEY", 2, "INCR", "i", 5, "INCR", "r", "0.25") == 1
    assert client("ROW.GET", "t", 2, "FIELDS", 2, "i", "r") == [b"i", 5, b"r", b"0.25"]


def test_the_primary_key_may_change(people, server):
    before = version(people, "people", "Mary", "Jane")
    assert people("ROW.UPDATE", "people", "KEY", "Mary", "Jane", *fields(last="Poe")) == 1
    assert people("ROW.GET", "people", "Mary", "Jane") is None
    moved = people("ROW.GET", "people", "Mary", "Poe", "WITHVER")
    assert row(moved[0])["address"] == b"Heaven" and moved[1] > before
    reply = people.error("ROW.UPDATE", "people", "KEY", "Mary", "Poe", *fields(first="John", last="Doe"))
    assert reply == "DUPLICATE PRIMARY KEY: (John, Doe)"
    assert people("ROW.GET", "people", "Mary", "Poe", "WITHVER") == moved
    assert tables.check(server.store) == (2, 4)


# --- unique


def test_unique(people, server):
    reply = people.error("ROW.PUT", "people", *fields(first="a", last="b", address="Hell"))
    assert reply == "DUPLICATE index by_address: (Hell)"
    assert people("ROW.GET", "people", "a", "b") is None
    assert people.error("ROW.UPDATE", "people", "KEY", "Mary", "Jane", *fields(address="Hell")).startswith("DUPLICATE ")
    assert people("ROW.PUT", "people", *fields(first="John", last="Doe", address="Hell")) == 0
    for last in "bcd":  # NULLs are no duplicates of each other
        assert people("ROW.PUT", "people", *fields(first="a", last=last)) == 1
    assert tables.check(server.store) == (5, 10)
    assert people("ROW.UPDATE", "people", "KEY", "John", "Doe", "NULLS", 1, "address") == 1
    assert people("ROW.UPDATE", "people", "KEY", "Mary", "Jane", *fields(address="Hell")) == 1
    assert people("ROW.DEL", "people", "Mary", "Jane") == 1
    assert people("ROW.PUT", "people", *fields(first="a", last="b", address="Hell")) == 0
    assert tables.check(server.store) == (4, 8)


def test_a_unique_value_of_an_expired_row_is_free(people, server, clock):
    assert people("ROW.EXPIRE", "people", 1, "John", "Doe") == 1
    clock(999)
    assert people.error("ROW.PUT", "people", *fields(first="a", last="b", address="Hell")).startswith("DUPLICATE ")
    clock(1000)
    assert people("ROW.PUT", "people", *fields(first="a", last="b", address="Hell", ssn=3)) == 1
    assert tables.check(server.store) == (2, 4)  # the expired row went with all its entries
    assert people("ROW.PUT", "people", "NX", *fields(first="John", last="Doe", address="Earth")) == 1
    assert tables.check(server.store) == (3, 6)


def test_a_row_in_the_place_of_an_expired_one(people, server, clock):
    assert people("ROW.EXPIRE", "people", 1, "John", "Doe") == 1
    clock(1000)
    assert people("ROW.UPDATE", "people", "KEY", "John", "Doe", *fields(ssn=1)) is None
    assert people("ROW.DEL", "people", "John", "Doe") == 0
    assert people("ROW.EXPIRE", "people", 5, "John", "Doe") == 0
    assert people("ROW.PUT", "people", "XX", *fields(first="John", last="Doe")) is None
    assert people("ROW.UPDATE", "people", "KEY", "Mary", "Jane", *fields(first="John", last="Doe", address="Hell")) == 1
    assert people("ROW.GET", "people", "John", "Doe")[4:] == [b"address", b"Hell", b"ssn", 9088, b"age", 7]
    assert people("ROW.TTL", "people", "John", "Doe") == -1
    assert tables.check(server.store) == (1, 2)


# --- expiry


@pytest.mark.parametrize(
    "told, left",
    [(["EX", 10], 10_000), (["PX", 10], 10), (["EXAT", START // 1000 + 7], 7000), (["PXAT", START + 7], 7)],
)
def test_each_way_to_let_a_row_end(people, server, clock, told, left):
    assert people("ROW.PUT", "people", *told, *fields(first="Mary", last="Jane")) == 0
    assert people("ROW.PTTL", "people", "Mary", "Jane") == left
    assert people("ROW.TTL", "people", "Mary", "Jane") == (left + 500) // 1000
    assert people("ROW.UPDATE", "people", "KEY", "John", "Doe", *told) == 1
    assert people("ROW.UPDATE", "people", "KEY", "John", "Doe", *fields(ssn=1)) == 1
    clock(left - 1)
    assert people("ROW.PTTL", "people", "John", "Doe") == 1
    assert people("ROW.GET", "people", "Mary", "Jane") is not None
    clock(left)
    assert people("ROW.GET", "people", "Mary", "Jane") is None
    assert people("ROW.MGET", "people", "KEYS", 2, "Mary", "Jane", "John", "Doe") == [None, None]
    assert people("ROW.TTL", "people", "Mary", "Jane") == people("ROW.PTTL", "people", "John", "Doe") == -2


def test_what_becomes_of_an_expiry(people, clock):
    assert people("ROW.TTL", "people", "Mary", "Jane") == -1
    assert people("ROW.EXPIRE", "people", 100, "Mary", "Jane") == 1
    assert people("ROW.PUT", "people", "KEEPTTL", *fields(first="Mary", last="Jane", ssn=1)) == 0
    assert people("ROW.TTL", "people", "Mary", "Jane") == 100
    assert people("ROW.UPDATE", "people", "KEY", "Mary", "Jane", "PERSIST") == 1
    assert people("ROW.TTL", "people", "Mary", "Jane") == -1
    assert people("ROW.EXPIRE", "people", 100, "Mary", "Jane") == 1
    assert people("ROW.PUT", "people", *fields(first="Mary", last="Jane")) == 0
    assert people("ROW.TTL", "people", "Mary", "Jane") == -1
    assert people("ROW.EXPIRE", "people", 100, "no", "one") == 0
    assert people("ROW.EXPIRE", "people", 0, "Mary", "Jane") == 1
    assert people("ROW.GET", "people", "Mary", "Jane") is None


def test_a_moment_that_has_come(people, server, clock):
    assert people("ROW.PUT", "people", "PXAT", START, *fields(first="Mary", last="Jane")) == 0
    assert people("ROW.GET", "people", "Mary", "Jane") is None
    assert people("ROW.PUT", "people", "PXAT", 1, *fields(first="new", last="one", address="x")) == 1
    assert people.error("ROW.PUT", "people", "PXAT", 1, *fields(first="n", last="o", address="Hell")).startswith("DUPLICATE")
    assert tables.check(server.store) == (1, 2)


def info(client, name):
    return int(re.search(rf"{name}:(\d+)".encode(), client("INFO", "stats"))[1])


def test_the_sweeper_removes_rows_with_their_entries(people, server, clock):
    people("TABLE.CREATE", "other", "k INTEGER PRIMARY KEY, v TEXT, UNIQUE (v)")
    commands = [["ROW.PUT", "other", "PX", 10 + i % 7, *fields(k=i, v=i)] for i in range(700)]
    commands += [["ROW.PUT", "other", *fields(k=i, v=i)] for i in range(700, 750)]
    assert {reply.plain() for reply in people.pipeline(commands)} == {1}
    people("ROW.EXPIRE", "people", 1, "Mary", "Jane")
    seen = info(people, "expired_table_rows")
    clock(1000)
    people("CONFIG", "SET", "sweep", "yes")
    wait.until(lambda: info(people, "expired_table_rows") - seen >= 701, "expired rows are removed")
    people("CONFIG", "SET", "sweep", "no")
    assert info(people, "expired_table_rows") - seen == 701
    wait.until(lambda: tables.check(server.store) == (51, 52), "the tables follow")


# --- transactions and scripts


def test_in_a_transaction(people, server):
    people("MULTI")
    people("ROW.PUT", "people", *fields(first="a", last="b", address="x"))
    people("ROW.PUT", "people", *fields(first="c", last="d", address="x"))
    people("ROW.DEL", "people", "Mary", "Jane")
    people("SET", "k", "v")
    people("ROW.GET", "people", "a", "b", "FIELDS", 1, "address")
    replies = people("EXEC")
    assert replies[1] == ServerError(b"DUPLICATE index by_address: (x)")
    assert replies[:1] + replies[2:] == [1, 1, b"OK", [b"address", b"x"]]
    assert tables.check(server.store) == (2, 4)


def test_a_table_within_one_transaction(client, server):
    client("MULTI")
    for command in (
        ["TABLE.CREATE", "t", "k INTEGER PRIMARY KEY, v TEXT, UNIQUE (v)"],
        ["ROW.PUT", "t", *fields(k=1, v="x")],
        ["RENAME", "t", "u"],
        ["ROW.GET", "u", 1],
        ["TABLE.CREATE", "t", "k TEXT PRIMARY KEY"],
        ["ROW.PUT", "t", *fields(k="y")],
        ["ROW.GET", "t", "y"],
        ["TABLE.DROP", "u"],
    ):
        client(*command)
    replies = client("EXEC")
    assert replies[3] == [b"k", 1, b"v", b"x"] and replies[6] == [b"k", b"y"]
    assert client("TABLE.LIST") == [b"t"] and tables.check(server.store) == (1, 0)


def test_watching_a_table(people, server):
    """Rows do not change the table's key; its schema, expiry and name do."""
    with server.connect() as other:
        people("WATCH", "people")
        other("ROW.DEL", "people", "Mary", "Jane")
        people("MULTI")
        people("PING")
        assert people("EXEC") == [b"PONG"]
        people("WATCH", "people")
        other("EXPIRE", "people", 100)
        people("MULTI")
        people("PING")
        assert people("EXEC") is None


def test_in_scripts(people, server):
    script = """
        redis.call('ROW.PUT', KEYS[1], 'FIELDS', 3, 'first', 'a', 'last', 'b', 'address', ARGV[1])
        local bad = redis.pcall('ROW.PUT', KEYS[1], 'FIELDS', 3, 'first', 'c', 'last', 'd', 'address', ARGV[1])
        local row = redis.call('ROW.GET', KEYS[1], 'a', 'b', 'FIELDS', 1, 'address')
        return {bad.err, row[2], redis.call('ROW.DEL', KEYS[1], 'Mary', 'Jane')}
    """
    assert people("EVAL", script, 1, "people", "here") == [b"DUPLICATE index by_address: (here)", b"here", 1]
    fails = "#!lua flags=rollback\nredis.call('ROW.DEL', KEYS[1], 'a', 'b') redis.call('ROW.GET', KEYS[1])"
    people.error("EVAL", fails, 1, "people")
    assert people("ROW.GET", "people", "a", "b") is not None
    assert tables.check(server.store) == (2, 4)


def test_many_rows_in_one_batch(client, server):
    client("TABLE.CREATE", "t", "k INTEGER PRIMARY KEY, v INTEGER, w TEXT, INDEX (v), UNIQUE (w)".replace("INDEX (", "INDEX i ("))
    commands = [["ROW.PUT", "t", *fields(k=i % 200, v=i, w=f"w{i % 300}")] for i in range(1000)]
    replies = [reply.plain() for reply in client.pipeline(commands)]
    assert replies.count(1) + replies.count(0) + sum(isinstance(r, ServerError) for r in replies) == 1000
    assert replies.count(1) == tables.check(server.store)[0]
    assert [r[3] for r in client("ROW.MGET", "t", "KEYS", 5, 1, 2, 3, 4, 5) if r] != []


@pytest.mark.sqlite
def test_a_commit_that_fails_leaves_nothing(fleet):
    """Another process holds the database: what was done in memory is undone, row and entries."""
    server = fleet.larder("--sweep", "no", "--busy-timeout", "50ms", "--journal-max", "0")
    with server.connect() as c, contextlib.closing(sqlite3.connect(server.store.path, isolation_level=None)) as locker:
        before = one_row(c)
        locker.execute("BEGIN IMMEDIATE")
        refused_and_undone(c, before, ["TRYAGAIN"], lambda: locker.execute("ROLLBACK"))
        assert tables.check(server.store) == (3, 3)


@pytest.mark.sqlite
def test_a_group_that_fails_leaves_nothing(fleet, tmp_path):
    """The same with a log that cannot be synced: not even the lock of another process stops what is in it."""
    files, flag = tmp_path / "files", tmp_path / "flag"
    files.mkdir()
    env = power.recorded(files, CRASH_FAIL_SYNC=flag)
    server = fleet.new(servers.Larder, "--sweep", "no", data=store.SqliteStore(files), env=env).start()
    with server.connect() as c:
        before = one_row(c)
        flag.write_text(power.REDO)
        refused_and_undone(c, before, ["UNCERTAIN", "MISCONF", "IOERR"], flag.unlink)
        assert c("SAVE") == b"OK"
        assert tables.check(server.store) == (3, 3)


def one_row(c):
    c("TABLE.CREATE", "t", "k INTEGER PRIMARY KEY, v TEXT UNIQUE")
    c("ROW.PUT", "t", *fields(k=1, v="a"))
    return c("ROW.GET", "t", 1, "WITHVER")


def refused_and_undone(c, before, words, mend):
    for command in (["ROW.UPDATE", "t", "KEY", 1, *fields(v="b")], ["ROW.PUT", "t", *fields(k=2, v="c")]):
        assert c.error(*command).split()[0] in words
    mend()
    assert c("ROW.GET", "t", 1, "WITHVER") == before and c("ROW.GET", "t", 2) is None
    third = ["ROW.PUT", "t", *fields(k=3, v="b")]
    wait.until(lambda: not (reply := c.call(*third)).is_error and reply.plain() == 1, "writes work again")
    assert c("ROW.PUT", "t", *fields(k=4, v="c")) == 1


@pytest.mark.sqlite
@pytest.mark.parametrize("journal", ["0", "64kb"])
def test_nobody_is_told_of_a_row_that_is_not_durable(fleet, journal):
    """The table's key row does not change with its rows, so the ticket of a reply is that of the table's last row. Without a
    journal, or when it is too large for that, a row is durable in the tables alone, whose lock another process has."""
    server = fleet.larder("--sweep", "no", "--journal-max", journal, "--busy-timeout", "30s")
    large = "x" * 40_000
    with server.connect() as writer, server.connect() as reader, server.connect() as other:
        for table in "tu":
            writer("TABLE.CREATE", table, "k INTEGER PRIMARY KEY, v TEXT, w TEXT, INDEX by_v (v)")
            writer("ROW.PUT", table, *fields(k=1, v="old"))
        writer("ROW.GET", "t", 1)  # it is in the cache
        assert writer("SAVE") == b"OK"
        with contextlib.closing(sqlite3.connect(server.store.path, timeout=30)) as locker:
            locker.execute("BEGIN IMMEDIATE")
            writer.send(encode(["ROW.PUT", "t", *fields(k=1, v="new", w=large)]))
            wait.until(lambda: b"cmdstat_row.put:calls=3" in other("INFO", "commandstats"), "it has run")
            for command in (["ROW.GET", "t", 1, "FIELDS", 2, "k", "v"], ["ROW.GET", "t", 2], ["ROW.QUERY", "t", "INDEX", "by_v"]):
                reader.send(encode(command))
            assert other("ROW.GET", "u", 1, "FIELDS", 2, "k", "v") == [b"k", 1, b"v", b"old"]
            assert writer.read_available(0.2) == reader.read_available(0.2) == (b"", False)
            locker.execute("ROLLBACK")
        assert writer.read().plain() == 0
        assert reader.read().plain() == [b"k", 1, b"v", b"new"]
        assert reader.read().plain() is None
        assert reader.read().plain()[0] == [[b"k", 1, b"v", b"new", b"w", large.encode()]]


@pytest.mark.sqlite
@pytest.mark.parametrize("options", [[], ["--journal-max", "0"], ["--apply-lag", "20ms", "--journal-max", "16kb"]])
def test_a_killed_server_leaves_what_it_acknowledged(fleet, options):
    server = fleet.larder("--sweep-interval", "5ms", *options)
    with server.connect() as c:
        c("TABLE.CREATE", "t", "k INTEGER PRIMARY KEY, v TEXT, n INTEGER, UNIQUE INDEX by_v (v), INDEX by_n (n)")
    acknowledged = {}
    for turn in range(3):
        with server.connect() as c:
            for i in range(0, 300, 10):
                commands = []
                for k in range(1000 * turn + i, 1000 * turn + i + 10):
                    commands.append(["ROW.PUT", "t", *fields(k=k, v=k, n=i)])
                    commands.append(["ROW.UPDATE", "t", "KEY", k, *fields(v=-k - 1, n=k)])
                    commands.append(["ROW.PUT", "t", "PX", 1, *fields(k=-k - 1, v=f"short{k}")])
                assert not any(reply.is_error for reply in c.pipeline(commands))
                acknowledged |= {k: -k - 1 for k in range(1000 * turn + i, 1000 * turn + i + 10)}
            c.send(b"".join(encode(["ROW.DEL", "t", k]) for k in range(1000 * turn)))
        server.kill()
        server.start()
        tables.check(server.store)
        with server.connect() as c:
            here = range(1000 * turn, 1000 * turn + 300)
            got = c("ROW.MGET", "t", "KEYS", len(here), *here, "FIELDS", 1, "v")
            assert got == [[b"v", str(acknowledged[k]).encode()] for k in here]
    server.stop()
    server.check()


class Model:
    """What a table (k INTEGER PRIMARY KEY, v INTEGER UNIQUE, n INTEGER DEFAULT 0) must answer."""

    def __init__(self):
        self.now = START
        self.rows = {}  # k: [v, n, expire_at]

    def live(self, k):
        row = self.rows.get(k)
        return row if row and (row[2] == 0 or row[2] > self.now) else None

    def taken(self, v, but):
        return v is not None and any(k != but and self.live(k) and row[0] == v for k, row in self.rows.items())

    def put(self, k, v, condition, left):
        there = self.live(k)
        if condition == "NX" and there or condition == "XX" and not there:
            return None
        if self.taken(v, k):
            return ServerError(b"DUPLICATE index v_unique: (%d)" % v)
        self.rows[k] = [v, 0, self.now + left if left else 0]
        return 0 if there else 1

    def update(self, k, to, v, by):
        row = self.live(k)
        if not row:
            return None
        if to != k and self.live(to):
            return ServerError(b"DUPLICATE PRIMARY KEY: (%d)" % to)
        if self.taken(v, k):
            return ServerError(b"DUPLICATE index v_unique: (%d)" % v)
        del self.rows[k]
        self.rows[to] = [v, row[1] + by, row[2]]
        return 1

    def delete(self, k):
        there = self.live(k) is not None
        self.rows.pop(k, None)
        return int(there)

    def get(self, k):
        row = self.live(k)
        return [b"k", k, b"v", row[0], b"n", row[1]] if row else None

    def step(self, rng):
        """A random command, and what it answers."""
        k, v = rng.randrange(12), rng.choice((None, *range(10)))
        value = ["NULLS", 1, "v"] if v is None else ["FIELDS", 1, "v", v]
        kind = rng.randrange(8)
        if kind < 3:
            condition, left = rng.choice(("", "", "NX", "XX")), rng.choice((0, 0, 1, 5))
            options = [*filter(None, [condition]), *(["PX", left] if left else [])]
            return ["ROW.PUT", "t", *options, "FIELDS", 1, "k", k, *value], self.put(k, v, condition, left)
        if kind < 5:
            to, by = rng.choice((k, k, rng.randrange(12))), rng.randrange(5)
            command = ["ROW.UPDATE", "t", "KEY", k, *value, "FIELDS", 1, "k", to, "INCR", "n", by]
            return command, self.update(k, to, v, by)
        if kind == 5:
            return ["ROW.DEL", "t", k], self.delete(k)
        if kind == 6:
            self.now += rng.randrange(3)
            return ["DEBUG", "CLOCK", self.now], b"OK"
        return ["ROW.GET", "t", k], self.get(k)


@pytest.mark.parametrize("seed", range(2))
def test_random_commands(client, server, clock, seed):
    rng, model = random.Random(seed), Model()
    assert client("TABLE.CREATE", "t", "k INTEGER PRIMARY KEY, v INTEGER UNIQUE, n INTEGER DEFAULT 0, INDEX by_n (n, v)") == b"OK"
    for turn in range(40):
        steps = []
        for _ in range(rng.choice((1, 5, 60))):
            steps.append(model.step(rng))
            if steps[-1][0][0] == "DEBUG":  # a batch has one time
                break
        replies = client.pipeline([command for command, _ in steps])
        for reply, (command, expected) in zip(replies, steps):
            assert reply.plain() == expected, (turn, command)
        if turn % 8 == 0:
            tables.check(server.store)
    assert tables.check(server.store)[0] >= len([k for k in model.rows if model.live(k)])
