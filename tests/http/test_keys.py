"""GET, PUT and DELETE of whole keys: values of every type, conditions, expiry, encodings, mistakes."""

import json

import pytest

from harness.http import b64, quote

RAW = {"Content-Type": "application/octet-stream"}
BYTES = {"Accept": "application/octet-stream"}


def test_put_get_delete(web):
    answer = web.put("/keys/user:123", {"value": "Alice", "ttl": 60})
    assert answer.status == 201
    created = answer.json
    assert created["key"] == "user:123" and created["value"] == "Alice" and created["type"] == "string"
    assert created["expire_at"] > 0 and answer.etag == f'"{created["version"]}"'

    answer = web.get("/keys/user:123")
    assert answer.status == 200 and answer.json == created and answer.etag == f'"{created["version"]}"'

    answer = web.put("/keys/user:123", {"value": "Bob"})
    assert answer.status == 200
    assert answer.json["version"] > created["version"] and answer.json["expire_at"] is None

    assert web.delete("/keys/user:123").json == {"deleted": True}
    for answer in (web.get("/keys/user:123"), web.delete("/keys/user:123")):
        assert answer.status == 404
        assert answer.json == {"error": "key_not_found", "message": "Key Not Found"}


def test_the_same_store_as_redis(web, redis):
    web.put("/keys/k", {"value": "v", "ttl_ms": 100000})
    assert redis("GET", "k") == b"v"
    assert 0 < redis("PTTL", "k") <= 100000
    redis("SET", "k", "w")
    assert web.get("/keys/k").json["value"] == "w"
    redis("DEL", "k")
    assert web.get("/keys/k").status == 404


def test_expired_is_not_there(web, redis):
    redis("DEBUG", "CLOCK", "1000000")
    answer = web.put("/keys/k", {"value": "v", "expire_at": 1000500})
    assert answer.status == 201 and answer.json["expire_at"] == 1000500
    redis("DEBUG", "CLOCK", "+499")
    assert web.get("/keys/k").status == 200
    redis("DEBUG", "CLOCK", "+1")
    assert web.get("/keys/k").status == 404
    assert web.delete("/keys/k").status == 404
    assert web.put("/keys/k", {"value": "anew"}, headers={"If-None-Match": "*"}).status == 201


@pytest.mark.parametrize("key", [b"a/b", b"a b", b"%2F", b"\x00\x01", "häß/€".encode(), b"\xff\xfe", b"", b"..", b"+&=?#"])
def test_keys_are_bytes(web, redis, key):
    path = "/keys/" + quote(key)
    assert web.put(path, b"value of it", headers=RAW).status == 201
    assert redis("GET", key) == b"value of it"
    document = web.get(path).json
    try:
        text = key.decode()
        assert document["key"] == text and "encoding" not in document
    except UnicodeDecodeError:
        assert document["key"] == b64(key) and document["encoding"] == "base64"
        assert document["value"] == b64(b"value of it")
    assert web.delete(path).status == 200
    assert redis("EXISTS", key) == 0


def test_weak_tags(web):
    """RFC 9110: If-Match compares strongly, and a weak tag is never equal then; If-None-Match does not care."""
    etag = web.put("/keys/k", {"value": "v"}).etag
    for method, path in (("PUT", "/keys/k"), ("DELETE", "/keys/k"), ("GET", "/keys/k"), ("PUT", "/keys/k/ttl?ttl=9")):
        answer = web(method, path, b"w" if method == "PUT" and "ttl" not in path else None, headers={**RAW, "If-Match": "W/" + etag})
        assert answer.status == 412 and answer.error == "precondition_failed", answer
    assert web.get("/keys/k").json["value"] == "v"
    assert web.get("/keys/k", headers={"If-None-Match": "W/" + etag}).status == 304
    assert web.put("/keys/k", b"w", headers={**RAW, "If-None-Match": "W/" + etag}).status == 412
    assert web.put("/keys/k", b"w", headers={**RAW, "If-Match": f"W/{etag}, {etag}"}).status == 200


