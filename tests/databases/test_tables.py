"""Rows of tables on PostgreSQL and MariaDB: shared, and for one server alone."""

import itertools
import random
import re
import threading

import pytest

from harness import tables, wait
from harness.resp import ServerError

from .test_conflicts import DEADLOCK, NO_SPACE, plant
from .test_shared import round_trips

TABLE = "k INTEGER PRIMARY KEY, v TEXT, n INTEGER DEFAULT 0 NOT NULL, UNIQUE INDEX by_v (v), INDEX by_n (n)"


def fields(**columns):
    return ["FIELDS", len(columns), *itertools.chain(*columns.items())]


@pytest.fixture(params=["shared", "exclusive"])
def either(request, kind):
    """A database of its own, used in either way."""
    return request.getfixturevalue("data" if request.param == "shared" else "alone")


def test_rows_and_entries(fleet, either):
    server = fleet.larder("--sweep", "no", data=either)
    with server.connect() as c:
        assert c("TABLE.CREATE", "t", TABLE) == b"OK"
        rng = random.Random(1)
        replies = c.pipeline([["ROW.PUT", "t", *fields(k=i % 40, v=rng.randrange(60), n=i)] for i in range(200)])
        assert replies[0].plain() == 1 and any(r.is_error for r in replies)
        there = [r.plain() for r in replies].count(1)
        assert tables.check(either) == (there, 2 * there)
        assert c("ROW.UPDATE", "t", "KEY", 3, *fields(k=-3), "NULLS", 1, "v", "INCR", "n", 5) == 1
        assert c("ROW.GET", "t", 3) is None and c("ROW.GET", "t", -3)[:4] == [b"k", -3, b"v", None]
        assert c("ROW.DEL", "t", 4) == 1 and c("ROW.DEL", "t", 4) == 0
        assert len([r for r in c("ROW.MGET", "t", "KEYS", 4, 4, 5, 6, -3) if r]) == 3
        assert c("TABLE.LIST") == [b"t"]
        assert tables.check(either) == (there - 1, 2 * there - 2)
    server.stop()
    server.start()
    with server.connect() as c:
        assert c("ROW.GET", "t", -3, "FIELDS", 1, "n")[1] >= 5
        assert tables.check(either) == (there - 1, 2 * there - 2)


def test_expired_rows_are_swept(fleet, either):
    server = fleet.larder("--sweep-interval", "10ms", data=either)
    with server.connect() as c:
        c("TABLE.CREATE", "t", TABLE)
        c.pipeline([["ROW.PUT", "t", "PX", 1, *fields(k=i, v=i)] for i in range(100)])
        c.pipeline([["ROW.PUT", "t", *fields(k=i, v=i)] for i in range(100, 110)])
        wait.until(lambda: tables.check(either) == (10, 20), "expired rows are removed with their entries")


@pytest.mark.parametrize("key", ["k", "v"])
def test_servers_race_for_one_value(fleet, data, key):
    """Of many who want a unique value, or a primary key, one gets it."""
    servers = [fleet.larder("--sweep", "no", data=data) for _ in range(2)]
    with servers[0].connect() as c:
        c("TABLE.CREATE", "t", TABLE)
    rounds, clients = 12, 4
    won = [[] for _ in range(clients)]
    ready = threading.Barrier(clients)

    def race(me):
        with servers[me % 2].connect() as c:
            for i in range(rounds):
                ready.wait(60)
                row = fields(k=i, v=f"{me}-{i}") if key == "k" else fields(k=100 * me + i, v=i)
                reply = c.call("ROW.PUT", "t", "NX", *row).plain()
                won[me].append(reply == 1)
                assert reply in (1, None) or reply.text == b"DUPLICATE index by_v: (%d)" % i, reply

    threads = [threading.Thread(target=race, args=(me,)) for me in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sum(column) for column in zip(*won)] == [1] * rounds
    assert tables.check(data) == (rounds, 2 * rounds)


def test_two_servers_change_one_table(fleet, data):
    """Rows, deletions, moves and unique values at random from two servers: entries are what the rows say."""
    servers = [fleet.larder("--sweep-interval", "20ms", data=data) for _ in range(2)]
    with servers[0].connect() as c:
        c("TABLE.CREATE", "t", TABLE)

    def work(me):
        rng = random.Random(me)
        commands = []
        for _ in range(150):
            k, v = rng.randrange(30), rng.randrange(30)
            commands.append(
                rng.choice(
                    (
                        ["ROW.PUT", "t", *fields(k=k, v=v)],
                        ["ROW.PUT", "t", "PX", rng.choice((1, 20)), *fields(k=k, v=v)],
                        ["ROW.UPDATE", "t", "KEY", k, *fields(v=v), "INCR", "n", 1],
                        ["ROW.UPDATE", "t", "KEY", k, *fields(k=v)],
                        ["ROW.DEL", "t", k],
                    )
                )
            )
        with servers[me % 2].connect() as c:
            for at in range(0, len(commands), 10):
                for reply in c.pipeline(commands[at : at + 10]):
                    assert not reply.is_error or reply.value.startswith(b"DUPLICATE "), reply

    threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tables.check(data)
    with servers[0].connect() as c:
        c("TABLE.DROP", "t")
    wait.until(lambda: data.query("SELECT count(*) FROM larder_row") == [["0"]], "dropped rows are swept")
    wait.until(lambda: data.query("SELECT count(*) FROM larder_entry") == [["0"]], "so are their entries")


