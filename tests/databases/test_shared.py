"""Several Larders on one database behave as one store."""

import random
import re
import time

import pytest

from harness import servers, wait
from harness.databases import QueryError
from harness.processes import family, go_on, stop
from harness.resp import encode

from .test_sql import sql_set

SERVERS = 3


@pytest.fixture
def several(fleet, data):
    return [fleet.larder(data=data) for _ in range(SERVERS)]


def test_databases_change_places_while_another_server_sweeps(fleet, data):
    """What a server's own transactions have read of the databases' places is not what its clients' reads go by."""
    a, b = (fleet.larder("--workers", "1", "--sweep-interval", "10ms", data=data) for _ in range(2))
    with a.connect() as writer, b.connect() as reader:
        writer("SET", "k", "0")
        writer("SELECT", 1)
        writer("SET", "k", "1")
        writer("SELECT", 7)
        for i in range(10):  # either of the two sweeps
            writer("SET", "trash", i)
            writer("FLUSHDB")
            assert reader("GET", "k") == str(i % 2).encode()
            writer("SWAPDB", 0, 1)
            wait.until(lambda: data.query("SELECT count(*) FROM larder_key") == [["2"]], "what was flushed is swept")
            assert reader("GET", "k") == reader("GET", "k") == str(1 - i % 2).encode()


def test_a_database_that_was_flushed_to_its_last_key_is_whole(fleet, data):
    """What was counted of it is no reason to miss keys when a server starts."""
    a, b = (fleet.larder("--sweep-interval", "20ms", data=data) for _ in range(2))
    with a.connect() as one, b.connect() as other:
        for i in range(3):
            one("SET", f"k{i}", 1)
            other("SET", f"l{i}", 1)
            one("FLUSHDB")
    left = "SELECT (SELECT count(*) FROM larder_trash) + (SELECT count(*) FROM larder_key)"
    wait.until(lambda: data.query(left) == [["0"]], "what was flushed is swept")
    assert data.query("SELECT count(*) FROM larder_count WHERE number <> -1") == [["0"]], "and what was counted of it"
    a.stop()
    b.stop()
    assert servers.run(["check", "--store", data.url]).returncode == 0
    fleet.larder(data=data)


def test_what_one_writes_the_others_read(several):
    a, b, c = (s.connect() for s in several)
    a("SET", "k", "1")
    assert b("INCR", "k") == 2 and c("GET", "k") == b"2"
    b("RPUSH", "l", "x", "y")
    assert c("LPOP", "l") == b"x" and a("LRANGE", "l", 0, -1) == [b"y"]
    c("SELECT", 3)
    c("SET", "other", "v")
    a("SWAPDB", 0, 3)
    assert b("GET", "other") == b"v" and b("DBSIZE") == 1 and c("DBSIZE") == 2
    b("FLUSHALL")
    assert [x("DBSIZE") for x in (a, b, c)] == [0, 0, 0]
    a("HSET", "h", *[w for i in range(3000) for w in (f"f{i}", i)])
    assert b("HLEN", "h") == 3000 and b("HGET", "h", "f2999") == b"2999"
    b("HDEL", "h", "f0")
    assert c("HEXISTS", "h", "f0") == 0 and len(a("HGETALL", "h")) == 2 * 2999
    for x in (a, b, c):
        x.close()


def round_trips(server, c, commands, counter=None):
    """How many round trips to the database a batch of commands takes."""

    def count():
        return int(re.search(rb"round_trips:(\d+)", (counter or c)("INFO", "larder"))[1])

    first = count()
    own = count() - first
    c.pipeline(commands)
    return count() - first - 2 * own


def test_round_trips(fleet, data):
    server = fleet.larder("--sweep", "no", data=data)
    with server.connect() as c:
        c("MSET", *[w for i in range(500) for w in (f"k{i}", "v")])  # numbers for new rows are there then
        c("HSET", "h", "f", "v")
        read = [("GET", f"k{i}") for i in range(300)]
        write = [("SET", f"k{i}", "w") for i in range(300)]
        fresh = [("SET", f"n{i}", "w") for i in range(300)]
        for what, most in ((read[:1], 1), (read, 1), (write[:1], 2), (write, 2), (fresh, 2), (read + write, 2)):
            assert min(round_trips(server, c, what) for _ in range(3)) == most, what[0]
        assert min(round_trips(server, c, [("INCR", "n"), ("DEL", "n")]) for _ in range(3)) == 2
        with server.connect() as counter:
            found = []
            for _ in range(3):
                for command in (("MULTI",), ("INCR", "a"), ("SELECT", 1), ("INCR", "b"), ("SELECT", 0)):
                    c(*command)
                found.append(round_trips(server, c, [("EXEC",)], counter))
            assert min(found) == 2


