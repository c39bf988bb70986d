"""Redis' commands over HTTP: one, a pipeline, a transaction, in paths; what they answer."""

import pytest

from harness.http import b64


def test_one_command(web, redis):
    assert web.post("/", ["SET", "k", "v"]).json == {"result": "OK"}
    assert web.post("/", ["GET", "k"]).json == {"result": "v"}
    assert web.post("/", ["GET", "none"]).json == {"result": None}
    assert web.post("/", ["set", "n", 5]).json == {"result": "OK"}
    assert web.post("/", ["INCRBY", "n", 10]).json == {"result": 15}
    assert web.post("/", ["LPUSH", "l", "a", "b"]).json == {"result": 2}
    assert web.post("/", ["LRANGE", "l", 0, -1]).json == {"result": ["b", "a"]}
    assert web.post("/", ["LRANGE", "none", 0, -1]).json == {"result": []}
    assert web.post("/", ["HSET", "h", "f", "v"]).json == {"result": 1}
    assert web.post("/", ["HGETALL", "h"]).json == {"result": ["f", "v"]}
    assert web.post("/", ["ZADD", "z", 1.5, "m"]).json == {"result": 1}
    assert web.post("/", ["ZSCORE", "z", "m"]).json == {"result": "1.5"}
    assert web.post("/", ["SCAN", 0]).json["result"][0] == "0"
    assert web.post("/", ["SCAN", 0, "MATCH", "nothing"]).json == {"result": ["0", []]}
    assert web.post("/", ["COMMAND", "INFO", "get"]).json["result"][0][0] == "get"
    assert redis("GET", "n") == b"15"


def test_errors(web):
    answer = web.post("/", ["FLY", "a"])
    assert answer.status == 400 and answer.json["error"].startswith("ERR unknown command 'FLY'")
    web.post("/", ["SET", "k", "v"])
    answer = web.post("/", ["LPUSH", "k", "v"])
    assert answer.status == 400 and answer.json["error"].startswith("WRONGTYPE ")
    assert web.post("/", ["GET"]).json["error"] == "ERR wrong number of arguments for 'get' command"
    assert web.post("/", ["INCR", "k"]).json["error"] == "ERR value is not an integer or out of range"
    for body in ([], [[]], [None], [{}], {"a": 1}, "SET", [["GET"], "k"]):
        answer = web.post("/", body)
        assert answer.status == 400 and answer.json["error"], body
    assert web.post("/", b'["GET"').status == 400


@pytest.mark.parametrize(
    "command",
    ["MULTI", "EXEC", "DISCARD", "WATCH k", "UNWATCH", "SELECT 1", "AUTH x", "HELLO 3", "MONITOR", "RESET", "QUIT", "CLIENT REPLY OFF"],
)
def test_what_needs_a_connection(web, command):
    answer = web.post("/", command.split())
    assert answer.status == 400 and "HTTP" in answer.json["error"]
    answer = web.post("/pipeline", [["SET", "a", "b"], command.split()])
    assert answer.status == 400
    assert web.post("/", ["GET", "a"]).json == {"result": None}


def test_nothing_blocks(web):
    assert web.post("/", ["BLPOP", "none", 0]).json == {"result": None}
    assert web.post("/", ["BLMOVE", "none", "other", "LEFT", "LEFT", 0]).json == {"result": None}
    web.post("/", ["RPUSH", "l", "x"])
    assert web.post("/", ["BLPOP", "l", 0]).json == {"result": ["l", "x"]}


def test_paths(web, redis):
    assert web.get("/set/k/v").json == {"result": "OK"}
    assert web.get("/get/k").json == {"result": "v"}
    assert web.get("/GET/k").json == {"result": "v"}
    assert web.post("/set/k", b"the body\x00\xff").json == {"result": "OK"}
    assert redis("GET", "k") == b"the body\x00\xff"
    assert web.post("/set/k?EX=100", b"x").json == {"result": "OK"} and redis("TTL", "k") > 0
    assert web.post("/set/k?NX", b"y").json == {"result": None}
    assert web.post("/set/k?EX=100&XX", b"z").json == {"result": "OK"} and redis("GET", "k") == b"z"
    assert web.get("/set/a%2Fb/c%20d%00").json == {"result": "OK"} and redis("GET", "a/b") == b"c d\x00"
    assert web.get("/hset/h/f/1/g/2").json == {"result": 2}
    assert web.get("/hmget/h/f/g/x").json == {"result": ["1", "2", None]}
    assert web.get("/set/k3/v?db=3").json == {"result": "OK"}
    redis("SELECT", "3")
    assert redis("GET", "k3") == b"v"
    assert web.get("/ping").json == {"result": "PONG"}
    assert web.get("/get/%").status == 400
    assert web.get("/get/k?db=99").status == 400


