"""Blocking commands: who is served, with what, in which order. Every test runs on redis-server too, so that what is
expected here is what Redis does."""

import contextlib
import time

import pytest

from harness import wait
from harness.resp import encode


@pytest.fixture(params=["oracle", "subject"])
def server(request):
    server = request.getfixturevalue(request.param)
    with server.connect() as c:
        c("FLUSHALL")
    return server


@contextlib.contextmanager
def connections(server, n):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(server.connect()) for _ in range(n)]


def blocked(control):
    for line in control("INFO", "clients").decode().split("\r\n"):
        if line.startswith("blocked_clients:"):
            return int(line.split(":")[1])


def workers(control):
    lines = control("INFO", "larder").decode().split("\r\n")
    return next((int(line.split(":")[1]) for line in lines if line.startswith("workers:")), 1)


def block(control, client, *command):
    """Sends a command that blocks, and waits until it does."""
    before = blocked(control)
    client.send(encode(command))
    wait.until(lambda: blocked(control) == before + 1, f"{command} to block")


def nothing_yet(client):
    assert client.read_available(0.02) == (b"", False)


def test_clients_are_served_in_the_order_they_blocked(server):
    with connections(server, 4) as (control, a, b, c):
        for client in (a, b, c):
            block(control, client, "BLPOP", "q", 0)
        assert control("RPUSH", "q", "1", "2") == 2
        assert a.read().plain() == [b"q", b"1"]
        assert b.read().plain() == [b"q", b"2"]
        nothing_yet(c)
        control("RPUSH", "q", "3", "4")
        assert c.read().plain() == [b"q", b"3"]
        assert control("LRANGE", "q", 0, -1) == [b"4"]


def test_a_push_answers_with_the_length_before_anyone_is_served(server):
    with connections(server, 2) as (control, a):
        block(control, a, "BRPOP", "q", 0)
        assert control("RPUSH", "q", "1", "2", "3") == 3
        assert a.read().plain() == [b"q", b"3"]


def test_the_key_that_appeared_first_serves_a_client_of_several(server):
    with connections(server, 2) as (control, a):
        block(control, a, "BLPOP", "one", "two", "three", 0)
        control("MULTI")
        control("RPUSH", "three", "3")
        control("RPUSH", "one", "1")
        control("EXEC")
        assert a.read().plain() == [b"three", b"3"]
        assert control("LRANGE", "one", 0, -1) == [b"1"]


def test_a_transaction_serves_behind_its_end(server):
    with connections(server, 2) as (control, a):
        block(control, a, "BLPOP", "q", 0)
        control("MULTI")
        control("RPUSH", "q", "1")
        control("DEL", "q")
        assert control("EXEC") == [1, 1]
        nothing_yet(a)
        control("MULTI")
        control("LPUSH", "q", "1")
        control("LPUSH", "q", "2")
        assert control("EXEC") == [1, 2]
        assert a.read().plain() == [b"q", b"2"]


def test_a_chain_of_moves_runs_to_its_end(server):
    with connections(server, 4) as (control, a, b, c):
        block(control, c, "BLPOP", "last", 0)
        block(control, b, "BLMOVE", "middle", "last", "LEFT", "RIGHT", 0)
        block(control, a, "BRPOPLPUSH", "first", "middle", 0)
        assert control("RPUSH", "first", "x") == 1
        assert a.read().plain() == b"x"
        assert b.read().plain() == b"x"
        assert c.read().plain() == [b"last", b"x"]
        assert control("DBSIZE") == 0


def test_a_move_to_itself(server):
    with connections(server, 2) as (control, a):
        block(control, a, "BLMOVE", "q", "q", "LEFT", "RIGHT", 0)
        control("RPUSH", "q", "1", "2")
        assert a.read().plain() == b"1"
        assert control("LRANGE", "q", 0, -1) == [b"2", b"1"]


def test_a_move_to_a_wrong_type_is_an_error_and_moves_nothing(server):
    with connections(server, 2) as (control, a):
        control("SET", "s", "x")
        block(control, a, "BLMOVE", "q", "s", "LEFT", "RIGHT", 0)
        control("RPUSH", "q", "1")
        assert a.read().is_error
        assert control("LRANGE", "q", 0, -1) == [b"1"]


@pytest.mark.parametrize("arrive", [("RENAME", "other", "q"), ("COPY", "other", "q"), ("LMOVE", "other", "q", "LEFT", "LEFT")])
def test_other_ways_for_a_list_to_appear(server, arrive):
    with connections(server, 2) as (control, a):
        control("RPUSH", "other", "1")
        block(control, a, "BLPOP", "q", 0)
        control(*arrive)
        assert a.read().plain() == [b"q", b"1"]


def test_databases_exchanged_or_a_key_moved(server):
    with connections(server, 3) as (control, a, b):
        control("SELECT", 9)
        control("RPUSH", "q", "nine")
        control("RPUSH", "r", "moved")
        control("SELECT", 0)
        block(control, a, "BLPOP", "q", 0)
        block(control, b, "BLPOP", "r", 0)
        control("SELECT", 9)
        control("MOVE", "r", 0)
        assert b.read().plain() == [b"r", b"moved"]
        control("SWAPDB", 0, 9)
        assert a.read().plain() == [b"q", b"nine"]


