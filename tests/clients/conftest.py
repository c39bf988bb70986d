"""Client libraries and tools run against Larder and against redis-server: what holds there must hold here."""

import fcntl
import pathlib
import shutil
import subprocess

import pytest

from harness import servers, tls
from harness.certificates import Authority
from harness.resp import Connection

HERE = pathlib.Path(__file__).parent


@pytest.fixture(params=[servers.Redis, servers.Larder], ids=["redis", "larder"])
def server(request, fleet, tmp_path):
    """A server of each kind, with a Unix socket too."""
    server = fleet.new(request.param, "--unixsocket", str(tmp_path / "socket"))
    server.unix_socket = str(tmp_path / "socket")
    return server.start()


@pytest.fixture(scope="session")
def modules():
    """The libraries of package-lock.json, installed when they are not there yet."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    lock = HERE / "package-lock.json"
    installed = HERE / "node_modules" / ".package-lock.json"
    with open(lock) as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # several runs of the tests may come here at once
        if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
            subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=HERE, check=True, timeout=300)


# --- TLS


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def server_pair(authority):
    return authority.issue("server")


@pytest.fixture(scope="session")
def client_pair(authority):
    return authority.issue("client")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture
def start_tls(fleet, server_pair, authority):
    return tls.Start(fleet, server_pair, authority)


@pytest.fixture
def dial(authority):
    """Connections over TLS, closed at the end."""
    opened = []

    def connect(server, context=None, **options):
        address = ("127.0.0.1", server.tls_port)
        opened.append(Connection(address, tls=context or authority.context(), **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.socket.close()
