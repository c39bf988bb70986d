"""POST /sql: types of arguments and values, several statements, errors, queries that take long."""

import base64

import pytest

LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT count(*) AS n FROM n"


@pytest.fixture
def people(web):
    web.put("/tables/people", {"schema": "id INTEGER PRIMARY KEY, name TEXT UNIQUE, j JSON, b BLOB, o BOOLEAN, r REAL"})
    return web


def sql(web, text, *args, path="/sql", **more):
    return web.post(path, {"sql": text, "args": list(args)}, **more)


def test_sql(people):
    answer = sql(people, "INSERT INTO people (id, name) VALUES (?, ?), (2, 'b')", 1, "a")
    assert answer.status == 200 and answer.json == {"columns": [], "rows": [], "changes": 2}
    answer = sql(people, "SELECT id, upper(name) AS up FROM people ORDER BY id")
    assert answer.json == {"columns": ["id", "up"], "rows": [[1, "A"], [2, "B"]], "changes": 0}
    assert people.post("/sql", {"sql": "SELECT 1"}).json["rows"] == [[1]]
    assert sql(people, "DELETE FROM people; SELECT count(*) FROM people").json["rows"] == [[0]]


def test_types(people):
    blob = base64.b64encode(b"\x00\xff").decode()
    values = [7, "x", '{"a": [1]}', {"base64": blob}, True, 0.1]
    assert sql(people, "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", *values).status == 200
    assert sql(people, "SELECT * FROM people").json["rows"] == [[7, "x", {"a": [1]}, blob, True, 0.1]]
    row = sql(people, "SELECT ?, ?, ?, ?, ?, 1e999", None, 2**63 - 1, 1.5, "\u20ac", False).json["rows"][0]
    assert row == [None, 2**63 - 1, 1.5, "\u20ac", 0, "inf"]
    answer = sql(people, "SELECT 9223372036854775807, 1.5", path="/sql?int64=string")
    assert answer.json["rows"] == [["9223372036854775807", 1.5]]


def test_what_takes_long_is_answered_by_a_thread(people):
    for path, expected in (("/sql", 300000), ("/sql?int64=string", "300000")):
        answer = sql(people, LONG.format(300000), path=path)
        assert answer.status == 200 and answer.json["rows"] == [[expected]], answer


def test_errors(people):
    for text, status, code in (
        ("SELEC 1", 400, "sql_error"),
        ("SELECT * FROM folk", 404, "table_not_found"),
        ("SELECT * FROM nothing", 400, "sql_error"),
        ("ATTACH 'x' AS y", 400, "sql_error"),
        ("INSERT INTO people (id, name) VALUES (1, 'a'), (2, 'a')", 409, "duplicate"),
        ("INSERT INTO people (id) VALUES ('x')", 400, "bad_type"),
    ):
        answer = sql(people, text)
        assert (answer.status, answer.error) == (status, code), (text, answer.body)
    assert sql(people, "SELECT count(*) FROM people").json["rows"] == [[0]]
    for body, code in (
        ({}, "missing_field"),
        ({"sql": 1}, "unknown_field"),
        ({"sql": "SELECT 1", "x": 1}, "unknown_field"),
        ({"sql": "SELECT 1", "args": 1}, "bad_value"),
        ({"sql": "SELECT ?", "args": [[1]]}, "bad_value"),
        ({"sql": "SELECT ?", "args": [{"base64": "!"}]}, "bad_value"),
        ({"sql": "SELECT ?", "args": [{"x": "y"}]}, "bad_value"),
        ([], "bad_json"),
    ):
        answer = people.post("/sql", body)
        assert answer.status == 400 and answer.error == code, (body, answer.body)


def test_limits(start):
    server = start("--sql-timeout", "200ms", "--sql-max-result", "1mb")
    with server.http() as web:
        answer = sql(web, LONG.format(10**9))
        assert answer.status == 504 and answer.error == "sql_timeout"
        answer = sql(web, LONG.format(100000).replace("count(*) AS n", "i, 'xxxxxxxxxxxxxxxxxxxxxxxxxx'"))
        assert answer.status == 413 and answer.error == "result_too_large"
        assert sql(web, "SELECT 1").json["rows"] == [[1]]
