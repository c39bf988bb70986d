"""SQL over tables and over keys: what SELECT answers is compared with SQLite's own tables that hold the same rows; INSERT,
UPDATE and DELETE, alone, in MULTI and in scripts; everything unsafe, and what is too much."""

import random
import re
import sqlite3

import pytest

from harness.resp import ServerError

START = 4_100_000_000_000  # milliseconds: later than real time

TABLES = {
    "people": (
        "first TEXT, last TEXT, age INTEGER, city TEXT, PRIMARY KEY (first, last)",
        ", INDEX by_age (age, last), INDEX by_city (city DESC, age)",
    ),
    "orders": (
        "id INTEGER PRIMARY KEY, first TEXT, amount REAL, paid BOOLEAN, note TEXT, placed TIMESTAMP",
        ", INDEX by_first (first), INDEX by_amount (amount DESC), INDEX by_paid (paid, placed)",
    ),
    "blobs": ("k BLOB PRIMARY KEY, n INTEGER", ", UNIQUE INDEX by_n (n)"),
}
FIRSTS = ["Ann", "Bob", "Cid", "Dora", "Éva", "ann", "5", "05"]
CITIES = ["Rome", "rome", "Oslo", "Ålesund", None, "", "5"]


def rows_of(table):
    r = random.Random(table)
    if table == "people":
        return [(f, f"L{n:02}", r.choice([None, 5, *range(18, 30)]), r.choice(CITIES)) for f in FIRSTS for n in range(8)]
    if table == "orders":
        return [
            (i, r.choice(FIRSTS), r.choice([0.0, -1.5, 2.25, 1e300, 7.0]), i % 3 == 0, r.choice([None, "a%b", "x_y"]), i * 1000)
            for i in range(-40, 80)
        ]
    return [(bytes([i, 255 - i]), None if i % 5 == 0 else i) for i in range(0, 250, 7)]


@pytest.fixture
def client(subjects):
    """A connection with RESP3 to an empty server without a sweeper, which tests share."""
    with subjects("--sweep", "no", "--databases", "16").connect() as connection:
        connection("FLUSHALL")
        connection("HELLO", 3)
        yield connection
        connection("DEBUG", "CLOCK", "REAL")


@pytest.fixture(scope="module")
def oracle():
    """SQLite with the same tables."""
    db = sqlite3.connect(":memory:")
    for name, (columns, _) in TABLES.items():
        db.execute(f"CREATE TABLE {name} ({columns}) WITHOUT ROWID")
        rows = rows_of(name)
        db.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(rows[0]))})", rows)
    yield db
    db.close()


def literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value) if not isinstance(value, bool) else str(int(value))


@pytest.fixture
def filled(client):
    """The server with TABLES."""
    for name, (columns, indexes) in TABLES.items():
        client("TABLE.CREATE", name, columns + indexes)
        rows = rows_of(name)
        values = ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in rows)
        assert sql(client, f"INSERT INTO {name} VALUES {values}")["changes"] == len(rows)
    return client


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def sql(client, statement, *args):
    """The reply with names as str."""
    reply = {name.decode(): value for name, value in client("SQL", statement, *args).items()}
    reply["columns"] = [name.decode() for name in reply["columns"]]
    return reply


def rows(client, statement, *args):
    return [[text(v) for v in row] for row in sql(client, statement, *args)["rows"]]


def plan(client, statement):
    return " / ".join(row[3] for row in rows(client, "EXPLAIN QUERY PLAN " + statement))


def comparable(table):
    """Rows with BLOBs and TEXT as bytes, and booleans as numbers."""
    return [
        [v.encode() if isinstance(v, str) else int(v) if isinstance(v, bool) else v for v in row] for row in table
    ]


# ---- SELECT ----

