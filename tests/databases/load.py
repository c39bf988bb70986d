"""Clients that do to several servers on one database what applications do, and know afterwards what must be there.

Each workload has a few keys that all its clients fight for, an invariant, and a careless form, in which its clients do
in several steps what they should do in one: its invariant must break, or it would find nothing in Larder either.

A command ends in one of three ways. It is acknowledged; or it failed and was not done (Failed: the server says so);
or nobody can tell (Unknown: the connection was lost, or the server says that it does not know). What failed must not
be there, what is unknown may be.
"""

import collections
import itertools
import os
import random
import threading
import time

from harness.resp import Closed, ServerError

from .linear import INFINITY, problem

NOT_DONE = (b"IOERR ", b"TRYAGAIN ", b"MISCONF ", b"READONLY ", b"EXECABORT ")
# Where there is time: test_scripts.py has the short run. Keys that are not declared cost a second when two meet.
SCRIPTS = 1 if os.environ.get("LARDER_HOSTILE_SECONDS") else 0
TIMEOUT = 60.0  # a command that is not answered for so long is a failure of the test


class Failed(Exception):
    """It was not done."""


class Unknown(Exception):
    """It was done, or not."""


class Session:
    """A client's connection. After a failure the next command goes to another server: whatever belonged to the
    connection (WATCH, MULTI) is gone, so a piece of work starts over."""

    def __init__(self, servers, number):
        self.servers = servers
        self.at = number
        self.connection = None

    def __call__(self, *args):
        return self.pipeline([args])[0]

    def pipeline(self, commands):
        """The values of all replies. What the last one says was done as a whole, or not."""
        c = self._connected()
        try:
            replies = c.pipeline(commands)
        except (Closed, ConnectionError) as e:
            self.leave()
            raise Unknown(str(e)) from None
        values = [reply.plain() for reply in replies]
        flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
        errors = [v.text for v in flat if isinstance(v, ServerError)]
        if not errors:
            return values
        self.leave()
        if any(e.startswith(b"UNCERTAIN ") for e in errors):
            raise Unknown(errors)
        last = values[-1] if isinstance(values[-1], list) else values[-1:]
        whole = all(isinstance(v, ServerError) for v in last)
        assert whole and all(e.startswith(NOT_DONE) for e in errors), f"{commands} answered {replies}"
        raise Failed(errors)

    def transaction(self, *commands):
        """MULTI ... EXEC in one piece: what EXEC answers."""
        return self.pipeline([("MULTI",), *commands, ("EXEC",)])[-1]

    def _connected(self):
        if self.connection is None:
            try:
                self.connection = self.servers[self.at % len(self.servers)].connect(timeout=TIMEOUT)
            except OSError as e:
                time.sleep(0.02)
                self.leave()
                raise Failed(str(e)) from None
        return self.connection

    def leave(self):
        if self.connection:
            self.connection.close()
        self.connection = None
        self.at += 1


class Workload:
    """Roles are methods that do one piece of work with a session; verify() says what must be true at the end."""

    def __init__(self, careless=False):
        self.careless = careless
        self.lock = threading.Lock()
        self.done = collections.Counter()  # what was acknowledged, failed and is unknown

    def attempt(self, role, session):
        try:
            role(session)
            end = "acknowledged"
        except Failed:
            end = "failed"
        except Unknown:
            end = "unknown"
        with self.lock:
            self.done[end] += 1

    def prepare(self, c):
        pass


class Counters(Workload):
    """Every increment that was acknowledged is there, once; what failed is not."""

    COMMANDS = [
        (("INCR", "count:0"), ("GET", "count:0")),
        (("INCR", "count:1"), ("GET", "count:1")),
        (("HINCRBY", "count:hash", "f", 1), ("HGET", "count:hash", "f")),
        (("ZINCRBY", "count:zset", 1, "m"), ("ZSCORE", "count:zset", "m")),
    ]

    def __init__(self, careless=False):
        super().__init__(careless)
        self.acknowledged, self.unknown = collections.Counter(), collections.Counter()
        self.roles = [(self.increment, 3), (self.increment_twice, 1), (self.increment_by_script, SCRIPTS)]

    def increment(self, session):
        add, get = random.choice(self.COMMANDS)
        if self.careless and add[0] == "INCR":
            self._note(add, 1, lambda: session("SET", add[1], int(session(*get) or 0) + 1))
        else:
            self._note(add, 1, lambda: session(*add))

    def increment_twice(self, session):
        add, _ = random.choice(self.COMMANDS)
        self._note(add, 2, lambda: session.transaction(add, add))

    def increment_by_script(self, session):
        """Of keys that are declared, or not; now and then in vain."""
        add, _ = random.choice(self.COMMANDS)
        keys = (1, add[1]) if random.random() < 0.95 else (0,)
        in_vain = random.random() < 0.2
        script = "#!lua flags=rollback\nredis.call(unpack(ARGV)) redis.call(unpack(ARGV)) "
        script += "redis.call('DBSIZE') return redis.error_reply('TRYAGAIN in vain')" if in_vain else "return 1"
        try:
            self._note(add, 2, lambda: session("EVAL", script, *keys, *add))
        except Failed as e:
            if not in_vain or "in vain" not in str(e):
                raise

    def _note(self, add, times, work):
        try:
            work()
            into = self.acknowledged
        except Unknown:
            into = self.unknown
            raise
        except Failed:
            into = None
            raise
        finally:
            if into is not None:
                with self.lock:
                    into[add] += times

    def verify(self, c):
        for add, get in self.COMMANDS:
            value, least, unknown = int(float(c(*get) or 0)), self.acknowledged[add], self.unknown[add]
            assert least <= value <= least + unknown, f"{add}: {value}; acknowledged {least}, unknown {unknown}"
        assert sum(self.acknowledged.values()) > 0


