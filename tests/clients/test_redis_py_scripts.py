"""redis-py: its lock, which is made of scripts, and scripts by register_script, in pipelines and over several threads."""

import threading

import pytest
import redis
from harness import wait
from redis.exceptions import LockError, LockNotOwnedError, NoScriptError

THREADS, ROUNDS = 4, 15


@pytest.fixture
def r(server):
    with redis.Redis(port=server.port) as r:
        yield r


# --- the lock


def test_a_lock_is_taken_prolonged_and_given_back(server, r):
    mine = r.lock("lock", timeout=100)
    assert mine.acquire() and mine.locked() and mine.owned()
    with redis.Redis(port=server.port) as other:
        theirs = other.lock("lock", timeout=100, blocking_timeout=0.05)
        assert not theirs.acquire(blocking=False) and not theirs.acquire() and not theirs.owned()
        with pytest.raises(LockError, match="unlocked"):
            theirs.release()
        assert mine.extend(50) and 140_000 < r.pttl("lock") <= 150_000
        assert mine.extend(10, replace_ttl=True) and 5_000 < r.pttl("lock") <= 10_000
        assert mine.reacquire() and 90_000 < r.pttl("lock") <= 100_000
        mine.release()
        assert not mine.locked() and theirs.acquire()
        theirs.release()
    assert r.dbsize() == 0


def test_a_lock_that_was_lost(r):
    """Who has lost it by its time can neither prolong it nor give it back for another."""
    brief = r.lock("lock", timeout=0.05)
    assert brief.acquire()
    wait.until(lambda: not brief.locked(), "the lock expires")
    other = r.lock("lock", timeout=60)
    assert other.acquire()
    for use in (brief.reacquire, lambda: brief.extend(10), brief.release):
        with pytest.raises(LockNotOwnedError):
            use()
    assert other.owned() and r.pttl("lock") > 50_000
    endless = r.lock("endless")
    assert endless.acquire()
    with pytest.raises(LockError, match="no timeout"):
        endless.extend(10)


def test_one_holds_it_at_a_time(server, r):
    held, problems = [], []

    def work(number):
        try:
            with redis.Redis(port=server.port) as mine:
                for _ in range(ROUNDS):
                    with mine.lock("lock", timeout=60, sleep=0.002, blocking_timeout=20):
                        held.append(number)
                        value = int(mine.get("value") or 0)
                        assert held == [number]
                        mine.set("value", value + 1)
                        held.remove(number)
        except BaseException as e:
            problems.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not problems and int(r.get("value")) == ROUNDS * THREADS


# --- scripts

TRANSFER = """
local have = tonumber(redis.call('get', KEYS[1]) or 0)
if have < tonumber(ARGV[1]) then
    return redis.error_reply('POOR only ' .. have .. ' left')
end
redis.call('decrby', KEYS[1], ARGV[1])
return {redis.call('incrby', KEYS[2], ARGV[1]), have, 'done', false, 3.9}
"""


def test_a_registered_script(r):
    transfer = r.register_script(TRANSFER)
    r.mset({"a": 10, "b": 0})
    assert transfer(keys=["a", "b"], args=[4]) == [4, 10, b"done", None, 3]
    r.script_flush()  # EVALSHA fails, the script is loaded, EVALSHA succeeds
    assert transfer(keys=["a", "b"], args=[4]) == [8, 6, b"done", None, 3]
    assert r.script_exists(transfer.sha, "f" * 40) == [True, False]
    with pytest.raises(redis.ResponseError, match="POOR only 2 left"):
        transfer(keys=["a", "b"], args=[4])
    assert r.mget("a", "b") == [b"2", b"8"]
    with pytest.raises(NoScriptError):
        r.evalsha("f" * 40, 0)


@pytest.mark.parametrize("transaction", [True, False])
def test_scripts_in_pipelines(r, transaction):
    transfer = r.register_script(TRANSFER)
    r.script_flush()
    with r.pipeline(transaction=transaction) as p:
        p.set("a", 10)
        transfer(keys=["a", "b"], args=[3], client=p)
        transfer(keys=["a", "b"], args=[30], client=p)
        p.get("a")
        replies = p.execute(raise_on_error=False)
    assert isinstance(replies[2], redis.ResponseError) and "POOR only 7 left" in str(replies[2])
    assert replies[0] is True and replies[1] == [3, 10, b"done", None, 3] and replies[3] == b"7"


def test_eval_and_its_relatives(r):
    assert r.eval("return {KEYS[1], ARGV[1], {1, {2}}}", 1, "k", "v") == [b"k", b"v", [1, [2]]]
    sha = r.script_load("return redis.call('get', KEYS[1])")
    r.set("k", "v")
    assert r.evalsha(sha, 1, "k") == r.evalsha_ro(sha, 1, "k") == b"v"
    assert r.eval_ro("return redis.call('strlen', KEYS[1])", 1, "k") == 1
    with pytest.raises(redis.ResponseError, match="Write commands are not allowed from read-only scripts"):
        r.eval_ro("return redis.call('set', KEYS[1], 1)", 1, "k")
    with pytest.raises(redis.ResponseError, match="not allowed from script"):
        r.eval("return redis.call('blpop', KEYS[1], 0) == false and redis.call('watch', 'k')", 1, "none")


def test_functions(r):
    library = """#!lua name=counters
    redis.register_function('bump', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)
    redis.register_function{function_name='peek', callback=function(keys) return redis.call('get', keys[1]) end,
                            flags={'no-writes'}}
    """
    assert r.function_load(library) == b"counters"
    assert r.fcall("bump", 1, "n", 5) == 5 and r.fcall_ro("peek", 1, "n") == b"5"
    with pytest.raises(redis.ResponseError, match="Can not execute a script with write flag using \\*_ro command"):
        r.fcall_ro("bump", 1, "n", 5)
    assert r.function_load(library, replace=True) == b"counters" and len(r.function_list()) == 1
    r.function_delete("counters")
    with pytest.raises(redis.ResponseError, match="Function not found"):
        r.fcall("bump", 1, "n", 5)