SELECTS = [
    "SELECT * FROM people ORDER BY first, last",
    "SELECT * FROM people ORDER BY age DESC, last DESC, first DESC",
    "SELECT * FROM people ORDER BY age, last, first LIMIT 7 OFFSET 3",
    "SELECT * FROM people WHERE age = 20 ORDER BY last, first",
    "SELECT * FROM people WHERE age IS NULL ORDER BY last, first",
    "SELECT * FROM people WHERE age > 20 AND age <= 24 ORDER BY age DESC, first, last",
    "SELECT * FROM people WHERE age > 20.5 ORDER BY first, last",
    "SELECT * FROM people WHERE age < '21' ORDER BY first, last",
    "SELECT * FROM people WHERE age > 'x' ORDER BY first, last",
    "SELECT * FROM people WHERE age < 'x' ORDER BY first, last",
    "SELECT * FROM people WHERE age = 1e300 OR age < -1e300 ORDER BY 1, 2",
    "SELECT * FROM people WHERE age IN (18, 19, 20.0, '21', NULL, 'x') ORDER BY age, last, first",
    "SELECT * FROM people WHERE first IN ('Ann', 'Bob') AND last > 'L03' ORDER BY first DESC, last",
    "SELECT * FROM people WHERE first = 'Ann' AND last BETWEEN 'L02' AND 'L05' ORDER BY last DESC",
    "SELECT * FROM people WHERE first = 5 ORDER BY last",
    "SELECT * FROM people WHERE first = x'416e6e'",
    "SELECT * FROM people WHERE first > x'00'",
    "SELECT * FROM people WHERE first < x'00' ORDER BY first, last",
    "SELECT * FROM people WHERE first = 'ann' COLLATE NOCASE ORDER BY first, last",
    "SELECT * FROM people WHERE first > 'ann' COLLATE NOCASE ORDER BY first, last",
    "SELECT * FROM people ORDER BY first COLLATE NOCASE, last, first",
    "SELECT * FROM people WHERE first LIKE 'a%' ORDER BY first, last",
    "SELECT * FROM people WHERE first LIKE '_OB' ORDER BY last",
    "SELECT * FROM people WHERE first GLOB 'A*' ORDER BY last",
    "SELECT * FROM people WHERE city GLOB '[Rr]om[^a]' ORDER BY city, first, last",
    "SELECT * FROM people WHERE city GLOB 'Å*' ORDER BY first, last",
    "SELECT * FROM people WHERE city > 'Oslo' AND age > 20 ORDER BY city DESC, age DESC, first, last",
    "SELECT * FROM people WHERE city IS NULL AND age = 5 ORDER BY first, last",
    "SELECT * FROM people WHERE city = '' ORDER BY age, first, last",
    "SELECT * FROM people WHERE city IS NOT NULL ORDER BY city NULLS LAST, first, last",
    "SELECT * FROM people ORDER BY city NULLS LAST, first, last",
    "SELECT * FROM people WHERE (first, last) > ('Bob', 'L04') ORDER BY first, last",
    "SELECT DISTINCT city FROM people ORDER BY 1",
    "SELECT DISTINCT age, city FROM people ORDER BY age, city",
    "SELECT count(*), count(age), sum(age), avg(age), min(age), max(city), total(age) FROM people",
    "SELECT city, count(*), count(DISTINCT age) FROM people GROUP BY city HAVING count(*) > 2 ORDER BY city",
    "SELECT age, min(last), max(first) FROM people GROUP BY age ORDER BY age DESC",
    "SELECT max(age) FROM people",
    "SELECT min(amount), max(amount) FROM orders",
    "SELECT * FROM orders WHERE amount = 7 ORDER BY id",
    "SELECT * FROM orders WHERE amount >= -1.5 AND amount < 7 ORDER BY amount, id",
    "SELECT * FROM orders WHERE amount > 9223372036854775807 ORDER BY id",
    "SELECT * FROM orders WHERE paid AND placed > 1000 ORDER BY placed DESC",
    "SELECT * FROM orders WHERE paid = 0 ORDER BY id LIMIT 5",
    "SELECT * FROM orders WHERE paid > 0.5 ORDER BY id",
    "SELECT * FROM orders WHERE paid = 2 OR paid = 'x'",
    "SELECT * FROM orders WHERE note LIKE 'a\\%b' ESCAPE '\\' ORDER BY id",
    "SELECT * FROM orders WHERE id BETWEEN -3 AND 3 ORDER BY id DESC",
    "SELECT * FROM orders WHERE id > 75 OR id < -38 ORDER BY id",
    "SELECT * FROM orders WHERE id = '7' OR id = 8.0 OR id = 'x' ORDER BY id",
    "SELECT p.first, p.last, o.id FROM people p JOIN orders o ON o.first = p.first WHERE p.last = 'L01' ORDER BY 1, 2, 3",
    "SELECT p.first, o.id FROM people p LEFT JOIN orders o ON o.first = p.first AND o.amount > 100 ORDER BY 1, 2, p.last",
    "SELECT count(*) FROM people p JOIN people q ON p.age = q.age AND p.first < q.first",
    "SELECT p.first, p.age FROM people p JOIN orders o ON p.city = o.id ORDER BY 1, 2",
    "SELECT p.first, p.last FROM people p JOIN orders o ON p.first = o.id ORDER BY p.first, p.last, o.note LIMIT 20",
    "SELECT first, (SELECT count(*) FROM orders o WHERE o.first = p.first) AS n FROM people p GROUP BY first ORDER BY n, 1",
    "SELECT * FROM people WHERE first IN (SELECT first FROM orders WHERE amount > 5) AND age > 25 ORDER BY first, last",
    "SELECT * FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.first = p.first AND o.id = 1) ORDER BY last",
    "SELECT id, amount, sum(amount) OVER (PARTITION BY first ORDER BY id) FROM orders WHERE amount < 100 ORDER BY id",
    "SELECT first, last, rank() OVER (ORDER BY age) AS r, lag(age) OVER (ORDER BY first, last) FROM people ORDER BY r, 1, 2",
    "WITH old AS (SELECT * FROM people WHERE age > 25) SELECT first, count(*) FROM old GROUP BY first ORDER BY 1",
    "WITH c AS (SELECT first FROM people) SELECT count(*) FROM c",
    "SELECT first FROM people UNION SELECT first FROM orders ORDER BY 1",
    "SELECT first FROM people EXCEPT SELECT 'Ann' ORDER BY 1",
    "SELECT first FROM people INTERSECT SELECT first FROM orders ORDER BY 1",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT hex(k), n FROM blobs WHERE k > x'40' AND k <= x'a0ff' ORDER BY k",
    "SELECT hex(k) FROM blobs WHERE k = x'07f8'",
    "SELECT hex(k) FROM blobs WHERE k > 'text' ORDER BY k LIMIT 3",
    "SELECT n FROM blobs WHERE n IS NULL",
    "SELECT hex(k), n FROM blobs ORDER BY n DESC LIMIT 5",
    "SELECT n FROM blobs WHERE n IN (7, 14, 0) ORDER BY n",
    "SELECT b.n, o.id FROM blobs b JOIN orders o ON o.id = b.n ORDER BY 1",
    "SELECT instr('añb', 'b'), instr('abc', ''), instr(x'0102', x'02'), replace('aXbX', 'X', 'yy'), replace('a', '', 'b')",
    "SELECT trim('  a '), ltrim('xxa', 'x'), rtrim('aéé', 'é'), trim('xyzzyx', 'xyz'), 'É' LIKE 'é', 'a' LIKE 'A'",
    "SELECT '%' LIKE 'x%' ESCAPE 'x', 'abcabc' LIKE '%b%c', 'ab' GLOB '*[!b]', 'a-b' GLOB 'a[-]b', ']' GLOB '[]]', '' LIKE ''",
    "SELECT typeof(paid), typeof(amount), typeof(note), typeof(placed), CAST(id AS TEXT) FROM orders WHERE id = 0",
    "SELECT CASE WHEN age > 20 THEN 'old' ELSE 'young' END AS c, count(*) FROM people GROUP BY c ORDER BY c",
    "SELECT date(placed / 1000, 'unixepoch') FROM orders WHERE id = 5",
    "SELECT json_extract('{\"a\":[1,2]}', '$.a[1]'), '{\"a\":3}' ->> 'a', json_group_array(n) FROM blobs WHERE n < 30",
    "SELECT 1 WHERE 0",
    "SELECT 9223372036854775807, -9223372036854775808, 1.5, 1e300, NULL, 'x', x'00ff'",
]


