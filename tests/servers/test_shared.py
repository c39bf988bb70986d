"""Several Larders on one database behave as one store."""

import os
import random
import re
import signal
import threading
import time

import pytest

from harness import servers, wait
from harness.databases import QueryError
from harness.resp import Closed, ServerError

from .linear import INFINITY, problem
from .test_sql import sql_set

SERVERS = 3
SECONDS = 3.0 * float(os.environ.get("LARDER_CRASH_FACTOR", "1"))


@pytest.fixture
def several(fleet, data):
    return [fleet.larder(data=data) for _ in range(SERVERS)]


class Crowd:
    """Clients in threads of their own, each with a connection to one of the servers, until the time is over."""

    def __init__(self, several, seconds=SECONDS):
        self.several = several
        self.until = time.monotonic() + seconds
        self.threads = []
        self.failures = []

    @property
    def going(self):
        return time.monotonic() < self.until and not self.failures

    def start(self, work, clients, *args):
        def run(number):
            try:
                with self.several[number % len(self.several)].connect() as c:
                    while self.going:
                        work(c, number, *args)
            except BaseException as e:  # noqa: BLE001
                self.failures.append(e)

        for number in range(clients):
            thread = threading.Thread(target=run, args=(number,))
            thread.start()
            self.threads.append(thread)
        return self

    def join(self):
        for thread in self.threads:
            thread.join(60)
        if self.failures:
            raise self.failures[0]


def test_the_checker_finds_stale_reads():
    good = [(0, 1, "w", "a"), (2, 3, "r", "a"), (2, 5, "w", "b"), (4, 6, "r", "a"), (7, 8, "r", "b")]
    assert problem(good) is None
    assert problem([*good, (9, 10, "r", "a")]) is not None  # stale
    assert problem([*good, (9, 10, "r", None)]) is not None
    assert problem([(0, 1, "r", "never")]) is not None
    assert problem([(0, 1, "r", "later"), (2, 3, "w", "later")]) is not None
    assert problem([(0, INFINITY, "w", "perhaps"), (1, 2, "r", None), (3, 4, "r", None)]) is None
    assert problem([(0, INFINITY, "w", "perhaps"), (1, 2, "r", "perhaps"), (3, 4, "r", None)]) is not None
    lost = [(0, 1, "w", "a"), (2, 3, "w", "b"), (4, 5, "r", "a")]
    assert problem(lost) is not None


def test_what_one_writes_the_others_read(several):
    a, b, c = (s.connect() for s in several)
    a("SET", "k", "1")
    assert b("INCR", "k") == 2 and c("GET", "k") == b"2"
    b("RPUSH", "l", "x", "y")
    assert c("LPOP", "l") == b"x" and a("LRANGE", "l", 0, -1) == [b"y"]
    c("SELECT", 3)
    c("SET", "other", "v")
    a("SWAPDB", 0, 3)
    assert b("GET", "other") == b"v" and b("DBSIZE") == 1 and c("DBSIZE") == 2
    b("FLUSHALL")
    assert [x("DBSIZE") for x in (a, b, c)] == [0, 0, 0]
    a("HSET", "h", *[w for i in range(3000) for w in (f"f{i}", i)])
    assert b("HLEN", "h") == 3000 and b("HGET", "h", "f2999") == b"2999"
    b("HDEL", "h", "f0")
    assert c("HEXISTS", "h", "f0") == 0 and len(a("HGETALL", "h")) == 2 * 2999
    for x in (a, b, c):
        x.close()


def round_trips(server, c, commands):
    """How many round trips to the database a batch of commands takes."""

    def count():
        return int(re.search(rb"round_trips:(\d+)", c("INFO", "larder"))[1])

    first = count()
    own = count() - first
    c.pipeline(commands)
    return count() - first - 2 * own


