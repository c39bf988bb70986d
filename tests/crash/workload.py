"""Writers that know what a server has acknowledged, and the check of what is there after it has died.

Each writer has keys of its own and sends its commands on one connection, in order. So after a crash its keys must
be exactly as some prefix of what it sent leaves them, and that prefix holds everything that was acknowledged: no
acknowledged command may be lost, no command may be half done, none may take effect before an earlier one. Commands
on keys that all writers share are checked for what must hold whatever their order was.

Where the server may lose what it acknowledged a moment ago, the prefix holds what was saved: all that had been
acknowledged when SAVE was sent and answered. It is a prefix there, too: nothing is missing in the middle.
"""

import dataclasses
import random
import threading

from harness.resp import Closed, encode

KEYS = 200  # of each writer
GROUPS = 20  # of ten keys that MSET writes together
COLLECTIONS_EACH = 9  # small ones of each writer and type; and one large one
LARGE = b":9"
FAR = 4_000_000_000_000  # milliseconds: a moment that no test sees
SHARED_COUNTER = b"shared:counter"
SHARED_GROUP = [b"shared:group:%d" % i for i in range(10)]


@dataclasses.dataclass
class Command:
    """What is sent, and how it changes the writer's own keys (a dict of key: (value, expire time)). A transaction is
    several commands that are sent together and take effect with the last."""

    args: list
    apply: object
    counts: bool = False  # it increments the shared counter
    before: list = dataclasses.field(default_factory=list)  # a transaction's commands up to its EXEC

    def frames(self):
        return [*self.before, self.args]


# The second part of a key's name says what it holds; here what is read of those that hold no string, and how that
# is kept in the dict. Nothing at all means that there is no such key.
COLLECTIONS = {
    b"list": (lambda key: [b"LRANGE", key, b"0", b"-1"], tuple),
    b"hash": (lambda key: [b"HGETALL", key], lambda flat: frozenset(zip(flat[::2], flat[1::2]))),
    b"set": (lambda key: [b"SMEMBERS", key], frozenset),
    b"zset": (lambda key: [b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], tuple),
}


def change(args, key, function, empty):
    """A command on a collection: function takes its old value and returns the new one."""

    def apply(keys):
        before, expire = keys.get(key, (empty, -1))
        after = function(before)
        if after:
            keys[key] = (after, expire)
        else:
            keys.pop(key, None)

    return Command([args[0], key, *args[1:]], apply)


def change_two(args, source, target, function, empty):
    """A command on two collections: function takes their old values and returns the new ones."""

    def apply(keys):
        found = [keys.get(key, (empty, -1)) for key in (source, target)]
        for key, (_, expire), after in zip((source, target), found, function(*(value for value, _ in found))):
            if after:
                keys[key] = (after, expire)
            else:
                keys.pop(key, None)

    return Command([args[0], source, target, *args[1:]], apply)


def many(r, key):
    """How many items a command is about: of large collections so many that they come and go across every size at which
    the form in memory or the tables changes."""
    return r.choice([300, 1100]) if key.endswith(LARGE) else r.randint(1, 3)


def list_command(r, key, value):
    n = many(r, key)
    which = r.randrange(6)
    if which == 0:
        return change([b"LPUSH", *[value] * n], key, lambda items: (*[value] * n, *items), ())
    if which == 1:
        return change([b"LPOP", b"%d" % n], key, lambda items: items[n:], ())
    if which == 2:
        keep = 20 if n <= 3 else r.choice([900, 5000])
        return change([b"LTRIM", b"-%d" % keep, b"-1"], key, lambda items: items[-keep:], ())
    if which == 3:
        target = other(r, key)
        return change_two([b"LMOVE", b"RIGHT", b"LEFT"], key, target, lambda a, b: (a[:-1], (*a[-1:], *b)), ())
    return change([b"RPUSH", *(b"%s-%d" % (value, i) for i in range(n))], key, lambda items: (*items, *(b"%s-%d" % (value, i) for i in range(n))), ())


