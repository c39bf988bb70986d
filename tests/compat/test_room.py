"""Memory for rows that are not in the tables yet: what they may take, and who waits when there is little left."""

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


def info(c):
    lines = c("INFO", "larder").decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def is_full(larder):
    with urllib.request.urlopen(larder.url + "/metrics", timeout=60) as answer:
        return prometheus.parse(answer.read())["larder_journal_full"].get() == 1


def sets(prefix, mb, size=16384):
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


def test_rows_that_wait_for_the_tables_take_memory_of_the_cache(fleet):
    larder = fleet.larder("--memory", "128mb", *PATIENT)
    with larder.connect() as c:
        first = list(sets(b"first", 90))
        c.pipeline([*first, ["SAVE"]])

        def in_cache():
            c.pipeline([["GET", key] for _, key, _ in first])
            return int(info(c)["cache_bytes"])

        wait.until(lambda: in_cache() > 75 * MB, "the cache has what it may have")
        with locked(larder.store.path), writing(larder, sets(b"many", 80)):
            wait.until(lambda: int(info(c)["memtable_bytes"]) > 46 * MB, "they have more than journal-max")
            now = info(c)
            assert int(now["cache_bytes"]) + int(now["memtable_bytes"]) < 124 * MB
