"""Long queries over a database server: it goes while one runs, several workers, servers that share it."""

import threading

import pytest

from harness import store, wait
from harness.resp import ServerError, encode

# Each row of the one has all of the other read again: it asks the database again and again.
JOIN = "SELECT count(*) FROM larder_strings a, larder_strings b WHERE a.value > b.value"
SUM = "SELECT sum(CAST(value AS INTEGER)) FROM larder_strings WHERE key LIKE 'n:%'"
FOR_EVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
FEW_ROWS = ("--sql-inline-rows", "20")


def running(control):
    lines = control("INFO", "larder").decode().split("\r\n")
    return int(next(x for x in lines if x.startswith("sql_queries_running:")).split(":")[1])


def rows(reply):
    return dict(zip(reply[::2], reply[1::2]))[b"rows"]


def fill(client, n=1500):
    client("MSET", *[w for i in range(n) for w in (f"n:{i}", 1)])


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
def test_the_database_goes(own, fleet, mode):
    server = fleet.larder(*FEW_ROWS, data=store.KINDS[own.kind](on=own, mode=mode))
    with server.connect() as control, server.connect() as long:
        fill(control)
        assert rows(control("SQL", SUM)) == [[1500]]  # its thread has a session from here on
        long.send(encode(("SQL", JOIN)))
        wait.until(lambda: running(control) == 1, "the query to run")
        own.kill()
        reply = long.read()
        assert reply.is_error and reply.value.startswith((b"IOERR ", b"TRYAGAIN ")), reply
        assert long("PING") == b"PONG"
        own.start()

        def answers():
            try:
                return rows(control("SQL", SUM)) == [[1500]]
            except ServerError:
                return False

        wait.until(answers, "queries to be answered again")


def test_workers(fleet, data):
    """Clients of two workers, whose batches conflict and are run again, each with a query behind its writes: replies
    come in order, a query sees what its client has written, and nothing is done twice."""
    server = fleet.larder(*FEW_ROWS, "--workers", "2", "--sql-threads", "3", data=data)
    rounds, clients = 8, 4
    problems = []

    def work(number):
        try:
            with server.connect() as c:
                for i in range(1, rounds + 1):
                    first, told, second, pong = c.pipeline(
                        [("INCR", f"own:{number}"), ("SQL", f"SELECT value, (SELECT count(*) FROM larder_strings WHERE key LIKE"
                          f" 'n:%') FROM larder_strings WHERE key = 'own:{number}'"), ("INCR", "n:all"), ("PING",)]
                    )  # fmt: skip
                    assert first.plain() == i and pong.plain() == b"PONG" and second.plain() >= i
                    assert rows(told.plain()) == [[b"%d" % i, 101]]
        except Exception as e:  # noqa: BLE001
            problems.append(e)

    with server.connect() as control:
        fill(control, 100)
        control("SET", "n:all", 0)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not problems, problems
        assert control("GET", "n:all") == b"%d" % (rounds * clients)


def test_a_client_of_another_worker_is_unblocked(fleet, data):
    server = fleet.larder(*FEW_ROWS, "--workers", "2", data=data)
    with server.connect() as a, server.connect() as b:
        for one, other in ((a, b), (b, a)):
            number = one("CLIENT", "ID")
            one.send(encode(("SQL", FOR_EVER)))
            wait.until(lambda other=other: running(other) == 1, "the query to run")
            assert other("CLIENT", "UNBLOCK", number, "ERROR") == 1
            assert one.read().value.startswith(b"UNBLOCKED")
            wait.until(lambda other=other: running(other) == 0, "the query to end")


def test_another_server_has_the_tables(fleet, alone):
    """A query of one that has them for itself is answered from a state of its own, or not at all."""
    server = fleet.larder(*FEW_ROWS, data=alone)
    with server.connect() as client:
        fill(client)
        assert rows(client("SQL", SUM)) == [[1500]]
    server.stop()
    second = fleet.larder(*FEW_ROWS, data=alone)
    with second.connect() as client:
        assert rows(client("SQL", SUM)) == [[1500]]


def test_keys_that_get_other_names_are_seen_once(fleet, data):
    """In a transaction that writes as well, a query over keys reads pages and values of one state."""
    two = [fleet.larder(data=data) for _ in range(2)]
    keys, over, problems = 40, threading.Event(), []

    def rename(number):
        try:
            with two[1].connect() as c:
                while not over.is_set():
                    c.pipeline([("RENAME", f"n:{i}", f"n:{i + keys}") for i in range(number, keys, 2)])
                    c.pipeline([("RENAME", f"n:{i + keys}", f"n:{i}") for i in range(number, keys, 2)])
        except Exception as e:  # noqa: BLE001
            problems.append(e)

    with two[0].connect() as c:
        fill(c, keys)
        threads = [threading.Thread(target=rename, args=(n,)) for n in range(2)]
        for t in threads:
            t.start()
        try:
            for _ in range(60):
                told = c.pipeline([("INCR", "all"), ("SQL", f"SELECT count(*), count(value), ({SUM}) FROM larder_strings"
                                                     " WHERE key LIKE 'n:%'")])[1]  # fmt: skip
                assert rows(told.plain()) == [[keys, keys, keys]]
        finally:
            over.set()
            for t in threads:
                t.join()
        assert not problems, problems
