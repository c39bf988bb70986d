"""SQL that takes long runs on a thread: its client waits, others do not; every way in which it ends; what it sees."""

import contextlib
import json
import pathlib
import random
import re
import socket
import threading
import urllib.request

import pytest

from harness import servers, store, wait
from harness.http import HttpLarder
from harness.resp import Closed, encode

OPTIONS = ("--sql-inline-rows", "20", "--sql-threads", "1", "--workers", "1")
# Goes on for ever, and may not run on the loop at all.
FOR_EVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
COUNT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT {}) SELECT count(*) FROM c"
SUM = "SELECT sum(CAST(value AS INTEGER)), count(*) FROM larder_strings WHERE key >= 'k:' AND key < 'k;'"


@pytest.fixture
def server(subjects):
    server = subjects(*OPTIONS)
    with server.connect() as c:
        c("FLUSHALL")
        c("CONFIG", "SET", "sql-timeout", "30s")
        c("CONFIG", "SET", "sql-max-result", "32mb")
        c("CONFIG", "RESETSTAT")
        wait.until(lambda: info(c, "running") == 0, "earlier queries to end")
    return server


@contextlib.contextmanager
def connections(server, n):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(server.connect()) for _ in range(n)]


def field(control, section, name):
    for line in control("INFO", section).decode().split("\r\n"):
        if line.startswith(name + ":"):
            return int(line.split(":")[1])
    raise AssertionError(f"INFO {section} has no {name}")


def info(control, name):
    return field(control, "larder", "sql_queries_" + name)


def begin(control, client, text=FOR_EVER):
    """Sends a query and waits until a thread has it."""
    before = info(control, "running")
    client.send(encode(("SQL", text)))
    wait.until(lambda: info(control, "running") == before + 1, "the query to run")


def rows(reply):
    return dict(zip(reply[::2], reply[1::2]))[b"rows"]


def nothing_yet(client):
    assert client.read_available(0.02) == (b"", False)


# ---- others go on ----


def test_others_go_on(server):
    with connections(server, 3) as (control, long, other):
        begin(control, long)
        for i in range(500):
            assert other("INCR", "n") == i + 1
            assert other("GET", "n") == b"%d" % (i + 1)
        assert other("SQL", "SELECT value FROM larder_strings WHERE key = 'n'")[3] == [[b"500"]]
        assert info(control, "running") == 1
        nothing_yet(long)
        assert control("CLIENT", "UNBLOCK", client_id(control, "sql")) == 1
        assert long.read().is_error


def client_id(control, command):
    for line in control("CLIENT", "LIST").decode().splitlines():
        words = dict(w.split("=", 1) for w in line.split())
        if words["cmd"] == command and words["flags"] == "b":
            return int(words["id"])
    raise AssertionError("no client waits")


def test_replies_keep_their_order(server):
    with connections(server, 2) as (control, client):
        commands = [("SET", "a", "1"), ("SQL", COUNT.format(300000)), ("INCR", "a"), ("SQL", COUNT.format(1000)), ("GET", "a")]
        got = [r.plain() for r in client.pipeline(commands)]
        assert got == [b"OK", [b"columns", [b"count(*)"], b"rows", [[300000]], b"changes", 0], 2,
                       [b"columns", [b"count(*)"], b"rows", [[1000]], b"changes", 0], b"2"]  # fmt: skip
        client("HELLO", 3)
        assert client("SQL", COUNT.format(5)) == {b"columns": [b"count(*)"], b"rows": [[5]], b"changes": 0}
        assert info(control, "done") >= 3


def test_a_client_sees_what_it_has_written(server):
    with server.connect() as client:
        for n in (50, 500):
            commands = [("SET", f"k:{n}:{i}", i) for i in range(n)]
            *_, last = client.pipeline([*commands, ("SQL", SUM), ("DEL", *[f"k:{n}:{i}" for i in range(n)]), ("SQL", SUM)])
            assert rows(last.plain()) == [[None, 0]]
            client.pipeline(commands)
            assert rows(client("SQL", SUM)) == [[sum(range(n)), n]]
            client("DEL", *[f"k:{n}:{i}" for i in range(n)])


