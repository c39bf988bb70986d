"""A script is one transaction: what an error takes back, what EXEC and others see of it, and the books about what it runs."""

import hashlib
import re

import pytest

from harness import wait
from harness.http import HttpLarder
from harness.resp import encode

ROLLBACK = "#!lua flags=rollback\n"
# Rows of every kind, in memory and in the tables; the last line has what was written brought into the transaction.
SPOIL = """
redis.call('SET', 'string', 'new', 'PX', 12345)
redis.call('APPEND', 'long', 'tail')
redis.call('SETRANGE', 'long', 70000, 'middle')
redis.call('DEL', 'gone')
redis.call('RENAME', 'name', 'other name')
redis.call('HSET', 'hash', 'field7', 'new', 'another', 'x')
redis.call('HDEL', 'hash', 'field8', 'field9')
for i = 1, 20 do redis.call('LPOP', 'list') end
redis.call('SREM', 'set', unpack(redis.call('SRANDMEMBER', 'set', 40)))
redis.call('ZREMRANGEBYRANK', 'zset', 10, 90)
redis.call('ZADD', 'zset', -1, 'first')
redis.call('RPUSH', 'created', 'a', 'b')
redis.call('SELECT', 1)
redis.call('SET', 'far', 'x')
redis.call('SELECT', 0)
redis.call('PERSIST', 'dies')
"""
SCAN = """
assert(redis.call('ZRANK', 'zset', 'first') == 0)
assert(#redis.call('HKEYS', 'hash') > 100 and #redis.call('KEYS', '*') > 5 and redis.call('DBSIZE') > 5)
"""
FAIL = "return redis.error_reply('MY own error')"


def fill(c):
    c("FLUSHALL")
    c("MSET", "string", "old", "gone", "old", "name", "n", "dies", "x")
    c("PEXPIREAT", "dies", 1 << 45)
    c("SET", "long", "x" * 200000)
    for i in range(0, 5000, 1000):
        numbers = range(i, i + 1000)
        c("HSET", "hash", *(word for j in numbers for word in (f"field{j}", "value")))
        c("RPUSH", "list", *numbers)
        c("SADD", "set", *numbers)
        c("ZADD", "zset", *(word for j in numbers for word in (j, f"member{j}")))
    c("HSET", "small", "f", "v")


def contents(c):
    """What every key says, as bytes that can be compared."""
    found = {"dbsize": c("DBSIZE"), "expiry": c("PEXPIRETIME", "dies")}
    for key in sorted(c("KEYS", "*")):
        kind = c("TYPE", key)
        read = {
            b"string": ("GET", key), b"hash": ("HGETALL", key), b"list": ("LRANGE", key, 0, -1),
            b"set": ("SMEMBERS", key), b"zset": ("ZRANGE", key, 0, -1, "WITHSCORES"),
        }[kind]  # fmt: skip
        value = c(*read)
        if kind == b"hash":
            value = sorted(zip(value[::2], value[1::2]))
        found[key] = (kind, sorted(value) if kind == b"set" else value, c("PTTL", key) > 0)
    c("SELECT", 1)
    found["other"] = c("KEYS", "*")
    c("SELECT", 0)
    return found


