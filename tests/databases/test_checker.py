"""The checker of test_consistency.py: what keeps its promise passes, and each kind of broken promise is found."""

import itertools
import random

import pytest

from .consistency import Failover, Op, problems
from .linear import INFINITY


def w(start, end, value, session=None, key="k"):
    return Op(start, end, "w", key, value, session)


def r(start, end, value, mode, session=None, key="k", bound=0):
    return Op(start, end, "r", key, value, session, mode, bound)


WRITES = [w(0, 1, "a"), w(2, 3, "b"), w(10, 11, "c")]


@pytest.mark.parametrize("mode", ["strong", "session", "bounded", "eventual"])
def test_what_nobody_wrote_is_found_in_every_mode(mode):
    assert not problems([*WRITES, r(12, 13, "c", mode, bound=1)])
    assert problems([*WRITES, r(12, 13, "never", mode)])
    assert problems([*WRITES, r(8, 9, "c", mode)])  # before it was written
    assert problems([*WRITES, Op(12, INFINITY, "f", "k", "no"), r(14, 15, "no", mode)])
    pair = Op(20, 21, "r", ("k", "l"), ("c", "c"), None, mode, 60_000)
    assert not problems([*WRITES, w(10, 11, "c", key="l"), pair])
    torn = problems([*WRITES, w(10, 11, "c", key="l"), pair._replace(value=("c", None))])
    assert any("torn" in text for text in torn)


def test_strong():
    assert problems([*WRITES, r(12, 13, "b", "strong")])
    assert not problems([*WRITES, r(10.5, 13, "b", "strong")])
    assert not problems([*WRITES, r(12, 13, "b", "eventual")])


def test_bounded():
    assert not problems([*WRITES, r(11.4, 13, "b", "bounded", bound=500)])
    assert problems([*WRITES, r(11.6, 13, "b", "bounded", bound=500)])
    assert not problems([*WRITES, r(12.4, 13, "b", "bounded", bound=1500)])
    assert problems([*WRITES, r(12, 13, None, "bounded", bound=9000)])
    assert not problems([w(0, INFINITY, "perhaps"), r(100, 101, None, "bounded", bound=1)])
    seen = [w(0, INFINITY, "perhaps"), r(1, 2, "perhaps", "strong")]
    assert problems([*seen, r(100, 101, None, "bounded", bound=1)])


def test_a_session_reads_what_it_wrote():
    mine = [w(0, 1, "a"), w(2, 3, "b", session=7)]
    assert problems([*mine, r(4, 5, "a", "session", session=7)])
    assert not problems([*mine, r(4, 5, "b", "session", session=7)])
    assert not problems([*mine, r(4, 5, "a", "session", session=8)])


def test_a_session_does_not_go_back():
    seen = [*WRITES, r(12, 13, "c", "session", session=7)]
    assert problems([*seen, r(14, 15, "b", "session", session=7)])
    assert not problems([*seen, r(14, 15, "b", "session", session=8)])


def test_a_session_sees_what_came_before_what_it_saw():
    """Under another key: written and acknowledged before that was even sent."""
    seen = [*WRITES, w(12, 13, "x", key="other"), r(14, 15, "x", "session", session=7, key="other")]
    assert problems([*seen, r(16, 17, "b", "session", session=7)])
    assert not problems([*seen, r(16, 17, "c", "session", session=7)])


def test_a_token_takes_it_along():
    seen = [*WRITES, r(12, 13, "c", "session", session=7), Op(13, 14, "t", None, 1, 7)]
    late = r(16, 17, "b", "session", session=8)
    assert problems([*seen, Op(14, 15, "j", None, 1, 8), late])
    assert not problems([*seen, late])
    assert not problems([*seen, late, Op(18, 19, "j", None, 1, 8)])


def test_what_a_failover_lost():
    failover = Failover(safe=5, killed=12, dead=12.5)
    lost = [*WRITES, r(11.2, 11.5, "c", "strong")]
    assert not problems([*lost, r(13, 14, "b", "strong")], failover)
    assert problems([*lost, r(13, 14, "a", "strong")], failover)  # acknowledged when nothing could be lost
    assert problems([*lost, r(13, 14, "b", "strong")])
    assert problems([*lost, r(13, 14, "c", "strong"), r(15, 16, "b", "strong")], failover)  # it was not lost
    assert not problems([*lost, r(12.2, 14, "c", "strong"), r(15, 16, "b", "strong")], failover)  # seen while it died
    assert not problems([*lost, r(13, 14, "c", "eventual"), r(15, 16, "b", "strong")], failover)


class Simulation:
    """A primary with a log and two replicas that follow it somehow, and clients that read as each mode says; or, when one
    mode is broken, from a replica that happens to be there."""

    def __init__(self, seed, broken=None):
        self.random = random.Random(seed)
        self.broken = broken
        self.log = []  # (moment, key, value)
        self.at = [0, 0]
        self.now = 0.0
        self.seen = {i: 0 for i in range(4)}
        self.values = itertools.count(1)
        self.ops = []

    def tick(self):
        self.now += self.random.uniform(0.01, 0.2)
        return self.now

    def state(self, position, key):
        return next((v for _, k, v in reversed(self.log[:position]) if k == key), None)

    def write(self, session):
        key, value, start = self.random.choice("xy"), next(self.values), self.tick()
        self.log.append((self.tick(), key, value))
        self.seen[session] = max(self.seen[session], len(self.log))
        self.ops.append(Op(start, self.tick(), "w", key, value, session))

    def position(self, mode, session, bound):
        """Of the replica, or the primary."""
        at = self.random.choice(self.at)
        needed = {
            "strong": len(self.log),
            "session": self.seen[session],
            "bounded": sum(moment <= self.now - bound / 1000 for moment, _, _ in self.log),
            "eventual": 0,
        }[mode]
        return at if at >= needed or mode == self.broken else len(self.log)

    def read(self, session, mode, bound):
        key, start = self.random.choice("xy"), self.tick()
        at = self.position(mode, session, bound)
        value = self.state(at, key)
        if mode == "session":
            self.seen[session] = max(self.seen[session], at)
        self.ops.append(Op(start, self.tick(), "r", key, value, session, mode, bound))

    def run(self):
        modes = {0: ("strong", 0), 1: ("session", 0), 2: ("bounded", 400), 3: ("eventual", 0)}
        for _ in range(60):
            session = self.random.choice(list(modes))
            if self.random.random() < 0.4:
                self.write(session)
            else:
                self.read(session, *modes[session])
            i = self.random.randrange(2)
            self.at[i] = min(len(self.log), self.at[i] + self.random.choice([0, 0, 1, 2]))
        return problems(self.ops)


def test_no_promise_is_broken_where_all_are_kept():
    for seed in range(300):
        assert not Simulation(seed).run()


@pytest.mark.parametrize("mode", ["strong", "session", "bounded"])
def test_each_broken_promise_is_found(mode):
    assert sum(bool(Simulation(seed, broken=mode).run()) for seed in range(100)) > 60