def test_answers_are_sqlites(filled, oracle):
    for statement in SELECTS:
        cursor = oracle.execute(statement)
        reply = sql(filled, statement)
        assert reply["columns"] == [d[0] for d in cursor.description], statement
        assert comparable(reply["rows"]) == comparable(cursor.fetchall()), statement
        assert reply["changes"] == 0


def test_random_conditions_answer_as_sqlite_does(filled, oracle):
    r = random.Random(14)
    constants = ["20", "'20'", "20.5", "'Ann'", "'L04'", "NULL", "x'41'", "0", "1", "-3", "'rome'", "''", "1e300", "'5'", "5"]
    patterns = ["'A*'", "'a%'", "'%0_'", "'?*'", "5"]
    columns = {"people": ["first", "last", "age", "city"], "orders": ["id", "first", "amount", "paid", "note", "placed"]}
    for _ in range(250):
        table = r.choice(list(columns))
        terms = []
        for _ in range(r.randint(1, 3)):
            column, how = r.choice(columns[table]), r.randrange(6)
            if how < 3:
                terms.append(f"{column} {r.choice(['=', '<', '>', '<=', '>=', '<>', 'IS', 'IS NOT'])} {r.choice(constants)}")
            elif how == 3:
                terms.append(f"{column} IN ({', '.join(r.sample(constants, 3))})")
            elif how == 4:
                terms.append(f"{column} BETWEEN {r.choice(constants)} AND {r.choice(constants)}")
            else:
                terms.append(f"{column} {r.choice(['LIKE', 'GLOB'])} {r.choice(patterns)}")
        order = ", ".join(f"{c} {r.choice(['', 'DESC'])}" for c in r.sample(columns[table], len(columns[table])))
        statement = f"SELECT * FROM {table} WHERE {r.choice([' AND ', ' OR ']).join(terms)} ORDER BY {order}"
        if r.random() < 0.3:
            statement += f" LIMIT {r.randint(0, 9)}"
        assert comparable(sql(filled, statement)["rows"]) == comparable(oracle.execute(statement).fetchall()), statement


def test_parameters(filled):
    assert rows(filled, "SELECT first FROM people WHERE age = ? AND last = ?", 5, "L00") == rows(
        filled, "SELECT first FROM people WHERE age = 5 AND last = 'L00'"
    )
    assert rows(filled, "SELECT ?2, ?1, :name", "a", "b", "c") == [["b", "a", "c"]]
    assert rows(filled, "SELECT id FROM orders WHERE id > ? ORDER BY id LIMIT ?", 70, 2) == [[71], [72]]
    assert rows(filled, "SELECT typeof(?), hex(?)", b"\xff\x00", b"\xff\x00") == [["blob", "FF00"]]
    assert "more parameters" in filled.error("SQL", "SELECT ?")
    assert "1 parameters, and 2 arguments" in filled.error("SQL", "SELECT ?", "1", "2")
    assert filled.error("SQL", "SELECT 1", *range(32767)) == "SQL there are more than 32766 arguments"
    assert filled.error("SQL", "SELECT " + ",".join("?" * 32767)).startswith("SQL ")


def test_several_statements_are_one_step(filled):
    assert rows(filled, "SELECT 1; SELECT 2, 3;  -- the end") == [[2, 3]]
    count = rows(filled, "SELECT count(*) FROM blobs")
    error = filled.error("SQL", "DELETE FROM blobs; INSERT INTO orders (id) VALUES (7)")
    assert error.startswith("DUPLICATE"), error
    assert rows(filled, "SELECT count(*) FROM blobs") == count
    reply = sql(filled, "DELETE FROM blobs WHERE n = ?; INSERT INTO blobs VALUES (?, ?); SELECT count(*) FROM blobs", 7, "z", 7)
    assert reply["rows"] == count and reply["changes"] == 2


def test_many_statements(filled):
    assert rows(filled, "SELECT 1;" * 500 + "SELECT 2") == [[2]]
    sql(filled, "UPDATE blobs SET n = n;" * 200)
    error = filled.error("SQL", "DELETE FROM blobs WHERE n = 7;" * 30_000)
    assert error.startswith("SQL the text reads or computes too much")
    assert rows(filled, "SELECT count(*) FROM blobs WHERE n = 7") == [[1]]


