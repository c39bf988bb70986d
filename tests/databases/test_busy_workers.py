"""A busy script on one of several workers: the others serve, what needs all of them is told, and SCRIPT KILL finds it."""

import contextlib

import pytest

from harness import wait
from harness.resp import encode

BUSY = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
FOR_EVER = "while true do end"
WRITES = "redis.call('SET', KEYS[1], 'half') " + FOR_EVER


@pytest.fixture
def server(fleet, data):
    return fleet.larder("--workers", "2", "--busy-reply-threshold", "100", data=data)


def is_busy(client):
    return client.call("PING").is_error


def begin(server, client, *command):
    """Runs a script, and returns when it is busy. Nobody else may ask for that: who is in one batch with it waits for its
    end."""
    before = server.log_text().count(" is busy;")
    client.send(encode(command))
    wait.until(lambda: server.log_text().count(" is busy;") > before, "the script to be busy")


@contextlib.contextmanager
def two_workers(server):
    """(a client whose worker runs the script, one on the same worker, one on the other)."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(4)]
        for c in clients:
            c("PING")
        yield clients


def run(server, clients, *command):
    """Runs a script on one client; (it, others of its worker, others)."""
    begin(server, clients[0], *command)
    told = [c for c in clients[1:] if is_busy(c)]
    free = [c for c in clients[1:] if c not in told]
    assert told
    assert free, "with two workers some are served"
    return clients[0], told, free


def test_other_workers_serve(server):
    with two_workers(server) as clients:
        runner, told, free = run(server, clients, "EVAL", FOR_EVER, 0)
        other = free[0]
        assert other("SET", "k", "1") == b"OK"
        assert other("GET", "k") == b"1"
        assert other("EVAL", "return redis.call('INCR', KEYS[1])", 1, "k") == 2
        assert told[0].error("GET", "k") == BUSY
        for command in (["INFO"], ["CLIENT", "LIST"], ["CONFIG", "SET", "slowlog-max-len", "64"]):
            assert other.error(*command) == BUSY, command
        assert other.error("SHUTDOWN") == BUSY
        other("MULTI")
        other("CLIENT", "LIST")
        assert other.error("EXEC") == "EXECABORT Transaction discarded because of: " + BUSY
        assert other("SCRIPT", "KILL") == b"OK"
        assert b"Script killed by user" in runner.read().value
        wait.until(lambda: not other.call("INFO").is_error, "INFO to work again")
        assert told[0]("GET", "k") == b"2"


def test_two_scripts_at_once(server):
    with two_workers(server) as clients:
        runner, _, free = run(server, clients, "EVAL", FOR_EVER, 0)
        second = free[0]
        begin(server, second, "EVAL", WRITES, 1, "w")
        with server.connect() as late:
            assert late("SCRIPT", "KILL") == b"OK"  # the one that has not written
            assert b"Script killed by user" in runner.read().value
            wait.until(
                lambda: runner.error("SCRIPT", "KILL").startswith("UNKILLABLE"), "the other one to be busy", limit=10
            )
            assert runner("EXISTS", "w") == 0
            runner.send(encode(["SHUTDOWN", "NOSAVE"]))
            assert b"killed by SHUTDOWN" in second.read().value
            server.wait_ended()
    server.process = None
    server.start()
    with server.connect() as c:
        assert c("EXISTS", "w") == 0


def test_kills_under_load(server):
    """Counters that scripts count stay exact while busy scripts are ended between them."""
    with contextlib.ExitStack() as stack:
        killer, *clients = [stack.enter_context(server.connect()) for _ in range(9)]
        counted = 0
        for runner in clients[:4]:
            others = [c for c in clients if c is not runner]
            begin(server, runner, "EVAL", FOR_EVER, 0)
            for c in others:
                c.send(encode(["EVAL", "return redis.call('INCR', KEYS[1])", 1, "n"]) * 3)
            wait.until(lambda: not killer.call("SCRIPT", "KILL").is_error, "the script to be busy, and killed")
            replies = [c.read() for c in others for _ in range(3)]
            counted += sum(not r.is_error for r in replies)
            assert all(r.value == BUSY.encode() for r in replies if r.is_error)
            assert b"Script killed by user" in runner.read().value
        assert int(killer("GET", "n")) == counted