def test_minimal_answers(web, redis):
    """Prefer: return=minimal: what was created or replaced is told by the status and the version alone."""
    minimal = {"Prefer": "respond-async, return=minimal"}
    answer = web.put("/keys/k", {"value": "v"}, headers=minimal)
    assert answer.status == 201 and answer.body == b"" and answer.headers["Content-Length"] == "0"
    assert answer.headers["Preference-Applied"] == "return=minimal"
    answer = web.put("/keys/k", {"value": "w"}, headers=minimal)
    assert answer.status == 204 and answer.body == b"" and answer.headers["Preference-Applied"] == "return=minimal"
    assert "Content-Type" not in answer.headers and "Content-Length" not in answer.headers
    assert answer.etag == web.get("/keys/k").etag and redis("GET", "k") == b"w"
    for path, body in (("/keys/k/ttl", {"ttl": 100}), ("/keys/h/fields/f", {"value": "v"}), ("/keys/z/members/m", {"score": 1})):
        web.put(path, body)
        answer = web.put(path, body, headers=minimal)
        assert answer.status == 204 and answer.body == b"" and answer.headers["Preference-Applied"] == "return=minimal", path
    failed = web.put("/keys/k", {"value": "x"}, headers={**minimal, "If-None-Match": "*"})
    assert failed.status == 412 and failed.error == "precondition_failed" and "Preference-Applied" not in failed.headers
    for other in ("return=representation", "return", "minimal", "return=representation, return=minimal"):
        answer = web.put("/keys/k", {"value": "y"}, headers={"Prefer": other})
        assert answer.status == 200 and answer.json["value"] == "y" and "Preference-Applied" not in answer.headers
    assert web.get("/keys/k", headers=minimal).json["value"] == "y"
    assert web.put("/set/k/z", headers=minimal).json == {"result": "OK"}


def test_a_slash_in_a_path_is_no_part_of_a_key(web):
    answer = web.put("/keys/a/b", b"x", headers=RAW)
    assert answer.status == 404 and answer.error == "unknown_path" and "%2F" in answer.json["message"]


@pytest.mark.parametrize("path", ["/keys/%", "/keys/%2", "/keys/%zz", "/keys/a%"])
def test_bad_percent_encoding(web, path):
    answer = web.get(path)
    assert answer.status == 400 and answer.error == "bad_encoding"


@pytest.mark.parametrize("value", [b"", b"plain", b"\x00\xff\r\n", bytes(range(256)), b"x" * 200_000])
def test_raw_bytes(web, redis, value):
    answer = web.put("/keys/k", value, headers=RAW, ttl=100)
    assert answer.status == 201 and 0 < redis("TTL", "k") <= 100
    assert redis("GET", "k") == value
    answer = web.get("/keys/k", headers=BYTES)
    assert answer.body == value and answer.headers["Content-Type"] == "application/octet-stream" and answer.etag
    document = web.get("/keys/k").json
    assert document["value"] == (b64(value) if document.get("encoding") else value.decode())
    assert web.get("/keys/k", encoding="base64").json["value"] == b64(value)


def test_base64_both_ways(web, redis):
    web.put("/keys/k", {"value": b64(b"\xff\x00"), "encoding": "base64"})
    assert redis("GET", "k") == b"\xff\x00"
    web.put("/keys/h", {"type": "hash", "value": {b64(b"\xfe"): b64(b"\xfd")}, "encoding": "base64"})
    assert redis("HGETALL", "h") == [b"\xfe", b"\xfd"]
    document = web.get("/keys/h").json
    assert document["encoding"] == "base64" and document["value"] == {b64(b"\xfe"): b64(b"\xfd")}
    # What was read can be written again.
    assert web.put("/keys/h2", {k: document[k] for k in ("type", "value", "encoding")}).status == 201
    assert redis("HGETALL", "h2") == [b"\xfe", b"\xfd"]


TYPED = [
    ("string", "text", "text"),
    ("string", 12.5, "12.5"),
    ("hash", {"a": "1", "b": 2}, {"a": "1", "b": "2"}),
    ("list", ["a", "b", "a", 1], ["a", "b", "a", "1"]),
    ("set", ["a", "b"], ["a", "b"]),
    ("zset", {"a": 2, "b": 1.5}, [{"member": "b", "score": 1.5}, {"member": "a", "score": 2}]),
    ("zset", [{"member": "x", "score": "inf"}, {"member": "y", "score": "-inf"}],
     [{"member": "y", "score": "-inf"}, {"member": "x", "score": "inf"}]),
]  # fmt: skip


@pytest.mark.parametrize("kind,value,expected", TYPED)
def test_typed_values(web, redis, kind, value, expected):
    redis("SET", "k", "something else")
    answer = web.put("/keys/k", {"type": kind, "value": value, "ttl": 1000})
    assert answer.status == 200
    assert redis("TYPE", "k") == kind.encode()
    assert 0 < redis("TTL", "k") <= 1000
    document = web.get("/keys/k").json
    got = sorted(document["value"]) if kind == "set" else document["value"]
    assert got == expected and document["type"] == kind and document["expire_at"]
    assert answer.json == document
    if kind != "string":
        assert document["size"] == len(expected)