def test_plans_name_indexes(filled):
    assert "by_age(age=? AND last>?)" in plan(filled, "SELECT * FROM people WHERE age = 3 AND last > 'x'")
    assert "PRIMARY KEY(first=? AND last=?)" in plan(filled, "SELECT * FROM people WHERE first = 'a' AND last = 'b'")
    assert "by_age" in plan(filled, "SELECT * FROM people ORDER BY age LIMIT 3")
    assert "by_city(city=? AND age>?)" in plan(filled, "SELECT * FROM people WHERE city = 'Oslo' AND age > 3")
    assert "B-TREE" not in plan(filled, "SELECT * FROM people WHERE city = 'Oslo' ORDER BY age DESC LIMIT 3")
    assert "COVERING" in plan(filled, "SELECT n FROM blobs WHERE n > 3")
    assert "by_n(n=?)" in plan(filled, "SELECT o.id FROM orders o JOIN blobs b ON b.n = o.id WHERE o.first = 'Ann'")


def test_hidden_columns(filled):
    assert sql(filled, "SELECT * FROM blobs LIMIT 1")["columns"] == ["k", "n"]
    ((version, expires, key),) = rows(filled, "SELECT _version, _expires, hex(_key) FROM blobs WHERE n = 7")
    assert version > 0 and expires is None and key == "1207F80001"
    for statement in ["UPDATE blobs SET _version = 3", "UPDATE blobs SET _key = x'00'", "INSERT INTO blobs (k, _key) VALUES (x'', x'')"]:
        assert "can only be read" in filled.error("SQL", statement)
    filled("DEBUG", "CLOCK", START)
    assert sql(filled, f"UPDATE blobs SET _expires = {START + 50} WHERE n = 7")["changes"] == 1
    assert rows(filled, "SELECT _expires FROM blobs WHERE n = 7") == [[START + 50]]
    filled("DEBUG", "CLOCK", START + 60)
    assert rows(filled, "SELECT n FROM blobs WHERE n = 7") == []
    assert sql(filled, "INSERT INTO blobs (k, n, _expires) VALUES (x'00', 7, NULL)")["changes"] == 1


# ---- keys ----


def test_keys_are_tables(client):
    client("SET", "s", "v", "PX", 100_000)
    client("SET", "big", "x" * 100_000)
    client("HSET", "user:1", "name", "Ada", "plan", "pro")
    client("HSET", "user:2", "name", "Grace", "plan", "free")
    client("RPUSH", "jobs", '{"task":"a"}', '{"task":"b"}')
    client("LPUSH", "jobs", '{"task":"c"}')
    client("SADD", "g", "user:1", "user:9")
    client("ZADD", "scores", 310, "user:1", 275.5, "user:2")
    client("SELECT", 3)
    client("SET", "elsewhere", "1")
    client("SELECT", 0)
    assert rows(client, "SELECT db, key, type, size FROM larder_keys ORDER BY db, key") == [
        [0, "big", "string", 100000],
        [0, "g", "set", 2],
        [0, "jobs", "list", 3],
        [0, "s", "string", 1],
        [0, "scores", "zset", 2],
        [0, "user:1", "hash", 2],
        [0, "user:2", "hash", 2],
        [3, "elsewhere", "string", 1],
    ]
    assert rows(client, "SELECT key, length(value) FROM larder_strings WHERE db = 0 ORDER BY key") == [["big", 100000], ["s", 1]]
    assert rows(client, "SELECT ttl > 90, expires LIKE '20__-__-__ __:__:__.___' FROM larder_keys WHERE key = 's'") == [[1, 1]]
    assert rows(client, "SELECT key, field, value FROM larder_hashes WHERE key GLOB 'user:*' ORDER BY 1, 2") == [
        ["user:1", "name", "Ada"],
        ["user:1", "plan", "pro"],
        ["user:2", "name", "Grace"],
        ["user:2", "plan", "free"],
    ]
    assert rows(client, "SELECT position, value ->> 'task' FROM larder_lists WHERE key = 'jobs' ORDER BY 1") == [
        [0, "c"],
        [1, "a"],
        [2, "b"],
    ]
    leaders = (
        "SELECT h.value, z.score FROM larder_zsets z JOIN larder_hashes h ON h.db = z.db AND h.key = z.member AND "
        "h.field = 'name' WHERE z.key = 'scores' ORDER BY z.score DESC"
    )
    assert rows(client, leaders) == [["Ada", 310.0], ["Grace", 275.5]]
    assert "keys(db=? AND key=? AND field=?)" in plan(client, leaders)
    missing = "SELECT member FROM larder_sets s LEFT JOIN larder_keys k ON k.db = s.db AND k.key = s.member WHERE k.key IS NULL"
    assert rows(client, missing) == [["user:9"]]
    assert rows(client, "SELECT key FROM larder_keys WHERE key > 'jobs' AND key <= 'scores' ORDER BY 1") == [["s"], ["scores"]]
    assert rows(client, "SELECT count(*) FROM larder_keys WHERE key = 5 OR db = 'x' OR db = 99") == [[0]]


