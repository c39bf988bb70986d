"""Writers whose change sets are all or nothing, and what must be there of them after a crash.

Each writer has keys (and two databases) of its own and sends its change sets on one connection, in order. It notes the
position of the recording when it sends one, and when it is acknowledged. So of each writer a crash must leave what
the first n of its change sets lead to, for some n: not fewer than were acknowledged, not more than were sent, and
nothing in between. Most change sets are transactions or commands over several keys and types, with the same number
everywhere; others are not idempotent, so that one that is done twice is found as well.
"""

import bisect
import collections
import random
import threading
import time

from harness.resp import Closed, encode

FAR = 4_000_000_000_000  # milliseconds: a moment that no test sees
LONG = 70_000  # bytes: longer than what is kept in a key's row
MANY = 1500  # items: more than are read into memory as a whole

# What a key holds, by its name, and how that is read.
READ = {
    b"str": lambda key: (b"GET", key),
    b"list": lambda key: (b"LRANGE", key, b"0", b"-1"),
    b"hash": lambda key: (b"HGETALL", key),
    b"set": lambda key: (b"SMEMBERS", key),
    b"zset": lambda key: (b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"),
}
KEEP = {
    b"str": lambda reply: reply,
    b"list": tuple,
    b"hash": lambda flat: frozenset(zip(flat[::2], flat[1::2])),
    b"set": frozenset,
    b"zset": lambda flat: frozenset(zip(flat[::2], flat[1::2])),
}
EMPTY = {b"list": (), b"hash": frozenset(), b"set": frozenset(), b"zset": frozenset()}

# commands: what is sent. apply: what it does to {(database, key): (value, expire time)}.
Change = collections.namedtuple("Change", "database commands apply")
Sent = collections.namedtuple("Sent", "change position time")


class Maker:
    """Makes a writer's change sets, knowing what those before it lead to. heavy: most of them are large."""

    def __init__(self, number, seed, heavy=False):
        self.name = b"w%d" % number
        self.random = random.Random(seed)
        self.weights = {**self.WEIGHTS, Maker.long_string: 100} if heavy else self.WEIGHTS
        self.aside = [2 + 2 * number, 3 + 2 * number]  # its own databases
        self.serial = 0
        self.now = {}  # after everything that was made so far

    def key(self, kind, which=0):
        return b"%s:%s:%d" % (self.name, kind, which)

    def keys(self):
        """Every (database, key) there may be."""
        home = [self.key(kind, i) for kind in READ for i in range(13)]
        return [(0, key) for key in home] + [(db, self.key(b"str", i)) for db in self.aside for i in range(6)]

    def next(self):
        self.serial += 1
        made = None
        while made is None:
            make = self.random.choices(list(self.weights), self.weights.values())[0]
            made = make(self, b"%d" % self.serial)
        made.apply(self.now)
        return made

    # --- change sets; None when it makes no sense now

    def all_types(self, v):
        """One number in a key of each type."""
        n, m = int(v), b"m%d" % (int(v) % 5)
        string, items, fields, members, scores, count = (
            self.key(b"str"), self.key(b"list"), self.key(b"hash"), self.key(b"set"), self.key(b"zset"), self.key(b"str", 1),
        )  # fmt: skip

        def apply(now):
            put(now, string, v)
            edit(now, items, lambda old: (*old, v)[-8:])
            edit(now, fields, lambda old: merged(old, {b"all": v, m: v}))
            edit(now, members, lambda old: (old | {v}) - {b"%d" % (n - 6)})
            edit(now, scores, lambda old: merged(old, {b"all": v, m: v}))
            add(now, count, 1)

        commands = [
            (b"SET", string, v), (b"RPUSH", items, v), (b"LTRIM", items, b"-8", b"-1"), (b"HSET", fields, b"all", v, m, v),
            (b"SADD", members, v), (b"SREM", members, b"%d" % (n - 6)), (b"ZADD", scores, v, b"all", v, m), (b"INCR", count),
        ]  # fmt: skip
        return Change(0, [(b"MULTI",), *commands, (b"EXEC",)], apply)

    def several_strings(self, v):
        keys = [self.key(b"str", i) for i in range(2, 8)]
        return Change(0, [(b"MSET", *(part for key in keys for part in (key, v)))], lambda now: [put(now, k, v) for k in keys])

    def expiring(self, v):
        key = self.key(b"str", self.random.randint(8, 9))
        moment = FAR + int(v)
        return Change(0, [(b"SET", key, v, b"PXAT", b"%d" % moment)], lambda now: put(now, key, v, moment))

    def not_idempotent(self, v):
        """Done twice, each of these shows it."""
        text, items, fields, scores = self.key(b"str", 10), self.key(b"list", 1), self.key(b"hash", 1), self.key(b"zset", 1)

        def apply(now):
            before, expire = now.get((0, text), (b"", -1))
            now[0, text] = ((before + v)[-200:], expire)
            edit(now, items, lambda old: (v, *old[:-1]) if len(old) > 5 else (v, *old))
            edit(now, fields, lambda old: merged(old, {b"count": b"%d" % (int(dict(old).get(b"count", 0)) + 3)}))
            edit(now, scores, lambda old: merged(old, {b"count": b"%d" % (int(dict(old).get(b"count", 0)) + 3)}))

        long = len(self.now.get((0, text), (b"",))[0]) + len(v)
        full = len(self.now.get((0, items), ((),))[0]) > 5
        commands = [(b"APPEND", text, v)]
        if long > 200:
            commands = [(b"SET", text, (self.now[0, text][0] + v)[-200:])]
        commands += [(b"LPUSH", items, v)] + [(b"RPOP", items)] * full
        commands += [(b"HINCRBY", fields, b"count", b"3"), (b"ZINCRBY", scores, b"3", b"count")]
        return Change(0, [(b"MULTI",), *commands, (b"EXEC",)], apply)

    def delete(self, v):
        there = [key for db, key in self.now if db == 0]
        if not there:
            return None
        gone = self.random.sample(sorted(there), min(len(there), self.random.randint(1, 3)))
        return Change(0, [(b"DEL", *gone)], lambda now: [now.pop((0, key), None) for key in gone])

    def rename(self, v):
        kind = self.random.choice(list(READ))
        source, target = self.random.sample([self.key(kind, i) for i in ((8, 9, 11) if kind == b"str" else (0, 1, 3))], 2)
        if (0, source) not in self.now:
            return None

        def apply(now):
            now[0, target] = now.pop((0, source))

        return Change(0, [(b"RENAME", source, target)], apply)

    def write_aside(self, v):
        db = self.random.choice(self.aside)
        keys = [self.key(b"str", i) for i in range(6)]

        def apply(now):
            now.update({(db, key): (v, -1) for key in keys})

        return Change(db, [(b"MSET", *(part for key in keys for part in (key, v)))], apply)

    def flush(self, v):
        db = self.random.choice(self.aside)

        def apply(now):
            for place in [place for place in now if place[0] == db]:
                del now[place]

        return Change(db, [(b"FLUSHDB",)], apply)

    def swap(self, v):
        a, b = self.aside

        def apply(now):
            moved = {({a: b, b: a}[db], key): now.pop((db, key)) for db, key in list(now) if db in (a, b)}
            now.update(moved)

        return Change(0, [(b"SWAPDB", b"%d" % a, b"%d" % b)], apply)

    def long_string(self, v):
        key = self.key(b"str", 11)
        text = (v * LONG)[:LONG]
        return Change(0, [(b"SET", key, text)], lambda now: put(now, key, text))

    def many_items(self, v):
        items, fields, members, scores = (self.key(kind, 2) for kind in (b"list", b"hash", b"set", b"zset"))
        values = [b"%s-%d" % (v, i) for i in range(MANY)]
        names = {b"f%d" % i: v for i in range(MANY)}
        new = {b"m%d" % i: b"%d" % (i * int(v) % 1000) for i in range(MANY)}
        gone = {name for i, name in enumerate(new) if i % 3 == int(v) % 3}

        def apply(now):
            edit(now, items, lambda old: (*old, *values)[-2 * MANY :])
            edit(now, fields, lambda old: merged(old, names))
            edit(now, members, lambda old: (old | set(values[:500])) - set(values[:9]))
            edit(now, scores, lambda old: frozenset(pair for pair in merged(old, new) if pair[0] not in gone))

        commands = [
            (b"RPUSH", items, *values), (b"LTRIM", items, b"-%d" % (2 * MANY), b"-1"),
            (b"HSET", fields, *(part for pair in names.items() for part in pair)),
            (b"SADD", members, *values[:500]), (b"SREM", members, *values[:9]),
            (b"ZADD", scores, *(part for member, score in new.items() for part in (score, member))), (b"ZREM", scores, *gone),
        ]  # fmt: skip
        return Change(0, [(b"MULTI",), *commands, (b"EXEC",)], apply)

    def short_lived(self, v):
        """What has expired before anybody looks is left to the sweeper."""
        string, items, fields = self.key(b"str", 12), self.key(b"list", 12), self.key(b"hash", 12)
        commands = [
            (b"SET", string, v, b"PX", b"1"), (b"RPUSH", items, v), (b"PEXPIRE", items, b"1"),
            (b"HSET", fields, b"short", v, b"long", v), (b"HPEXPIRE", fields, b"1", b"FIELDS", b"1", b"short"),
        ]  # fmt: skip
        return Change(0, [(b"MULTI",), *commands, (b"EXEC",)], lambda now: edit(now, fields, lambda old: merged(old, {b"long": v})))

    def copy(self, v):
        kind = self.random.choice([b"list", b"hash", b"set", b"zset"])
        source, target = self.key(kind, 0), self.key(kind, 4)
        if (0, source) not in self.now:
            return None

        def apply(now):
            now[0, target] = now[0, source]

        return Change(0, [(b"COPY", source, target, b"REPLACE")], apply)

    WEIGHTS = {
        all_types: 40, several_strings: 12, expiring: 12, not_idempotent: 12, delete: 8, rename: 6, write_aside: 8,
        short_lived: 6, copy: 4, flush: 2, swap: 2, long_string: 1, many_items: 1,
    }  # fmt: skip


def put(now, key, value, expire=-1):
    now[0, key] = (value, expire)


def add(now, key, number):
    value, expire = now.get((0, key), (b"0", -1))
    now[0, key] = (b"%d" % (int(value) + number), expire)


def edit(now, key, function):
    value, expire = now.get((0, key), (EMPTY[key.split(b":")[1]], -1))
    now[0, key] = (function(value), expire)


def merged(pairs, new):
    return frozenset({**dict(pairs), **new}.items())


class Writer:
    """Sends change sets, and remembers at which positions of the recording they were sent and acknowledged."""

    def __init__(self, number, seed, position, pause=0, heavy=False):
        self.maker = Maker(number, seed, heavy)
        self.position = position  # a function
        self.pause = pause  # seconds between two pipelines
        self.sent = []  # Sent
        self.acknowledged = []  # positions
        self.times = []  # and when that was, in nanoseconds of the monotonic clock
        self.problem = None
        self.states = None

    def run(self, connection, count, done=None):
        """Sends so many change sets, or until done(), or until the server is gone."""
        try:
            database = 0
            while count > 0 and not (done and done()):
                time.sleep(self.pause)
                n = min(count, self.maker.random.choice([1, 1, 1, 2, 4]))
                count -= n
                database = self._pipeline(connection, n, database)
        except (Closed, ConnectionError):
            pass
        except Exception as e:  # shown by whoever joins
            self.problem = f"{self.maker.name!r}: {e!r}"
        finally:
            connection.close()

    def _pipeline(self, connection, n, database):
        frames = []  # of each change set
        for _ in range(n):
            change = self.maker.next()
            select = [] if change.database == database else [(b"SELECT", b"%d" % change.database)]
            database = change.database
            frames.append([*select, *change.commands])
            self.sent.append(Sent(change, self.position(), time.monotonic_ns()))
        data = b"".join(encode(args) for commands in frames for args in commands)
        with connection.sending(data):
            for commands in frames:
                for args in commands:
                    reply = connection.read()
                    if reply.is_error or any(item.is_error for item in reply.value if reply.kind == b"*"):
                        raise AssertionError(f"{args[:2]!r} answered {reply!r}")
                self.acknowledged.append(self.position())
                self.times.append(time.monotonic_ns())
        return database

    def freeze(self):
        """Call before explain(): what the first n change sets lead to, for each n."""
        assert self.problem is None, self.problem
        self.states = [{}]
        for sent in self.sent:
            now = dict(self.states[-1])
            sent.change.apply(now)
            self.states.append(now)

    def acknowledged_at(self, position):
        """How many change sets had been acknowledged."""
        return bisect.bisect_right(self.acknowledged, position)

    def sent_at(self, position):
        return bisect.bisect_right([sent.position for sent in self.sent], position)

    def explain(self, actual, least, most):
        """Which numbers of change sets, from least to most, lead to what is there: the smallest and the largest."""
        found = [n for n in range(least, most + 1) if self.states[n] == actual]
        assert found, self._problem(actual, least, most)
        return found[0], found[-1]

    def _problem(self, actual, least, most):
        everything = [n for n, state in enumerate(self.states) if state == actual]
        if everything:
            return f"{self.maker.name.decode()} has its first {everything} change sets, rather than {least} to {most}"

        def near(n):
            expected = self.states[n]
            return [place for place in expected.keys() | actual.keys() if expected.get(place) != actual.get(place)]

        best = min(range(len(self.states)), key=lambda n: len(near(n)))
        lines = [f"{place}: {shown(self.states[best].get(place))}, found {shown(actual.get(place))}" for place in near(best)]
        return (
            f"{self.maker.name.decode()}: no number of change sets leads to what is there, not from {least} to {most} and no "
            f"other; nearest are {best}, the last of them {shown(self.sent[best - 1].change.commands if best else None)}, "
            "but for\n  " + "\n  ".join(lines[:10])
        )


def shown(value):
    text = repr(value)
    return text if len(text) < 300 else f"{text[:150]} ... {text[-100:]}"


def run_all(writers, connections, count, done=None):
    """Each writer sends so many change sets on a connection of its own, or until done()."""
    threads = [threading.Thread(target=w.run, args=(c, count, done), daemon=True) for w, c in zip(writers, connections)]
    for thread in threads:
        thread.start()
    return threads


def join_all(threads, writers):
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a writer hangs"
    for writer in writers:
        assert writer.problem is None, writer.problem


def read(connection, writer):
    """{(database, key): (value, expire time)} of what there is of a writer's keys."""
    places = writer.maker.keys()
    kinds = [key.split(b":")[1] for _, key in places]
    commands = []
    for (database, key), kind in zip(places, kinds):
        commands += [(b"SELECT", b"%d" % database), READ[kind](key), (b"PEXPIRETIME", key)]
    replies = connection.pipeline(commands)
    found = {}
    for i, (place, kind) in enumerate(zip(places, kinds)):
        value, expire = replies[3 * i + 1].plain(), replies[3 * i + 2].plain()
        if isinstance(value, Exception):
            raise AssertionError(f"{place}: {value}")
        if expire != -2:
            found[place] = (KEEP[kind](value), expire)
    return found


def verify_all(connection, writers):
    """The server has what all change sets lead to: none was lost, and none is unacknowledged."""
    for writer in writers:
        actual = read(connection, writer)
        wrong = [place for place in actual.keys() | writer.maker.now.keys() if actual.get(place) != writer.maker.now.get(place)]
        lines = [f"{place}: {shown(writer.maker.now.get(place))}, found {shown(actual.get(place))}" for place in wrong]
        assert not wrong, "without any crash:\n  " + "\n  ".join(lines)


def verify(connection, writers, position, lost_after=None):
    """What a server has after a crash at a position: of each writer a prefix of its change sets, with all that were
    acknowledged before the crash (or before `lost_after`, where later ones may be lost). And what was sent when
    another change set had been acknowledged is not there without it. Returns the least and the largest number of change
    sets of each writer that explain what is there."""
    ranges = []
    sizes = collections.Counter()
    for writer in writers:
        actual = read(connection, writer)
        sizes.update(database for database, _ in actual)
        least = writer.acknowledged_at(position if lost_after is None else lost_after)
        ranges.append(writer.explain(actual, least, writer.sent_at(position)))
    for database in {0}.union(*(writer.maker.aside for writer in writers)):
        connection("SELECT", database)
        assert connection("DBSIZE") == sizes[database], f"database {database} counts more keys than it has"

    newest = max((w.sent[least - 1].time for w, (least, _) in zip(writers, ranges) if least), default=0)
    for writer, (_, most) in zip(writers, ranges):
        before = bisect.bisect_left(writer.times, newest)
        assert most >= before, f"{writer.maker.name.decode()} has {most} change sets; later ones than its {before}th are there"
    return ranges
