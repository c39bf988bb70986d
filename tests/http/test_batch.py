"""POST /batch: all or nothing, one commit, conditions, times, outcomes of what was not waited for."""

import pytest

from harness import wait
from harness.http import b64


def run(web, *operations, **more):
    return web.post("/batch", {"operations": list(operations), **more})


def put(key, value, **more):
    return {"op": "put", "key": key, "value": value, **more}


def test_operations(web, redis):
    redis("SET", "gone", "x")
    redis("SET", "stays", "x", "EX", "100")
    answer = run(
        web,
        put("a", "1"),
        put("h", {"f": "v"}, type="hash", ttl=100),
        {"op": "delete", "key": "gone"},
        {"op": "delete", "key": "never"},
        {"op": "expire", "key": "a", "ttl": 50},
        {"op": "expire", "key": "never", "ttl": 50},
        {"op": "persist", "key": "stays"},
        {"op": "incr", "key": "n"},
        {"op": "incrby", "key": "n", "args": [5]},
        {"op": "hset", "key": "h", "args": ["g", "w"]},
        {"op": "lpush", "key": "l", "args": ["x", "y"]},
        {"op": "get", "key": "a"},
        {"op": "lrange", "key": "l", "args": [0, -1]},
        {"op": put("a", b64(b"\xff"))["op"], "key": b64(b"\xfe"), "value": b64(b"\xff"), "encoding": "base64"},
    )
    assert answer.status == 200, answer
    results = answer.json["results"]
    assert results[0]["created"] is True and results[0]["version"] > 0
    assert results[2:7] == [{"deleted": True}, {"deleted": False}, {"applied": True}, {"applied": False}, {"applied": True}]
    assert results[7:13] == [
        {"result": 1}, {"result": 6}, {"result": 1}, {"result": 2}, {"result": "1"}, {"result": ["y", "x"]},
    ]  # fmt: skip
    assert redis("GET", "n") == b"6" and redis("TTL", "a") > 0 and redis("TTL", "stays") == -1
    assert redis("HGETALL", "h") == [b"f", b"v", b"g", b"w"] and redis("TTL", "h") > 0
    assert redis("EXISTS", "gone") == 0 and redis("GET", b"\xfe") == b"\xff"



FAILURES = [
    ({"op": "incr", "key": "text"}, 422, "command_failed"),
    ({"op": "lpush", "key": "text", "args": ["x"]}, 409, "wrong_type"),
    (put("k", "v", if_absent=True), 412, "precondition_failed"),
    (put("none", "v", if_present=True), 412, "precondition_failed"),
    (put("k", "v", if_version=1), 412, "precondition_failed"),
    ({"op": "incr", "key": "none", "if_version": 5}, 412, "precondition_failed"),
    ({"op": "expire", "key": "k", "expire_at": 1}, 400, "bad_ttl"),
    ({"op": "hincrby", "key": "h", "args": ["f", "x"]}, 422, "command_failed"),
]


@pytest.mark.parametrize("failing,status,code", FAILURES, ids=[str(n) for n in range(len(FAILURES))])
def test_all_or_nothing(web, redis, failing, status, code):
    redis("SET", "text", "abc")
    redis("SET", "k", "was")
    redis("RPUSH", "l", "1", "2")
    redis("ZADD", "z", "1", "m")
    redis("HSET", "h", "f", "x")
    before = {key: web.get(f"/keys/{key}").json for key in ("text", "k", "l", "z", "h")}
    size = redis("DBSIZE")
    answer = run(
        web,
        put("new", "v"),
        put("k", "changed"),
        put("l", ["replaced"], type="list"),
        {"op": "zadd", "key": "z", "args": [2, "n"]},
        {"op": "zrange", "key": "z", "args": [0, -1]},
        {"op": "hset", "key": "h", "args": ["g", "1"]},
        {"op": "delete", "key": "text" if failing["key"] != "text" else "l"},
        put("k", "was") if failing.get("if_version") else put("k", "again"),
        failing,
        put("later", "v"),
    )
    assert answer.status == status, answer
    assert answer.error == code and answer.json["operation"] == 8
    assert {key: web.get(f"/keys/{key}").json for key in before} == before
    assert redis("DBSIZE") == size
    # And the connection, the server and its other clients go on.
    assert redis("PING") == b"PONG"
    assert run(web, put("new", "v")).status == 200


def test_one_by_one(web, redis):
    redis("SET", "text", "abc")
    answer = run(
        web, put("a", "1"), {"op": "incr", "key": "text"}, put("b", "2", if_present=True), put("c", "3"), atomic=False
    )
    assert answer.status == 200
    results = answer.json["results"]
    assert results[0]["created"] and results[3]["created"]
    assert results[1]["error"] == "command_failed" and "integer" in results[1]["message"]
    assert results[2]["error"] == "precondition_failed" and results[2]["version"] == 0
    assert [redis("GET", key) for key in "abc"] == [b"1", None, b"3"] and redis("GET", "text") == b"abc"


