"""Power loss at any moment, simulated: every acknowledged change set is there, none is half there, and the database is
in order. Also proof that the simulation would notice if it were not so."""

import filecmp
import os
import random
import subprocess
import sys

import pytest

from crash import changes, power
from harness import wait

pytestmark = pytest.mark.sqlite

POINTS = int(os.environ.get("LARDER_CRASH_POINTS", 100))
WRITERS = 4

CHECKPOINTER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
for line in sys.stdin:
    print(db.execute(f"PRAGMA wal_checkpoint({line})").fetchall(), flush=True)
"""


class Checkpointer:
    """Another process that checkpoints the database when it is told to. The server does so by itself, but after
    more megabytes than a short recording has."""

    def __init__(self, recording):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHECKPOINTER, recording.folder / power.DATABASE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **recording.environment()},
            text=True,
        )

    def checkpoint(self, mode="PASSIVE"):
        self.process.stdin.write(mode + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(60) == 0


def record(folder, *options, seed, each=100, phases=("stop", "kill", "stop"), **environment):
    """A recording of several runs of a server, each ended in another way, while writers write and the log is
    checkpointed; and the writers."""
    recording = power.Recording(folder / "recording", folder / "data")
    writers = [changes.Writer(i, seed + i, lambda: recording.position) for i in range(WRITERS)]
    r = random.Random(seed)
    for end in phases:
        with power.Server(recording.folder, ["--sweep-interval", "20ms", *options], recording.environment(**environment)) as server:
            server.must_connect().close()
            with Checkpointer(recording) as checkpointer:
                threads = changes.run_all(writers, server.must_connect, each)
                target = 0
                while any(thread.is_alive() for thread in threads):
                    target = sum(len(w.acknowledged) for w in writers) + r.randint(each // 8, each)
                    wait.until(
                        lambda: sum(len(w.acknowledged) for w in writers) >= target or not any(t.is_alive() for t in threads),
                        "change sets are acknowledged",
                    )
                    checkpointer.checkpoint(r.choice(["PASSIVE", "PASSIVE", "RESTART", "TRUNCATE"]))
                changes.join_all(threads, writers)
            if end == "kill":
                with recording.still():
                    server.process.kill()
                    server.process.wait()
            else:
                server.stop()
    for writer in writers:
        writer.freeze()
    return recording, writers


def verifier(writers, **limits):
    """What is verified of each crash."""

    def verify(point, folder):
        r = random.Random(point.seed)
        if r.random() < 0.3:  # the index of the log is not worth anything after a crash
            (folder / f"{power.DATABASE}-shm").write_bytes(r.randbytes(r.choice([0, 100, 32768, 65536])))
        with power.Server(folder) as server, server.must_connect() as connection:
            changes.verify(connection, writers, point.position, **limits)
            if r.random() < 0.5:
                server.stop()
            power.check(folder)

    return verify


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    recording, writers = record(tmp_path_factory.mktemp("recorded"), seed=seed)
    yield recording, writers, seed
    recording.close()


def test_the_recording_is_complete(recorded, tmp_path):
    """Everything that was recorded, done again, makes the files that are there."""
    recording, writers, _ = recorded
    for writer in writers:
        assert len(writer.acknowledged) == len(writer.sent) == 300
    with power.Replay(recording) as replay:
        replay.crash(power.Point(recording.position, "all", 0), tmp_path)
    there = [path.name for path in recording.folder.iterdir() if not path.name.endswith("-shm")]
    assert sorted(there) == sorted(path.name for path in tmp_path.iterdir())
    assert filecmp.cmpfiles(recording.folder, tmp_path, there, shallow=False)[0] == there


@pytest.mark.parametrize("count", [POINTS // 4, pytest.param(POINTS, marks=pytest.mark.slow)])
def test_power_loss(recorded, count):
    recording, writers, seed = recorded
    uncertain = power.simulate(recording, power.choose(recording, count, seed + count), verifier(writers))
    assert uncertain > count / 3, "most crashes had nothing to lose"


# --- the simulation notices


def first_loss(recording, writers, seed):
    """The first crash that verify() complains about; None when there is none."""
    try:
        power.simulate(recording, power.choose(recording, 40, seed), verifier(writers))
    except AssertionError as e:
        return str(e)
    return None


def test_a_disk_that_lies_is_noticed(tmp_path):
    recording, writers = record(tmp_path, seed=1, each=30, phases=["kill"], CRASH_LIE=1)
    assert "rather than" in first_loss(recording, writers, 1)
    recording.close()


def test_a_server_that_does_not_sync_is_noticed(tmp_path):
    recording, writers = record(tmp_path, "--durability", "off", seed=1, each=30, phases=["kill"])
    assert "rather than" in first_loss(recording, writers, 1)
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
