"""keyspace_hits and keyspace_misses count what redis-server counts: look-ups of commands that read, and of those keys
that a command reads and another one that it writes."""

import pytest

SETUP = [
    "SET string value",
    "SET number 7",
    "SETRANGE long 70000 x",
    "RPUSH list 3 1 2",
    "SADD set a b c",
    "SADD set2 b c d",
    "HSET hash f v n 1",
    "ZADD zset 1 a 2 b 3 c",
    "MSET w_1 3 w_2 2",
    "HSET h_1 f x",
]

# KEY stands for each of a key of the right type, one that is not there, and one of another type.
READS = {
    "string": ["GET KEY", "STRLEN KEY", "GETRANGE KEY 0 1", "SUBSTR KEY 0 1", "MGET KEY", "MGET KEY KEY nothing",
               "GETBIT KEY 1", "BITCOUNT KEY", "BITPOS KEY 1", "BITFIELD_RO KEY GET u8 0", "LCS KEY number"],
    "list": ["LLEN KEY", "LINDEX KEY 0", "LRANGE KEY 0 -1", "LPOS KEY 1"],
    "set": ["SISMEMBER KEY a", "SMISMEMBER KEY a b", "SCARD KEY", "SMEMBERS KEY", "SRANDMEMBER KEY", "SRANDMEMBER KEY 2",
            "SSCAN KEY 0", "SINTER KEY", "SINTER KEY set2", "SINTER set2 KEY nothing", "SUNION KEY set2", "SDIFF KEY set2",
            "SDIFF set2 KEY", "SINTERCARD 2 KEY set2"],
    "hash": ["HGET KEY f", "HMGET KEY f g", "HGETALL KEY", "HKEYS KEY", "HVALS KEY", "HLEN KEY", "HEXISTS KEY f",
             "HSTRLEN KEY f", "HRANDFIELD KEY", "HSCAN KEY 0"],
    "zset": ["ZSCORE KEY a", "ZMSCORE KEY a b", "ZCARD KEY", "ZRANK KEY a", "ZCOUNT KEY 0 10", "ZRANGE KEY 0 -1",
             "ZRANGEBYSCORE KEY 0 10", "ZRANGEBYLEX KEY - +", "ZLEXCOUNT KEY - +", "ZREVRANGE KEY 0 1", "ZRANDMEMBER KEY",
             "ZSCAN KEY 0", "ZUNION 2 KEY zset", "ZINTER 2 zset KEY", "ZDIFF 2 KEY set", "ZINTERCARD 2 set KEY"],
    "any": ["EXISTS KEY", "EXISTS KEY KEY", "TOUCH KEY nothing", "TYPE KEY", "TTL KEY", "PTTL KEY", "EXPIRETIME KEY",
            "PEXPIRETIME KEY", "OBJECT ENCODING KEY", "OBJECT REFCOUNT KEY", "MEMORY USAGE KEY", "KEYS *", "SCAN 0", "DBSIZE",
            "DEBUG OBJECT KEY", "RANDOMKEY", "SORT_RO KEY ALPHA", "SORT_RO KEY BY w_* GET # GET w_* GET h_*->f",
            "WATCH KEY"],
}  # fmt: skip

WRITES = {
    "string": ["SET KEY x", "SET KEY x GET", "SET KEY x NX", "SET KEY x XX GET", "SETNX KEY x", "GETSET KEY x", "GETDEL KEY",
               "GETEX KEY", "GETEX KEY EX 100", "GETEX KEY PERSIST", "APPEND KEY x", "SETRANGE KEY 1 x", "SETRANGE KEY 1 ''",
               "SETBIT KEY 1 1", "BITFIELD KEY GET u8 0", "BITFIELD KEY SET u8 0 1", "BITOP AND d KEY string",
               "BITOP NOT d KEY", "MSET KEY x", "MSETNX KEY x", "MSETNX nothing x KEY y", "SETEX KEY 100 x"],
    "number": ["INCR KEY", "DECRBY KEY 2", "INCRBYFLOAT KEY 1.5"],
    "list": ["RPUSH KEY x", "LPUSHX KEY x", "LPOP KEY", "RPOP KEY 2", "LSET KEY 0 x", "LTRIM KEY 0 1", "LREM KEY 0 1",
             "LINSERT KEY BEFORE 1 x", "LMOVE KEY d LEFT RIGHT", "RPOPLPUSH KEY list", "LMPOP 2 nothing KEY LEFT",
             "BLPOP KEY list 1", "BLMOVE KEY list LEFT LEFT 0.01", "SORT KEY", "SORT KEY STORE d", "SORT KEY BY w_* STORE d",
             "SORT KEY BY nosort GET w_* GET h_*->f GET #"],
    "set": ["SADD KEY x", "SREM KEY a", "SPOP KEY", "SPOP KEY 2", "SMOVE KEY set2 a", "SMOVE set2 KEY d", "SMOVE KEY KEY a",
            "SINTERSTORE d KEY set2", "SUNIONSTORE d set2 KEY", "SDIFFSTORE d KEY set2", "SDIFFSTORE KEY set set2"],
    "hash": ["HSET KEY f x", "HSETNX KEY g x", "HMSET KEY f x", "HDEL KEY f", "HINCRBY KEY n 1", "HINCRBYFLOAT KEY n 1.5"],
    "zset": ["ZADD KEY 1 a", "ZADD KEY XX 1 a", "ZINCRBY KEY 1 a", "ZREM KEY a", "ZPOPMIN KEY", "ZMPOP 1 KEY MIN",
             "BZPOPMIN KEY zset 1", "ZREMRANGEBYRANK KEY 0 0", "ZREMRANGEBYSCORE KEY 0 1", "ZREMRANGEBYLEX KEY - +",
             "ZRANGESTORE d KEY 0 1", "ZUNIONSTORE d 2 KEY zset", "ZINTERSTORE d 2 set KEY", "ZDIFFSTORE d 2 zset KEY"],
    "any": ["DEL KEY", "UNLINK KEY nothing", "EXPIRE KEY 100", "EXPIRE KEY -1", "PERSIST KEY", "RENAME KEY d",
            "RENAMENX KEY string", "COPY KEY d", "COPY KEY string", "COPY KEY string REPLACE", "MOVE KEY 1", "FLUSHDB"],
}  # fmt: skip


def counted(connection, command):
    words = [b"" if word == "''" else word for word in command.split()]
    before = [line.split() for line in ["FLUSHALL", *SETUP, "CONFIG RESETSTAT"]]
    connection.pipeline([*before, words])
    stats = dict(line.split(":") for line in connection("INFO", "stats").decode().split("\r\n") if ":" in line)
    connection.call("UNWATCH")
    return int(stats["keyspace_hits"]), int(stats["keyspace_misses"])


def commands():
    for table in (READS, WRITES):
        for kind, lines in table.items():
            keys = ["string", "list", "hash", "set", "zset"] if kind == "any" else [kind, "hash" if kind != "hash" else "list"]
            for line in lines:
                for key in [*keys, "nothing"] if "KEY" in line else [None]:
                    yield line.replace("KEY", key) if key else line


def test_lookups_are_counted_as_redis_counts_them(oracle, subject):
    different = []
    with oracle.connect() as a, subject.connect() as b:
        for command in commands():
            name = command.split()[0]
            if a("COMMAND", "INFO", name) == [None] or b("COMMAND", "INFO", name) == [None]:
                continue
            expected, actual = counted(a, command), counted(b, command)
            if expected != actual:
                different.append(f"{command}: redis {expected}, larder {actual}")
    if different:
        pytest.fail("hits and misses:\n" + "\n".join(different), pytrace=False)
