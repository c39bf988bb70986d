"""Strings around and far above 64 KiB, where Larder keeps them in chunks, compared with the oracle."""

import random

import pytest

from harness import compare, servers
from harness.resp import show

CHUNK = 65536
SIZES = [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5, 1 << 20]
HUGE = 100 << 20


def text(size, seed=1):
    return random.Random(seed).randbytes(size)


class Both:
    """Sends each command to both servers; their replies must be the same."""

    def __init__(self, oracle, subject):
        self.connections = [server.connect() for server in (oracle, subject)]
        for connection in self.connections:
            connection("FLUSHALL")

    def __call__(self, *args):
        return self.pipeline([args])[0]

    def pipeline(self, commands):
        expected, actual = (connection.pipeline(commands) for connection in self.connections)
        for command, a, b in zip(commands, expected, actual):
            shown = " ".join(show(arg if isinstance(arg, bytes) else str(arg).encode(), 60) for arg in command)
            assert compare.exact(a, b), f"{shown}\n  redis:  {a!r}\n  larder: {b!r}"
        return [reply.plain() for reply in expected]

    def close(self):
        for connection in self.connections:
            connection.close()


@pytest.fixture
def both(oracle, subject):
    both = Both(oracle, subject)
    yield both
    both("FLUSHALL")
    both.close()