def hash_command(r, key, value):
    names = [b"f%d" % r.randrange(20 if many(r, key) <= 3 else 6000) for _ in range(many(r, key))]
    which = r.randrange(4)
    if which == 0:
        gone = set(names)
        return change([b"HDEL", *names], key, lambda old: frozenset(p for p in old if p[0] not in gone), frozenset())
    if which == 1:

        def add(old):
            fields = dict(old)
            return frozenset({**fields, b"count": b"%d" % (int(fields.get(b"count", 0)) + 3)}.items())

        return change([b"HINCRBY", b"count", b"3"], key, add, frozenset())

    def put(old):
        return frozenset({**dict(old), **dict.fromkeys(names, value)}.items())

    return change([b"HSET", *(part for name in names for part in (name, value))], key, put, frozenset())


def set_command(r, key, value):
    n = many(r, key)
    members = frozenset(b"m%d" % r.randrange(40 if n <= 3 else 6000) for _ in range(n))
    which = r.randrange(4)
    if which == 0:
        return change([b"SREM", *members], key, lambda old: old - members, frozenset())
    if which == 1:
        moved = frozenset([b"m%d" % r.randrange(40)])

        def move(a, b):
            return (a - moved, b | moved) if moved <= a else (a, b)

        return change_two([b"SMOVE", *moved], key, other(r, key), move, frozenset())
    return change([b"SADD", *members], key, lambda old: old | members, frozenset())


def zset_command(r, key, value):
    n = many(r, key)
    new = {b"m%d" % r.randrange(40 if n <= 3 else 6000): b"%d" % r.randrange(1000) for _ in range(n)}
    which = r.randrange(5)

    def scores(old):
        return dict(zip(old[::2], old[1::2]))

    def flat(now):
        ordered = sorted(now.items(), key=lambda pair: (int(pair[1]), pair[0]))
        return tuple(part for pair in ordered for part in pair)

    if which == 0:
        return change([b"ZREM", *new], key, lambda old: flat({m: s for m, s in scores(old).items() if m not in new}), ())
    if which == 1:
        return change([b"ZPOPMIN", b"%d" % n], key, lambda old: old[2 * n :], ())
    if which == 2:

        def add(old):
            now = scores(old)
            return flat({**now, b"count": b"%d" % (int(now.get(b"count", 0)) + 3)})

        return change([b"ZINCRBY", b"3", b"count"], key, add, ())
    return change([b"ZADD", *(part for m, s in new.items() for part in (s, m))], key, lambda old: flat({**scores(old), **new}), ())


def other(r, key):
    """Another small collection of the same writer and type."""
    names = [key.rsplit(b":", 1)[0] + b":%d" % i for i in range(COLLECTIONS_EACH)]
    return r.choice([name for name in names if name != key])


def copy(r, key):
    target = other(r, key)

    def apply(keys):
        if key in keys:
            keys[target] = keys[key]

    return Command([b"COPY", key, target, b"REPLACE"], apply)


MAKERS = {b"list": list_command, b"hash": hash_command, b"set": set_command, b"zset": zset_command}
# Each family's presence is asked for by one of its commands.
NEEDS = {b"RPUSH": b"list", b"HSET": b"hash", b"SADD": b"set", b"ZADD": b"zset", b"EXEC": b"transaction"}


def transaction(commands):
    def apply(keys):
        for command in commands:
            command.apply(keys)

    return Command([b"EXEC"], apply, before=[[b"MULTI"], *(command.args for command in commands)])


def set_key(key, value):
    return Command([b"SET", key, value], lambda keys: keys.update({key: (value, -1)}))


def increment(key):
    def apply(keys):
        value, expire = keys.get(key, (b"0", -1))
        keys[key] = (b"%d" % (int(value) + 1), expire)

    return Command([b"INCR", key], apply)


