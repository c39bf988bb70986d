"""Tables that another process has changed in ways that make no sense: every command is answered, by an error where it
has to be, nothing ends the server, and no reply is shorter or longer than it says."""

import sqlite3

import pytest

from harness import servers

pytestmark = pytest.mark.sqlite

SMALL, LARGE = 5, 2000  # one is read into memory as a whole, the other row by row

DAMAGE = [
    "DELETE FROM larder_list WHERE pos % 3 = 0",
    "DELETE FROM larder_set WHERE ord % 3 = 0",
    "DELETE FROM larder_hash WHERE ord % 2 = 1",
    "DELETE FROM larder_zset WHERE ord % 3 = 0",
    "DELETE FROM larder_zset_block",
    "UPDATE larder_zset_block SET count = count * 2",
    "UPDATE larder_zset_block SET count = -5",
    "UPDATE larder_key SET size = size + 7",
    "UPDATE larder_key SET size = size - 3",
    "UPDATE larder_key SET size = -3",
    "UPDATE larder_key SET size = 9223372036854775807",
    "UPDATE larder_key SET first = first - 5",
    "UPDATE larder_key SET first = 9223372036854775800",
    "UPDATE larder_key SET type = 9",
    "UPDATE larder_key SET type = type % 5 + 1",
    "UPDATE larder_key SET id = 0",
    "UPDATE larder_key SET id = -1",
    "DELETE FROM larder_chunk WHERE pos % 2 = 1",
    "UPDATE larder_chunk SET value = x'00'",
    "UPDATE larder_chunk SET value = zeroblob(200000)",
    "UPDATE larder_hash SET ord = 0",
    "UPDATE larder_set SET ord = ord + 100000",
    "UPDATE larder_zset SET ord = -ord",
    "UPDATE larder_hash SET ord = -ord - 1",
    "UPDATE larder_set SET ord = 9223372036854775807 - ord",
    "UPDATE larder_set SET ord = -9223372036854775807 - 1 + ord",
    "UPDATE larder_key SET numbers = -3",
    "UPDATE larder_key SET numbers = 3",
    "UPDATE larder_key SET numbers = size - 1",
    "UPDATE larder_key SET numbers = 9223372036854775807",
    "UPDATE larder_hash SET expire_at = -5",
    "UPDATE larder_hash SET expire_at = 5",
    "UPDATE larder_zset SET score = 0.0",
    "UPDATE larder_list SET pos = pos + 1000000",
    "INSERT INTO larder_set SELECT id, CAST(member || 'more' AS BLOB), ord FROM larder_set",
    "INSERT INTO larder_zset SELECT id, CAST(member || 'more' AS BLOB), score, ord FROM larder_zset",
    "INSERT INTO larder_hash SELECT id, CAST(field || 'more' AS BLOB), expire_at, ord, value FROM larder_hash",
    "UPDATE larder_db SET keys = -5",
    "INSERT INTO larder_trash SELECT id, type FROM larder_key WHERE id <> 0",
]

COMMANDS = """
LRANGE list 0 -1|LINDEX list 2|LPOP list 2|RPOP list|LPUSH list n|LINSERT list BEFORE x2 q|LREM list 0 x3|LSET list 1 z
LTRIM list 1 -2|LPOS list x4|LMOVE list list LEFT RIGHT|SORT list ALPHA|LRANGE list 0 -1
SMEMBERS set|SRANDMEMBER set 3|SRANDMEMBER set -3|SRANDMEMBER set 1900|SADD set new|SREM set x1 x2|SSCAN set 0|SUNION set set
SORT set ALPHA|SORT set BY nosort|SPOP set 2|SPOP set 1500|SINTERSTORE other set set|SMEMBERS set
HGETALL hash|HSET hash x1 2 new 3|HDEL hash x2 x3|HRANDFIELD hash 2|HRANDFIELD hash 1900 WITHVALUES|HRANDFIELD hash -4|HSCAN hash 0
HTTL hash FIELDS 1 x1|HPEXPIRE hash 1 FIELDS 2 x0 x4|HLEN hash|HKEYS hash|HVALS hash
ZRANGE zset 0 -1|ZRANK zset x3|ZRANGE zset 2 3|ZCOUNT zset 1 3|ZADD zset 2 x1 3 new|ZREM zset x2|ZRANDMEMBER zset 2
ZRANDMEMBER zset 1900|ZRANDMEMBER zset -2|ZRANGEBYSCORE zset 1 3|ZSCAN zset 0|ZLEXCOUNT zset - +|ZINCRBY zset 1 x0|ZUNION 1 zset
ZREVRANGE zset 0 -1 WITHSCORES|SORT zset ALPHA|ZPOPMIN zset 2|ZREMRANGEBYRANK zset 0 1|ZREMRANGEBYSCORE zset 3 4|ZPOPMAX zset 1000
GET string|APPEND string z|SETRANGE string 70000 abc|GETRANGE string 65530 65540|BITCOUNT string|STRLEN string|SETBIT string 900000 1
COPY list c1|COPY zset c2|COPY hash c3|COPY set c4|COPY string c5|RENAME set c6|OBJECT ENCODING zset|MEMORY USAGE hash|DEBUG OBJECT zset
SCAN 0 COUNT 100|DBSIZE|RANDOMKEY|KEYS *|DEL zset|UNLINK hash|SET string x|INFO
"""


def fill(client, prefix, n):
    names = [f"x{i}" for i in range(n)]
    client("RPUSH", f"{prefix}list", *names)
    client("SADD", f"{prefix}set", *names)
    client("HSET", f"{prefix}hash", *[part for name in names for part in (name, "v")])
    client("ZADD", f"{prefix}zset", *[part for i, name in enumerate(names) for part in (i, name)])
    client("HPEXPIRE", f"{prefix}hash", 1_000_000, "FIELDS", 2, "x1", "x2")
    client("SET", f"{prefix}string", "y" * n * 100)


def damage(larder, sql):
    other = sqlite3.connect(larder.store.path, isolation_level=None)
    try:
        other.execute(sql)
    finally:
        other.close()


def commands(prefix):
    for command in COMMANDS.replace("\n", "|").strip("|").split("|"):
        name, *args = command.split(" ")
        yield name, *(prefix + arg if arg in ("list", "set", "hash", "zset", "string") else arg for arg in args)


@pytest.mark.parametrize("place", ["in-tables", "pending"])
@pytest.mark.parametrize("sql", DAMAGE)
def test_every_command_is_answered(fleet, sql, place):
    larder = fleet.new(servers.Larder, "--sweep-interval", "20ms", "--durability", "off").start()
    with larder.connect(timeout=20) as client:
        for prefix, n in (("s", SMALL), ("l", LARGE)):
            fill(client, prefix, n)
        if place == "in-tables":  # else a part of what is damaged is written over by what waits to be applied
            assert client("SAVE") == b"OK"
        damage(larder, sql)
        for prefix in ("s", "l"):
            for command in commands(prefix):
                reply = client.call(*command)
                assert client.call("ECHO", "next").value == b"next", f"{command} answered {reply!r}"
        assert client("FLUSHALL") == b"OK"
        assert client("SET", "k", "v") == b"OK"
