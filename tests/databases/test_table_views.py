"""The views of TABLE.INFO: PostgreSQL and MariaDB show the rows of a table with their columns."""

import re

import pytest

from harness import wait

NAME = {"postgres": b"postgresql", "mariadb": b"mariadb"}
COLUMNS = "id INTEGER PRIMARY KEY, t TEXT, r REAL, b BLOB, o BOOLEAN, at TIMESTAMP, j JSON"
ADDED = [
    "n INTEGER DEFAULT -7",
    "words TEXT DEFAULT 'it''s \\ \"x\" é'",
    "bytes BLOB DEFAULT x'00ff'",
    "yes BOOLEAN DEFAULT TRUE",
    "moment TIMESTAMP DEFAULT '2000-02-29T12:00:00.5Z'",
    "half REAL DEFAULT 0.5",
    "doc JSON DEFAULT '{\"a\": [1]}'",
    "none TEXT",
]
SELECT = {
    "postgres": "id, encode(convert_to(t, 'UTF8'), 'hex'), r, encode(b, 'hex'), o::int, at AT TIME ZONE 'UTC', j::text, n,"
    " encode(convert_to(words, 'UTF8'), 'hex'), encode(bytes, 'hex'), yes::int,"
    " moment AT TIME ZONE 'UTC', half, doc::text, none",
    "mariadb": "id, lower(hex(t)), r, lower(hex(b)), o, at, j, n, lower(hex(words)), lower(hex(bytes)), yes, moment, half, doc, none",
}
MISSING = ["-7", 'it\'s \\ "x" é'.encode().hex(), "00ff", "1", "2000-02-29 12:00:00.5", "0.5", '{"a": [1]}', None]


def view_of(c, kind, table="t"):
    info = dict(zip(*[iter(c("TABLE.INFO", table))] * 2))
    return dict(zip(*[iter(info[b"view"])] * 2))[NAME[kind]].decode()


def shown(data, kind):
    """What the view shows; a moment without the zeros behind its last digit."""
    rows = data.query(f"SELECT {SELECT[kind]} FROM t ORDER BY id")
    return [[v.rstrip("0").rstrip(".") if v and re.fullmatch(r"[-\d]+ [:\d]+\.\d+", v) else v for v in row] for row in rows]


@pytest.fixture
def c(server):
    with server.connect() as connection:
        yield connection


def test_a_view_shows_every_type(c, data, kind):
    c("TABLE.CREATE", "t", COLUMNS)
    row = ["t", 'a\n"\\é😀', "r", 1.5e300, "b", b"\xff\x00", "o", "true", "at", "2026-11-16T10:00:00.123Z", "j", '{"a" : "]"}']
    assert c("ROW.PUT", "t", "FIELDS", 7, "id", -(2**63), *row) == 1
    assert c("ROW.PUT", "t", "FIELDS", 1, "id", 2**63 - 1) == 1
    assert c("ROW.PUT", "t", "FIELDS", 5, "id", 5, "t", "", "o", 0, "at", "1969-12-31T23:59:59.999Z", "j", '"s"') == 1
    for column in ADDED:
        assert c("TABLE.ALTER", "t", f"ADD {column}") == b"OK"
    given = ["n", 0, "words", "", "bytes", "", "yes", "false", "moment", 0, "half", -0.25, "doc", "[]", "none", "some"]
    assert c("ROW.PUT", "t", "FIELDS", 9, "id", 7, *given) == 1
    data.query(view_of(c, kind))
    low, five, seven, high = shown(data, kind)
    assert float(low.pop(2)) == 1.5e300
    assert low[:2] == [str(-(2**63)), row[1].encode().hex()] and low[2:5] == ["ff00", "1", "2026-11-16 10:00:00.123"]
    assert low[5].replace(" ", "") == '{"a":"]"}' and low[6:] == MISSING
    assert five[:6] == ["5", "", None, None, "0", "1969-12-31 23:59:59.999"] and five[6] == '"s"'
    assert seven[7:] == ["0", "", "", "0", "1970-01-01 00:00:00", "-0.25", "[]", "some"] and seven[1:7] == [None] * 6
    assert high[0] == str(2**63 - 1) and high[1:7] == [None] * 6 and high[7:] == MISSING


def test_a_view_shows_what_lives(c, data, kind):
    c("TABLE.CREATE", "t", "id INTEGER PRIMARY KEY")
    c("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    c("ROW.PUT", "t", "PX", 1, "FIELDS", 1, "id", 1)
    c("ROW.PUT", "t", "EX", 1000, "FIELDS", 1, "id", 2)
    data.query(view_of(c, kind))
    wait.until(lambda: data.query("SELECT id FROM t") == [["2"]], "the row has expired")
    c("DEL", "t")
    assert data.query("SELECT id FROM t") == []
