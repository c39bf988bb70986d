"""A few kills of servers and databases in every way to run Larder; `make torture` has many. LARDER_SEED repeats one."""

import dataclasses
import os
import random
import time

import pytest

from torture.run import SETUPS, Torture

KILLS = 2  # of each setup: some 40 in all
LIMIT = 120.0  # seconds, after which no round is begun


@pytest.fixture(scope="module")
def torture(tmp_path_factory):
    seed = int(os.environ.get("LARDER_SEED", random.randrange(1 << 32)))
    with Torture(seed, base=tmp_path_factory.mktemp("torture")) as torture:
        yield torture


def run(torture, setup, kills):
    before = len(torture.findings)
    seed = int(os.environ["LARDER_SEED"]) if "LARDER_SEED" in os.environ else None
    torture.case(setup, kills, time.monotonic() + LIMIT, seed)
    return torture.findings[before:]


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_what_was_acknowledged_survives(torture, setup):
    assert run(torture, setup, KILLS) == []


def test_a_server_that_forgets_is_found_out(tmp_path):
    """The checker's own test: what is acknowledged before it is written is lost, and that must be noticed."""
    (setup,) = (setup for setup in SETUPS if setup.name == "sqlite/default")
    with Torture(1, base=tmp_path) as torture:
        assert run(torture, dataclasses.replace(setup, options=("--durability", "everysec")), 50)
