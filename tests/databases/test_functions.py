"""Libraries of functions where several Larders share a database: what one loads the others call, at once."""

import itertools
import threading

import pytest

from harness.resp import ServerError

SERVERS = 2


def library(name, function, body):
    return f"#!lua name={name}\nredis.register_function('{function}', function(keys, args) {body} end)"


@pytest.fixture
def several(fleet, data):
    return [fleet.larder("--workers", "2", data=data) for _ in range(SERVERS)]


def test_what_one_loads_the_others_call(several):
    a, b = (s.connect() for s in several)
    assert a("FUNCTION", "LOAD", library("lib", "f", "return redis.call('INCR', keys[1])")) == b"lib"
    assert [c("FCALL", "f", "1", "n") for c in (b, a, b)] == [1, 2, 3]
    b("FUNCTION", "LOAD", "REPLACE", library("lib", "f", "return redis.call('INCRBY', keys[1], 10)"))
    assert [c("FCALL", "f", "1", "n") for c in (a, b)] == [13, 23]
    assert a("FUNCTION", "DUMP") == b("FUNCTION", "DUMP")
    dumped = a("FUNCTION", "DUMP")
    a("FUNCTION", "DELETE", "lib")
    assert b.call("FCALL", "f", "1", "n").is_error and b("FUNCTION", "LIST") == []
    b("FUNCTION", "RESTORE", dumped)
    assert a("FCALL", "f", "1", "n") == 33
    a("FUNCTION", "FLUSH")
    assert b("FUNCTION", "LIST") == [] and b.call("FCALL", "f", "1", "n").is_error
    assert b("GET", "n") == b"33"
    for c in (a, b):
        c.close()


def test_a_library_loaded_in_a_transaction_is_there_for_all_or_for_nobody(several):
    a, b = (s.connect() for s in several)
    a("WATCH", "k")
    b("SET", "k", "changed")
    replies = a.pipeline([("MULTI",), ("FUNCTION", "LOAD", library("lib", "f", "return 1")), ("FCALL", "f", "0"), ("EXEC",)])
    assert replies[3].value is None
    for c in (a, b):
        with pytest.raises(ServerError, match="^ERR Function not found$"):
            c("FCALL", "f", "0")
    replies = a.pipeline([("MULTI",), ("FUNCTION", "LOAD", library("lib", "f", "return 1")), ("FCALL", "f", "0"), ("EXEC",)])
    assert replies[3].plain() == [b"lib", 1]
    assert b("FCALL", "f", "0") == 1
    for c in (a, b):
        c.close()


def test_counters_stay_exact_while_the_library_is_replaced(several):
    """Each call is of one version of the library or of the next, and counts once, however often it is run again."""
    calls, workers = 40, 4
    loader = several[0].connect()
    loader("FUNCTION", "LOAD", library("lib", "f", "return redis.call('INCR', 'n')"))  # an undeclared key
    done = threading.Event()
    failures = []

    def call(server):
        with server.connect() as c:
            for _ in range(calls):
                reply = c.call("FCALL", "f", "0")
                if reply.is_error:
                    failures.append(reply.value)

    threads = [threading.Thread(target=call, args=(several[i % SERVERS],)) for i in range(workers)]
    for t in threads:
        t.start()
    waiter = threading.Thread(target=lambda: [[t.join() for t in threads], done.set()])
    waiter.start()
    version = 0
    while not done.wait(0.02):
        version += 1
        loader("FUNCTION", "LOAD", "REPLACE", library("lib", "f", f"local version = {version} return redis.call('INCR', 'n')"))
    waiter.join()
    assert not failures
    assert loader("GET", "n") == str(calls * workers).encode()
    loader.close()


def test_every_worker_sees_a_change_at_once(several):
    with several[0].connect() as loader:
        connections = [several[i % SERVERS].connect() for i in range(8)]
        for i in range(5):
            assert loader("FUNCTION", "LOAD", "REPLACE", library("a", f"f{i}", "return 1")) == b"a"
            for c in connections:
                assert c("FCALL", f"f{i}", "0") == 1
                assert c.call("FCALL", f"f{i - 1}", "0").is_error
        for c in connections:
            c.close()


def test_two_load_one_library(several):
    """One of them wins, whichever server and worker they are on, and all see the same."""
    connections = [several[i % SERVERS].connect() for i in range(6)]
    for turn in range(5):
        won = []
        start = threading.Barrier(len(connections))

        def load(c, i):
            start.wait()
            if not c.call("FUNCTION", "LOAD", library(f"turn{turn}", f"t{turn}_{i}", "return 1")).is_error:
                won.append(i)

        threads = [threading.Thread(target=load, args=(c, i)) for i, c in enumerate(connections)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(won) == 1
        for c, i in itertools.product(connections, range(len(connections))):
            assert c.call("FCALL", f"t{turn}_{i}", "0").is_error == (i not in won)
    for c in connections:
        c.close()
