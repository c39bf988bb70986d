"""GET /keys: pages in key order."""

import pytest

from harness.http import b64


def pages(web, **query):
    keys, cursor, n = [], None, 0
    while True:
        answer = web.get("/keys", **query, **({"cursor": cursor} if cursor is not None else {}))
        assert answer.status == 200, answer
        keys += answer.json["keys"]
        n += 1
        cursor = answer.json["cursor"]
        if cursor is None:
            return keys, n
        assert n < 1000


def names(web, **query):
    return [entry["key"] for entry in pages(web, **query)[0]]


def test_what_is_told(web, redis):
    redis("DEBUG", "CLOCK", "1000000")
    redis("SET", "a", "12345", "PX", "1500")
    redis("HSET", "b", "f", "v", "g", "w")
    redis("RPUSH", "c", "1", "2", "3")
    redis("SET", "d", "x" * 100000)
    keys = web.get("/keys").json["keys"]
    versions = [k.pop("version") for k in keys]
    assert [f'"{v}"' for v in versions] == [web.get(f"/keys/{k}").etag for k in "abcd"]
    assert keys == [
        {"key": "a", "type": "string", "size": 5, "ttl": 2, "expire_at": 1001500},
        {"key": "b", "type": "hash", "size": 2, "ttl": None, "expire_at": None},
        {"key": "c", "type": "list", "size": 3, "ttl": None, "expire_at": None},
        {"key": "d", "type": "string", "size": 100000, "ttl": None, "expire_at": None},
    ]
    redis("DEBUG", "CLOCK", "+1500")
    assert names(web) == ["b", "c", "d"]


def test_pages_in_order(web, redis):
    wanted = sorted(f"k{i * 7919 % 1000:03d}" for i in range(1000))
    for key in reversed(wanted):
        redis("SET", key, "v")
    redis("DEL", "k500")
    wanted.remove("k500")
    for limit in (1000, 100, 7, 333):
        keys, n = pages(web, limit=limit)
        assert [k["key"] for k in keys] == wanted
        assert n >= len(wanted) // limit
    assert names(web, prefix="k12") == [f"k12{i}" for i in range(10)]
    assert names(web, prefix="k12", limit=3) == [f"k12{i}" for i in range(10)]
    assert names(web, prefix="none") == []


def test_filters(web, redis):
    for i in range(300):
        redis("SET", f"s{i:03d}", "v")
        if i % 10 == 0:
            redis("SADD", f"t{i:03d}", "v")
    assert names(web, match="s*5", limit=10) == [f"s{i:03d}" for i in range(300) if i % 10 == 5]
    assert names(web, match="*00") == ["s000", "s100", "s200", "t000", "t100", "t200"]
    assert names(web, type="set", limit=7) == [f"t{i:03d}" for i in range(0, 300, 10)]
    assert names(web, type="hash") == []
    assert names(web, prefix="s1", match="*9") == [f"s1{i}9" for i in range(10)]
    assert names(web, prefix="s1", match="t*") == []


def test_few_among_many(web, redis):
    """Rows are looked at by the thousand; what is too much for a page is on the next one."""
    redis("MSET", *(word for n in range(2500) for word in (f"k{n:04}", "v")))
    redis("SET", "", "v")
    wanted = ["", *(f"k{n:04}" for n in range(2500) if n % 7 == 0)]
    for n in range(0, 2500, 7):
        redis("DEL", f"k{n:04}")
        redis("SADD", f"k{n:04}", "m")
    redis("DEL", "")
    redis("SADD", "", "m")
    for limit in (1, 10, 1000):
        found, cursor = [], {}
        while cursor is not None:
            page = web.get("/keys", type="set", limit=limit, **cursor).json
            assert len(page["keys"]) <= limit
            found += [key["key"] for key in page["keys"]]
            cursor = {"cursor": page["cursor"]} if page["cursor"] else None
        assert found == wanted


def test_keys_are_bytes(web, redis):
    keys = [b"", b"\x00", b"a", b"a\x00b", b"a%", b"\xff", b"\xff\xff", "\u20ac".encode()]
    for key in keys:
        redis("SET", key, "v")
    found = []
    for entry in pages(web, limit=1)[0]:
        found.append(entry["key"] if "encoding" not in entry else entry["key"])
    assert found == [b64(k) if k.startswith(b"\xff") else k.decode() for k in sorted(keys)]
    assert names(web, prefix=b"\xff") == [b64(b"\xff"), b64(b"\xff\xff")]
    assert all(e["encoding"] == "base64" for e in pages(web, encoding="base64")[0])


def test_changes_between_pages(web, redis):
    """A key that is there all the time is met once, whatever comes and goes."""
    for i in range(100):
        redis("SET", f"stay{i:02d}", "v")
    seen, cursor, n = [], None, 0
    while True:
        page = web.get("/keys", limit=10, **({"cursor": cursor} if cursor else {})).json
        seen += [k["key"] for k in page["keys"] if k["key"].startswith("stay")]
        redis("SET", f"x{n}", "v")
        redis("SET", f"a{n}", "v")
        redis("DEL", f"x{n - 1}")
        n += 1
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == [f"stay{i:02d}" for i in range(100)]


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "1001"}, {"limit": "x"}, {"cursor": "%"}, {"cursor": ""}, {"type": "x"}, {"at": "head"}]
)
def test_mistakes(web, query):
    assert web.get("/keys", **query).status == 400


def test_databases(web, redis):
    redis("SELECT", "2")
    redis("SET", "k2", "v")
    assert names(web) == [] and names(web, db=2) == ["k2"]