def test_another_type_under_the_key_lets_wait(server):
    with connections(server, 2) as (control, a):
        block(control, a, "BLPOP", "q", 0)
        control("SET", "q", "string")
        nothing_yet(a)
        control("DEL", "q")
        control("ZADD", "q", 1, "m")
        nothing_yet(a)
        control("DEL", "q")
        control("RPUSH", "q", "1")
        assert a.read().plain() == [b"q", b"1"]


def test_what_follows_in_the_pipeline_waits(server):
    with connections(server, 2) as (control, a):
        before = blocked(control)
        a.send(encode(("BLPOP", "q", 0)) + encode(("PING",)) + encode(("GET", "k")))
        wait.until(lambda: blocked(control) == before + 1, "BLPOP to block")
        nothing_yet(a)
        control("SET", "k", "v")
        control("RPUSH", "q", "1")
        assert a.read().plain() == [b"q", b"1"]
        assert a.read().plain() == b"PONG"
        assert a.read().plain() == b"v"


def test_pushed_and_awaited_in_one_pipeline(server):
    with server.connect() as c:
        replies = c.pipeline([("RPUSH", "q", "1"), ("BLPOP", "q", 0), ("RPUSH", "q", "2"), ("BRPOP", "q", 0), ("PING",)])
        assert [r.plain() for r in replies] == [1, [b"q", b"1"], 1, [b"q", b"2"], b"PONG"]


def test_a_client_that_leaves_takes_nothing(server):
    with connections(server, 2) as (control, b):
        with server.connect() as a:
            block(control, a, "BLPOP", "q", 0)
            block(control, b, "BLPOP", "q", 0)
        wait.until(lambda: blocked(control) == 1, "the closed client to be forgotten")
        control("RPUSH", "q", "1")
        assert b.read().plain() == [b"q", b"1"]


def test_timeouts(server):
    with connections(server, 2) as (control, a):
        began = time.monotonic()
        assert a.call("BLPOP", "nothing", "0.15").raw == b"*-1\r\n"
        assert time.monotonic() - began >= 0.15
        assert blocked(control) == 0
        control("RPUSH", "nothing", "1")
        assert control("LLEN", "nothing") == 1
        a("HELLO", 3)
        assert a.call("BLMOVE", "no", "where", "LEFT", "LEFT", "0.01").raw == b"_\r\n"


def test_unblock(server):
    with connections(server, 3) as (control, a, b):
        ids = [a("CLIENT", "ID"), b("CLIENT", "ID")]
        assert control("CLIENT", "UNBLOCK", ids[0]) == 0
        block(control, a, "BLPOP", "q", 0)
        block(control, b, "BLPOP", "q", 0)
        assert control("CLIENT", "UNBLOCK", ids[0]) == 1
        assert a.read().raw == b"*-1\r\n"
        assert control("CLIENT", "UNBLOCK", ids[1], "ERROR") == 1
        assert b.read().raw == b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
        assert control("CLIENT", "UNBLOCK", ids[1], "TIMEOUT") == 0
        assert a("PING") == b"PONG"


def test_a_killed_client_takes_nothing(server):
    with connections(server, 3) as (control, a, b):
        ida = a("CLIENT", "ID")
        block(control, a, "BLPOP", "q", 0)
        block(control, b, "BLPOP", "q", 0)
        assert control("CLIENT", "KILL", "ID", ida) == 1
        control("RPUSH", "q", "1")
        assert b.read().plain() == [b"q", b"1"]


def test_the_same_key_twice(server):
    with connections(server, 3) as (control, a, b):
        block(control, a, "BLPOP", "q", "q", 0)
        block(control, b, "BLPOP", "q", 0)
        control("RPUSH", "q", "1", "2", "3")
        assert a.read().plain() == [b"q", b"1"]
        assert b.read().plain() == [b"q", b"2"]
        assert control("LRANGE", "q", 0, -1) == [b"3"]


def test_mpop(server):
    with connections(server, 3) as (control, a, b):
        block(control, a, "BLMPOP", 0, 2, "x", "q", "LEFT", "COUNT", 2)
        block(control, b, "BLMPOP", 0, 1, "q", "RIGHT", "COUNT", 10)
        control("RPUSH", "q", "1", "2", "3")
        assert a.read().plain() == [b"q", [b"1", b"2"]]
        assert b.read().plain() == [b"q", [b"3"]]
        assert control("EXISTS", "q") == 0


def test_many_clients_wait_for_one_key(server):
    n = 200
    with connections(server, n + 1) as (control, *clients):
        for c in clients:
            block(control, c, "BLPOP", "q", 0)
        control("RPUSH", "q", *range(n))
        assert [c.read().plain()[1] for c in clients] == [str(i).encode() for i in range(n)]
        assert blocked(control) == 0