def test_round_trips(fleet, data):
    server = fleet.larder("--sweep", "no", data=data)
    with server.connect() as c:
        c("MSET", *[w for i in range(500) for w in (f"k{i}", "v")])  # numbers for new rows are there then
        c("HSET", "h", "f", "v")
        read = [("GET", f"k{i}") for i in range(300)]
        write = [("SET", f"k{i}", "w") for i in range(300)]
        fresh = [("SET", f"n{i}", "w") for i in range(300)]
        for what, most in ((read[:1], 1), (read, 1), (write[:1], 2), (write, 2), (fresh, 2), (read + write, 2)):
            assert min(round_trips(server, c, what) for _ in range(3)) == most, what[0]
        assert min(round_trips(server, c, [("INCR", "n"), ("DEL", "n")]) for _ in range(3)) == 2


def test_application_writes_are_seen_at_once(several, data):
    with several[0].connect() as a, several[1].connect() as b:
        a("SET", "k", "old")
        data.query(sql_set(data, b"k", b"new"))
        assert b("GET", "k") == b"new" and a("GET", "k") == b"new"
        data.query(sql_set(data, b"fresh", b"made"))
        assert a("APPEND", "fresh", "!") == 5
        data.query("UPDATE larder_key SET value = 'by hand', version = version + 1 WHERE type = 1")
        assert a("GET", "k") == b"by hand" and b("GET", "fresh") == b"by hand"
        assert a("DBSIZE") == 2


def test_exclusive_and_shared_exclude_each_other(fleet, several, data):
    alone = fleet.new(servers.Larder, "--busy-timeout", "100ms", data=data)
    mode = ("&" if "?" in data.url else "?") + "mode=exclusive"
    data.url += mode
    with pytest.raises(servers.StartError) as failed:
        alone.start()
    assert "in use by another server" in failed.value.log
    alone.process = None
    for server in several:
        server.stop()
    alone.start()
    data.url = data.url.removesuffix(mode)
    second = fleet.new(servers.Larder, "--busy-timeout", "100ms", data=data)
    with pytest.raises(servers.StartError) as failed:
        second.start()
    second.process = None
    assert "in use by another server" in failed.value.log
    with pytest.raises(QueryError, match="for itself alone"):
        data.query(sql_set(data, b"k", b"v"))


def test_counters_add_up(several):
    done = [0] * 18

    def work(c, number):
        key = f"n{random.randrange(4)}"
        c.pipeline([("INCR", key)] * 5)
        done[number] += 5

    Crowd(several).start(work, len(done)).join()
    with several[0].connect() as c:
        assert sum(int(c("GET", f"n{i}") or 0) for i in range(4)) == sum(done) > 0
    several[0].check()


def test_transfers_keep_the_total(several):
    accounts = [f"a{i}" for i in range(5)]
    with several[0].connect() as c:
        c("MSET", *[w for a in accounts for w in (a, 100)])
    moved = []

    def transfer(c, _):
        source, target = random.sample(accounts, 2)
        c("WATCH", source, target)
        have, amount = int(c("GET", source)), random.randrange(1, 30)
        c("MULTI")
        c("DECRBY", source, amount if have >= amount else 0)
        c("INCRBY", target, amount if have >= amount else 0)
        if c("EXEC") is not None:
            moved.append(amount)

    def look(c, _):
        balances = [int(v) for v in c("MGET", *accounts)]
        assert sum(balances) == 500 and min(balances) >= 0, balances

    Crowd(several).start(transfer, 9).start(look, 3).join()
    assert moved


def test_locks_exclude(several):
    inside, entered = [], []

    def work(c, number):
        token = f"{number}-{random.random()}"
        if c("SET", "lock", token, "NX", "PX", 30_000) is None:
            return
        inside.append(token)
        assert len(inside) == 1, inside
        entered.append(token)
        inside.remove(token)
        assert c("DEL", "lock") == 1

    Crowd(several).start(work, 9).join()
    assert entered


def test_queues_lose_and_double_nothing(several):
    pushed, taken, lock = [], [], threading.Lock()

    def push(c, number):
        value = b"%d-%d" % (number, len(pushed))
        value += b"-%d" % random.getrandbits(60)
        c("RPUSH", "todo", value)
        with lock:
            pushed.append(value)

    def move(c, _):
        if c("LMOVE", "todo", "doing", "LEFT", "RIGHT") is None:
            time.sleep(0.005)

    def pop(c, _):
        found = c("BLPOP", "doing", 0.05)
        if found:
            with lock:
                taken.append(found[1])

    Crowd(several).start(push, 3).start(move, 3).start(pop, 6).join()
    with several[0].connect() as c:
        left = c("LRANGE", "todo", 0, -1) + c("LRANGE", "doing", 0, -1)
    assert sorted(taken + left) == sorted(pushed) and taken
    several[0].check()


