"""Larder on PostgreSQL and MariaDB, whatever LARDER_TEST_STORE says: every test runs over both."""

import pytest

from harness import databases, store


@pytest.fixture(params=["postgres", "mariadb"])
def kind(request):
    return request.param


@pytest.fixture
def data(kind):
    """A database of its own."""
    return store.KINDS[kind]()


@pytest.fixture
def alone(kind):
    """A database that one Larder has for itself."""
    return store.KINDS[kind](mode="exclusive")


@pytest.fixture
def server(fleet, data):
    """A Larder on it."""
    return fleet.larder(data=data)


@pytest.fixture
def own(kind):
    """A database server for one test alone, which may be stopped and killed."""
    with databases.KINDS[kind](durable=True) as database:
        yield database


@pytest.fixture
def on_own(own):
    """A database on it."""
    return store.KINDS[own.kind](on=own)

