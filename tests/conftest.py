"""Fixtures of the black-box tests, and the servers' logs in the report of a failure."""

import itertools

import pytest

from harness import servers, store

LOG_TAIL = 6000


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for server in servers.Server.live:
            if server.name == "redis" and server.alive:
                continue
            text = server.log_text()[-LOG_TAIL:]
            report.sections.append((f"log of {server.name}, port {server.port}", text))


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("sqlite") and store.CHOICE != "sqlite":
            item.add_marker(pytest.mark.skip(reason=f"looks into SQLite's file; LARDER_TEST_STORE={store.CHOICE}"))


class Fleet:
    """Starts servers in a folder and ends all that are left."""

    def __init__(self, folder):
        self.folder = folder
        self.numbers = itertools.count(1)
        self.started = []

    def new(self, kind, *options, **more):
        server = kind(self.folder / f"{kind.name}{next(self.numbers)}", options, **more)
        self.started.append(server)
        return server

    def redis(self, *options, **more):
        return self.new(servers.Redis, *options, **more).start()

    def larder(self, *options, **more):
        return self.new(servers.Larder, *options, **more).start()

    def end(self):
        """Stops what runs; every server must end well, so all are stopped before the first complaint."""
        problems = []
        for server in reversed(self.started):
            try:
                server.stop()
            except AssertionError as e:
                problems.append(str(e))
        assert not problems, "\n\n".join(problems)


@pytest.fixture
def fleet(tmp_path):
    """Servers for one test, with options of its own."""
    fleet = Fleet(tmp_path)
    yield fleet
    fleet.end()


@pytest.fixture
def larder(fleet):
    """A Larder for one test."""
    return fleet.larder()


@pytest.fixture
def client(larder):
    """A connection to it."""
    with larder.connect() as connection:
        yield connection


@pytest.fixture(scope="session")
def shared_fleet(tmp_path_factory):
    fleet = Fleet(tmp_path_factory.mktemp("shared"))
    yield fleet
    fleet.end()


@pytest.fixture(scope="session")
def oracle(shared_fleet):
    """The redis-server that is asked what is right. Tests empty it before they use it."""
    return shared_fleet.redis()


@pytest.fixture(scope="session")
def subjects(shared_fleet):
    """subjects(options) is the Larder with these options that tests share: started for the first of them, and again
    when one has ended it. Tests empty it before they use it."""
    started = {}

    def get(*options):
        if options not in started:
            started[options] = shared_fleet.new(servers.Larder, *options)
        server = started[options]
        if not server.alive:
            server.process = None
            server.start()
        return server

    return get


@pytest.fixture
def subject(subjects):
    """The Larder that is compared with the oracle."""
    return subjects()
