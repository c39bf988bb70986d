"""Memory for rows that are not in the tables yet: who waits when there is little left."""

import contextlib
import socket
import sqlite3
import threading
import urllib.request

import pytest

from harness import prometheus, wait
from harness.http import HttpLarder
from harness.resp import Closed, encode

pytestmark = pytest.mark.sqlite

MB = 2**20
PATIENT = ["--busy-timeout", "1h"]


@contextlib.contextmanager
def locked(path):
    """Nothing comes into the tables meanwhile."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def is_full(larder):
    with urllib.request.urlopen(larder.url + "/metrics", timeout=60) as answer:
        return prometheus.parse(answer.read())["larder_journal_full"].get() == 1


def sets(prefix, mb, size):
    """So many megabytes of SETs, a command at a time."""
    return ([b"SET", b"%s:%d" % (prefix, i), b"x" * size] for i in range(mb * MB // size))


@contextlib.contextmanager
def writing(larder, commands):
    """A client sends commands meanwhile, as fast as they are taken, and reads no reply; it is cut off at the end."""
    with larder.connect() as c:

        def send():
            with contextlib.suppress(OSError, Closed):
                for command in commands:
                    c.send(encode(command))

        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield
        finally:
            c.socket.shutdown(socket.SHUT_RDWR)
            sender.join()


def test_who_writes_little_does_not_wait_for_who_writes_much(fleet):
    larder = fleet.new(HttpLarder, "--journal-max", "64mb", *PATIENT).start()
    with larder.connect() as little, locked(larder.store.path), writing(larder, sets(b"many", 80, size=1024)):
        wait.until(lambda: is_full(larder), "the one that writes much waits")
        for i in range(5):
            assert little("SET", f"little:{i}", i) == b"OK"
        assert is_full(larder)
