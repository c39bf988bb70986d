"""The crash test's own check, on redis-server: it accepts what is right and finds what was lost."""

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
    existing = next(key for key in load.writers[1].keys if key.startswith(b"w1:key:")).decode().rsplit(":", 1)[1]
    with server.connect() as c:
        c(*(word.format(existing) for word in damage))
    with pytest.raises(AssertionError):
        load.verify(server)


def test_sent_but_not_acknowledged_may_be_there_or_not(load_and_server):
    load, server = load_and_server
    load.verify(server)
    writer = load.writers[0]
    commands = [writer._command() for _ in range(20)]
    with server.connect() as c:
        for done in (0, 7, 20):
            writer.sent.clear()
            writer.sent.extend(commands)
            writer.increments_sent += sum(command.counts for command in commands)
            c.pipeline([args for command in commands[:done] for args in command.frames()])
            before = dict(writer.keys)
            load.verify(server)
            for command in commands[:done]:
                command.apply(before)
            assert writer.keys == before
