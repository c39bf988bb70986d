"""Which replicas a Larder reads from: they leave when they are away, hang, lag or are none, and come back."""

import time

import pytest

from harness import replicas, wait

from .faults import Behind

IN = 'msg="a replica is read from"'
OUT = 'msg="a replica is not read from any more"'
NEVER = 'msg="a replica is not read from"'


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def cluster(request):
    with replicas.KINDS[request.param](2) as cluster:
        yield cluster


@pytest.fixture
def data(cluster):
    return cluster.data()


def on(cluster, data, *nodes):
    return Behind(data, cluster.url(data.name, *(nodes or [cluster.primary])))


def to_first(cluster, data):
    return "--replica", cluster.url(data.name, cluster.replicas[0])


def lines(server, message):
    return [line for line in server.log_text().splitlines() if message in line]


def awaits(server, message, times):
    """The last of so many lines."""
    wait.until(lambda: len(lines(server, message)) >= times, f"{message} in the log")
    found = lines(server, message)
    assert len(found) == times, found
    return found[-1]


@pytest.fixture
def server(fleet, cluster, data):
    """A Larder whose replica is in rotation."""
    server = fleet.larder("--replica-max-lag", "1s", *to_first(cluster, data), data=on(cluster, data))
    awaits(server, IN, 1)
    return server


def write_until(server, condition):
    """Writes all the time: only who does not follow is behind."""
    with server.connect() as client:
        wait.until(lambda: client.call("SET", "k", "v") and condition(), "the replica's state is noticed")


def test_replay_that_pauses(cluster, server):
    cluster.pause(0)
    time.sleep(1.5)  # an idle primary has nothing that the replica lacks
    assert not lines(server, OUT)
    write_until(server, lambda: lines(server, OUT))
    assert "ms behind" in awaits(server, OUT, 1)
    cluster.resume(0)
    awaits(server, IN, 2)
    assert not lines(server, "the primary is away")


def test_a_receiver_that_is_dead(cluster, server):
    cluster.link(0).tell("refuse")
    write_until(server, lambda: lines(server, OUT))
    assert "ms behind" in awaits(server, OUT, 1)
    cluster.link(0).tell("pass")
    awaits(server, IN, 2)


def test_a_replica_that_is_killed_and_rebuilt(cluster, server):
    cluster.kill(0)
    awaits(server, OUT, 1)
    with server.connect() as client:
        assert client.call("SET", "k", "v").raw == b"+OK\r\n"
    cluster.rebuild(0)
    awaits(server, IN, 2)


def test_a_replica_that_hangs(cluster, server):
    begun = time.monotonic()
    cluster.freeze(0)
    try:
        awaits(server, OUT, 1)
        assert time.monotonic() - begun < 5
    finally:
        cluster.thaw(0)
    awaits(server, IN, 2)


def test_a_replica_that_is_away_at_the_start(fleet, cluster, data):
    server = None
    cluster.kill(0)
    try:
        server = fleet.larder(*to_first(cluster, data), data=on(cluster, data))
        awaits(server, NEVER, 1)
        with server.connect() as client:
            assert client.call("SET", "k", "v").raw == b"+OK\r\n"
    finally:
        cluster.restart(0)
    awaits(server, IN, 1)


def test_the_primary_is_no_replica(fleet, cluster, data):
    url = cluster.url(data.name, cluster.primary)
    server = fleet.larder("--replica", url, data=on(cluster, data))
    with server.connect() as client:
        assert client.call("SET", "k", "v").raw == b"+OK\r\n"
    assert "is no replica" in awaits(server, NEVER, 1)


def test_a_primary_that_goes_and_comes_back(cluster, server):
    cluster.kill(cluster.primary)
    awaits(server, 'msg="the primary is away"', 1)
    assert not lines(server, OUT)
    cluster.restart(cluster.primary)
    awaits(server, 'msg="the primary is back"', 1)
    assert not lines(server, "failover")


def test_a_failover(fleet, cluster, data):
    """The last one: the cluster has another primary then. The former one comes back as if nothing had happened, is the first
    host of the URL, and is passed over."""

    def writes():
        with server.connect() as client:
            wait.until(lambda: client.call("SET", "k", "v").raw == b"+OK\r\n", "the new primary is written to")

    server = fleet.larder(*cluster.replica_options(data.name), data=on(cluster, data, *cluster.nodes))
    awaits(server, IN, 2)
    cluster.kill(cluster.primary)
    former = cluster.promote(0)
    awaits(server, 'msg="failover: another server is the primary"', 1)
    awaits(server, IN, 3)  # the one that follows the new primary
    writes()
    assert len(lines(server, 'msg="the primary is away"')) <= 1
    former.start()
    cluster.kill(cluster.primary)
    cluster.restart(cluster.primary)
    writes()
    assert former.query("SELECT count(*) FROM larder_key", data.name) == [["0"]] and len(lines(server, "failover")) == 1
