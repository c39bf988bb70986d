"""Tables over hashes on a database that two servers share: whoever writes, entries are what the hashes are; and a
table that one server makes, alters or removes is known to the other before its next write is committed."""

import random
import threading
import time

import pytest

from harness import servers, wait
from harness.resp import ServerError, encode

TABLE = "id TEXT, age INTEGER, INDEX by_age (age)"
WRITES = 60


def create(client, name="users", prefix="u:"):
    client("TABLE.CREATE", name, TABLE, "ON", "HASH", "PREFIX", prefix)


@pytest.fixture
def two(fleet, data):
    return [fleet.larder("--workers", "2", data=data) for _ in range(2)]


def compare(client, table="users", prefix=b"u:"):
    """The index has the hashes, and nothing else."""
    found = [(r[b"age"], r[b"id"]) for r in client("ROW.QUERY", table, "INDEX", "by_age", "LIMIT", 10000)[0]]
    keys = [k for k in client("KEYS", prefix + b"*") if client("TYPE", k) == b"hash"]
    want = [(int(client("HGET", k, "age") or -1), k[len(prefix) :]) for k in keys]
    assert [(-1 if age is None else age, key) for age, key in found] == sorted(want)
    return len(found)


def entries(data):
    return int(data.query("SELECT count(*) FROM larder_entry")[0][0])


def test_what_one_server_makes_the_other_maintains(two):
    with two[0].connect() as a, two[1].connect() as b:
        a("HELLO", 3)
        b("HELLO", 3)
        b("HSET", "u:0", "age", 7)
        create(a)
        b("HSET", "u:1", "age", 3)
        a("HSET", "u:2", "age", 2)
        assert compare(a) == 3 and compare(b) == 3
        b("RENAME", "users", "people")
        a("HSET", "u:3", "age", 1)
        a("DEL", "u:1")
        b("RENAME", "u:2", "v:2")
        assert compare(b, "people") == 2
        a("DEL", "people")
        b("HSET", "u:4", "age", 1)
        with pytest.raises(ServerError, match="NOTABLE"):
            b("ROW.QUERY", "people")


def test_a_table_waits_for_who_writes_already(two):
    """A transaction that began before there was a table does not know of it: its hash must be there when the table
    is made, or it must not have been written yet."""
    long = "redis.call('HSET', KEYS[1], 'x', 1) for i = 1, 5e7 do end return redis.call('HSET', KEYS[1], 'age', 5)"
    with two[0].connect() as a, two[1].connect() as b:
        a("HELLO", 3)
        b.send(encode(["EVAL", long, 1, "u:1"]))
        time.sleep(0.1)  # if the script has not begun by then, this shows nothing
        create(a)
        assert b.read().plain() == 1
        assert compare(a) == 1


def write(server, seed, failures):
    """Random writes to a few hashes that the other server writes as well."""
    r = random.Random(seed)
    try:
        with server.connect() as c:
            for _ in range(WRITES):
                key = f"u:{r.randrange(8)}"
                what = r.randrange(8)
                if what < 4:
                    c("HSET", key, "age", r.randrange(100), "x", 1)
                elif what == 4:
                    c("HDEL", key, "age")
                elif what == 5:
                    c("DEL", key)
                elif what == 6:
                    c.call("RENAME", key, f"u:{r.randrange(8)}")
                else:
                    c("PEXPIRE", key, r.choice([1, 100000]))
    except Exception as e:  # pylint: disable=broad-except
        failures.append(e)


def test_writers_race_with_the_table_itself(two, data):
    """Tables come and go while both servers write: no entry is missing, and none is left over."""
    failures = []
    writers = [threading.Thread(target=write, args=(two[i % 2], i, failures)) for i in range(4)]
    with two[0].connect() as a:
        a("HELLO", 3)
        create(a, "everything", "")
        for t in writers:
            t.start()
        made = 0
        while any(t.is_alive() for t in writers):
            create(a)
            a("RENAME", "users", "people")
            a("DEL", "people")
            made += 1
        create(a)
        for t in writers:
            t.join()
        assert not failures and made > 1
        n = compare(a)
        compare(a, "everything", b"")
    for s in two:
        s.stop()
    done = servers.run(["check", "--store", data.url])
    assert done.returncode == 0, done.stdout + done.stderr
    assert n <= 8


def test_expired_hashes_leave_no_entries(fleet, data):
    """They are removed through the engine, whichever server sweeps; and so is a table that has expired."""
    two = [fleet.larder("--sweep-interval", "10ms", data=data) for _ in range(2)]
    with two[0].connect() as a, two[1].connect() as b:
        create(a)
        for i in range(30):
            b("HSET", f"u:{i}", "age", i, "x", 1)
            b("PEXPIRE", f"u:{i}", 30 if i % 2 else 10**9)
        b("HPEXPIRE", "u:0", 30, "FIELDS", 1, "age")
        wait.until(lambda: entries(data) == 15, "the entries of expired hashes are gone")
        assert a("ROW.QUERY", "users", "INDEX", "by_age", "LIMIT", 1)[0][0][1] == b"0"
        a("PEXPIRE", "users", 1)
        wait.until(lambda: entries(data) == 0, "those of an expired table are")
        b("HSET", "u:1", "age", 1)
        assert entries(data) == 0


def test_a_page_by_an_index_is_one_state(two):
    """Rows move in the index while a transaction that writes as well reads it: each is found, and found once."""
    hashes, over, failures = 40, threading.Event(), []

    def move(seed):
        r = random.Random(seed)
        try:
            with two[1].connect() as c:
                while not over.is_set():
                    a, b = r.sample(range(hashes), 2)
                    c.pipeline([("MULTI",), ("HINCRBY", f"u:{a}", "age", -7), ("HINCRBY", f"u:{b}", "age", 7), ("EXEC",)])
        except Exception as e:  # pylint: disable=broad-except
            failures.append(e)

    with two[0].connect() as a:
        a("HELLO", 3)
        create(a)
        for i in range(hashes):
            a("HSET", f"u:{i}", "age", 100)
        movers = [threading.Thread(target=move, args=(i,)) for i in range(2)]
        for t in movers:
            t.start()
        try:
            for _ in range(60):
                _, page, told = a.pipeline([("INCR", "n"), ("ROW.QUERY", "users", "INDEX", "by_age"),
                                            ("SQL", "SELECT count(*), sum(age) FROM users WHERE age > -10000")])  # fmt: skip
                assert sum(row[b"age"] for row in page.plain()[0]) == 100 * hashes
                assert told.plain()[b"rows"] == [[hashes, 100 * hashes]]
        finally:
            over.set()
            for t in movers:
                t.join()
        assert not failures, failures


def test_killed_servers(fleet, data):
    """kill -9 between any two writes leaves a hash with its entries."""
    r = random.Random(1)
    server = fleet.larder(data=data)
    with server.connect() as c:
        create(c)
    for _ in range(3):
        failures = []
        t = threading.Thread(target=write, args=(server, r.random(), failures))
        t.start()
        t.join(0.3)
        server.kill()
        t.join()
        server = fleet.larder(data=data)
    with server.connect() as c:
        c("HELLO", 3)
        compare(c)
    server.stop()
    assert servers.run(["check", "--store", data.url]).returncode == 0
