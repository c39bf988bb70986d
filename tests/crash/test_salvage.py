"""A journal that is damaged: no server starts on it, and `larder check --salvage` finds a way back."""

import contextlib
import random
import sqlite3

import pytest

from harness import servers
from harness.resp import Closed, encode

pytestmark = pytest.mark.sqlite

AT_ONCE = 16_000  # commands; the server takes 1,000 of a connection at a time
OPTIONS = ["--journal-max", "64mb", "--apply-lag", "60s", "--durability", "always"]


@contextlib.contextmanager
def tables(larder):
    connection = sqlite3.connect(larder.store.path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def meta(connection, name):
    return connection.execute("SELECT value FROM larder_meta WHERE name = ?", [name]).fetchone()[0]


def pending(larder):
    """The numbers of the rows that are not in the tables."""
    with tables(larder) as t:
        return [seq for (seq,) in t.execute("SELECT seq FROM larder_journal WHERE seq > ? ORDER BY seq", [meta(t, "applied")])]


class Crashed:
    """A server that was killed with a journal, and what it had acknowledged: from `first` on, key n was set to n."""

    def __init__(self, fleet, *options, least=6):
        self.larder = fleet.larder(*OPTIONS, *options)
        self.first = self.acknowledged = self.sent = 0
        for _ in range(80):
            self.write_and_kill()
            self.rows = pending(self.larder)
            with tables(self.larder) as t:
                if len(self.rows) >= least and meta(t, "applying") == 0:
                    return
            self.larder.start()
        raise AssertionError("the journal is always empty")

    def write_and_kill(self):
        self.first = self.sent
        self.sent += AT_ONCE
        with self.larder.connect() as c:
            c("FLUSHALL")
            self.larder.store.query("SELECT 1")  # waits for tables that are current
            c.send(b"".join(encode([b"SET", b"key:%07d" % n, b"%d" % n]) for n in range(self.first, self.sent)))
            for _ in range(AT_ONCE // 2):
                assert c.read().plain() == b"OK"
            self.larder.kill()
            self.acknowledged = self.first + AT_ONCE // 2
            with contextlib.suppress(Closed, ConnectionError):
                while True:
                    c.read()
                    self.acknowledged += 1

    def damage(self, seq, r=random.Random(1)):
        """One bit of the row changes."""
        with tables(self.larder) as t:
            (row,) = t.execute("SELECT changes FROM larder_journal WHERE seq = ?", [seq]).fetchone()
            at = r.randrange(len(row) * 8)
            row = bytearray(row)
            row[at // 8] ^= 1 << at % 8
            t.execute("UPDATE larder_journal SET changes = ? WHERE seq = ?", [bytes(row), seq])

    def refused(self):
        with pytest.raises(servers.StartError) as failure:
            self.larder.start()
        return failure.value.log

    def check(self, *options):
        return servers.run(["check", "--store", self.larder.store.url, *options], binary=self.larder.binary)

    def present(self):
        """The keys that are there, by number; each has its value."""
        found = []
        with self.larder.connect() as c:
            for start in range(self.first, self.sent, 5000):
                numbers = range(start, min(start + 5000, self.sent))
                for n, value in zip(numbers, c("MGET", *(f"key:{n:07}" for n in numbers))):
                    assert value in (None, b"%d" % n)
                    if value is not None:
                        found.append(n)
            assert c("DBSIZE") == len(found)
        return found

    def prefix(self, found):
        """What the first so many commands left."""
        return list(range(self.first, self.first + len(found)))

    def lost(self):
        """The numbers of the keys that were left out: those that are certain, those that are not."""
        copy = sqlite3.connect(f"{self.larder.store.path}.salvaged")
        try:
            rows = copy.execute("SELECT key, value, certain, db, type FROM lost").fetchall()
            for key, value, certain, db, kind in rows:
                if certain:
                    assert key == b"key:%07d" % int(value) and db == 0 and kind == "string"
            return {int(key[4:]) for key, _, certain, _, _ in rows if certain}
        finally:
            copy.close()


@pytest.fixture
def crashed(fleet):
    return Crashed(fleet)


def test_a_journal_is_checked_and_left_alone(crashed):
    before = pending(crashed.larder)
    done = crashed.check()
    assert done.returncode == 0, done.stdout
    assert f"journal ... ok, {len(before)} rows to be applied\n" in done.stdout
    assert pending(crashed.larder) == before
    done = crashed.check("--salvage")
    assert done.returncode == 0 and done.stdout == f"nothing is damaged: {len(before)} rows to be applied by the next server\n"
    assert pending(crashed.larder) == before
    crashed.larder.start()
    found = crashed.present()
    assert found == crashed.prefix(found) and found[-1] >= crashed.acknowledged - 1


def test_what_is_behind_a_damaged_row_is_left_out(crashed):
    damaged = crashed.rows[len(crashed.rows) // 2]
    crashed.damage(damaged)
    log = crashed.refused()
    assert f"row {damaged} of the journal is damaged: " in log
    assert f"larder check --salvage --store {crashed.larder.store.url}" in log

    done = crashed.check()
    assert done.returncode == 3 and "journal ... WRONG\n" in done.stdout and f"row {damaged} of the journal is damaged" in done.stdout

    done = crashed.check("--salvage")
    assert done.returncode == 0, done.stdout
    behind = [seq for seq in crashed.rows if seq >= damaged]
    assert f"row {damaged} is damaged: " in done.stdout
    assert f"left out: {len(behind)} of {len(crashed.rows)} rows" in done.stdout
    assert f"copied to {crashed.larder.store.path}.salvaged\n" in done.stdout
    for seq in behind[1:]:
        assert f"\n  row {seq}: 'key:" in done.stdout

    crashed.larder.start()
    found = crashed.present()
    assert found == crashed.prefix(found), "what is there is a state of the past"
    assert found and found[-1] < crashed.acknowledged - 1
    lost = crashed.lost()
    assert lost and min(lost) > found[-1] and max(lost) >= crashed.acknowledged - 1
    assert not lost & set(found)
    with sqlite3.connect(f"{crashed.larder.store.path}.salvaged") as copy:
        assert [seq for (seq,) in copy.execute("SELECT seq FROM larder_journal ORDER BY seq")] == behind
        assert copy.execute("SELECT count(*) FROM larder_journal WHERE damage <> ''").fetchone() == (1,)

    # It goes on as if nothing had been.
    with crashed.larder.connect() as c:
        c("SET", "more", "x")
    crashed.larder.kill()
    crashed.larder.check()
    crashed.larder.start()
    assert crashed.larder.connect()("GET", "more") == b"x"


def test_the_first_row(crashed):
    crashed.damage(crashed.rows[0])
    assert crashed.check("--salvage").returncode == 0
    crashed.larder.start()
    found = crashed.present()
    assert found == crashed.prefix(found)


def test_only_damaged_rows_are_skipped(crashed):
    damaged = crashed.rows[1]
    crashed.damage(damaged)
    crashed.refused()
    done = crashed.check("--salvage=skip")
    assert f"left out: 1 of {len(crashed.rows)} rows" in done.stdout
    assert done.returncode == 0, done.stdout  # strings do not depend on each other
    crashed.larder.start()
    found = set(crashed.present())
    gap = set(range(crashed.first, max(found))) - found
    assert gap == set(range(min(gap), max(gap) + 1)), "one stretch is missing"
    assert max(found) >= crashed.acknowledged - 1


def test_rows_that_are_partly_in_the_tables(crashed):
    """Then what was before cannot be had any more: rows up to there are kept, but for the damaged one."""
    damaged, applying = crashed.rows[1], crashed.rows[3]
    with tables(crashed.larder) as t:
        t.execute("UPDATE larder_meta SET value = ? WHERE name = 'applying'", [applying])
    crashed.damage(damaged)
    done = crashed.check()
    assert done.returncode == 3 and "were not checked" in done.stdout
    done = crashed.check("--salvage")
    assert done.returncode == 0, done.stdout
    assert f"left out: {len(crashed.rows) - 3} of {len(crashed.rows)} rows" in done.stdout
    crashed.larder.start()
    found = set(crashed.present())
    gap = set(range(crashed.first, max(found))) - found
    assert gap and gap == set(range(min(gap), max(gap) + 1)), "one stretch is missing"
    assert max(found) < crashed.acknowledged - 1


def test_every_kind_of_damage(crashed):
    """Whatever became of a row, it is found, and what was before it is there."""
    damaged = crashed.rows[2]
    with tables(crashed.larder) as t:
        (row,) = t.execute("SELECT changes FROM larder_journal WHERE seq = ?", [damaged]).fetchone()
        for bad in [b"", b"\x01", row[:-1], row[: len(row) // 2], row + b"\0", b"\x02" + row[1:], bytes(len(row)), random.Random(2).randbytes(len(row))]:
            t.execute("UPDATE larder_journal SET changes = ? WHERE seq = ?", [bad, damaged])
            done = crashed.check()
            assert done.returncode == 3 and f"row {damaged} of the journal is damaged" in done.stdout, bad[:20]
    crashed.refused()
    done = crashed.check("--salvage")
    assert done.returncode == 0 and f"row {damaged} is damaged" in done.stdout
    crashed.larder.start()
    found = crashed.present()
    assert found == crashed.prefix(found)


def test_a_server_is_in_the_way(fleet):
    larder = fleet.larder()
    done = servers.run(["check", "--salvage", "--store", larder.store.url], binary=larder.binary)
    assert done.returncode == 1 and "in use" in done.stderr


def test_check_beside_a_busy_server(fleet):
    """It finds a moment when the tables are whole."""
    larder = fleet.larder("--journal-max", "1mb", "--apply-lag", "50ms")
    with larder.connect() as c:
        for round in range(5):
            first = round * 20_000
            c.send(b"".join(encode([b"HSET", b"hash%d" % (n % 100), b"f%d" % n, b"v" * 50]) for n in range(first, first + 20_000)))
            done = servers.run(["check", "--store", larder.store.url], binary=larder.binary)
            assert done.returncode == 0, done.stdout + done.stderr
            for _ in range(20_000):
                c.read()
