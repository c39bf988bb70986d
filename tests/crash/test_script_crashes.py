"""Scripts across SIGKILL and failures of the disk: all of a script or nothing of it, whatever it has acknowledged is there."""

import os
import random
import threading
import time

import pytest

from crash.scenario import DIRECT, HURRIED, WHOLE
from crash.test_transactions import ABORTED, Disk, untouched
from harness import servers
from harness.resp import Closed

pytestmark = pytest.mark.sqlite

ACCOUNTS = [f"account{i}" for i in range(10)]
CYCLES = int(float(os.environ.get("LARDER_CRASH_FACTOR", 1)) * 3)
CLIENTS = 3
ROLLBACK = "#!lua flags=rollback\n"
# Three kinds of rows, and a scan that has them brought into the transaction; the same sums in each of them.
TRANSFER = """
local from, to, amount = KEYS[1], KEYS[2], tonumber(ARGV[1])
redis.call('DECRBY', from, amount)
redis.call('HINCRBY', 'hash', from, -amount)
redis.call('ZINCRBY', 'zset', -amount, from)
if ARGV[3] == 'scan' then redis.call('ZRANGE', 'zset', 0, -1) redis.call('KEYS', 'account*') end
redis.call('INCRBY', to, amount)
redis.call('HINCRBY', 'hash', to, amount)
redis.call('ZINCRBY', 'zset', amount, to)
redis.call('RPUSH', 'log' .. ARGV[2], from .. ' ' .. to .. ' ' .. ARGV[1])
"""
DONE = TRANSFER + "return redis.call('INCR', 'count' .. ARGV[2])"
IN_VAIN = ROLLBACK + TRANSFER + "redis.call('INCR', 'count' .. ARGV[2]) error('no')"


class Teller(threading.Thread):
    """Moves money by scripts, alone and in EXEC, until the server is gone."""

    def __init__(self, server, number, done):
        super().__init__(daemon=True)
        self.server, self.number, self.done, self.sent = server, number, done, done
        self.random = random.Random(time.monotonic_ns())
        self.wrong = None

    def call(self):
        giver, taker = self.random.sample(ACCOUNTS, 2)
        scan = self.random.choice(["", "", "scan"])
        return "EVAL", self.random.choice([DONE, DONE, IN_VAIN]), 2, giver, taker, self.random.randint(1, 9), self.number, scan

    def run(self):
        try:
            with self.server.connect() as c:
                while True:
                    calls = [self.call() for _ in range(self.random.choice([1, 1, 4]))]
                    if self.random.random() < 0.3:
                        calls = [("MULTI",), *calls, ("EXEC",)]
                    self.sent += sum(call[:2] == ("EVAL", DONE) for call in calls)
                    replies = c.pipeline(calls)
                    if calls[0] == ("MULTI",):
                        replies = replies[-1].value
                    for reply in replies:
                        assert not reply.is_error or b"no script:" in reply.value, reply
                        self.done = self.done if reply.is_error else reply.plain()
        except (Closed, ConnectionError):
            pass
        except Exception as e:  # the test looks at it
            self.wrong = repr(e)


def verify(c, tellers):
    balances = {key.encode(): int(value) for key, value in zip(ACCOUNTS, c("MGET", *ACCOUNTS)) if value}
    fields = c("HGETALL", "hash")
    scores = c("ZRANGE", "zset", 0, -1, "WITHSCORES")
    assert sum(balances.values()) == 0
    assert dict(zip(fields[::2], map(int, fields[1::2]))) == balances
    assert {name: int(score) for name, score in zip(scores[::2], scores[1::2]) if name in balances} == balances
    moved = dict.fromkeys(balances, 0)
    counts = []
    for number, _ in enumerate(tellers):
        log = c("LRANGE", f"log{number}", 0, -1)
        counts.append(int(c("GET", f"count{number}") or 0))
        assert len(log) == counts[-1]
        for line in log:
            giver, taker, amount = line.split()
            moved[giver] = moved.get(giver, 0) - int(amount)
            moved[taker] = moved.get(taker, 0) + int(amount)
    assert {key: value for key, value in moved.items() if value} == {k: v for k, v in balances.items() if v}
    for teller, count in zip(tellers, counts):
        assert teller.wrong is None and teller.done <= count <= teller.sent, (teller.wrong, teller.done, count, teller.sent)
    return counts


