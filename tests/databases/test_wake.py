"""Blocked clients that wait for what comes through another server: on PostgreSQL they are told."""

import itertools
import re
import threading
import time

import pytest

from harness import wait


@pytest.fixture
def kind():
    return "postgres"


@pytest.fixture
def several(fleet, data):
    return [fleet.larder("--sweep", "no", "--workers", "1", data=data) for _ in range(2)]


def notified(data, act):
    """Whether somebody who listens on PostgreSQL hears of what is done meanwhile."""
    heard = []

    def listen():
        heard.append(data.query("LISTEN larder_wake; SELECT pg_sleep(0.6); SELECT 1"))

    listener = threading.Thread(target=listen)
    listener.start()
    time.sleep(0.3)
    act()
    listener.join(30)
    return "notification" in str(heard[0])


def test_others_are_told_when_they_listen(several, data):
    """A push tells the servers that have blocked clients, and only if there are any."""
    with several[0].connect() as waits, several[1].connect() as pushes:
        assert not notified(data, lambda: pushes("RPUSH", "early", "x"))
        waits.send(b"*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$1\r\n0\r\n")
        wait.until(lambda: b"blocked_clients:1\r" in waits_info(several[0]), "it waits")
        assert not notified(data, lambda: pushes("RPUSH", "early", "y"))  # it was there
        assert not notified(data, lambda: pushes("SET", "string", "y"))
        others = itertools.count()
        wait.until(lambda: notified(data, lambda: pushes("ZADD", f"z{next(others)}", 1, "x")), "it is told", 30)
        assert not notified(data, lambda: several[0].connect()("RPUSH", "own", "x"))  # it knows itself
        pushes("RPUSH", "q", "v")
        assert waits.read().plain() == [b"q", b"v"]


def waits_info(server):
    with server.connect() as c:
        return c("INFO", "clients")


def test_who_is_told_hardly_looks(several):
    """Blocked clients cost a look a second where the database tells, and still get what comes at once."""
    with several[0].connect() as waits, several[0].connect() as asks, several[1].connect() as pushes:
        waits.send(b"*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$1\r\n0\r\n" * 4)

        def count(what):
            return int(re.search(rb"%s:(\d+)" % what, asks("INFO", "larder"))[1])

        def quiet():
            before = count(b"round_trips")
            time.sleep(1)
            return count(b"round_trips") - before <= 8  # two INFOs and a look or two; else they would be above 20

        wait.until(quiet, "it hardly looks", 20)
        assert count(b"wakeups") == 0
        for i in range(4):
            pushes("RPUSH", "q", i)
            assert waits.read().plain() == [b"q", b"%d" % i]
        assert count(b"wakeups") > 0
