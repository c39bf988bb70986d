"""Scripts over tables that several servers share: declared and undeclared keys, conflicts and re-runs without a trace,
counters and transfers that stay exact while servers are killed."""

import os
import random
import re
import threading

import pytest

from databases.test_conflicts import DEADLOCK, conflicts, plant
from harness import store, wait
from harness.resp import Closed, ServerError, encode

ROLLBACK = "#!lua flags=rollback\n"
SERVERS = 4
CLIENTS = 4
SECONDS = float(os.environ.get("LARDER_SCRIPT_SECONDS", 1))


# ---- run again ----


def test_a_rerun_leaves_no_trace(fleet, data):
    """The database ends the transaction a few times at its writes; replies, statistics, log, MONITOR and those who wait see
    one run of each script."""
    server = fleet.larder("--workers", "1", data=data)
    library = "#!lua name=lib\nredis.register_function('add', function(k, a) return redis.call('INCRBY', k[1], a[1]) end)"
    with server.connect() as c, server.connect() as blocked, server.connect() as monitor:
        c("SET", "n", 5)
        c("FUNCTION", "LOAD", library)
        sha = c("SCRIPT", "LOAD", "return redis.call('INCR', KEYS[1])")
        blocked.send(encode(["BLPOP", "q", 0]))
        wait.until(lambda: b"blocked_clients:1\r" in c("INFO", "clients"), "it waits")
        assert monitor("MONITOR") == b"OK"
        c("CONFIG", "RESETSTAT")
        before = conflicts(c)
        plant(data, DEADLOCK[data.kind], 3)
        script = """
            redis.log(redis.LOG_WARNING, 'once only')
            redis.setresp(3)
            redis.call('SELECT', 1)
            redis.call('INCR', 'n')
            redis.call('SELECT', 0)
            redis.pcall('LPUSH', KEYS[1], 'x')
            redis.call('RPUSH', 'q', 'a', 'b')
            return {redis.call('INCR', KEYS[1]), tostring(math.random())}
        """
        replies = c.pipeline([
            ("EVAL", script, 1, "n"), ("EVALSHA", sha, 1, "n"), ("FCALL", "add", 1, "n", 10), ("GET", "n"),
            ("EVAL", ROLLBACK + "redis.call('INCR', 'n') error('x')", 0), ("MULTI",), ("EVALSHA", sha, 1, "n"), ("EXEC",),
        ])  # fmt: skip
        found = [r.plain() if not r.is_error else None for r in replies]
        (first, chance), *found = found
        assert first == 6 and found == [7, 17, b"17", None, b"OK", b"QUEUED", [18]]
        assert blocked.read().plain() == [b"q", b"a"] and c("LRANGE", "q", 0, -1) == [b"b"]
        assert conflicts(c) == before + 3
        stats = c("INFO", "everything")
        for line in (rb"cmdstat_incr:calls=5,", rb"cmdstat_rpush:calls=1,", rb"cmdstat_incrby:calls=1,",
                     rb"cmdstat_lpush:calls=1,.*failed_calls=1", rb"cmdstat_eval:calls=2,.*failed_calls=1",
                     rb"errorstat_WRONGTYPE:count=1\r"):  # fmt: skip
            assert re.search(line, stats), line
        lines, _ = monitor.read_available(0.2)
        assert lines.count(b'"RPUSH" "q"') == 1 and lines.count(b'lua] "INCR"') == 5
        c("SELECT", 1)
        assert c("GET", "n") == b"1"
    assert server.log_text().count("once only") == 1
    with fleet.larder("--workers", "1", data=data).connect() as c:  # its first number, too
        assert c("EVAL", "return tostring(math.random())", 0) == chance


def test_a_database_that_fails_ends_the_script(fleet, data):
    """Whatever the script catches: nothing of it is left, nothing after the failure runs, and the reply is the failure."""
    server = fleet.larder("--workers", "1", data=data)
    with server.connect() as c:
        c("SET", "n", 5)
        plant(data, {"postgres": "53100", "mariadb": 1021}[data.kind], 2)
        script = """
            redis.call('INCR', 'n')
            pcall(function() redis.call('KEYS', '*') end)
            redis.pcall('KEYS', '*')
            redis.log(redis.LOG_WARNING, 'too late')
            redis.call('SET', 'm', 1)
            return 'fine'
        """
        assert c.error("EVAL", script, 1, "n").startswith("MISCONF ")
        replies = c.pipeline([("MULTI",), ("SET", "x", 1), ("EVAL", script, 1, "n"), ("EXEC",)])
        assert replies[-1].value.startswith(b"EXECABORT Transaction discarded because of a failure of the database: MISCONF ")
        assert c("GET", "n") == b"5" and c("EXISTS", "m", "x") == 0
        assert c("EVAL", script, 1, "n") == b"fine" and c("GET", "n") == b"6"
    assert server.log_text().count("too late") == 1