@pytest.mark.parametrize("scan", ["", SCAN], ids=["in memory", "in the transaction"])
def test_an_error_takes_all_of_it_back(subject, scan):
    with subject.connect() as c:
        fill(c)
        before = contents(c)
        versions = c("EVAL", "return redis.call('OBJECT', 'ENCODING', 'hash')", 0)
        assert c.error("EVAL", ROLLBACK + SPOIL + scan + FAIL, 0) == "MY own error"
        assert contents(c) == before
        raised = c.error("EVAL", ROLLBACK + SPOIL + scan + "redis.call('INCR', 'hash')", 0)
        assert raised.startswith("WRONGTYPE ") and contents(c) == before
        assert "boom" in c.error("EVAL", ROLLBACK + SPOIL + scan + "error('boom')", 0)
        assert contents(c) == before
        assert c("EVAL", "return redis.call('OBJECT', 'ENCODING', 'hash')", 0) == versions
        # As many commands around it as a batch has.
        replies = c.pipeline([("SET", "a", 1), ("EVAL", ROLLBACK + SPOIL + scan + FAIL, 0), ("INCR", "a"), ("GET", "string")])
        assert [r.plain() for r in replies if not r.is_error] == [b"OK", 2, b"old"] and replies[1].is_error
        assert c("DEL", "a") == 1 and contents(c) == before
        # Without the flag, and without an error, all of it stays.
        assert c.error("EVAL", SPOIL + scan + FAIL, 0) == "MY own error"
        kept = contents(c)
        assert kept["other"] == [b"far"] and kept[b"created"][1] == [b"a", b"b"]
        fill(c)
        assert c("EVAL", ROLLBACK + SPOIL + scan + "return 1", 0) == 1
        again = contents(c)
        del kept[b"set"], again[b"set"]  # by chance
        assert again == kept


@pytest.mark.parametrize("scan", ["", SCAN], ids=["in memory", "in the transaction"])
def test_within_exec_only_the_script_is_taken_back(subject, scan):
    with subject.connect() as c:
        fill(c)
        c("SET", "a", 0)
        before = contents(c)
        transaction = [
            ("MULTI",), ("INCR", "a"), ("HSET", "hash", "field7", "queued"), ("RPUSH", "list", "queued"),
            ("EVAL", ROLLBACK + SPOIL + scan + "redis.call('INCR', 'a') " + FAIL, 0), ("INCR", "a"),
            ("EVAL", ROLLBACK + "redis.call('INCR', 'a')" + scan.replace("assert", "tostring") + "return 1", 0),
            ("EVAL", ROLLBACK + SPOIL + scan + FAIL, 0), ("INCR", "a"), ("EXEC",),
        ]  # fmt: skip
        replies = [one.plain() if not one.is_error else one.value for one in c.pipeline(transaction)[-1].value]
        assert replies == [1, 0, 5001, b"MY own error", 2, 1, b"MY own error", 4]
        after = contents(c)
        assert after.pop(b"a")[1] == b"4" and before.pop(b"a")[1] == b"0"
        assert dict(after[b"hash"][1])[b"field7"] == b"queued" and after[b"list"][1][-1] == b"queued"
        c("HSET", "hash", "field7", "value")
        c("RPOP", "list")
        after = contents(c)
        del after[b"a"]
        assert after == before


def test_what_is_taken_back_outlives_a_kill(fleet):
    larder = fleet.larder()
    with larder.connect() as c:
        fill(c)
        before = contents(c)
        for script in (SPOIL, SPOIL + SCAN):
            c.pipeline([("SET", "beside", 1), ("EVAL", ROLLBACK + script + FAIL, 0)])
    larder.kill()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert c("DEL", "beside") == 1 and contents(c) == before


def test_nobody_is_served_by_what_was_taken_back(fleet):
    larder = fleet.larder()
    with larder.connect() as waiting, larder.connect() as c:
        waiting.send(encode(["BLPOP", "queue", 0]))
        wait.until(lambda: b"blocked_clients:1\r" in c("INFO", "clients"), "it waits")
        c.error("EVAL", ROLLBACK + "redis.call('RPUSH', 'queue', 'undone') " + FAIL, 0)
        replies = c.pipeline([("MULTI",), ("EVAL", ROLLBACK + "redis.call('RPUSH', 'queue', 'undone') " + FAIL, 0), ("EXEC",)])
        assert not replies[-1].is_error and b"blocked_clients:1\r" in c("INFO", "clients")
        # What a script pushes serves those who wait behind the script, which sees all of it until it ends.
        assert c("EVAL", "redis.call('RPUSH', 'queue', 'a', 'b') return redis.call('LLEN', 'queue')", 0) == 2
        assert waiting.read().plain() == [b"queue", b"a"] and c("LRANGE", "queue", 0, -1) == [b"b"]


