"""The HTTP API, through real requests to a real server."""

import pytest

from harness.http import HttpLarder


@pytest.fixture(scope="session")
def shared_server(shared_fleet):
    """A server that tests share: each empties it first."""
    return shared_fleet.new(HttpLarder).start()


@pytest.fixture
def server(shared_server):
    with shared_server.connect() as connection:
        connection("FLUSHALL")
        connection("DEBUG", "CLOCK", "REAL")
    return shared_server


@pytest.fixture
def web(server):
    """A connection to it."""
    with server.http() as http:
        yield http


@pytest.fixture
def redis(server):
    """The same server over the Redis protocol."""
    with server.connect() as connection:
        yield connection


@pytest.fixture
def start(fleet):
    """start(options) starts a server of the test's own."""
    return lambda *options, **more: fleet.new(HttpLarder, *options, **more).start()
