"""What clients are told over a real replica: WAIT's counts, tokens that go from one connection, server and protocol to
another, headers, INFO, ROLE and metrics. What the modes promise under faults is test_hostile's and the checker's."""

import re
import threading
import time

import pytest

from harness import replicas, wait
from harness.http import HttpLarder
from harness.prometheus import parse

from .faults import Behind


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def cluster(request):
    with replicas.KINDS[request.param](1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def pair(cluster, tmp_path_factory):
    """Two Larders on one database, whose replica is in rotation."""
    data = cluster.data()
    store = Behind(data, cluster.url(data.name, cluster.primary))
    options = cluster.replica_options(data.name)
    servers = [HttpLarder(tmp_path_factory.mktemp("larder"), options, data=store).start() for _ in range(2)]
    for server in servers:
        wait.until(lambda: 'msg="a replica is read from"' in server.log_text(), "the replica is in rotation")
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture
def server(pair):
    return pair[0]


@pytest.fixture
def paused(cluster):
    """Pauses the replica; it goes on at the end at the latest."""
    cluster_paused = []

    def pause():
        cluster.pause(0)
        cluster_paused.append(True)

    def resume():
        if cluster_paused:
            cluster_paused.clear()
            cluster.resume(0)

    pause.resume = resume
    yield pause
    resume()


def not_from_primary(web, path, **headers):
    """The answer, if the replica gave it, or memory what it read there; None: it was the primary's."""
    answer = web.get(path, headers=headers)
    return None if answer.headers["Larder-Read"] == "primary" else answer


def info(client):
    text = client("INFO", "replication").decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def test_wait_counts_who_has_replayed(server, paused):
    with server.connect() as c, server.connect() as other:
        assert c("WAIT", "1", "0") == 1  # nothing was written: everybody has that
        c("SET", "k", "1")
        assert c("WAIT", "1", "0") == 1
        assert c("WAITAOF", "1", "1", "0") == [1, 1]
        paused()
        c("SET", "k", "2")
        began = time.monotonic()
        assert c("WAIT", "1", "150") == 0
        assert time.monotonic() - began >= 0.15
        assert c("WAIT", "0", "0") == 0
        assert c("WAITAOF", "1", "1", "50") == [1, 0]
        assert other("WAIT", "1", "0") == 1  # it has written nothing
        timer = threading.Timer(0.2, paused.resume)
        timer.start()
        assert c("WAIT", "1", "0") == 1
        assert other("GET", "k") == b"2"
        timer.join()


def test_wait_blocks_its_client_alone(server, paused):
    with server.connect() as c, server.connect() as other:
        paused()
        c("SET", "k", "1")
        c.send(b"WAIT 1 0\r\nGET k\r\n")
        wait.until(lambda: b"blocked_clients:1\r\n" in other("INFO", "clients"), "WAIT blocks")
        assert other("INCR", "n") == 1
        assert c.read_available(0.05) == (b"", False)
        paused.resume()
        assert c.read().plain() == 1
        assert c.read().plain() == b"1"


def test_a_token_goes_to_other_servers_and_protocols(pair, paused):
    one, two = pair
    with one.connect() as a, two.connect() as b, two.http() as web, one.http() as other:
        a("SET", "k", "old")
        assert a("WAIT", "1", "0") == 1
        old = a("LARDER.TOKEN").decode()
        paused()
        a("SET", "k", "new")
        token = a("LARDER.TOKEN").decode()
        assert token != old
        # Without it, a session reads what the replica has; with it, what was written.
        assert web.get("/get/k", headers={"Larder-Consistency": "eventual"}).json["result"] == "old"
        assert web.get("/get/k", headers={"Larder-Consistency": "session", "Larder-Token": old}).json["result"] == "old"
        answer = web.get("/get/k", headers={"Larder-Consistency": "session", "Larder-Token": token})
        assert answer.json["result"] == "new" and answer.headers["Larder-Read"] == "primary"
        assert b("LARDER.CONSISTENCY", "SESSION") == b"OK"
        assert b("GET", "k") == b"old"
        assert b("LARDER.TOKEN", token) == b"OK"
        assert b("GET", "k") == b"new"
        # From HTTP to the other server's Redis protocol.
        written = other.put("/keys/k", {"value": "newest"}, headers={"Larder-Token": ""}).headers["Larder-Token"]
        assert b("LARDER.TOKEN", written) == b"OK"
        assert b("GET", "k") == b"newest"
        paused.resume()
        answer = wait.until(
            lambda: not_from_primary(web, "/get/k", **{"Larder-Consistency": "session", "Larder-Token": written}), "it follows"
        )
        assert answer.json["result"] == "newest"
        assert re.fullmatch(r"(replica; lag|memory; age)=\d+", answer.headers["Larder-Read"])
        seen = answer.headers["Larder-Token"]
        assert b("LARDER.TOKEN", seen) == b"OK"


def test_a_pipeline_of_reads_is_a_replicas(server):
    with server.http() as web, server.connect() as c:
        c("SET", "a", "1")
        assert c("WAIT", "1", "0") == 1
        reads = [["GET", "a"], ["EXISTS", "a", "b"]]
        answer = web.post("/pipeline", reads, headers={"Larder-Consistency": "eventual"})
        assert re.match("(replica; lag|memory; age)=", answer.headers["Larder-Read"])
        assert answer.json == [{"result": "1"}, {"result": 1}]
        for path, body in (("/pipeline", [*reads, ["SET", "b", "2"]]), ("/multi-exec", reads)):
            answer = web.post(path, body, headers={"Larder-Consistency": "eventual", "Larder-Token": ""})
            assert answer.status == 200 and not (answer.headers["Larder-Read"] or "primary").startswith("replica")
            assert answer.headers["Larder-Token"]


def test_a_token_of_another_database(server, cluster, fleet):
    elsewhere = cluster.data()
    other = fleet.larder(data=Behind(elsewhere, cluster.url(elsewhere.name, cluster.primary)))
    with server.connect() as a, other.connect() as b, server.http() as web:
        b("SET", "k", "v")
        foreign = b("LARDER.TOKEN")
        reply = a.call("LARDER.TOKEN", foreign)
        assert reply.is_error and str(reply.plain()).startswith("FOREIGNTOKEN ")
        answer = web.get("/keys/k", headers={"Larder-Token": foreign.decode()})
        assert (answer.status, answer.error) == (409, "foreign_token")


def test_a_server_on_the_replica_alone(server, cluster, fleet):
    """It is a replica to clients as Redis' are; ready when it can read."""
    with server.connect() as c:
        c("SET", "there", "yes")
        assert c("WAIT", "1", "0") == 1
    name = re.search(r"/(\w+)$", server.store.url.split("?")[0]).group(1)
    there = Behind(server.store, cluster.url(name, cluster.replicas[0]))
    reader = fleet.new(HttpLarder, "--read-only", "yes", data=there).start()
    with reader.connect() as c, reader.http() as web:
        assert c("GET", "there") == b"yes"
        for command in (["WAIT", "0", "0"], ["WAIT", "x", "0"], ["WAITAOF", "0", "0", "0"]):
            reply = c.call(*command)
            assert reply.is_error and "cannot be used with replica instances" in str(reply.plain())
        hello = c("HELLO", "2")
        assert hello[hello.index(b"role") + 1] == b"replica"
        assert c("ROLE")[0] == b"slave"
        assert info(c)["role"] == "slave"
        assert web.get("/readyz").json == {"status": "ready"}
        answer = web.put("/keys/k", {"value": "v"})
        assert (answer.status, answer.error) == (503, "read_only")
        answer = web.get("/get/there", headers={"Larder-Consistency": "eventual", "Larder-Token": ""})
        assert answer.json == {"result": "yes"} and answer.headers["Larder-Token"]
        assert re.fullmatch(r"replica(; lag=\d+)?|memory; age=\d+", answer.headers["Larder-Read"])


def test_what_is_told_of_the_replica(server, cluster):
    with server.connect() as c, server.http() as web:
        c("SET", "k", "v")
        assert c("WAIT", "1", "0") == 1
        c("GET", "k")
        c("LARDER.READ", "EVENTUAL", "GET", "k")
        told = info(c)
        assert (told["role"], told["connected_slaves"], told["larder_replicas"]) == ("master", "1", "1")
        port = cluster.replicas[0].port
        assert re.fullmatch(rf"ip=127\.0\.0\.1,port={port},state=online,offset=\d+,lag=0", told["slave0"])
        assert re.search(r"connected=yes,in_rotation=yes,position=\S+,behind=\d+,lag_ms=\d+,", told["larder_replica1"])
        assert re.fullmatch(r"primary=\d+,replica1=[1-9]\d*,memory=\d+", told["larder_reads_eventual"])
        role, offset, slaves = c("ROLE")
        assert role == b"master" and offset > 0
        assert slaves[0][:2] == [b"127.0.0.1", str(port).encode()] and int(slaves[0][2]) > 0
        families = parse(web.get("/metrics").body.decode())
        assert list(families["larder_replica_in_rotation"].samples.values()) == [1]
        assert list(families["larder_replica_lag_seconds"].samples.values())[0] < 10
        assert web.get("/readyz").json == {"status": "ready", "replicas": 1, "in_rotation": 1}
        cluster.kill(0)
        try:
            wait.until(lambda: info(c)["connected_slaves"] == "0", "the replica leaves the rotation")
            assert re.search(r"in_rotation=no,.*,why=\S", info(c)["larder_replica1"])
            assert c("ROLE")[2] == []
            assert c("LARDER.READ", "EVENTUAL", "GET", "k") == b"v"
            assert c("WAIT", "1", "10") in (0, 1)
        finally:
            cluster.restart(0)