def test_values_made_by_redis(web, redis):
    redis("RPUSH", "l", "a", "b")
    redis("ZADD", "z", "3", "m")
    redis("HSET", "h", "f", "\u20ac")
    assert web.get("/keys/l").json["value"] == ["a", "b"]
    assert web.get("/keys/z").json["value"] == [{"member": "m", "score": 3}]
    assert web.get("/keys/h").json["value"] == {"f": "\u20ac"}


def test_pages_of_large_collections(web, redis):
    for i in range(0, 2500, 100):
        redis("RPUSH", "l", *[str(n) for n in range(i, i + 100)])
        redis("SADD", "s", *[str(n) for n in range(i, i + 100)])
        redis("ZADD", "z", *[x for n in range(i, i + 100) for x in (str(n), f"m{n}")])
        redis("HSET", "h", *[x for n in range(i, i + 100) for x in (f"f{n}", str(n))])
    for key in "lszh":
        items, cursor, pages = [], None, 0
        while True:
            document = web.get(f"/keys/{key}", limit=700, **({"cursor": cursor} if cursor else {})).json
            value = document["value"]
            items += value.items() if key == "h" else value
            pages += 1
            assert document["size"] == 2500
            cursor = document.get("cursor")
            if cursor is None:
                break
        assert pages >= 3
        if key == "l":
            assert items == [str(n) for n in range(2500)]
        elif key == "z":
            assert [i["member"] for i in items] == [f"m{n}" for n in range(2500)]
        elif key == "s":
            assert sorted(items, key=int) == [str(n) for n in range(2500)]
        else:
            assert dict(items) == {f"f{n}": str(n) for n in range(2500)} and len(items) == 2500
    assert len(web.get("/keys/l").json["value"]) == 1000
    assert web.get("/keys/l", cursor=9999).json["value"] == []


def test_conditions(web):
    assert web.put("/keys/k", {"value": "a"}, headers={"If-Match": '"1"'}).status == 412
    first = web.put("/keys/k", {"value": "a"}, headers={"If-None-Match": "*"})
    assert first.status == 201

    answer = web.put("/keys/k", {"value": "b"}, headers={"If-None-Match": "*"})
    assert answer.status == 412 and answer.error == "precondition_failed"
    assert answer.json["version"] == first.json["version"] and answer.etag == first.etag

    second = web.put("/keys/k", {"value": "b"}, headers={"If-Match": first.etag})
    assert second.status == 200
    answer = web.put("/keys/k", {"value": "c"}, headers={"If-Match": first.etag})
    assert answer.status == 412 and answer.json["version"] == second.json["version"]
    assert web.put("/keys/k", {"value": "c"}, headers={"If-Match": f'"7", {second.etag}'}).status == 200
    third = web.get("/keys/k")
    assert third.json["value"] == "c"

    assert web.get("/keys/k", headers={"If-None-Match": second.etag}).status == 200
    answer = web.get("/keys/k", headers={"If-None-Match": third.etag})
    assert answer.status == 304 and answer.body == b"" and answer.etag == third.etag
    assert web.get("/keys/k", headers={"If-None-Match": "*"}).status == 304
    assert web("HEAD", "/keys/k", headers={"If-None-Match": third.etag}).status == 304
    assert web.get("/keys/k", headers={"If-Match": third.etag}).status == 200
    assert web.get("/keys/k", headers={"If-Match": second.etag}).status == 412
    assert web("HEAD", "/keys/k", headers={"If-Match": second.etag}).status == 412

    assert web.delete("/keys/k", headers={"If-Match": second.etag}).status == 412
    assert web.delete("/keys/k", headers={"If-Match": third.etag}).status == 200
    assert web.delete("/keys/k", headers={"If-Match": "*"}).status == 412


def test_a_version_is_never_used_again(web, redis):
    seen = set()
    for i in range(20):
        seen.add(web.put("/keys/k", {"value": "same"}).json["version"])
        if i % 3 == 0:
            redis("DEL", "k")
    assert len(seen) == 20


def test_every_change_has_a_version(web, redis):
    redis("DEBUG", "CLOCK", "1000000")
    redis("HSET", "h", "f", "1", "g", "1")
    seen = [web.get("/keys/h").etag]
    redis("HSET", "h", "f", "2")
    seen.append(web.get("/keys/h").etag)
    redis("HPEXPIRE", "h", "10", "FIELDS", "1", "f")
    seen.append(web.get("/keys/h").etag)
    redis("DEBUG", "CLOCK", "+20")
    answer = web.get("/keys/h")
    assert answer.json["value"] == {"g": "1"}
    seen.append(answer.etag)
    redis("EXPIRE", "h", "100")
    seen.append(web.get("/keys/h").etag)
    assert len(set(seen)) == 5


