"""The crash test's own check, on redis-server: it accepts what is right and finds what was lost."""

import random

import pytest

from crash.workload import Workload
from harness import wait


@pytest.fixture
def load_and_server(fleet):
    server = fleet.redis()
    load = Workload(3, 42)
    load.start(server)
    wait.until(lambda: load.acknowledged > 2000, "commands are acknowledged")
    load.stop()
    load.join()
    return load, server


def test_what_is_right_is_accepted(load_and_server):
    load, server = load_and_server
    load.verify(server)
    load.verify(server)


@pytest.mark.parametrize(
    "damage",
    [
        ["SET", "w1:key:{}", "lost"],
        ["DEL", "w1:key:{}"],
        ["PEXPIREAT", "w1:key:{}", "3999999999999"],
        ["INCR", "w0:counter:1"],
        ["DECR", "shared:counter"],
        ["INCR", "shared:counter"],
        ["SET", "shared:group:4", "half"],
        ["SET", "w2:group:3:7", "half"],
        ["APPEND", "w2:text:3", "more"],
        ["RPUSH", "w2:list:3", "more"],
        ["HSET", "w2:hash:3", "f1", "other"],
        ["SADD", "w2:set:3", "other"],
        ["ZADD", "w2:zset:3", "5000", "m1"],
    ],
    ids=" ".join,
)
def test_damage_is_found(load_and_server, damage):
    load, server = load_and_server
    with server.connect() as c:
        keys = sorted(c("KEYS", "w1:key:*"))
    existing = next(key for key in keys if key.startswith(b"w1:key:")).decode().rsplit(":", 1)[1]
    with server.connect() as c:
        c(*(word.format(existing) for word in damage))
    with pytest.raises(AssertionError):
        load.verify(server)


def run(connection, commands):
    if commands:
        connection.pipeline([args for command in commands for args in command.frames()])


def test_sent_but_not_acknowledged_may_be_there_or_not(load_and_server):
    load, server = load_and_server
    load.verify(server)
    writer = load.writers[0]
    commands = [writer._command() for _ in range(20)]
    with server.connect() as c:
        for done in (0, 7, 20):
            writer.history = list(commands)
            run(c, commands[:done])
            before = dict(writer.keys)
            load.verify(server)
            for command in commands[:done]:
                command.apply(before)
            assert writer.keys == before


@pytest.fixture
def lost(load_and_server, fleet):
    """lost(keep): another server, which has of each writer's history only what keep(history) leaves."""
    load, _ = load_and_server

    def make(keep):
        other = fleet.redis()
        with other.connect() as c:
            for writer in load.writers:
                assert writer.answered == len(writer.history) > 100
                run(c, keep(writer.history))
        return load, other

    return make


def changes_keys(command):
    return command.args[0] == b"INCR" and not command.counts


def test_the_end_may_be_missing_where_that_is_allowed(lost):
    r = random.Random(1)
    load, server = lost(lambda history: history[: r.randrange(len(history))])
    with pytest.raises(AssertionError, match="acknowledged"):
        load.verify(server)
    load.verify(server, lossy=True)
    load.verify(server)


def test_what_was_saved_is_there(lost):
    load, server = lost(lambda history: history[:-50])
    writer = load.writers[1]
    last = max(i for i, command in enumerate(writer.history[:-50]) if changes_keys(command))
    writer.saved = last + 1
    load.verify(server, lossy=True)


def test_what_was_saved_is_missing(lost):
    def last_change(history):
        return max(i for i, command in enumerate(history) if changes_keys(command))

    load, server = lost(lambda history: history[: last_change(history)])
    writer = load.writers[1]
    writer.saved = 1 + last_change(writer.history)
    with pytest.raises(AssertionError, match="saved"):
        load.verify(server, lossy=True)


def test_nothing_may_be_missing_in_the_middle(lost):
    def without_one(history):
        gone = max(i for i, command in enumerate(history[:-20]) if changes_keys(command))
        return history[:gone] + history[gone + 1 :]

    load, server = lost(without_one)
    with pytest.raises(AssertionError, match="explains"):
        load.verify(server, lossy=True)


def test_the_shared_counter_is_bounded_where_something_was_lost(lost):
    load, server = lost(lambda history: history[:-50])
    with server.connect() as c:
        c("INCRBY", "shared:counter", 20)
    with pytest.raises(AssertionError, match="shared counter"):
        load.verify(server, lossy=True)