def test_one_waits_for_the_other(server):
    with connections(server, 4) as (control, first, second, third):
        begin(control, first)
        second.send(encode(("SQL", COUNT.format(10))))
        third.send(encode(("SQL", COUNT.format(20))))
        wait.until(lambda: info(control, "waiting") == 2, "two to wait")
        assert field(control, "clients", "blocked_clients") == 3
        nothing_yet(second)
        third.socket.close()
        wait.until(lambda: info(control, "waiting") == 1, "one to go")
        first.socket.close()
        assert rows(second.read().plain()) == [[10]]
        wait.until(lambda: info(control, "running") == 0, "all to end")
        assert field(control, "clients", "blocked_clients") == 0
        assert info(control, "cancelled") >= 2


# ---- how it ends ----


def test_it_ends_with_its_client(server):
    with connections(server, 2) as (control, long):
        begin(control, long)
        long.socket.shutdown(socket.SHUT_RDWR)
        wait.until(lambda: info(control, "running") == 0, "the query to end")


def test_it_ends_by_client_kill(server):
    with connections(server, 2) as (control, long):
        number = long("CLIENT", "ID")
        begin(control, long)
        assert control("CLIENT", "KILL", "ID", number) == 1
        wait.until(lambda: info(control, "running") == 0, "the query to end")
        with pytest.raises(Closed):
            long.read()


