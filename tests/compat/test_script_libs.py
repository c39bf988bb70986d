"""The sandbox, cjson, bit, cmsgpack and struct, in scripts on Larder and on redis-server: written cases and random ones."""

import os
import pathlib
import random
import re

import pytest

FOLDER = pathlib.Path(__file__).parent / "script_cases"
COUNT = 2000 if os.environ.get("LARDER_LONG") else 60
SEED = random.randrange(2**32) if os.environ.get("LARDER_LONG") else 17

# In Redis the settings of cjson outlive a script.
RESET = """cjson.encode_sparse_array(false, 2, 10) cjson.encode_max_depth(1000) cjson.decode_max_depth(1000)
cjson.encode_number_precision(14) cjson.encode_keep_buffer(true) cjson.encode_invalid_numbers(false)
cjson.decode_invalid_numbers(true)"""


@pytest.fixture
def same(oracle, subject):
    """same(script, *args): both servers answer the script alike."""
    with oracle.connect() as ours, subject.connect() as theirs:

        def check(script, *args):
            if "cjson" in script:
                ours.call("EVAL", RESET, 0)
            wanted, found = ours.call("EVAL", script, 0, *args), theirs.call("EVAL", script, 0, *args)
            assert wanted.raw == found.raw, f"{script}\n{args}\nredis:  {wanted}\nlarder: {found}"

        yield check


def cases():
    for path in sorted(FOLDER.glob("*.txt")):
        for number, script in enumerate(path.read_text().split("\n---\n")):
            yield pytest.param(script.strip(), id=f"{path.stem}-{number}")


def test_written_cases(same):
    for case in cases():
        same(*case.values)


def string(rng):
    return bytes(rng.choice((0, 1, 34, 47, 92, 97, 98, 127, 128, 255)) for _ in range(rng.choice((0, 1, 2, 5, 31, 32, 40, 300))))


def lua_string(data):
    return '"' + "".join(f"\\{byte:03d}" for byte in data) + '"'


def number(rng):
    return rng.choice(
        (
            lambda: str(rng.randrange(-200, 200)),
            lambda: f"{rng.choice(('', '-'))}2^{rng.randrange(70)}+{rng.randrange(-2, 3)}",
            lambda: repr(rng.uniform(-1e6, 1e6)),
            lambda: repr(rng.random() * 10 ** rng.randrange(-300, 300)),
            lambda: rng.choice(("1/0", "-1/0", "0.5", "-0.0", "1e15", "1e100", "16777217")),
        )
    )()


def value(rng, depth=0):
    """A Lua expression. Tables have at most one key that is no number, since redis-server's order is its own."""
    kind = rng.random()
    if kind < 0.3 or depth > 4:
        return number(rng)
    if kind < 0.5:
        return lua_string(string(rng))
    if kind < 0.6:
        return rng.choice(("true", "false", "nil", "cjson.null"))
    items = [value(rng, depth + 1) for _ in range(rng.choice((0, 1, 2, 3, 15, 17)))]
    if kind < 0.85:
        return "{" + ",".join(items) + "}"
    key = rng.choice((lua_string(string(rng)), number(rng), str(rng.randrange(1, 30))))
    return "{[" + key + "]=" + (items[0] if items else "1") + "}"


def test_random_values_are_packed_alike(same):
    rng = random.Random(SEED)
    for _ in range(COUNT):
        same(f"return cmsgpack.pack({value(rng)}, {value(rng)})")
        same(f"return cjson.encode({value(rng)})")
        same(f"cjson.encode_invalid_numbers(true) cjson.encode_sparse_array(true) return cjson.encode({value(rng)})")


SHOW = """local function show(v, depth)
    if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end
    local keys, n = {}, 0
    for k, x in pairs(v) do n = n + 1 keys[n] = show(k) .. '=' .. show(x) end
    table.sort(keys)
    return '{' .. table.concat(keys, ',') .. '}'
end
local out = {} for i, v in ipairs(%s) do out[i] = show(v) end
return out"""