def test_paths_of_nothing(web):
    """What names neither a route nor a command is not there, whatever is to be done with it; a hint says what is."""
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
        answer = web(method, "/nothing/k")
        assert answer.status == 404, method
    assert web.get("/nothing/k").error == "unknown_path"
    for path, meant in (("/health", "/healthz"), ("/healthcheck", "/healthz"), ("/ready", "/readyz"), ("/metric", "/metrics"),
                        ("/openapi", "/openapi.json"), ("/batches", "/batch"), ("/keyspace/", "/keys")):  # fmt: skip
        answer = web.get(path)
        assert answer.status == 404 and answer.error == "unknown_path", answer
        assert f"There is {meant}. " in answer.json["message"], answer
    for path in ("/favicon.ico", "/h", "/%", "/%00", "//", "/api/v1/keys"):
        answer = web.get(path)
        assert answer.status == 404 and answer.error == "unknown_path" and "There is /" not in answer.json["message"], answer
    assert web.get("/%67et/k").json == {"result": None}
    assert web("DELETE", "/get/k").status == 405
    assert web.get("/config/nothing").status == 400


def test_methods_of_paths(web, redis):
    """A browser's OPTIONS, and what proxies send, is no command."""
    for method in ("GET", "HEAD", "POST", "PUT"):
        assert web(method, "/incr/n").status == 200
    answer = web("OPTIONS", "/incr/n")
    assert answer.status == 204 and answer.headers["Allow"] == "OPTIONS, GET, HEAD, POST, PUT"
    for method in ("DELETE", "PATCH", "TRACE"):
        answer = web(method, "/incr/n")
        assert answer.status == 405 and answer.headers["Allow"] == "OPTIONS, GET, HEAD, POST, PUT"
    assert redis("GET", "n") == b"4"


def test_pipeline(web, redis):
    answer = web.post("/pipeline", [["SET", "k", "v"], ["GET", "k"], ["INCR", "k"], ["LPUSH", "l", 1, 2], ["FLY"], ["LRANGE", "l", 0, -1]])
    assert answer.status == 200
    results = answer.json
    assert results[:2] == [{"result": "OK"}, {"result": "v"}]
    assert results[2] == {"error": "ERR value is not an integer or out of range"}
    assert results[3] == {"result": 2} and results[5] == {"result": ["2", "1"]}
    assert results[4]["error"].startswith("ERR unknown command")
    assert web.post("/pipeline", []).json == []
    for body in ([["GET"], "x"], [[]], ["GET", "k"], {"a": []}):
        assert web.post("/pipeline", body).status == 400
    many = web.post("/pipeline", [["INCR", "n"] for _ in range(5000)]).json
    assert [r["result"] for r in many] == list(range(1, 5001))


def test_transactions(web, redis):
    answer = web.post("/multi-exec", [["SET", "k", "v"], ["INCR", "k"], ["LPUSH", "l", 1], ["LRANGE", "l", 0, -1]])
    assert answer.status == 200
    assert answer.json == [
        {"result": "OK"}, {"error": "ERR value is not an integer or out of range"}, {"result": 1}, {"result": ["1"]},
    ]  # fmt: skip
    for bad in (["FLY"], ["GET"], ["DEBUG", "SLEEP", "0"]):
        answer = web.post("/multi-exec", [["SET", "k", "changed"], bad])
        assert answer.status == 400 and answer.json["error"].startswith("EXECABORT ")
    assert redis("GET", "k") == b"v"


def test_base64(web, redis):
    redis("SET", "k", b"\xff\x00")
    redis("RPUSH", "l", b"\xfe", "OK")
    headers = {"Upstash-Encoding": "base64"}
    assert web.post("/", ["GET", "k"], headers=headers).json == {"result": b64(b"\xff\x00")}
    assert web.post("/", ["SET", "k", "v"], headers=headers).json == {"result": "OK"}
    assert web.post("/", ["LRANGE", "l", 0, -1], headers=headers).json == {"result": [b64(b"\xfe"), b64(b"OK")]}
    assert web.post("/", ["TYPE", "k"], headers=headers).json == {"result": b64(b"string")}
    assert web.post("/", ["INCR", "n"], headers=headers).json == {"result": 1}
    assert web.post("/pipeline", [["GET", "k"], ["GET", "x"]], headers=headers).json == [{"result": b64(b"v")}, {"result": None}]
    assert web.post("/multi-exec", [["GET", "k"]], headers=headers).json == [{"result": b64(b"v")}]
    # Without it, what is not UTF-8 is lost, as JSON has it.
    assert web.post("/", ["LRANGE", "l", 0, -1]).json == {"result": ["\ufffd", "OK"]}


def test_long_strings(web, redis):
    value = "\u20ac" * 100_000
    assert web.post("/", ["SET", "k", value]).json == {"result": "OK"}
    assert web.post("/", ["GET", "k"]).json == {"result": value}
    assert web.post("/", ["STRLEN", "k"]).json == {"result": 300_000}


def test_requests_stand_alone(web, server):
    """What one request does to its session is gone with the next one on the same connection."""
    web.post("/", ["SET", "k", "in 0"])
    assert web.post("/?db=1", ["SET", "k", "in 1"]).json == {"result": "OK"}
    assert web.post("/", ["GET", "k"]).json == {"result": "in 0"}
    web.post("/", ["CLIENT", "SETNAME", "me"])
    assert web.post("/", ["GET", "k"]).json == {"result": "in 0"}