@pytest.mark.parametrize(
    "words, said",
    [
        ((), b"SQL the query was ended by CLIENT UNBLOCK"),
        (("TIMEOUT",), b"SQL the query was ended by CLIENT UNBLOCK"),
        (("ERROR",), b"UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ],
)
def test_it_ends_by_client_unblock(server, words, said):
    with connections(server, 2) as (control, long):
        number = long("CLIENT", "ID")
        begin(control, long)
        long.send(encode(("PING",)))
        assert control("CLIENT", "UNBLOCK", number, *words) == 1
        assert long.read().value == said
        assert long.read().value == b"PONG"
        wait.until(lambda: info(control, "running") == 0, "the query to end")
        assert control("CLIENT", "UNBLOCK", number) == 0


def test_it_ends_by_its_time(server):
    with connections(server, 2) as (control, long):
        timed_out = info(control, "timed_out")
        control("CONFIG", "SET", "sql-timeout", "20ms")
        assert "sql-timeout" in long.error("SQL", FOR_EVER)
        assert long("PING") == b"PONG"
        wait.until(lambda: info(control, "timed_out") == timed_out + 1, "it to be counted")
        assert info(control, "running") == 0


def test_its_result_is_bounded(server):
    with connections(server, 2) as (control, client):
        control("CONFIG", "SET", "sql-max-result", "10kb")
        text = COUNT.format(10000).replace("count(*)", "x")
        assert client.error("SQL", text).startswith("SQL ")
        control("CONFIG", "SET", "sql-max-result", "1mb")
        assert len(rows(client("SQL", text))) == 10000


def test_the_server_ends(fleet):
    server = fleet.larder(*OPTIONS)
    with connections(server, 3) as (control, long, waiting):
        begin(control, long)
        waiting.send(encode(("SQL", FOR_EVER)))
        wait.until(lambda: info(control, "waiting") == 1, "the other to wait")
        server.stop()
        for client in (long, waiting):
            assert client.read().value == b"SQL the server ends"
    server.check()


def test_it_does_not_run_inside_others(server):
    with connections(server, 2) as (control, client):
        client("MULTI")
        client("SET", "a", "1")
        client("SQL", COUNT.format(10))
        ok, error = client.call("EXEC").value
        assert ok.value == b"OK" and error.value.startswith(b"SQL the query takes too long")
        assert "too long" in client.error("EVAL", "return redis.call('SQL', ARGV[1])", 0, COUNT.format(10))
        assert info(control, "running") == 0


def test_without_threads(fleet):
    server = fleet.larder("--sql-threads", "0")
    with server.connect() as client:
        assert client.error("SQL", COUNT.format(10)).startswith("SQL ")
        assert rows(client("SQL", "SELECT 1 + 1")) == [[2]]


# ---- what is told of it ----


def test_books(server):
    with connections(server, 3) as (control, client, monitor):
        control("CONFIG", "SET", "slowlog-log-slower-than", 0)
        control("SLOWLOG", "RESET")
        assert monitor("MONITOR") == b"OK"
        begin(control, client)
        line = next(x for x in control("CLIENT", "LIST").decode().splitlines() if " cmd=sql " in x + " ")
        assert " flags=b " in line
        control("CLIENT", "UNBLOCK", client_id(control, "sql"))
        assert client.read().is_error
        control("CONFIG", "SET", "slowlog-log-slower-than", 10000)
        slow = [e for e in control("SLOWLOG", "GET", 100) if e[3][0] == b"SQL"]
        assert len(slow) == 1
        stats = next(x for x in control("INFO", "commandstats").decode().split("\r\n") if x.startswith("cmdstat_sql:"))
        assert "calls=1," in stats and "failed_calls=1" in stats
        usec = int(stats.split("usec=")[1].split(",")[0])
        assert usec == slow[0][2]
        control("SET", "last", "x")
        seen = []
        while not seen or b'"last"' not in seen[-1]:
            seen.append(monitor.read().value)
        assert sum(b"RECURSIVE" in x for x in seen) == 1


def test_replies_can_be_off(server):
    with connections(server, 2) as (control, client):
        client.send(encode(("CLIENT", "REPLY", "SKIP")))
        begin(control, client)
        control("CLIENT", "UNBLOCK", client_id(control, "sql"))
        assert client("PING") == b"PONG"


# ---- HTTP ----


def test_http(fleet):
    server = fleet.new(HttpLarder, *OPTIONS).start()

    def post(path, body):
        request = urllib.request.Request(server.url + path, json.dumps(body).encode(), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)

    assert post("/", ["SQL", COUNT.format(200000)]) == (200, {"result": ["columns", ["count(*)"], "rows", [[200000]], "changes", 0]})
    status, several = post("/pipeline", [["SET", "a", "1"], ["SQL", COUNT.format(10)], ["GET", "a"]])
    assert status == 200 and several[0] == {"result": "OK"} and several[2] == {"result": "1"}
    assert "too long" in several[1]["error"]
    answers = []
    asker = threading.Thread(target=lambda: answers.append(post("/", ["SQL", FOR_EVER])))
    asker.start()
    with server.connect() as control:
        wait.until(lambda: info(control, "running") == 1, "the query to run")
        for i in range(100):
            assert post("/", ["INCR", "n"]) == (200, {"result": i + 1})
        assert info(control, "running") == 1
        control("CLIENT", "UNBLOCK", client_id(control, "sql"))
        asker.join()
        assert answers[0][0] == 400 and "CLIENT UNBLOCK" in answers[0][1]["error"]


# ---- memory ----


def sanitized():
    return re.search(rb"__[at]san_init", pathlib.Path(servers.BINARY).read_bytes()) is not None


def resident(server, what):
    return int(re.search(rf"{what}:\s+(\d+) kB", pathlib.Path(f"/proc/{server.pid}/status").read_text())[1]) << 10


@pytest.mark.skipif(sanitized(), reason="what was freed is kept for a while")
def test_what_was_read_is_not_kept(fleet):
    server = fleet.larder(*OPTIONS, "--cache-memory", "4mb", "--journal-max", "1mb")
    with server.connect() as client:
        for i in range(0, 6000, 100):
            client("MSET", *[w for k in range(i, i + 100) for w in (f"k:{k}", b"x" * 12000)])
        client("SQL", COUNT.format(10))  # the thread has its session
        before = resident(server, "VmHWM")
        assert rows(client("SQL", "SELECT count(*), sum(length(value)) FROM larder_strings")) == [[6000, 72000000]]
        assert resident(server, "VmHWM") - before < 36 << 20


def test_rows_of_joins_stay(server):
    """While one cursor reads on, what the others stand on is still there."""
    with server.connect() as client:
        client("TABLE.CREATE", "t", "id INTEGER, name TEXT, age INTEGER, PRIMARY KEY (id), INDEX by_age (age)")
        client.pipeline([("ROW.PUT", "t", "FIELDS", 3, "id", i, "name", f"{i}-" + "n" * 500, "age", i % 50) for i in range(1000)])
        text = """SELECT count(*), sum(a.name = CAST(a.id AS TEXT) || '-' || ?1), sum(b.name = CAST(b.id AS TEXT) || '-' || ?1)
                  FROM t a JOIN t b ON {} WHERE a.id < 999"""
        for on, n in (("b.id = a.id + 1", 999), ("b.age = a.age", 999 * 20)):
            assert rows(client("SQL", text.format(on), "n" * 500)) == [[n, n, n]]


@pytest.mark.sqlite
def test_a_long_log_lets_others_wait(fleet):
    """A query holds the log back; while that is longer than sql-max-wal, another waits for the first one's end."""
    server = fleet.larder("--sql-threads", "2", "--sql-max-wal", "1mb", "--sql-inline-rows", "20", "--journal-max", "1mb")
    with connections(server, 3) as (control, long, other):
        begin(control, long)
        for i in range(40):
            control("SET", f"k:{i}", b"1" * 100000)
        wait.until(lambda: field(control, "larder", "store_wal_bytes") > 1 << 20, "the log to be long")
        other.send(encode(("SQL", COUNT.format(10))))
        wait.until(lambda: info(control, "running") == 2, "both to have a thread")
        nothing_yet(other)
        assert info(control, "done") == 0
        long.socket.close()
        assert rows(other.read().plain()) == [[10]]


# ---- one state ----


@pytest.mark.parametrize("options", [(), ("--journal-max", "256kb"), ("--journal-max", "0")], ids=["journal", "small", "none"])
def test_transfers(fleet, options):
    """Amounts move from key to key by MULTI/EXEC, two keys at a time: every sum is the same, and each is of a state that
    has the writes that came before its query."""
    keys = 50000 if not options and store.CHOICE == "sqlite" else 3000
    server = fleet.larder("--sql-inline-rows", "20", "--durability", "everysec", *options)
    stop = threading.Event()
    moved = [0]

    def move():
        rnd = random.Random(1)
        with server.connect() as client:
            while not stop.is_set():
                commands = []
                for _ in range(20):
                    a, b = rnd.sample(range(keys), 2)
                    commands += [("MULTI",), ("DECRBY", f"k:{a}", 1), ("INCRBY", f"k:{b}", 1), ("EXEC",)]
                client.pipeline(commands)
                moved[0] += 20

    with server.connect() as client:
        for i in range(0, keys, 1000):
            client("MSET", *[w for k in range(i, i + 1000) for w in (f"k:{k}", 100)])
        movers = [threading.Thread(target=move) for _ in range(2)]
        for m in movers:
            m.start()
        try:
            for i in range(8):
                wait.until(lambda before=moved[0]: moved[0] > before, "somebody to write")
                client("SET", "k:own", i)
                assert rows(client("SQL", SUM)) == [[keys * 100 + i, keys + 1]]
        finally:
            stop.set()
            for m in movers:
                m.join()
        assert info(client, "done") == 8


def test_killed(fleet):
    server = fleet.larder("--sql-inline-rows", "20", "--journal-max", "256kb")
    with connections(server, 2) as (control, long):
        control.pipeline([("SET", f"k:{i}", 1) for i in range(3000)])
        begin(control, long)
        long.send(b"")
        with server.connect() as other:
            other.send(encode(("SQL", SUM)))
            control("SET", "k:last", 1)
            server.kill()
    server.start()
    with server.connect() as control:
        assert rows(control("SQL", SUM)) == [[3001, 3001]]
    server.stop()
    server.check()
