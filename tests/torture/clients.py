"""Clients that write flat out and keep a record of what they were told, and the reading of everything they wrote."""

import random
import threading
import time

from harness import wait
from harness.resp import Closed, Connection
from torture.record import ACKED, REFUSED, UNKNOWN, Count, Fields, Finding, List, Step, Value, outcome, run, short

ACCOUNTS = [b"account:%d" % i for i in range(8)]
REPLY_LIMIT = 90.0  # seconds: beyond what any timeout of the server allows for one pipeline
OLD = 2000  # fields that a ledger has from the beginning: more than a small cache holds


class Client:
    """One connection with keys of its own. Only the shared accounts are written by all."""

    def __init__(self, number, seed, without=()):
        self.name = b"c%d" % number
        self.makers = [(make, much) for make, much in self.STEPS if make.__name__ not in without]
        self.random = random.Random(f"{seed} {number}")
        self.serial = 0
        self.acknowledged = 0
        self.unanswered = 0
        self.counters = self._some(Count, b"n", 6)
        self.lists = self._some(List, b"l", 6)
        self.hashes = self._some(Fields, b"h", 3)
        self.zsets = self._some(Fields, b"z", 2)
        self.strings = self._some(Value, b"s", 30)  # set, deleted, set again
        self.turned = self._some(Value, b"t", 6)  # deleted and made again as something else
        self.fleeting = self._some(Value, b"x", 6)  # they expire
        self.ledger_key = self.name + b":ledger"
        self.ledger = Fields(self.ledger_key.decode())

    def _some(self, kind, letter, count):
        keys = [b"%s:%s:%d" % (self.name, letter, i) for i in range(count)]
        return {key: kind(key.decode()) for key in keys}

    def fresh(self, size=0):
        """A value that was never written before."""
        self.serial += 1
        return b"%d" % self.serial + b"." * size

    # --- steps: each says what is sent, and what is learned of it

    def increment(self):
        key = self.random.choice(list(self.counters))
        count = self.counters[key]
        if self.random.random() < 0.01:
            return Step(b"DEL", key, learn=lambda how, _: count.written(0, how))
        return Step(b"INCR", key, learn=lambda how, reply: count.added(how, number(reply, how)))

    def push(self):
        key = self.random.choice(list(self.lists))
        items = self.lists[key]
        if self.random.random() < 0.002:
            return Step(b"DEL", key, learn=lambda how, _: items.deleted(how))
        item = self.fresh(self.random.choice([0, 0, 20, 100]))
        return Step(b"RPUSH", key, item, learn=lambda how, reply: items.pushed(item, how, number(reply, how)))

    def put_fields(self):
        key = self.random.choice(list(self.hashes))
        fields, r = self.hashes[key], self.random
        which = r.random()
        if which < 0.003:
            return Step(b"DEL", key, learn=lambda how, _: fields.deleted(how))
        names = sorted({b"f%d" % r.randrange(1500) for _ in range(r.choice([1, 1, 1, 5, 40]))})
        value = None if which < 0.1 else self.fresh(r.choice([0, 30]))

        def learn(how, _):
            for name in names:
                fields.written(name, value, how)

        if value is None:
            return Step(b"HDEL", key, *names, learn=learn)
        return Step(b"HSET", key, *(part for name in names for part in (name, value)), learn=learn)

    def put_members(self):
        key = self.random.choice(list(self.zsets))
        members, r = self.zsets[key], self.random
        which = r.random()
        if which < 0.003:
            return Step(b"DEL", key, learn=lambda how, _: members.deleted(how))
        names = sorted({b"m%d" % r.randrange(1500) for _ in range(r.choice([1, 1, 1, 5, 40]))})
        self.serial += 1
        score = None if which < 0.1 else b"%d" % (self.serial * 7919 % 1000003)

        def learn(how, _):
            for name in names:
                members.written(name, score, how)

        if score is None:
            return Step(b"ZREM", key, *names, learn=learn)
        return Step(b"ZADD", key, *(part for name in names for part in (score, name)), learn=learn)

    def string(self):
        key = self.random.choice(list(self.strings))
        held = self.strings[key]
        which = self.random.randrange(5)
        if which < 2:
            return Step((b"DEL", b"GETDEL")[which], key, learn=lambda how, _: held.written(None, how))
        value = self.fresh(self.random.choice([0, 50, 400]))
        return Step(b"SET", key, value, learn=lambda how, _: held.written(value, how))

    def reborn(self):
        """A key that is set, deleted and set again, in one pipeline."""
        key = self.random.choice(list(self.strings))
        held, steps = self.strings[key], []
        for i in range(self.random.choice([3, 5, 7])):
            if i % 2:
                steps.append(Step(b"DEL", key, learn=lambda how, _: held.written(None, how)))
            else:
                value = self.fresh()
                steps.append(Step(b"SET", key, value, learn=lambda how, _, value=value: held.written(value, how)))
        return steps

    def turn(self):
        key = self.random.choice(list(self.turned))
        held, value = self.turned[key], self.fresh()
        kind, make = self.random.choice(
            [
                (b"string", [b"SET", key, value]),
                (b"list", [b"RPUSH", key, value]),
                (b"hash", [b"HSET", key, b"f", value]),
                (b"zset", [b"ZADD", key, b"1", value]),
                (b"set", [b"SADD", key, value]),
            ]
        )
        frames = [[b"MULTI"], [b"DEL", key], make, [b"EXEC"]]
        return Step(frames=frames, learn=lambda how, _: held.written((kind, value), how))

    def fleet(self):
        """SET with or without an expiry that comes soon, or an expiry alone."""
        key = self.random.choice(list(self.fleeting))
        held, value, which = self.fleeting[key], self.fresh(), self.random.randrange(4)

        def perhaps(how, _):
            if which < 2:
                held.written(value, how)
            if which and how != REFUSED:
                held.possible.add(None)

        if which < 2:
            more = (b"PX", b"%d" % self.random.choice([1, 20, 300])) if which else ()
            return Step(b"SET", key, value, *more, learn=perhaps)
        return Step(b"PEXPIRE", key, b"%d" % self.random.choice([-1, 5, 300]), learn=perhaps)

    def transfer(self):
        source, target = self.random.sample(range(len(ACCOUNTS)), 2)
        self.serial += 1
        name, amount = b"t%d" % self.serial, self.random.randint(1, 9999)
        entry = b"%d %d %d" % (source, target, amount)
        frames = [
            [b"MULTI"],
            [b"DECRBY", ACCOUNTS[source], amount],
            [b"HSET", self.ledger_key, name, entry],
            [b"INCRBY", ACCOUNTS[target], amount],
            [b"EXEC"],
        ]
        return Step(frames=frames, learn=lambda how, _: self.ledger.written(name, entry, how))

    def look(self):
        """Reads something of its own, which must be possible, too."""
        r = self.random
        which = r.randrange(5)
        if which == 0:
            key, held = r.choice(list(self.counters.items()))
            return Step(b"GET", key, learn=looked(lambda value: held.seen(int(value or 0))))
        if which == 1:
            key, items = r.choice(list(self.lists.items()))
            return Step(b"LLEN", key, learn=looked(lambda value: items.length.seen(int(value))))
        if which == 2:
            key, held = r.choice(list(self.strings.items()))
            return Step(b"GET", key, learn=looked(held.seen))
        if which == 3:
            (key, fields), name = r.choice(list(self.hashes.items())), b"f%d" % r.randrange(1500)
            return Step(b"HGET", key, name, learn=looked(lambda value: fields.seen_one(name, value)))
        (key, members), name = r.choice(list(self.zsets.items())), b"m%d" % r.randrange(1500)
        return Step(b"ZSCORE", key, name, learn=looked(lambda value: members.seen_one(name, value)))

    def pipeline(self):
        r = self.random
        which = r.randrange(10)
        if which < 5:  # much of one kind
            make, much = r.choice(self.makers)
            steps = [make(self) for _ in range(r.choice([much // 20, much // 4, much]))]
        elif which < 8:
            steps = [r.choice(self.makers)[0](self) for _ in range(r.choice([10, 60]))]
        else:
            steps = [r.choice(self.makers)[0](self)]
        return [each for step in steps for each in (step if isinstance(step, list) else [step])]

    # What a client does, and how often in the largest pipeline of one kind.
    STEPS = [
        (increment, 500), (push, 800), (put_fields, 400), (put_members, 400), (string, 400), (reborn, 40), (turn, 100),
        (fleet, 200), (transfer, 40), (transfer, 40), (look, 400),
    ]  # fmt: skip

    # --- at work

    def prepare(self, connection):
        """A ledger with old entries, so that what a transaction needs of it is not in memory."""
        for start in range(0, OLD, 200):
            names = [b"old%d" % i for i in range(start, start + 200)]

            def learn(how, _, names=names):
                for name in names:
                    self.ledger.written(name, b"0 0 0", how)

            run(connection, [Step(b"HSET", self.ledger_key, *(p for name in names for p in (name, b"0 0 0")), learn=learn)])

    def work(self, crowd):
        while not crowd.stopping.is_set():
            try:
                with Connection(crowd.address, timeout=REPLY_LIMIT) as connection:
                    while not crowd.stopping.is_set():
                        counts = run(connection, self.pipeline())
                        self.acknowledged += counts[ACKED]
                        self.unanswered += counts[UNKNOWN]
                        if counts[REFUSED] or counts[UNKNOWN]:
                            crowd.stopping.wait(0.02)  # the database is away: no reason to ask all the time
            except Closed:
                self.unanswered += 1
            except OSError:  # nobody listens
                crowd.stopping.wait(0.01)

    # --- everything that it wrote

    def groups(self):
        yield from ((self.counters, read_counter), (self.lists, read_items), (self.hashes, read_fields), (self.zsets, read_scores))
        yield from ((self.strings, read_text), (self.turned, read_anything), (self.fleeting, read_expiring))
        yield {self.ledger_key: self.ledger}, read_fields

    def read(self, connection):
        """What the server has now: {key: value}."""
        return {key: take(connection, key) for held, take in self.groups() for key in held}

    def settle(self, found):
        for held, _ in self.groups():
            for key, record in held.items():
                if held is self.fleeting:
                    value, expires = found[key]
                    record.settle(value)
                    if expires:
                        record.possible.add(None)
                else:
                    record.settle(found[key])


def looked(check):
    def learn(how, reply):
        if how == ACKED:
            check(reply.value)

    return learn


def number(reply, how):
    return int(reply.value) if how == ACKED else None


# --- reading one key, whole


class Away(Exception):
    """The database is not there, or not yet."""


def ask(connection, *commands):
    replies = connection.pipeline(commands)
    for reply in replies:
        if outcome(reply) != ACKED:
            raise Away(repr(reply))
    return [reply.plain() for reply in replies]


def read_counter(connection, key):
    return int(ask(connection, [b"GET", key])[0] or 0)


def read_text(connection, key):
    return ask(connection, [b"GET", key])[0]


def read_items(connection, key):
    found, length = ask(connection, [b"LRANGE", key, b"0", b"-1"], [b"LLEN", key])
    agree(key, length, found)
    return tuple(found)


def read_fields(connection, key):
    flat, length = ask(connection, [b"HGETALL", key], [b"HLEN", key])
    found = dict(zip(flat[::2], flat[1::2]))
    agree(key, length, found)
    return found


def read_scores(connection, key):
    flat, length = ask(connection, [b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], [b"ZCARD", key])
    pairs = list(zip(flat[::2], flat[1::2]))
    if pairs != sorted(pairs, key=lambda pair: (float(pair[1]), pair[0])):
        raise Finding(f"{key.decode()} is not in order: {short(pairs)}")
    agree(key, length, dict(pairs))
    return dict(pairs)


def agree(key, length, found):
    if length != len(found):
        raise Finding(f"{key.decode()} counts {length}, and has {len(found)}")


def read_expiring(connection, key):
    """The value, and whether it has an expiry."""
    value, left = ask(connection, [b"GET", key], [b"PTTL", key])
    return (value, left >= 0) if value is not None and left != -2 else (None, False)


def read_anything(connection, key):
    (kind,) = ask(connection, [b"TYPE", key])
    if kind == b"none":
        return None
    read = {
        b"string": [b"GET", key],
        b"list": [b"LRANGE", key, b"0", b"-1"],
        b"hash": [b"HVALS", key],
        b"zset": [b"ZRANGE", key, b"0", b"-1"],
        b"set": [b"SMEMBERS", key],
    }[kind]
    (value,) = ask(connection, read)
    if kind != b"string":
        if len(value) != 1:
            raise Finding(f"{key.decode()} has {len(value)} items rather than the one of {kind.decode()}: {short(value)}")
        (value,) = value
    return kind, value


class Crowd:
    """All clients of a server, and one more that watches the sum of the accounts."""

    def __init__(self, address, clients, seed, without=()):
        self.address = address
        self.clients = [Client(i, seed, without) for i in range(clients)]
        self.stopping = threading.Event()
        self.threads = []
        self.problem = None

    @property
    def acknowledged(self):
        return sum(client.acknowledged for client in self.clients)

    @property
    def unanswered(self):
        return sum(client.unanswered for client in self.clients)

    def prepare(self):
        with Connection(self.address) as connection:
            for client in self.clients:
                client.prepare(connection)

    def start(self):
        self.stopping.clear()
        work = [lambda client=client: client.work(self) for client in self.clients]
        self.threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in [*work, self._watch]]
        for thread in self.threads:
            thread.start()

    def _run(self, work):
        try:
            work()
        except Exception as e:  # for the thread that asks
            self.problem = self.problem or e
            self.stopping.set()

    def _watch(self):
        """Money is neither made nor lost, at any moment that a reader can see."""
        while not self.stopping.is_set():
            try:
                with Connection(self.address, timeout=REPLY_LIMIT) as connection:
                    while not self.stopping.wait(0.01):
                        reply = connection.call(b"MGET", *ACCOUNTS)
                        if outcome(reply) == ACKED and (total := sum(int(v or 0) for v in reply.plain())) != 0:
                            raise Finding(f"the accounts have {total} together, seen by a reader: {reply!r}")
            except (Closed, OSError):
                self.stopping.wait(0.02)

    def stop(self):
        """Returns when every pipeline that was sent has been answered, or cannot be any more."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(REPLY_LIMIT + 30)
            if thread.is_alive():
                raise Finding("a client hangs")
        self.threads = []
        self.check()

    def check(self):
        if self.problem is not None:
            raise self.problem

    def progress(self, steps, limit=90.0):
        """Waits until so many more steps were acknowledged."""
        target = self.acknowledged + steps

        def there():
            self.check()
            return self.acknowledged >= target

        try:
            wait.until(there, "", limit)
        except Finding:
            raise
        except AssertionError:
            raise Finding(f"no {steps} writes were acknowledged within {limit:g} s") from None

    def read(self, limit=60.0):
        """What the server has of all clients. The database may need a moment to be there again."""
        deadline = time.monotonic() + limit
        while True:
            try:
                with Connection(self.address, timeout=REPLY_LIMIT) as connection:
                    found = {client: client.read(connection) for client in self.clients}
                    balances = [int(v or 0) for v in ask(connection, [b"MGET", *ACCOUNTS])[0]]
                    return found, balances
            except (Away, Closed, OSError) as e:
                if time.monotonic() > deadline:
                    raise Finding(f"nothing can be read for {limit:g} s: {e}") from None
                time.sleep(0.1)

    def settle(self, state):
        """Compares everything with the clients' records, and makes it what they know from now on."""
        found, balances = state
        for client in self.clients:
            client.settle(found[client])
        expected = [0] * len(ACCOUNTS)
        for client in self.clients:
            for entry in found[client][client.ledger_key].values():
                source, target, amount = map(int, entry.split())
                expected[source] -= amount
                expected[target] += amount
        if balances != expected:
            raise Finding(f"balances are {balances}, but the ledgers say {expected}: a transaction was done by halves")

    def same(self, before, after):
        """What a server read out of its memory must be what another finds in the tables."""
        if before[1] != after[1]:
            raise Finding(f"balances were {before[1]}, and are {after[1]} after a restart")
        for client in self.clients:
            for key, value in before[0][client].items():
                now = after[0][client][key]
                if key in client.fleeting:
                    value, now = (value[0], value[0] if now[0] is None and value[1] else now[0])
                if value != now:
                    raise Finding(f"{key.decode()} was {short(value)}, and is {short(now)} after a restart")
