"""Modes and tokens of requests on one server: what is taken, what is refused, what answers tell. What the modes promise
over replicas is tested in tests/databases."""

import re

import pytest

NOTHING = "AQAAAAAAAAAAAAAAAAAAABSXfLA"  # the token of a client that has neither written nor seen anything
FOREIGN = "AQEAAAMAAABjAAAAAAAAAEgBAAMAAAAAOgaEDQ"  # a PostgreSQL's that nobody has
HUGE = "x" * 20000


def test_every_mode_reads_what_was_written(web):
    web.put("/keys/k", {"value": "v"})
    for mode in ("strong", "Session", "bounded=1", "BOUNDED=86400000", " eventual "):
        answer = web.get("/keys/k", headers={"Larder-Consistency": mode})
        assert answer.json["value"] == "v"
        assert answer.headers["Larder-Read"] == "primary"
        assert ("Larder-Token" in answer.headers) == (mode == "Session")
    for consistent in ("true", "false"):
        for path in ("/keys/k", "/get/k"):
            answer = web.get(path, consistent=consistent)
            assert answer.status == 200 and answer.headers["Larder-Read"] == "primary"
    plain = web.get("/keys/k")
    assert not [name for name in plain.headers if name.lower().startswith("larder")]
    assert "Larder-Read" not in web.put("/keys/k", {"value": "v"}, headers={"Larder-Consistency": "eventual"}).headers


@pytest.mark.parametrize(
    "mode", ["", "weak", "bounded", "bounded=", "bounded=0", "bounded=-1", "bounded=1000000000000000000", "bounded=1e3", HUGE]
)
def test_a_mode_that_is_none_is_refused(web, mode):
    web.put("/keys/k", {"value": "v"})
    answer = web.get("/keys/k", headers={"Larder-Consistency": mode})
    assert (answer.status, answer.error) == (400, "bad_consistency")
    answer = web.get("/set/k/w", headers={"Larder-Consistency": mode})
    assert answer.status == 400 and answer.json["error"].startswith("ERR ")
    assert web.get("/get/k").json["result"] == "v"


def test_consistent_is_true_or_false(web):
    for path in ("/keys/k", "/get/k"):
        assert web.get(path, consistent="maybe").status == 400


@pytest.mark.parametrize("name", ["Larder-Token", "upstash-sync-token", "UPSTASH-SYNC-TOKEN"])
def test_a_token_is_answered_under_its_name(web, name):
    for token in ("", NOTHING):
        for path in ("/keys/none", "/get/none"):
            answer = web.get(path, headers={name: token})
            assert re.fullmatch("[A-Za-z0-9_-]{27,127}", answer.headers[name])
            assert answer.headers["Larder-Read"] == "primary"
    both = web.get("/get/none", headers={"Larder-Token": "", "Upstash-Sync-Token": ""})
    assert "Larder-Token" in both.headers and "Upstash-Sync-Token" not in both.headers
    for path, body in (("/pipeline", [["SET", "a", 1], ["GET", "a"]]), ("/multi-exec", [["SET", "a", 1]]), ("/", ["SET", "a", "1"])):
        answer = web.post(path, body, headers={name: ""})
        assert answer.status == 200 and len(answer.headers[name]) >= len(NOTHING)
    answer = web.post("/batch", {"operations": [{"op": "put", "key": "b", "value": "1"}]}, headers={name: ""})
    assert answer.status == 200 and answer.headers[name]


def test_an_answers_token_is_taken_again(web):
    token = ""
    for i in range(3):
        answer = web.put("/keys/k", {"value": str(i)}, headers={"Larder-Token": token})
        assert answer.status in (200, 201)
        token = answer.headers["Larder-Token"]
        answer = web.get("/keys/k", headers={"Larder-Token": token, "Larder-Consistency": "session"})
        assert answer.json["value"] == str(i)
        token = answer.headers["Larder-Token"]


BAD = ["x", "=", NOTHING[:-1], NOTHING[1:], NOTHING + "A", NOTHING[:5] + "B" + NOTHING[6:], HUGE]


@pytest.mark.parametrize("token", BAD)
@pytest.mark.parametrize("name", ["Larder-Token", "Upstash-Sync-Token"])
def test_a_token_that_is_none_is_refused(web, redis, name, token):
    redis("SET", "k", "v")
    answer = web.put("/keys/k", {"value": "w"}, headers={name: token})
    assert (answer.status, answer.error) == (400, "bad_token")
    answer = web.post("/", ["SET", "k", "w"], headers={name: token})
    assert answer.status == 400 and answer.json["error"].startswith("BADTOKEN ")
    assert redis("GET", "k") == b"v"


def test_a_token_of_another_database_is_refused(web, redis):
    redis("SET", "k", "v")
    answer = web.put("/keys/k", {"value": "w"}, headers={"Larder-Token": FOREIGN})
    assert (answer.status, answer.error) == (409, "foreign_token")
    for path, body in (("/", ["SET", "k", "w"]), ("/pipeline", [["SET", "k", "w"]]), ("/multi-exec", [["SET", "k", "w"]])):
        answer = web.post(path, body, headers={"Larder-Token": FOREIGN})
        assert answer.status == 409 and answer.json["error"].startswith("FOREIGNTOKEN ")
        assert "Larder-Token" not in answer.headers
    assert redis("GET", "k") == b"v"


def test_who_cannot_get_rid_of_a_foreign_token_is_served(web, redis):
    """Upstash's clients keep their token when a request fails, and would send it for ever."""
    for path, body in (("/", ["INCR", "n"]), ("/pipeline", [["INCR", "n"]]), ("/multi-exec", [["INCR", "n"]])):
        answer = web.post(path, body, headers={"Upstash-Sync-Token": FOREIGN})
        assert (answer.status, answer.headers["Larder-Token-State"]) == (200, "foreign")
        token = answer.headers["Upstash-Sync-Token"].strip()
        assert token != FOREIGN
        answer = web.post("/", ["GET", "n"], headers={"Upstash-Sync-Token": token, "Larder-Consistency": "session"})
        assert answer.status == 200 and "Larder-Token-State" not in answer.headers
    assert redis("GET", "n") == b"3"


def test_each_request_stands_alone(web):
    for command in (["READONLY"], ["READWRITE"], ["LARDER.CONSISTENCY", "EVENTUAL"], ["LARDER.TOKEN"]):
        assert web.post("/", command).status == 400
    web.put("/keys/k", {"value": "v"})
    assert web.post("/", ["LARDER.READ", "BOUNDED", 50, "GET", "k"]).json == {"result": "v"}
    assert web.post("/", ["WAIT", 0, 0]).json == {"result": 0}