@pytest.mark.parametrize("keys", ["declared", "undeclared"])
def test_an_error_takes_back_what_is_in_the_transaction(fleet, data, keys):
    """Keys that the script has locked since its beginning are locked first when it is run again."""
    server = fleet.larder("--workers", "1", data=data)
    names = ("a", "b", "list")
    declared = (len(names), *names) if keys == "declared" else (0,)
    with server.connect() as c:
        c("MSET", "a", 1, "b", 2)
        script = "redis.call('INCR', 'a') redis.call('INCR', 'b') redis.call('RPUSH', 'list', 1) redis.call('KEYS', '*') "
        replies = c.pipeline([
            ("INCR", "other"), ("EVAL", ROLLBACK + script + "error('x')", *declared), ("INCR", "other"),
            ("MULTI",), ("INCR", "a"), ("EVAL", ROLLBACK + script + "return redis.error_reply('MY own')", *declared),
            ("INCR", "b"), ("EXEC",), ("MGET", "a", "b", "list", "other"),
        ])  # fmt: skip
        assert replies[0].plain() == 1 and replies[1].is_error and replies[2].plain() == 2
        assert replies[-2].plain() == [2, ServerError(b"MY own"), 3]
        assert replies[-1].plain() == [b"2", b"3", None, b"2"]
        assert c("EVAL", ROLLBACK + script + "return redis.call('DBSIZE')", *declared) == 4
        assert c("DBSIZE") == 4 and c("MGET", "a", "b") == [b"3", b"4"]


def test_servers_that_wait_for_each_other_do_not_wait_for_long(fleet, data):
    """Two scripts have a key each and come to the other's, which neither declares. It does not take a database that looks for
    such pairs now and then to part them."""
    if data.kind == "postgres":
        setting = "ALTER DATABASE %I SET deadlock_timeout = %L"
        data.query(f"DO $$ BEGIN EXECUTE format('{setting}', current_database(), '1h'); END $$")
    both = [fleet.larder("--workers", "1", data=data) for _ in range(2)]
    script = """
        redis.call('INCR', ARGV[1])
        local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
        local start = now()
        while now() < start + 300 do end
        return redis.call('INCR', ARGV[2])
    """
    with both[0].connect() as one, both[1].connect() as other:
        for _ in range(3):
            one.send(encode(["EVAL", script, 0, "a", "b"]))
            other.send(encode(["EVAL", script, 0, "b", "a"]))
            assert not one.read().is_error and not other.read().is_error
        assert one("MGET", "a", "b") == [b"6", b"6"]
        assert conflicts(one) + conflicts(other) > 0


def test_commands_for_which_the_workers_stand_still(fleet, data):
    server = fleet.larder("--workers", "4", data=data)
    with server.connect() as c:
        connections = [server.connect() for _ in range(8)]
        threads = [threading.Thread(target=lambda o=o: [o("INCR", "n") for _ in range(50)]) for o in connections]
        for thread in threads:
            thread.start()
        for _ in range(5):
            script = "redis.call('INCR', KEYS[1]) return redis.call('INFO', 'clients')"
            assert b"connected_clients:9\r" in c("EVAL", script, 1, "m")
        assert c("GET", "m") == b"5"
        for thread in threads:
            thread.join(60)
        assert c("GET", "n") == b"400"
        for connection in connections:
            connection.close()


def test_a_server_that_only_reads(fleet, data):
    writer = fleet.larder(data=data)
    with writer.connect() as c:
        c("SET", "k", "v")
    reader = fleet.larder("--read-only", "yes", data=data)
    with reader.connect() as c:
        assert c("EVAL", "return redis.call('GET', 'k')", 1, "k") == b"v"
        assert c.error("EVAL", "return redis.call('SET', 'k', 1)", 1, "k").startswith("READONLY ")
        assert c("EVAL", "redis.pcall('SET', 'k', 1) return redis.call('GET', 'k')", 1, "k") == b"v"
        assert c.error("EVAL", "#!lua\nreturn redis.call('GET', 'k')", 1, "k").startswith("READONLY ")
        assert c("EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', 'k')", 1, "k") == b"v"
        replies = c.pipeline([("MULTI",), ("EVAL", "return redis.call('GET', 'k')", 0), ("EXEC",)])
        assert replies[-1].plain() == [b"v"]


