"""Fields of hashes that expire: random commands on a server and on a model of it, while time passes, the sweeper works
or does not, and the server is started again."""

import os
import random

import pytest

from harness.resp import encode

START = 4_100_000_000_000  # milliseconds: later than real time, which a server goes by until it is told otherwise
WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


class Model:
    """What the server should hold: hashes by key, each {field: [value, moment or None]}."""

    def __init__(self):
        self.now = START
        self.hashes = {}

    def hash(self, key):
        h = self.hashes.get(key, {})
        for name in [n for n, (_, at) in h.items() if at is not None and at <= self.now]:
            del h[name]
        if not h:
            self.hashes.pop(key, None)
        return h

    def make(self, key):
        self.hash(key)
        return self.hashes.setdefault(key, {})

    def set(self, key, name, value, at=None):
        new = name not in self.make(key)
        self.hashes[key][name] = [value, at]
        if at is not None and at <= self.now:
            self.hash(key)
        return int(new)

    def hset(self, key, *pairs):
        return sum(self.set(key, n, v) for n, v in zip(pairs[::2], pairs[1::2]))

    def hdel(self, key, *names):
        h = self.hash(key)
        n = sum(h.pop(name, None) is not None for name in names)
        self.hash(key)
        return n

    def hpexpire(self, key, ms, condition, names):
        replies = []
        for name in names:
            h = self.hash(key)
            at = self.now + ms
            if name not in h:
                replies.append(-2)
                continue
            was = h[name][1]
            met = {
                None: True,
                "NX": was is None,
                "XX": was is not None,
                "GT": was is not None and at > was,
                "LT": was is None or at < was,
            }[condition]
            if met:
                h[name][1] = at
            replies.append(0 if not met else 1 if ms else 2)
        self.hash(key)
        return replies

    def hpttl(self, key, names):
        h = self.hash(key)
        return [-2 if n not in h else -1 if h[n][1] is None else h[n][1] - self.now for n in names]

    def hpersist(self, key, names):
        replies = self.hpttl(key, names)
        for i, name in enumerate(names):
            if replies[i] >= 0:
                replies[i] = 1 if name not in names[:i] else -1
                self.hash(key)[name][1] = None
        return replies

    def values(self, key, names):
        h = self.hash(key)
        return [h[n][0] if n in h else None for n in names]

    def hincrby(self, key, name, by):
        h = self.make(key)
        value, at = h.get(name, (b"0", None))
        h[name] = [b"%d" % (int(value) + by), at]
        return int(value) + by

    def hsetex(self, key, condition, expiry, names, value):
        h = self.hash(key)
        there = [n in h for n in names]
        if (condition == "FNX" and any(there)) or (condition == "FXX" and not all(there)):
            return 0
        for name in names:
            h = self.hash(key)
            if expiry == "KEEPTTL":
                self.set(key, name, value, h[name][1] if name in h else None)
            else:
                self.set(key, name, value, None if expiry is None else self.now + expiry)
        return 1

    def hgetex(self, key, expiry, names):
        replies = []
        for name in names:
            replies += self.values(key, [name])
            h = self.hash(key)
            if name in h and expiry is not None:
                h[name][1] = None if expiry == "PERSIST" else self.now + expiry
        self.hash(key)
        return replies

    def hgetdel(self, key, names):
        replies = []
        for name in names:
            replies += self.values(key, [name])
            self.hdel(key, name)
        return replies

    def copy(self, source, target):
        h = self.hash(source)
        if not h or self.hash(target):
            return 0
        self.hashes[target] = {n: list(v) for n, v in h.items()}
        return 1

    def keys(self):
        return sorted(key for key in list(self.hashes) if self.hash(key))