def test_blocked_clients_wake_on_pushes_through_another_server(several):
    with several[0].connect() as waits, several[1].connect() as pushes:
        for i in range(5):
            waits.send(b"*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$2\r\n30\r\n")
            time.sleep(0.02)
            pushes("RPUSH", "q", i)
            assert waits.read().plain() == [b"q", b"%d" % i]
        assert pushes("EXISTS", "q") == 0


def register(crowd, keys, clients, history):
    """Reads and writes of registers by some clients; each operation is noted with its times."""
    numbers, lock = iter(range(10**9)), threading.Lock()

    def work(c, _):
        key = random.choice(keys)
        start = time.monotonic()
        try:
            if random.random() < 0.5:
                with lock:
                    value = b"%d" % next(numbers)
                kind, end = "w", INFINITY
                c("SET", key, value)
            else:
                kind, value = "r", c("GET", key)
            end = time.monotonic()
        except ServerError:
            if kind == "r":
                return
        history[key].append((start, end, kind, value))

    return crowd.start(work, clients)


def test_histories_are_linearizable(several):
    history = {f"r{i}": [] for i in range(3)}
    register(Crowd(several), list(history), 12, history).join()
    for key, ops in history.items():
        assert len(ops) > 20 and problem(ops) is None, (key, problem(ops))


def test_killed_servers_lose_nothing(fleet, data):
    """INCR through servers that are killed and started again: what was acknowledged is there."""
    several = [fleet.larder(data=data) for _ in range(2)]
    acknowledged, asked, stop = [0] * 6, [0] * 6, threading.Event()

    def client(number):
        while not stop.is_set():
            try:
                with several[number % 2].connect(timeout=20) as c:
                    while not stop.is_set():
                        asked[number] += 1
                        c("INCR", "n")
                        acknowledged[number] += 1
            except (OSError, EOFError, ServerError, Closed):
                time.sleep(0.05)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for _ in range(4):
        time.sleep(0.3)
        victim = random.choice(several)
        victim.kill()
        victim.start()
    stop.set()
    for t in threads:
        t.join(60)
    with several[0].connect() as c:
        value = int(c("GET", "n"))
    assert sum(acknowledged) <= value <= sum(asked) and sum(acknowledged) > 0
    several[0].check()


def test_the_database_may_go_and_come_back(own, on_own, fleet):
    """While it is away commands fail soon and PING answers; afterwards service goes on by itself, nothing
    acknowledged is lost, and a commit whose answer was lost is said to be unknown."""
    larder = fleet.larder(data=on_own)
    with larder.connect() as c:
        for i in range(20):
            c("INCR", "n")
        for end in (own.stop, own.kill):
            end()
            assert c("PING") == b"PONG"
            start = time.monotonic()
            assert c.call("GET", "n").is_error and c.call("INCR", "n").is_error
            assert time.monotonic() - start < 15
            own.start()
            wait.until(lambda: not c.call("GET", "n").is_error, "it serves again", 30)
            assert int(c("GET", "n")) == 20
        c("INCR", "n")
        assert c("GET", "n") == b"21"


def test_a_stopped_database_does_not_stop_the_server(own, on_own, fleet):
    larder = fleet.larder("--store-timeout", "1s", data=on_own)
    with larder.connect() as c, larder.connect() as other:
        c("SET", "k", "v")
        os.kill(own.process.pid, signal.SIGSTOP)
        children = children_of(own.process.pid)
        for pid in children:
            os.kill(pid, signal.SIGSTOP)
        try:
            assert c.call("SET", "k", "w").is_error
            assert other("PING") == b"PONG"
        finally:
            for pid in [*children, own.process.pid]:
                os.kill(pid, signal.SIGCONT)
        wait.until(lambda: not c.call("GET", "k").is_error, "it serves again", 30)
        assert c("GET", "k") in (b"v", b"w")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]
