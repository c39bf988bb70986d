"""Reads that allow some age are served from memory, and keep what their mode promises.

What a row says after another server has changed it tells where it came from: memory has the old value, the tables have the
new one.
"""

import itertools
import os
import re
import time

import pytest

from harness import store, wait

from .recent_load import RecentLoad

LONG = int(os.environ.get("LARDER_LONG", "0"))
DAY = 86400000


NUMBERS = itertools.count()
SPARE = 15


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def servers(request, shared_fleet):
    """A server that reads, and another one on the same tables."""
    data = store.KINDS[request.param]()
    both = shared_fleet.larder("--workers", "1", data=data), shared_fleet.larder(data=data)
    yield both
    for server in both:
        server.stop()


@pytest.fixture
def pair(servers):
    """A connection to the server that reads, whose reads may be a day old, and one to the other. Nothing that a test before
    has read is of use: each has a database of its own."""
    with servers[0].connect() as reads, servers[1].connect() as writes:
        reads.number = next(NUMBERS) % SPARE
        for c in (reads, writes):
            c("SELECT", reads.number)
        reads("LARDER.CONSISTENCY", "BOUNDED", DAY)
        yield reads, writes


def served(server, mode):
    """How many reads of a mode came from where."""
    with server.connect() as c:
        text = re.search(rf"^larder_reads_{mode}:(.*)\r$", c("INFO", "replication").decode(), re.MULTILINE)[1]
    return {place: int(n) for place, n in (pair.split("=") for pair in text.split(","))}


def strongly(c, *words):
    return c("LARDER.READ", "STRONG", *words)


def test_scripts_read_from_the_tables(pair):
    """What they will ask for is not known: of two keys that were written together memory might have one."""
    reads, writes = pair
    writes("MSET", "a", 1, "b", 1)
    assert reads("GET", "a") == b"1"
    writes("MSET", "a", 2, "b", 2)
    assert reads("GET", "a") == b"1"
    script = "return {redis.call('GET', KEYS[1]), redis.call('GET', 'b')}"
    assert reads("EVAL_RO", script, 1, "a") == [b"2", b"2"]
    assert reads("LARDER.READ", "BOUNDED", DAY, "EVAL_RO", script, 1, "a") == [b"2", b"2"]


def test_a_row_is_read_once_within_the_bound(pair):
    reads, writes = pair
    writes("SET", "k", "old")
    assert reads("GET", "k") == b"old"
    writes("SET", "k", "new")
    assert reads("GET", "k") == b"old"
    assert strongly(reads, "GET", "k") == b"new"
    assert reads("GET", "k") == b"old"  # what a strong read finds is not kept
    wait.until(lambda: reads("LARDER.READ", "BOUNDED", 50, "GET", "k") == b"new", "a read that is 50 ms old at most")
    assert reads("GET", "k") == b"new"
    assert reads("STRLEN", "k") == 3 and reads("TYPE", "k") == b"string" and reads("TTL", "k") == -1


def test_absence_is_remembered(pair):
    reads, writes = pair
    assert reads("GET", "k") is None
    writes("SET", "k", "v")
    assert reads("GET", "k") is None and reads("EXISTS", "k") == 0
    assert strongly(reads, "EXISTS", "k") == 1


@pytest.mark.parametrize("mode", [("EVENTUAL",), ("BOUNDED", DAY)])
def test_modes_and_connections_share_what_was_read(pair, mode):
    reads, writes = pair
    writes("SET", "k", "old")
    assert reads("LARDER.READ", *mode, "GET", "k") == b"old"
    writes("SET", "k", "new")
    assert reads("GET", "k") == b"old"
    assert reads("LARDER.READ", "EVENTUAL", "GET", "k") == b"old"


def test_strong_reads_transactions_and_writes_never_use_it(pair):
    reads, writes = pair
    writes("SET", "n", "1")
    assert reads("GET", "n") == b"1"
    writes("SET", "n", "5")
    assert reads("GET", "n") == b"1"
    assert [r.plain() for r in reads.pipeline([("MULTI",), ("GET", "n"), ("EXEC",)])][2] == [b"5"]
    assert reads("INCR", "n") == 6
    assert reads("GETSET", "n", "7") == b"6"


def test_a_session_reads_its_own_writes(fleet, data):
    server = fleet.larder("--workers", "1", data=data)
    with server.connect() as c, server.connect() as other:
        for connection in (c, other):
            connection("LARDER.CONSISTENCY", "SESSION")
        for i in range(50):
            assert c("SET", "k", i) == b"OK"
            assert c("GET", "k") == b"%d" % i
            other("GET", "k")  # whoever reads it
            assert c("GET", "k") == b"%d" % i
            token = c("LARDER.TOKEN")
            other("LARDER.TOKEN", token)
            assert other("GET", "k") == b"%d" % i


def test_collections_are_whole(pair):
    reads, writes = pair
    writes("HSET", "h", "a", 1, "b", 1)
    assert reads("HGETALL", "h") == [b"a", b"1", b"b", b"1"]
    writes("HSET", "h", "a", 2, "b", 2, "c", 2)
    assert reads("HGET", "h", "a") == b"1" and reads("HLEN", "h") == 2 and reads("HEXISTS", "h", "c") == 0
    writes("RENAME", "h", "g")
    assert reads("HLEN", "g") == 3 and reads("HGET", "g", "b") == b"2"
    assert reads("HGETALL", "h") == [b"a", b"1", b"b", b"1"]  # not the items that its id has now
    writes("DEL", "g")
    writes("ZADD", "g", 1, "x")
    assert reads("HLEN", "g") == 3
    assert reads("LARDER.READ", "STRONG", "TYPE", "g") == b"zset"
    assert wait.until(lambda: reads("LARDER.READ", "BOUNDED", 20, "TYPE", "g") == b"zset", "another type")