def test_caches_know_what_an_answer_depends_on(web, redis):
    redis("SET", "k", "v")
    redis("HSET", "h", "f", "v")
    redis("RPUSH", "l", "v")
    for path in ("/keys/k", "/keys/h/fields/f", "/keys/l/items/0"):
        assert web.get(path).headers["Vary"] == "Accept"
    assert web.get("/keys/k", headers={"If-None-Match": "*"}).headers["Vary"] == "Accept"


def test_head(web):
    web.put("/keys/k", {"value": "value"})
    got, head = web.get("/keys/k"), web("HEAD", "/keys/k")
    assert head.status == 200 and head.body == b"" and head.etag == got.etag
    assert int(head.headers["Content-Length"]) == len(got.body)
    assert web("HEAD", "/keys/none").status == 404
    assert web.get("/keys/k").status == 200  # the connection is where it should be


def test_databases(web, redis):
    assert web.put("/keys/k", {"value": "in 3"}, db=3).status == 201
    assert web.get("/keys/k").status == 404
    assert web.get("/keys/k", db=3, consistent="true").json["value"] == "in 3"
    redis("SELECT", "3")
    assert redis("GET", "k") == b"in 3"
    for db in ("16", "-1", "x", ""):
        answer = web.get("/keys/k", db=db)
        assert answer.status == 400 and answer.error == "bad_parameter"


MISTAKES = [
    (b"{", "bad_json"),
    (b"[]", "bad_json"),
    (b'"text"', "bad_json"),
    (b'{"value":"a"} x', "bad_json"),
    (b'{"value":"\xff"}', "bad_json"),
    (b'{"value":"\\ud800"}', "bad_json"),
    ({}, "missing_field"),
    ({"ttl": 1}, "missing_field"),
    ({"value": "a", "colour": "red"}, "unknown_field"),
    ({"value": None}, "bad_value"),
    ({"value": True}, "bad_value"),
    ({"value": {"a": 1}}, "bad_value"),
    ({"value": ["a"]}, "bad_value"),
    ({"value": "a", "type": "stream"}, "bad_value"),
    ({"value": "a", "type": 3}, "bad_value"),
    ({"value": "a", "type": "list"}, "bad_value"),
    ({"value": [], "type": "list"}, "bad_value"),
    ({"value": {}, "type": "hash"}, "bad_value"),
    ({"value": ["a"], "type": "hash"}, "bad_value"),
    ({"value": {"a": []}, "type": "hash"}, "bad_value"),
    ({"value": {"a": "x"}, "type": "zset"}, "bad_value"),
    ({"value": [{"member": "a"}], "type": "zset"}, "bad_value"),
    ({"value": ["a"], "type": "zset"}, "bad_value"),
    ({"value": [{"member": "a", "score": 1, "colour": "red"}], "type": "zset"}, "unknown_field"),
    ({"value": "no base64", "encoding": "base64"}, "bad_value"),
    ({"value": "a", "encoding": "hex"}, "bad_value"),
    ({"value": "a", "ttl": 0}, "bad_ttl"),
    ({"value": "a", "ttl": -1}, "bad_ttl"),
    ({"value": "a", "ttl": 1.5}, "bad_ttl"),
    ({"value": "a", "ttl": "60"}, "bad_ttl"),
    ({"value": "a", "ttl": 10**19}, "bad_ttl"),
    ({"value": "a", "ttl": 1, "ttl_ms": 1}, "bad_ttl"),
    ({"value": "a", "expire_at": 1000}, "bad_ttl"),
]


@pytest.mark.parametrize("body,code", MISTAKES, ids=[json.dumps(str(m[0]))[:40] for m in MISTAKES])
def test_mistakes_change_nothing(web, body, code):
    before = web.put("/keys/k", {"value": "before"}).json
    headers = {"Content-Type": "application/json"} if isinstance(body, bytes) else {}
    answer = web.put("/keys/k", body, headers=headers)
    assert answer.status == 400 and answer.error == code, answer
    assert web.get("/keys/k").json == before


def test_what_the_body_is_must_be_said(web):
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = web.put("/keys/k", b'{"value":"v"}', headers={"Content-Type": kind})
        assert answer.status == 415 and answer.error == "unsupported_media_type"
    assert web.put("/keys/k", b"plain", headers={"Content-Type": "text/plain"}).status == 201
    assert web.put("/keys/k", b"nothing said").json["value"] == "nothing said"
    assert web.put("/keys/k", b'{"value":"v"}', headers={"Content-Type": "application/json; charset=utf-8"}).json["value"] == "v"


