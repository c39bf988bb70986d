"""The recipes for synchronous replication of docs/consistency.md, as they stand there, on real servers: a write is
acknowledged when replicas have it, and waits while they do not; a failover loses nothing."""

import re

import pytest

from harness import servers, wait
from harness.replicas import KINDS

PAGE = (servers.ROOT / "docs" / "consistency.md").read_text()


def recipes(heading):
    section = PAGE.split(f"\n### {heading}\n", 1)[1]
    return re.findall(r"```sql\n(.*?)```", re.split(r"\n##+ ", section)[0], re.S)


@pytest.fixture
def postgres():
    with KINDS["postgres"](2) as cluster:
        yield cluster


@pytest.fixture
def mariadb():
    with KINDS["mariadb"](2) as cluster:
        yield cluster


class Waiting:
    """A write that is sent, and answered when it may be."""

    def __init__(self, server, n):
        self.connection = server.connect()
        self.connection.send(b"SET written %d\r\n" % n)

    def answered(self):
        data, _ = self.connection.read_available(0.5)
        return data == b"+OK\r\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def apply(cluster, recipe):
    """Its parts go where the comments say."""
    where = [cluster.primary]
    for line in recipe.splitlines():
        if line.startswith("-- on all servers"):
            where = cluster.nodes
        elif line.startswith("-- on replicas"):
            where = cluster.replicas
        elif line.startswith("-- on the primary"):
            where = [cluster.primary]
        else:
            for node in where:
                node.query(line)


def follow_all(cluster):
    """Until the primary knows of both: what it waits for is decided then."""
    if cluster.kind == "postgres":
        asked = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
    else:
        asked = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Rpl_semi_sync_master_clients'"
    wait.until(lambda: cluster.primary.query(asked) == [["2"]], "both replicas are waited for")


def one_of_two(fleet, cluster, recipe):
    """One replica that has it is enough; with none a write waits. Then the primary dies, and the one that has it takes over."""
    apply(cluster, recipe)
    follow_all(cluster)
    data = cluster.data()
    larder = fleet.larder("--store-timeout", "30s", data=data)
    with larder.connect() as c:
        c("SET", "written", 0)
        cluster.link(0).tell("refuse")
        c("SET", "written", 1)
        cluster.link(1).tell("stall")
        with Waiting(larder, 2) as one:
            assert not one.answered()
            cluster.link(1).tell("pass")
            wait.until(one.answered, "it is acknowledged", 30)
    cluster.link(1).tell("refuse")
    cluster.primary.kill()
    larder.kill()
    cluster.promote(1)
    if cluster.kind == "postgres":
        cluster.primary.query("ALTER SYSTEM RESET synchronous_standby_names")
        cluster.primary.query("SELECT pg_reload_conf()")
    with fleet.larder(data=data).connect() as c:
        assert c("GET", "written") == b"2"


def test_postgres_received(postgres, fleet):
    one_of_two(fleet, postgres, recipes("PostgreSQL")[0])


def test_mariadb_received(mariadb, fleet):
    one_of_two(fleet, mariadb, recipes("MariaDB")[0])


def test_postgres_replayed(postgres, fleet):
    """No read on a standby misses what was acknowledged: a write waits for the one whose replay is paused."""
    apply(postgres, recipes("PostgreSQL")[1])
    follow_all(postgres)
    larder = fleet.larder("--store-timeout", "30s", data=postgres.data())
    for i in (0, 1):
        postgres.pause(i)
        with Waiting(larder, i) as one:
            assert not one.answered()
            postgres.resume(i)
            wait.until(one.answered, "it is acknowledged", 30)