def test_watches_see_what_scripts_write(subjects):
    subject = subjects("--workers", "1")
    with subject.connect() as c, subject.connect() as other:
        c("FLUSHALL")
        for script, aborted in (
            ("redis.call('SET', 'w', 1)", True),
            ("redis.call('SET', 'w', 1) redis.call('DEL', 'w')", True),
            (ROLLBACK + "redis.call('SET', 'w', 1) " + FAIL, False),
            ("return redis.call('GET', 'w')", False),
        ):
            c("DEL", "w")
            c("WATCH", "w")
            other.call("EVAL", script, 0)
            found = c.pipeline([("MULTI",), ("SET", "x", 1), ("EXEC",)])[-1].plain()
            assert (found is None) == aborted, script


def test_in_the_queue_of_a_transaction(oracle, subject):
    script = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
    sha = hashlib.sha1(script.encode()).hexdigest()
    library = "#!lua name=queued\nredis.register_function('queued', function(k, a) return redis.call('INCR', k[1]) end)"
    queue = [
        ("MULTI",), ("SCRIPT", "FLUSH"), ("EVALSHA", sha, 1, "n", 1), ("SCRIPT", "LOAD", script), ("EVALSHA", sha, 1, "n", 5),
        ("SCRIPT", "EXISTS", sha), ("FUNCTION", "LOAD", "REPLACE", library), ("FCALL", "queued", 1, "n"), ("SELECT", 2),
        ("EVAL", "redis.call('SELECT', 3) return redis.call('SET', 'far', 1)", 0), ("SET", "near", 1),
        ("EVAL", "return redis.call('BLPOP', 'list', 0)", 0), ("EVAL", "return {redis.call('INCR', 'near'), {err = 'MY own'}}", 0),
        ("EVAL_RO", "return redis.call('GET', 'near')", 0), ("EVAL", "syntax error", 0), ("SELECT", 0), ("EXEC",),
        ("EVAL", "x"), ("GET", "n"), ("EVALSHA", sha.upper(), 1, "n", 1), ("FUNCTION", "DELETE", "queued"),
    ]  # fmt: skip
    found = []
    for server in (oracle, subject):
        with server.connect() as c:
            c("FLUSHALL")
            found.append([reply.raw for reply in c.pipeline(queue)])
            for db in (2, 3):
                c("SELECT", db)
                found[-1].append(sorted(c("KEYS", "*")))
    assert found[1] == found[0]


def test_one_moment_for_all_of_a_script(fleet):
    larder = fleet.larder()
    with larder.connect() as c:
        script = """
            redis.call('SET', 'k', 'v', 'PX', 20)
            local before = redis.call('PTTL', 'k')
            for i = 1, 6000000 do end
            return {before, redis.call('PTTL', 'k'), redis.call('GET', 'k')}
        """
        before, after, value = c("EVAL", script, 0)
        assert before == after == 20 and value == b"v"
        c("DEBUG", "CLOCK", "+1000")
        assert c("EVAL", "return redis.call('EXISTS', 'k')", 0) == 0


# ---- the books ----


def monitored(connection):
    """The lines that MONITOR has shown, without times and addresses."""
    text, _ = connection.read_available(0.3)
    lines = [line.decode() for line in text.split(b"\r\n") if line]
    return [re.sub(r"^\+[\d.]+ \[(\d+) (lua|).*?\]", r"[\1 \2]", line) for line in lines]


RUNS = [
    ("EVAL", "redis.call('set', KEYS[1], ARGV[1]) redis.call('get', 'no') redis.call('get', KEYS[1])"
             " redis.pcall('incr', KEYS[1]) redis.pcall('nosuch') redis.pcall('get')"
             " return redis.call('lpush', KEYS[1], 'x')", 1, "k", "v"),
    ("EVAL", "return redis.pcall('lpush', KEYS[1], 'x')", 1, "k"),
    ("EVAL", "return {err = 'MY own'}", 0),
    ("EVAL", "error('boom')", 0),
    ("EVALSHA", "0" * 40, 0),
    ("EVAL", "x =", 0),
    ("EVAL", "return 1", 5),
    ("EVAL", "redis.call('select', 3) redis.call('set', 'a', 'b') return 1", 0),
    ("EVAL_RO", "return redis.call('set', 'a', 'b')", 0),
    ("EVAL_RO", "return redis.call('get', 'nope')", 0),
    ("EVAL", "return redis.call('blpop', 'list', 0)", 0),
    ("MULTI",),
    ("EVAL", "redis.call('incr', 'q') return redis.call('incr', 'q')", 1, "q"),
    ("BLPOP", "list", 0),
    ("EXEC",),
    ("PING",),
]  # fmt: skip