COLLECTIONS = {"hash": ("HSET", "HGET"), "set": ("SADD", "SISMEMBER"), "zset": ("ZADD", "ZSCORE")}


def adding(command, key, name, value):
    between = {"HSET": (name, value), "SADD": (name,), "ZADD": (len(value), name)}
    return (command, key, *between[command])


def test_round_trips_of_collections(fleet, data):
    """What the commands of a batch ask for of collections comes together: small ones as wholes, items of large ones."""
    server = fleet.larder("--sweep", "no", "--workers", "1", data=data)
    with server.connect() as c:
        for kind, (put, get) in COLLECTIONS.items():
            for i in range(0, 2000, 500):
                c.pipeline([adding(put, f"large {kind}", f"n{n}", "v") for n in range(i, i + 500)])
            c.pipeline([adding(put, f"{kind}{i}", "n", "v") for i in range(300)])
            small = [adding(put, f"{kind}{i}", "n", "w") for i in range(300)]
            large = [adding(put, f"large {kind}", f"n{i}", "w") for i in range(1500, 2300)]
            reads = [(get, f"{kind}{i}", "n") for i in range(300)]
            items = [(get, f"large {kind}", f"n{i}") for i in range(0, 2000, 3)]
            for what, most in ((small, 5), (reads, 3), (large, 6), (items, 3)):
                assert min(round_trips(server, c, what) for _ in range(8)) <= most, what[0]
        c.pipeline([("RPUSH", f"list{i}", i) for i in range(300)])
        assert min(round_trips(server, c, [("LRANGE", f"list{i}", 0, -1) for i in range(300)]) for _ in range(8)) <= 3
        assert [r.plain() for r in c.pipeline([("LPOP", f"list{i}") for i in range(300)])] == [b"%d" % i for i in range(300)]


def test_batches_over_collections(fleet, data, oracle):
    """One batch that changes, empties, renames and reads what it has read ahead: values of any size, wrong types, keys that are gone."""
    server = fleet.larder("--sweep", "no", "--workers", "1", data=data)
    rnd = random.Random(7)
    names = [f"n{i}" for i in range(40)]
    keys = [f"{kind}{i}" for kind in COLLECTIONS for i in range(12)]

    def some():
        key, other, name = rnd.choice(keys), rnd.choice(keys), rnd.choice(names)
        value = rnd.choice("abc") * rnd.choice((1, 10, 5000, 70000))
        kind = key.rstrip("0123456789")
        put, get = COLLECTIONS[rnd.choice([kind] * 9 + ["set"])]
        remove = {"hash": "HDEL", "set": "SREM", "zset": "ZREM"}[kind]
        size = {"hash": "HLEN", "set": "SCARD", "zset": "ZCARD"}[kind]
        return rnd.choice([adding(put, key, name, value)] * 6 + [(get, key, name)] * 6 + [(remove, key, name)] * 3
                          + [(size, key), ("DEL", key), ("RENAME", key, other), ("COPY", key, other, "REPLACE"), ("SET", key, "v"),
                             ("HSET", "large", name, value), ("HGET", "large", name), ("HDEL", "large", name)])  # fmt: skip

    with server.connect() as c, oracle.connect() as redis:
        redis("FLUSHALL")
        filling = ("HSET", "large", *[w for i in range(1500) for w in (f"f{i}", "v")])
        assert c(*filling) == redis(*filling)
        for _ in range(60):
            batch = [some() for _ in range(rnd.choice((2, 30, 200)))]
            if rnd.random() < 0.3:
                batch = [("MULTI",), *batch, ("EXEC",)]
            assert [r.plain() for r in c.pipeline(batch)] == [r.plain() for r in redis.pipeline(batch)]
    server.stop()
    assert servers.run(["check", "--store", data.url]).returncode == 0


