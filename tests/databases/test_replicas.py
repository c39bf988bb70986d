"""Which replicas a Larder reads from: they leave when they are away, hang, lag or are none, and come back."""

import time

import pytest

from harness import replicas, wait

from .faults import Behind

IN = 'msg="a replica is read from"'
OUT = 'msg="a replica is not read from any more"'
NEVER = 'msg="a replica is not read from"'
LAG = 0.6


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def cluster(request):
    with replicas.KINDS[request.param](2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def data(cluster):
    return cluster.data()


def on(cluster, data, *nodes):
    return Behind(data, cluster.url(data.name, *(nodes or [cluster.primary])))


class Log:
    """What a server's log says from here on."""

    def __init__(self, server):
        self.server = server
        self.seen = len(server.log_text())

    def has(self, message):
        return [line for line in self.server.log_text()[self.seen :].splitlines() if message in line]

    def awaits(self, message, times=1):
        """The last of exactly so many lines."""
        wait.until(lambda: len(self.has(message)) >= times, f"{message} in the log")
        assert len(self.has(message)) == times
        return self.has(message)[-1]


class All(Log):
    """What it has said at all."""

    def __init__(self, server):
        super().__init__(server)
        self.seen = 0


@pytest.fixture(scope="module")
def larder(shared_fleet, cluster, data):
    """A Larder with the first replica."""
    url = cluster.url(data.name, cluster.replicas[0])
    server = shared_fleet.larder("--replica", url, data=on(cluster, data))
    yield server
    server.stop()


@pytest.fixture
def log(larder):
    """The replica is in rotation."""
    whole = All(larder)
    wait.until(lambda: [IN in line for line in whole.has('msg="a replica is ')][-1:] == [True], "the replica is read from")
    return Log(larder)


def write_until(server, condition):
    """Writes all the time: only who does not follow is behind."""
    with server.connect() as client:
        wait.until(lambda: client.call("SET", "k", "v") and condition(), "the replica's state is noticed")


def test_replay_that_pauses(cluster, larder, log):
    with larder.connect() as client:
        assert client("CONFIG", "SET", "replica-max-lag", f"{LAG * 1000:.0f}ms") == b"OK"
    cluster.pause(0)
    time.sleep(2 * LAG)  # an idle primary has nothing that the replica lacks
    assert not log.has(OUT)
    write_until(larder, lambda: log.has(OUT))
    assert "ms behind" in log.awaits(OUT)
    cluster.resume(0)
    log.awaits(IN)
    assert not log.has("the primary is away")


def test_a_receiver_that_is_dead(cluster, larder, log):
    cluster.link(0).tell("refuse")
    write_until(larder, lambda: log.has(OUT))
    assert "ms behind" in log.awaits(OUT)
    cluster.link(0).tell("pass")
    log.awaits(IN)


def test_a_replica_that_is_killed_and_rebuilt(cluster, larder, log):
    cluster.kill(0)
    log.awaits(OUT)
    with larder.connect() as client:
        assert client("SET", "k", "v") == b"OK"
    cluster.rebuild(0)
    log.awaits(IN)


def test_a_replica_that_hangs(cluster, log):
    begun = time.monotonic()
    cluster.freeze(0)
    try:
        log.awaits(OUT)
        assert time.monotonic() - begun < 5
    finally:
        cluster.thaw(0)
    log.awaits(IN)


def test_a_primary_that_goes_and_comes_back(cluster, log):
    cluster.kill(cluster.primary)
    log.awaits('msg="the primary is away"')
    assert not log.has(OUT)
    cluster.restart(cluster.primary)
    log.awaits('msg="the primary is back"')
    assert not log.has("failover")


def test_those_that_cannot_be_used_at_the_start(fleet, cluster, data):
    """One that is away comes in later; the primary itself never does."""
    cluster.kill(0)
    try:
        away, wrong = (cluster.url(data.name, node) for node in (cluster.replicas[0], cluster.primary))
        server = fleet.larder("--replica", away, "--replica", wrong, data=on(cluster, data))
        log = All(server)
        log.awaits(NEVER, 2)
        assert len(log.has("is no replica: it takes writes of its own")) == 1
        with server.connect() as client:
            assert client("SET", "k", "v") == b"OK"
    finally:
        cluster.restart(0)
    log.awaits(IN)


def test_a_failover(fleet, cluster, data):
    """The last one: the cluster has another primary then. The former one comes back as if nothing had happened, is the first
    host of the URL, and is passed over."""

    def writes():
        with server.connect() as client:
            wait.until(lambda: client.call("SET", "new", "v").raw == b"+OK\r\n", "the new primary is written to")

    server = fleet.larder(*cluster.replica_options(data.name), data=on(cluster, data, *cluster.nodes))
    log = All(server)
    log.awaits(IN, 2)
    cluster.kill(cluster.primary)
    former = cluster.promote(0)
    log.awaits('msg="failover: another server is the primary"')
    log.awaits(IN, 3)  # the one that follows the new primary
    writes()
    assert len(log.has('msg="the primary is away"')) <= 1
    former.start()
    rows = former.query("SELECT count(*) FROM larder_key", data.name)
    cluster.kill(cluster.primary)
    cluster.restart(cluster.primary)
    writes()
    assert former.query("SELECT count(*) FROM larder_key", data.name) == rows and len(log.has("failover")) == 1
