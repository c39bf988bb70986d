"""Whether a history of reads and writes keeps what the mode of each read promises.

An operation is an Op. A write ("w") that was acknowledged has an end; one whose outcome is unknown has none (infinity): it
happened at any time after its start, or never. One that was refused ("f") must never be seen. No value is written twice.
A read ("r") has a mode. A read of several keys in one command ("r" with tuples of keys and values) sees one moment; keys
that are always written together must be equal there.

A session is one client: its operations follow each other. It hands what it has written and seen on with a token: "t" takes
one (value: its name), "j" merges it into a session.

A failover may lose what was acknowledged behind a known moment. The writes of that time that no strong read saw afterwards
count as not there for reads that ended when the primary was dying or dead; who saw them on a replica, or in memory, may have.

Everything follows from two moments of a value, both by the load's own monotonic clock: `known`, by which it was certainly
there (its acknowledgement, or the first read that returned it), and `replaced`, by which a write that certainly came later
was certainly there.

    strong      not replaced when the read was sent; and all reads and writes of a key are linearizable (linear.py)
    bounded N   not replaced N ms before the read was sent
    session     not older than what the session wrote or saw of this key; and not replaced before something was written
                that the session wrote or saw, under whatever key
    eventual    written by somebody (attempted, not refused), not in the future, and not torn
"""

import bisect
import collections

from . import linear
from .linear import INFINITY

Op = collections.namedtuple("Op", "start end kind key value session mode bound", defaults=(None, "strong", 0))
Failover = collections.namedtuple("Failover", "safe killed dead")  # acknowledged before safe: there; dying; dead


class Register:
    """What is known of the values of one key."""

    def __init__(self, writes, reads):
        self.start = {None: -INFINITY}
        self.known = {None: -INFINITY}
        self.refused = set()
        for op in writes:
            assert op.value not in self.start, f"{op.value!r} is written twice"
            if op.kind == "f":
                self.refused.add(op.value)
            else:
                self.start[op.value], self.known[op.value] = op.start, op.end
        for op in reads:
            if op.value in self.known:
                self.known[op.value] = min(self.known[op.value], op.end)
        there = sorted((start, self.known[value]) for value, start in self.start.items() if value is not None)
        self.starts = [start for start, _ in there]
        self.firsts, first = [INFINITY], INFINITY  # the earliest that is known of those from here on
        for _, known in reversed(there):
            first = min(first, known)
            self.firsts.append(first)
        self.firsts.reverse()

    def replaced(self, value):
        return self.firsts[bisect.bisect_right(self.starts, self.known[value])]

    def invented(self, op):
        if op.value in self.refused:
            return "was refused"
        if op.value not in self.start:
            return "nobody wrote"
        if op.end < self.start[op.value]:
            return "was written later"
        return None


class Session:
    """What a client has written or seen: the latest start of such a write, of each key and of all."""

    def __init__(self, newest=(), horizon=-INFINITY):
        self.newest = dict(newest)
        self.horizon = horizon

    def saw(self, key, start):
        self.newest[key] = max(start, self.newest.get(key, -INFINITY))
        self.horizon = max(start, self.horizon)

    def merge(self, other):
        for key, start in other.newest.items():
            self.saw(key, start)

    def copy(self):
        return Session(self.newest, self.horizon)


def singly(history):
    """Reads of several keys as one read of each."""
    for op in history:
        if isinstance(op.key, tuple):
            for key, value in zip(op.key, op.value):
                yield op._replace(key=key, value=value)
        else:
            yield op


def problems(history, failover=None):
    """What is wrong: a list of texts."""
    found = [f"torn: {op}" for op in history if isinstance(op.key, tuple) and len(set(op.value)) > 1]
    ops = list(singly(history))
    if failover is None:
        return found + judge(ops, lambda op: True)
    before = judge(ops, lambda op: op.end <= failover.killed)
    return found + before + judge(without_lost(ops, failover), lambda op: op.end > failover.killed)


def without_lost(ops, failover):
    """The history without writes that the failover may have lost and nobody saw afterwards, and without the reads of
    them."""
    after = {(op.key, op.value) for op in ops if op.kind == "r" and op.mode == "strong" and op.start > failover.dead}
    lost = {
        (op.key, op.value) for op in ops
        if op.kind == "w" and op.end > failover.safe and op.start <= failover.dead and (op.key, op.value) not in after
    }  # fmt: skip
    return [op for op in ops if op.kind not in "rw" or (op.key, op.value) not in lost]


def judge(ops, counts):
    """The reads for which counts() is true."""
    writes, reads = collections.defaultdict(list), collections.defaultdict(list)
    for op in ops:
        if op.kind in "wfr":
            (reads if op.kind == "r" else writes)[op.key].append(op)
    registers = {key: Register(writes[key], reads[key]) for key in writes.keys() | reads.keys()}
    found = []
    for key, register in registers.items():
        for op in filter(counts, reads[key]):
            wrong = register.invented(op)
            if wrong:
                found.append(f"{op} read what {wrong}")
        strong = [op for op in reads[key] if op.mode == "strong" and counts(op)]
        wrong = linear.problem([(op.start, op.end, op.kind, op.value) for op in strong + writes[key] if op.kind != "f"])
        if wrong:
            found.append(f"strong reads of {key}: {wrong}")
    return found + late(ops, registers, counts)


def late(ops, registers, counts):
    """Reads that are older than their mode allows."""
    found, sessions, tokens = [], collections.defaultdict(Session), {}
    for op in sorted(ops, key=lambda op: op.end):
        session = sessions[op.session]
        if op.kind == "t":
            tokens[op.value] = session.copy()
        elif op.kind == "j":
            session.merge(tokens[op.value])
        elif op.kind == "w" and op.end < INFINITY:
            session.saw(op.key, op.start)
        elif op.kind == "r" and op.value in registers[op.key].known:
            register = registers[op.key]
            wrong = too_old(op, register, session)
            if wrong and counts(op):
                found.append(f"{op}: {wrong}")
            if op.mode == "session" and op.value is not None:
                session.saw(op.key, register.start[op.value])
    return found


def too_old(op, register, session):
    replaced = register.replaced(op.value)
    if op.mode == "bounded" and replaced < op.start - op.bound / 1000:
        return f"replaced {1000 * (op.start - replaced):.0f} ms before it was sent"
    if op.mode == "session" and register.known[op.value] < session.newest.get(op.key, -INFINITY):
        return "older than what the session wrote or saw of this key"
    if op.mode == "session" and replaced < session.horizon:
        return "replaced before something was written that the session wrote or saw"
    return None