class Bank(Workload):
    """Transfers under WATCH between accounts: whoever looks sees the whole sum."""

    ACCOUNTS = [f"account:{i}" for i in range(4)]
    EACH = 100

    def __init__(self, careless=False):
        super().__init__(careless)
        self.moved = self.aborted = 0
        self.roles = [(self.transfer, 5), (self.transfer_by_script, SCRIPTS), (self.look, 1)]

    def prepare(self, c):
        c("MSET", *[w for a in self.ACCOUNTS for w in (a, self.EACH)])

    def transfer(self, session):
        source, target = random.sample(self.ACCOUNTS, 2)
        if not self.careless:
            session("WATCH", source, target)
        a, b = (int(v) for v in session("MGET", source, target))
        amount = random.randint(0, a)
        if session.transaction(("SET", source, a - amount), ("SET", target, b + amount)) is None:
            self.aborted += 1
        else:
            self.moved += 1

    SCRIPT = """
        local source, target = ARGV[1], ARGV[2]
        local amount = math.floor(redis.call('GET', source) * ARGV[3])
        redis.call('DECRBY', source, amount)
        return redis.call('INCRBY', target, amount)
    """

    def transfer_by_script(self, session):
        words = random.sample(self.ACCOUNTS, 2)
        keys = (2, *words) if random.random() < 0.95 else (0,)  # two that meet then wait until the database notices
        session("EVAL", self.SCRIPT, *keys, *words, random.random())

    def look(self, session):
        self.verify(session)

    def verify(self, c):
        balances = [int(v) for v in c("MGET", *self.ACCOUNTS)]
        assert sum(balances) == self.EACH * len(balances) and min(balances) >= 0, balances


class Locks(Workload):
    """A lock is a key that SET NX made. Its value tells who has it; one that nobody has any more, because its holder
    has gone or never knew, may be removed by anybody, if it is still that one."""

    NAMES = ["lock:0", "lock:1"]

    def __init__(self, careless=False):
        super().__init__(careless)
        self.inside = {name: [] for name in self.NAMES}
        self.free = set()  # values that nobody works under
        self.entered = 0
        self.numbers = itertools.count(1)
        self.roles = [(self.work, 4)]

    def work(self, session):
        name, value = random.choice(self.NAMES), b"%d" % next(self.numbers)
        try:
            if self.careless:
                got = session("GET", name) is None and session("SET", name, value)
            else:
                got = session("SET", name, value, "NX", "PX", 600_000)
        except Unknown:
            self.free.add(value)
            raise
        if got:
            inside = self.inside[name]
            inside.append(value)
            try:
                session("PING")  # long enough to meet another one
                assert inside == [value], f"{name} is held by {inside}"
            finally:
                inside.remove(value)
                self.free.add(value)
            self.entered += 1
        self.clean(session, name)

    def clean(self, session, name):
        session("WATCH", name)
        if session("GET", name) in self.free:
            session.transaction(("DEL", name))
        else:
            session("UNWATCH")

    def verify(self, c):
        assert self.entered > 0


