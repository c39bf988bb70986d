"""SIGKILL at every call that a server makes while it builds indexes: the next one goes on where it was, and entries are
what rows say."""

import concurrent.futures
import os

import pytest

from crash import power
from crash.scenario import DIRECT, HURRIED
from harness import wait
from harness.builds import fill, index, put, state

pytestmark = pytest.mark.sqlite

ROWS = 1200  # more than are indexed at once
STEP = int(os.environ.get("LARDER_CRASH_KILL_STEP", 7))
LIMIT = 20_000
NAMES = ["by_age", "by_name", "double"]


def settled(client):
    """Every index that was added is ready, or has failed as it should."""
    states = {name: state(client, name) for name in NAMES if index(client, name)}
    return all(s == ("failed" if name == "double" else "ready") for name, s in states.items())


def work(client):
    """Adds indexes while rows change; returns when all are built."""
    client("TABLE.ALTER", "t", "ADD INDEX by_age (age)")
    put(client, 5, name="changed", age=5)
    client("TABLE.ALTER", "t", "ADD UNIQUE INDEX by_name (name)")
    client("ROW.DEL", "t", 6)
    client("TABLE.ALTER", "t", "ADD UNIQUE INDEX double (age)")
    put(client, ROWS, name="added", age=60)
    wait.until(lambda: settled(client), "the indexes are built")
    client("TABLE.REBUILD", "t", "by_age")
    client("TABLE.ALTER", "t", "DROP INDEX double")
    wait.until(lambda: settled(client), "the index is built again")


def kill_at(call, options, base):
    def verify(folder):
        with power.Server(folder, options) as server, server.must_connect() as client:
            wait.until(lambda: settled(client), "the next server builds the indexes")
            server.stop()

    return power.kill_at(call, options, base, work, verify)


@pytest.mark.parametrize("options", [[], HURRIED, DIRECT], ids=["default", "hurried", "direct"])
def test_kill_at_every_call_of_a_build(tmp_path, options):
    base = tmp_path / "base"
    base.mkdir()
    with power.Server(base) as server, server.must_connect() as client:
        fill(client, ROWS)
        server.stop()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for call in range(1, LIMIT, 2 * STEP):
            killed = [pool.submit(kill_at, at, options, base) for at in (call, call + STEP)]
            if not all([k.result() for k in killed]):
                break
        else:
            raise AssertionError("a server that never ends")
    assert call > 20, "a run has more calls than that"
