"""A server that has the tables for itself answers from memory only for as long as nobody else can have written: its lease
(src/store/remote/lease.h). Others take over while it is frozen, or cut off, and nothing that it answers is out of date."""

import contextlib
import os
import signal
import time

import pytest

from harness import wait
from harness.processes import stop
from harness.proxy import Proxy
from harness.resp import Closed

from .faults import Behind
from .test_sql import sql_set

LEASE_MS = 600
LEASE = ["--exclusive-lease", f"{LEASE_MS}ms"]
LONG = ["--exclusive-lease", "10m"]
JOURNAL = pytest.mark.parametrize("journal", [[], ["--journal-max", "0"]], ids=["journal", "no journal"])


def end_sessions(data):
    """Of this database, as it does by itself when a machine is gone: until none is left."""
    if data.kind == "postgres":
        sessions = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        end = "SELECT pg_terminate_backend({})"
    else:
        sessions = "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND db = database()"
        end = "KILL CONNECTION {}"

    def none_left():
        found = data.server.query(sessions, data.name)
        for (number,) in found:
            with contextlib.suppress(Exception):  # it may have ended meanwhile
                data.server.query(end.format(number), data.name)
        return not found

    wait.until(none_left, "its sessions are gone")


def write_by_another_server(fleet, data, mode):
    other = fleet.larder(*LEASE, data=Behind(data, data.server.url(data.name, mode=mode)))
    with other.connect() as c:
        assert c("SET", "key", "new") == b"OK"
    return other


TAKEOVERS = {
    "exclusive": lambda fleet, data: write_by_another_server(fleet, data, "exclusive"),
    "shared": lambda fleet, data: write_by_another_server(fleet, data, "shared"),
    "application": lambda _, data: data.server.query(sql_set(data, b"key", b"new"), data.name),
}


@contextlib.contextmanager
def frozen(server):
    stop([server.pid])
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


class Reader:
    """Sends GETs, many of them in flight, and takes the replies."""

    def __init__(self, server):
        self.connection = server.connect(timeout=60)

    def send(self, n):
        self.connection.send(b"GET key\r\n" * n)

    def take(self, n):
        """Values and errors; fewer than n when the server has ended."""
        replies = []
        with contextlib.suppress(Closed, ConnectionError):
            while len(replies) < n:
                reply = self.connection.read()
                replies.append("error" if reply.is_error else reply.value)
        return replies


@JOURNAL
@pytest.mark.parametrize("how", TAKEOVERS)
def test_a_frozen_server_tells_nothing_that_is_not_true_any_more(fleet, alone, how, journal):
    larder = fleet.larder(*LEASE, *journal, data=alone)
    with larder.connect() as c:
        assert c("SET", "key", "old") == b"OK"
    alone.query("SELECT 1")  # everything is in the tables
    readers = [Reader(larder) for _ in range(8)]
    for r in readers:
        r.send(100)
    for r in readers:
        assert set(r.take(100)) == {b"old"}
    with frozen(larder):
        for r in readers:
            r.send(100)  # before the other writes: either value is right
        end_sessions(alone)
        TAKEOVERS[how](fleet, alone)
        late = [Reader(larder) for _ in range(8)]
        for r in readers + late:
            r.send(300)
    for r in readers:
        r.take(100)
    told = [reply for r in readers + late for reply in r.take(300)]
    assert b"old" not in told, f"{told.count(b'old')} of {len(told)} replies"
    if not journal:  # else it takes the tables again when it may
        assert larder.process.wait(30) == 1
        assert "was taken over while the connection to it was lost" in larder.log_text()
    larder.kill()


@pytest.fixture
def behind(fleet, alone):
    """Makes a Larder that reaches the database through a proxy, and the proxy."""
    made = []

    def make(*options):
        proxy = Proxy(alone.server.port)
        url = alone.server.url(alone.name, tcp=True, mode="exclusive").replace(f":{alone.server.port}/", f":{proxy.port}/")
        larder = fleet.larder("--store-timeout", "1s", *options, data=Behind(alone, url))
        made.append((larder, proxy))
        return larder, proxy

    yield make
    for larder, proxy in made:
        larder.kill()
        larder.check_log()
        proxy.close()


@JOURNAL
def test_a_connection_that_hangs(fleet, alone, behind, journal):
    """Nothing comes from the database, and nothing ends: only the lease tells that others may be there."""
    larder, proxy = behind(*LEASE, *journal)
    with larder.connect() as c:
        assert c("SET", "key", "old") == b"OK"
        alone.query("SELECT 1")
        proxy.tell("stall")
        end_sessions(alone)
        other = write_by_another_server(fleet, alone, "exclusive")
        reply = c.call("GET", "key")
        assert reply.is_error, reply
        assert c("PING") == b"PONG"
        other.stop()


def round_trips(c):
    return int(c("INFO", "larder").split(b"round_trips:")[1].split(b"\r")[0])


@JOURNAL
def test_reads_from_memory_ask_nobody_while_the_lease_lasts(fleet, alone, journal):
    larder = fleet.larder(*LONG, *journal, "--sweep", "no", data=alone)
    with larder.connect() as c:
        c("SET", "key", "value")
        alone.query("SELECT 1")
        c("GET", "key")
        before = round_trips(c)
        for _ in range(200):
            assert c("GET", "key") == b"value"
        assert round_trips(c) - before < 20


@JOURNAL
def test_a_lease_that_ran_out_is_renewed_by_the_next_batch(fleet, alone, journal):
    larder = fleet.larder("--exclusive-lease", "1ms", *journal, "--sweep", "no", data=alone)
    with larder.connect() as c:
        c("SET", "key", "value")
        for _ in range(20):
            before = round_trips(c)
            time.sleep(0.002)
            assert c("GET", "key") == b"value"
            assert round_trips(c) > before


def test_without_a_lease_memory_is_read_while_the_database_is_away(behind):
    larder, proxy = behind("--exclusive-lease", "0")
    with larder.connect() as c:
        c("SET", "key", "value")
        proxy.tell("refuse")
        wait.until(lambda: c.call("SET", "key", "other").is_error, "it is noticed")
        assert c("GET", "key") == b"value"


def test_a_server_whose_database_is_away_answers_for_as_long_as_its_lease(behind):
    larder, proxy = behind(*LEASE)
    with larder.connect() as c:
        c("SET", "key", "value")
        proxy.tell("refuse")
        wait.until(lambda: c.call("GET", "key").is_error, "its lease has run out")
        proxy.tell("pass")
        wait.until(lambda: not c.call("GET", "key").is_error, "it serves again")
        assert c("GET", "key") == b"value"


def test_nobody_waits_for_a_process_that_is_gone(fleet, alone):
    """Within the time that a start may take, though the lease is much longer: it was killed on this machine."""
    larder = fleet.larder(*LONG, data=alone)
    with larder.connect() as c:
        c("SET", "key", "value")
    larder.kill()
    larder.start()
    assert "waiting for the lease" not in larder.log_text()
    with larder.connect() as c:
        assert c("GET", "key") == b"value"
    larder.stop()


def test_nobody_waits_for_a_server_that_ended_well(fleet, alone):
    larder = fleet.larder(*LONG, data=alone)
    larder.stop()
    assert alone.server.query("SELECT value FROM larder_meta WHERE name = 'owner'", alone.name) in ([[""]], [[]], [])
    other = fleet.larder(*LONG, data=alone)
    assert "waiting for the lease" not in other.log_text()
    other.stop()
