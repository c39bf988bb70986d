"""redis-py: connections, pipelines, pools, scans, and a server that goes away and comes back."""

import threading
import time

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from harness import wait


@pytest.fixture
def r(server):
    with redis.Redis(port=server.port) as r:
        yield r


def test_values_come_back_as_they_went(r):
    for value in (b"", b"\x00", b"\r\n", bytes(range(256)), b"x" * 1_000_000):
        assert r.set("k", value)
        assert r.get("k") == value
    assert r.get("missing") is None
    assert r.set(b"\x00\xff key", 1.5) and r.get(b"\x00\xff key") == b"1.5"


def test_decoded_replies(server):
    with redis.Redis(port=server.port, decode_responses=True) as r:
        r.mset({"a": "ä", "b": "2"})
        assert r.mget("a", "b", "c") == ["ä", "2", None]
        assert r.type("a") == "string"
        assert sorted(r.keys("*")) == ["a", "b"]


def test_options_and_conversions(r):
    assert r.set("k", 1, nx=True) is True
    assert r.set("k", 2, nx=True) is None
    assert r.set("k", 3, get=True, ex=1000) == b"1"
    assert 990 <= r.ttl("k") <= 1000
    assert r.getex("k", persist=True) == b"3"
    assert r.ttl("k") == -1
    assert r.incrbyfloat("k", "0.5") == 3.5
    assert r.expire("k", 100, gt=True) is False or r.ttl("k") > 0
    assert r.bitfield("bits").set("u8", 0, 255).get("u4", 0).execute() == [0, 15]
    assert r.copy("k", "copy") and r.exists("k", "copy") == 2
    assert r.unlink("k", "copy", "none") == 2
    with pytest.raises(redis.ResponseError, match="not an integer"):
        r.set("k", "x")
        r.incr("k")


def test_pipelines(r):
    with r.pipeline(transaction=False) as p:
        for i in range(2000):
            p.set(f"key:{i}", i)
            p.incr(f"key:{i}")
        results = p.execute()
    assert results[0::2] == [True] * 2000
    assert results[1::2] == list(range(1, 2001))
    with r.pipeline(transaction=False) as p:
        p.set("a", "x").incr("a").get("a")
        results = p.execute(raise_on_error=False)
    assert results[0] is True and results[2] == b"x"
    assert isinstance(results[1], redis.ResponseError)


def test_scan_iter_finds_every_key_once(r):
    names = {f"key:{i}".encode() for i in range(3000)}
    with r.pipeline(transaction=False) as p:
        for name in names:
            p.set(name, "v")
        p.set("other", 1)
        p.execute()
    found = list(r.scan_iter("key:*", count=100))
    assert set(found) == names
    assert set(r.scan_iter(_type="string")) == names | {b"other"}


def test_scan_guarantee_while_keys_come_and_go(r):
    """What is there from the beginning to the end of a scan is returned."""
    stable = {f"stable:{i}".encode() for i in range(1000)}
    r.mset({name: 1 for name in stable})
    cursor, found, step = 0, set(), 0
    while True:
        cursor, keys = r.scan(cursor, count=20)
        found.update(keys)
        for i in range(10):
            r.set(f"new:{step}:{i}", "v")
            r.delete(f"new:{step - 1}:{i}")
        r.set(f"stable:{step % 1000}", "changed")
        step += 1
        if cursor == 0:
            break
        assert step < 5000, "the scan does not end"
    assert stable <= found


def test_handshake_database_and_name(server):
    with redis.Redis(port=server.port, db=5, client_name="tests") as r:
        assert r.client_getname() == "tests"
        info = r.client_info()
        assert int(info["db"]) == 5 and info["name"] == "tests"
        r.set("k", 5)
    with redis.Redis(port=server.port) as r:
        assert r.get("k") is None
        assert [c["addr"] for c in r.client_list()] == [r.client_info()["addr"]]


def test_server_information(r):
    info = r.info()
    assert info["redis_mode"] == "standalone"
    assert tuple(map(int, info["redis_version"].split(".")[:2])) >= (7, 0)
    assert info["maxmemory_policy"] == "noeviction"
    r.set("k", 1, ex=100)
    assert r.info("keyspace")["db0"]["keys"] == 1
    assert r.info("keyspace")["db0"]["expires"] == 1
    assert r.command_count() > 50
    assert "get" in r.command()
    assert r.config_get("maxclients")["maxclients"]
    assert abs(r.time()[0] - time.time()) < 60


def test_unix_socket(server):
    with redis.Redis(unix_socket_path=server.unix_socket) as r:
        assert r.set("k", "unix") and r.get("k") == b"unix"


def test_pool_shared_by_threads(server):
    pool = redis.BlockingConnectionPool(port=server.port, max_connections=8, timeout=60)
    r = redis.Redis(connection_pool=pool)

    def work():
        for _ in range(200):
            r.incr("counter")

    threads = [threading.Thread(target=work) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert int(r.get("counter")) == 16 * 200
    pool.disconnect()


def test_reconnects_after_a_restart(server):
    retry = Retry(ConstantBackoff(0.1), 600)
    with redis.Redis(port=server.port, retry=retry, retry_on_error=[redis.ConnectionError]) as r:
        r.set("k", "before")
        server.stop()
        server.start()
        assert r.set("k2", "after")
        assert r.get("k") == (b"before" if server.name == "larder" else None)


def test_password(fleet, server):
    options = ["--requirepass", "se cret"]
    guarded = fleet.new(type(server), *options).start()
    with redis.Redis(port=guarded.port) as r, pytest.raises(redis.AuthenticationError):
        r.ping()
    with redis.Redis(port=guarded.port, password="wrong") as r, pytest.raises(redis.ResponseError, match="WRONGPASS"):
        r.ping()
    with redis.Redis(port=guarded.port, password="se cret") as r:
        assert r.ping()
    with redis.Redis(port=guarded.port, username="default", password="se cret") as r:
        assert r.ping()


def test_monitor(server, r):
    with r.monitor() as monitor:
        done = threading.Event()

        def work():
            while not done.is_set():
                with redis.Redis(port=server.port) as other:
                    other.set("watched", "value")

        worker = threading.Thread(target=work)
        worker.start()
        try:
            seen = monitor.next_command()
            while not seen["command"].startswith("SET"):
                seen = monitor.next_command()
        finally:
            done.set()
            worker.join()
    assert seen["command"] == "SET watched value"
    assert seen["client_address"] == "127.0.0.1" and seen["db"] == 0


def test_client_kill(server, r):
    with redis.Redis(port=server.port, client_name="victim") as victim:
        victim.ping()
        ids = [c["id"] for c in r.client_list() if c["name"] == "victim"]
        assert r.client_kill_filter(_id=ids[0]) == 1
        wait.until(lambda: not [c for c in r.client_list() if c["id"] == ids[0]], "the client is gone")