def test_wrong_queries_and_headers(web):
    web.put("/keys/k", {"value": "v"})
    for query, code in (({"colour": "red"}, "unknown_parameter"), ({"ttl": "1"}, "unknown_parameter"),
                        ({"limit": "0"}, "bad_parameter"), ({"consistent": "maybe"}, "bad_parameter"),
                        ({"encoding": "hex"}, "bad_parameter")):  # fmt: skip
        answer = web.get("/keys/k", **query)
        assert answer.status == 400 and answer.error == code, query
    assert web.get("/keys/k?db=1&db=1").error == "bad_parameter"
    assert web.put("/keys/k", b"v", headers=RAW, ttl="-1").error == "bad_ttl"
    for header in ("If-Match", "If-None-Match"):
        answer = web.put("/keys/k", {"value": "w"}, headers={header: "12"})
        assert answer.status == 400 and answer.error == "bad_header"
    assert web.get("/keys/k").json["value"] == "v"


def test_bytes_of_a_collection(web, redis):
    redis("SADD", "s", "a")
    answer = web.get("/keys/s", headers=BYTES)
    assert answer.status == 406 and answer.error == "not_acceptable"


def test_wrong_methods(web):
    answer = web.post("/keys/k", {"value": "v"})
    assert answer.status == 405 and answer.error == "method_not_allowed"
    assert {m.strip() for m in answer.headers["Allow"].split(",")} == {"OPTIONS", "GET", "HEAD", "PUT", "DELETE"}
    answer = web("OPTIONS", "/keys/k")
    assert answer.status == 204 and "PUT" in answer.headers["Allow"] and "Content-Length" not in answer.headers
    assert web("PATCH", "/keys/k").status == 405


def test_ttl(web, redis):
    redis("DEBUG", "CLOCK", "1000000")
    web.put("/keys/k", {"value": "v"})
    none = {"key": "k", "ttl": None, "ttl_ms": None, "expire_at": None}
    assert web.get("/keys/k/ttl").json == none
    first = web.put("/keys/k/ttl", {"ttl": 60})
    assert first.status == 200
    assert first.json == {"key": "k", "ttl": 60, "ttl_ms": 60000, "expire_at": 1060000}
    assert web.put("/keys/k/ttl", ttl_ms=1500).json["ttl"] == 2
    assert web.put("/keys/k/ttl", {"expire_at": 2000000}).json["ttl_ms"] == 1000000
    assert redis("PEXPIRETIME", "k") == 2000000
    assert web.put("/keys/k/ttl", {"ttl": 1}, headers={"If-Match": first.etag}).status == 412
    assert web.delete("/keys/k/ttl").json == none
    assert redis("TTL", "k") == -1
    for answer in (web.get("/keys/x/ttl"), web.put("/keys/x/ttl", {"ttl": 1}), web.delete("/keys/x/ttl")):
        assert answer.status == 404 and answer.error == "key_not_found"
    for body, code in (({}, "missing_field"), ({"ttl": -5}, "bad_ttl"), ({"x": 1}, "unknown_field"),
                       ({"expire_at": 999999}, "bad_ttl")):  # fmt: skip
        answer = web.put("/keys/k/ttl", body)
        assert answer.status == 400 and answer.error == code
    assert web.put("/keys/k/ttl").error == "missing_field"


def test_a_key_that_is_a_table(web, redis):
    redis("TABLE.CREATE", "people", "id INTEGER PRIMARY KEY, name TEXT, INDEX by_name (name)")
    redis("SET", "other", "x")
    got = web.get("/keys/people")
    assert got.status == 200 and got.json["type"] == "table" and got.etag == f'"{got.json["version"]}"'
    assert [column["name"] for column in got.json["value"]["columns"]] == ["id", "name"]
    assert web.get("/keys/people", headers=BYTES).status == 406
    (listed,) = web.get("/keys?type=table").json["keys"]
    assert listed["key"] == "people" and listed["type"] == "table" and listed["size"] == 0
    (listed,) = web.get("/keys?type=table&values=true").json["keys"]
    assert listed["value"] == got.json["value"]
    assert [key["key"] for key in web.get("/keys?limit=10").json["keys"]] == ["other", "people"]
    assert web.put("/keys/people", {"type": "table", "value": {}}).json["error"] == "bad_value"
    assert web.get("/keys/people/fields/id").status == 409
    assert web.get("/keys/people").json == got.json, "nothing has changed"
    assert web.delete("/keys/people", headers={"If-Match": got.etag}).json == {"deleted": True}
    assert web.get("/keys/people").status == 404
