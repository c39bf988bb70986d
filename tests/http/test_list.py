"""GET /keys: pages in key order."""

import base64

import pytest

from harness.http import b64, quote


def pages(web, cursor=None, **query):
    keys, n = [], 0
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


def test_ranges(web, redis):
    """from is in the range, to is not, whatever their order and the direction; every size of page finds the same keys."""
    for i in range(100):
        redis("SET", f"k{i:02d}", "v")
    redis("DEL", "k50")
    redis("SET", "k51", "v", "PX", "1")
    redis("DEBUG", "CLOCK", "+10")
    every = [f"k{i:02d}" for i in range(100) if i not in (50, 51)]
    for low, high in (("k10", "k20"), ("k45", "k55"), ("k50", "k52"), ("k10", "k10"), ("k20", "k10"), ("", "k03"), ("k97", "zz"), ("k", "k9x")):
        wanted = [k for k in every if low <= k < high]
        for limit in (1, 3, 1000):
            assert names(web, **{"from": low, "to": high, "limit": limit}) == wanted
            assert names(web, **{"from": low, "to": high, "limit": limit, "reverse": "true"}) == wanted[::-1]
    assert names(web, **{"from": "k95"}) == every[-5:]
    assert names(web, to="k05") == every[:5]
    assert names(web, reverse="true", limit=7) == every[::-1]
    assert names(web, reverse="false", limit=7) == every
    assert names(web, prefix="k4", **{"from": "k45", "to": "k99"}) == [f"k4{i}" for i in range(5, 10)]
    assert names(web, prefix="k4", reverse="true", limit=4) == [f"k4{i}" for i in range(9, -1, -1)]
    assert names(web, match="k?0", reverse="true", limit=2) == [f"k{i}0" for i in (9, 8, 7, 6, 4, 3, 2, 1, 0)]


def test_ranges_of_long_and_odd_keys(web, redis):
    """Keys that a database server's index has only the beginning of, and bytes that are no text."""
    keys = [b"a", b"b" * 991, *(b"b" * 994 + bytes([i]) * 30 for i in (1, 200, 7)), b"b" * 1000, b"c", b"\xff", b"\xff\xff\x01"]
    for key in keys:
        redis("SET", key, "v")
    for reverse in ("false", "true"):
        found = pages(web, limit=2, reverse=reverse, encoding="base64")[0]
        assert [k["key"] for k in found] == [b64(k) for k in sorted(keys, reverse=reverse == "true")]
    found = pages(web, limit=1, reverse="true", encoding="base64", **{"from": b"b" * 994 + b"\x05", "to": b"\xff\xff"})[0]
    assert [k["key"] for k in found] == [b64(k) for k in sorted(keys, reverse=True) if b"b" * 994 + b"\x05" <= k < b"\xff\xff"]


def test_pages_while_keys_come_and_go(web, redis):
    """What stays is on one page, in either direction, also when the key that a page ended with is gone."""
    for i in range(20):
        redis("SET", f"k{i:02d}", "v")
    for reverse, gone, late in (("false", "k04", "k00"), ("true", "k15", "k19")):
        redis("SET", gone, "v")
        first = web.get("/keys", limit=5, reverse=reverse).json
        assert first["keys"][-1]["key"] == gone
        redis("DEL", gone)
        redis("SET", late, "again")
        seen = [k["key"] for k in first["keys"]] + names(web, limit=6, reverse=reverse, cursor=first["cursor"])
        assert len(seen) == len(set(seen)) and set(seen) >= {f"k{i:02d}" for i in range(20)} - {"k04", "k15"}


def test_values(web, redis):
    redis("SET", "a", "12345")
    redis("SET", "b", "x" * 100000, "EX", "100")
    redis("HSET", "h", "f", "v")
    redis("RPUSH", "l", *"1234567")
    redis("SADD", "s", "m")
    redis("ZADD", "z", "1.5", "m")
    redis("SET", "\xff", b"\xff\x00")
    for entry in pages(web, values="true", limit=3, encoding="base64")[0]:
        whole = web.get(f"/keys/{quote(base64.b64decode(entry['key']))}", limit=3, encoding="base64").json
        ttl = entry.pop("ttl")
        assert (ttl is None) == (whole["expire_at"] is None)
        size = entry.pop("size") if whole["type"] == "string" else None
        assert entry == whole
        if size is not None:
            assert size == len(base64.b64decode(whole["value"]))
    entry = web.get("/keys", prefix="l", values="true", limit=3).json["keys"][0]
    assert entry["value"] == ["1", "2", "3"] and entry["size"] == 7 and entry["cursor"] == "3"
    assert web.get("/keys/l", cursor=entry["cursor"]).json["value"] == list("4567")
    raw = web.get("/keys", reverse="true", values="true", limit=1).json["keys"][0]
    assert raw["encoding"] == "base64" and raw["value"] == b64(b"\xff\x00")
    assert "value" not in web.get("/keys", values="false").json["keys"][0]


def test_values_that_have_expired(web, redis):
    redis("DEBUG", "CLOCK", "1000000")
    redis("SET", "a", "v", "PX", "10")
    redis("HSET", "h", "f", "v", "g", "w")
    redis("HPEXPIRE", "h", "10", "FIELDS", "1", "f")
    redis("HSET", "i", "f", "v")
    redis("HPEXPIRE", "i", "10", "FIELDS", "1", "f")
    redis("DEBUG", "CLOCK", "+10")
    for reverse in ("true", "false"):
        keys = web.get("/keys", values="true", reverse=reverse).json["keys"]
        assert [(k["key"], k["value"], k["size"]) for k in keys] == [("h", {"g": "w"}, 1)]


def test_pages_with_large_values_end_early(web, redis):
    """And say where the next one begins."""
    for i in range(6):
        redis("SET", f"k{i}", "x" * (7 << 20))
    found, n = pages(web, values="true")
    assert [k["key"] for k in found] == [f"k{i}" for i in range(6)] and n == 2
    assert all(len(k["value"]) == 7 << 20 for k in found)


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
    "query", [{"limit": "0"}, {"limit": "1001"}, {"limit": "x"}, {"cursor": "%"}, {"cursor": ""}, {"type": "x"}, {"at": "head"},
              {"reverse": "x"}, {"reverse": ""}, {"values": "1"}]  # fmt: skip
)
def test_mistakes(web, query):
    assert web.get("/keys", **query).status == 400


def test_databases(web, redis):
    redis("SELECT", "2")
    redis("SET", "k2", "v")
    assert names(web) == [] and names(web, db=2) == ["k2"]