def test_several_keys_are_of_one_moment(pair):
    reads, writes = pair
    writes("MSET", "a", 1, "b", 1)
    assert reads("MGET", "a", "b") == [b"1", b"1"]
    writes("MSET", "a", 2, "b", 2)
    assert reads("MGET", "a", "b") == [b"1", b"1"]
    wait.until(lambda: reads("LARDER.READ", "BOUNDED", 20, "GET", "a") == b"2", "a newer row")
    assert reads("GET", "b") == b"1"
    assert reads("MGET", "a", "b") == [b"2", b"2"]


def test_what_is_not_by_key_is_never_from_memory(pair):
    reads, writes = pair
    writes("SET", "a", 1)
    assert reads("GET", "a") == b"1" and reads("DBSIZE") == 1
    writes("SET", "b", 1)
    assert reads("DBSIZE") == 2 and sorted(reads("KEYS", "*")) == [b"a", b"b"]
    assert sorted(reads("SCAN", 0)[1]) == [b"a", b"b"]
    writes("RPUSH", "l", "a", "b")
    assert reads("LLEN", "l") == 2 and reads("GET", "a") == b"1"
    writes("MSET", "w_a", 2, "w_b", 1)
    assert reads("SORT_RO", "l", "BY", "w_*") == [b"b", b"a"]
    writes("MSET", "w_a", 1, "w_b", 2)
    assert reads("SORT_RO", "l", "BY", "w_*") == [b"a", b"b"]


def test_large_values_are_not_kept(pair):
    reads, writes = pair
    writes("SET", "long", "x" * 100000)
    writes("HSET", "wide", *(word for i in range(3000) for word in (i, "old")))
    assert reads("STRLEN", "long") == 100000 and reads("HGET", "wide", 7) == b"old"
    writes("SET", "long", "y" * 100001)
    writes("HSET", "wide", 7, "new")
    assert reads("STRLEN", "long") == 100001 and reads("HGET", "wide", 7) == b"new"


def test_an_expired_key_is_never_served(pair):
    reads, writes = pair
    writes("SET", "k", "v", "PX", 150)
    writes("HSET", "h", "f", 1, "g", 1)
    writes("HPEXPIRE", "h", 150, "FIELDS", 1, "f")
    assert reads("GET", "k") == b"v" and reads("HLEN", "h") == 2
    writes("PERSIST", "k")
    assert reads("PTTL", "k") > 0
    wait.until(lambda: strongly(reads, "HLEN", "h") == 1, "the field to expire")
    assert reads("HGETALL", "h") == [b"g", b"1"]
    assert wait.until(lambda: reads("PTTL", "k") == -1, "the old row's time to come")


def test_databases_that_are_flushed_and_exchanged(pair):
    reads, writes = pair
    writes("SET", "k", "zero")
    assert reads("GET", "k") == b"zero"
    writes("FLUSHDB")
    assert reads("GET", "k") == b"zero" and strongly(reads, "GET", "k") is None
    assert wait.until(lambda: reads("LARDER.READ", "BOUNDED", 20, "EXISTS", "k") == 0, "the flush to be seen")
    writes("SELECT", SPARE)
    writes("SET", "k", "one")
    writes("SWAPDB", reads.number, SPARE)
    assert reads("GET", "k") is None
    assert wait.until(lambda: reads("LARDER.READ", "BOUNDED", 20, "GET", "k") == b"one", "the exchange to be seen")


def test_a_database_that_is_selected_in_the_same_pipeline(pair):
    """What is fresh enough in the database before is no reason to believe what the other one has in memory."""
    reads, writes = pair
    bounded = ("LARDER.READ", "BOUNDED", 100, "GET", "k")
    writes("SET", "k", "here")
    reads("SELECT", SPARE)
    before = reads("GET", "k")
    late = time.monotonic() + 0.1
    writes("SELECT", SPARE)
    writes("SET", "k", f"not {before}")
    reads("SELECT", reads.number)
    wait.until(lambda: time.monotonic() > late, "the row to be too old")
    assert reads(*bounded) == b"here"
    assert reads.pipeline([("SELECT", SPARE), bounded])[1].plain() == f"not {before}".encode()


def test_ages_hold_under_a_load_that_changes_everything(fleet, data):
    """A cache so small that rows and collections are evicted all the time."""
    reader = fleet.larder("--workers", "1", "--cache-memory", "256kb", data=data)
    writers = [fleet.larder(data=data), fleet.larder(data=data)]
    modes = [("bounded", 20), ("bounded", 150), ("bounded", 1000), ("eventual", 0), ("session", 0), ("strong", 0)]
    load = RecentLoad(reader, writers, modes, seed=LONG)
    load.run(60 if LONG else 3)
    assert load.check() > 100
    assert served(reader, "bounded")["memory"] > 0 and served(reader, "eventual")["memory"] > 0
    with reader.connect() as c:
        assert int(re.search(r"^cache_evicted:(\d+)\r$", c("INFO", "larder").decode(), re.MULTILINE)[1]) > 0
    assert served(reader, "strong")["memory"] == 0 and served(reader, "session")["memory"] == 0
