"""A connection pooler between Larder and PostgreSQL: one that keeps sessions works, any other is refused with what to set."""

import itertools
import threading

import pytest

from harness import servers, store, wait
from harness.pgbouncer import PgBouncer
from harness.resp import encode

from .faults import Behind

REFUSED = "a connection pooler gives every transaction another session"


@pytest.fixture
def kind():
    return "postgres"


def run(what, url):
    done = servers.run([what, *(["--port", str(servers.free_port())] if what == "serve" else []), "--store", url])
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("settings", ["", "server_round_robin = 1"], ids=["last", "round robin"])
def test_a_pooler_without_sessions_is_refused(data, mode, settings):
    with PgBouncer(data.server, mode, settings) as pooler:
        for what in ("migrate", "serve", "check"):
            code, text = run(what, pooler.url(data.name))
            assert code == 1 and REFUSED in text and "pool_mode = session" in text, text


def test_it_is_refused_also_while_others_use_it(data):
    with PgBouncer(data.server, "transaction") as pooler:
        stop = threading.Event()
        others = [threading.Thread(target=use, args=(data.server, pooler, data.name, stop)) for _ in range(4)]
        for other in others:
            other.start()
        try:
            for _ in range(5):
                code, text = run("serve", pooler.url(data.name))
                assert code == 1 and REFUSED in text, text
        finally:
            stop.set()
            for other in others:
                other.join()


def use(database, pooler, name, stop):
    """Transactions, one after the other, on one connection of the pooler."""
    client = database.session(name)
    client.process.kill()
    client.process.wait()
    argv = [*client.process.args]
    argv[argv.index("-h") + 1] = "127.0.0.1"
    argv[argv.index("-p") + 1] = str(pooler.port)
    with type(client)(argv, database.environment(), client.end) as session:
        while not stop.is_set():
            session("BEGIN; SELECT pg_sleep(0.001); COMMIT")


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
def test_a_pooler_with_sessions_works(fleet, data, mode):
    with PgBouncer(data.server, "session") as pooler:
        larder = fleet.larder(data=Behind(data, pooler.url(data.name, mode=mode)))
        with larder.connect() as c:
            assert c("MULTI") == b"OK"
            c("SET", "key", "value"), c("RPUSH", "list", *range(100))
            assert c("EXEC") == [b"OK", 100]
            assert c("GET", "key") == b"value" and c("LLEN", "list") == 100
        larder.stop()
        larder.start()
        with larder.connect() as c:
            assert c("GET", "key") == b"value"
        larder.stop()
        larder.check()


def test_notifications_come_through_a_pooler_with_sessions(fleet, data):
    """What belongs to a session for longer than a transaction: LISTEN, and the lock that says so."""
    with PgBouncer(data.server, "session") as pooler:
        behind = fleet.larder("--workers", "1", data=Behind(data, pooler.url(data.name)))
        beside = fleet.larder(data=data)
        with behind.connect() as waits, behind.connect() as asks, beside.connect() as pushes:
            numbers = itertools.count()

            def is_told():
                key = f"q{next(numbers)}"
                waits.send(encode(["BLPOP", key, 0]))
                wait.until(lambda: b"blocked_clients:1\r" in asks("INFO", "clients"), "it waits")
                pushes("RPUSH", key, "v")
                assert waits.read().plain() == [key.encode(), b"v"]
                return b"wakeups:0\r" not in asks("INFO", "larder")

            wait.until(is_told, "it is told")
        behind.stop()


def test_a_pool_with_sessions_that_has_none_left(fleet, data):
    """Whether it keeps sessions has to be found out without a second one."""
    assert run("migrate", data.url)[0] == 0
    with PgBouncer(data.server, "session", "default_pool_size = 1") as pooler:
        larder = fleet.larder("--workers", "1", data=Behind(data, pooler.url(data.name)))
        with larder.connect() as c:
            assert c("SET", "key", "value") == b"OK"
        larder.stop()
