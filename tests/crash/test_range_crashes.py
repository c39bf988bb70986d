"""SIGKILL at calls that a server makes while items go by the thousand, and others come where they were: in the log, in
the middle of a pass, of a checkpoint, of its end. Nothing that was removed is back, nothing that came later is gone."""

import concurrent.futures
import os

import pytest

from crash import power
from crash.scenario import DIRECT, HURRIED

pytestmark = pytest.mark.sqlite

SIZE = 6000  # more than memory takes as a whole
STEP = int(os.environ.get("LARDER_CRASH_RANGE_STEP", 31))
LIMIT = 20_000


class Model:
    """What is there behind each of the commands."""

    def __init__(self):
        self.list = [b"v%d" % n for n in range(SIZE)]
        self.scores = {b"m%d" % n: n for n in range(SIZE)}
        self.states = [self.state()]
        self.commands = []

    def state(self):
        return self.list[:], sorted(self.scores.items(), key=lambda item: (item[1], item[0]))

    def do(self, *command):
        self.commands.append(command)
        self.states.append(self.state())

    def trim(self, left, right):
        self.list = self.list[left : len(self.list) - right]
        self.do("LTRIM", "list", left, -1 - right)

    def push(self, items):
        self.list += items
        self.do("RPUSH", "list", *items)

    def push_front(self, items):
        self.list = items[::-1] + self.list
        self.do("LPUSH", "list", *items)

    def cut(self, low, high):
        self.scores = {name: score for name, score in self.scores.items() if not low <= score <= high}
        self.do("ZREMRANGEBYSCORE", "z", low, high)

    def add(self, numbers, score):
        self.scores.update({b"m%d" % n: score for n in numbers})
        self.do("ZADD", "z", *[word for n in numbers for word in (score, b"m%d" % n)])


def story():
    """Cuts, and rows that come back into them: with the score that they had, and from elsewhere."""
    m = Model()
    m.trim(1000, 100)
    m.push_front([b"a%d" % n for n in range(200)])  # over the positions that were cut off
    m.cut(1000, 2999)
    m.add(range(1500, 1600), 1500)
    m.add(range(10), 2000)
    m.trim(0, 500)
    m.push([b"b%d" % n for n in range(600)])
    m.cut(1400, 1999)
    m.add(range(1500, 1510), 1500)
    m.trim(150, 90)
    return m


def fill(client):
    for i in range(0, SIZE, 500):
        client("RPUSH", "list", *[b"v%d" % n for n in range(i, i + 500)])
        client("ZADD", "z", *[word for n in range(i, i + 500) for word in (n, b"m%d" % n)])


def found(client):
    words = client("ZRANGE", "z", 0, -1, "WITHSCORES")
    return client("LRANGE", "list", 0, -1), [(name, int(score)) for name, score in zip(words[::2], words[1::2])]


def kill_at(call, options, base):
    m, done = story(), 0

    def work(client):
        nonlocal done
        for command in m.commands:
            client(*command)
            done += 1

    def verify(folder):
        for _ in range(2):  # by the log, then by the tables
            with power.Server(folder, options) as server, server.must_connect() as client:
                assert found(client) in m.states[done : done + 2], f"after {done} of {len(m.commands)} commands"
                server.stop()

    return power.kill_at(call, options, base, work, verify)


@pytest.mark.parametrize("options", [[], HURRIED, DIRECT], ids=["default", "hurried", "direct"])
def test_kill_while_ranges_go(tmp_path, options):
    base = tmp_path / "base"
    base.mkdir()
    with power.Server(base) as server, server.must_connect() as client:
        fill(client)
        server.stop()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for call in range(3, LIMIT, 2 * STEP):
            killed = [pool.submit(kill_at, at, options, base) for at in (call, call + STEP)]
            if not all([k.result() for k in killed]):
                break
        else:
            raise AssertionError("a server that never ends")
    assert call > 20, "a run has more calls than that"
