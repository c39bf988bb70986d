"""Random tables on Larder and on SQLite, side by side (harness/table_oracle.py). LARDER_ORACLE_STEPS says how many steps; `make tables-long` a million."""

import os
import random

import pytest

from harness import table_oracle

STEPS = int(os.environ.get("LARDER_ORACLE_STEPS", "1200"))
ROUND = 20_000
OPTIONS = {"journal": (), "small": ("--journal-max", "256kb", "--apply-lag", "20ms"), "none": ("--journal-max", "0"), "tiny": ("--cache-memory", "1mb")}


@pytest.mark.parametrize("options", list(OPTIONS))
def test_tables_are_what_sqlite_has(fleet, options):
    """In long runs a server is killed between rounds, and starts again on what it has acknowledged."""
    server = fleet.larder(*OPTIONS[options])
    first = int(os.environ.get("LARDER_ORACLE_SEED", random.randrange(10**9)))
    left = STEPS // len(OPTIONS)
    for seed in range(first, first + -(-left // ROUND)):
        print(f"LARDER_ORACLE_SEED={seed}")
        with server.connect() as c:
            oracle = table_oracle.Oracle(c, seed)
            oracle.run(min(left, ROUND))
            oracle.compare_all()
            assert oracle.refused > 0 or oracle.steps < 5000
        left -= ROUND
        server.kill()
        server.start()
        with server.connect() as c:
            oracle.larder = c
            oracle.compare_all()
            c("FLUSHALL")
    server.stop()
    server.check()
