"""Commands that arrive together and come to nothing: what they say, and that nobody waits for a commit that there is not."""

import pytest

NOTHING_LEFT = [
    [("SET", "a", "1"), ("DEL", "a")],
    [("MULTI",), ("SET", "a", "1"), ("DEL", "a"), ("EXEC",)],
    [("RPUSH", "l", "x"), ("LPOP", "l")],
    [("SADD", "s", "m"), ("SREM", "s", "m")],
    [("ZADD", "z", "1", "m"), ("ZREM", "z", "m")],
    [("HSET", "h", "f", "v"), ("HDEL", "h", "f")],
    [("HSET", "there", "g", "v"), ("HDEL", "there", "g")],
    [("SWAPDB", "1", "2"), ("SWAPDB", "1", "2")],
    [("RENAME", "k", "k2"), ("RENAME", "k2", "k")],
    [("EXPIRE", "k", "100"), ("PERSIST", "k")],
    [("GETSET", "q", "1"), ("GETDEL", "q")],
    [("FLUSHDB",)],
]


@pytest.mark.parametrize("commands", NOTHING_LEFT, ids=lambda commands: " ".join(command[0] for command in commands))
def test_what_comes_to_nothing_is_answered(larder, oracle, commands):
    with larder.connect(timeout=20) as ours, oracle.connect() as theirs:
        theirs("FLUSHALL")
        for connection in (ours, theirs):
            connection("SET", "k", "v")
            connection("HSET", "there", "f", "v")
        for _ in range(3):
            expected = [reply.raw for reply in theirs.pipeline(commands)]
            assert [reply.raw for reply in ours.pipeline(commands)] == expected
        for connection in (ours, theirs):
            assert connection("SET", "after", "x") == b"OK"
        assert ours("DBSIZE") == theirs("DBSIZE")
