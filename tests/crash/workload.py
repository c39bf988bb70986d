"""Writers that know what a server has acknowledged, and the check of what is there after it has died.

Each writer has keys of its own and sends its commands on one connection, in order. So after a crash its keys must
be exactly as some prefix of what it sent leaves them, and that prefix holds everything that was acknowledged: no
acknowledged command may be lost, no command may be half done, none may take effect before an earlier one. Commands
on keys that all writers share are checked for what must hold whatever their order was.
"""

import collections
import dataclasses
import random
import threading

from harness.resp import Closed, encode

KEYS = 200  # of each writer
GROUPS = 20  # of ten keys that MSET writes together
FAR = 4_000_000_000_000  # milliseconds: a moment that no test sees
SHARED_COUNTER = b"shared:counter"
SHARED_GROUP = [b"shared:group:%d" % i for i in range(10)]


@dataclasses.dataclass
class Command:
    """What is sent, and how it changes the writer's own keys (a dict of key: (value, expire time))."""

    args: list
    apply: object
    counts: bool = False  # it increments the shared counter


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
        self.keys = {}  # as the acknowledged commands leave them
        self.sent = collections.deque()  # not acknowledged yet
        self.acknowledged = 0
        self.increments_sent = self.increments_acknowledged = 0
        self.stopping = False
        self.problem = None
        self.thread = None

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
                while not self.stopping:
                    self._pipeline(connection)
        except (Closed, ConnectionError):
            pass
        except Exception as e:  # shown by join() in the test's own thread
            self.problem = f"{self.name!r}: {e!r}"

    def _pipeline(self, connection):
        commands = [self._command() for _ in range(self.random.choice([1, 1, 1, 2, 5, 30]))]
        self.sent.extend(commands)
        self.increments_sent += sum(command.counts for command in commands)
        connection.send(b"".join(encode(command.args) for command in commands))
        for command in commands:
            reply = connection.read()
            if reply.is_error:
                raise AssertionError(f"{command.args[:2]!r} answered {reply!r}")
            self.sent.popleft()
            command.apply(self.keys)
            self.acknowledged += 1
            self.increments_acknowledged += command.counts

    def _command(self):
        r = self.random
        self.serial += 1
        value = b"%s-%d" % (self.name, self.serial)
        key = b"%s:key:%d" % (self.name, r.randrange(KEYS))
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

    def verify(self, connection):
        """The server has what some prefix of the sent commands leaves, all acknowledged ones included."""
        mentioned = set(self.keys)
        for command in self.sent:
            scratch = {}
            command.apply(scratch)
            mentioned.update(scratch)
        actual = read(connection, sorted(mentioned))
        expected = dict(self.keys)
        first_problem = self._difference(expected, actual)
        for command in self.sent:
            if expected == actual:
                break
            command.apply(expected)
        assert expected == actual, (
            f"{self.name.decode()}: {self.acknowledged} commands acknowledged, {len(self.sent)} more sent, and no "
            f"number of them explains what is there. Against those acknowledged: {first_problem}"
        )
        self.keys = expected
        self.sent.clear()

    @staticmethod
    def _difference(expected, actual):
        def short(entry):
            return entry and (entry[0][:60], entry[1])

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
        replies = connection.pipeline([[b"MGET", *part], *([b"PEXPIRETIME", key] for key in part)])
        for key, value, when in zip(part, replies[0].plain(), replies[1:]):
            if value is not None:
                found[key] = (value, when.plain())
    return found


class Workload:
    """Several writers on one server."""

    def __init__(self, writers, seed):
        self.writers = [Writer(i, seed * 1000 + i) for i in range(writers)]

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

    def verify(self, server):
        with server.connect() as connection:
            for writer in self.writers:
                writer.verify(connection)
            counter = int(connection("GET", SHARED_COUNTER) or 0)
            least = sum(writer.increments_acknowledged for writer in self.writers)
            most = sum(writer.increments_sent for writer in self.writers)
            assert least <= counter <= most, f"shared counter: {least} acknowledged, {most} sent, {counter} found"
            values = set(connection("MGET", *SHARED_GROUP))
            assert len(values) == 1, f"an MSET is half there: {values}"
            # What was sent and lost is lost for good: it may not come back after the next crash.
            for writer in self.writers:
                writer.increments_sent = writer.increments_acknowledged = 0
            self.writers[0].increments_sent = self.writers[0].increments_acknowledged = counter