def test_round_trips_of_sort(fleet, data):
    """Keys that turn up with the elements come together, and are locked together: BY, GET and the rest, not 600."""
    server = fleet.larder("--sweep", "no", data=data)
    with server.connect() as c:
        c("RPUSH", "l", *range(300))
        c("MSET", *[w for i in range(300) for w in (f"w{i}", 300 - i, f"v{i}", f"value {i}")])
        by = ("SORT", "l", "BY", "w*", "GET", "v*", "GET", "none*", "GET", "#")
        assert c(*by, "LIMIT", 0, 2) == [b"value 299", None, b"299", b"value 298", None, b"298"]
        assert min(round_trips(server, c, [by]) for _ in range(3)) <= 6
        assert min(round_trips(server, c, [(*by, "STORE", "sorted")]) for _ in range(3)) <= 8
        assert c("LRANGE", "sorted", -3, -1) == [b"value 0", b"", b"0"]


def test_application_writes_are_seen_at_once(several, data):
    with several[0].connect() as a, several[1].connect() as b:
        a("SET", "k", "old")
        data.query(sql_set(data, b"k", b"new"))
        assert b("GET", "k") == b"new" and a("GET", "k") == b"new"
        data.query(sql_set(data, b"fresh", b"made"))
        assert a("APPEND", "fresh", "!") == 5
        data.query("UPDATE larder_key SET value = 'by hand', version = version + 1 WHERE type = 1")
        assert a("GET", "k") == b"by hand" and b("GET", "fresh") == b"by hand"
        assert a("DBSIZE") == 2


def test_exclusive_and_shared_exclude_each_other(fleet, several, data):
    alone = fleet.new(servers.Larder, "--busy-timeout", "100ms", data=data)
    mode = ("&" if "?" in data.url else "?") + "mode=exclusive"
    data.url += mode
    with pytest.raises(servers.StartError) as failed:
        alone.start()
    assert "in use by another server" in failed.value.log
    alone.process = None
    for server in several:
        server.stop()
    alone.start()
    data.url = data.url.removesuffix(mode)
    second = fleet.new(servers.Larder, "--busy-timeout", "100ms", data=data)
    with pytest.raises(servers.StartError) as failed:
        second.start()
    second.process = None
    assert "in use by another server" in failed.value.log
    with pytest.raises(QueryError, match="for itself alone"):
        data.query(sql_set(data, b"k", b"v"))


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_a_session_whose_lock_another_server_has(fleet, data):
    """Numbers of connections grow, those of locks that servers hold begin again: here all of those that come next are taken."""
    fleet.larder(data=data).stop()
    name = "CONCAT('larder shared ', SUBSTR(SHA2(CONCAT(DATABASE(), '.larder_meta'), 256), 1, 40), (CONNECTION_ID() + seq) % 4096)"
    with data.session() as session:
        assert set(session(f"SELECT GET_LOCK({name}, 0) FROM seq_1_to_100")) == {"1"}
        with fleet.larder(data=data).connect() as c:
            assert c("SET", "k", "v") == b"OK"


def test_blocked_clients_wake_on_pushes_through_another_server(several):
    with several[0].connect() as waits, several[1].connect() as pushes:
        for i in range(5):
            waits.send(b"*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$2\r\n30\r\n")
            time.sleep(0.02)
            pushes("RPUSH", "q", i)
            assert waits.read().plain() == [b"q", b"%d" % i]
        assert pushes("EXISTS", "q") == 0


def expired(server):
    with server.connect() as c:
        return int(re.search(rb"expired_keys:(\d+)", c("INFO", "stats"))[1])


def test_one_server_at_a_time_sweeps(fleet, data):
    """Each dead row is removed and counted once, and when the server that did it is killed another goes on."""
    several = [fleet.larder("--sweep-interval", "20ms", data=data) for _ in range(SERVERS)]
    counted = [0] * SERVERS
    for left in (SERVERS, SERVERS - 1, 1):
        live = [s for s in several if s.alive]
        assert len(live) == left
        with live[0].connect() as c:
            c.pipeline([("SET", f"k{i}", "v", "PX", 1) for i in range(300)] + [("SET", "stays", "v")])
            wait.until(lambda: data.query("SELECT count(*) FROM larder_key") == [["1"]], "dead rows are removed", 30)
            assert c("DBSIZE") == 1
        now = [expired(s) if s.alive else 0 for s in several]
        swept = [n - before for n, before in zip(now, counted)]
        assert sum(max(0, n) for n in swept) == 300
        worked = max(range(SERVERS), key=lambda i: swept[i])
        if left > 1:
            several[worked].kill()
        counted = [n if s.alive else 0 for n, s in zip(now, several)]
    assert data.query("SELECT sum(n) FROM (SELECT count(*) AS n FROM larder_trash) AS t") == [["0"]]


