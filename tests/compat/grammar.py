"""Random commands, as a table by family: a row is a command and the kinds of its arguments.

A kind is a function of a Random that returns a list of arguments (bytes). A new family is one more list in
FAMILIES; a new command is one row. Times are either far in the future or past, so that when a command happens to
run changes nothing.
"""

import dataclasses
import time

from harness import compare

# --- combinators


def lit(*words):
    """These words, sometimes in lower case."""
    upper = [w.encode() for w in words]
    lower = [w.lower() for w in upper]
    return lambda r: upper if r.random() < 0.8 else lower


def one(*kinds):
    return lambda r: r.choice(kinds)(r)


def weighted(*pairs):
    kinds, weights = zip(*pairs)
    return lambda r: r.choices(kinds, weights)[0](r)


def seq(*kinds):
    return lambda r: [arg for kind in kinds for arg in kind(r)]


def opt(kind, chance=0.5):
    return lambda r: kind(r) if r.random() < chance else []


def some(kind, least=1, most=4):
    return lambda r: [arg for _ in range(r.randint(least, most)) for arg in kind(r)]


def of(*values):
    """One of these values."""
    encoded = [v if isinstance(v, bytes) else str(v).encode() for v in values]
    return lambda r: [r.choice(encoded)]


def number(low, high):
    return lambda r: [b"%d" % r.randint(low, high)]


def shuffled(*kinds):
    """Each option or not, in any order."""

    def make(r):
        chosen = [kind(r) for kind in kinds if r.random() < 0.35]
        r.shuffle(chosen)
        return [arg for part in chosen for arg in part]

    return make


# --- kinds of arguments

# Keys that may hold long strings, and keys that never do (for commands whose cost is the product of lengths).
key = of("k1", "k2", "k3", "k4", "k5", b"k\x00\xff", "")
short_key = of("s1", "s2", "s3")
any_key = weighted((key, 3), (short_key, 1))

word = of("", "a", "b", "hello", "Hello World", b"\x00\x01\x02", b"\xff\xfe", "ohmytext", "mynewtext", "a" * 45, "x" * 300)
integer = of(0, 1, -1, 2, 3, 7, 10, 100, 12345, -999, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**62)
decimal = of("1.5", "-0.25", "3.0e3", "0.1", "1e-5", "123456789.125", "5.0", "-0", "1e17", "0.30000000000000004")
not_number = of("", " 1", "1 ", "+1", "01", "0x10", "1e400", "nan", "inf", "-inf", "9223372036854775808", "abc", "1_0", b"1\x00", "--1")
any_number = weighted((integer, 8), (decimal, 1), (not_number, 1))
any_float = weighted((decimal, 6), (integer, 2), (not_number, 2))
short_value = weighted((word, 4), (integer, 4), (decimal, 1), (not_number, 1))


def long_value(r):
    """Around 64 KiB, where a string's place in the database changes, and beyond."""
    length = r.choice([1000, 4096, 65535, 65536, 65537, 70000, 140000])
    return [bytes([r.randrange(256)]) * length]


value = weighted((short_value, 30), (long_value, 1))

