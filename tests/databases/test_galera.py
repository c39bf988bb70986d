"""Larders on the nodes of a Galera cluster: three real ones, on this machine. LARDER_HOSTILE_SECONDS makes the faults last
longer, LARDER_SEED repeats their order."""

import contextlib
import os
import random
import threading
import time

import pytest

from harness import databases, galera, servers, wait

from .faults import Faults, freeze
from .load import Crowd
from .test_shared_tables import Writers, again, number, whole

SECONDS = float(os.environ.get("LARDER_HOSTILE_SECONDS", 0))  # no longer than every fault takes once
CLIENTS = 32  # enough for every role
LEAST = 200  # pieces of work that a quiet run waits for


@pytest.fixture(scope="module")
def cluster():
    with galera.Cluster() as cluster:
        yield cluster


class OnNodes:
    """A database as the nodes of a cluster have it, from this one on."""

    kind = "mariadb"

    def __init__(self, cluster, name, first=0, alone=False, **options):
        self.server = cluster.nodes[first]
        self.name = name
        self.url = self.server.url(name, **options) if alone else cluster.url(name, first, **options)

    def query(self, sql):
        return self.server.query(sql, self.name)


@pytest.fixture
def name(cluster):
    """A database with tables."""
    name = cluster.new_database()
    assert servers.run(["migrate", "--store", cluster.nodes[0].url(name)]).returncode == 0
    return name


@pytest.fixture
def several(fleet, cluster, name):
    """A Larder for each node, which can go on with the others."""
    return [fleet.larder("--store-timeout", "5s", data=OnNodes(cluster, name, i)) for i in range(len(cluster.nodes))]


def together(*works):
    """Runs them in threads; what they return."""
    results = [None] * len(works)

    def run(i):
        results[i] = works[i]()

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    return results


def info(server):
    with server.connect() as c:
        return dict(line.split(":", 1) for line in c("INFO", "everything").decode().splitlines() if ":" in line)


# --- what is told, and what is refused


@pytest.mark.parametrize(
    "mode, why", [("exclusive", "no server can have the tables for itself"), ("shared", "has no tables of this program")]
)
def test_what_is_refused(fleet, cluster, mode, why):
    """One server alone, and a database whose tables a server would have to make."""
    server = fleet.new(servers.Larder, data=OnNodes(cluster, cluster.new_database(), alone=True, mode=mode))
    with pytest.raises(servers.StartError, match=why):
        server.start()
    server.process = None


def test_a_server_tells_that_its_database_is_a_cluster(several):
    for i, server in enumerate(several):
        assert info(server)["store_engine"].endswith(" galera")
        assert f'msg="connected to a node of a Galera cluster" node=node{i} state=Synced size=3' in server.log_text()


def test_a_cluster_takes_no_replicas(fleet, cluster, name):
    server = fleet.new(servers.Larder, "--replica", cluster.nodes[1].url(name), data=OnNodes(cluster, name))
    with pytest.raises(servers.StartError, match="a Galera cluster has no positions to compare replicas by"):
        server.start()
    server.process = None


# --- nothing is lost between nodes


def test_increments_on_all_nodes(several):
    """Of one key by everybody, and of many in batches that have some in common."""
    keys = [f"n:{i}" for i in range(30)]

    def count(server):
        def work():
            with server.connect(timeout=60) as c:
                for _ in range(40):
                    assert not c.call("INCR", "one").is_error
                    assert not any(r.is_error for r in c.pipeline([("INCR", k) for k in random.sample(keys, 10)]))

        return work

    together(*(count(server) for server in several for _ in range(2)))
    for server in several:
        with server.connect() as c:
            assert c("GET", "one") == b"240"
            assert sum(int(v) for v in c("MGET", *keys)) == 2400
    assert sum(int(info(server)["conflicts"]) for server in several) > 0


def test_what_is_only_read_is_certified_too(several):
    """Each of two transactions writes what the other reads: at least one of them sees what the other has written. Keys
    that are missing and keys that are there."""
    with several[0].connect(timeout=60) as one, several[1].connect(timeout=60) as other:

        def crossing(c, mine, its):
            return lambda: c.pipeline([("MULTI",), ("SET", mine, 1), ("GET", its), ("EXEC",)])[-1].plain()[1]

        for round in range(60):
            a, b = f"a:{round}", f"b:{round}"
            if round % 2:
                one("MSET", a, 0, b, 0)
            seen = together(crossing(one, a, b), crossing(other, b, a))
            assert b"1" in seen, f"round {round}: {seen}"


