"""Reads of all modes over a primary and its replicas: who answers, in which order, and what failures cost."""

import contextlib
import itertools
import threading
import time

import pytest

from harness import replicas, wait
from harness.resp import encode

from .faults import Behind

MODES = ["STRONG", "SESSION", "BOUNDED 60000", "EVENTUAL"]
TIMEOUT_MS = 500


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def cluster(request):
    with replicas.KINDS[request.param](2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def only_server(shared_fleet, cluster):
    """A Larder with one worker, whose replicas are in rotation. Nothing comes from memory."""
    data = cluster.data()
    store = Behind(data, cluster.url(data.name, cluster.primary))
    options = ("--workers", "1", "--failover-wait", "1s", "--cache-memory", "0", "--store-timeout", "3s")
    server = shared_fleet.larder(*options, *cluster.replica_options(data.name), data=store)
    yield server
    server.stop()


@pytest.fixture
def server(only_server, cluster):
    in_rotation(only_server, 2)
    with only_server.connect() as c:
        c("FLUSHALL")
    cluster.follow()
    return only_server


def in_rotation(server, n):
    with server.connect() as c:
        wait.until(lambda: info(c)["connected_slaves"] == str(n), f"{n} replicas are read from")


def info(c, section="replication"):
    return dict(line.split(":", 1) for line in c("INFO", section).decode().split("\r\n") if ":" in line)


def plain(c, *calls):
    """What a pipeline is answered."""
    return [reply.plain() for reply in c.pipeline(calls)]


def served(c):
    """How many reads of each mode each place has answered."""
    lines = {k: v for k, v in info(c).items() if k.startswith("larder_reads_")}
    return {k[13:]: {place: int(n) for place, n in (pair.split("=") for pair in v.split(","))} for k, v in lines.items()}


@contextlib.contextmanager
def standing_still(cluster):
    """Nothing is replayed meanwhile."""
    cluster.pause(0)
    cluster.pause(1)
    try:
        yield
    finally:
        cluster.resume(0)
        cluster.resume(1)


def test_pipelines_of_all_modes_answer_in_order(server, cluster):
    with server.connect() as c:
        c("CONFIG", "RESETSTAT")
        c("SET", "fixed", "value")
        cluster.follow()
        calls, expected, n = [], [], 0
        for i in range(1000):
            mode = MODES[i % len(MODES)]
            kind = i % 5
            if kind == 0:
                n += 1
                calls.append(("INCR", "n"))
                expected.append(n)
            elif kind == 1:
                calls.append(("PING", str(i)))
                expected.append(str(i).encode())
            elif kind == 2:
                calls.append(("GET", "n"))
                expected.append(str(n).encode())
            else:
                calls.append(("LARDER.READ", *mode.split(), "GET", "fixed"))
                expected.append(b"value")
        assert plain(c, *calls) == expected
        counts = served(c)
        for mode in ("bounded", "eventual"):
            assert sum(counts[mode].values()) == 100 and counts[mode]["primary"] == 0, counts
        for mode, n in ("strong", 300), ("session", 100):  # behind its own writes a session reads from the primary
            assert counts[mode] == {"primary": n, "replica1": 0, "replica2": 0, "memory": 0}
    with server.connect() as c:
        read = ("LARDER.READ", "SESSION", "GET", "fixed")
        assert plain(c, *[read] * 20) == [b"value"] * 20
        assert served(c)["session"]["primary"] == 100


def test_a_session_reads_what_it_has_written(server, cluster):
    with standing_still(cluster), server.connect() as c:
        c("LARDER.CONSISTENCY", "SESSION")
        for i in range(100):
            c("SET", "k", str(i))
            assert c("GET", "k") == str(i).encode()
            assert plain(c, ("SET", "k", f"{i}b"), ("GET", "k")) == [b"OK", f"{i}b".encode()]


def test_a_session_never_goes_back(server, cluster):
    """One replica is behind: a client that has seen what the other has is not read to from there."""
    cluster.pause(0)
    try:
        with server.connect() as writer, server.connect() as reader:
            reader("LARDER.CONSISTENCY", "SESSION")
            seen = -1
            for i in range(300):
                writer("SET", "counter", str(i))
                now = int(reader("GET", "counter") or -1)
                assert now >= seen
                seen = now
    finally:
        cluster.resume(0)


def test_functions_and_scripts_are_those_of_the_snapshot(server, cluster):
    """Reads that alternate between databases with the same libraries do not read those each time."""
    code = "#!lua name=lib\nredis.register_function{{function_name='f', callback=function(keys) return {} end, flags={{'no-writes'}}}}"

    def results(c):
        return [r.value if r.is_error else r.plain() for r in c.pipeline(
            [("LARDER.READ", *mode.split(), *call) for mode in MODES for call in (("FCALL_RO", "f", 1, "k"), ("EVALSHA_RO", sha, 0))]
        )]  # fmt: skip

    with server.connect() as c, server.connect() as other:
        c("FUNCTION", "FLUSH")
        c("FUNCTION", "LOAD", code.format(1))
        sha = c("SCRIPT", "LOAD", "return 7")
        cluster.follow()
        assert results(other) == [1, 7] * 4
        other.pipeline([("LARDER.READ", "EVENTUAL", "FCALL_RO", "f", 1, "k")] * 5)
        # Rows that nobody reads again may be gone.
        row = "SELECT k.id FROM larder_key AS k WHERE k.db = 2147483647 AND k.key = 'functions'"
        server.store.query(f"DELETE FROM larder_hash WHERE id = ({row})")
        cluster.follow()
        for _ in range(10):
            assert other("FCALL_RO", "f", 1, "k") == other("LARDER.READ", "EVENTUAL", "FCALL_RO", "f", 1, "k") == 1
        c("FUNCTION", "FLUSH")
        c("FUNCTION", "LOAD", code.format(1))
        cluster.follow()
        with standing_still(cluster):
            c("FUNCTION", "LOAD", "REPLACE", code.format(2))
            assert other("FCALL_RO", "f", 1, "k") == 2
            assert other("LARDER.READ", "EVENTUAL", "FCALL_RO", "f", 1, "k") == 1, "a replica that has not replayed it"
            assert other("FCALL_RO", "f", 1, "k") == 2
        cluster.follow()
        assert results(other) == [2, 7] * 4


def test_transactions_are_strong(server, cluster):
    with standing_still(cluster), server.connect() as c, server.connect() as other:
        c("LARDER.CONSISTENCY", "EVENTUAL")
        other("SET", "k", "fresh")
        assert plain(c, ("MULTI",), ("GET", "k"), ("EXEC",), ("GET", "k")) == [b"OK", b"QUEUED", [b"fresh"], None]


BOTH = "return {redis.call('GET', KEYS[1] or 'a'), redis.call('GET', 'b'), #redis.call('KEYS', '*')}"


@pytest.mark.parametrize("keys", [(1, "a"), (0,)], ids=["declared", "undeclared"])
def test_scripts_that_only_read_are_read_as_all_else(server, cluster, keys):
    """From a replica, all of the script from one; those that may write from the primary, in every mode."""
    with server.connect() as c, server.connect() as other:
        library = "#!lua name=l\nredis.register_function{function_name='both', callback=function(KEYS)"
        other("FUNCTION", "LOAD", "REPLACE", f"{library} {BOTH} end, flags={{'no-writes'}}}}")
        sha = other("SCRIPT", "LOAD", BOTH)
        other("MSET", "a", "old", "b", "old")
        cluster.follow()
        old, new = [b"old", b"old", 2], [b"new", b"new", 2]
        only_read = [("EVAL_RO", BOTH, *keys), ("EVALSHA_RO", sha, *keys), ("FCALL_RO", "both", *keys)]
        may_write = [("EVAL", BOTH, *keys), ("EVALSHA", sha, *keys), ("FCALL", "both", *keys)]
        with standing_still(cluster):
            other("MSET", "a", "new", "b", "new")
            for mode in ("EVENTUAL", "BOUNDED 60000", "SESSION"):
                reading = [("LARDER.READ", *mode.split(), *call) for call in only_read]
                assert plain(c, *reading) == [old] * 3, mode
            assert plain(c, *(("LARDER.READ", "STRONG", *call) for call in only_read)) == [new] * 3
            assert plain(c, ("LARDER.CONSISTENCY", "EVENTUAL"), *only_read, *may_write)[1:] == [old] * 3 + [new] * 3
            assert plain(c, ("MULTI",), *only_read, ("EXEC",))[-1] == [new] * 3
            for call in may_write:  # what may write is not for LARDER.READ
                assert c.call("LARDER.READ", "EVENTUAL", *call).is_error
        with server.connect() as own:
            own("LARDER.CONSISTENCY", "SESSION")
            with standing_still(cluster):
                for i in range(10):
                    own("EVAL", "return redis.call('SET', 'a', ARGV[1])", 0, i)  # it sees what it has written
                    assert own("EVAL_RO", BOTH, *keys)[0] == str(i).encode()


@pytest.mark.parametrize("mode", ["EVENTUAL", "BOUNDED 60000"])
@pytest.mark.parametrize("pipelined", [False, True])
def test_what_is_read_behind_a_watch_is_what_is_watched(server, cluster, mode, pipelined):
    """Replicas have not replayed the last write: who reads there what it watches on the primary would lose it."""
    with server.connect() as other, server.connect() as c:
        other("SET", "n", "1")
        cluster.follow()
        c("LARDER.CONSISTENCY", *mode.split())
        assert c("GET", "n") == b"1"
        with standing_still(cluster):
            other("SET", "n", "5")
            calls = [("WATCH", "n"), ("GET", "n")]
            assert (plain(c, *calls) if pipelined else [c(*call) for call in calls]) == [b"OK", b"5"]
            c("MULTI")
            c("SET", "n", "6")
            assert c("EXEC") == [b"OK"]
            assert c("GET", "n") == b"1"


def test_a_write_that_changes_nothing_has_seen_something(server, cluster):
    """What a refused SET has found there is found by the session's next read, too."""
    with server.connect() as other:
        other("SET", "before", "v")
        cluster.follow()
        with standing_still(cluster):
            other("SET", "k", "v")
            for refused in (("SET", "k", "w", "NX"), ("RENAMENX", "before", "k"), ("EXPIRE", "k", "100", "XX")):
                with server.connect() as c:
                    c("LARDER.CONSISTENCY", "SESSION")
                    assert c("GET", "before") == b"v"
                    assert c(*refused) in (None, 0)
                    assert c("GET", "k") == b"v"


def test_replicas_that_hang_cost_one_timeout(server, cluster):
    """Both of them at once, before anybody knows."""
    with server.connect() as c:
        c("SET", "k", "v")
        cluster.follow()
        reads = [("LARDER.READ", *mode.split(), "GET", "k") for mode in MODES]
        assert plain(c, *reads) == [b"v"] * 4
        cluster.freeze(0)
        cluster.freeze(1)
        try:
            for i in range(10):
                begun = time.monotonic()
                assert plain(c, *reads, ("INCR", "n"), *reads) == [b"v"] * 4 + [i + 1] + [b"v"] * 4
                assert time.monotonic() - begun < (TIMEOUT_MS + 400) / 1000
        finally:
            cluster.thaw(0)
            cluster.thaw(1)


def test_a_replica_that_is_killed_under_load(server, cluster):
    """No client notices anything."""
    wrong, over = [], threading.Event()

    def read(mode):
        with server.connect() as c:
            c("LARDER.CONSISTENCY", *mode.split())
            while not over.is_set():
                replies = plain(c, *[("GET", "k"), ("INCR", f"n{mode[:3]}"), ("GET", "k")] * 4)
                wrong.extend((mode, reply) for reply in replies if reply != b"v" and not isinstance(reply, int))

    with server.connect() as c:
        c("SET", "k", "v")
        cluster.follow()
        threads = [threading.Thread(target=read, args=(mode,)) for mode in MODES]
        for thread in threads:
            thread.start()
        try:
            cluster.kill(0)
            wait.until(lambda: info(c)["connected_slaves"] == "1", "it is noticed")
            cluster.restart(0)
            in_rotation(server, 2)
        finally:
            over.set()
            for thread in threads:
                thread.join()
    assert not wrong, wrong[:5]


def test_while_the_primary_is_away(server, cluster):
    """Replicas answer what they may; what needs the primary is held, then told so."""
    with server.connect() as c:
        c("SET", "k", "v")
        cluster.follow()
        cluster.kill(cluster.primary)
        try:
            numbers = itertools.count()  # what nobody has read is not in memory
            wait.until(lambda: not c.call("LARDER.READ", "EVENTUAL", "GET", f"none:{next(numbers)}").is_error, "a replica answers")
            begun = time.monotonic()
            read = ("LARDER.READ", "EVENTUAL", "GET", "k")
            first, second, third = plain(c, read, ("SET", "k", "w"), read)
            assert first == third == b"v"
            assert str(second).startswith("IOERR"), second
            assert time.monotonic() - begun < 5
            wait.until(lambda: c.call("LARDER.READ", "BOUNDED", "300", "GET", "k").raw.startswith(b"-STALE"),
                       "a bound that cannot be met is told")
        finally:
            cluster.restart(cluster.primary)
        wait.until(lambda: c.call("SET", "k", "w").raw == b"+OK\r\n", "the primary is back")


def test_a_primary_that_hangs(server, cluster):
    """Once that is known, neither writers nor the sweeper nor clients that wait for keys keep replicas from answering."""
    read = ("LARDER.READ", "EVENTUAL", "GET", "k")
    with server.connect() as c, server.connect() as blocked, server.connect() as writer:
        c("SET", "k", "v")
        cluster.follow()
        blocked.send(encode(("BLPOP", "list", "0")))
        wait.until(lambda: info(c, "clients")["blocked_clients"] == "1", "a client waits")
        told = server.log_text().count("the primary is away")
        cluster.freeze(cluster.primary)
        try:
            wait.until(lambda: server.log_text().count("the primary is away") > told, "it is noticed")
            assert c(*read) == b"v"  # what the worker was waiting for then is over
            writer.send(encode(("SET", "k", "w")))
            for _ in range(30):
                begun = time.monotonic()
                assert c(*read) == b"v"
                assert time.monotonic() - begun < 0.5
                time.sleep(0.1)
        finally:
            cluster.thaw(cluster.primary)
        wait.until(lambda: c.call("SET", "k", "x").raw == b"+OK\r\n", "the primary is back")
        c("RPUSH", "list", "item")
        assert blocked.read().plain() == [b"list", b"item"]


def test_what_waits_for_a_primary_that_hangs_is_given_up(shared_fleet, cluster):
    """A strong read is on its way when it hangs: nobody waits for store-timeout."""
    data = cluster.data()
    options = ("--workers", "1", "--failover-wait", "1s", "--cache-memory", "0", "--store-timeout", "100s")
    store = Behind(data, cluster.url(data.name, cluster.primary))
    server = shared_fleet.larder(*options, *cluster.replica_options(data.name), data=store)
    in_rotation(server, 2)
    with server.connect() as c, server.connect() as strong:
        c("SET", "k", "v")
        cluster.follow()
        cluster.freeze(cluster.primary)
        try:
            strong.send(encode(("GET", "k")))
            begun = time.monotonic()
            assert c("LARDER.READ", "EVENTUAL", "GET", "k") == b"v"
            assert strong.read().is_error
            assert time.monotonic() - begun < 50
        finally:
            cluster.thaw(cluster.primary)
        wait.until(lambda: c.call("SET", "k", "x").raw == b"+OK\r\n", "the primary is back")
    server.stop()


def test_a_short_absence_is_a_pause(server, cluster):
    said = []

    def write():
        with server.connect() as other:
            said.append(plain(other, ("INCR", "n"), ("GET", "k")))

    with server.connect() as c:
        c("CONFIG", "SET", "failover-wait", "30s")
        c("SET", "k", "v")
        told = server.log_text().count("the primary is away")
        writer = threading.Thread(target=write)
        cluster.kill(cluster.primary)
        try:
            writer.start()
            wait.until(lambda: server.log_text().count("the primary is away") > told, "it is noticed")
            assert not said
        finally:
            cluster.restart(cluster.primary)
            writer.join()
    assert said == [[1, b"v"]]