def test_random_bytes_are_unpacked_alike(same):
    rng = random.Random(SEED + 1)
    types = bytes((0xC0, 0xC1, 0xC2, 0xC3, 0xC4, *range(0xCA, 0xD4), *range(0xD9, 0xE0), 0x82, 0x93, 0xA2, 0x01, 0xFF))
    for _ in range(COUNT * 2):
        data = bytes(
            rng.choice(types) if rng.random() < 0.5 else rng.choice((0, 0, 0, 1, 2, 5, 97, rng.randrange(256)))
            for _ in range(rng.randrange(40))
        )
        same(SHOW % "{cmsgpack.unpack(ARGV[1])}", data)


def test_random_texts_are_decoded_alike(same):
    rng = random.Random(SEED + 2)
    parts = (b"[", b"]", b"{", b"}", b",", b":", b'"a"', b'"', b"\\u00e9", b"\\ud83d\\ude00", b"1", b"-", b"0x1f", b"nan", b"-inf")
    parts += (b"1e5", b"true", b"null", b"false", b" ", b"\n", b"/", b"\\", b'"b":1', b"[1,2]", b'{"x":[null]}', b"\0", b"\xff", b"0", b".5")
    for _ in range(COUNT * 3):
        same(SHOW % "{cjson.decode(ARGV[1])}", b"".join(rng.choice(parts) for _ in range(rng.randrange(12))))


def test_random_formats_pack_and_unpack_alike(same):
    rng = random.Random(SEED + 3)
    options = ["b", "B", "h", "H", "l", "L", "T", "i", "I", "f", "d", "s", "c", "x", ">", "<", "!", " ", "i3", "I7", "i9", "I16", "i32"]
    options += ["i33", "c0", "c3", "c9", "!2", "!4", "!16", "!3", "i0", "n", "=", "5"]
    for _ in range(COUNT):
        fmt = "".join(rng.choice(options) for _ in range(rng.randrange(8)))
        arguments = ",".join(number(rng) if rng.random() < 0.6 else lua_string(string(rng)) for _ in range(6))
        same(f"return struct.pack(ARGV[1], {arguments})", fmt)
        same("return struct.size(ARGV[1])", fmt)
        data = bytes(rng.choice((0, 1, 2, 3, 127, 128, 255)) for _ in range(rng.randrange(60)))
        same(SHOW % f"{{struct.unpack(ARGV[1], ARGV[2], {rng.choice((1, 1, 1, 2, 3, 50, -1, 0))})}}", fmt, data)


def test_random_numbers_have_the_same_bits(same):
    rng = random.Random(SEED + 4)
    for _ in range(COUNT):
        name = rng.choice("tobit tohex bnot bswap band bor bxor lshift rshift arshift rol ror".split())
        same(f"return bit.{name}({','.join(number(rng) for _ in range(rng.randrange(1, 4)))})")


def test_no_script_sees_another_ones_settings(subject):
    """Redis lets them stay; a script that is run again must find what it found at first."""
    with subject.connect() as client:
        changed = "cjson.encode_max_depth(2) cjson.decode_max_depth(2) cjson.encode_number_precision(3) "
        changed += "cjson.encode_sparse_array(true, 1, 1) cjson.encode_invalid_numbers('null') cjson.decode_invalid_numbers(false) "
        changed += "cjson.encode_keep_buffer(false) return {cjson.encode_max_depth(), tostring(cjson.decode_invalid_numbers())}"
        assert client("EVAL", changed, 0) == [2, b"false"]
        told = "return {cjson.encode_max_depth(), cjson.decode_max_depth(), cjson.encode_number_precision(), "
        told += "tostring(cjson.encode_sparse_array()), tostring(cjson.encode_invalid_numbers()), "
        told += "tostring(cjson.decode_invalid_numbers()), tostring(cjson.encode_keep_buffer()), cjson.encode(1/3)}"
        assert client("EVAL", told, 0) == [1000, 1000, 14, b"false", b"false", b"true", b"true", b"0.33333333333333"]
        assert client("EVAL", "return cjson.decode('[[[nan]]]')[1][1][1] == nil", 0) is None
        assert re.search(b"nesting", client.call("EVAL", "cjson.encode_max_depth(1) return cjson.encode({{}})", 0).raw)
        assert client("EVAL", "return cjson.encode({{}})", 0) == b"[{}]"
