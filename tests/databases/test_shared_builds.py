"""Indexes of tables are built while several servers write, are killed and freeze, and while the database is."""

import random
import threading

import pytest

from harness import servers, wait
from harness.processes import go_on, stop
from harness.resp import Closed, ServerError
from harness.builds import MANY, fill, hold, index, put, state, wait_ready

OPTIONS = ["--workers", "1"]


def check(data):
    done = servers.run(["check", "--store", data.url])
    assert done.returncode == 0, done.stdout


@pytest.fixture
def pair(fleet, data):
    return [fleet.larder(*OPTIONS, data=data) for _ in range(2)]


class Writer(threading.Thread):
    """Puts, changes and removes rows at random until it is told to stop."""

    def __init__(self, server, seed):
        super().__init__()
        self.server, self.random, self.over, self.done = server, random.Random(seed), threading.Event(), 0
        self.failure = None

    def step(self, client):
        key, kind = self.random.randrange(MANY), self.random.random()
        if kind < 0.5:
            put(client, key, name=f"w{self.random.randrange(10**9)}", age=self.random.randrange(50))
        elif kind < 0.8:
            client("ROW.UPDATE", "t", "KEY", key, "FIELDS", 1, "age", self.random.randrange(50))
        else:
            client("ROW.DEL", "t", key)
        self.done += 1

    def run(self):
        try:
            with self.server.connect() as client:
                while not self.over.is_set():
                    self.step(client)
        except Exception as e:  # told by the thread that joins
            self.failure = e

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        assert self.failure is None, self.failure


def test_builds_while_two_servers_write(pair, data):
    a, b = pair
    with a.connect() as client:
        fill(client)
        with Writer(a, 1) as one, Writer(b, 2) as other:
            for name in "INDEX by_age (age)", "UNIQUE INDEX by_name (name)", "INDEX both (age DESC, name)":
                client("TABLE.ALTER", "t", f"ADD {name}")
            for name in "by_age", "by_name", "both":
                wait_ready(client, name)
            client("TABLE.REBUILD", "t")
            for name in "by_age", "by_name", "both":
                wait_ready(client, name)
        assert one.done and other.done
    for server in pair:
        server.stop()
    check(data)


def test_another_server_takes_over(pair, data):
    a, b = pair
    with a.connect() as client:
        fill(client)
        hold(client)
        client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
        a.kill()
    with b.connect() as client:
        wait_ready(client, "by_age")
    b.stop()
    check(data)


def test_a_walker_that_freezes_does_no_harm(pair, data):
    a, b = pair
    with a.connect() as client, b.connect() as other:
        fill(client, 4 * MANY)
        hold(other)
        client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
        stop([a.process.pid])
        try:
            hold(other, False)
            wait_ready(other, "by_age")
            put(other, 1, age=1000)
            other("TABLE.ALTER", "t", "DROP INDEX by_age")
        finally:
            go_on([a.process.pid])
        assert client("PING") == b"PONG" and index(client, "by_age") is None
    for server in pair:
        server.stop()
    check(data)


def test_the_same_value_on_two_servers(pair, data):
    """Both put a row of one name while the index is built: one is refused, or the build fails."""
    a, b = pair
    with a.connect() as one, b.connect() as other:
        fill(one)
        one("TABLE.ALTER", "t", "ADD UNIQUE INDEX by_name (name)")
        put(one, MANY, name="same")
        try:
            put(other, MANY + 1, name="same")
            twice = True
        except ServerError as e:
            assert str(e).startswith("DUPLICATE ")
            twice = False
        wait.until(lambda: state(one, "by_name") != "building", "the index is built")
        assert state(one, "by_name") == ("failed" if twice else "ready")
    for server in pair:
        server.stop()
    check(data)


def test_the_database_is_killed(fleet, own, on_own):
    server = fleet.larder(*OPTIONS, data=on_own)
    with server.connect() as client:
        fill(client, 4 * MANY)
        client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    own.kill()
    own.start()

    def ready():
        try:
            with server.connect() as again:
                return state(again, "by_age") == "ready"
        except (Closed, ServerError):
            return False

    wait.until(ready, "the index is built")
    server.stop()
    check(on_own)
