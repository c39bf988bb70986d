"""A database that is there and does not answer: the server does, and serves again when it can."""

import threading
import time

import pytest

from harness import wait
from harness.processes import family, go_on, stop
from harness.proxy import Proxy

from .faults import Behind

CONNECT_TIMEOUT = 5  # seconds, of Larder


@pytest.fixture
def proxied(own, on_own):
    proxy = Proxy(own.port)
    url = own.url(on_own.name, tcp=True).replace(f":{own.port}/", f":{proxy.port}/")
    yield proxy, Behind(on_own, url)
    proxy.close()


def slowest_ping(larder, seconds):
    """The longest that anybody waited for PING while others asked for data, which they did not get."""
    stop, told = threading.Event(), []

    def ask():
        with larder.connect(timeout=30) as c:
            while not stop.is_set():
                told.append(c.call("INCR", "n").is_error)
                time.sleep(0.01)

    asking = threading.Thread(target=ask)
    asking.start()
    longest, until = 0, time.monotonic() + seconds
    with larder.connect(timeout=30) as c:
        while time.monotonic() < until:
            start = time.monotonic()
            assert c("PING") == b"PONG"
            longest = max(longest, time.monotonic() - start)
            time.sleep(0.01)
    stop.set()
    asking.join(30)
    assert told and all(told)
    return longest


def test_a_server_that_is_stopped(own, on_own, fleet):
    larder = fleet.larder("--store-timeout", "1s", data=on_own)
    with larder.connect() as c:
        c("SET", "n", 1)
        processes = family(own.process.pid)
        stop(processes)
        try:
            assert c("PING") == b"PONG"  # although nobody has noticed yet
            assert c.call("INCR", "n").is_error
            assert slowest_ping(larder, CONNECT_TIMEOUT / 2) < CONNECT_TIMEOUT / 4
        finally:
            go_on(processes)
        wait.until(lambda: not c.call("GET", "n").is_error, "it serves again", 30)
        assert c("GET", "n") in (b"1", b"2")


def test_a_port_that_accepts_and_does_not_answer(proxied, fleet):
    proxy, data = proxied
    larder = fleet.larder("--store-timeout", "1s", "--sweep", "no", data=data)
    with larder.connect() as c:
        c("SET", "n", 1)
        proxy.tell("cut")
        wait.until(lambda: b"reconnects:1\r" in c("INFO", "larder"), "it is back", 30)
        proxy.tell("cut")
        proxy.tell("stall")
        wait.until(lambda: c.call("INCR", "n").is_error, "it is noticed", 30)
        assert slowest_ping(larder, CONNECT_TIMEOUT / 2) < CONNECT_TIMEOUT / 4
        proxy.tell("pass")
        wait.until(lambda: not c.call("GET", "n").is_error, "it serves again", 30)
        assert c("GET", "n") == b"1"
        proxy.tell("cut")
        proxy.tell("stall")
        wait.until(lambda: c.call("GET", "n").is_error, "it is noticed", 30)
    larder.process.terminate()  # while it connects; that the database is away is an error at the end, too
    assert larder.process.wait(60) in (0, 1)
    larder.process = None


@pytest.mark.parametrize("read, through", [(["GET", "text"], 8000), (["HGETALL", "large"], 100_000)])
def test_an_answer_that_breaks_off_is_no_answer(proxied, fleet, read, through):
    """Rows that did not come are not rows that are not there."""
    proxy, data = proxied
    larder = fleet.larder("--workers", "1", "--sweep", "no", data=data)
    pairs = [part for i in range(400) for part in (f"f{i}", b"v" * 500)]
    with larder.connect() as c:
        c("SET", "text", b"x" * 15_000)
        c("HSET", "large", *pairs)
        whole = c(*read)
        proxy.tell(f"only {through}")
        assert c.error(*read).startswith("IOERR ")
        wait.until(lambda: not c.call(*read).is_error, "it is back", 30)
        assert c(*read) == whole