def test_round_trips(fleet, data):
    """The table's key, the row with its unique entries, the commit; what an update has to look for besides is one more."""
    server = fleet.larder("--sweep", "no", "--workers", "1", data=data)
    with server.connect() as c:
        c("TABLE.CREATE", "t", TABLE)
        numbers = itertools.count()
        put = lambda: [["ROW.PUT", "t", *fields(k=next(numbers), v=next(numbers))]]  # noqa: E731
        get = lambda: [["ROW.GET", "t", 0]]  # noqa: E731
        mget = lambda: [["ROW.MGET", "t", "KEYS", 3, 0, 2, 4]]  # noqa: E731
        update = lambda: [["ROW.UPDATE", "t", "KEY", 0, *fields(v=f"x{next(numbers)}")]]  # noqa: E731
        delete = lambda: [["ROW.DEL", "t", next(numbers) % 20]]  # noqa: E731
        for what, most in ((put, 3), (get, 2), (mget, 2), (update, 4), (delete, 4)):
            assert min(round_trips(server, c, what()) for _ in range(4)) <= most, what()


def test_another_server_sees_a_table_change(fleet, data):
    a, b = (fleet.larder(data=data).connect() for _ in range(2))
    with a, b:
        a("TABLE.CREATE", "t", TABLE)
        assert b("ROW.PUT", "t", *fields(k=1)) == 1
        a("TABLE.DROP", "t")
        assert b.error("ROW.GET", "t", 1).startswith("NOTABLE ")
        b("TABLE.CREATE", "t", "k TEXT PRIMARY KEY, other INTEGER")
        assert a("ROW.PUT", "t", *fields(k="x", other=5)) == 1
        assert b("ROW.GET", "t", "x") == [b"k", b"x", b"other", 5]


@pytest.mark.parametrize("table", ["larder_row", "larder_entry"])
def test_a_write_that_fails_leaves_nothing(fleet, data, table):
    server = fleet.larder("--sweep", "no", data=data)
    with server.connect() as c:
        c("TABLE.CREATE", "t", TABLE)
        c("ROW.PUT", "t", *fields(k=1, v="a"))
        plant(data, NO_SPACE[data.kind], 1, table)
        assert c.error("ROW.UPDATE", "t", "KEY", 1, *fields(v="b", k=2)).startswith("MISCONF ")
        assert c("ROW.GET", "t", 1)[3] == b"a" and c("ROW.GET", "t", 2) is None
        assert tables.check(data) == (1, 2)
        assert c("ROW.UPDATE", "t", "KEY", 1, *fields(v="b", k=2)) == 1
        assert tables.check(data) == (1, 2)


def test_a_conflict_is_not_noticed(fleet, data):
    """The database ends the transaction: it runs again, all of it, once in effect."""
    server = fleet.larder("--sweep", "no", data=data)
    with server.connect() as c:
        c("TABLE.CREATE", "t", TABLE)
        c("ROW.PUT", "t", *fields(k=1, v="a"))
        plant(data, DEADLOCK[data.kind], 2, "larder_row")
        c("MULTI")
        c("ROW.UPDATE", "t", "KEY", 1, "INCR", "n", 1)
        c("ROW.PUT", "t", *fields(k=2, v="a"))
        c("ROW.PUT", "t", *fields(k=3, v="b"))
        replies = c("EXEC")
        assert replies == [1, ServerError(b"DUPLICATE index by_v: (a)"), 1]
        assert c("ROW.GET", "t", 1, "FIELDS", 1, "n") == [b"n", 1]
        assert int(re.search(rb"conflicts:(\d+)", c("INFO", "larder"))[1]) >= 1
        assert tables.check(data) == (2, 4)


def test_killed_servers_leave_what_they_acknowledged(fleet, either):
    """kill -9 again and again while clients write: every acknowledged row is there, and entries are those of rows."""
    server = fleet.larder("--sweep-interval", "10ms", data=either)
    with server.connect() as c:
        c("TABLE.CREATE", "t", TABLE)
    acknowledged = {}
    for turn in range(2):
        enough = threading.Event()

        def write(me, turn=turn, enough=enough):
            try:
                with server.connect() as c:
                    for i in itertools.count():
                        k = 1_000_000 * turn + 10_000 * me + i
                        replies = c.pipeline(
                            [["ROW.PUT", "t", *fields(k=k, v=k)], ["ROW.UPDATE", "t", "KEY", k, *fields(v=-k)]]
                        )
                        if not any(r.is_error for r in replies):
                            acknowledged[k] = -k
                        if i >= 15:
                            enough.set()
            except (OSError, EOFError, Exception):  # noqa: the server was killed
                pass

        threads = [threading.Thread(target=write, args=(me,)) for me in range(3)]
        for thread in threads:
            thread.start()
        assert enough.wait(60)
        server.kill()
        for thread in threads:
            thread.join()
        server.start()
    with server.connect() as c:
        for k, v in acknowledged.items():
            assert c("ROW.GET", "t", k, "FIELDS", 1, "v") == [b"v", str(v).encode()]
    rows, entries = tables.check(either)
    assert rows >= len(acknowledged) and entries == 2 * rows