def test_conditions_hold(web):
    version = run(web, put("k", "1", if_absent=True)).json["results"][0]["version"]
    answer = run(web, put("k", "2", if_version=version), put("k", "3", if_present=True), put("n", "x", if_version=0))
    assert answer.status == 200
    assert web.get("/keys/k").json["value"] == "3"


def figures(redis):
    lines = redis("INFO", "larder").decode().split("\r\n")
    return {k: v for k, v in (line.split(":", 1) for line in lines if ":" in line)}


@pytest.mark.sqlite
def test_one_row_one_commit(start):
    server = start()
    with server.connect() as redis, server.http() as web:
        web.put("/keys/first", {"value": "so that there are rows"})
        redis("CONFIG", "RESETSTAT")
        answer = run(
            web, put("k", "1"), put("k", "2"), {"op": "expire", "key": "k", "ttl": 100}, {"op": "append", "key": "k", "args": ["x"]}
        )
        assert answer.status == 200
        after = figures(redis)
        assert int(after["commits"]) == 1
        # The row itself and the database's counts; not a row for each operation.
        assert int(after["rows_written"]) <= 2
        assert redis("GET", "k") == b"2x" and redis("TTL", "k") > 0
        run(web, *[put(f"n{i}", "v") for i in range(500)])
        assert int(figures(redis)["commits"]) == 2


def test_a_failing_batch_leaves_others_alone(web, redis, server):
    """A batch that reads through what it wrote, and then fails, shares its turn with other clients."""
    redis("ZADD", "large", *(word for i in range(3000) for word in (str(i), f"m{i}")))
    with server.http() as other, server.connect() as third:
        for i in range(20):
            assert other.put(f"/keys/o{i}", {"value": "v"}).status == 201
            answer = run(
                web,
                {"op": "zadd", "key": "large", "args": ["0.5", "new"]},
                {"op": "zrange", "key": "large", "args": ["100", "110"]},
                {"op": "zadd", "key": "large", "args": ["x", "y"]},
            )
            assert answer.status == 422 and answer.json["operation"] == 2, answer
            assert third("SET", f"t{i}", "v") == b"OK"
    assert redis("ZSCORE", "large", "new") is None and redis("ZCARD", "large") == 3000


def test_outcomes(web, redis):
    answer = run(web, put("k", "v"), {"op": "incr", "key": "n"}, **{"async": True})
    assert answer.status == 202
    path = answer.headers["Location"]
    assert path == f"/batch/{answer.json['id']}"

    def outcome():
        told = web.get(path)
        assert told.status == 200
        return told.json["status"] != "pending" and told.json

    told = wait.until(outcome, "the batch is done")
    assert told["status"] == "done" and told["code"] == 200
    assert told["answer"]["results"][1] == {"result": 1}
    assert redis("GET", "k") == b"v"

    answer = run(web, put("k", "w"), {"op": "incr", "key": "k"}, **{"async": True})
    assert answer.status == 202
    told = web.get(answer.headers["Location"]).json
    assert told["status"] == "failed" and told["code"] == 422
    assert told["answer"]["operation"] == 1 and redis("GET", "k") == b"v"

    for bad in ("/batch/x", "/batch/" + "0" * 32, path[:-1] + ("0" if path[-1] != "0" else "1")):
        assert web.get(bad).status == 404 and web.get(bad).error == "batch_not_found"


def test_outcomes_are_bounded(web):
    first = run(web, put("k", "v"), **{"async": True}).headers["Location"]
    assert web.get(first).status == 200
    for _ in range(1023):
        run(web, put("k", "v"), **{"async": True})
    assert web.get(first).status == 200
    last = run(web, put("k", "v"), **{"async": True}).headers["Location"]
    assert web.get(first).status == 404
    assert web.get(last).status == 200


def test_not_begun_in_time(web, redis, server):
    redis("CLIENT", "PAUSE", "1500", "WRITE")
    with server.http() as other:
        answer = run(other, put("late", "v"), timeout_ms=1)
    assert answer.status == 503 and answer.error == "timeout"
    assert redis("EXISTS", "late") == 0
    redis("CLIENT", "UNPAUSE")
    assert run(web, put("late", "v"), timeout_ms=60000).status == 200


