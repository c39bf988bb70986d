"""The database ends without cleaning up while Larder lives on, and takes commits back that it had not made durable.

PostgreSQL's log is kept in memory but for commits that somebody waits for, so that the others are lost for certain.
MariaDB waits for all of them, unless its own settings say otherwise.
"""

import contextlib
import time

import pytest

from harness import databases, store, wait
from harness.resp import Closed

from .test_alone import has_all, pending, serves, tables_stand_still, write_all

LISTS = 10
ITEMS = 2000
SETTINGS = {
    "postgres": {
        "wal_buffers": "64MB", "autovacuum": "off", "checkpoint_timeout": "1h", "recovery_init_sync_method": "syncfs",
    },
    "mariadb": {},
}  # fmt: skip


POSTGRES = pytest.mark.parametrize("kind", ["postgres"], indirect=True, scope="module")  # MariaDB waits for every commit


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def crashing(kind):
    """A database server for these tests alone."""
    with databases.KINDS[kind](durable=True, settings=SETTINGS[kind]) as database:
        yield database


@pytest.fixture
def own(crashing):
    """What was not waited for is lost when it crashes."""
    crashing.keep_log()
    return crashing


@pytest.fixture
def mine(own):
    return store.KINDS[own.kind](on=own, mode="exclusive")


def crash(own):
    own.lose_log()
    own.start()


def item(name, i):
    return f"{name}:{i}".encode()