def test_whole_databases_change_while_all_write(several):
    """A FLUSHALL, or a SWAPDB, is before or after each write: what was acknowledged after it is there."""
    stop = threading.Event()

    def write(number):
        def work():
            written = []
            with several[number].connect(timeout=60) as c:
                while not stop.is_set():
                    written.append(f"{number}:{len(written)}")
                    assert c("SET", written[-1], "x") == b"OK"
            return written

        return work

    def flush():
        with several[0].connect(timeout=60) as c:
            for _ in range(3):
                wait.until(lambda: not c.call("FLUSHALL").is_error, "all is flushed", 30)
                wait.until(lambda: c("DBSIZE") > 5, "more is written", 30)
        stop.set()

    _, *written = together(flush, write(1), write(2))
    with several[2].connect() as c:
        there = {key.decode() for key in c("KEYS", "*")}
        assert len(there) == c("DBSIZE")
        for keys in written:  # a flush takes the first ones of each writer
            left = [key in there for key in keys]
            assert left == sorted(left) and left[-1]


def test_applications_write_on_any_node(several, cluster, name):
    """larder_set on two nodes, while servers make keys: numbers of rows do not meet, and a call that is refused has done
    nothing."""
    keys = 40

    def call(node):
        def work():
            with node.session(name) as session:
                for i in range(keys):
                    retry(lambda n=i: session(f"CALL larder_set('sql:{node.number}:{n}', 'x', NULL)"))

        return work

    refused = []

    def retry(action):
        """As an application does when it meets a deadlock."""
        while True:
            try:
                return action()
            except databases.QueryError as e:
                refused.append(e.text)
                assert "Deadlock" in e.text and len(refused) < 50 * keys, refused

    def make(server):
        def work():
            with server.connect(timeout=60) as c:
                for i in range(keys):
                    assert c("SET", f"made:{server.port}:{i}", "x") == b"OK"

        return work

    together(*(call(node) for node in cluster.nodes[1:]), *(make(server) for server in several[:2]))
    with several[2].connect() as c:
        assert len(c("KEYS", "made:*")) == len(c("KEYS", "sql:*")) == 2 * keys
        assert c("DBSIZE") == 4 * keys
    several[0].check()


def test_nothing_is_wrong_while_nothing_fails(several):
    with Crowd(several, CLIENTS) as crowd:
        wait.until(lambda: crowd.acknowledged() > 10 * LEAST or crowd.problems, "work is done", 120)
    print(crowd.report())
    assert not crowd.findings()
    assert not any(w.done["failed"] or w.done["unknown"] for w in crowd.workloads)
    several[0].check()


# --- nodes that are not well


def test_a_server_leaves_a_node_that_is_desynchronized(fleet, cluster, name):
    free, bound = (fleet.larder("--store-timeout", "2s", data=OnNodes(cluster, name, 1, alone)) for alone in (False, True))
    with free.connect() as c, bound.connect() as waits:
        assert c("SET", "k", 1) == waits("SET", "j", 1) == b"OK"
        cluster.nodes[1].query("SET GLOBAL wsrep_desync = ON")
        try:
            wait.until(lambda: not c.call("INCR", "k").is_error and "node=node2" in free.log_text(), "it goes on elsewhere")
            wait.until(lambda: waits.call("INCR", "j").is_error, "it waits")
        finally:
            cluster.nodes[1].query("SET GLOBAL wsrep_desync = OFF")
        wait.until(lambda: not waits.call("INCR", "j").is_error, "it goes on")


class NodeFaults(Faults):
    """One node at a time is not well; the others are enough. The next one not before the cluster is whole again: two of
    three that are missing, be it that the others have not noticed yet, would end it."""

    def choose(self, r):
        self.site.cluster.whole()
        return r.choice(self.site.cluster.nodes)

    def kill_node(self, r):
        node = self.choose(r)
        node.kill()
        time.sleep(r.uniform(0, 1))
        node.start()

    def stop_node(self, r):
        node = self.choose(r)
        node.stop()
        node.start()

    def freeze_node(self, r):
        """For a moment, or until the others go on without it."""
        node = self.choose(r)
        freeze([node.process.pid], r.choice([r.uniform(0.1, 0.5), r.uniform(3, 5)]))

    def isolate_node(self, r):
        node = self.choose(r)
        node.isolate()
        time.sleep(r.uniform(0.5, 4))
        node.isolate(False)

    def desynchronize_node(self, r):
        node = self.choose(r)
        node.query("SET GLOBAL wsrep_desync = ON")
        time.sleep(r.uniform(0.5, 2))
        node.query("SET GLOBAL wsrep_desync = OFF")

    SERVER = [Faults.kill_server, Faults.freeze_server]
    DATABASE = [kill_node, isolate_node, freeze_node, *([stop_node, desynchronize_node] if SECONDS else [])]


class Site:
    def __init__(self, cluster, servers):
        self.cluster = cluster
        self.servers = servers


def serves(server):
    assert server.alive, f"it has ended by itself:\n{server.log_text()[-6000:]}"
    with server.connect() as c:
        return not c.call("SET", "probe", server.port).is_error


