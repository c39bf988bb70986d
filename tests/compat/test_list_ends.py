"""Both ends of lists that are only in the tables: pops read ahead, and nothing that is pushed, set, trimmed or undone in
between, in the same batch or another, is answered wrongly."""

import random
from collections import deque

import pytest

SETTINGS = {
    "default": [],
    "small": ["--cache-memory", "0", "--page-cache", "256kb", "--journal-max", "1mb"],
    "without a journal": ["--journal-max", "0"],
}
SIZE = 6000  # more than memory takes as a whole


def value(r, n):
    return b"%d " % n + b"x" * r.choice([0, 10, 100] * 300 + [5000])  # the last is more than memory keeps of one


def step(r, model, n):
    """A command, and what it answers."""
    kind = r.random()
    if kind < 0.30:
        return ["RPOP", "list"], model.pop()
    if kind < 0.60:
        return ["LPOP", "list"], model.popleft()
    item = value(r, n)
    if kind < 0.75:
        model.append(item)
        return ["RPUSH", "list", item], b"%d" % len(model)
    if kind < 0.85:
        model.appendleft(item)
        return ["LPUSH", "list", item], b"%d" % len(model)
    if kind < 0.97:
        at = r.choice([0, 1, 2, 30, -1, -2, -3, -40])
        model[at] = item
        return ["LSET", "list", str(at), item], b"OK"
    for _ in range(3):
        model.pop()
        model.popleft()
    return ["LTRIM", "list", "3", "-4"], b"OK"


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_is_popped_is_what_was_there(setting, fleet):
    r = random.Random(len(setting))
    larder = fleet.larder("--durability", "everysec", *SETTINGS[setting])
    with larder.connect() as c:
        model = deque(value(r, i) for i in range(SIZE))
        for i in range(0, SIZE, 500):
            c("RPUSH", "list", *list(model)[i : i + 500])
        for turn in range(40):
            if turn % 10 == 5:
                c("SAVE")  # the rest is in the tables
            commands = [step(r, model, turn * 100 + i) for i in range(60)]
            replies = c.pipeline([words for words, _ in commands])
            assert [reply.value for reply in replies] == [expected for _, expected in commands]
            if turn % 8 == 3:  # a transaction that is not
                c.pipeline([["WATCH", "list"], ["MULTI"], ["RPOP", "list"], ["LPOP", "list"], ["DISCARD"]])
        assert c("LRANGE", "list", "0", "-1") == list(model)
    larder.stop()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert [c("RPOP", "list") for _ in range(200)] == [model.pop() for _ in range(200)]
        assert [reply.value for reply in c.pipeline([["LPOP", "list"]] * 300)] == [model.popleft() for _ in range(300)]
        assert c("LLEN", "list") == len(model)