MISTAKES = [
    ({}, "bad_value", None),
    ({"operations": []}, "bad_value", None),
    ({"operations": "x"}, "bad_value", None),
    ({"operations": [put("k", "v")], "colour": 1}, "unknown_field", None),
    ({"operations": [put("k", "v")], "atomic": 1}, "bad_value", None),
    ({"operations": [put("k", "v")], "timeout_ms": 0}, "bad_value", None),
    ({"operations": [put("k", "v"), "x"]}, "bad_value", 1),
    ({"operations": [{"op": "put", "key": "k"}]}, "missing_field", 0),
    ({"operations": [{"op": "put", "value": "v"}]}, "missing_field", 0),
    ({"operations": [{"key": "k"}]}, "missing_field", 0),
    ({"operations": [put("k", "v", colour=1)]}, "unknown_field", 0),
    ({"operations": [put("k", "v", args=[])]}, "unknown_field", 0),
    ({"operations": [put("k", "v", ttl=-1)]}, "bad_ttl", 0),
    ({"operations": [put("k", {"a": 1})]}, "bad_value", 0),
    ({"operations": [put("k", "v", if_version=-1)]}, "bad_value", 0),
    ({"operations": [{"op": "fly", "key": "k"}]}, "unknown_operation", 0),
    ({"operations": [{"op": "flushall", "key": "k"}]}, "unknown_operation", 0),
    ({"operations": [{"op": "multi", "key": "k"}]}, "unknown_operation", 0),
    ({"operations": [{"op": "ping", "key": "k"}]}, "unknown_operation", 0),
    ({"operations": [{"op": "incrby", "key": "k"}]}, "bad_value", 0),
    ({"operations": [{"op": "incr", "key": "k", "args": "x"}]}, "bad_value", 0),
    ({"operations": [{"op": "expire", "key": "k"}]}, "missing_field", 0),
    ({"operations": [{"op": "delete", "key": "k", "ttl": 1}]}, "unknown_field", 0),
    ({"operations": [{"op": "incr", "key": "k", "value": 1}]}, "unknown_field", 0),
    ({"operations": [{"op": "incr", "key": None}]}, "bad_value", 0),
]


@pytest.mark.parametrize("body,code,operation", MISTAKES)
def test_mistakes(web, redis, body, code, operation):
    answer = web.post("/batch", body)
    assert answer.status == 400 and answer.error == code, answer
    assert answer.json.get("operation") == operation
    assert redis("DBSIZE") == 0


def test_nobody_sees_what_is_undone(web, redis, server):
    """Who watches a key that was never there, in the end, is not disturbed."""
    redis("RPUSH", "l", "1")
    with server.connect() as watcher:
        watcher("WATCH", "new", "l", "copied", "moved")
        answer = run(web, put("new", "v"), {"op": "delete", "key": "new"}, {"op": "copy", "key": "l", "args": ["copied"]},
                     {"op": "rename", "key": "l", "args": ["moved"]}, put("l", ["again"], type="list"), {"op": "incr", "key": "l"})  # fmt: skip
        assert answer.status == 409 and answer.json["operation"] == 5
        watcher("MULTI")
        watcher("PING")
        assert watcher("EXEC") == [b"PONG"]
        watcher("WATCH", "new")
        assert run(web, put("new", "v"), {"op": "delete", "key": "new"}).status == 200
        watcher("MULTI")
        watcher("PING")
        assert watcher("EXEC") is None


def test_results_are_bytes(web, redis):
    redis("RPUSH", "l", b"\xff", "text", "caf\u00e9 \"", b"a\x00")
    results = web.post("/batch", {"operations": [
        {"op": "lrange", "key": "l", "args": [1, -1]}, {"op": "lrange", "key": "l", "args": [0, 1]}, {"op": "lpop", "key": "l"},
        {"op": "set", "key": "s", "args": ["OK"]}, {"op": "get", "key": "s"}, {"op": "get", "key": "none"},
        {"op": "get", "key": b64(b"s"), "encoding": "base64"}, {"op": "set", "key": b64(b"\xfe"), "args": [b64(b"v")], "encoding": "base64"},
    ]}).json["results"]  # fmt: skip
    assert results == [
        {"result": ["text", "caf\u00e9 \"", "a\x00"]},
        {"result": [b64(b"\xff"), b64(b"text")], "encoding": "base64"},
        {"result": b64(b"\xff"), "encoding": "base64"},
        {"result": "OK"},
        {"result": "OK"},
        {"result": None},
        {"result": b64(b"OK"), "encoding": "base64"},
        {"result": "OK"},
    ]
    assert redis("GET", b"\xfe") == b"v"


def test_blocked_clients_are_served(web, server, redis):
    with server.connect() as waiting:
        waiting.send(b"*3\r\n$5\r\nBLPOP\r\n$5\r\nqueue\r\n$1\r\n0\r\n")
        wait.until(lambda: b"blocked_clients:1" in redis("INFO", "clients"), "a client waits")
        assert run(web, {"op": "rpush", "key": "queue", "args": ["job"]}).status == 200
        assert waiting.read().plain() == [b"queue", b"job"]
    with server.connect() as waiting:
        waiting.send(b"*3\r\n$5\r\nBLPOP\r\n$5\r\nqueue\r\n$1\r\n0\r\n")
        wait.until(lambda: b"blocked_clients:1" in redis("INFO", "clients"), "a client waits")
        redis("SET", "text", "x")
        failed = run(web, {"op": "rpush", "key": "queue", "args": ["job"]}, {"op": "incr", "key": "text"})
        assert failed.status == 422
        redis("RPUSH", "queue", "real")
        assert waiting.read().plain() == [b"queue", b"real"]


@pytest.mark.parametrize("atomic", [True, False])
def test_every_operation_counts_as_one_change(web, redis, atomic):
    def changes():
        said = redis("INFO", "persistence").decode()
        return int(next(line for line in said.split("\r\n") if line.startswith("rdb_changes_since_last_save:")).split(":")[1])

    before = changes()
    assert run(web, put("a", "1"), {"op": "incr", "key": "a"}, {"op": "delete", "key": "none"}, atomic=atomic).status == 200
    assert changes() == before + 2
