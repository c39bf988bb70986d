"""Several workers in one server: what a client sees of the others must not depend on which worker has them."""

import contextlib
import re
import signal
import threading

import pytest

from harness import servers, wait
from harness.http import HttpLarder
from harness.resp import Closed, ServerError, encode

WORKERS = 4


@pytest.fixture
def server(fleet, data):
    return fleet.larder("--workers", str(WORKERS), "--enable-debug-command", "yes", data=data)


@contextlib.contextmanager
def clients(server, n):
    """In turn, they go to the worker that has the fewest."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(server.connect()) for _ in range(n)]


def info(c, section, name):
    return re.search(rf"^{name}:(.*)\r$", c("INFO", section).decode(), re.MULTILINE)[1]


def per_worker(c, what):
    return [int(re.search(rf"{what}=(\d+)", info(c, "larder", f"worker{i}"))[1]) for i in range(WORKERS)]


def send_blocking(control, client, *command):
    before = int(info(control, "clients", "blocked_clients"))
    client.send(encode(command))
    wait.until(lambda: int(info(control, "clients", "blocked_clients")) == before + 1, f"{command} to block")


def until_connected(c, n):
    """Who was accepted, and who has gone, is counted a moment later."""
    wait.until(lambda: info(c, "clients", "connected_clients") == str(n), f"{n} clients to be there")


def test_clients_are_spread(server):
    with clients(server, 1) as (first,):
        until_connected(first, 1)
        with clients(server, 11) as others:
            until_connected(first, 12)
            assert info(first, "larder", "workers") == str(WORKERS)
            assert per_worker(others[4], "clients") == [3, 3, 3, 3]
            for c in others:
                assert c("PING") == b"PONG"
            for c in others[::2]:
                c.close()
            until_connected(first, 6)
            with clients(server, 6):
                until_connected(first, 12)
                assert per_worker(first, "clients") == [3, 3, 3, 3]


def test_everybody_sees_everybody(server):
    with clients(server, 8) as many:
        ids = [c("CLIENT", "ID") for c in many]
        assert sorted(set(ids)) == ids
        for c in many:
            listed = [int(n) for n in re.findall(r"^id=(\d+) ", c("CLIENT", "LIST").decode(), re.MULTILINE)]
            assert [n for n in listed if n in ids] == ids
        some = many[0]("CLIENT", "LIST", "ID", ids[7], ids[2]).decode()
        assert re.findall(r"^id=(\d+) ", some, re.MULTILINE) == [str(ids[7]), str(ids[2])]


def test_clients_of_other_workers_are_killed(server):
    with clients(server, 6) as many:
        assert many[0]("CLIENT", "KILL", "ID", many[1]("CLIENT", "ID")) == 1
        with pytest.raises((Closed, ConnectionError)):
            many[1]("PING")
        killed = [c("CLIENT", "ID") for c in many[2:]]
        for n in killed[:2]:
            assert many[0]("CLIENT", "KILL", "ID", n) == 1
        wait.until(lambda: info(many[0], "clients", "connected_clients") == "3", "them to be gone")
        assert many[0]("CLIENT", "KILL", "ID", killed[0]) == 0
        assert info(many[5], "larder", "workers") == str(WORKERS)


def test_a_pause_is_for_all(server):
    with clients(server, 5) as (control, *many):
        assert control("CLIENT", "PAUSE", 600_000, "WRITE") == b"OK"
        for c in many:
            c.send(encode(("SET", "k", "v")))
        for c in many:
            assert c.read_available(0.02) == (b"", False)
        assert control("GET", "k") is None
        assert control("CLIENT", "UNPAUSE") == b"OK"
        for c in many:
            assert c.read().plain() == b"OK"


def test_a_pause_that_is_over_makes_no_later_one_stricter(server):
    """Nor on workers whose clients had nothing to say meanwhile."""
    with clients(server, 5) as (control, *many):
        assert control("CLIENT", "PAUSE", 1, "ALL") == b"OK"
        assert control("PING") == b"PONG"  # when it is over
        assert control("CLIENT", "PAUSE", 600_000, "WRITE") == b"OK"
        assert [c("GET", "k") for c in many] == [None] * 4
        assert control("CLIENT", "UNPAUSE") == b"OK"


def test_settings_are_for_all(server):
    with clients(server, 8) as many:
        many[0]("CONFIG", "SET", "slowlog-log-slower-than", "-1")
        many[1]("SLOWLOG", "RESET")
        many[3]("CONFIG", "SET", "slowlog-log-slower-than", "0")
        for i, c in enumerate(many):
            assert c("CONFIG", "GET", "slowlog-log-slower-than") == [b"slowlog-log-slower-than", b"0"]
            c("SET", f"slow:{i}", "v")
        many[2]("CONFIG", "SET", "slowlog-log-slower-than", "-1")
        entries = many[5]("SLOWLOG", "GET", "-1")
        assert [e[3][1] for e in reversed(entries) if e[3][0] == b"SET"] == [b"slow:%d" % i for i in range(8)]
        assert [e[0] for e in entries] == sorted((e[0] for e in entries), reverse=True)
        many[6]("CONFIG", "SET", "requirepass", "secret")
        with clients(server, 4) as strangers:
            for c in strangers:
                assert c.call("GET", "k").value == b"NOAUTH Authentication required."
                assert c("AUTH", "secret") == b"OK" and c("GET", "k") is None
        many[7]("CONFIG", "SET", "requirepass", "")


def test_a_limit_is_for_all(server):
    with clients(server, 3) as many:
        many[0]("CONFIG", "SET", "maxclients", "5")
        with clients(server, 2) as more:
            assert [c("PING") for c in more] == [b"PONG", b"PONG"]
            with server.connect() as refused:
                assert refused.read().value == b"ERR max number of clients reached"
        wait.until(lambda: info(many[0], "clients", "connected_clients") == "3", "them to be gone")
        with clients(server, 2) as more:
            assert [c("PING") for c in more] == [b"PONG", b"PONG"]


def test_statistics_are_sums(server):
    with clients(server, 8) as many:
        for c in many:
            c("PING")  # it has been accepted
        many[0]("CONFIG", "RESETSTAT")
        for i, c in enumerate(many):
            c("SET", f"k:{i}", "v")
            c("GET", f"k:{i}")
            assert c.call("INCR", f"k:{i}").is_error
        stats = many[4]("INFO", "commandstats").decode()
        assert "cmdstat_set:calls=8," in stats and "cmdstat_get:calls=8," in stats
        assert info(many[1], "errorstats", "errorstat_ERR") == "count=8"
        assert info(many[2], "stats", "keyspace_hits") == "8"
        assert info(many[2], "stats", "total_connections_received") == "0"
        assert info(many[7], "clients", "connected_clients") == "8"
        histogram = many[3]("LATENCY", "HISTOGRAM", "set")
        assert histogram[1][:2] == [b"calls", 8]
        assert all(n > 0 for n in per_worker(many[0], "commands"))
        many[6]("CONFIG", "RESETSTAT")
        assert "cmdstat_set" not in many[5]("INFO", "commandstats").decode()


def test_monitors_see_the_commands_of_all(server):
    with clients(server, 8) as (watcher, second, *many):
        assert watcher("MONITOR") == b"OK" and second("MONITOR") == b"OK"
        for i, c in enumerate(many):
            c("SET", f"k:{i}", "v")
        for m in (watcher, second):
            lines = [m.read().value.decode() for _ in many]
            assert sorted(re.findall(r'"SET" "k:(\d)"', " ".join(lines))) == [str(i) for i in range(len(many))]
        assert watcher("RESET") == b"RESET"
        many[1]("GET", "k:1")
        assert b'"RESET"' in second.read().value and b'"GET" "k:1"' in second.read().value
        assert watcher("PING") == b"PONG"


def test_who_waits_longest_is_served_first(server):
    """Whichever worker a client belongs to, and whoever pushes."""
    with clients(server, 9) as (control, *many):
        order = [4, 1, 6, 3, 0, 7, 2, 5]
        for i in order:
            send_blocking(control, many[i], "BLPOP", "q", 0)
        assert sum(per_worker(control, "blocked")) == 8
        assert control("RPUSH", "q", *range(3)) == 3
        for n, i in enumerate(order[:3]):
            assert many[i].read().plain() == [b"q", b"%d" % n]
        for n, i in enumerate(order[3:], 3):
            many[order[0]]("RPUSH", "q", n)
            assert many[i].read().plain() == [b"q", b"%d" % n]
        assert control("EXISTS", "q") == 0 and sum(per_worker(control, "blocked")) == 0


def test_a_chain_of_waiting_clients(server):
    with clients(server, 4) as (control, a, b, c):
        send_blocking(control, a, "BLMOVE", "x", "y", "LEFT", "RIGHT", 0)
        send_blocking(control, b, "BLMOVE", "y", "z", "LEFT", "RIGHT", 0)
        send_blocking(control, c, "BLPOP", "z", 0)
        control("RPUSH", "x", "v")
        assert a.read().plain() == b"v" and b.read().plain() == b"v" and c.read().plain() == [b"z", b"v"]


def test_waiting_clients_of_other_workers_are_unblocked(server):
    with clients(server, 3) as (control, a, b):
        ids = [a("CLIENT", "ID"), b("CLIENT", "ID")]
        send_blocking(control, a, "BLPOP", "q", 0)
        send_blocking(control, b, "BZPOPMIN", "q", 0)
        assert control("CLIENT", "UNBLOCK", ids[0]) == 1 and a.read().plain() is None
        assert control("CLIENT", "UNBLOCK", ids[1], "ERROR") == 1
        assert b.read().plain() == ServerError(b"UNBLOCKED client unblocked via CLIENT UNBLOCK")
        assert control("CLIENT", "UNBLOCK", ids[0]) == 0 and a("PING") == b"PONG"


def test_what_concerns_all_within_exec(server):
    with clients(server, 5) as (c, *others):
        c("MULTI")
        c("SET", "k", "v")
        c("CLIENT", "KILL", "ID", others[0]("CLIENT", "ID"))
        c("INFO", "clients")
        c("GET", "k")
        replies = c("EXEC")
        assert replies[:2] == [b"OK", 1] and b"connected_clients:4\r" in replies[2] and replies[3] == b"v"


def run_all(works):
    errors = []

    def run(work):
        try:
            work()
        except Exception as e:  # noqa: BLE001  told below
            errors.append(e)

    threads = [threading.Thread(target=run, args=(w,)) for w in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors


def test_all_at_once(server):
    """Counters that everybody increments, while others ask for what makes all workers stand still."""

    def count():
        with server.connect() as c:
            for i in range(100):
                c("INCR", "n")
                c("INCR", f"n:{i % 3}")

    def ask():
        with server.connect() as c:
            for i in range(30):
                assert b"# Clients" in c("INFO")
                assert b"id=" in c("CLIENT", "LIST")
                assert c("CONFIG", "SET", "maxclients", 1000 + i) == b"OK"

    run_all([count] * 16 + [ask] * 4)
    with server.connect() as c:
        assert c("GET", "n") == b"1600"
        assert sum(int(c("GET", f"n:{i}")) for i in range(3)) == 1600
        calls = re.search(r"cmdstat_incr:calls=(\d+),", c("INFO", "commandstats").decode())
        assert int(calls[1]) == 3200


@pytest.mark.parametrize("how", ["SIGTERM", "SHUTDOWN"])
def test_the_end_under_load(fleet, data, how):
    """Every acknowledged increment is there, and the server ends well."""
    server = fleet.larder("--workers", str(WORKERS), data=data)
    counted = [0] * 12
    begun = threading.Barrier(len(counted) + 1)

    def count(i):
        with contextlib.suppress(Closed, ConnectionError), server.connect() as c:
            c("PING")
            begun.wait()
            while True:
                c("INCR", f"n:{i}")
                counted[i] += 1

    threads = [threading.Thread(target=count, args=(i,)) for i in range(len(counted))]
    for t in threads:
        t.start()
    begun.wait()
    wait.until(lambda: min(counted) > 5, "all to count")
    if how == "SHUTDOWN":
        with server.connect() as c:
            c.send(encode(("SHUTDOWN",)))
            server.wait_ended()
    else:
        server.stop(signal.SIGTERM)
    for t in threads:
        t.join()
    again = fleet.larder("--workers", "2", data=data)
    with again.connect() as c:
        there = [int(c("GET", f"n:{i}")) for i in range(len(counted))]
    assert all(n in (m, m + 1) for m, n in zip(counted, there))


def test_http(fleet, data):
    """The outcome of a batch that nobody waited for is found through every worker; metrics are sums."""
    server = fleet.new(HttpLarder, "--workers", str(WORKERS), data=data).start()
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(server.http()) for _ in range(8)]
        for i, web in enumerate(many):
            assert web.put(f"/keys/k{i}", {"value": str(i)}).status in (200, 201)
        made = many[0].post("/batch", {"operations": [{"op": "put", "key": "a", "value": "1"}], "async": True})
        assert made.status == 202
        for web in many:
            told = web.get(f"/batch/{made.json['id']}")
            assert told.status == 200 and told.json["status"] == "done"
        page = many[3].get("/metrics").body.decode()
        assert re.search(r'^larder_connections\{listener="http"\} 8$', page, re.MULTILINE)
        assert re.search(r'^larder_commands_total\{command="http\|put",result="ok"\} 8$', page, re.MULTILINE)


def test_where_there_is_one(alone):
    done = servers.run(["--store", alone.url, "--port", "0", "--workers", "4"])
    assert done.returncode == 2
    assert done.stderr == "larder: --workers: PostgreSQL and MariaDB in shared mode take more than 1, this database does not\n"
