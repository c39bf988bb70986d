"""redis-py: types, optimistic transactions of many threads, queues, and its lock without scripts."""

import threading
import time

import pytest
import redis
from redis.exceptions import LockNotOwnedError, WatchError
from redis.lock import Lock

THREADS = 4


@pytest.fixture
def r(server):
    with redis.Redis(port=server.port) as r:
        yield r


def in_threads(work, count=THREADS):
    """Runs work(number) in so many threads; what one of them raises is raised here."""
    problems = []

    def run(number):
        try:
            work(number)
        except BaseException as e:
            problems.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    if problems:
        raise problems[0]


# --- types


def test_types(r):
    assert r.hset("h", mapping={"a": 1, "b": "two"}) == 2
    assert r.hgetall("h") == {b"a": b"1", b"b": b"two"}
    assert dict(r.hscan_iter("h")) == r.hgetall("h")
    assert r.hincrbyfloat("h", "a", 0.5) == 1.5
    assert r.rpush("l", *range(5)) == 5
    assert r.lrange("l", 1, -2) == [b"1", b"2", b"3"]
    assert r.lpos("l", 3) == 3 and r.lmove("l", "m") == b"0"
    assert r.sadd("s", "x", "y") == 2
    assert r.smembers("s") == {b"x", b"y"} and r.smismember("s", ["x", "z"]) == [1, 0]
    assert r.zadd("z", {"a": 1.5, "b": float("-inf"), "c": 2**53}) == 3
    assert r.zrange("z", 0, -1, withscores=True) == [(b"b", float("-inf")), (b"a", 1.5), (b"c", float(2**53))]
    assert r.zadd("z", {"a": 1}, gt=True, ch=True) == 0
    assert r.zunion({"z": 2, "s": 1}, aggregate="MAX", withscores=True)[-1] == (b"c", float(2**54))
    assert r.zpopmax("z") == [(b"c", float(2**53))]
    assert r.sort("l", desc=True, alpha=True) == [b"4", b"3", b"2", b"1"]
    assert r.sort("s", by="nosort", get=["#", "none_*"], groups=True)
    assert r.object("ENCODING", "z")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        r.lpush("h", "x")


# --- transactions


def test_a_transaction_takes_effect_at_once(r):
    with r.pipeline() as p:
        p.set("a", 1).incr("a").rpush("l", "x").zadd("z", {"m": 1})
        assert p.execute() == [True, 2, 1, 1]
        p.set("a", "x").incr("a").set("b", "done")
        with pytest.raises(redis.ResponseError, match="not an integer"):
            p.execute()
    assert r.mget("a", "b") == [b"x", b"done"]


def test_a_watched_change_is_noticed(server, r):
    changes = {
        "set": lambda o: o.set("k", "other"),
        "del": lambda o: o.delete("k"),
        "expire": lambda o: o.expire("k", 1000),
        "rename": lambda o: o.rename("k", "away"),
        "flushdb": lambda o: o.flushdb(),
        "swapdb": lambda o: o.swapdb(0, 1),
        "over": lambda o: (o.lpush("list", 1), o.rename("list", "k")),
    }
    with redis.Redis(port=server.port) as other:
        for name, change in changes.items():
            r.flushall()
            r.set("k", "v")
            with r.pipeline() as p:
                p.watch("k")
                change(other)
                p.multi()
                p.set("mark", name)
                with pytest.raises(WatchError):
                    p.execute()
            assert r.get("mark") is None, name


def test_a_watched_key_that_expires_is_noticed(r):
    r.set("k", "v", px=30)
    with r.pipeline() as p:
        p.watch("k")
        while p.exists("k"):
            time.sleep(0.005)
        p.multi()
        p.set("mark", 1)
        with pytest.raises(WatchError):
            p.execute()