NOW = int(time.time())
past_seconds = of(1, 1000, NOW - 100_000)
future_seconds = number(NOW + 100_000, NOW + 2_000_000_000)
past_ms = of(1, 1000, (NOW - 100_000) * 1000)
future_ms = number((NOW + 100_000) * 1000, (NOW + 2_000_000_000) * 1000)
ttl_seconds = number(100_000, 2_000_000_000)
ttl_ms = number(100_000_000, 2_000_000_000_000)
bad_time = of(0, -1, -1000, 2**63 - 1, -(2**63), 2**63 // 1000, 2**62, "x", "", "1.5", "99999999999999999999")


def moment(good, late):
    return weighted((good, 8), (late, 1), (bad_time, 1))


index = weighted((number(-12, 12), 6), (of(-100000, 100000, 65535, 65536, 70000, 2**31, -(2**31), 2**63 - 1, -(2**63)), 2), (not_number, 1))
# Writing at an offset makes a string that long, so the large ones are beyond the limit, where only the error counts.
write_offset = weighted((number(0, 20), 6), (of(1000, 65530, 65536, 66000, 131072), 1), (of(-1, 536870912, 2**62, "x"), 1))
bit_offset = weighted((number(0, 80), 8), (of(1000, 524280, 524288, 600000), 1), (of(-1, 4294967296, "x", "1.0", 2**63 - 1), 1))
read_bit_offset = weighted((bit_offset, 8), (of(4294967295, 100_000_000), 1))
bit = weighted((of(0, 1), 9), (of(2, -1, "x", ""), 1))
unit = opt(weighted((lit("BYTE"), 4), (lit("BIT"), 4), (of("BITS", ""), 1)))
pattern = of("*", "k*", "s*", "?1", "k[1-3]", "k[^1]", "[", "\\*", "", "**1", "nosuch", b"k\x00*", "k[3-1]", "*[0-9]")
database = weighted((number(0, 3), 9), (of(-1, 15, 16, "x", 2**31, 2**63 - 1), 1))
field = weighted(
    (lambda r: [b"%s%d" % (r.choice([b"i", b"u"]), r.randint(1, 63))], 9),
    (of("i64", "u64", "i0", "u0", "i65", "x8", "i", "8", "i-1", "i08"), 1),
)
field_offset = weighted(
    (lambda r: [r.choice([b"", b"#"]) + b"%d" % r.randint(0, 40)], 9),
    (of("#-1", "-1", "#x", "x", "4294967295", "#4294967295", "600000", "#10000"), 1),
)
field_get = seq(lit("GET"), field, field_offset)
field_set = seq(lit("SET"), field, weighted((number(0, 40), 8), (of("#3", 600000), 1)), any_number)
field_incr = seq(lit("INCRBY"), field, weighted((number(0, 40), 8), (of("#3", 524288), 1)), any_number)
field_overflow = seq(lit("OVERFLOW"), of("WRAP", "SAT", "FAIL", "wrap", "BAD"))
field_op = weighted((field_get, 3), (field_set, 3), (field_incr, 3), (field_overflow, 2))
expire_condition = opt(weighted((of("NX", "XX", "GT", "LT", "nx"), 8), (seq(of("NX", "XX"), of("GT", "LT", "XX")), 1), (of("ZZ"), 1)), 0.6)

# No past times here: Redis counts such a key in DBSIZE until it happens to notice that it has expired.
set_options = shuffled(
    one(lit("NX"), lit("XX")),
    lit("GET"),
    one(
        lit("KEEPTTL"),
        seq(lit("EX"), moment(ttl_seconds, bad_time)),
        seq(lit("PX"), moment(ttl_ms, bad_time)),
        seq(lit("EXAT"), moment(future_seconds, bad_time)),
        seq(lit("PXAT"), moment(future_ms, bad_time)),
    ),
    opt(of("FOO", "NX", "KEEPTTL", "EX"), 0.1),
)
getex_options = opt(
    weighted(
        (lit("PERSIST"), 2),
        (seq(lit("EX"), moment(ttl_seconds, bad_time)), 2),
        (seq(lit("PX"), moment(ttl_ms, bad_time)), 2),
        (seq(lit("EXAT"), moment(future_seconds, past_seconds)), 2),
        (seq(lit("PXAT"), moment(future_ms, past_ms)), 2),
        (of("EX", "FOO", "KEEPTTL", "NX"), 1),
        (seq(lit("PERSIST"), lit("EX"), ttl_seconds), 1),
    ),
    0.8,
)


# --- sorted sets

# Small ones, which Redis keeps in a listpack all the time; ones that grow far beyond that; ones whose members all have
# the same score. What Redis does with ranges of names where scores differ depends on chance but for the first.
zset = of("z1", "z2", "z3")
big_zset = of("y1", "y2")
lex_zset = of("x1", "x2")
any_zset = weighted((zset, 10), (big_zset, 4), (lex_zset, 2), (any_key, 1))
member = of("", "a", "b", "c", "d", "e", "aa", "ab", "B", b"\x00", b"\xff", "hello", "m" * 64, *range(12))
big_member = weighted((lambda r: [b"member:%d" % r.randrange(3000)], 9), (of("l" * 65, "l" * 300), 1))
zset_score = weighted((number(-5, 5), 6), (of("1.5", "-2.25", "0.1", "1e17", "1e-320", "3.0e3", "inf", "-inf", "+inf", "5e-324", "1.7976931348623157e308", 2**53, -(2**63), "0.30000000000000004"), 4), (of("-0", "0x10"), 0.3), (not_number, 0.5))
score_end = weighted((number(-6, 6), 5), (lambda r: [b"(%d" % r.randint(-6, 6)], 3), (of("-inf", "+inf", "inf", "(inf", "(-inf", "1.5", "(1.5", "1e-320"), 4), (of("", "(", "((1", " 1", "1 ", "nan", "(nan", "x", b"1\x00x"), 0.5))
lex_end = weighted((of("-", "+"), 4), (lambda r: [r.choice([b"[", b"("]) + member(r)[0]], 6), (of("", "a", "+a", "-a", "[", "(", "1"), 0.5))
rank_end = weighted((number(-15, 15), 8), (of(0, -1, 100, -100, 2**63 - 1, -(2**63)), 3), (not_number, 0.5))
limit = seq(lit("LIMIT"), weighted((number(-2, 6), 8), (not_number, 0.3)), weighted((number(-2, 8), 8), (not_number, 0.3)))
zadd_options = shuffled(one(lit("NX"), lit("XX")), one(lit("GT"), lit("LT")), lit("CH"), opt(lit("INCR"), 0.4))
weights = lambda n: seq(lit("WEIGHTS"), *[weighted((of(0, 1, 2, "-1", "0.5", "inf", "-inf"), 12), (not_number, 0.2))] * n)  # noqa: E731
aggregate = seq(lit("AGGREGATE"), weighted((of("SUM", "MIN", "max", "sum"), 12), (of("AVG", ""), 0.5)))


def sources(source, *options):
    """numkeys, so many keys, and options, of which WEIGHTS has to know how many keys there are."""

    def make(r):
        n = r.randint(1, 4)
        said = n if r.random() < 0.95 else r.choice([0, -1, n + 1, n - 1, 2**62])
        kinds = [option(n) if option is weights else option for option in options]
        return [b"%d" % said, *some(source, n, n)(r), *shuffled(*kinds)(r)]

    return make


def bulk(r):
    """Many members at once."""
    args = []
    for i in r.sample(range(3000), r.choice([100, 128, 129, 300, 1100])):
        args += [b"%d" % r.randint(-1000, 1000), b"member:%d" % i]
    return args


def same_score(r):
    return [arg for _ in range(r.randint(1, 8)) for arg in (b"0", member(r)[0])]


# --- hashes

# Small ones; ones that grow beyond what is kept in memory; keys of any type.
small_hash = of("h1", "h2", "h3")
big_hash = of("g1", "g2")
any_hash = weighted((small_hash, 10), (big_hash, 3), (any_key, 1))
hash_field = of("", "a", "b", "c", "d", "e", "f", "A", b"\x00", b"\xff\xfe", "field", "n" * 65, *range(8))
big_field = lambda r: [b"field:%d" % r.randrange(6000)]  # noqa: E731
hash_value = weighted((short_value, 12), (long_value, 0.3))
random_count = weighted((number(-8, 8), 9), (of(0, 100, -100), 2), (not_number, 0.5), (of(-(2**63), 2**63 - 1), 0.1))


def many_fields(r):
    """Many fields at once."""
    args = []
    for i in r.sample(range(6000), r.choice([10, 200, 511, 513, 1100])):
        args += [b"field:%d" % i, b"%d" % r.randrange(1000)]
    return args


# --- sets and what SORT sorts

# Sets of words, of numbers, and ones that grow far beyond memory's form; lists of numbers, and of integers.
word_set = of("t1", "t2", "t3")
number_set = of("i1", "i2")
big_set = of("u1", "u2")
number_list = of("n1", "n2")
integer_list = of("n3")
sorted_into = of("d1", "d2")
# No two of them are equal up to a NUL: then SORT ALPHA leaves the order of a set to chance.
set_word = of("", "a", "b", "c", "d", "e", "aa", "ab", "B", b"z\x00y", b"\xff", "hello", "m" * 64, "l" * 300, *range(12))
set_number = of(*range(-3, 12), "1.5", "-2.25", "1e3", "0x10", "inf", "-inf", "-0", "00012", "+7", " 8", "", 2**63 - 1, -(2**63), 2**63)
any_set = weighted((word_set, 8), (number_set, 3), (any_key, 1), (of("w_1", "h_1"), 0.5))
set_member = weighted((set_word, 3), (set_number, 2))
small_source = weighted((word_set, 6), (number_set, 2), (of("w_1", "h_1", "nothing"), 0.5))
set_source = weighted((word_set, 2), (number_set, 1), (big_set, 4))
set_counts = seq(lit("LIMIT"), weighted((number(0, 5), 9), (of(-1, "x"), 1)))
sorted_numbers = weighted((number_set, 3), (number_list, 4), (of("w_1", "h_1", "nothing"), 0.3))
# SORT makes a skiplist of a small sorted set, which can be told from its -0 and in ZSCAN: it gets some of its own.
sorted_zset = of("e1", "e2")
sorted_words = weighted((word_set, 3), (number_set, 2), (number_list, 2), (sorted_zset, 2))
sort_limit = seq(lit("LIMIT"), weighted((number(-2, 12), 9), (of(2**63 - 1, -(2**63)), 1)), weighted((number(-2, 12), 9), (of(2**63 - 1), 1)))
sort_order = opt(lit("DESC"), 0.4)
sort_gets = some(seq(lit("GET"), of("#", "w_*", "h_*->f", "h_*->g", "nothing", "*")), 0, 3)
sort_weight = one(of("w_*"), of("h_*->f"))


def sorted_by_numbers(a, b):
    """Redis takes a number for none when one before it, in whatever command, overflowed and nobody has looked since."""
    return a.is_error and a.value.startswith(b"ERR One or more scores") or compare.exact(a, b)


def many_members(r):
    return [b"member:%d" % i for i in r.sample(range(3000), r.choice([1, 20, 100, 513, 1100]))]


# --- lists

# Short ones with few different items, so that what is looked for is there more than once; ones that grow far beyond
# what is kept in memory.
short_list = of("l1", "l2", "l3")
big_list = of("q1", "q2")
any_list = weighted((short_list, 10), (big_list, 3), (any_key, 1))
list_item = weighted((of("", "a", "b", "c", "aa", b"\x00", b"\xff", 1, 2, "x" * 70), 12), (long_value, 0.1))
big_item = lambda r: [b"item:%d" % r.randrange(50)]  # noqa: E731
list_index = weighted((number(-8, 8), 9), (of(1000, -1000, 2**63 - 1, -(2**63)), 1), (not_number, 0.4))
big_index = weighted((number(-5000, 5000), 4), (number(-10, 10), 1))
list_count = weighted((number(0, 5), 9), (of(-1, 2**31, 2**63 - 1, -(2**63)), 0.5), (not_number, 0.4))
end = weighted((of("LEFT", "RIGHT", "left"), 12), (of("MIDDLE", ""), 0.3))
# Not the least integer, whose negative Redis 7.0 computes although there is none.
lpos_rank = weighted((number(-8, 8), 9), (of(1000, -1000, 2**63 - 1, -(2**63) + 1), 1), (not_number, 0.4))
lpos_options = shuffled(seq(lit("RANK"), lpos_rank), seq(lit("COUNT"), list_count), seq(lit("MAXLEN"), list_count), opt(of("FOO", "RANK"), 0.1))
# Long enough for what is there to be found at once, short enough not to hold up the run when nothing is.
patience = weighted((of("0.001", "0.002"), 9), (of(-1, "x", "", "inf", "1e400", 2**63), 1))


# --- collections at the borders of memory's form

BORDERS = [1023, 1024, 1025, 1500, 3000, 4095, 4096, 4097, 5000]


def many(kind):
    """A number of items at a border, each as kind(r, i) makes it of a number below 6000."""
    return lambda r: [arg for i in r.sample(range(6000), r.choice(BORDERS)) for arg in kind(r, i)]


grown_items = many(lambda r, i: [b"item:%d" % (i % 50)])
grown_members = many(lambda r, i: [b"member:%d" % i])
grown_scores = many(lambda r, i: [b"%d" % r.randint(-1000, 1000), b"member:%d" % i])
grown_fields = many(lambda r, i: [b"field:%d" % i, b"%d" % i])
grown_names = many(lambda r, i: [b"field:%d" % i])


# --- keys that take on every type

mixed = of("m1", "m2", "m3", "m4")
anything = weighted((mixed, 6), (small_hash, 1), (big_hash, 1), (short_list, 1), (big_list, 1), (word_set, 1), (big_set, 1), (zset, 1), (big_zset, 1), (key, 1))
collection = weighted((mixed, 4), (small_hash, 1), (big_hash, 1), (short_list, 1), (big_list, 1), (word_set, 1), (big_set, 1), (zset, 1), (big_zset, 1))


def pairs(r):
    return some(weighted((seq(key, value), 3), (seq(short_key, short_value), 1)), 1, 5)(r)


# --- the table


@dataclasses.dataclass
class Row:
    """A command: its name (words), the kind of its arguments, how often, and when two replies are equal."""

    name: str
    args: object
    weight: float = 1.0
    rule: object = compare.exact
    spoiled: bool = True  # now and then its arguments are made wrong

    def make(self, r):
        return [w.encode() for w in self.name.split()] + self.args(r)


STRING = [
    Row("GET", any_key, 6),
    Row("SET", seq(key, value, set_options), 8),
    Row("SET", seq(short_key, short_value, set_options), 4),
    Row("SETNX", seq(key, value)),
    Row("SETEX", seq(key, moment(ttl_seconds, bad_time), value)),
    Row("PSETEX", seq(key, moment(ttl_ms, bad_time), value)),
    Row("MGET", some(any_key, 1, 6), 2),
    Row("MSET", pairs, 2),
    Row("MSETNX", pairs, 2),
    Row("GETSET", seq(key, value)),
    Row("GETDEL", any_key, 2),
    Row("GETEX", seq(any_key, getex_options), 3),
    Row("APPEND", seq(key, value), 3),
    Row("APPEND", seq(short_key, word), 1),
    Row("STRLEN", any_key, 2),
    Row("SETRANGE", seq(key, write_offset, value), 3),
    Row("GETRANGE", seq(any_key, index, index), 3),
    Row("SUBSTR", seq(any_key, index, index)),
    Row("INCR", any_key, 2),
    Row("DECR", any_key),
    Row("INCRBY", seq(any_key, any_number), 2),
    Row("DECRBY", seq(any_key, any_number), 2),
    Row("INCRBYFLOAT", seq(any_key, any_float), 3),
    Row(
        "LCS",
        seq(
            short_key,
            short_key,
            shuffled(lit("LEN"), lit("IDX"), seq(lit("MINMATCHLEN"), weighted((number(0, 5), 5), (not_number, 1))), lit("WITHMATCHLEN"), of("FOO")),
        ),
        2,
    ),
]

BIT = [
    Row("SETBIT", seq(key, bit_offset, bit), 3),
    Row("GETBIT", seq(any_key, read_bit_offset), 2),
    Row("BITCOUNT", seq(any_key, opt(seq(index, opt(index, 0.95), unit), 0.8)), 3),
    Row("BITPOS", seq(any_key, bit, opt(seq(index, opt(seq(index, unit), 0.8)), 0.8)), 3),
    Row("BITOP", seq(of("AND", "OR", "XOR", "and", "FOO"), key, some(any_key, 1, 4)), 2),
    Row("BITOP NOT", seq(key, some(any_key, 1, 1)), 1),
    Row("BITOP NOT", seq(key, some(any_key, 2, 3)), 0.1),
    Row("BITFIELD", seq(key, some(field_op, 0, 6)), 3),
    Row("BITFIELD_RO", seq(any_key, some(weighted((field_get, 9), (field_op, 1)), 0, 4)), 1),
]

KEY = [
    Row("DEL", some(any_key, 1, 3), 3),
    Row("UNLINK", some(any_key, 1, 3)),
    Row("EXISTS", some(any_key, 1, 4), 2),
    Row("TYPE", any_key),
    Row("TOUCH", some(any_key, 1, 4)),
    Row("KEYS", pattern, 1, compare.unordered),
    Row("SCAN", seq(of("0"), shuffled(seq(lit("MATCH"), pattern), seq(lit("TYPE"), of("string", "hash", "STRING", "nosuch"))), of("COUNT"), number(500, 1000)), 1, compare.unordered),
    Row("SCAN", seq(of("x", "1.5", " 1", "18446744073709551616"), opt(seq(lit("COUNT"), of("x", 0, -1)))), 0.5),
    Row("SCAN 0", one(seq(lit("COUNT"), of("x", "0", "-1")), lit("MATCH"), of("FOO"), seq(of("FOO"), lit("COUNT"), of(500))), 0.3),
    Row("RANDOMKEY", seq(), 1, compare.shape),
    Row("RENAME", seq(any_key, key), 2),
    Row("RENAMENX", seq(any_key, key), 2),
    Row("COPY", seq(any_key, key, shuffled(lit("REPLACE"), seq(lit("DB"), database), opt(of("FOO"), 0.1))), 3),
    Row("MOVE", seq(any_key, database), 2),
    Row("DBSIZE", seq(), 2),
    Row("SWAPDB", seq(database, database), 0.5),
    Row("FLUSHDB", opt(of("SYNC", "ASYNC", "sync", "FOO")), 0.15),
    Row("FLUSHALL", opt(of("SYNC", "ASYNC", "FOO")), 0.05),
]

EXPIRE = [
    Row("EXPIRE", seq(any_key, moment(ttl_seconds, bad_time), expire_condition), 3),
    Row("PEXPIRE", seq(any_key, moment(ttl_ms, bad_time), expire_condition), 3),
    Row("EXPIREAT", seq(any_key, moment(future_seconds, past_seconds), expire_condition), 3),
    Row("PEXPIREAT", seq(any_key, moment(future_ms, past_ms), expire_condition), 3),
    Row("TTL", any_key, 2, compare.times(1000)),
    Row("PTTL", any_key, 2, compare.times(1)),
    Row("EXPIRETIME", any_key, 2, compare.times(1000)),
    Row("PEXPIRETIME", any_key, 2, compare.times(1)),
    Row("PERSIST", any_key, 3),
]

CONNECTION = [
    Row("SELECT", database, 3),
    Row("PING", opt(word), 0.5),
    Row("ECHO", word, 0.5),
    Row("NOSUCH", some(word, 0, 3), 0.3),
]

# Where the result goes to a small sorted set, no source has members that are too long for it.
short_source = weighted((zset, 8), (lex_zset, 2), (number_set, 1))
zset_source = weighted((short_source, 8), (word_set, 1), (any_key, 0.5))
big_source = weighted((zset, 4), (big_zset, 4), (lex_zset, 1))
ZSET = [
    Row("ZADD", seq(zset, zadd_options, some(seq(zset_score, member), 1, 6)), 14),
    Row("ZADD", seq(big_zset, zadd_options, some(seq(number(-1000, 1000), big_member), 1, 6)), 4),
    Row("ZADD", seq(big_zset, bulk), 1),
    Row("ZADD", seq(lex_zset, same_score), 4),
    Row("ZADD", seq(any_zset, zadd_options), 0.3),
    Row("ZADD", seq(any_key, zadd_options, zset_score, member), 0.5),
    Row("ZINCRBY", seq(zset, zset_score, member), 3),
    Row("ZINCRBY", seq(big_zset, number(-1000, 1000), big_member), 1),
    Row("ZREM", seq(any_zset, some(member, 1, 4)), 3),
    Row("ZREM", seq(big_zset, some(big_member, 1, 20)), 2),
    Row("ZSCORE", seq(any_zset, member), 2),
    Row("ZSCORE", seq(big_zset, big_member), 1),
    Row("ZMSCORE", seq(any_zset, some(weighted((member, 2), (big_member, 1)), 1, 5)), 2),
    Row("ZCARD", any_zset, 2),
    Row("ZRANK", seq(any_zset, member), 2),
    Row("ZREVRANK", seq(any_zset, member), 2),
    Row("ZRANK", seq(big_zset, big_member), 2),
    Row("ZREVRANK", seq(big_zset, big_member), 1),
    Row("ZCOUNT", seq(any_zset, score_end, score_end), 3),
    Row("ZLEXCOUNT", seq(weighted((zset, 1), (lex_zset, 2), (any_key, 0.2)), lex_end, lex_end), 3),
    Row("ZRANGE", seq(any_zset, rank_end, rank_end, shuffled(lit("WITHSCORES"), lit("REV"), opt(limit, 0.3), opt(of("FOO"), 0.1))), 4),
    Row("ZRANGE", seq(any_zset, score_end, score_end, lit("BYSCORE"), shuffled(lit("WITHSCORES"), lit("REV"), limit, opt(lit("BYLEX"), 0.1))), 4),
    Row("ZRANGE", seq(weighted((zset, 1), (lex_zset, 2)), lex_end, lex_end, lit("BYLEX"), shuffled(lit("REV"), limit, opt(lit("WITHSCORES"), 0.2))), 3),
    Row("ZREVRANGE", seq(any_zset, rank_end, rank_end, opt(lit("WITHSCORES")), opt(one(limit, of("FOO"), lit("REV")), 0.1)), 2),
    Row("ZRANGEBYSCORE", seq(any_zset, score_end, score_end, shuffled(lit("WITHSCORES"), limit)), 3),
    Row("ZREVRANGEBYSCORE", seq(any_zset, score_end, score_end, shuffled(lit("WITHSCORES"), limit)), 2),
    Row("ZRANGEBYLEX", seq(weighted((zset, 1), (lex_zset, 2)), lex_end, lex_end, opt(limit)), 2),
    Row("ZREVRANGEBYLEX", seq(weighted((zset, 1), (lex_zset, 2)), lex_end, lex_end, opt(limit)), 2),
    Row("ZRANGESTORE", seq(zset, short_source, rank_end, rank_end, shuffled(lit("REV"), opt(limit, 0.2), opt(lit("WITHSCORES"), 0.1))), 2),
    Row("ZRANGESTORE", seq(zset, short_source, score_end, score_end, lit("BYSCORE"), shuffled(lit("REV"), limit)), 2),
    Row("ZRANGESTORE", seq(zset, lex_zset, lex_end, lex_end, lit("BYLEX"), shuffled(lit("REV"), limit)), 1),
    Row("ZRANGESTORE", seq(big_zset, big_zset, number(-50, 3000), number(-1000, 3000), shuffled(lit("REV"))), 0.5),
    Row("ZPOPMIN", seq(any_zset, opt(weighted((number(0, 8), 9), (not_number, 1)))), 2),
    Row("ZPOPMAX", seq(any_zset, opt(weighted((number(0, 8), 9), (not_number, 1)))), 2),
    Row("ZPOPMIN", seq(big_zset, number(0, 700)), 0.5),
    Row("ZMPOP", seq(sources(any_zset), weighted((of("MIN", "MAX", "min"), 12), (of("FOO"), 0.5)), opt(seq(lit("COUNT"), weighted((number(1, 5), 9), (of(0, -1, "x"), 1))))), 2),
    Row("ZREMRANGEBYRANK", seq(any_zset, rank_end, rank_end), 1),
    Row("ZREMRANGEBYRANK", seq(big_zset, number(-1500, 1500), number(-1500, 1500)), 0.5),
    Row("ZREMRANGEBYSCORE", seq(any_zset, score_end, score_end), 1),
    Row("ZREMRANGEBYSCORE", seq(big_zset, number(-1000, 1000), number(-1000, 1000)), 0.5),
    Row("ZREMRANGEBYLEX", seq(weighted((zset, 1), (lex_zset, 2)), lex_end, lex_end), 1),
    Row("ZRANDMEMBER", seq(any_zset, opt(seq(weighted((number(-5, 5), 9), (of("x", -(2**63), 2**63 - 1), 0.5)), opt(of("WITHSCORES", "withscores", "FOO"), 0.4)))), 2, compare.shape),
    Row("ZSCAN", seq(weighted((zset, 3), (lex_zset, 1), (word_set, 0.3)), of("0"), shuffled(seq(lit("MATCH"), pattern), seq(lit("COUNT"), of(1, 10, 1000, 0, "x")), opt(of("FOO", "TYPE"), 0.1))), 2, compare.unordered),
    Row("ZUNION", sources(zset_source, weights, aggregate, lit("WITHSCORES")), 3),
    Row("ZINTER", sources(zset_source, weights, aggregate, lit("WITHSCORES")), 3),
    Row("ZDIFF", sources(zset_source, lit("WITHSCORES"), opt(aggregate, 0.1)), 3),
    Row("ZUNION", sources(big_source, aggregate, lit("WITHSCORES")), 0.5),
    Row("ZINTER", sources(big_source, aggregate, lit("WITHSCORES")), 0.5),
    Row("ZDIFF", sources(big_source, lit("WITHSCORES")), 0.5),
    Row("ZUNIONSTORE", seq(zset, sources(short_source, weights, aggregate, opt(lit("WITHSCORES"), 0.1))), 2),
    Row("ZINTERSTORE", seq(zset, sources(short_source, weights, aggregate)), 2),
    Row("ZDIFFSTORE", seq(zset, sources(short_source)), 2),
    Row("ZUNIONSTORE", seq(big_zset, sources(big_source, aggregate)), 0.5),
    Row("ZINTERSTORE", seq(big_zset, sources(big_source, aggregate)), 0.5),
    Row("ZDIFFSTORE", seq(big_zset, sources(big_source)), 0.3),
    Row("ZINTERCARD", sources(big_source, seq(lit("LIMIT"), weighted((number(0, 5), 9), (of(-1, "x"), 1)))), 2),
    Row("DEL", any_zset, 0.5),
    Row("RENAME", seq(zset, zset), 0.5),
    Row("RENAME", seq(big_zset, big_zset), 0.3),
    Row("COPY", seq(zset, zset, opt(lit("REPLACE"))), 0.5),
    Row("COPY", seq(big_zset, big_zset, lit("REPLACE")), 0.3),
    Row("EXPIREAT", seq(any_zset, moment(future_seconds, past_seconds)), 0.5),
    Row("PERSIST", any_zset, 0.3),
    Row("TYPE", any_zset, 0.3),
]

HASH = [
    Row("HSET", seq(small_hash, some(seq(hash_field, hash_value), 1, 5)), 12),
    Row("HSET", seq(any_key, hash_field, hash_value), 0.5),
    Row("HSET", seq(big_hash, some(seq(big_field, short_value), 1, 5)), 4),
    Row("HSET", seq(big_hash, many_fields), 1.5),
    Row("HMSET", seq(any_hash, some(seq(hash_field, hash_value), 1, 3)), 1),
    Row("HSETNX", seq(any_hash, hash_field, hash_value), 2),
    Row("HSETNX", seq(big_hash, big_field, short_value), 1),
    Row("HGET", seq(any_hash, hash_field), 4),
    Row("HGET", seq(big_hash, big_field), 2),
    Row("HMGET", seq(any_hash, some(weighted((hash_field, 3), (big_field, 1)), 1, 6)), 2),
    Row("HGETALL", any_hash, 2, compare.unordered),
    Row("HKEYS", any_hash, 1, compare.unordered),
    Row("HVALS", any_hash, 1, compare.unordered),
    Row("HLEN", any_hash, 3),
    Row("HEXISTS", seq(any_hash, hash_field), 2),
    Row("HSTRLEN", seq(any_hash, hash_field), 2),
    Row("HDEL", seq(any_hash, some(hash_field, 1, 5)), 5),
    Row("HDEL", seq(big_hash, some(big_field, 1, 300)), 3),
    Row("HINCRBY", seq(any_hash, hash_field, any_number), 4),
    Row("HINCRBYFLOAT", seq(any_hash, hash_field, any_float), 4),
    Row("HINCRBY", seq(big_hash, big_field, integer), 1),
    Row("HRANDFIELD", seq(any_hash, opt(seq(random_count, opt(of("WITHVALUES", "withvalues", "FOO"), 0.4)))), 2, compare.shape),
    Row("HSCAN", seq(any_hash, of("0"), shuffled(seq(lit("MATCH"), pattern)), lit("COUNT"), of(10000)), 2, compare.unordered),
    Row("HSCAN", seq(any_hash, of("0"), one(seq(lit("COUNT"), of(0, -1, "x")), lit("MATCH"), of("FOO"), seq(lit("TYPE"), of("hash")))), 0.5),
    Row("DEL", any_hash, 0.5),
    Row("RENAME", seq(small_hash, small_hash), 0.5),
    Row("RENAME", seq(big_hash, big_hash), 0.2),
    Row("COPY", seq(small_hash, small_hash, opt(lit("REPLACE"))), 0.7),
    Row("COPY", seq(big_hash, big_hash, lit("REPLACE")), 0.3),
    Row("EXPIREAT", seq(any_hash, moment(future_seconds, past_seconds)), 0.5),
    Row("PERSIST", any_hash, 0.3),
    Row("TYPE", any_hash, 0.3),
]

SET = [
    Row("SADD", seq(word_set, some(set_member, 1, 6)), 8, spoiled=False),
    Row("SADD", seq(number_set, some(set_number, 1, 6)), 5, spoiled=False),
    Row("SADD", seq(any_key, some(set_member, 1, 3)), 0.5),
    Row("SADD", seq(big_set, many_members), 2),
    Row("SREM", seq(any_set, some(set_member, 1, 4)), 3),
    Row("SREM", seq(big_set, many_members), 1),
    Row("SMOVE", seq(weighted((word_set, 4), (big_set, 1)), word_set, set_member), 2),
    Row("SISMEMBER", seq(any_set, set_member), 2),
    Row("SISMEMBER", seq(big_set, many_members), 0.5),
    Row("SMISMEMBER", seq(any_set, some(set_member, 1, 5)), 2),
    Row("SMISMEMBER", seq(big_set, many_members), 1),
    Row("SCARD", weighted((any_set, 2), (big_set, 1)), 3),
    Row("SMEMBERS", weighted((any_set, 3), (big_set, 1)), 3, compare.unordered),
    # All or nothing: what else it takes is a matter of chance.
    Row("SPOP", seq(any_set, of(0, 10**6)), 0.5, compare.unordered, spoiled=False),
    Row("SPOP", seq(big_set, of(0, 10**6)), 0.1, compare.unordered, spoiled=False),
    Row("SPOP", seq(any_set, one(of(-1, "x", "", "1.5", 2**63), seq(number(0, 1), number(0, 1)))), 0.3, spoiled=False),
    Row("SRANDMEMBER", seq(any_set, opt(weighted((number(-5, 5), 9), (of("x", -(2**63), 2**63 - 1), 0.5)))), 2, compare.shape),
    Row("SRANDMEMBER", seq(big_set, number(-3000, 3000)), 0.5, compare.shape),
    Row("SSCAN", seq(any_set, of("0"), shuffled(seq(lit("MATCH"), pattern), opt(of("FOO", "TYPE"), 0.1)), of("COUNT"), of(1000, 10000)), 2, compare.unordered, spoiled=False),
    Row("SSCAN", seq(any_set, of("0", "x"), seq(lit("COUNT"), of(0, -1, "x"))), 0.3, spoiled=False),
    Row("SINTER", some(small_source, 1, 4), 3, compare.unordered),
    Row("SUNION", some(small_source, 1, 4), 3, compare.unordered),
    Row("SDIFF", some(small_source, 1, 4), 3, compare.unordered),
    Row("SINTER", some(set_source, 1, 3), 1, compare.unordered),
    Row("SUNION", some(set_source, 1, 4), 1, compare.unordered),
    Row("SDIFF", some(set_source, 1, 4), 1, compare.unordered),
    Row("SINTERCARD", sources(small_source, set_counts), 2),
    Row("SINTERCARD", sources(big_set, set_counts), 1),
    Row("SINTERSTORE", seq(word_set, some(small_source, 1, 4)), 2, spoiled=False),
    Row("SUNIONSTORE", seq(word_set, some(small_source, 1, 4)), 2, spoiled=False),
    Row("SDIFFSTORE", seq(word_set, some(small_source, 1, 4)), 2, spoiled=False),
    Row("SINTERSTORE", seq(big_set, some(big_set, 1, 3)), 0.3),
    Row("SUNIONSTORE", seq(big_set, some(set_source, 1, 3)), 0.5),
    Row("SDIFFSTORE", seq(big_set, some(set_source, 1, 3)), 0.5),
    Row("ZUNIONSTORE", seq(big_zset, sources(weighted((zset, 2), (word_set, 2)), aggregate)), 0.5),
    Row("ZINTER", sources(weighted((zset, 2), (word_set, 2), (big_set, 1)), weights, aggregate, lit("WITHSCORES")), 1),
    Row("DEL", weighted((any_set, 4), (big_set, 1)), 0.5),
    Row("RENAME", seq(word_set, word_set), 0.5),
    Row("RENAME", seq(big_set, big_set), 0.3),
    Row("COPY", seq(word_set, word_set, opt(lit("REPLACE"))), 0.5),
    Row("COPY", seq(big_set, big_set, lit("REPLACE")), 0.3),
    Row("EXPIREAT", seq(weighted((word_set, 3), (big_set, 1)), moment(future_seconds, past_seconds)), 0.5),
    Row("PERSIST", any_set, 0.3),
    Row("TYPE", any_set, 0.3),
]

SORT = [
    Row("RPUSH", seq(number_list, some(set_number, 1, 6)), 3, spoiled=False),
    Row("RPUSH", seq(integer_list, some(number(-20, 20), 1, 6)), 1, spoiled=False),
    Row("ZADD", seq(sorted_zset, some(seq(number(-5, 5), set_member), 1, 6)), 2, spoiled=False),
    Row("LPOP", weighted((number_list, 2), (integer_list, 1)), 1, spoiled=False),
    Row("SET", seq(lambda r: [b"w_" + set_member(r)[0]], set_number), 3, spoiled=False),
    Row("HSET", seq(lambda r: [b"h_" + set_member(r)[0]], of("f"), set_number), 3, spoiled=False),
    Row("HSET", seq(lambda r: [b"h_" + set_member(r)[0]], of("g"), set_word), 1, spoiled=False),
    Row("DEL", seq(lambda r: [r.choice([b"w_", b"h_"]) + set_member(r)[0]]), 1, spoiled=False),
    Row("SORT", seq(sorted_numbers, sort_order, opt(sort_limit), sort_gets), 2, sorted_by_numbers),
    Row("SORT_RO", seq(sorted_numbers, sort_order, opt(sort_limit), sort_gets), 1, sorted_by_numbers),
    Row("SORT", seq(integer_list, sort_order, opt(sort_limit), sort_gets), 1),
    Row("SORT", seq(sorted_words, lit("ALPHA"), sort_order, opt(sort_limit), sort_gets), 3),
    Row("SORT", seq(weighted((sorted_numbers, 1), (sorted_words, 1)), lit("BY"), sort_weight, sort_order, opt(sort_limit), sort_gets), 3, sorted_by_numbers, spoiled=False),
    # What is equal under ALPHA comes in the order it had, which a list alone has.
    Row("SORT", seq(number_list, lit("BY"), sort_weight, lit("ALPHA"), sort_order, sort_gets), 1, spoiled=False),
    Row("SORT", seq(sorted_words, lit("BY"), sort_weight, lit("ALPHA"), sort_order), 1, compare.unordered, spoiled=False),
    Row("SORT", seq(weighted((number_list, 1), (sorted_zset, 1)), lit("BY"), of("nosort", ""), sort_order, opt(sort_limit), sort_gets), 2, spoiled=False),
    Row("SORT", seq(word_set, lit("BY"), of("nosort"), sort_order, sort_gets), 0.5, compare.unordered, spoiled=False),
    Row("SORT", seq(word_set, lit("BY"), of("nosort"), sort_order, sort_limit), 0.5, compare.shape, spoiled=False),
    Row("SORT", seq(integer_list, sort_order, opt(sort_limit), sort_gets, lit("STORE"), sorted_into), 1, spoiled=False),
    Row("SORT", seq(sorted_words, lit("ALPHA"), sort_order, opt(sort_limit), sort_gets, lit("STORE"), sorted_into), 1, spoiled=False),
    Row("SORT", seq(sorted_words, lit("BY"), of("nosort"), sort_order, opt(sort_limit), lit("STORE"), sorted_into), 1, spoiled=False),
    Row("SORT", seq(number_list, lit("ALPHA"), opt(sort_limit), lit("STORE"), number_list), 0.5, spoiled=False),
    Row("SORT", seq(big_set, lit("ALPHA"), sort_order, sort_limit), 0.5),
    Row("LRANGE", seq(sorted_into, of(0), of(-1)), 1),
]

LIST = [
    Row("RPUSH", seq(short_list, some(list_item, 1, 6)), 7),
    Row("LPUSH", seq(short_list, some(list_item, 1, 6)), 5),
    Row("RPUSH", seq(big_list, some(big_item, 1, 300)), 2),
    Row("LPUSH", seq(big_list, some(big_item, 1, 300)), 2),
    Row("RPUSH", seq(any_key, list_item), 0.5),
    Row("RPUSHX", seq(any_list, some(list_item, 1, 3)), 1),
    Row("LPUSHX", seq(any_list, some(list_item, 1, 3)), 1),
    Row("LPOP", seq(any_list, opt(list_count)), 3),
    Row("RPOP", seq(any_list, opt(list_count)), 3),
    Row("LPOP", seq(big_list, number(0, 700)), 0.5),
    Row("RPOP", seq(big_list, number(0, 700)), 0.5),
    Row("LLEN", any_list, 3),
    Row("LINDEX", seq(any_list, list_index), 3),
    Row("LINDEX", seq(big_list, big_index), 2),
    Row("LRANGE", seq(any_list, list_index, list_index), 4),
    Row("LRANGE", seq(big_list, big_index, big_index), 2),
    Row("LSET", seq(any_list, list_index, list_item), 3),
    Row("LSET", seq(big_list, big_index, big_item), 2),
    Row("LINSERT", seq(any_list, weighted((of("BEFORE", "AFTER", "before"), 12), (of("FOO"), 0.3)), list_item, list_item), 4),
    Row("LINSERT", seq(big_list, of("BEFORE", "AFTER"), big_item, big_item), 2),
    Row("LREM", seq(any_list, weighted((number(-3, 3), 9), (not_number, 0.4)), list_item), 3),
    Row("LREM", seq(big_list, number(-30, 30), big_item), 1),
    Row("LTRIM", seq(any_list, list_index, list_index), 1.5),
    Row("LTRIM", seq(big_list, number(0, 100), number(-100, -1)), 1),
    Row("LPOS", seq(any_list, list_item, lpos_options), 3),
    Row("LPOS", seq(big_list, big_item, lpos_options), 1),
    Row("LMOVE", seq(any_list, any_list, end, end), 4),
    Row("RPOPLPUSH", seq(any_list, any_list), 2),
    Row("LMPOP", seq(sources(any_list), end, opt(seq(lit("COUNT"), weighted((number(1, 5), 9), (of(0, -1, "x"), 1))))), 2),
    Row("BLPOP", seq(some(any_list, 1, 3), patience), 0.5, spoiled=False),
    Row("BRPOP", seq(some(any_list, 1, 3), patience), 0.5, spoiled=False),
    Row("BLMOVE", seq(any_list, any_list, end, end, patience), 0.5, spoiled=False),
    Row("BRPOPLPUSH", seq(any_list, any_list, patience), 0.5, spoiled=False),
    Row("BLMPOP", seq(patience, sources(any_list), end), 0.5, spoiled=False),
    Row("BZPOPMIN", seq(some(any_zset, 1, 3), patience), 0.5, spoiled=False),
    Row("BZPOPMAX", seq(some(any_zset, 1, 3), patience), 0.5, spoiled=False),
    Row("BZMPOP", seq(patience, sources(any_zset), of("MIN", "MAX")), 0.5, spoiled=False),
    Row("DEL", any_list, 0.5),
    Row("RENAME", seq(short_list, short_list), 0.5),
    Row("RENAME", seq(big_list, big_list), 0.3),
    Row("COPY", seq(short_list, short_list, opt(lit("REPLACE"))), 0.5),
    Row("COPY", seq(big_list, big_list, lit("REPLACE")), 0.3),
    Row("EXPIREAT", seq(any_list, moment(future_seconds, past_seconds)), 0.5),
    Row("PERSIST", any_list, 0.3),
]

BORDER = [
    Row("RPUSH", seq(big_list, grown_items), 0.3),
    Row("LPUSH", seq(big_list, grown_items), 0.3),
    Row("LTRIM", seq(big_list, number(0, 3), of(*(n - 1 for n in BORDERS), -1)), 0.5),
    Row("LPOP", seq(big_list, of(*BORDERS)), 0.2),
    Row("RPOP", seq(big_list, of(*BORDERS)), 0.2),
    Row("SADD", seq(big_set, grown_members), 0.4),
    Row("SREM", seq(big_set, grown_members), 0.3),
    Row("ZADD", seq(big_zset, grown_scores), 0.4),
    Row("ZREM", seq(big_zset, grown_members), 0.2),
    Row("ZREMRANGEBYRANK", seq(big_zset, of(*BORDERS), of(-1)), 0.3),
    Row("HSET", seq(big_hash, grown_fields), 0.5),
    Row("HDEL", seq(big_hash, grown_names), 0.3),
    Row("HGETALL", big_hash, 0.2, compare.unordered),
    Row("LRANGE", seq(big_list, of(0), of(-1)), 0.2),
    Row("ZRANGE", seq(big_zset, of(0), of(-1), lit("WITHSCORES")), 0.2),
    Row("SMEMBERS", big_set, 0.2, compare.unordered),
]

# What any key may be, on keys that are overwritten, renamed, copied and moved from every type to every other.
MIXED = [
    Row("SET", seq(mixed, short_value), 1),
    Row("APPEND", seq(mixed, word), 1),
    Row("RPUSH", seq(mixed, some(list_item, 1, 3)), 2),
    Row("SADD", seq(mixed, some(set_member, 1, 3)), 2),
    Row("HSET", seq(mixed, some(seq(hash_field, short_value), 1, 3)), 2),
    Row("ZADD", seq(mixed, some(seq(number(-5, 5), member), 1, 3)), 2),
    Row("GET", collection, 1),
    Row("INCR", collection, 1),
    Row("LRANGE", seq(anything, of(0), of(-1)), 1),
    Row("HGETALL", anything, 1, compare.unordered),
    Row("SMEMBERS", anything, 1, compare.unordered),
    Row("ZRANGE", seq(anything, of(0), of(-1), lit("WITHSCORES")), 1),
    Row("LPOP", seq(mixed, opt(of(10**6))), 1),
    Row("SPOP", seq(mixed, of(10**6)), 0.5, compare.unordered, spoiled=False),
    Row("ZREMRANGEBYRANK", seq(mixed, of(0), of(-1, -2)), 1),
    Row("HDEL", seq(mixed, some(hash_field, 1, 12)), 1),
    Row("SUNIONSTORE", seq(mixed, some(weighted((mixed, 2), (word_set, 1), (big_set, 0.3)), 1, 3)), 1, spoiled=False),
    Row("ZUNIONSTORE", seq(mixed, sources(weighted((mixed, 2), (zset, 1), (word_set, 1)), aggregate)), 1, spoiled=False),
    Row("SORT", seq(weighted((mixed, 2), (short_list, 1), (word_set, 1), (big_list, 0.2)), lit("ALPHA"), lit("STORE"), mixed), 1, spoiled=False),
    Row("LMOVE", seq(short_list, mixed, end, end), 1),
    Row("SMOVE", seq(word_set, mixed, set_member), 1),
    Row("RENAME", seq(anything, mixed), 3, spoiled=False),
    Row("RENAMENX", seq(anything, mixed), 2, spoiled=False),
    Row("COPY", seq(anything, mixed, shuffled(lit("REPLACE"), seq(lit("DB"), database))), 4, spoiled=False),
    Row("MOVE", seq(collection, database), 3),
    Row("DEL", some(collection, 1, 3), 1),
    Row("UNLINK", some(collection, 1, 2), 0.5),
    Row("TYPE", anything, 2),
    Row("EXISTS", some(anything, 1, 4), 1),
    Row("PEXPIREAT", seq(collection, moment(future_ms, past_ms), expire_condition), 2),
    Row("PERSIST", collection, 1),
    Row("PEXPIRETIME", collection, 1, compare.times(1)),
    Row("SWAPDB", seq(number(0, 3), number(0, 3)), 0.5),
    Row("FLUSHDB", seq(), 0.1, spoiled=False),
]

# What stands outside of whole transactions, which the generator makes itself.
TRANSACTION = [
    Row("WATCH", some(anything, 1, 4), 2),
    Row("UNWATCH", seq(), 0.5),
    Row("MULTI", seq(), 0.1),
    Row("EXEC", seq(), 0.5),
    Row("DISCARD", seq(), 0.5),
]

FAMILIES = {
    "string": STRING,
    "bit": BIT,
    "key": KEY,
    "expire": EXPIRE,
    "connection": CONNECTION,
    "zset": ZSET,
    "hash": HASH,
    "set": SET,
    "sort": SORT,
    "list": LIST,
    "border": BORDER,
    "mixed": MIXED,
    "transaction": TRANSACTION,
}


class Generator:
    """An endless, seeded stream of commands: each (arguments, rule of comparison)."""

    def __init__(self, random, families=None, without=()):
        self.random = random
        self.families = list(families or FAMILIES)
        rows = [row for name in self.families for row in FAMILIES[name] if row.name not in without]
        self.rows = rows
        self.weights = [row.weight for row in rows]

    def command(self):
        r = self.random
        row = r.choices(self.rows, self.weights)[0]
        args = row.make(r)
        # Any number is a cursor, and what it finds is Redis' own; a rank with a score is Redis 7.2's.
        if r.random() < 0.03 and row.spoiled and args[0] not in (b"SCAN", b"ZSCAN", b"HSCAN", b"ZRANK", b"ZREVRANK"):
            args = self.spoil(args)
        if r.random() < 0.1:
            args[0] = r.choice([args[0].lower(), args[0].capitalize()])
        return args, row.rule

    def command_on(self, names):
        """A command that has one of these among its arguments, if one comes up soon."""
        for _ in range(30):
            args, rule = self.command()
            if any(name in args[1:] for name in names):
                break
        return args, rule

    def transaction(self, length):
        """What goes in one pipeline from MULTI to its end."""
        ending = self.random.choices([b"EXEC", b"DISCARD"], [9, 1])[0]
        commands = [self.command() for _ in range(length)]
        return [([b"MULTI"], compare.exact), *commands, ([ending], compare.exact)]

    def spoil(self, args):
        """One argument less, more, twice, or exchanged for nonsense. The command's name stays."""
        r = self.random
        if args[0] == b"BITOP":
            return args[:3]  # one argument less in front would let it write a long string under a short key
        at = r.randrange(1, len(args) + 1)
        what = r.randrange(4)
        if what == 0:
            return args[:at] + args[at + 1 :] if at < len(args) else args[:-1] or args
        if what == 1:
            return args[:at] + word(r) + args[at:]
        if what == 2:
            return args + args[1:2]
        return args[:at] + not_number(r) + args[at + 1 :]
