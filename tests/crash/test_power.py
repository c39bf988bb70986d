"""Power loss at any moment, simulated: every acknowledged change set is there, none is half there, and the database is
in order. Also proof that the simulation would notice if it were not so."""

import filecmp
import os
import random
import shutil

import pytest

from crash import changes, power
from crash.scenario import DIRECT, HURRIED, WHOLE, Load, record, verifier

pytestmark = pytest.mark.sqlite

EACH = 30  # change sets of a writer in a run
POINTS = int(os.environ.get("LARDER_CRASH_POINTS", 100))
@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    runs = [["kill"], ["kill", *HURRIED], ["stop", "--cache-memory", "0"], ["kill", *WHOLE], ["kill", *DIRECT], ["stop"]]
    recording, writers = record(tmp_path_factory.mktemp("recorded"), *runs, seed=seed, each=EACH)
    yield recording, writers, seed
    recording.close()


def test_the_recording_is_complete(recorded, tmp_path):
    """Everything that was recorded, done again, makes the files that are there."""
    recording, writers, _ = recorded
    for writer in writers:
        assert len(writer.acknowledged) == len(writer.sent) == 6 * EACH
    with power.Replay(recording) as replay:
        replay.crash(power.Point(recording.position, "all", 0), tmp_path)
    there = [path.name for path in recording.folder.iterdir() if not path.name.endswith("-shm")]
    assert sorted(there) == sorted(path.name for path in tmp_path.iterdir())
    assert filecmp.cmpfiles(recording.folder, tmp_path, there, shallow=False)[0] == there


def test_power_loss(recorded):
    recording, writers, seed = recorded
    uncertain = power.simulate(recording, power.choose(recording, POINTS, seed), verifier(writers))
    assert uncertain > POINTS / 3, "most crashes had nothing to lose"


def test_power_loss_during_the_start_that_follows(recorded, tmp_path):
    """The server that recovers is recorded, and the power fails again, at several moments of its start and its end."""
    recording, writers, seed = recorded
    with power.Replay(recording) as replay:
        for number, point in enumerate(power.choose(recording, POINTS // 25, seed + 1)):
            base = tmp_path / f"base{number}"
            base.mkdir()
            replay.crash(point, base)
            again = power.Recording(tmp_path / f"again{number}", tmp_path / f"data{number}")
            shutil.copytree(base, again.folder, dirs_exist_ok=True)
            with power.Server(again.folder, env=again.environment()) as server, server.must_connect() as connection:
                connection("PING")
                server.stop()
            power.simulate(again, power.choose(again, 10, point.seed), verifier(writers, point.position), base=base)
            again.close()


@pytest.mark.skipif(POINTS < 1000, reason="takes long: make crash-long")
def test_power_loss_around_the_servers_own_checkpoints(tmp_path):
    """So much is written that the server's thread copies the log into the database, while it goes on."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    load = Load(tmp_path, seed, heavy=True)

    def enough(_):
        return sum(entry.kind == "synced" and entry.name == power.DATABASE for entry in load.recording.entries()) > 3

    load.run_until(enough)
    load.freeze()
    power.simulate(load.recording, power.choose(load.recording, POINTS // 10, seed), verifier(load.writers))
    load.recording.close()


# --- the simulation notices


def test_a_disk_that_lies_is_noticed(tmp_path):
    recording, writers = record(tmp_path, ["kill"], seed=1, each=30, CRASH_LIE=1)
    with pytest.raises(AssertionError, match="rather than|no tables|larder check|damaged"):
        power.simulate(recording, power.choose(recording, 40, 1), verifier(writers))
    recording.close()


@pytest.mark.parametrize(
    "damage",
    [
        ["SET", "str", "7"],
        ["DEL", "str"],
        ["PEXPIREAT", "str", "3999999999999"],
        ["APPEND", "str", "7"],
        ["RPUSH", "list", "7"],
        ["RPOP", "list"],
        ["HSET", "hash", "all", "7"],
        ["SADD", "set", "another"],
        ["ZINCRBY", "zset", "1", "all"],
        ["SET", None, "new"],
    ],
    ids=lambda damage: damage[0],
)
def test_damage_is_noticed(recorded, tmp_path, damage):
    recording, writers, _ = recorded
    end = recording.position
    with power.Replay(recording) as replay:
        replay.crash(power.Point(end, "all", 0), tmp_path)
    command, kind, *args = damage
    keys = sorted(key for writer in writers for db, key in writer.states[-1] if db == 0 and key.split(b":")[1] == (kind or "").encode())
    with power.Server(tmp_path) as server, server.must_connect() as connection:
        changes.verify(connection, writers, end)
        connection("SELECT", 0)
        connection(command, keys[0] if kind else "another", *args)
        with pytest.raises(AssertionError):
            changes.verify(connection, writers, end)
