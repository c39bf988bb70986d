"""HTTP is there without being asked for: at its usual port, for this machine alone, and never at the cost of a start."""

import fcntl
import os
import pathlib
import socket
import tempfile

import pytest

from harness import servers, wait
from harness.http import Http

USUAL = 8379


@pytest.fixture
def unasked(fleet):
    """A server to whom nobody says anything about HTTP."""
    return lambda *options: fleet.new(servers.Larder, *options, env={"LARDER_HTTP_PORT": None})


def usual_port():
    """A socket that has it, and nothing else in its way."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def bound():
        try:
            held.bind(("127.0.0.1", USUAL))
        except OSError:
            return False
        return True

    wait.until(bound, "the usual port is free")
    return held


@pytest.fixture
def turn():
    """There is one such port: tests that run at the same time take turns."""
    path = pathlib.Path(tempfile.gettempdir()) / f"larder-tests-{USUAL}-{os.getuid()}"
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_open(server, port=USUAL):
    return servers.owns_port(server.pid, port)


def listens_at(pid, port):
    """The addresses, as /proc has them."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            address, number = fields[1].rsplit(":", 1)
            if fields[3] == "0A" and int(number, 16) == port:
                found.add(address)
    return found


LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


def test_it_is_there(unasked, turn):
    """At the addresses of this machine, though the other port is at all of them."""
    usual_port().close()
    server = unasked("--bind", "*").start()
    wait.until(lambda: "ready" in server.log_text(), "it is ready")
    assert is_open(server) and "level=warning" not in server.log_text()
    assert listens_at(server.pid, USUAL) <= LOOPBACK and listens_at(server.pid, server.port) == {"00000000"}
    with Http(USUAL) as web:
        assert web.put("/keys/k", {"value": "v"}).status == 201
    with server.connect() as redis:
        assert redis("GET", "k") == b"v"
        assert redis("CONFIG", "GET", "http-port") == [b"http-port", str(USUAL).encode()]


def test_it_is_taken(unasked, turn):
    """A line in the log says so, and everything else is served."""
    with usual_port() as held:
        held.listen()
        server = unasked().start()
        with server.connect() as redis:
            assert redis("SET", "k", "v") == b"OK"
        wait.until(lambda: "ready" in server.log_text(), "it is ready")
        assert "level=warning" in server.log_text() and f"port {USUAL}" in server.log_text() and "http_port=0" in server.log_text()
        assert not is_open(server)


def test_it_is_taken_and_was_asked_for(turn, tmp_path):
    with usual_port() as held:
        held.listen()
        done = servers.run(["serve", "--port", "0", "--unixsocket", str(tmp_path / "socket"), "--store", f"sqlite:{tmp_path}/larder.db",
                            "--http-port", str(USUAL)])  # fmt: skip
    assert done.returncode == 1 and f"cannot listen on 127.0.0.1 port {USUAL}" in done.stderr


def test_no_tcp_port_means_none(unasked, turn, tmp_path):
    """port 0 closes TCP, or leaves it to TLS: no other way in comes by itself."""
    usual_port().close()
    path = tmp_path / "socket"
    server = unasked("--port", "0", "--unixsocket", str(path))
    server._listening_or_ended = lambda: server.process.poll() is not None or "ready" in server.log_text()
    server.start()
    assert server.alive and path.exists() and not is_open(server)
