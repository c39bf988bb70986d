"""What was acknowledged is there after SIGKILL at any moment, and after every other end."""

import os
import random
import signal
import time

import pytest

from crash.workload import Workload
from harness import wait

WRITERS = 4
# Rows leave memory at once and are read again, from a journal of the default size.
LITTLE_MEMORY = ["--cache-memory", "64kb", "--journal-max", "64mb", "--apply-lag", "10s"]


@pytest.mark.parametrize(
    "cycles, options",
    [
        (3, []),
        (3, ["--cache-memory", "0"]),
        (6, LITTLE_MEMORY),
        # These may lose what they acknowledged in the last moments.
        (3, ["--durability", "everysec"]),
        (3, ["--durability", "off"]),
        pytest.param(30, [], marks=pytest.mark.slow),
    ],
    ids=["briefly", "uncached", "little memory", "everysec", "off", "30 times"],
)
def test_kill_at_random_moments(fleet, cycles, options):
    cycles *= int(os.environ.get("LARDER_CRASH_FACTOR", 1))
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    r = random.Random(seed)
    larder = fleet.larder("--sweep-interval", "50ms", *options)
    lossy = "--durability" in options
    load = Workload(WRITERS, seed)
    for cycle in range(cycles):
        load.start(larder)
        if cycle == 0 or r.random() < 0.85:  # else before, while or just after the connections are made
            target = load.acknowledged + r.randint(1, 50)
            wait.until(lambda: load.acknowledged >= target or any(w.problem for w in load.writers), "commands are acknowledged")
            if lossy and r.random() < 0.7:
                load.save(larder)
            time.sleep(r.uniform(0, 0.3))
        larder.kill()
        load.join()
        larder.check()
        if r.random() < 0.2:  # a crash during the start that follows a crash
            larder._spawn()
            time.sleep(r.uniform(0, 0.05))
            larder.kill()
        larder.start()
        load.verify(larder, lossy)
    assert load.acknowledged > 0
    larder.check_log()


def test_kill_while_recovering(fleet):
    """The same journal again and again: each start gets a little further than the one before."""
    larder = fleet.larder(*LITTLE_MEMORY)
    load = Workload(WRITERS, 2)
    load.start(larder)
    wait.until(lambda: load.acknowledged >= 500 or any(w.problem for w in load.writers), "commands are acknowledged")
    larder.kill()
    load.join()
    for i in range(15):
        larder._spawn()
        time.sleep(i * 0.004)
        larder.kill()
    larder.check()
    larder.start()
    load.verify(larder)
    larder.check_log()


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "SHUTDOWN"])
def test_a_clean_end_under_load_loses_nothing(fleet, how):
    larder = fleet.larder()
    load = Workload(WRITERS, 1)
    for _ in range(3):
        load.start(larder)
        target = load.acknowledged + 200
        wait.until(lambda: load.acknowledged >= target or any(w.problem for w in load.writers), "commands are acknowledged")
        if how == "SHUTDOWN":
            with larder.connect() as c:
                c.send(b"SHUTDOWN\r\n")
                data, closed = c.read_bytes(0, until_closed=True)
                assert closed and data == b""
            larder.wait_ended()
        else:
            larder.stop(getattr(signal, how))
        load.join()
        larder.check()
        larder.start()
        load.verify(larder)


def test_a_clean_end_with_idle_and_half_sent_connections(fleet):
    larder = fleet.larder()
    connections = [larder.connect() for _ in range(20)]
    for c in connections:
        c("PING")
        c.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nhalf")
    started = time.monotonic()
    larder.stop()
    assert time.monotonic() - started < 30
    larder.start()
    with larder.connect() as c:
        assert c("GET", "k") is None
