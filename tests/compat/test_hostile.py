"""Commands that ask for more than a server has: they are refused or bounded, and everyone else goes on."""

import pytest


@pytest.mark.parametrize("count", [-(2**63) + 1, -(2**62), -(2**40), -(2**28)])
@pytest.mark.parametrize(
    "command", [["SRANDMEMBER", "set"], ["HRANDFIELD", "hash"], ["ZRANDMEMBER", "zset"]], ids=lambda c: c[0].lower()
)
def test_random_items_without_end(client, command, count):
    """Redis answers such counts until memory is out."""
    client("SADD", "set", "a", "b")
    client("HSET", "hash", "a", "1")
    client("ZADD", "zset", 1, "a")
    assert client.error(*command, count) == "ERR value is out of range"
    assert len(client(*command, -1000)) == 1000


def test_random_items_that_are_long(client):
    client("SADD", "set", b"x" * (8 << 20))
    assert client.error("SRANDMEMBER", "set", -1000) == "ERR value is out of range"
    assert len(client("SRANDMEMBER", "set", -10)) == 10
    assert client("PING") == b"PONG"
