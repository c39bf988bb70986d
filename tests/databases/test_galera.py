"""Larders on the nodes of a Galera cluster: three real ones, on this machine."""

import pytest

from harness import galera, servers


@pytest.fixture(scope="module")
def cluster():
    with galera.Cluster() as cluster:
        yield cluster


class OnNode:
    """A database as one node of the cluster has it."""

    kind = "mariadb"

    def __init__(self, node, name, **options):
        self.server = node
        self.name = name
        self.url = node.url(name, **options)

    def query(self, sql):
        return self.server.query(sql, self.name)


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
def test_a_node_of_a_cluster_is_refused(fleet, cluster, mode):
    server = fleet.new(servers.Larder, data=OnNode(cluster.nodes[0], cluster.new_database(), mode=mode))
    with pytest.raises(servers.StartError, match="is a node of a Galera cluster"):
        server.start()
    server.process = None