# ---- many at once, and servers that are killed ----

ACCOUNTS = [f"account{i}" for i in range(12)]
TRANSFER = """
local function balance(key) return tonumber(redis.call('GET', key) or 0) end
local from, to, amount = ARGV[1], ARGV[2], tonumber(ARGV[3])
redis.call('SET', from, balance(from) - amount)
redis.call('SET', to, balance(to) + amount)
redis.call('HINCRBY', 'moved', from, amount)
return redis.call('INCR', ARGV[4])
"""
# Looks through a large set between, so that rows are in the transaction, and comes to nothing.
IN_VAIN = ROLLBACK + TRANSFER.replace("return redis", "redis") + "redis.call('KEYS', 'account*') error('no')"


class Teller(threading.Thread):
    """Moves money by scripts, from one server to the next as they come and go. Each counts what it was told."""

    def __init__(self, servers, number, stop):
        super().__init__(daemon=True)
        self.servers, self.number, self.stop_event = servers, number, stop
        self.random = random.Random(number)
        self.done = self.uncertain = self.refused = self.count = 0
        self.wrong = None

    def run(self):
        while not self.stop_event.is_set() and not self.wrong:
            try:
                with self.random.choice(self.servers).connect(timeout=30) as c:
                    for _ in range(self.random.randint(1, 30)):
                        self.step(c)
            except (Closed, ConnectionError, OSError):
                self.stop_event.wait(0.01)
            except Exception as e:  # the test looks at it
                self.wrong = repr(e)

    def step(self, c):
        giver, taker = self.random.sample(ACCOUNTS, 2)
        own = f"count{self.number}"
        words = [giver, taker, self.random.randint(1, 100), own]
        declared = self.random.random() < 0.95
        script = IN_VAIN if self.random.random() < 0.2 else TRANSFER
        call = ("EVAL", script, 4, giver, taker, "moved", own, *words) if declared else ("EVAL", script, 0, *words)
        self.uncertain += 1  # until it is known
        reply = c.call(*call)
        self.uncertain -= 1
        if not reply.is_error:
            self.done += 1
            assert reply.plain() > self.count, (reply, self.count)
            self.count = reply.plain()
        elif reply.value.startswith(b"UNCERTAIN"):
            self.uncertain += 1
        else:
            assert b"no script:" in reply.value or reply.value[:8] in (b"TRYAGAIN", b"IOERR Th"), reply.value
            self.refused += 1


def transfers(servers, seconds, killing):
    stop = threading.Event()
    tellers = [Teller(servers, i, stop) for i in range(CLIENTS)]
    for teller in tellers:
        teller.start()
    dice = random.Random(7)
    wait.until(lambda: all(t.done or t.wrong for t in tellers), "they work", 60)
    for _ in range(max(1, int(seconds * 2))) if killing else ():
        victim = dice.choice(servers)
        if stop.wait(0.3):
            break
        victim.kill()
        victim.start()
    if not killing:
        stop.wait(seconds)
    before = [t.done for t in tellers]
    wait.until(lambda: all(t.done > n or t.wrong for t, n in zip(tellers, before)), "they work still", 60)
    stop.set()
    for teller in tellers:
        teller.join(60)
    assert [t.wrong for t in tellers] == [None] * len(tellers)
    with servers[0].connect() as c:
        balances = [int(v or 0) for v in c("MGET", *ACCOUNTS)]
        counts = [int(v or 0) for v in c("MGET", *(f"count{i}" for i in range(len(tellers))))]
    assert sum(balances) == 0, balances
    for teller, count in zip(tellers, counts):
        assert teller.done <= count <= teller.done + teller.uncertain, (teller.done, count, teller.uncertain)
    return sum(t.done for t in tellers)


def test_transfers_by_four_servers_stay_exact(fleet, data):
    servers = [fleet.larder("--workers", "2", data=data) for _ in range(SERVERS)]
    assert transfers(servers, SECONDS, killing=True) > 50


def test_transfers_by_one_server_that_has_the_database_for_itself(fleet, alone):
    assert transfers([fleet.larder(data=alone)], SECONDS, killing=True) > 50