def append(key, value):
    def apply(keys):
        before, expire = keys.get(key, (b"", -1))
        keys[key] = (before + value, expire)

    return Command([b"APPEND", key, value], apply)


def set_group(group, value):
    pairs = {key: (value, -1) for key in group}
    return Command([b"MSET", *(part for key in group for part in (key, value))], lambda keys: keys.update(pairs))


def expire(key, moment):
    def apply(keys):
        if key in keys:
            keys[key] = (keys[key][0], moment)

    return Command([b"PEXPIREAT", key, b"%d" % moment], apply)


def delete(key):
    return Command([b"DEL", key], lambda keys: keys.pop(key, None))


def shared(*args, counts=False):
    return Command(list(args), lambda keys: None, counts)


class Writer:
    """One connection that writes until it is told to stop or the server is gone."""

    def __init__(self, number, seed):
        self.name = b"w%d" % number
        self.random = random.Random(seed)
        self.serial = 0
        self.keys = {}  # as they were found last
        self.history = []  # what was sent since then ...
        self.answered = 0  # ... and how much of it was acknowledged ...
        self.saved = 0  # ... and how much is safe whatever the durability
        self.acknowledged = 0
        self.stopping = False
        self.problem = None
        self.thread = None
        self.families = []

    def start(self, server):
        self.stopping = False
        self.thread = threading.Thread(target=self._run, args=(server,), daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping = True

    def join(self):
        self.thread.join(120)
        assert not self.thread.is_alive(), "a writer hangs"
        assert self.problem is None, self.problem

    def _run(self, server):
        try:
            with server.connect() as connection:
                known = connection("COMMAND", "INFO", *NEEDS)
                self.families = [family for family, there in zip(NEEDS.values(), known) if there]
                while not self.stopping:
                    self._pipeline(connection)
        except (Closed, ConnectionError):
            pass
        except Exception as e:  # shown by join() in the test's own thread
            self.problem = f"{self.name!r}: {e!r}"

    def _pipeline(self, connection):
        commands = [self._command() for _ in range(self.random.choice([1, 1, 1, 2, 5, 30]))]
        self.history += commands
        connection.send(b"".join(encode(args) for command in commands for args in command.frames()))
        for command in commands:
            for args in command.frames():
                reply = connection.read()
                if reply.is_error:
                    raise AssertionError(f"{args[:2]!r} answered {reply!r}")
            self.answered += 1
            self.acknowledged += 1

    def _command(self):
        r = self.random
        self.serial += 1
        value = b"%s-%d" % (self.name, self.serial)
        key = b"%s:key:%d" % (self.name, r.randrange(KEYS))
        if self.families and r.random() < 0.3:
            return self._family(r.choice(self.families), value)
        kind = r.randrange(20)
        if kind < 7:
            return set_key(key, value * r.choice([1, 1, 1, 1, 50]))
        if kind < 9:
            return increment(b"%s:counter:%d" % (self.name, r.randrange(5)))
        if kind < 11:
            group = r.randrange(GROUPS)
            return set_group([b"%s:group:%d:%d" % (self.name, group, i) for i in range(10)], value)
        if kind < 13:
            return append(b"%s:text:%d" % (self.name, r.randrange(10)), value)
        if kind < 15:
            return expire(key, FAR + self.serial)
        if kind < 17:
            return delete(key)
        if kind == 17:
            # Longer than what is kept in the key's row.
            return set_key(b"%s:long:%d" % (self.name, r.randrange(3)), value * 10000)
        if kind == 18:
            return shared(b"INCR", SHARED_COUNTER, counts=True)
        return shared(b"MSET", *(part for k in SHARED_GROUP for part in (k, value)))

    def _family(self, family, value, alone=True):
        r = self.random
        if family != b"transaction":
            key = b"%s:%s:%d" % (self.name, family, r.randrange(COLLECTIONS_EACH))
            if alone and r.random() < 0.1:
                key = key.rsplit(b":", 1)[0] + LARGE
            elif r.random() < 0.1:
                return copy(r, key)
            elif r.random() < 0.05:
                return expire(key, FAR + self.serial)
            return MAKERS[family](r, key, value)
        parts = [set_key(b"%s:key:%d" % (self.name, r.randrange(KEYS)), value), increment(b"%s:counter:0" % self.name)]
        parts += [self._family(name, value, alone=False) for name in self.families if name != b"transaction"]
        return transaction(parts)

    def verify(self, connection, lossy):
        """The server has what some prefix of the sent commands leaves, all acknowledged (or saved) ones included.
        Returns how many increments of the shared counter the shortest and the longest such prefix has."""
        expected, mentioned = dict(self.keys), set(self.keys)
        for command in self.history:
            command.apply(expected)
            mentioned.update(expected)
        actual = read(connection, sorted(mentioned))
        expected = dict(self.keys)
        lengths, problem = [], []
        for length in range(len(self.history) + 1):
            if length >= (self.saved if lossy else self.answered) and expected == actual:
                lengths.append(length)
            if length == self.answered:
                problem = self._difference(expected, actual)
            if length < len(self.history):
                self.history[length].apply(expected)
        assert lengths, (
            f"{self.name.decode()}: {self.answered} commands acknowledged, {self.saved} of them saved, "
            f"{len(self.history)} sent, and no number of them explains what is there. Against those acknowledged: {problem}"
        )
        increments = [sum(command.counts for command in self.history[:length]) for length in (lengths[0], lengths[-1])]
        self.forget(actual)
        return increments

    def forget(self, keys):
        """What was sent and lost is lost for good: it may not come back after the next crash."""
        self.keys = keys
        self.history = []
        self.answered = self.saved = 0

    @staticmethod
    def _difference(expected, actual):
        def short(entry):
            return repr(entry)[:200]

        return [
            f"{key!r}: expected {short(expected.get(key))}, found {short(actual.get(key))}"
            for key in sorted(expected.keys() | actual.keys())
            if expected.get(key) != actual.get(key)
        ][:10]


def read(connection, keys):
    """{key: (value, expire time)} of those that exist."""
    found = {}
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        kinds = [COLLECTIONS.get(key.split(b":")[1]) for key in part]
        replies = connection.pipeline(
            [kind[0](key) if kind else [b"GET", key] for kind, key in zip(kinds, part)]
            + [[b"PEXPIRETIME", key] for key in part]
        )
        for key, kind, reply, when in zip(part, kinds, replies, replies[len(part) :]):
            value = kind[1](reply.plain()) if kind else reply.plain()
            if value or value == b"":
                found[key] = (value, when.plain())
    return found


class Workload:
    """Several writers on one server."""

    def __init__(self, writers, seed):
        self.writers = [Writer(i, seed * 1000 + i) for i in range(writers)]
        self.counter = 0  # the shared one, as it was found last

    @property
    def acknowledged(self):
        return sum(writer.acknowledged for writer in self.writers)

    def start(self, server):
        for writer in self.writers:
            writer.start(server)

    def stop(self):
        for writer in self.writers:
            writer.stop()

    def join(self):
        for writer in self.writers:
            writer.join()

    def save(self, server):
        """What was acknowledged until now stays, whatever the durability."""
        answered = [writer.answered for writer in self.writers]
        with server.connect() as connection:
            assert connection("SAVE") == b"OK"
        for writer, count in zip(self.writers, answered):
            writer.saved = count

    def verify(self, server, lossy=False):
        with server.connect() as connection:
            increments = [writer.verify(connection, lossy) for writer in self.writers]
            counter = int(connection("GET", SHARED_COUNTER) or 0)
            least, most = (self.counter + sum(bounds) for bounds in zip(*increments))
            assert least <= counter <= most, f"shared counter: at least {least}, at most {most}, {counter} found"
            values = set(connection("MGET", *SHARED_GROUP))
            assert len(values) == 1, f"an MSET is half there: {values}"
            self.counter = counter
