"""Clients that wait for sorted sets: who is served, with what, in which order, on redis-server and here."""

import pytest

from compat.test_blocking import block, blocked, connections, nothing_yet, server, workers  # noqa: F401  a fixture
from harness import wait

# Commands that make a sorted set of a=1, b=2 appear under q; there is one under `from` and a set under `set`.
APPEARANCES = [
    ["ZADD", "q", "1", "a", "2", "b"],
    ["ZUNIONSTORE", "q", "1", "from"],
    ["ZINTERSTORE", "q", "1", "from"],
    ["ZDIFFSTORE", "q", "2", "from", "missing"],
    ["ZRANGESTORE", "q", "from", "0", "-1"],
    ["RENAME", "from", "q"],
    ["COPY", "from", "q"],
]


@pytest.mark.parametrize("command", APPEARANCES, ids=lambda c: c[0])
@pytest.mark.parametrize(
    "waiting, expected",
    [
        (["BZPOPMIN", "q", 0], [b"q", b"a", b"1"]),
        (["BZPOPMAX", "other", "q", 0], [b"q", b"b", b"2"]),
        (["BZMPOP", 0, 2, "q", "other", "MIN"], [b"q", [[b"a", b"1"]]]),
        (["BZMPOP", 0, 1, "q", "MAX", "COUNT", 5], [b"q", [[b"b", b"2"], [b"a", b"1"]]]),
    ],
    ids=lambda w: w[0],
)
def test_whatever_makes_a_sorted_set_serves(server, command, waiting, expected):  # noqa: F811
    with connections(server, 2) as (control, a):
        control("ZADD", "from", "1", "a", "2", "b")
        block(control, a, *waiting)
        control(*command)
        assert a.read().plain() == expected
        left = 2 - (len(expected[1]) if isinstance(expected[1], list) else 1)
        assert control("ZCARD", "q") == left


def test_clients_are_served_in_the_order_they_blocked(server):  # noqa: F811
    with connections(server, 4) as (control, a, b, c):
        block(control, a, "BZPOPMIN", "q", 0)
        block(control, b, "BZPOPMAX", "q", 0)
        block(control, c, "BZPOPMIN", "q", 0)
        assert control("ZADD", "q", "1", "a", "2", "b", "3", "c", "4", "d") == 4
        assert a.read().plain() == [b"q", b"a", b"1"]
        assert b.read().plain() == [b"q", b"d", b"4"]
        assert c.read().plain() == [b"q", b"b", b"2"]
        assert control("ZRANGE", "q", "0", "-1") == [b"c"]


def test_each_pipelined_command_serves_at_once(server):  # noqa: F811
    with connections(server, 3) as (control, a, b):
        if workers(control) > 1:
            pytest.skip("clients of another worker are served when the batch has been committed")
        block(control, a, "BZPOPMIN", "q", 0)
        block(control, b, "BZPOPMIN", "q", 0)
        replies = control.pipeline([["ZADD", "q", "5", "x"], ["ZCARD", "q"], ["ZADD", "q", "1", "y", "9", "z"], ["ZCARD", "q"]])
        assert [r.plain() for r in replies] == [1, 0, 2, 1]
        assert a.read().plain() == [b"q", b"x", b"5"]
        assert b.read().plain() == [b"q", b"y", b"1"]


def test_a_transaction_serves_behind_its_end(server):  # noqa: F811
    with connections(server, 2) as (control, a):
        block(control, a, "BZPOPMIN", "q", 0)
        control("MULTI")
        control("ZADD", "q", "5", "x")
        control("ZADD", "q", "1", "y")
        control("EXEC")
        assert a.read().plain() == [b"q", b"y", b"1"]
        assert control("ZRANGE", "q", "0", "-1") == [b"x"]


def test_another_type_serves_nobody(server):  # noqa: F811
    with connections(server, 3) as (control, a, b):
        block(control, a, "BZPOPMIN", "q", 0)
        block(control, b, "BLPOP", "q", 0)
        control("RPUSH", "q", "item")
        assert b.read().plain() == [b"q", b"item"]
        nothing_yet(a)
        control("SET", "q", "text")
        nothing_yet(a)
        control("DEL", "q")
        control("ZADD", "q", "1", "a")
        assert a.read().plain() == [b"q", b"a", b"1"]


def test_a_client_that_is_gone_has_taken_nothing(server):  # noqa: F811
    with connections(server, 3) as (control, a, b):
        block(control, a, "BZPOPMIN", "q", 0)
        block(control, b, "BZPOPMIN", "q", 0)
        a.close()
        wait.until(lambda: blocked(control) == 1, "the client to be gone")
        control("ZADD", "q", "1", "a", "2", "b")
        assert b.read().plain() == [b"q", b"a", b"1"]
        assert control("ZRANGE", "q", "0", "-1") == [b"b"]


def test_scores_are_doubles_in_resp3(server):  # noqa: F811
    with connections(server, 3) as (control, a, b):
        for client in (a, b):
            client("HELLO", "3")
        block(control, a, "BZPOPMIN", "q", 0)
        control("ZADD", "q", "1.5", "a")
        assert a.read().raw == b"*3\r\n$1\r\nq\r\n$1\r\na\r\n,1.5\r\n"
        block(control, b, "BZMPOP", 0, 1, "q", "MAX", "COUNT", 2)
        control("ZADD", "q", "inf", "a", "-1", "b")
        assert b.read().raw == b"*2\r\n$1\r\nq\r\n*2\r\n*2\r\n$1\r\na\r\n,inf\r\n*2\r\n$1\r\nb\r\n,-1\r\n"


@pytest.mark.parametrize("command", [["BZPOPMIN", "q", "0.05"], ["BZMPOP", "0.05", 1, "q", "MIN"]], ids=lambda c: c[0])
def test_a_timeout_answers_null(server, command):  # noqa: F811
    with connections(server, 1) as (a,):
        assert a.call(*command).raw == b"*-1\r\n"
