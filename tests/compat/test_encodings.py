"""OBJECT ENCODING and DEBUG OBJECT tell what redis-server would, on both sides of each of its limits."""

import re

import pytest

LONG = b"x" * 65
FIT = b"x" * 64


def numbered(count):
    return [b"%d" % i for i in range(count)]


def pairs(names):
    return [word for name in names for word in (name, b"1")]


def scores(names):
    return [word for name in names for word in (b"1", name)]


CASES = {
    "set of integers": ["SADD", *numbered(3)],
    "set at its limit": ["SADD", *numbered(512)],
    "set beyond it": ["SADD", *numbered(513)],
    "large set": ["SADD", *numbered(5000)],
    "set of extremes": ["SADD", 2**63 - 1, -(2**63)],
    "set with what is too large": ["SADD", 1, 2**63],
    "set with a word": ["SADD", *numbered(10), "x"],
    "set with what is no integer": ["SADD", "1", "01"],
    "set with nothing": ["SADD", ""],
    "hash": ["HSET", *pairs(numbered(3))],
    "hash at its limit": ["HSET", *pairs(numbered(512))],
    "hash beyond it": ["HSET", *pairs(numbered(513))],
    "large hash": ["HSET", *pairs(numbered(5000))],
    "hash with a field that fits": ["HSET", FIT, FIT],
    "hash with a long field": ["HSET", LONG, "1"],
    "hash with a long value": ["HSET", "f", LONG],
    "sorted set": ["ZADD", *scores(numbered(3))],
    "sorted set at its limit": ["ZADD", *scores(numbered(128))],
    "sorted set beyond it": ["ZADD", *scores(numbered(129))],
    "large sorted set": ["ZADD", *scores(numbered(5000))],
    "sorted set with a member that fits": ["ZADD", "1", FIT],
    "sorted set with a long member": ["ZADD", "1", LONG],
    "list": ["RPUSH", "a"],
    "longer list": ["RPUSH", *numbered(200)],
    "large list": ["RPUSH", *numbered(5000)],
    "list with a long item": ["RPUSH", "x" * 9000],
    "integer": ["SET", "12345"],
    "short string": ["SET", "x" * 44],
    "longer string": ["SET", "x" * 45],
    "long string": ["SET", "x" * 70_000],
}


@pytest.mark.parametrize("name", CASES)
def test_encodings(name, oracle, subject):
    command, *words = CASES[name]
    told = []
    for server in (oracle, subject):
        with server.connect() as c:
            c("DEL", "k")
            c(command, "k", *words)
            encoding = c("OBJECT", "ENCODING", "k")
            described = re.search(rb" encoding:(\w+) ", c("DEBUG", "OBJECT", "k"))[1]
            told.append((encoding, described))
            c("DEL", "k")
    assert told[0] == told[1]