def test_large_collections_come_whole(client):
    client.pipeline([("HSET", "h", f"f{i:04}", "v" * 10) for i in range(700)])
    client.pipeline([("RPUSH", "l", i) for i in range(700)])
    client.pipeline([("SADD", "s", f"m{i}") for i in range(700)])
    client.pipeline([("ZADD", "z", i // 3, f"m{i:04}") for i in range(700)])
    assert rows(client, "SELECT count(*), count(DISTINCT field), min(field), max(field) FROM larder_hashes") == [
        [700, 700, "f0000", "f0699"]
    ]
    assert rows(client, "SELECT count(*), sum(value), max(position) FROM larder_lists") == [[700, sum(range(700)), 699]]
    assert rows(client, "SELECT count(DISTINCT member) FROM larder_sets") == [[700]]
    assert rows(client, "SELECT count(DISTINCT member), max(score) FROM larder_zsets") == [[700, 233.0]]
    assert rows(client, "SELECT value FROM larder_hashes WHERE key = 'h' AND field = 'f0300'") == [["v" * 10]]


def test_what_has_expired_is_not_there(client):
    client("DEBUG", "CLOCK", START)
    client("SET", "s", "v", "PX", 10)
    client("HSET", "h", "a", 1, "b", 2)
    client("HPEXPIRE", "h", 10, "FIELDS", 1, "a")
    client("TABLE.CREATE", "t", "id INTEGER PRIMARY KEY, v TEXT, INDEX by_v (v)")
    client("ROW.PUT", "t", "PX", 10, "FIELDS", 2, "id", 1, "v", "x")
    client("ROW.PUT", "t", "FIELDS", 2, "id", 2, "v", "x")
    client("DEBUG", "CLOCK", START + 20)
    assert rows(client, "SELECT key, size FROM larder_keys ORDER BY key") == [["h", 1], ["t", 0]]
    assert rows(client, "SELECT field FROM larder_hashes") == [["b"]]
    assert rows(client, "SELECT id FROM t WHERE v = 'x'") == [[2]]
    assert sql(client, "INSERT INTO t VALUES (1, 'y')")["changes"] == 1


def test_listings(filled):
    assert rows(filled, "SELECT name FROM larder_tables") == [["blobs"], ["orders"], ["people"]]
    ((text,),) = rows(filled, "SELECT sql FROM larder_tables WHERE name = 'people'")
    sql(filled, "DROP TABLE people; " + text)
    assert rows(filled, "SELECT sql FROM larder_tables WHERE name = 'people'") == [[text]]
    assert rows(filled, "SELECT name, type, not_null, key FROM larder_columns WHERE table_name = 'people'") == [
        ["first", "TEXT", 1, 1],
        ["last", "TEXT", 1, 2],
        ["age", "INTEGER", 0, 0],
        ["city", "TEXT", 0, 0],
    ]
    assert rows(filled, "SELECT name, is_unique, columns, state FROM larder_indexes WHERE table_name = 'blobs'") == [
        ["by_n", 1, "n", "ready"]
    ]


# ---- writing ----

TYPED = "id INTEGER PRIMARY KEY, n INTEGER DEFAULT 7, t TEXT NOT NULL DEFAULT 'd', b BOOLEAN, m TIMESTAMP, j JSON, CHECK (n < 100)"


def test_types_and_defaults(client):
    client("TABLE.CREATE", "t", TYPED)
    sql(client, "INSERT INTO t (id) VALUES (1)")
    sql(client, "INSERT INTO t (id, n, b, m, j) VALUES (2, NULL, TRUE, '1970-01-01T00:00:01Z', '[1]')")
    sql(client, 'WITH x AS (SELECT 3 AS a) INSERT INTO main.t AS q ("id", [n]) SELECT a, 8 FROM x')
    assert client("SQL", "SELECT * FROM t")[b"rows"] == [
        [1, 7, b"d", None, None, None],
        [2, None, b"d", True, 1000, b"[1]"],
        [3, 8, b"d", None, None, None],
    ]
    assert client("SQL", "SELECT b + 1, NOT b FROM t WHERE id = 2")[b"rows"] == [[2, 0]]
    for statement, code in {
        "INSERT INTO t VALUES (4, 'x', 't', 0, 0, '{}')": "BADTYPE",
        "INSERT INTO t VALUES (4, 1.5, 't', 0, 0, '{}')": "BADTYPE",
        "INSERT INTO t VALUES (4, 1, 't', 5, 0, '{}')": "BADTYPE",
        "INSERT INTO t VALUES (4, 1, 't', 0, 0, 'no json')": "BADTYPE",
        "INSERT INTO t VALUES (4, 1, x'ff', 0, 0, '{}')": "BADTYPE",
        "INSERT INTO t VALUES (NULL, 1, 't', 0, 0, '{}')": "CONSTRAINT",
        "INSERT INTO t VALUES (4, 1, NULL, 0, 0, '{}')": "CONSTRAINT",
        "INSERT INTO t VALUES (4, 100, 't', 0, 0, '{}')": "CONSTRAINT",
        "UPDATE t SET t = NULL": "CONSTRAINT",
        "UPDATE t SET n = n * 100": "CONSTRAINT",
        "INSERT INTO t (id) VALUES (1)": "DUPLICATE",
        "INSERT INTO t (id, nope) VALUES (1, 2)": "SQL",
        "INSERT INTO t VALUES (1)": "SQL",
        "INSERT INTO nope VALUES (1)": "NOTABLE",
    }.items():
        assert client.error("SQL", statement).startswith(code + " "), (statement, client.error("SQL", statement))
    assert rows(client, "SELECT count(*) FROM t WHERE t = 'd'") == [[3]]


def test_insert_update_delete(client):
    client("TABLE.CREATE", "t", "a TEXT, b INTEGER, v TEXT, u INTEGER, PRIMARY KEY (a, b), UNIQUE INDEX by_u (u), INDEX by_v (v)")
    assert sql(client, "INSERT INTO t VALUES ('x', 1, 'one', 1), ('x', 2, 'two', 2), ('y', 1, 'three', NULL)")["changes"] == 3
    assert sql(client, "INSERT OR IGNORE INTO t VALUES ('x', 1, 'no', 9), ('z', 1, 'no', 2), ('z', 2, 'four', 4)")["changes"] == 1
    reply = sql(client, "INSERT OR REPLACE INTO t VALUES ('x', 1, 'ONE', 2), ('z', 2, 'FOUR', 4) RETURNING a, v")
    assert reply["changes"] == 2 and reply["rows"] == [[b"x", b"ONE"], [b"z", b"FOUR"]]
    assert rows(client, "SELECT * FROM t") == [["x", 1, "ONE", 2], ["y", 1, "three", None], ["z", 2, "FOUR", 4]]
    assert sql(client, "UPDATE t SET v = v || '!', u = u + 10 WHERE u IS NOT NULL")["changes"] == 2
    assert sql(client, "UPDATE t SET a = 'w', b = 7 WHERE a = 'z'")["changes"] == 1
    assert client.error("SQL", "UPDATE t SET a = 'x', b = 1 WHERE a = 'y'").startswith("DUPLICATE")
    assert client.error("SQL", "UPDATE t SET u = 12").startswith("DUPLICATE")
    assert sql(client, "UPDATE OR IGNORE t SET u = 12")["changes"] == 1
    assert rows(client, "SELECT * FROM t") == [["w", 7, "FOUR!", 14], ["x", 1, "ONE!", 12], ["y", 1, "three", None]]
    assert rows(client, "SELECT a FROM t WHERE v = 'ONE!'") == [["x"]]
    assert sql(client, "UPDATE t SET v = (SELECT max(q.v) FROM t q) WHERE a IN (SELECT a FROM t WHERE u > 12)")["changes"] == 1
    assert sql(client, "INSERT INTO t SELECT a, b + 100, v, NULL FROM t")["changes"] == 3
    assert sql(client, "DELETE FROM t WHERE b >= 100 AND a <> 'y'")["changes"] == 2
    assert sql(client, "DELETE FROM t")["changes"] == 4
    assert rows(client, "SELECT count(*) FROM t") == [[0]]
    client("TABLE.CREATE", "d", "id INTEGER PRIMARY KEY, n INTEGER, z REAL DEFAULT 2.5, UNIQUE INDEX by_nz (n, z)")
    sql(client, "INSERT INTO d (id, n) VALUES (1, 8)")
    assert sql(client, "INSERT OR REPLACE INTO d (id, n) VALUES (2, 8)")["changes"] == 1, "a default is a value, too"
    assert rows(client, "SELECT * FROM d") == [[2, 8, 2.5]]
    sql(client, f"INSERT INTO d (id, n, _expires) VALUES (3, 9, {2 * START})")
    assert sql(client, "UPDATE d SET n = o.n * 10 FROM d AS o WHERE o.id = d.id + 1 OR o.id + 1 = d.id")["changes"] == 2
    assert rows(client, "SELECT id, n, z, _expires FROM d") == [[2, 90, 2.5, None], [3, 80, 2.5, 2 * START]]


def test_a_statement_does_not_see_its_own_writes(client):
    client("TABLE.CREATE", "t", "id INTEGER PRIMARY KEY, n INTEGER, INDEX by_n (n)")
    sql(client, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 300) INSERT INTO t SELECT i, i FROM c")
    assert sql(client, "UPDATE t SET n = n + 1000 WHERE n > 0")["changes"] == 300
    assert sql(client, "UPDATE t SET id = id + 1000 WHERE id > 0")["changes"] == 300
    assert sql(client, "INSERT INTO t SELECT id + 10000, n FROM t")["changes"] == 300
    assert rows(client, "SELECT count(*), min(id), max(id), min(n), max(n) FROM t") == [[600, 1001, 11300, 1001, 1300]]


def test_in_transactions_and_scripts(client):
    client("TABLE.CREATE", "t", "id INTEGER PRIMARY KEY, n INTEGER")
    client("MULTI")
    client("SQL", "INSERT INTO t VALUES (1, 10), (2, 20)")
    client("SET", "k", "v")
    client("SQL", "INSERT INTO t VALUES (3, 30), (1, 0)")
    client("SQL", "UPDATE t SET n = n + 1")
    client("SQL", "SELECT * FROM t")
    replies = client("EXEC")
    assert replies[0][b"changes"] == 2 and isinstance(replies[2], ServerError)
    assert replies[3][b"changes"] == 2 and replies[4][b"rows"] == [[1, 11], [2, 21]]
    assert client("GET", "k") == b"v"
    script = "redis.call('SQL', 'UPDATE t SET n = 0 WHERE id = ?', ARGV[1]) return redis.call('SQL', 'SELECT n FROM t')"
    assert client("EVAL", script, 0, 2)[3] == [[11], [0]]
    partly = "local r = redis.pcall('SQL', 'DELETE FROM t; INSERT INTO t VALUES (9, 9), (9, 9)') return r.err"
    assert client("EVAL", partly, 0).startswith(b"DUPLICATE")
    assert rows(client, "SELECT * FROM t") == [[1, 11], [2, 0]]
    refused = "local r = redis.pcall('SQL', ARGV[1]) redis.call('SQL', 'UPDATE t SET n = 7 WHERE id = 2') return r.err"
    for text in ("INSERT INTO t VALUES (1, 0)", "CREATE TABLE t (id INTEGER PRIMARY KEY)"):
        assert re.match(b"DUPLICATE|EXISTS", client("EVAL", "#!lua flags=rollback\n" + refused, 0, text)), "nothing to take back"
    assert rows(client, "SELECT * FROM t") == [[1, 11], [2, 7]]
    assert b": DUPLICATE primary key" in client.call("EVAL", "#!lua flags=rollback\n" + partly, 0).value
    assert rows(client, "SELECT * FROM t") == [[1, 11], [2, 7]]
    assert b"read-only" in client.call("EVAL_RO", "return redis.call('SQL', 'DELETE FROM t')", 0).value
    assert client("EVAL_RO", "return redis.call('SQL', 'SELECT count(*) FROM t')", 0)[3] == [[2]]


def test_a_changed_table_is_seen_at_once(client):
    statement = "SELECT * FROM t WHERE v = 'x'"
    for _ in range(2):
        client("TABLE.CREATE", "t", "id INTEGER PRIMARY KEY, v TEXT, INDEX by_v (v)")
        sql(client, "INSERT INTO t VALUES (1, 'x')")
        assert rows(client, statement) == [[1, "x"]]
        client("SELECT", 1)
        assert client.error("SQL", statement).startswith("NOTABLE")
        client("TABLE.CREATE", "t", "v TEXT PRIMARY KEY")
        assert rows(client, statement) == []
        client("DEL", "t")
        client("SELECT", 0)
        assert rows(client, statement) == [[1, "x"]]
        client("DEL", "t")
        client("TABLE.CREATE", "t", "v TEXT, w INTEGER DEFAULT 3, PRIMARY KEY (v)")
        sql(client, "INSERT INTO t (v) VALUES ('x')")
        assert sql(client, statement)["columns"] == ["v", "w"] and rows(client, statement) == [["x", 3]]
        client("RENAME", "t", "u")
        assert client.error("SQL", statement).startswith("NOTABLE")
        assert rows(client, "SELECT * FROM U") == [["x", 3]]
        client("DEL", "u")
        client("SET", "t", "a string")
        assert client.error("SQL", statement).startswith("WRONGTYPE")
        client("DEL", "t")


# ---- what is refused ----

UNSAFE = [
    "ATTACH 'x.db' AS x",
    "DETACH main",
    "PRAGMA journal_mode",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('t')",
    "SELECT * FROM sqlite_master",
    "SELECT count(*) FROM sqlite_schema",
    "SELECT * FROM sqlite_temp_master",
    "SELECT * FROM dbstat",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('x', 'y')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('x')",
    "SELECT sqlite_compileoption_get(0)",
    "VACUUM",
    "VACUUM INTO 'x.db'",
    "ANALYZE",
    "REINDEX",
    "BEGIN",
    "COMMIT",
    "END",
    "ROLLBACK",
    "SAVEPOINT x",
    "RELEASE x",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE v USING larder_table",
    "CREATE TEMP TABLE v (a)",
    "CREATE TABLE v AS SELECT 1",
    "DROP VIEW v",
    "EXPLAIN SELECT 1",
    "EXPLAIN PRAGMA journal_mode",
    "INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)",
    "INSERT INTO larder_keys (key) VALUES ('x')",
    "UPDATE larder_hashes SET value = 1",
    "DELETE FROM larder_tables",
    "UPDATE t SET id = 1 RETURNING id",
    "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
    "SELECT nope FROM t",
    'SELECT "nope" FROM t',
    "SELECT id FROM t a, t b",
    "SELEC 1",
    "SELECT 'unterminated",
    "SELECT " + "(" * 2000 + "1" + ")" * 2000,
    "SELECT " + "+".join(["1"] * 2000),
    " UNION ALL ".join(["SELECT 1"] * 2000),
    "SELECT " + ",".join(["1"] * 5000),
]


def test_unsafe_statements_are_refused(client):
    client("TABLE.CREATE", "t", "id INTEGER PRIMARY KEY")
    for statement in UNSAFE:
        error = client.error("SQL", statement)
        assert error.split()[0] in {"SQL", "NOTABLE", "SYNTAX", "REFUSED", "NOCOLUMN"}, (statement[:80], error)
        assert len(error) < 600
    assert client.error("SQL", "SELECT '" + "x" * 10_000_000 + "'") == "SQL the text has more than 1000000 bytes"
    assert client.error("SQL", "SELECT 1\0; DROP TABLE t") == "SQL the text has a NUL in it"
    assert client("PING") == b"PONG"
    assert rows(client, "SELECT count(*) FROM t") == [[0]]


def test_limits(client):
    client("TABLE.CREATE", "t", "id INTEGER PRIMARY KEY, v TEXT")
    client("CONFIG", "SET", "sql-write-rows", 100)
    try:
        many = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {}) INSERT INTO t SELECT i, 'x' FROM c"
        assert "sql-write-rows" in client.error("SQL", many.format(101))
        assert rows(client, "SELECT count(*) FROM t") == [[0]]
        assert sql(client, many.format(100))["changes"] == 100
        assert "sql-write-rows" in client.error("SQL", "DELETE FROM t; INSERT INTO t VALUES (1, 'x')")
    finally:
        client("CONFIG", "SET", "sql-write-rows", 10000)
    client("CONFIG", "SET", "sql-max-result", 1024)
    try:
        assert client.error("SQL", "SELECT * FROM t") == "SQL the result is larger than sql-max-result"
    finally:
        client("CONFIG", "SET", "sql-max-result", "32mb")
    sql(client, "UPDATE t SET v = ?", "x" * 30_000)
    client("CONFIG", "SET", "sql-memory", "1mb")
    try:
        assert client.error("SQL", "SELECT v, count(*) FROM t GROUP BY v || id ORDER BY v || id DESC").startswith(
            "SQL the query takes more than sql-memory"
        )
    finally:
        client("CONFIG", "SET", "sql-memory", "64mb")
    endless = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) INSERT INTO t SELECT i, 'x' FROM c WHERE i < 0"
    assert client.error("SQL", endless).startswith("SQL ")
    long = "SELECT id FROM t WHERE id IN (" + ",".join(map(str, range(100_000))) + ")"
    assert client.error("SQL", long) == "SQL the statement has too many parts, or there is no memory"
    assert client.error("SQL", "DELETE FROM t WHERE instr(v || v || 'b', replace(v, 'x', 'xx') || 'c') > 0; SELECT ?").startswith("SQL ")
    assert rows(client, "SELECT count(*) FROM t") == [[100]]


# ---- tables ----


def test_tables_are_made_renamed_and_dropped(client):
    create = "CREATE TABLE {} people (first TEXT, last TEXT, age INTEGER DEFAULT 3, PRIMARY KEY (first, last)) WITHOUT ROWID"
    sql(client, create.format(""))
    assert client.error("SQL", create.format("")).startswith("EXISTS")
    sql(client, create.format("IF NOT EXISTS") + "; INSERT INTO People (FIRST, last) VALUES ('a', 'b'); SELECT 1")
    assert client("TYPE", "people") == b"table"
    assert rows(client, "SELECT * FROM PEOPLE") == [["a", "b", 3]]
    sql(client, "ALTER TABLE people RENAME TO folk")
    assert rows(client, "SELECT first FROM folk") == [["a"]]
    assert client.error("SQL", "SELECT * FROM people") == "NOTABLE no such table: people"
    assert client.error("SQL", "ALTER TABLE folk RENAME TO larder_x").startswith("SYNTAX")
    client("SET", "taken", 1)
    assert client.error("SQL", "ALTER TABLE folk RENAME TO taken").startswith("EXISTS")
    error = client.error("SQL", "DROP TABLE folk; CREATE TABLE folk (a TEXT PRIMARY KEY); INSERT INTO folk VALUES (NULL)")
    assert error.startswith("CONSTRAINT")
    assert rows(client, "SELECT * FROM folk") == [["a", "b", 3]]
    text = "DROP TABLE FOLK; CREATE TABLE folk (a TEXT PRIMARY KEY); INSERT INTO folk VALUES ('x'); SELECT * FROM folk"
    assert rows(client, text) == [["x"]]
    sql(client, "DROP TABLE folk; DROP TABLE IF EXISTS folk")
    assert client("EXISTS", "folk") == 0
    assert client.error("SQL", "DROP TABLE folk").startswith("NOTABLE")
    for statement in ["CREATE TABLE x (a NOPE)", "CREATE TABLE x ()", "CREATE TABLE larder_x (a TEXT PRIMARY KEY)"]:
        assert client.error("SQL", statement).startswith("SYNTAX"), statement
    columns = ", ".join(f"c{i} INTEGER" for i in range(2000))
    assert client.error("SQL", f"CREATE TABLE x (id INTEGER PRIMARY KEY, {columns})").startswith("TOOLONG")


def test_columns_and_indexes_come_and_go(client):
    sql(client, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    sql(client, "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x')")
    statement = "SELECT id FROM t WHERE v = 'x' ORDER BY id"
    assert "by_v" not in plan(client, statement) and rows(client, statement) == [[1], [3]]
    sql(client, "CREATE INDEX by_v ON t (v)")
    assert "by_v(v=?)" in plan(client, statement) and rows(client, statement) == [[1], [3]]
    assert client.error("SQL", "CREATE INDEX by_v ON t (v)").startswith("EXISTS")
    sql(client, "CREATE INDEX IF NOT EXISTS by_v ON t (id, v)")
    assert client.error("SQL", "CREATE UNIQUE INDEX u ON t (v)").startswith("DUPLICATE")
    sql(client, "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 5; UPDATE t SET n = id WHERE id = 2")
    assert rows(client, "SELECT * FROM t") == [[1, "x", 5], [2, "y", 2], [3, "x", 5]]
    sql(client, "ALTER TABLE t RENAME COLUMN n TO m")
    assert rows(client, "SELECT m FROM t WHERE id = 2") == [[2]]
    assert client.error("SQL", "ALTER TABLE t DROP COLUMN v").startswith("REFUSED")
    sql(client, "DROP INDEX by_v; ALTER TABLE t DROP COLUMN v")
    assert sql(client, "SELECT * FROM t")["columns"] == ["id", "m"]
    assert client.error("SQL", "DROP INDEX by_v").startswith("NOINDEX")
    sql(client, "DROP INDEX IF EXISTS by_v")
    error = client.error("SQL", "ALTER TABLE t ADD COLUMN x TEXT; CREATE INDEX by_x ON t (x); SELECT nope FROM t")
    assert error == "SQL no such column: nope"
    assert sql(client, "SELECT * FROM t")["columns"] == ["id", "m"]
    assert rows(client, "SELECT count(*) FROM larder_indexes") == [[0]]
