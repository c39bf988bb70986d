"""Single items of collections by their names and places."""

import pytest

from harness.http import b64, quote

RAW = {"Content-Type": "application/octet-stream"}
BYTES = {"Accept": "application/octet-stream"}


def test_fields(web, redis):
    answer = web.put("/keys/h/fields/name", {"value": "Alice"})
    assert answer.status == 201 and answer.json == {"field": "name", "value": "Alice", "expire_at": None}
    assert answer.etag == web.get("/keys/h").etag
    assert web.put("/keys/h/fields/name", b"Bob", headers=RAW).status == 200
    assert redis("HGETALL", "h") == [b"name", b"Bob"]
    assert web.get("/keys/h/fields/name").json["value"] == "Bob"
    assert web.get("/keys/h/fields/name", headers=BYTES).body == b"Bob"
    missing = web.get("/keys/h/fields/other")
    assert missing.status == 404 and missing.error == "field_not_found"
    assert web.delete("/keys/h/fields/other").error == "field_not_found"
    assert web.delete("/keys/h/fields/name").json == {"deleted": True}
    assert redis("EXISTS", "h") == 0
    assert web.get("/keys/h/fields/name").error == "key_not_found"


def test_fields_that_expire(web, redis):
    redis("DEBUG", "CLOCK", "1000000")
    answer = web.put("/keys/h/fields/f", {"value": "v", "ttl_ms": 500})
    assert answer.json["expire_at"] == 1000500
    web.put("/keys/h/fields/g", {"value": "v"})
    redis("DEBUG", "CLOCK", "+500")
    assert web.get("/keys/h/fields/f").status == 404
    assert web.get("/keys/h").json["value"] == {"g": "v"} and web.get("/keys/h").json["size"] == 1
    assert web.get("/keys").json["keys"][0]["size"] == 1
    assert web.put("/keys/h/fields/f", {"value": "v", "expire_at": 5}).error == "bad_ttl"


@pytest.mark.parametrize("name", [b"a/b", b"", b"\x00", b"\xff", "\u20ac".encode()])
def test_names_are_bytes(web, redis, name):
    segment = quote(name)
    assert web.put(f"/keys/h/fields/{segment}", b"v", headers=RAW).status == 201
    assert redis("HGET", "h", name) == b"v"
    document = web.get(f"/keys/h/fields/{segment}").json
    assert document["field"] == (b64(name) if document.get("encoding") else name.decode())
    assert web.put(f"/keys/s/members/{segment}").status == 201
    assert redis("SISMEMBER", "s", name) == 1
    assert web.delete(f"/keys/s/members/{segment}").status == 200


def test_members_of_sets(web, redis):
    assert web.put("/keys/s/members/a").status == 201
    assert web.put("/keys/s/members/a", {}).status == 200
    assert redis("SMEMBERS", "s") == [b"a"]
    assert web.get("/keys/s/members/a").json == {"member": "a"}
    assert web.get("/keys/s/members/b").error == "member_not_found"
    answer = web.put("/keys/s/members/b", {"score": 1})
    assert answer.status == 400 and answer.error == "bad_value"
    assert web.delete("/keys/s/members/b").error == "member_not_found"
    assert web.delete("/keys/s/members/a").status == 200 and redis("EXISTS", "s") == 0


def test_members_of_sorted_sets(web, redis):
    assert web.put("/keys/z/members/b", {"score": 2}).json == {"member": "b", "score": 2, "rank": 0}
    assert web.put("/keys/z/members/a", {"score": 1.5}).json == {"member": "a", "score": 1.5, "rank": 0}
    assert web.put("/keys/z/members/c", {"score": "inf"}).json == {"member": "c", "score": "inf", "rank": 2}
    assert web.get("/keys/z/members/b").json == {"member": "b", "score": 2, "rank": 1}
    assert redis("ZRANGE", "z", "0", "-1") == [b"a", b"b", b"c"]
    assert web.put("/keys/z/members/b", {"score": 0}).status == 200
    for body in ({"score": "x"}, {"score": None}, {"score": True}):
        assert web.put("/keys/z/members/b", body).error == "bad_value"
    assert web.put("/keys/z/members/d", {"points": 1}).error == "unknown_field"
    answer = web.put("/keys/z/members/d")
    assert answer.status == 400 and "score" in answer.json["message"]
    assert web.delete("/keys/z/members/b").status == 200 and redis("ZCARD", "z") == 2