def test_optimistic_increments_add_up(server, r):
    """Each acknowledged increment counts once, on a string, a hash's field and a sorted set's score alike."""
    rounds, acknowledged, aborted = 60, [0] * THREADS, [0] * THREADS

    def work(number):
        with redis.Redis(port=server.port) as mine, mine.pipeline() as p:
            while acknowledged[number] < rounds:
                try:
                    p.watch("counter", "hash", "zset")
                    value = int(p.get("counter") or 0)
                    field = int(p.hget("hash", "f") or 0)
                    score = p.zscore("zset", "m") or 0
                    p.multi()
                    p.set("counter", value + 1)
                    p.hset("hash", "f", field + 1)
                    p.zadd("zset", {"m": score + 1})
                    p.rpush("log", f"{number}:{value + 1}")
                    p.execute()
                    acknowledged[number] += 1
                except WatchError:
                    aborted[number] += 1

    in_threads(work)
    total = sum(acknowledged)
    assert total == rounds * THREADS
    assert (int(r.get("counter")), int(r.hget("hash", "f")), r.zscore("zset", "m")) == (total, total, total)
    assert [int(entry.split(b":")[1]) for entry in r.lrange("log", 0, -1)] == list(range(1, total + 1))


def test_transaction_helper(server, r):
    """Money moves between accounts while others move it too; none is made or lost."""
    r.mset({f"account:{i}": 100 for i in range(4)})

    def work(number):
        with redis.Redis(port=server.port) as mine:
            for i in range(40):
                source, target = f"account:{(number + i) % 4}", f"account:{(number * 3 + i + 1) % 4}"
                if source == target:
                    continue

                def move(p):
                    balance = int(p.get(source))
                    p.multi()
                    if balance >= 7:
                        p.decrby(source, 7)
                        p.incrby(target, 7)

                mine.transaction(move, source)

    in_threads(work)
    assert sum(int(v) for v in r.mget(*(f"account:{i}" for i in range(4)))) == 400


# --- queues


def test_a_queue_with_waiting_workers(server, r):
    jobs, taken = 400, [[] for _ in range(THREADS)]

    def work(number):
        with redis.Redis(port=server.port) as mine:
            while True:
                key, job = mine.blpop(["urgent", "jobs"], timeout=60)
                if job == b"end":
                    return
                taken[number].append(job)

    def feed():
        for i in range(jobs):
            r.rpush("jobs" if i % 3 else "urgent", i)
        r.rpush("jobs", *["end"] * THREADS)

    feeder = threading.Thread(target=feed)
    feeder.start()
    in_threads(work)
    feeder.join()
    assert sorted(int(job) for mine in taken for job in mine) == list(range(jobs))


# --- the lock

class WatchLock(Lock):
    """redis-py's lock with its scripts written as optimistic transactions."""

    def _if_mine(self, token, queue):
        def check(p):
            if p.get(self.name) != token:
                raise LockNotOwnedError("no longer the owner")
            p.multi()
            queue(p)

        return self.redis.transaction(check, self.name)

    def do_release(self, expected_token):
        self._if_mine(expected_token, lambda p: p.delete(self.name))

    def do_extend(self, additional_time, replace_ttl):
        def extend(p):
            p.pexpire(self.name, int(additional_time * 1000) + (0 if replace_ttl else left))

        left = max(0, self.redis.pttl(self.name))
        self._if_mine(self.local.token, extend)
        return True


def test_taking_a_lock_needs_no_script(server, r):
    with redis.Redis(port=server.port) as other:
        mine, theirs = r.lock("lock", timeout=100), other.lock("lock", timeout=100)
        assert mine.acquire(blocking=False)
        assert mine.locked() and mine.owned()
        assert 90_000 < r.pttl("lock") <= 100_000
        assert not theirs.acquire(blocking=False) and not theirs.owned()
        assert not theirs.acquire(blocking_timeout=0.05)


def test_a_lock_without_scripts(server, r):
    """Only one holds it at a time; who has lost it by its time cannot give it back for another."""
    held = []

    def work(number):
        with redis.Redis(port=server.port) as mine:
            for _ in range(15):
                with mine.lock("lock", timeout=60, sleep=0.002, lock_class=WatchLock):
                    held.append(number)
                    value = int(mine.get("value") or 0)
                    assert held == [number]
                    mine.set("value", value + 1)
                    held.remove(number)

    in_threads(work)
    assert int(r.get("value")) == 15 * THREADS
    brief = r.lock("lock", timeout=0.05, lock_class=WatchLock)
    assert brief.acquire()
    while brief.locked():
        time.sleep(0.005)
    other = r.lock("lock", timeout=60, lock_class=WatchLock)
    assert other.acquire()
    with pytest.raises(LockNotOwnedError):
        brief.release()
    assert other.extend(60) and r.pttl("lock") > 110_000
    other.release()
    assert not other.locked()
