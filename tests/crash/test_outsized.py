"""Values that are too large for the log go straight into the tables: with kills at any moment, what is left is still everything
that was acknowledged, and nothing behind a gap."""

import random
import threading
import time

import pytest

from harness.resp import Closed, encode

LARGE = 400_000  # beyond a quarter of the journal-max below
DEPTH = 8  # writes that wait for their replies


def value(i):
    return b"%d:" % i + (b"x" * LARGE if i % 5 == 0 else b"y" * (i % 300))


class Writer(threading.Thread):
    """Sets k1, k2, ... in this order until the server is gone."""

    def __init__(self, server, first):
        super().__init__(daemon=True)
        self.server, self.next, self.acknowledged = server, first, first - 1

    def run(self):
        try:
            with self.server.connect() as c:
                for _ in range(DEPTH):
                    self.send(c)
                while True:
                    assert c.read().value == b"OK"
                    self.acknowledged += 1
                    self.send(c)
        except (Closed, ConnectionError):
            pass

    def send(self, c):
        c.send(encode(["SET", f"k{self.next}", value(self.next)]))
        self.next += 1


@pytest.mark.parametrize("durability", ["always", "everysec"])
def test_kills_around_large_values(fleet, durability):
    dice = random.Random(durability)
    larder = fleet.larder("--journal-max", "1mb", "--durability", durability)
    first = 1
    for _ in range(4):
        writer = Writer(larder, first)
        writer.start()
        time.sleep(dice.uniform(0.05, 0.4))
        larder.kill()
        writer.join(60)
        assert not writer.is_alive()
        larder.start()
        with larder.connect() as c:
            there = [c("GET", f"k{i}") for i in range(first, writer.next)]
            n = next((i for i, v in enumerate(there) if v is None), len(there))
            assert there[:n] == [value(i) for i in range(first, first + n)]
            assert there[n:] == [None] * len(there[n:]), "there is something behind a gap"
            if durability == "always":
                assert first + n > writer.acknowledged
        first = writer.next
