"""What SQL sees of a file while the server writes is a state that was: beside clients that move amounts from key to key, each
transfer by one MULTI/EXEC, every sum and every copy adds up to nothing."""

import os
import sqlite3
import time

import pytest

from harness import wait
from harness.transfers import SUM, Transfers

pytestmark = pytest.mark.sqlite  # servers have their own: tests/databases/test_states.py

# LARDER_TEST_LONG: a minute of 50,000 keys.
SECONDS, KEYS = (60.0, 50000) if os.environ.get("LARDER_TEST_LONG") else (2.0, 5000)
TOTAL = SUM.format("key")
APPLIED = "SELECT value FROM larder_meta WHERE name = 'applied'"
HALVES = [f"{TOTAL} AND key {which} LIKE '%0'" for which in ("", "NOT")]


def look(connection):
    """In one statement: what all amounts add up to, and up to which change set the tables have them."""
    total, upto = connection.execute(f"SELECT ({TOTAL}), ({APPLIED})").fetchone()
    return total or 0, upto


def copied(connection, path):
    """The same of a copy, as the shell's .backup makes it."""
    path.unlink(missing_ok=True)
    copy = sqlite3.connect(path)
    try:
        connection.backup(copy)
        return look(copy)
    finally:
        copy.close()


def test_every_sum_and_every_copy_is_of_one_state(fleet, tmp_path):
    larder = fleet.larder("--apply-lag", "100ms")
    states, copies, torn = set(), set(), 0
    reader = sqlite3.connect(f"file:{larder.store.path}?mode=ro", uri=True, isolation_level=None)
    try:
        with Transfers(larder, keys=KEYS) as transfers:
            wait.until(lambda: look(reader)[1] > 0, "something is in the tables")
            until, copy_at = time.monotonic() + SECONDS, 0.0
            while time.monotonic() < until or len(states) < 4 or len(copies) < 2:
                total, upto = look(reader)
                assert total == 0, f"half a transfer, at {upto}"
                states.add(upto)
                if time.monotonic() >= copy_at:
                    total, upto = copied(reader, tmp_path / "copy.db")
                    assert total == 0, f"half a transfer in a copy, at {upto}"
                    copies.add(upto)
                    copy_at = time.monotonic() + 0.1
            deadline = time.monotonic() + 30
            while not torn and time.monotonic() < deadline:  # it can be seen when there is something to see
                torn += sum(reader.execute(half).fetchone()[0] or 0 for half in HALVES) != 0
        assert torn and transfers.done > 100 and not transfers.problems
        with larder.connect() as c:
            before = int(c("TIME")[0])
            assert c("SAVE") == b"OK"
        assert look(reader)[0] == 0
        (at,) = reader.execute("SELECT value FROM larder_meta WHERE name = 'applied_at'").fetchone()
        assert abs(int(at) / 1000 - before) < 60
    finally:
        reader.close()


def test_a_reader_of_an_old_state_keeps_nobody_waiting(fleet):
    """Passes pause when SQLite's own log is longer than wal-max; clients go on until their room is used up, and everything is
    brought in when the reader has ended."""
    larder = fleet.larder("--wal-max", "1mb", "--apply-lag", "20ms")
    reader = sqlite3.connect(larder.store.path, isolation_level=None)
    try:
        with larder.connect() as c:
            c("SET", "first", 1)
            c("SAVE")
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM larder_keys").fetchone() == (1,)
            i = 0

            def waits():
                nonlocal i
                replies = c.pipeline([["SET", f"k{i + n}", "x" * 500] for n in range(500)])
                i += 500
                assert not any(reply.is_error for reply in replies)
                return b"wal_waits:1" in c("INFO")

            wait.until(waits, "passes pause", pause=0)
            assert c("GET", f"k{i - 1}") == b"x" * 500
            assert reader.execute("SELECT count(*) FROM larder_keys").fetchone() == (1,)
            reader.execute("COMMIT")
            assert c("SAVE") == b"OK"
            assert b"wal_waits:0" in c("INFO")
        assert reader.execute("SELECT count(*) FROM larder_keys").fetchone() == (i + 1,)
    finally:
        reader.close()