def test_the_database_may_go_and_come_back(own, on_own, fleet):
    """While it is away commands fail soon and PING answers; afterwards service goes on by itself, nothing
    acknowledged is lost, and a commit whose answer was lost is said to be unknown."""
    larder = fleet.larder("--sweep-interval", "20ms", "--workers", "1", data=on_own)
    with larder.connect() as c:
        for i in range(20):
            c("INCR", "n")
        for end in (own.stop, own.kill):
            c("SET", "dies", "meanwhile", "PX", 500)  # so that the sweeper has to do when the database comes back
            end()
            assert c("PING") == b"PONG"
            # A session may outlive the server that was killed by a moment.
            wait.until(lambda: c.call("GET", "n").is_error, "the database is away")
            start = time.monotonic()
            assert c.call("GET", "n").is_error and c.call("INCR", "n").is_error
            assert time.monotonic() - start < 15
            with larder.connect() as leaves:
                assert leaves.call("SET", "k" * 70_000, "v").is_error
            own.start()
            rows = "SELECT count(*) FROM larder_key"
            wait.until(lambda: on_own.query(rows) == [["1"]], "the sweeper works before anybody asks for something", 30)
            wait.until(lambda: not c.call("GET", "n").is_error, "it serves again", 30)
            assert int(c("GET", "n")) == 20
        c("INCR", "n")
        assert c("GET", "n") == b"21"


def test_a_stopped_database_does_not_stop_the_server(own, on_own, fleet):
    larder = fleet.larder("--store-timeout", "1s", data=on_own)
    with larder.connect() as c, larder.connect() as other:
        c("SET", "k", "v")
        pids = family(own.process.pid)
        stop(pids)
        try:
            assert c.call("SET", "k", "w").is_error
            assert other("PING") == b"PONG"
        finally:
            go_on(pids)
        wait.until(lambda: not c.call("GET", "k").is_error, "it serves again", 30)
        assert c("GET", "k") in (b"v", b"w")


def test_a_watched_key_that_comes_and_goes_through_another_server(fleet, data):
    """It was not there and is not there, and has been in between."""
    several = [fleet.larder("--sweep", "no", data=data) for _ in range(2)]
    with several[0].connect() as a, several[1].connect() as b:
        for key in ("never", "deleted"):
            a("SET", "deleted", "v")
            a("DEL", "deleted")
            a("WATCH", key)
            b("EXISTS", key)
            b("DEL", key)
            assert a.pipeline([("MULTI",), ("PING",), ("EXEC",)])[2].plain() == [b"PONG"]
            a("WATCH", key)
            b("RPUSH", key, "x")
            b("LPOP", key)
            assert a.pipeline([("MULTI",), ("PING",), ("EXEC",)])[2].plain() is None
            assert a("EXISTS", key) == 0


def test_a_server_starts_where_the_last_key_has_expired(fleet, data):
    """One server counted it, another took it off: neither count alone says how many there are."""
    larder = fleet.larder("--sweep-interval", "10ms", data=data)
    with larder.connect() as c:
        c("SET", "k", "v", "PX", 1)
        wait.until(lambda: data.query("SELECT count(*) FROM larder_key") == [["0"]], "it is swept")
    larder.stop()
    larder.check()
    larder.start()


def test_each_member_is_popped_once(fleet, data):
    """Two servers take from both ends of one queue that is too large for memory, and add to it: what one has read ahead of
    the ends is nothing to the other."""
    members = 1500
    a, b = (fleet.larder(data=data) for _ in range(2))
    with a.connect() as one, b.connect() as other:
        one("ZADD", "q", *[w for i in range(members) for w in (i, b"m%d" % i)])
        popped, came = [], members
        takes = [[b"ZPOPMIN", b"q", b"20"], [b"ZPOPMAX", b"q", b"20"], [b"ZPOPMIN", b"q"]]
        while one("EXISTS", "q"):
            adds = came < members + 10
            for c in (one, other):  # both at the same time
                c.send(b"".join(encode(command) for command in takes))
                if adds:
                    c.send(encode([b"ZADD", b"q", b"%d" % -came, b"m%d" % came]))
                    came += 1
            for c in (one, other):
                popped += [member for _ in takes for member in c.read().plain()[::2]]
                assert not adds or c.read().plain() == 1
        assert sorted(popped) == sorted(b"m%d" % i for i in range(came)), "none twice, none lost"