def test_nothing_is_wrong_while_nodes_fail(several, cluster):
    """The last one here: nodes that were started again end with it."""
    seed = int(os.environ.get("LARDER_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    with NodeFaults(Site(cluster, several), seed, SECONDS) as faults:
        with Crowd(several, CLIENTS) as crowd:
            faults.run()
            cluster.whole()
            for server in several:
                wait.until(lambda: serves(server), "a server serves again by itself", 60)
            before = crowd.acknowledged()
            wait.until(lambda: crowd.acknowledged() > before + LEAST or crowd.problems, "work goes on")
        print(faults.done, crowd.report())
        assert not crowd.findings()
        for server in several:
            server.stop()
        several[0].check()


def test_scripts_and_functions_are_known_on_every_node(several):
    """Also when they are loaded on two nodes at once, beside writes on the third."""
    code = "#!lua name={0}\nredis.register_function('{0}', function(keys) return redis.call('INCR', keys[1]) end)"
    stop = threading.Event()

    def write():
        with several[2].connect() as c:
            n = 0
            while not stop.is_set():
                n = c("INCR", "steady")
            return n

    def load(node):
        with several[node].connect() as c:
            shas = [c("SCRIPT", "LOAD", f"return {i}") for i in range(5)]
            return shas, [c.call("FUNCTION", "LOAD", code.format(f"lib{i}")).is_error for i in range(5)]

    def both():
        try:
            return together(lambda: load(0), lambda: load(1))
        finally:
            stop.set()

    written, loaded = together(write, both)
    assert written > 0 and loaded[0][0] == loaded[1][0]
    assert all(a != b for a, b in zip(loaded[0][1], loaded[1][1])), "one of the two has loaded it"
    for i, server in enumerate(several):
        with server.connect() as c:
            assert [c("EVALSHA", sha, 0) for sha in loaded[0][0]] == list(range(5))
            assert [c("FCALL", f"lib{n}", 1, f"k{n}") for n in range(5)] == [i + 1] * 5
    with several[1].connect() as c:
        c("SCRIPT", "FLUSH")
        c("FUNCTION", "FLUSH")
    for server in several:
        with server.connect() as c:
            assert c("SCRIPT", "EXISTS", *loaded[0][0]) == [0] * 5 and c("FUNCTION", "LIST") == []
    several[0].check()


def test_what_scripts_take_back_stays_taken_back(several):
    """Rows that were in a node's transaction by then, beside scripts on the others; keys that were declared and not."""
    flag = "#!lua flags=rollback\n"
    script = "redis.call('INCR', KEYS[1] or 'a') redis.call('HINCRBY', 'h', 'f', 1) redis.call('KEYS', '*') redis.call('INCR', 'n') "
    keys = [(3, "a", "h", "n"), (0,)]

    def work(node):
        kept = 0
        with several[node].connect() as c:
            for i in range(20):
                vain = ("EVAL", flag + script + "return redis.error_reply('MY own')", *keys[i % 2])
                done = ("EVAL", flag + script + "return 1", *keys[i // 2 % 2])
                replies = c.pipeline([vain, done, ("MULTI",), ("INCR", "m"), vain, done, ("EXEC",)])
                assert replies[0].value == b"MY own" and replies[1].plain() == 1, replies
                assert [one.is_error for one in replies[-1].value] == [False, True, False], replies
                kept += 2
        return kept

    kept = sum(together(*(lambda node=node: work(node) for node in range(3))))
    with several[0].connect() as c:
        assert c("MGET", "a", "n", "m") == [b"%d" % kept, b"%d" % kept, b"%d" % (kept // 2)]
        assert c("HGET", "h", "f") == b"%d" % kept and c("DBSIZE") == 4
    several[0].check()


# --- tables: who writes rows is certified against who removes, renames or sweeps their table


def test_rows_go_with_their_table_on_any_node(several):
    data = several[0].store
    connections = [larder.connect() for larder in several]
    with Writers(several, threads=1) as writers:
        for i in range(18):
            a, b = connections[i % 3], connections[(i + 1) % 3]
            again(a)
            before = len(writers.put)
            wait.until(lambda before=before: len(writers.put) > before + 2, "rows are put")
            if i % 3 == 0:
                b("DEL", "t")
            elif i % 3 == 1:
                b("PEXPIRE", "t", 15)
                wait.until(lambda b=b: b("EXISTS", "t") == 0, "the table has expired")
            else:
                b("FLUSHDB")
    for c in connections:
        c.close()
    whole(data, several)


def test_rows_stay_while_their_table_is_renamed_on_another_node(several):
    data = several[0].store
    with several[0].connect() as a, several[1].connect() as b:
        again(a)
        with Writers(several, ("t", "u"), threads=1) as writers:
            for _ in range(10):
                before = len(writers.put)
                wait.until(lambda before=before: len(writers.put) > before + 2, "rows are put")
                assert b("RENAME", "t", "u") == b"OK" and a("RENAME", "u", "t") == b"OK"
        rows = a("ROW.MGET", "t", "KEYS", len(writers.put), *writers.put)
        assert all(row is not None for row in rows)
    assert number(data, "SELECT count(*) FROM larder_row") == len(set(writers.put))
    whole(data, several)
