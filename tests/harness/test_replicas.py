"""Databases with replicas, as the tests use them: each thing that can happen to a replica does happen."""

import subprocess

import pytest

from harness import wait
from harness.replicas import KINDS


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def cluster(request):
    with KINDS[request.param](2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def data(cluster):
    data = cluster.data()
    data.query("CREATE TABLE t (n INT PRIMARY KEY)")
    cluster.follow()
    return data


def rows(cluster, data, node):
    node = cluster.replicas[node] if isinstance(node, int) else node
    return [int(n) for (n,) in node.query("SELECT n FROM t ORDER BY n", data.name)]


def add(cluster, data, n):
    cluster.primary.query(f"INSERT INTO t VALUES ({n})", data.name)


def test_replay_pauses_one_alone(cluster, data):
    before = cluster.position(0)
    cluster.pause(0)
    add(cluster, data, 1)
    cluster.follow(1)
    assert rows(cluster, data, 0) == [] and rows(cluster, data, 1) == [1]
    assert cluster.position(0) == before
    cluster.resume(0)
    cluster.follow(0)
    assert rows(cluster, data, 0) == [1] and cluster.position(0) != before


def test_a_link_that_is_cut(cluster, data):
    cluster.link(1).tell("refuse")
    add(cluster, data, 2)
    cluster.follow(0)
    assert rows(cluster, data, 0) == [1, 2] and rows(cluster, data, 1) == [1]
    cluster.link(1).tell("pass")
    cluster.follow(1)


def test_a_replica_that_hangs_and_goes_on(cluster, data):
    cluster.freeze(0)
    with pytest.raises(subprocess.TimeoutExpired):
        cluster.replicas[0].query("SELECT 1", timeout=0.3)
    cluster.thaw(0)
    add(cluster, data, 3)
    cluster.follow()
    assert rows(cluster, data, 0) == [1, 2, 3]


def test_a_replica_that_crashes_comes_back(cluster, data):
    cluster.kill(0)
    add(cluster, data, 4)
    cluster.restart(0)
    cluster.follow(0)
    assert rows(cluster, data, 0) == [1, 2, 3, 4]


def test_a_replica_that_is_built_anew(cluster, data):
    cluster.rebuild(1)
    cluster.follow(1)
    assert rows(cluster, data, 1) == [1, 2, 3, 4]


def test_a_promotion_loses_what_has_not_arrived(cluster, data):
    """And the former primary, which still has it, comes back, first as it was, then as a replica."""
    for i in (0, 1):
        cluster.link(i).tell("refuse")
    add(cluster, data, 5)
    cluster.primary.kill()
    former = cluster.promote(0)
    add(cluster, data, 6)
    cluster.follow(1)
    assert rows(cluster, data, 0) == rows(cluster, data, 1) == [1, 2, 3, 4, 6]
    former.start()
    assert rows(cluster, data, former) == [1, 2, 3, 4, 5]
    cluster.rebuild(former)
    cluster.follow()
    assert rows(cluster, data, former) == [1, 2, 3, 4, 6]


def test_replicas_refuse_to_write(cluster, data):
    asked = subprocess.run(
        cluster.replicas[1].client(data.name, cluster.user), input=b"INSERT INTO t VALUES (9)", capture_output=True,
        env=cluster.primary.environment(), cwd="/",
    )  # fmt: skip
    assert asked.returncode != 0
    wait.until(lambda: rows(cluster, data, 1) == [1, 2, 3, 4, 6], "nothing was written")
