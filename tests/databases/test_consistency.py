"""Reads in every mode, over both protocols, through several servers on a primary with two replicas, while all of them fail:
no read breaks its mode's promise (consistency.py). LARDER_CONSISTENCY_SECONDS makes it longer; LARDER_SEED repeats the
order of the faults."""

import os
import random
import time

import pytest

from harness import wait
from harness.replicas import KINDS

from .consistency import Failover, problems
from .mode_load import ModeCrowd
from .replica_faults import ReplicaFaults, Stand

SECONDS = float(os.environ.get("LARDER_CONSISTENCY_SECONDS", 0))  # no longer than every fault takes once
TIMES = int(os.environ.get("LARDER_CONSISTENCY_TIMES", 1))  # clients in each mode and way
# The second server has next to no memory for what it read.
OPTIONS = [("--replica-max-lag", "2s"), ("--replica-max-lag", "2s", "--cache-memory", "64kb")]


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def cluster(request):
    with KINDS[request.param](2) as cluster:
        yield cluster


def all_modes_serve(crowd):
    """Every client has read something more."""
    before = [c.done["r"] for c in crowd.clients]
    wait.until(
        lambda: crowd.wrong or all(c.done["r"] > n + 5 for c, n in zip(crowd.clients, before)), "every mode is served", 60,
    )  # fmt: skip


def test_careless_clients_are_found(cluster, fleet):
    """What reads any replica and claims more is found: the load would find it in Larder, too."""
    with Stand(fleet, cluster, 1) as stand:
        for i in (0, 1):
            cluster.delay(i, 1000)
        with ModeCrowd(stand.servers, careless=True) as crowd:
            wait.until(lambda: all_kinds_are_found(crowd), "broken promises of every mode are found", 30, 0.5)
        for i in (0, 1):
            cluster.delay(i, 0)


def all_kinds_are_found(crowd):
    found = "\n".join(problems([op for c in crowd.clients for op in list(c.ops)]))
    return all(f"mode='{mode}'" in found for mode in ("session", "bounded")) and "strong reads of" in found


