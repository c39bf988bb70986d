"""Tables of several Larders on one database: no row is lost, none is left without a key, nothing unique is there twice."""

import threading
import time

import pytest

from harness import resp, servers, wait

COLUMNS = "id INTEGER PRIMARY KEY, mail TEXT, age INTEGER, UNIQUE INDEX by_mail (mail), INDEX by_age (age)"
SECONDS = 0.8

ORPHANS = """SELECT (SELECT count(*) FROM larder_row AS r WHERE NOT EXISTS (SELECT 1 FROM larder_key AS k WHERE k.id = r.id))
 + (SELECT count(*) FROM larder_entry AS e WHERE NOT EXISTS (SELECT 1 FROM larder_key AS k WHERE k.id = e.id))
 + (SELECT count(*) FROM larder_trash)"""


def number(data, sql):
    return int(data.query(sql)[0][0])


class Writers:
    """Threads that put rows with numbers of their own, into whichever of the names is a table, until they are told to end."""

    def __init__(self, larders, names=("t",), threads=2):
        self.names = names
        self.done = threading.Event()
        self.put = []  # numbers of rows that were acknowledged
        self.trouble = []
        self.threads = [
            threading.Thread(target=self.run, args=(larder, 1_000_000 * (i * threads + j)), daemon=True)
            for i, larder in enumerate(larders)
            for j in range(threads)
        ]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        for thread in self.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self.threads)
        assert not self.trouble, self.trouble[0]

    def run(self, larder, n):
        with larder.connect() as c:
            while not self.done.is_set():
                n += 1
                reply = self.one(c, n)
                if reply == 1:
                    self.put.append(n)
                elif reply is not None:
                    self.trouble.append((n, reply))
                    return

    def one(self, c, n):
        for name in self.names:
            try:
                return c("ROW.PUT", name, "FIELDS", 3, "id", n, "mail", f"m{n}", "age", n % 50)
            except resp.ServerError as e:
                if not str(e).startswith(("NOTABLE", "WRONGTYPE")):
                    return e
        return None


@pytest.fixture
def pair(fleet, data):
    return [fleet.larder("--sweep-interval", "20ms", data=data) for _ in range(2)]


def whole(data, larders):
    """Everything that is dead is swept, nothing is left without a key, and the checker finds nothing."""
    wait.until(lambda: number(data, ORPHANS) == 0, "no row, entry or trash is left without a key")
    for larder in larders:
        larder.stop()
    done = servers.run(["check", "--store", data.url])
    assert done.returncode == 0, done.stdout


def again(c, name="t"):
    """Creates the table, or finds it there."""
    c("TABLE.CREATE", name, COLUMNS, "IF", "NOT", "EXISTS")


def test_rows_of_a_table_that_goes_while_others_write_go_with_it(pair, data):
    with pair[0].connect() as a, pair[1].connect() as b, Writers(pair) as writers:
        end = time.monotonic() + SECONDS
        rounds = 0
        while time.monotonic() < end:
            for c, words in ((a, ["DEL", "t"]), (b, ["TABLE.DROP", "t"]), (a, ["PEXPIRE", "t", 15]), (b, ["FLUSHDB"]),
                             (b, ["SET", "t", "x"]), (a, ["UNLINK", "t"])):  # fmt: skip
                again(a if c is b else b)
                before = len(writers.put)
                wait.until(lambda before=before: len(writers.put) > before + 3, "rows are put")
                if words[0] == "TABLE.DROP" and c("EXISTS", "t") == 0:
                    continue
                c(*words)
                if words[0] == "PEXPIRE":
                    wait.until(lambda: b("EXISTS", "t") == 0, "the table has expired")
                if words[0] == "SET":
                    c("DEL", "t")
            rounds += 1
        writers.done.set()
    assert rounds > 0 and writers.put
    whole(data, pair)


def test_no_row_is_lost_while_a_table_is_renamed(pair, data):
    with pair[0].connect() as a, pair[1].connect() as b:
        again(a)
        with Writers(pair, ("t", "u")) as writers:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                assert b("RENAME", "t", "u") == b"OK"
                a("EXPIRE", "u", 1000)
                assert a("MOVE", "u", 1) == 1
                b("SELECT", 1)
                assert b("MOVE", "u", 0) == 1
                b("SELECT", 0)
                assert b("RENAME", "u", "t") == b"OK"
                b("PERSIST", "t")
        assert len(writers.put) == len(set(writers.put)) > 0
        rows = a("ROW.MGET", "t", "KEYS", len(writers.put), *writers.put)
        assert all(row is not None for row in rows)
    assert number(data, "SELECT count(*) FROM larder_row") == len(writers.put)
    assert number(data, "SELECT count(*) FROM larder_entry") == 2 * len(writers.put)
    whole(data, pair)


def test_what_is_unique_is_there_once_whoever_comes_first(pair, data):
    taken = [[], []]

    def put(which):
        with pair[which].connect() as c:
            for i in range(150):
                try:
                    taken[which].append((i, c("ROW.PUT", "t", "FIELDS", 3, "id", 2 * i + which, "mail", f"m{i}", "age", i)))
                except resp.ServerError as e:
                    assert str(e).startswith("DUPLICATE"), e

    with pair[0].connect() as a:
        again(a)
        threads = [threading.Thread(target=put, args=(i,), daemon=True) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        won = sorted(i for side in taken for i, reply in side if reply == 1)
        assert won == list(range(150))
    assert number(data, "SELECT count(*) FROM larder_row") == 150
    whole(data, pair)


def test_names_that_differ_by_case_are_given_once(pair, data):
    names = ["orders", "Orders", "ORDERS", "oRders"]

    def create(i):
        with pair[i % 2].connect() as c:
            try:
                return c("TABLE.CREATE", names[i], COLUMNS)
            except resp.ServerError as e:
                assert str(e).startswith("EXISTS"), e
                return None

    with pair[0].connect() as a:
        for _ in range(8):
            replies = [None] * len(names)

            def run(i, replies=replies):
                replies[i] = create(i)

            threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(names))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert sum(reply == b"OK" for reply in replies) == 1, replies
            assert a("DBSIZE") == 1
            a("FLUSHDB")
    whole(data, pair)


def test_entries_of_a_dropped_index_go_beside_a_flushed_database(fleet, data):
    """Both are trash: each is forgotten when nothing of it is left, with all that was counted of it."""
    larder = fleet.larder("--sweep-interval", "10ms", data=data)
    with larder.connect() as c:
        again(c)
        c("ROW.PUT", "t", "FIELDS", 3, "id", 1, "mail", "m", "age", 1)
        c("SELECT", 1)
        c("SET", "k", "v")
        c("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        c("FLUSHDB")
        c("SELECT", 0)
        c("TABLE.ALTER", "t", "DROP INDEX by_age")
        c("DEBUG", "SET-ACTIVE-EXPIRE", 1)
        wait.until(lambda: number(data, "SELECT count(*) FROM larder_trash") == 0, "all trash is removed")
    assert number(data, "SELECT count(*) FROM larder_entry") == 1
    gone = "NOT IN (SELECT number FROM larder_db)"
    assert number(data, f"SELECT count(*) FROM larder_count WHERE number {gone}") == 0
    whole(data, [larder])