def borders(size):
    """Positions of interest in a string of this size."""
    found = {0, 1, size // 2, size - 2, size - 1, size, size + 1}
    for border in range(0, min(size, 4 * CHUNK) + 1, CHUNK):
        found.update((border - 1, border, border + 1))
    return sorted(p for p in found if p >= 0)


# --- reading


@pytest.mark.parametrize("size", SIZES)
def test_reads(both, size):
    both("SET", "k", text(size))
    both("STRLEN", "k")
    both("GET", "k")
    both("MGET", "k", "none", "k")
    for start in borders(size):
        both("GETBIT", "k", start * 8 + 3)
        for end in borders(size):
            if end - start < 10 or end - start > size - 10:
                both("GETRANGE", "k", start, end)
            both("BITCOUNT", "k", start, end)
            both("BITCOUNT", "k", start * 8 + 3, end * 8 + 5, "BIT")
        both("GETRANGE", "k", -start, -1)


@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize("size", [CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_finds_bits(both, size, bit):
    """One bit that differs from all others, at every position that matters."""
    for at in borders(size)[:-2]:
        value = bytearray(b"\x00" if bit else b"\xff") * size
        value[at] ^= 0x04
        both("SET", "k", bytes(value))
        assert both("BITPOS", "k", bit) == at * 8 + 5
        for start, end in ((at, at), (at + 1, -1), (0, at - 1), (0, at), (at, -1)):
            both("BITPOS", "k", bit, start)
            both("BITPOS", "k", bit, start, end)
            both("BITPOS", "k", 1 - bit, start, end)
        for start, end in ((at * 8 + 5, at * 8 + 5), (at * 8 + 6, -1), (0, at * 8 + 4), (3, at * 8 + 5), (at * 8 + 4, at * 8 + 6)):
            both("BITPOS", "k", bit, start, end, "BIT")
            both("BITPOS", "k", 1 - bit, start, end, "BIT")
            both("BITCOUNT", "k", start, end, "BIT")
    both("SET", "k", (b"\x00" if bit else b"\xff") * size)
    both("BITPOS", "k", bit)
    both("BITPOS", "k", bit, 0, -1)


# --- writing parts


@pytest.mark.parametrize("length", [1, 7, CHUNK, CHUNK + 1, 2 * CHUNK])
@pytest.mark.parametrize("size", [0, 10, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_setrange(both, size, length):
    for offset in borders(max(size, 2 * CHUNK)):
        commands = [("SET", "k", text(size))] if size else [("DEL", "k")]
        commands += [("SETRANGE", "k", offset, text(length, seed=2)), ("STRLEN", "k"), ("GET", "k")]
        both.pipeline(commands)  # in one batch: reads see what was written in it
        for command in commands:
            both(*command)


def test_setrange_far_away(both):
    both("SETRANGE", "k", 50 << 20, "end")
    both("STRLEN", "k")
    both("GETRANGE", "k", (50 << 20) - 3, -1)
    both("GETRANGE", "k", 0, 10)
    both("BITCOUNT", "k")
    both("BITPOS", "k", 1)
    both("SETRANGE", "k", 25 << 20, "middle")
    both("GETRANGE", "k", (25 << 20) - CHUNK, (25 << 20) + CHUNK)
    both("APPEND", "k", "more")
    both("GETRANGE", "k", -20, -1)
    both("GET", "k")


@pytest.mark.parametrize("step", [1000, CHUNK - 1, CHUNK, 100_000])
def test_append_grows_into_chunks(both, step):
    both("SET", "k", "", "EXAT", 4102444800)
    for i in range(5 * CHUNK // step + 2):
        both("APPEND", "k", text(step, seed=i))
    both("STRLEN", "k")
    both("EXPIRETIME", "k")
    both("GET", "k")
    both("APPEND", "k", "")
    both("INCR", "k")
    both("INCRBYFLOAT", "k", "1")


def test_append_at_the_border(both):
    for size in (CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK):
        both("SET", "k", text(size))
        both.pipeline([("APPEND", "k", "a"), ("GETRANGE", "k", -3, -1), ("APPEND", "k", "bc"), ("GET", "k")])


# --- bits


@pytest.mark.slow
def test_setbit_at_the_last_bit(both):
    both("SETBIT", "k", 4294967295, 1)
    both("STRLEN", "k")
    both("GETBIT", "k", 4294967295)
    both("GETBIT", "k", 4294967294)
    both("SETBIT", "k", 4294967296, 1)
    both("SETBIT", "k", 1 << 31, 1)
    both("BITCOUNT", "k")
    both("BITPOS", "k", 1)
    both("BITPOS", "k", 1, 1 << 29)
    both("BITPOS", "k", 1, (1 << 31) + 1, -1, "BIT")
    both("GETRANGE", "k", -5, -1)
    both("BITFIELD", "k", "GET", "u8", 4294967288, "INCRBY", "u1", 4294967295, 1, "SET", "i8", 4294967295, 127)
    both("STRLEN", "k")
    both("SETRANGE", "k", (1 << 29) - 1, "xyz")
    both("APPEND", "k", "x")
    both("DEL", "k")


def test_setbit_in_chunks(both):
    both("SET", "k", text(2 * CHUNK + 10))
    for byte in borders(2 * CHUNK + 10) + [4 * CHUNK, 4 * CHUNK - 1]:
        for bit in (0, 7):
            for on in (1, 0, 1):
                both("SETBIT", "k", byte * 8 + bit, on)
                both("GETBIT", "k", byte * 8 + bit)
    both("GET", "k")


SOURCES = {"none": None, "short": 10, "row": CHUNK, "long": CHUNK + 1, "longer": 3 * CHUNK + 77}


@pytest.mark.parametrize("operation", ["AND", "OR", "XOR", "NOT"])
def test_bitop(both, operation):
    for seed, (key, size) in enumerate(SOURCES.items()):
        if size:
            both("SET", key, text(size, seed))
    for first in SOURCES:
        seconds = [()] if operation == "NOT" else [(second,) for second in SOURCES] + [("long", "short", "longer")]
        for second in seconds:
            both("SET", "to", "x", "EXAT", 4102444800)
            both("BITOP", operation, "to", first, *second)
            both("TTL", "to")
            both("GET", "to")
    both("BITOP", operation, "longer", "longer")  # onto itself
    both("GET", "longer")
    both("BITOP", operation, "long", "short")  # a long one becomes short
    both("GET", "long")
    both("STRLEN", "long")


def test_bitfield_in_chunks(both):
    both("SET", "k", text(3 * CHUNK))
    for border in (CHUNK * 8, 2 * CHUNK * 8, 3 * CHUNK * 8):
        for offset in range(border - 70, border + 9, 3):
            both("BITFIELD", "k", "GET", "i64", offset, "INCRBY", "i64", offset, 12345, "GET", "u63", offset + 1)
            both("BITFIELD", "k", "SET", "u5", offset, 21, "GET", "u5", offset, "GET", "u16", offset - 5)
            both("BITFIELD_RO", "k", "GET", "u16", offset, "GET", "i8", 0)
    many = ["BITFIELD", "k"]
    for i in range(40):
        many += ["INCRBY", "u8", str(i * 45_000), "3", "GET", "u8", str((39 - i) * 45_000)]
    both(*many)
    both("STRLEN", "k")
    both("GET", "k")


# --- whole values


def test_long_becomes_short_and_back(both):
    for size in (3 * CHUNK, 5, 2 * CHUNK, 0, CHUNK + 1, CHUNK, CHUNK + 1):
        both("SET", "k", text(size))
        both("GET", "k")
    both.pipeline([(name, "k", value) for value in (text(2 * CHUNK), b"x", text(CHUNK + 9)) for name in ("SET", "GETSET", "APPEND")])
    both("GET", "k")
    both("SET", "k", "short", "GET")
    both("SET", "k", text(2 * CHUNK, 3), "XX", "GET")
    both("GETEX", "k", "EXAT", 4102444800)
    both("SET", "k", text(2 * CHUNK, 4), "KEEPTTL", "GET")
    both("EXPIRETIME", "k")
    both("SET", "k", text(2 * CHUNK, 5), "NX", "GET")
    both("GETDEL", "k")
    both("GET", "k")
    both("SET", "k", "new")
    both("SETRANGE", "k", 2 * CHUNK, "x")
    both("GET", "k")  # nothing of the old value shows in the gap


def test_many_long_values(both):
    both("MSET", *(arg for i in range(6) for arg in (f"k{i}", text(CHUNK - 2 + i, i))))
    both("MGET", *(f"k{i}" for i in range(6)))
    both("MSETNX", "k9", text(2 * CHUNK), "k0", "x")
    both("MSETNX", "k9", text(2 * CHUNK), "k10", "x")
    both("COPY", "k9", "copy")
    both("RENAME", "k9", "k0")
    both("SETRANGE", "k0", CHUNK - 1, "xyz")
    both("APPEND", "copy", "tail")
    both("GETRANGE", "k0", CHUNK - 5, CHUNK + 5)
    both("GET", "k0")
    both("GET", "copy")


def test_expired_long_value_is_gone(both):
    both("SET", "k", text(2 * CHUNK))
    both("PEXPIREAT", "k", 1)
    both("GETRANGE", "k", CHUNK, CHUNK + 10)
    both("SETRANGE", "k", CHUNK + 100, "x")
    both("GET", "k")
    both("TTL", "k")


def test_lcs_of_a_long_value(both):
    both("SET", "a", text(CHUNK + 100))
    both("SET", "b", text(CHUNK + 100)[30_000:30_200] + text(100, seed=3))
    both("LCS", "a", "b")
    both("LCS", "a", "b", "LEN")
    both("LCS", "a", "b", "IDX", "WITHMATCHLEN")
    both("LCS", "b", "a", "IDX", "MINMATCHLEN", 3)


def test_lcs_refuses_what_takes_too_long(client):
    client("SET", "a", text(1 << 20))
    client("SET", "b", text(1 << 20, seed=2))
    assert client.error("LCS", "a", "b", "LEN") == "ERR Insufficient memory, failed allocating transient memory for LCS"
    client("SET", "a", text(CHUNK + 1))
    client("SET", "b", text(CHUNK + 1))
    assert client("LCS", "a", "b", "LEN") == CHUNK + 1


@pytest.mark.slow
def test_huge(both):
    value = text(HUGE)
    both("SET", "k", value)
    both("STRLEN", "k")
    both("GETRANGE", "k", HUGE // 2, HUGE // 2 + 100)
    both("BITCOUNT", "k")
    both("BITCOUNT", "k", 5, -5, "BIT")
    both("SETRANGE", "k", HUGE - 3, "across the end")
    both("SETBIT", "k", HUGE * 4, 1)
    both("APPEND", "k", text(2 * CHUNK))
    both("BITOP", "NOT", "not", "k")
    both("BITOP", "XOR", "xor", "not", "k")
    both("BITCOUNT", "xor")
    both("BITPOS", "xor", 0)
    both("GET", "k")
    both("DEL", "k", "not", "xor")


# --- a random walk, then a restart


def random_command(r):
    key = r.choice(["a", "b"])
    near = r.choice([0, CHUNK, 2 * CHUNK, 3 * CHUNK, r.randrange(4 * CHUNK)])
    offset = max(0, near + r.randint(-40, 40))
    data = r.randbytes(r.choice([1, 3, 50, 1000, CHUNK, CHUNK + 3]))
    return r.choice(
        [
            ("SETRANGE", key, offset, data),
            ("SETRANGE", key, offset, data[:10]),
            ("APPEND", key, data[:2000]),
            ("GETRANGE", key, offset, offset + r.choice([0, 5, 100, CHUNK])),
            ("SETBIT", key, offset * 8 + r.randrange(8), r.randrange(2)),
            ("GETBIT", key, offset * 8 + r.randrange(8)),
            ("BITCOUNT", key, offset, offset + r.randrange(2 * CHUNK)),
            ("BITPOS", key, r.randrange(2), offset),
            ("BITFIELD", key, "INCRBY", f"i{r.randint(1, 64)}", offset * 8 + r.randrange(8), r.randint(-1000, 1000)),
            ("STRLEN", key),
            ("SET", key, data) if r.random() < 0.2 else ("STRLEN", key),
            ("BITOP", r.choice(["AND", "OR", "XOR"]), key, "a", "b") if r.random() < 0.2 else ("GET", key),
        ]
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_changes_survive_a_restart(oracle, fleet, seed):
    larder = fleet.new(servers.Larder).start()
    both = Both(oracle, larder)
    r = random.Random(seed)
    for _ in range(60):
        both.pipeline([random_command(r) for _ in range(r.choice([1, 1, 4, 20]))])
    values = both("MGET", "a", "b")
    both.close()
    larder.stop()
    larder.check()
    larder.start()
    with larder.connect() as connection:
        assert connection("MGET", "a", "b") == values
