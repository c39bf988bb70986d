"""Client libraries and tools run against Larder and against redis-server: what holds there must hold here."""

import fcntl
import pathlib
import shutil
import subprocess

import pytest

from harness import servers

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
