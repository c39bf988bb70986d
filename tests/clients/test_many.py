"""Many connections at once."""

import resource
import time

import pytest

from harness.resp import Connection, encode

WANTED = 10_000
SPARE = 500  # descriptors for everything else


@pytest.fixture
def descriptors():
    """As many open files as are allowed; how many connections that gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = WANTED + SPARE
    if hard != resource.RLIM_INFINITY and hard < want:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (want, want))
        except (ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    elif soft < want:
        resource.setrlimit(resource.RLIMIT_NOFILE, (want, hard))
    yield min(WANTED, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    except (ValueError, OSError):
        pass


@pytest.mark.slow
def test_ten_thousand_connections(fleet, descriptors):
    larder = fleet.larder("--maxclients", str(WANTED + 100))
    started = time.monotonic()
    connections = [Connection(larder.address) for _ in range(descriptors)]
    try:
        for i, c in enumerate(connections):
            c.send(encode(["SET", f"key:{i}", i]))
        assert all(c.read().raw == b"+OK\r\n" for c in connections)
        for c in connections:
            c.send(encode(["INCR", "counter"]))
        assert sorted(c.read().plain() for c in connections) == list(range(1, descriptors + 1))
        last = connections[-1]
        assert last("DBSIZE") == descriptors + 1
        assert f"connected_clients:{descriptors}\r\n" in last("INFO", "clients").decode()
    finally:
        for c in connections:
            c.close()
    print(f"{descriptors} connections in {time.monotonic() - started:.1f} s")


def test_the_limit_of_clients(fleet):
    larder = fleet.larder("--maxclients", "20")
    connections = [larder.connect() for _ in range(20)]
    for c in connections:
        assert c("PING") == b"PONG"
    with larder.connect() as refused:
        data, closed = refused.read_bytes(1, until_closed=True)
    assert data == b"-ERR max number of clients reached\r\n" and closed
    for c in connections:
        c.close()
