"""EVAL and its like over HTTP: what scripts return as JSON, errors, pipelines, transactions, paths."""

import pytest

from harness.http import b64

# A script, and what it returns as JSON: the form of RESP2.
RETURNED = [
    ("return 1", 1),
    ("return 3.99", 3),
    ("return -2^53", -(2**53)),
    ("return 1/0", -(2**63)),
    ("return 'text'", "text"),
    ("return ''", ""),
    ("return nil", None),
    ("return true", 1),
    ("return false", None),
    ("return {1, 'two', {3, {}}, false}", [1, "two", [3, []], None]),
    ("return {1, nil, 3}", [1]),
    ("return {ok = 'fine'}", "fine"),
    ("return {ok = 'a\\nb'}", "a b"),
    ("return {double = 1.5}", "1.5"),
    ("return {double = 0/0}", "-nan"),
    ("return {map = {a = 1}}", ["a", 1]),
    ("return {set = {a = true}}", ["a"]),
    ("return {big_number = '12345678901234567890'}", "12345678901234567890"),
    ("return {verbatim_string = {format = 'txt', string = 'text'}}", "text"),
    ("redis.setresp(3) return redis.call('HGETALL', 'h')", ["f", "v"]),
    ("redis.setresp(3) return redis.call('ZSCORE', 'z', 'm')", "1.5"),
    ("return redis.call('HGETALL', 'h')", ["f", "v"]),
    ("return {KEYS[1], ARGV[1], ARGV[2]}", ["k", "7", "true"]),
    ("return '\"quoted\" \\\\ \\t'", '"quoted" \\ \t'),
]


@pytest.mark.parametrize("script, expected", RETURNED, ids=[script for script, _ in RETURNED])
def test_what_scripts_return(web, redis, script, expected):
    redis("HSET", "h", "f", "v")
    redis("ZADD", "z", "1.5", "m")
    assert web.post("/", ["EVAL", script, 1, "k", 7, True]).json == {"result": expected}
    assert web.post("/multi-exec", [["EVAL", script, 1, "k", 7, True], ["PING"]]).json == [{"result": expected}, {"result": "PONG"}]


def test_errors(web, redis):
    redis("SET", "text", "x")
    for script, error in [
        ("error('no')", "ERR user_script:1: no script: 77e6d8ec29bd56d7d9b6b1a5a4d9d1fa9b9dc1ed, on @user_script:1."),
        ("return redis.error_reply('MINE is here')", "MINE is here"),
        ("x x", "ERR Error compiling script (new function): user_script:1: '=' expected near 'x'"),
        ("redis.call('SET', 'kept', 1) return redis.call('INCR', 'text')", "ERR value is not an integer or out of range script: "),
    ]:
        answer = web.post("/", ["EVAL", script, 0])
        assert answer.status == 400
        assert answer.json["error"].split(" script: ")[0] == error.split(" script: ")[0]
    assert redis("GET", "kept") == b"1"
    assert web.post("/", ["EVAL", "return 1", "x"]).json == {"error": "ERR value is not an integer or out of range"}
    unknown = web.post("/", ["EVALSHA", "f" * 40, 0])
    assert unknown.status == 400 and unknown.json["error"].startswith("NOSCRIPT ")


def test_scripts_in_pipelines_and_transactions(web, redis):
    incr = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
    sha = web.post("/", ["SCRIPT", "LOAD", incr]).json["result"]
    assert sha == redis("SCRIPT", "LOAD", incr).decode()
    commands = [["EVAL", incr, 1, "n", 5], ["EVALSHA", sha, 1, "n", 6], ["EVAL", "redis.call('INCR', 'n') error('after')", 0], ["GET", "n"]]
    for path in ("/pipeline", "/multi-exec"):
        redis("DEL", "n")
        answers = web.post(path, commands).json
        assert [answers[0], answers[1], answers[3]] == [{"result": 5}, {"result": 11}, {"result": "12"}]
        assert answers[2]["error"].startswith("ERR user_script:1: after ")
    redis("DEL", "n")
    taken_back = [["INCR", "n"], ["EVAL", "#!lua flags=rollback\nredis.call('INCR', 'n') error('after')", 0], ["GET", "n"]]
    assert web.post("/multi-exec", taken_back).json[2] == {"result": "1"}


def test_paths_and_encodings(web, redis):
    redis("SET", "k", b"\x00\xff")
    sha = redis("SCRIPT", "LOAD", "return redis.call('GET', KEYS[1])").decode()
    answer = web.get(f"/evalsha_ro/{sha}/1/k", headers={"Upstash-Encoding": "base64"})
    assert answer.json == {"result": b64(b"\x00\xff")}
    assert web.get("/eval_ro/return%20ARGV%5B1%5D/0/a%20b").json == {"result": "a b"}
    assert web.post("/eval/return%20ARGV%5B1%5D/0", b"the body").json == {"result": "the body"}
    refused = web.post("/", ["EVAL_RO", "return redis.call('SET', 'k', 1)", 0])
    assert refused.status == 400 and refused.json["error"].startswith("ERR Write commands are not allowed from read-only scripts.")
