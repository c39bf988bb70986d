"""Writers that change keys in every way there is, and readers that may be served from memory.

Each key has one writer, so that the order of its values is certain; no value is written twice, and all items of
a collection have the value of the key, however many they are. Reads are judged by consistency.py, by this load's own
monotonic clock: how old what they return may be, and that a collection is whole. A key that expires must not be seen
once its time has come for certain.
"""

import itertools
import random
import threading
import time

from harness.resp import ServerError

from .consistency import Op, problems

LIVES_MS = 40  # of keys that expire
SLACK_MS = 2  # a moment is told in whole milliseconds
TYPES = ("string", "hash", "list", "set", "zset")
WAYS = ("typed", "renamed", "swapped", "flushed", "expires")


def build(key, kind, value, n):
    """Commands that make a key a collection of n items (or a string) that say `value`."""
    names = [f"{value}:{i}" for i in range(n)]
    return {
        "string": [("SET", key, value)],
        "hash": [("HSET", key, *itertools.chain(*((name, value) for name in names)))],
        "list": [("RPUSH", key, *names)],
        "set": [("SADD", key, *names)],
        "zset": [("ZADD", key, *itertools.chain(*((i, name) for i, name in enumerate(names))))],
    }[kind]


READS = {
    "string": ("GET",), "hash": ("HGETALL",), "list": ("LRANGE", 0, -1), "set": ("SMEMBERS",), "zset": ("ZRANGE", 0, -1)
}  # fmt: skip


def value_of(kind, reply):
    """What a whole collection says. A mixture of two is a value that nobody wrote."""
    if kind == "string" or not reply:
        return reply or None
    names = reply[::2] if kind == "hash" else reply
    return b"+".join(sorted({name.split(b":")[0] for name in names}))


class Writer:
    """Changes its keys, one for each way, in the databases 0 to 3."""

    def __init__(self, load, number):
        self.number = number
        self.random = random.Random(f"{load.seed} {number}")
        self.connection = load.writers[number % len(load.writers)].connect()
        self.values = itertools.count(1)
        self.load = load
        self.ops = []

    def commands(self, way, key, kind, value):
        n = self.random.choice((1, 2, 5, 30))
        if way == "expires":
            return [("SET", key, value, "PX", LIVES_MS)]
        if way == "renamed":
            return [*build(f"{key}:before", kind, value, n), ("RENAME", f"{key}:before", key)]
        fresh = build(key, kind, value, n)
        if way == "swapped":  # what is made in one database is in the other afterwards
            return [("SELECT", 2), ("DEL", key), *fresh, ("SWAPDB", 1, 2), ("SELECT", 0)]
        if way == "flushed":
            return [("SELECT", 3), ("FLUSHDB",), *fresh, ("SELECT", 0)]
        return [("DEL", key), *fresh]

    def step(self):
        way = self.random.choice(WAYS[: 2 if self.number else None] + ("expires",))
        kind = self.random.choice(TYPES) if way != "expires" else "string"
        value = f"{self.number}.{next(self.values)}"
        key = f"{way}:{self.number}"
        start = time.monotonic()
        replies = self.connection.pipeline([("MULTI",), *self.commands(way, key, kind, value), ("EXEC",)])
        answers = replies[-1].plain()
        wrong = [a for a in (answers if isinstance(answers, list) else [answers]) if isinstance(a, ServerError)]
        assert not wrong and isinstance(answers, list), answers
        self.ops.append(Op(start, time.monotonic(), "w", key, value.encode()))

    def run(self):
        while not self.load.stopping:
            self.step()
            time.sleep(self.random.choice((0, 0.001, 0.01)))


class Reader:
    """Reads everybody's keys in one mode, on one connection."""

    def __init__(self, load, number, mode, bound):
        self.load, self.mode, self.bound, self.session = load, mode, bound, number
        self.random = random.Random(f"{load.seed} r{number}")
        self.connection = load.reader.connect()
        self.connection("LARDER.CONSISTENCY", mode.upper(), *([bound] if mode == "bounded" else []))
        self.ops, self.db = [], 0

    def step(self):
        way = self.random.choice(WAYS)
        key = f"{way}:{0 if way in WAYS[2:4] else self.random.randrange(self.load.nwriters)}"
        kind = self.random.choice(TYPES) if way != "expires" else "string"
        db = {"swapped": 1, "flushed": 3}.get(way, 0)
        command, *rest = READS[kind]
        together = self.random.random() < 0.1
        if db != self.db and not together:
            self.connection("SELECT", db)
        start = time.monotonic()
        reply = self.connection.pipeline([*([("SELECT", db)] if together else []), (command, key, *rest)])[-1].plain()
        end = time.monotonic()
        self.db = db
        if isinstance(reply, ServerError):
            assert reply.text.startswith(b"WRONGTYPE"), reply
            return
        self.ops.append(Op(start, end, "r", key, value_of(kind, reply), self.session, self.mode, self.bound))

    def crowd_out(self):
        """Keys that nobody has, so many that they push others out of memory."""
        for reply in self.connection.pipeline([("GET", f"nobody:{self.random.randrange(10000)}") for _ in range(50)]):
            assert reply.plain() is None

    def run(self):
        while not self.load.stopping:
            if self.random.random() < 0.1:
                self.crowd_out()
            self.step()


class RecentLoad:
    def __init__(self, reader, writers, modes, nwriters=2, seed=0):
        self.reader, self.writers, self.nwriters, self.seed = reader, writers, nwriters, seed
        self.stopping, self.wrong = False, []
        self.clients = [Writer(self, i) for i in range(nwriters)]
        self.clients += [Reader(self, i, mode, bound) for i, (mode, bound) in enumerate(modes)]
        self.threads = [threading.Thread(target=self._run, args=(c,), daemon=True) for c in self.clients]

    def _run(self, client):
        try:
            client.run()
        except Exception as e:  # noqa: BLE001
            self.wrong.append(e)

    def run(self, seconds):
        for thread in self.threads:
            thread.start()
        time.sleep(seconds)
        self.stopping = True
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"
        for client in self.clients:
            client.connection.close()
        if self.wrong:
            raise self.wrong[0]

    def check(self):
        ops = [op for c in self.clients for op in c.ops]
        lasting = [op for op in ops if not op.key.startswith("expires") and not (op.kind == "r" and op.value is None)]
        found = problems(lasting) + expired(ops)
        assert not found, f"{len(found)} broken promises:\n" + "\n".join(found[:10])
        return sum(op.kind == "r" for op in ops)


def expired(ops):
    """Reads of a key whose time had come for certain before they were sent."""
    ends = {op.value: op.end for op in ops if op.kind == "w" and op.key.startswith("expires")}
    late = (LIVES_MS + SLACK_MS) / 1000
    return [f"expired: {op}" for op in ops if op.kind == "r" and op.value in ends and op.start > ends[op.value] + late]