@pytest.mark.parametrize("options", [[], HURRIED, WHOLE, DIRECT], ids=["journal", "small journal", "tiny journal", "none"])
def test_kills_in_the_midst_of_scripts(fleet, options):
    larder = fleet.new(servers.Larder, *options).start()
    with larder.connect() as c:  # large enough that it is in the tables
        for i in range(0, 5000, 1000):
            c("ZADD", "zset", *(word for j in range(i, i + 1000) for word in (0, f"other{j}")))
    counts = [0] * CLIENTS
    for _ in range(CYCLES):
        tellers = [Teller(larder, i, counts[i]) for i in range(CLIENTS)]
        for teller in tellers:
            teller.start()
        time.sleep(random.uniform(0.05, 0.3))  # any moment will do
        larder.kill()
        for teller in tellers:
            teller.join(60)
        larder.check()
        larder.start()
        with larder.connect() as c:
            counts = verify(c, tellers)
    assert sum(counts) > 0


@pytest.mark.parametrize("options", [[], DIRECT], ids=["journal", "none"])
def test_a_script_that_writes_more_than_a_batch_is_not_divided(fleet, options):
    """48 MiB in keys of their own, as a new generation; the server is killed while the script runs or is being committed."""
    larder = fleet.new(servers.Larder, *options).start()
    script = """
        local value = string.rep(ARGV[1], 524288)
        for i = 1, 96 do redis.call('SET', 'k' .. i, value) end
        return ARGV[1]
    """

    def write(generations):
        try:
            with larder.connect() as c:
                for generation in generations:
                    c("EVAL", script, 0, generation)
                    acknowledged.append(generation)
        except (Closed, ConnectionError):
            pass

    acknowledged = []
    write("a")
    for generations in ("bcdefg", "hijklm"):
        thread = threading.Thread(target=write, args=(generations,))
        thread.start()
        time.sleep(random.uniform(0.1, 0.6))  # any moment will do
        larder.kill()
        thread.join(60)
        larder.start()
        with larder.connect() as c:
            found = {c("GETRANGE", f"k{i}", 524287, -1) for i in range(1, 97)}
            assert len(found) == 1 and found.pop().decode() >= acknowledged[-1]


@pytest.mark.parametrize("options", [[], DIRECT], ids=["journal", "none"])
def test_a_disk_that_fails_ends_the_script(fleet, tmp_path, options):
    """Nothing of the script is left, whatever it catches, and nothing after the failure runs."""
    disk = Disk(fleet, tmp_path, options, {"CRASH_FIRST": 1} if not options else {})
    script = """
        redis.call('DECRBY', 'a', 5)
        local ok = pcall(redis.call, 'HSET', 'large', 'field7', 'new')
        redis.pcall('HSET', 'large', 'field8', 'new')
        redis.log(redis.LOG_WARNING, 'too late')
        redis.call('SET', 'c', 1)
        return redis.call('INCRBY', 'b', 5)
    """
    with disk.larder.connect() as c, disk.larder.http() as web:
        with disk.fails(c):
            assert c.error("EVAL", script, 0).startswith("IOERR ")
            assert c.error("EVAL", ROLLBACK + script, 0).startswith("IOERR ")
            replies = c.pipeline([("MULTI",), ("SET", "c", 1), ("EVAL", script, 0), ("EXEC",)])
            assert replies[-1].value.startswith(ABORTED)
            answer = web.post("/", ["EVAL", script, 0])
            assert answer.status == 503 and answer.json["error"].startswith("IOERR "), answer
            answer = web.post("/multi-exec", [["SET", "c", 1], ["EVAL", script, 0]])
            assert answer.status == 503 and answer.json["error"].encode().startswith(ABORTED), answer
        untouched(c)
    assert "too late" not in disk.larder.log_text()
    disk.restart()
    with disk.larder.connect() as c:
        untouched(c)
        assert c("EVAL", script, 0) == 5
