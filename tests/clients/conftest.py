"""Client libraries and tools run against Larder and against redis-server: what holds there must hold here."""

import pytest

from harness import servers


@pytest.fixture(params=[servers.Redis, servers.Larder], ids=["redis", "larder"])
def server(request, fleet, tmp_path):
    """A server of each kind, with a Unix socket too."""
    server = fleet.new(request.param, "--unixsocket", str(tmp_path / "socket"))
    server.unix_socket = str(tmp_path / "socket")
    return server.start()
