"""Where servers are in the database's log: what a failover has lost is told, an old primary is refused, and a Larder on a
standby alone serves reads until its database is promoted."""

import pytest

from harness import replicas, wait
from harness.resp import ServerError

from .faults import Behind

READONLY = "READONLY You can't write against a read only replica."


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def cluster(request):
    """For all tests: the last two of them make another node its primary."""
    with replicas.KINDS[request.param](1) as cluster:
        yield cluster


@pytest.fixture
def data(cluster):
    return cluster.data()


def on(cluster, data, *nodes):
    return Behind(data, cluster.url(data.name, *nodes))


def answered(client, *words):
    """What a command answers when the database can be reached again."""

    def ask():
        try:
            return [client(*words)]
        except ServerError as e:
            assert e.text.split()[0] in (b"IOERR", b"TRYAGAIN", b"UNCERTAIN", b"READONLY"), e

    return wait.until(ask, f"{words[0]} is answered")[0]


def data_of(cluster, data, node, key):
    """Whether a key is in the tables of a node, looked at beside Larder."""
    return node.query(f"SELECT 1 FROM larder_keys WHERE {'key' if cluster.kind == 'postgres' else '`key`'} = '{key}'", data.name)


def test_tokens_of_another_database(cluster, data, fleet):
    """With the same rows and the same positions."""
    server = fleet.larder(data=on(cluster, data))
    other = fleet.larder(data=on(cluster, cluster.data()))
    with server.connect() as client, other.connect() as stranger:
        client("SET", "k", "v")
        assert stranger.error("LARDER.TOKEN", client("LARDER.TOKEN")).startswith("FOREIGNTOKEN")


def test_a_server_that_may_only_read(cluster, data, fleet):
    """A role without rights to write, on a primary: it writes nothing, and starts."""
    fleet.larder(data=on(cluster, data, cluster.primary)).stop()
    if cluster.kind == "postgres":
        cluster.primary.query(
            "CREATE ROLE looks LOGIN; GRANT USAGE ON SCHEMA public TO looks;"
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO looks",
            data.name,
        )
    else:
        cluster.primary.query(
            f"CREATE USER looks@'127.0.0.1'; GRANT SELECT ON {data.name}.* TO looks@'127.0.0.1';"
            "GRANT SELECT ON mysql.gtid_slave_pos TO looks@'127.0.0.1'"
        )
    url = cluster.url(data.name, cluster.primary).replace(f"//{cluster.user}@", "//looks@")
    server = fleet.larder("--read-only", "yes", data=Behind(data, url))
    with server.connect() as client:
        assert client("GET", "k") is None
        assert client("DBSIZE") == 0
        assert client.error("SET", "k", "v") == READONLY


def test_a_server_on_a_replica_alone(cluster, data, fleet):
    writer = fleet.larder(data=on(cluster, data, cluster.primary))
    with writer.connect() as client:
        client("SET", "k", "v")
        client("HSET", "h", "f", "v")
        client("SET", "dead", "v", "PX", "1")
        cluster.follow()
        there = on(cluster, data, cluster.replicas[0])
        reader = fleet.larder("--read-only", "auto", data=there)
        never = fleet.larder("--read-only", data=there)
        with reader.connect() as reads, never.connect() as only_reads:
            for c in (reads, only_reads):
                assert c("GET", "k") == b"v"
                assert c("HGETALL", "h") == [b"f", b"v"]
                assert c("GET", "dead") is None
                assert c.error("SET", "k", "w") == READONLY
                assert c.error("DEL", "dead") == READONLY
                assert c.error("BLPOP", "l", "1") == READONLY
                assert c("ROLE")[0] == b"slave"
                assert b"role:slave" in c("INFO", "replication")
            token = client("SET", "k", "x") and client("LARDER.TOKEN")
            cluster.follow()
            assert only_reads("LARDER.TOKEN", token) == b"OK"
            assert only_reads("LARDER.READ", "SESSION", "GET", "k") == b"x"
            cluster.pause(0)
            token = client("SET", "k", "y") and client("LARDER.TOKEN")
            assert only_reads("LARDER.TOKEN", token) == b"OK"
            assert only_reads.error("LARDER.READ", "SESSION", "GET", "k").startswith("STALE")
            assert reads("GET", "k") == b"x"
            cluster.resume(0)
            cluster.follow()
            writer.stop()
            cluster.kill(cluster.first)
            cluster.promote(0)
            assert answered(reads, "SET", "k", "z") == b"OK"
            assert reads("GET", "k") == b"z"
            assert reads("ROLE")[0] == b"master"
            assert only_reads("GET", "k") == b"z"
            assert only_reads.error("SET", "k", "w") == READONLY
    assert "cannot be written" not in never.log_text()


def test_what_a_failover_has_lost_is_told(cluster, data, fleet):
    """The replica, rebuilt from what the test before this has left, has not received the last write when it takes over; the old primary comes back as if nothing had
    happened."""
    cluster.rebuild(cluster.first)
    behind = cluster.replicas.index(cluster.first)
    former = cluster.primary
    cluster.follow(behind)
    server = fleet.larder(data=on(cluster, data))
    with server.connect() as client:
        client("SET", "kept", "1")
        kept = client("LARDER.TOKEN")
        cluster.follow(behind)
        cluster.link(behind).tell("refuse")
        client("SET", "gone", "1")
        lost = client("LARDER.TOKEN")
        cluster.kill(former)
        cluster.promote(behind)
        assert answered(client, "GET", "kept") == b"1"
        assert client("GET", "gone") is None
        assert client("LARDER.TOKEN", kept) == b"OK"
        assert client.error("LARDER.TOKEN", lost).startswith("LOSTWRITES")
        with server.connect() as other:  # the first one has still to be told what it has lost
            assert answered(other, "SET", "after", "1") == b"OK"  # its worker may still be on its way there
            after = other("LARDER.TOKEN")
        former.start()  # it knows nothing of all this, and can be written to
        cluster.kill(behind)
        client.error("SET", "k", "v")
        wait.until(lambda: "is an old primary" in server.log_text(), "the old primary is refused")
        assert data_of(cluster, data, former, "gone")
        cluster.restart(behind)
        assert answered(client, "SET", "k", "v") == b"OK"
        assert client("LARDER.TOKEN", after) == b"OK"
