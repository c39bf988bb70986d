"""A start before the database is there: it is waited for, unless it is there and says no."""

import contextlib
import signal
import time

import pytest

from harness import databases, servers, store, wait

from .faults import Behind

WAITING = 'msg="waiting for the database"'


def told(larder):
    """Whether it has said in its log that it waits."""
    return WAITING in larder.log_text()


def starting(fleet, data, *options):
    """A Larder that has been started and waits."""
    larder = fleet.new(servers.Larder, *options, data=data)
    larder.port = servers.free_port()
    larder._spawn()
    wait.until(lambda: told(larder) or larder.process.poll() is not None, "it says that it waits")
    assert larder.alive, larder.log_text()
    return larder


def test_a_database_that_starts_later(fleet, own):
    stores = [store.KINDS[own.kind](on=own, mode=mode) for mode in ("shared", "exclusive")]
    own.stop()
    several = [starting(fleet, data) for data in stores]
    own.start()
    for larder in several:
        wait.until(larder._listening_or_ended, "it serves")
        with larder.connect() as c:
            assert c("SET", "key", "value") == b"OK"
        assert larder.log_text().count(WAITING) <= 3, "not with every try"
        larder.stop()


def nowhere(data):
    """A URL where nobody listens."""
    return data.server.url(data.name, tcp=True).replace(f":{data.server.port}/", f":{servers.free_port()}/")


def fails(url, *options):
    """A start that fails; what it said."""
    done = servers.run(["serve", "--port", str(servers.free_port()), "--store", url, *options])
    assert done.returncode == 1
    text = done.stdout + done.stderr
    assert "the server cannot go on" in text
    return text


def test_the_time_is_up(data):
    begun = time.monotonic()
    assert WAITING in fails(nowhere(data), "--store-wait", "300ms")
    assert time.monotonic() - begun >= 0.3


def test_nobody_wants_to_wait(data):
    assert WAITING not in fails(nowhere(data), "--store-wait", "0")


def test_a_signal_ends_the_waiting(fleet, data):
    larder = starting(fleet, Behind(data, nowhere(data)), "--store-wait", "1h")
    larder.stop(signal.SIGTERM)
    assert 'msg="stopped"' in larder.log_text()


def test_a_host_that_is_not_known_yet(fleet, data):
    url = data.server.url(data.name, tcp=True).replace("127.0.0.1", "no-such-host.invalid")
    larder = starting(fleet, Behind(data, url), "--store-wait", "1h")
    larder.stop(signal.SIGTERM)


REFUSED = {
    "no such database": lambda data: data.url.replace(data.name, "no_such_database"),
    "no such role": lambda data: data.server.url(data.name, user="nobody_of_this_name"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_server_that_refuses_is_not_waited_for(data, why):
    assert WAITING not in fails(REFUSED[why](data), "--store-wait", "1h")


def test_a_database_that_takes_no_more_connections_is_waited_for(fleet, kind):
    settings = {
        "postgres": {"max_connections": 4, "superuser_reserved_connections": 0},
        "mariadb": {"max-connections": 10},  # the least that it takes
    }
    with databases.KINDS[kind](settings=settings[kind]) as database:
        data = store.KINDS[kind](on=database)
        with contextlib.ExitStack() as sessions:
            while has_room(database, data):
                sessions.enter_context(data.session())("SELECT 1")
            larder = starting(fleet, data, "--store-wait", "1h", "--workers", "1")
        wait.until(larder._listening_or_ended, "it serves")
        larder.stop()


def has_room(database, data):
    with contextlib.suppress(databases.QueryError):
        return bool(database.query("SELECT 1", data.name))
    return False