def test_places_of_lists(web, redis):
    assert web.post("/keys/l/items", {"value": "b"}).json == {"index": 0, "size": 1}
    assert web.post("/keys/l/items", b"c", headers=RAW).json == {"index": 1, "size": 2}
    assert web.post("/keys/l/items", {"value": "a"}, at="head").json == {"index": 0, "size": 3}
    assert redis("LRANGE", "l", "0", "-1") == [b"a", b"b", b"c"]
    assert web.get("/keys/l/items/1").json == {"index": 1, "value": "b"}
    assert web.get("/keys/l/items/-1").json == {"index": 2, "value": "c"}
    assert web.get("/keys/l/items/0", headers=BYTES).body == b"a"
    assert web.put("/keys/l/items/-1", {"value": "z"}).json == {"index": 2, "value": "z"}
    assert web.delete("/keys/l/items/1").json == {"deleted": True}
    assert redis("LRANGE", "l", "0", "-1") == [b"a", b"z"]
    for index in ("2", "-3", "99999999999"):
        for answer in (web.get(f"/keys/l/items/{index}"), web.delete(f"/keys/l/items/{index}"),
                       web.put(f"/keys/l/items/{index}", {"value": "x"})):  # fmt: skip
            assert answer.status == 404 and answer.error == "index_not_found"
    assert web.get("/keys/l/items/x").error == "bad_index"
    assert web.get("/keys/none/items/0").error == "key_not_found"
    assert web.post("/keys/l/items", {"value": "a"}, at="middle").error == "bad_parameter"
    assert web.post("/keys/l/items", {"value": "a", "ttl": 5}).error == "bad_ttl"
    assert web.post("/keys/l/items", {"value": ["a"], "type": "list"}).error == "bad_value"


def test_wrong_types(web, redis):
    redis("SET", "string", "v")
    for method, path, body in (
        ("GET", "fields/f", None), ("PUT", "fields/f", {"value": "v"}), ("DELETE", "fields/f", None),
        ("GET", "members/m", None), ("PUT", "members/m", None), ("DELETE", "members/m", None),
        ("GET", "items/0", None), ("PUT", "items/0", {"value": "v"}), ("DELETE", "items/0", None),
        ("POST", "items", {"value": "v"}),
    ):  # fmt: skip
        answer = web(method, f"/keys/string/{path}", body)
        assert answer.status == 409 and answer.error == "wrong_type", (method, path)
    assert redis("GET", "string") == b"v"


def test_conditions(web, redis):
    first = web.put("/keys/h/fields/a", {"value": "1"})
    second = web.put("/keys/h/fields/b", {"value": "1"}, headers={"If-Match": first.etag})
    assert second.status == 201
    for method, path, body in (
        ("PUT", "/keys/h/fields/a", {"value": "2"}),
        ("DELETE", "/keys/h/fields/a", None),
        ("PUT", "/keys/h/fields/new", {"value": "2"}),
    ):
        answer = web(method, path, body, headers={"If-Match": first.etag})
        assert answer.status == 412 and answer.json["version"] == int(second.etag.strip('"'))
    assert web.put("/keys/h/fields/a", {"value": "2"}, headers={"If-None-Match": "*"}).status == 412
    assert web.put("/keys/h/fields/c", {"value": "2"}, headers={"If-None-Match": "*"}).status == 201
    assert web.put("/keys/none/fields/a", {"value": "2"}, headers={"If-Match": "*"}).status == 412
    assert redis("EXISTS", "none") == 0
    assert redis("HGETALL", "h") == [b"a", b"1", b"b", b"1", b"c", b"2"]