class Walk:
    """Random commands on the model and, in pipelines, on a server."""

    KEYS = [b"small", b"other", b"big", b"bigger"]

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.model = Model()

    def key(self):
        return self.r.choice(self.KEYS)

    def name(self, key):
        return b"f%d" % self.r.randrange({b"small": 12, b"other": 150, b"big": 1300, b"bigger": 6000}[key])

    def names(self, key, most=None):
        most = most or self.r.choice([1, 3, {b"small": 8, b"other": 100, b"big": 500, b"bigger": 2500}[key]])
        return [self.name(key) for _ in range(self.r.randint(1, most))]

    def ttl(self):
        return self.r.choice([0, 1, 5, 20, 100, 1000])

    def command(self):
        """(arguments, expected reply, how to bring a reply into the form of the expected one)"""
        r, m = self.r, self.model
        key = self.key()
        names = self.names(key)
        counted = ["FIELDS", len(names), *names]
        which = r.choice(
            "set set set setmany setnx incr del expire expire expire persist pttl get len all keys exists random scan"
            " setex setex getex getdel dbsize type rename copy drop push".split()
        )
        if which == "set":
            value = b"%d" % r.randrange(100)
            return ["HSET", key, names[0], value], m.hset(key, names[0], value), None
        if which == "setmany":
            words = [w for n in names for w in (n, b"%d" % r.randrange(100))]
            return ["HSET", key, *words], m.hset(key, *words), None
        if which == "setnx":
            absent = names[0] not in m.hash(key)
            if absent:
                m.set(key, names[0], b"7")
            return ["HSETNX", key, names[0], "7"], int(absent), None
        if which == "incr":
            return ["HINCRBY", key, names[0], "3"], m.hincrby(key, names[0], 3), None
        if which == "del":
            return ["HDEL", key, *names], m.hdel(key, *names), None
        if which == "expire":
            ms, condition = self.ttl(), r.choice([None, None, None, "NX", "XX", "GT", "LT"])
            form = ["HPEXPIRE", key, ms] if r.random() < 0.5 else ["HPEXPIREAT", key, m.now + ms]
            words = [*form, *([condition] if condition else []), *counted]
            return words, m.hpexpire(key, ms, condition, names), None
        if which == "persist":
            return ["HPERSIST", key, *counted], m.hpersist(key, names), None
        if which == "pttl":
            return ["HPTTL", key, *counted], m.hpttl(key, names), None
        if which == "get":
            return ["HMGET", key, *names], m.values(key, names), None
        if which == "len":
            return ["HLEN", key], len(m.hash(key)), None
        if which == "all":
            flat = [w for n in sorted(m.hash(key)) for w in (n, m.hash(key)[n][0])]
            return ["HGETALL", key], flat, lambda reply: [w for p in sorted(zip(reply[::2], reply[1::2])) for w in p]
        if which == "keys":
            return ["HKEYS", key], sorted(m.hash(key)), sorted
        if which == "exists":
            return ["EXISTS", key], int(bool(m.hash(key))), None
        if which == "random":
            here = set(m.hash(key))
            count = r.choice([1, 5, 100, 10_000, -5, -50])
            size = min(count, len(here)) if count > 0 else -count if here else 0
            distinct = count > 0

            def judged(reply):
                ok = set(reply) <= here and (not distinct or len(set(reply)) == len(reply))
                return len(reply) if ok else f"{reply} is not a choice"

            return ["HRANDFIELD", key, count], size, judged
        if which == "scan":
            flat = sorted(m.hash(key))
            return ["HSCAN", key, "0", "COUNT", "100000"], [b"0", flat], lambda reply: [reply[0], sorted(reply[1][::2])]
        if which == "setex":
            condition, ms = r.choice([None, None, "FNX", "FXX"]), self.ttl()
            expiry, words = r.choice([(None, []), ("KEEPTTL", ["KEEPTTL"]), (ms, ["PX", ms]), (ms, ["PXAT", m.now + ms])])
            pairs = [w for n in names for w in (n, b"9")]
            options = [*([condition] if condition else []), *words]
            return ["HSETEX", key, *options, "FIELDS", len(names), *pairs], m.hsetex(key, condition, expiry, names, b"9"), None
        if which == "getex":
            ms = self.ttl()
            expiry, words = r.choice([(None, []), ("PERSIST", ["PERSIST"]), (ms, ["PX", ms]), (ms, ["PXAT", m.now + ms])])
            return ["HGETEX", key, *words, *counted], m.hgetex(key, expiry, names), None
        if which == "getdel":
            return ["HGETDEL", key, *counted], m.hgetdel(key, names), None
        if which == "dbsize":
            return ["DBSIZE"], len(m.keys()), None
        if which == "type":
            return ["KEYS", "*"], m.keys(), sorted
        if which == "rename":
            to = self.key()
            if r.random() < 0.7 or not m.hash(key) or to == key or self.kind(to) != self.kind(key):
                return ["TYPE", key], b"hash" if m.hash(key) else b"none", None
            m.hashes[to] = m.hashes.pop(key)
            return ["RENAME", key, to], b"OK", None
        if which == "copy":
            to = self.key()
            if to == key or self.kind(to) != self.kind(key):
                return ["PING"], b"PONG", None
            return ["COPY", key, to], m.copy(key, to), None
        if which == "drop":
            if r.random() < 0.7:
                return ["PING"], b"PONG", None
            there = int(bool(m.hash(key)))
            m.hashes.pop(key, None)
            return ["DEL", key], there, None
        # A key that holds nothing but expired fields takes anything.
        if m.hash(key):
            return ["LLEN", key], WRONGTYPE, None
        return ["RPOP", key], None, None

    @staticmethod
    def kind(key):
        return key[:1]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--cache-memory", "0", "--page-cache", "64kb"],
        ["--sweep-interval", "1ms", "--sweep-pause", "0", "--sweep-batch", "7", "--durability", "everysec"],
        ["--sweep", "no"],
    ],
    ids=["default", "uncached", "sweeping", "unswept"],
)
@pytest.mark.parametrize("seed", range(int(os.environ.get("LARDER_SEEDS", 1))))
def test_random_commands_on_a_model(fleet, options, seed):
    larder = fleet.larder(*options)
    walk = Walk(f"{seed} {options}")
    with larder.connect() as client:
        client("DEBUG", "CLOCK", START)
        for _ in range(100):
            walk.model.now += walk.r.choice([0, 1, 3, 10, 50, 2000])
            client("DEBUG", "CLOCK", walk.model.now)
            batch = [walk.command() for _ in range(walk.r.choice([1, 2, 20]))]
            with client.sending(b"".join(encode(args) for args, _, _ in batch)):
                for args, expected, form in batch:
                    reply = client.read()
                    got = reply.value.decode() if reply.is_error else reply.plain()
                    if form and not reply.is_error:
                        got = form(got)
                    assert got == expected, f"{args[:8]}... at {walk.model.now - START}"
            if walk.r.random() < 0.02:
                client.close()
                larder.stop()
                larder.start()
                client = larder.connect()
                client("DEBUG", "CLOCK", walk.model.now)
        client.close()
    larder.stop()
    larder.check()