def test_no_promise_is_broken_while_everything_fails(cluster, fleet):
    seed = int(os.environ.get("LARDER_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    with Stand(fleet, cluster, options=OPTIONS) as stand, ReplicaFaults(stand, seed, SECONDS) as faults:
        if not SECONDS:
            faults.be_brief()
        with ModeCrowd(stand.servers, TIMES, seed) as crowd:
            begun = time.monotonic()
            all_modes_serve(crowd)
            faults.run()
            all_modes_serve(crowd)
            print(f"{len(faults.done)} faults in {time.monotonic() - begun:.0f} s; {crowd.report()}")
        crowd.check()
        for server in stand.servers:
            server.stop()


def promote_with_loss(cluster, meanwhile):
    """The first replica takes over, without what was acknowledged while meanwhile() ran: (safe, killed)."""
    safe = time.monotonic()
    cluster.follow()
    for i in reversed(range(len(cluster.replicas))):  # no other has more
        cluster.link(i).tell("refuse")
    meanwhile()
    killed = time.monotonic()
    cluster.primary.kill()
    dead = time.monotonic()
    former = cluster.promote(0)
    return Failover(safe, killed, dead), former


def test_a_hung_replica_costs_no_more_than_its_timeout(cluster, fleet):
    with Stand(fleet, cluster, 1, options=[("--replica-timeout", "300ms")]) as stand:
        with stand.servers[0].connect() as c:
            c("SET", "k", "v")
            c("READONLY")
            wait.until(lambda: c("GET", "k") == b"v", "a replica has it")
            cluster.freeze(0)
            try:
                took = []
                for _ in range(200):
                    begun = time.monotonic()
                    assert c("GET", "k") == b"v"
                    took.append(time.monotonic() - begun)
            finally:
                cluster.thaw(0)
            assert max(took) < 1.5  # 300 ms, on a machine that has other things to do
            assert sum(t > 0.2 for t in took) <= 4  # once for each worker and the monitor at most


def test_no_promise_is_broken_by_a_failover_that_loses_writes(cluster, fleet):
    """The last test on this cluster."""
    with Stand(fleet, cluster, options=OPTIONS, failover=True) as stand:
        early, late = Tokens(stand, b"early"), None
        with ModeCrowd(stand.servers, TIMES) as crowd:
            all_modes_serve(crowd)

            def meanwhile():
                nonlocal late
                late = Tokens(stand, b"late")
                time.sleep(0.3)

            failover, former = promote_with_loss(cluster, meanwhile)
            all_modes_serve(crowd)
        print(crowd.report())
        crowd.check(failover)
        assert crowd.sums()["refused LOSTWRITES"] > 0
        early.go_on()
        late.are_lost()
        with stand.servers[0].connect() as c:
            assert c("GET", "early") == b"1" and c("GET", "late") is None
        an_old_primary_is_passed_over(cluster, stand, former)
        for server in stand.servers:
            server.stop()


class Tokens:
    """A session of each kind that has written something."""

    def __init__(self, stand, name):
        self.stand, self.name = stand, name
        self.resp = stand.servers[0].connect()
        self.resp("LARDER.CONSISTENCY", "SESSION")
        self.resp("SET", name, 1)
        self.token = self.resp("LARDER.TOKEN")
        self.unasked = stand.servers[0].connect()
        self.unasked("LARDER.CONSISTENCY", "SESSION")
        self.unasked("SET", name, 1)
        self.goes_on = stand.servers[0].connect()
        self.goes_on("LARDER.CONSISTENCY", "SESSION")
        self.goes_on("SET", name, 1)
        self.waits = stand.servers[0].connect()
        self.waits("SET", name, 1)
        with stand.servers[1].http() as http:
            answer = http.put(f"/keys/{name.decode()}-http", b"1", headers={"Larder-Consistency": "session"})
            self.http_token = answer.headers["Larder-Token"]

    def go_on(self):
        assert self.resp("GET", self.name) == self.unasked("GET", self.name) == b"1"
        for server in self.stand.servers:
            for token in (self.token.decode(), self.http_token):
                with server.http() as http:
                    headers = {"Larder-Consistency": "session", "Larder-Token": token}
                    assert http.get(f"/keys/{self.name.decode()}-http", headers=headers).status == 200
                with server.connect() as c:
                    c("LARDER.CONSISTENCY", "SESSION")
                    c("LARDER.TOKEN", token)
                    assert c("GET", self.name) == b"1"

    def are_lost(self):
        """Whoever asks with them is told, and nobody else."""
        self.goes_on("SET", "in between", 1)  # says nothing of what was lost; the next read does
        for connection in (self.resp, self.unasked, self.goes_on):
            assert connection.error("GET", self.name).startswith("LOSTWRITES ")
            assert connection("GET", self.name) is None  # it was told
        assert self.goes_on("GET", "in between") == b"1"
        self.waits("SET", "in between", 2)
        assert self.waits.error("WAIT", 1, 10).startswith("LOSTWRITES ")
        self.waits("SET", "in between", 3)
        assert self.waits("WAIT", 1, 30000) == 1
        for server in self.stand.servers:
            for token in (self.token.decode(), self.http_token):
                with server.http() as http:
                    headers = {"Larder-Consistency": "session", "Larder-Token": token}
                    answer = http.get(f"/keys/{self.name.decode()}-http", headers=headers)
                    assert (answer.status, answer.error) == (409, "lost_writes")
                with server.connect() as c:
                    assert c.error("LARDER.TOKEN", token).startswith("LOSTWRITES ")
                    c("SET", "told", 1)


def an_old_primary_is_passed_over(cluster, stand, former):
    """It is the first host of the URL, and would take writes: nobody may get there."""
    former.start()
    for ways in stand.ways:
        for proxy in ways:
            proxy.tell("cut")
    for server in stand.servers:
        with server.connect() as c:
            wait.until(lambda: not c.call("SET", f"by {server.port}", 1).is_error, "it writes", 30)
            c("LARDER.CONSISTENCY", "EVENTUAL")
            for _ in range(20):
                assert c("GET", "late") is None
    found = former.query("SELECT count(*) FROM larder_key", stand.data.name)
    cluster.follow()
    with stand.servers[0].connect() as c:
        c("LARDER.CONSISTENCY", "STRONG")
        assert all(c("GET", f"by {server.port}") == b"1" for server in stand.servers)
    assert former.query("SELECT count(*) FROM larder_key", stand.data.name) == found