def push_all(larder, lists=LISTS, items=ITEMS, first=0):
    """Lists of so many items, round and round: all of it is acknowledged."""
    words = [("RPUSH", f"list{n}", item(n, i)) for i in range(first, first + items) for n in range(lists)]
    with larder.connect() as c:
        replies = c.pipeline(words)
    assert [int(r.value) for r in replies] == [first + i // lists + 1 for i in range(len(words))]


def expect_lists(larder, lists=LISTS, items=ITEMS):
    with larder.connect() as c:
        for n in range(lists):
            assert c("LRANGE", f"list{n}", 0, -1) == [item(n, i) for i in range(items)], f"list {n}"


def ends_well(larder):
    """Everything is in the tables, and fits together."""
    larder.stop()
    larder.check()


def wait_for_both_sessions(larder):
    wait.until(lambda: reads(larder) and serves(larder), "it serves again by itself")


def reads(larder):
    """A key that memory knows nothing of."""
    with larder.connect() as c:
        return not c.call("GET", f"never seen {time.monotonic_ns()}").is_error


@pytest.mark.parametrize("durability", ["always", "everysec"])
def test_what_was_applied_and_is_lost(own, mine, fleet, durability):
    larder = fleet.larder("--durability", durability, data=mine)
    push_all(larder)
    wait.until(lambda: pending(mine) == 0, "the tables are current")
    crash(own)
    wait_for_both_sessions(larder)
    expect_lists(larder)
    push_all(larder, items=2, first=ITEMS)
    with larder.connect() as c:
        assert c("SAVE") == b"OK"
    ends_well(larder)
    larder.start()
    expect_lists(larder, items=ITEMS + 2)
    ends_well(larder)


def position(data):
    """How far the database is, by the number of the last change set that it has."""
    seqs = f"SELECT coalesce(max(seq), 0) FROM larder_journal UNION SELECT {data.number} FROM larder_meta WHERE name = 'applied'"
    return max(int(v) for (v,) in data.server.query(seqs, data.name))


@POSTGRES
def test_small_writes_that_nobody_waited_for(own, mine, fleet):
    """They go straight into the tables, and memory has nothing of them any more but what is kept for this."""
    larder = fleet.larder("--durability", "everysec", data=mine)
    with larder.connect() as c:
        c("SAVE")
        before = position(mine)
        for i in range(3):
            c("RPUSH", "jobs", i)
            c("SET", "n", i)
        wait.until(lambda: position(mine) >= before + 6 and pending(mine) == 0, "they are in the tables")
    crash(own)
    wait_for_both_sessions(larder)
    with larder.connect() as c:
        c("RPUSH", "jobs", 3)
        assert c("LRANGE", "jobs", 0, -1) == [b"0", b"1", b"2", b"3"] and c("GET", "n") == b"2"
        assert c("SAVE") == b"OK"
    ends_well(larder)
    larder.start()
    with larder.connect() as c:
        assert c("LRANGE", "jobs", 0, -1) == [b"0", b"1", b"2", b"3"] and c("GET", "n") == b"2"


@POSTGRES
def test_expired_keys_that_come_back(own, mine, fleet):
    """The sweeper's commits are not waited for. What counted on them still fits."""
    larder = fleet.larder(data=mine)
    with larder.connect() as c:
        c("RPUSH", "jobs", *range(5))
        c("PEXPIRE", "jobs", 1000)
        c("SET", "stays", 1)
        c("SAVE")
        c("DEBUG", "CLOCK", "+5000")
        wait.until(lambda: mine.server.query("SELECT count(*) FROM larder_list", mine.name) == [["0"]], "it is swept")
    crash(own)
    wait_for_both_sessions(larder)
    with larder.connect() as c:
        assert c("EXISTS", "jobs") == 0
        c("RPUSH", "jobs", "new")
        assert c("DBSIZE") == 3  # with the probe
    ends_well(larder)


# --- a database that has lost more than that


class Earlier:
    """A copy of what a database server has on disk: a standby that lacks what comes later."""

    def __init__(self, own):
        self.own = own
        self.folder = own.folder / "earlier"
        own.lose_log()
        own.run("cp", "-a", str(own.home), str(self.folder))
        own.start()
        own.keep_log()

    def take_over(self):
        self.own.lose_log()
        self.own.run("rm", "-r", str(self.own.home))
        self.own.run("mv", str(self.folder), str(self.own.home))
        self.own.start()


def test_a_standby_that_lacks_what_memory_still_has(own, mine, fleet):
    larder = fleet.larder(data=mine)
    write_all(larder, "old")
    with larder.connect() as c:
        assert c("SAVE") == b"OK"
    earlier = Earlier(own)
    wait.until(lambda: reads(larder), "it reads again")
    with tables_stand_still(mine):
        for value in "one", "two":
            write_all(larder, value)
        assert pending(mine) > 0
        earlier.take_over()
    wait_for_both_sessions(larder)
    has_all(larder, "two")
    assert "the database had lost commits" in larder.log_text()
    with larder.connect() as c:
        assert c("SAVE") == b"OK"
    ends_well(larder)
    larder.start()
    has_all(larder, "two")


def expect_the_end(larder):
    """It does not go on with a database that lacks what it had acknowledged."""
    wait.until(lambda: not larder.alive, "the server ends")
    log = larder.log_text()
    assert "level=error" in log and "status=lost" in log and "the database has gone back to change set" in log, log
    larder.kill()


def test_a_standby_that_lacks_what_memory_has_no_more(own, mine, fleet):
    larder = fleet.larder(data=mine)
    write_all(larder, "old")
    with larder.connect() as c:
        assert c("SAVE") == b"OK"
    earlier = Earlier(own)
    wait.until(lambda: reads(larder), "it reads again")
    write_all(larder, "new")
    with larder.connect() as c:
        assert c("SAVE") == b"OK"
        earlier.take_over()
        with contextlib.suppress(Closed):
            reply = c.call("GET", "key1")  # memory may answer until it is known; never the tables as they are now
            assert reply.is_error or reply.value == b"key1 new", reply
    expect_the_end(larder)
    larder.start()
    has_all(larder, "old")
    ends_well(larder)


def test_a_database_that_says_durable_and_is_not(fleet):
    """innodb_flush_log_at_trx_commit=0: MariaDB's own settings make a commit what a crash takes back."""
    with databases.MariaDB(durable=True, settings={"innodb-flush-log-at-timeout": 2700}) as own:
        mine = store.KINDS["mariadb"](on=own, mode="exclusive")
        larder = fleet.larder(data=mine)
        own.query("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
        with larder.connect() as c:
            for i in range(20):
                assert c("INCR", "n") == i + 1
        crash(own)
        expect_the_end(larder)
        larder.start()
        ends_well(larder)


# --- servers that share the tables


@POSTGRES
def test_ids_are_nobody_elses(own, fleet):
    """A block of ids that was taken by a commit that is gone is not used any more."""
    data = store.KINDS[own.kind](on=own)
    one = fleet.larder("--durability", "everysec", "--workers", "1", data=data)
    with one.connect() as c:
        c("SADD", "first", "a")
    crash(own)
    wait.until(lambda: serves(one), "it serves again by itself")
    other = fleet.larder("--workers", "1", data=data)
    for n, server in enumerate([one, other] * 2):
        with server.connect() as c:
            c("SADD", f"set{n}", f"member{n}")
    with one.connect() as c:
        assert [c("SMEMBERS", f"set{n}") for n in range(4)] == [[f"member{n}".encode()] for n in range(4)]
    one.stop()
    other.stop()
    one.check()