def books(server):
    with server.connect() as c, server.connect() as monitor:
        c("FLUSHALL")
        c("CONFIG", "SET", "slowlog-log-slower-than", 0)
        assert monitor("MONITOR") == b"OK"
        c("SLOWLOG", "RESET")
        c("CONFIG", "RESETSTAT")
        replies = [c.call(*command).raw for command in RUNS]
        assert re.search(rb" cmd=client\|list .*", c("CLIENT", "LIST"))
        info = b"".join(c("INFO", section) for section in ("stats", "commandstats", "errorstats")).decode()
        slow = [(entry[3], re.sub(rb"^127.*", b"", entry[4])) for entry in reversed(c("SLOWLOG", "GET", 100))]
        c("CONFIG", "SET", "slowlog-log-slower-than", 10000)
        statistics = re.findall(r"^(total_commands_processed|total_error_replies|keyspace_hits|keyspace_misses):(\d+)", info, re.M)
        statistics += re.findall(r"^(errorstat_\w+):count=(\d+)", info, re.M)
        statistics += re.findall(r"^(cmdstat_[\w|]+):calls=(\d+),.*rejected_calls=(\d+),failed_calls=(\d+)", info, re.M)
        lines = [line for line in monitored(monitor) if "SLOWLOG" not in line]
        return replies, sorted(statistics), slow, lines


def test_the_books_are_those_of_redis(oracle, fleet):
    """MONITOR, SLOWLOG, INFO commandstats and errorstats, hits and misses."""
    for expected, found in zip(books(oracle), books(fleet.larder())):
        assert found == expected


def test_a_script_that_runs_many_commands_is_counted_to_the_last(fleet):
    larder = fleet.larder()
    with larder.connect() as c:
        c("EVAL", "for i = 1, 200000 do redis.call('get', 'k') redis.pcall('lpush') end", 0)
        info = c("INFO", "commandstats")
        assert b"cmdstat_get:calls=200000," in info
        assert re.search(rb"cmdstat_lpush:calls=0,.*rejected_calls=200000,", info)


# ---- HTTP ----


def test_over_http(fleet):
    larder = fleet.new(HttpLarder).start()
    with larder.http() as web, larder.connect() as c:
        assert web.post("/", ["EVAL", "return {1, 'a', false, {2, {ok='fine'}}}", 0]).json["result"] == [1, "a", None, [2, "fine"]]
        assert web.post("/", ["EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", 1, "k", "v"]).json["result"] == "OK"
        answer = web.post("/", ["EVAL", "redis.call('SET', 'k', 'w') return redis.error_reply('MY own')", 0])
        assert answer.status == 400 and answer.json["error"] == "MY own" and c("GET", "k") == b"w"
        answer = web.post("/", ["EVAL", ROLLBACK + "redis.call('SET', 'k', 'x') return redis.error_reply('MY own')", 0])
        assert answer.status == 400 and c("GET", "k") == b"w"
        undone = ["EVAL", ROLLBACK + "redis.call('INCR', 'n') redis.call('KEYS', '*') return redis.error_reply('MY own')", 0]
        kept = ["EVAL", "return redis.call('INCR', 'n')", 0]
        for path in ("/pipeline", "/multi-exec"):
            c("SET", "n", 0)
            found = web.post(path, [kept, undone, kept]).json
            assert found == [{"result": 1}, {"error": "MY own"}, {"result": 2}] and c("GET", "n") == b"2", path
        assert web.post("/", ["BLPOP", "nothing", 0]).json["result"] is None
