"""Several servers on one database under clients that fight for a few keys, while servers, the database and what is between
them fail. LARDER_HOSTILE_SECONDS and LARDER_HOSTILE_CLIENTS make it longer and larger; LARDER_SEED repeats the order of
the faults."""

import itertools
import os
import random
import time

import pytest

from harness import wait

from .faults import Faults, Site
from .linear import INFINITY, problem
from .load import KINDS, Crowd

SERVERS = 4
CLIENTS = int(os.environ.get("LARDER_HOSTILE_CLIENTS", 64))
SECONDS = float(os.environ.get("LARDER_HOSTILE_SECONDS", 0))  # no longer than every fault takes once
LEAST = 300  # pieces of work that a quiet run waits for


def test_the_checker_finds_stale_reads():
    good = [(0, 1, "w", "a"), (2, 3, "r", "a"), (2, 5, "w", "b"), (4, 6, "r", "a"), (7, 8, "r", "b")]
    assert problem(good) is None
    assert problem([*good, (9, 10, "r", "a")]) is not None  # stale
    assert problem([*good, (9, 10, "r", None)]) is not None
    assert problem([(0, 1, "r", "never")]) is not None
    assert problem([(0, 1, "r", "later"), (2, 3, "w", "later")]) is not None
    assert problem([(0, INFINITY, "w", "perhaps"), (1, 2, "r", None), (3, 4, "r", None)]) is None
    assert problem([(0, INFINITY, "w", "perhaps"), (1, 2, "r", "perhaps"), (3, 4, "r", None)]) is not None
    lost = [(0, 1, "w", "a"), (2, 3, "w", "b"), (4, 5, "r", "a")]
    assert problem(lost) is not None


def possible(history):
    """Whether some order of the operations explains it: all are tried."""
    unsure = [op for op in history if op[1] == INFINITY]
    for n in range(len(unsure) + 1):
        for left_out in itertools.combinations(unsure, n):
            for order in itertools.permutations([op for op in history if op not in left_out]):
                if in_time(order) and as_a_register(order):
                    return True
    return False


def in_time(order):
    latest = float("-inf")
    for op in order:
        latest = max(latest, op[0])
        if op[1] < latest:
            return False
    return True


def as_a_register(order):
    value = None
    for op in order:
        if op[2] == "w":
            value = op[3]
        elif op[3] != value:
            return False
    return True


def test_the_checker_agrees_with_trying_every_order():
    r = random.Random(5)
    verdicts = []
    for _ in range(3000):
        moments = r.sample(range(100), 12)
        values, history = r.randint(1, 3), []
        for value in range(values):
            start = moments.pop()
            history.append((start, r.choice([start + r.randint(1, 40), INFINITY]), "w", value))
        for _ in range(r.randint(1, 5 - values)):
            start = moments.pop()
            history.append((start, start + r.randint(1, 40), "r", r.choice([None, *range(values)])))
        verdicts.append(problem(history) is None)
        assert verdicts[-1] == possible(history), history
    assert 500 < sum(verdicts) < 2500


def test_careless_clients_are_found(fleet, data):
    """What every workload is there to find, it finds, sooner or later."""
    several = [fleet.larder(data=data) for _ in range(SERVERS)]
    found = set()
    for _ in range(20):
        with several[0].connect() as c:
            c("FLUSHALL")
        with Crowd(several, CLIENTS, careless=True) as crowd:
            wait.until(lambda: crowd.acknowledged() > 5 * LEAST, "work is done")
        found |= crowd.findings().keys()
        if len(found) == len(KINDS):
            return
    assert found == {kind.__name__ for kind in KINDS}


def test_nothing_is_wrong_while_nothing_fails(fleet, data):
    several = [fleet.larder(data=data) for _ in range(SERVERS)]
    with Crowd(several, CLIENTS) as crowd:
        wait.until(lambda: crowd.acknowledged() > 10 * LEAST or crowd.problems, "work is done")
    print(crowd.report())
    assert not crowd.findings()
    assert not any(w.done["failed"] or w.done["unknown"] for w in crowd.workloads)
    several[0].check()


def serves(server):
    assert server.alive, f"it has ended by itself:\n{server.log_text()[-6000:]}"
    with server.connect() as c:
        return not c.call("SET", "probe", server.port).is_error


def test_nothing_is_wrong_while_everything_fails(fleet, own, on_own):
    seed = int(os.environ.get("LARDER_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    with Site(fleet, own, on_own, SERVERS) as site, Faults(site, seed, SECONDS) as faults:
        with Crowd(site.servers, CLIENTS) as crowd:
            begun = time.monotonic()
            faults.run()
            for server in site.servers:
                wait.until(lambda: serves(server), "a server serves again by itself", 30)
            before = crowd.acknowledged()
            wait.until(lambda: crowd.acknowledged() > before + LEAST or crowd.problems, "work goes on")
            print(f"{len(faults.done)} faults in {time.monotonic() - begun:.0f} s; {crowd.report()}")
        assert not crowd.findings()
        # Nothing may be unknown in the end: clients gather at the server that first has a database again, and faults may miss it.
        assert sum(w.done["unknown"] + w.done["failed"] for w in crowd.workloads) > 0
        for server in site.servers:
            server.stop()
        site.servers[0].check()


WAITING = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'",
    "mariadb": "SELECT count(*) FROM information_schema.innodb_trx",
}


@pytest.mark.skipif(not SECONDS, reason="waits for ten seconds: make databases-long")
def test_a_machine_that_vanishes_gives_its_locks_back(fleet, own, on_own):
    """Its transaction holds the key; nobody tells the database that it has gone."""
    with Site(fleet, own, on_own, 2) as site:
        with site.servers[0].connect() as vanishes, site.servers[1].connect() as c:
            vanishes("SET", "n", 1)
            site.proxies[0].tell("deaf")
            vanishes.send(b"INCR n\r\n")
            wait.until(lambda: on_own.query(WAITING[own.kind]) != [["0"]], "the transaction has begun")
            site.proxies[0].tell("stall")
            site.servers[0].kill()
            assert c("GET", "n") == b"1"
            wait.until(lambda: not c.call("INCR", "n").is_error, "the lock is free again", 60)
            assert c("GET", "n") == b"2"
