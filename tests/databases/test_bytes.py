"""Every type keeps every byte, on every database: prepared batches of hostile names and values, written through one server
and read through others that remember nothing of them."""

import random

import pytest

from harness import store

from .test_sql import literal, sql_get, sql_set

BATCHES = 200
MEGABYTE = 1 << 20

PIECES = [
    b"", b"\0", b"\0\0\0", b"a\0b", bytes(range(256)), bytes(range(255, -1, -1)), b"\xff", b"\xff" * 9, b"\x80", b"\xc3", b"\xc0\x80",
    b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", "grüße 🍞 \u202e".encode(), b"'", b"''", b'"', b"`", b"\\", b"\\'", b"\\0",
    b"\\x41", b"\\\\", b"%s%n%", b"_", b"$1", b"?1", b":a", b"{,|?1}", b"$$", b"--", b"/*", b"*/;", b"#", b";", b"NULL", b"\n", b"\r\n",
    b"\t", b"\x1a", b"\x1b[31m", b"' OR '1'='1", b"'; DROP TABLE larder_key; --", b"larder_key", b"1e400", b"-0", b"0x10", b" 1", b"1 ",
]  # fmt: skip
# Where columns, index entries and chunks end, on one database or another.
LENGTHS = [991, 992, 993, 999, 1000, 1001, 1023, 1024, 1025, 2047, 2703, 2704, 2705, 3071, 3072, 3073, 3100]
SCORES = ["0", "-0", "1.5", "-1e-300", "1e308", "inf", "-inf", "17", "3.0000000000000004", "9007199254740993", "-4.9e-324"]


def hostile(r):
    """A name or a value."""
    what = r.random()
    if what < 0.5:
        return b"".join(r.choice(PIECES) for _ in range(r.randint(1, 3)))
    if what < 0.75:
        return r.randbytes(r.choice([1, 2, 16, 64, 255, 256]))
    length = r.choice(LENGTHS)
    tail = r.choice(PIECES)[:length]  # long names that differ at their end alone
    return b"x" * (length - len(tail)) + tail


def value(r, large):
    return r.randbytes(MEGABYTE) if large else hostile(r)


def prepare(number):
    """A batch: commands, and what its keys hold afterwards."""
    r = random.Random(number)
    large = number % 50 == 0
    name = b"%d:" % number
    string, fields = value(r, large), {hostile(r): value(r, large) for _ in range(3)}
    items, members = [value(r, large), *(hostile(r) for _ in range(4))], {hostile(r) for _ in range(5)}
    scores = {hostile(r): r.choice(SCORES) for _ in range(5)}
    if large:
        members.add(r.randbytes(MEGABYTE))
    keys = {kind: name + kind + hostile(r) for kind in (b"s", b"a", b"h", b"l", b"t", b"z")}
    commands = [
        ("SET", keys[b"s"], string),
        ("APPEND", keys[b"a"], string),
        ("APPEND", keys[b"a"], string),
        ("HSET", keys[b"h"], *(part for pair in fields.items() for part in pair)),
        ("RPUSH", keys[b"l"], *items[1:]),
        ("LPUSH", keys[b"l"], items[0]),
        ("SADD", keys[b"t"], *members),
        ("ZADD", keys[b"z"], *(part for member, score in scores.items() for part in (score, member))),
    ]
    if number % 3 == 0:
        commands = [("MULTI",), *commands, ("EXEC",)]
    order = sorted(scores, key=lambda m: (float(scores[m]), m))
    expected = [
        (("GET", keys[b"s"]), string),
        (("STRLEN", keys[b"s"]), len(string)),
        (("GET", keys[b"a"]), string + string),
        (("HGETALL", keys[b"h"]), fields),
        (("LRANGE", keys[b"l"], 0, -1), items),
        (("SMEMBERS", keys[b"t"]), members),
        (("ZRANGE", keys[b"z"], 0, -1), order),
        *((("HGET", keys[b"h"], f), v) for f, v in fields.items()),
        *((("SISMEMBER", keys[b"t"], m), 1) for m in members),
        *((("ZSCORE", keys[b"z"], m), float(scores[m])) for m in order),
        *((("ZRANK", keys[b"z"], m), i) for i, m in enumerate(order)),
    ]
    return commands, expected, keys.values()


def plain(command, reply):
    found = reply.plain()
    if command[0] == "HGETALL":
        return dict(zip(found[::2], found[1::2]))
    if command[0] == "SMEMBERS":
        return set(found)
    return float(found) if command[0] == "ZSCORE" else found


def read_back(server, prepared):
    with server.connect() as c:
        for number, (_, expected, _) in enumerate(prepared):
            replies = c.pipeline([command for command, _ in expected])
            for (command, want), reply in zip(expected, replies):
                assert plain(command, reply) == want, f"batch {number}: {command!r:.300}"
        names = {name for _, _, keys in prepared for name in keys}
        assert set(c("KEYS", "*")) == names and c("DBSIZE") == len(names)


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
def test_prepared_batches_of_hostile_bytes(kind, fleet, tmp_path):
    prepared = [prepare(number) for number in range(BATCHES)]
    data = store.KINDS[kind](tmp_path)
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        for number, (commands, _, _) in enumerate(prepared):
            for reply in c.pipeline(commands):
                assert not reply.is_error, (number, reply)
    read_back(larder, prepared)
    larder.stop()
    larder.check()
    larder.options = ["--cache-memory", "0"]
    larder.start()
    read_back(larder, prepared)
    with larder.connect() as c:  # and they can be taken away again
        for _, _, keys in prepared:
            c("DEL", *keys)
        assert c("DBSIZE") == 0
    larder.stop()
    larder.check()


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_hostile_bytes_as_sql_sees_them(kind, fleet):
    """Strings that were written with SQL are what Larder reads, and the other way round."""
    data = store.KINDS[kind]()
    r = random.Random(kind)
    with fleet.larder(data=data).connect() as c:
        pairs = {b"%d" % i + hostile(r): hostile(r) for i in range(100)}
        data.query("".join(sql_set(data, key, value) for key, value in pairs.items()))
        assert c("MGET", *pairs) == list(pairs.values())
        encode = "encode(larder_get({0}), 'hex')" if kind == "postgres" else "hex(larder_get({0}))"
        for key in list(pairs)[:10]:
            pairs[key] = hostile(r)
            c("SET", key, pairs[key])
            assert sql_get(data, key) == pairs[key]
        rows = data.query(" UNION ALL ".join(f"SELECT {encode.format(literal(kind, key))}" for key in pairs))
        assert [bytes.fromhex(row[0]) for row in rows] == list(pairs.values())