class Queue(Workload):
    """Items go from list to list with LMOVE, and are taken out of the last one: none is lost, none comes twice."""

    def __init__(self, careless=False):
        super().__init__(careless)
        self.pushed, self.maybe, self.moved, self.taken = [], set(), set(), []
        self.lost_answers = 0  # of pops, each of which may have taken an item along
        self.numbers = itertools.count(1)
        self.roles = [(self.push, 2), (self.move, 3), (self.finish, 1), (self.pop, 1), (self.wait, 1)]

    def push(self, session):
        item = b"item %d" % next(self.numbers)
        try:
            session("RPUSH", "queue:todo", item)
        except Unknown:
            self.maybe.add(item)
            raise
        self.pushed.append(item)

    def move(self, session):
        if self.careless:
            item = session("LINDEX", "queue:todo", 0)
            if item is not None:
                session.pipeline([("LPOP", "queue:todo"), ("RPUSH", "queue:doing", item)])
        else:
            item = session("LMOVE", "queue:todo", "queue:doing", "LEFT", "RIGHT")
        if item is not None:
            self.moved.add(item)

    def finish(self, session):
        session("BLMOVE", "queue:doing", "queue:done", "LEFT", "RIGHT", 0.05)

    def pop(self, session):
        self._take(lambda: session("LPOP", "queue:done"))

    def wait(self, session):
        self._take(lambda: (session("BLPOP", "queue:done", 0.05) or [None, None])[1])

    def _take(self, work):
        try:
            item = work()
        except Unknown:
            with self.lock:
                self.lost_answers += 1
            raise
        if item is not None:
            self.taken.append(item)

    def verify(self, c):
        todo, doing, done = (c("LRANGE", f"queue:{name}", 0, -1) for name in ("todo", "doing", "done"))
        there = collections.Counter([*todo, *doing, *done, *self.taken])
        doubled = [item for item, times in there.items() if times > 1]
        assert not doubled, f"doubled: {doubled[:10]}"
        invented = there.keys() - set(self.pushed) - self.maybe
        assert not invented, f"nobody pushed: {list(invented)[:10]}"
        back = self.moved & set(todo)
        assert not back, f"moves that were acknowledged are undone: {list(back)[:10]}"
        lost = [item for item in self.pushed if item not in there]
        assert len(lost) <= self.lost_answers, f"lost: {lost[:10]} with {self.lost_answers} lost answers"
        assert self.taken


class Registers(Workload):
    """Histories of reads and writes of single keys are linearizable. Careless: a client reads from a cache."""

    KEYS = [f"register:{i}" for i in range(3)]

    def __init__(self, careless=False):
        super().__init__(careless)
        self.history = {key: [] for key in self.KEYS}
        self.numbers = itertools.count(1)
        self.cache = {}
        self.roles = [(self.write, 3), (self.read, 3)]

    def write(self, session):
        key, value, start, end = random.choice(self.KEYS), b"%d" % next(self.numbers), time.monotonic(), None
        try:
            session("SET", key, value)
            end = time.monotonic()
        except Unknown:
            end = INFINITY
            raise
        finally:
            if end is not None:
                self.history[key].append((start, end, "w", value))

    def read(self, session):
        key, start = random.choice(self.KEYS), time.monotonic()
        if self.careless and random.random() < 0.2 and key in self.cache:
            value = self.cache[key]
        else:
            value = self.cache[key] = session("GET", key)
        self.history[key].append((start, time.monotonic(), "r", value))

    def verify(self, _):
        for key, history in self.history.items():
            found = problem(history)
            assert found is None, f"{key}: {found}"
            assert sum(op[2] == "r" for op in history) > 0


KINDS = [Counters, Bank, Locks, Queue, Registers]


class Crowd:
    """All workloads at once, by this many clients in threads of their own."""

    def __init__(self, servers, clients, careless=False):
        self.servers = servers
        self.workloads = [kind(careless) for kind in KINDS]
        self.stopping = False
        self.problems = []
        with servers[0].connect() as c:
            for workload in self.workloads:
                workload.prepare(c)
        roles = [(w, role) for w in self.workloads for role, share in w.roles for _ in range(share)]
        self.threads = [
            threading.Thread(target=self._run, args=(i, *roles[i % len(roles)]), daemon=True) for i in range(clients)
        ]

    def _run(self, number, workload, role):
        session = Session(self.servers, number)
        try:
            while not self.stopping:
                workload.attempt(role, session)
        except Exception as e:  # noqa: BLE001
            self.problems.append((workload, e))
        session.leave()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        for thread in self.threads:
            thread.join(2 * TIMEOUT)
        assert not any(thread.is_alive() for thread in self.threads), "a client hangs"

    def acknowledged(self):
        return sum(w.done["acknowledged"] for w in self.workloads)

    def findings(self):
        """What is wrong, by the workload's name."""
        found = {type(w).__name__: e for w, e in self.problems}
        with self.servers[0].connect() as c:
            c("SWAPDB", 14, 15)  # waits for all that is still being committed for servers that have gone
            for workload in self.workloads:
                try:
                    workload.verify(c)
                except AssertionError as e:
                    found.setdefault(type(workload).__name__, e)
        return found

    def report(self):
        return ", ".join(f"{type(w).__name__} {dict(w.done)}" for w in self.workloads)
