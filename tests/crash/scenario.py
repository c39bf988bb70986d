"""What the simulations of power loss have in common: a load that is recorded, and what is verified of each crash."""

import os
import random
import subprocess
import sys
import threading

from crash import changes, power
from harness import wait

WRITERS = 4
# The journal is brought into the tables all the time, in small slices; most change sets are too large for it and go into
# the tables as a whole; there is none.
HURRIED = ["--journal-max", "64kb", "--apply-lag", "5ms"]
WHOLE = ["--journal-max", "1kb"]
DIRECT = ["--journal-max", "0"]
MANY = 1_000_000

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


class Load:
    """Writers on a server that is recorded."""

    def __init__(self, folder, seed, **how):
        self.recording = power.Recording(folder / "recording", folder / "data")
        self.writers = [changes.Writer(i, seed + i, lambda: self.recording.position, **how) for i in range(WRITERS)]
        self.random = random.Random(seed)

    def acknowledged(self):
        return sum(len(writer.acknowledged) for writer in self.writers)

    def server(self, options, environment):
        options = ["--sweep-interval", "20ms", *options]
        return power.Server(self.recording.folder, options, self.recording.environment(**environment))

    def run(self, *options, each, end, **environment):
        """A server from its start to its end, with writers that send so many change sets each; now and then the log is
        checkpointed."""
        with self.server(options, environment) as server:
            connections = [server.must_connect() for _ in self.writers]
            with Checkpointer(self.recording) as checkpointer:
                threads = changes.run_all(self.writers, connections, each)
                while any(thread.is_alive() for thread in threads):
                    self.wait_for(self.random.randint(each // 8, each), threads)
                    checkpointer.checkpoint(self.random.choice(["PASSIVE", "PASSIVE", "RESTART", "TRUNCATE"]))
                changes.join_all(threads, self.writers)
            with server.must_connect() as connection:
                changes.verify_all(connection, self.writers)
            if end == "kill":
                self.recording.kill(server.process)
            else:
                server.stop()

    def run_until(self, condition, *options):
        """A server with writers that write until condition(connection) is true, and go on while it is killed."""
        with self.server(options, {}) as server:
            stop = threading.Event()
            connections = [server.must_connect() for _ in self.writers]
            threads = changes.run_all(self.writers, connections, MANY, stop.is_set)
            with server.must_connect() as connection:
                wait.until(lambda: condition(connection), "the recording is long enough")
                self.recording.kill(server.process)
            stop.set()
            changes.join_all(threads, self.writers)

    def wait_for(self, count, threads=()):
        """Waits for so many more change sets, or the end of the threads."""
        target = self.acknowledged() + count
        wait.until(
            lambda: self.acknowledged() >= target or (threads and not any(thread.is_alive() for thread in threads)),
            "change sets are acknowledged",
        )

    def freeze(self):
        for writer in self.writers:
            writer.freeze()


def record(folder, *runs, seed, each=100, **environment):
    """A recording of several runs of a server, each with options of its own and ended in another way, and the writers."""
    load = Load(folder, seed)
    for end, *options in runs:
        load.run(*options, each=each, end=end, **environment)
    load.freeze()
    return load.recording, load.writers


def verifier(writers, position=None, lost_after=lambda point: None):
    """What is verified of each crash: at its point, or at a position of another recording. lost_after tells from which
    position on what was acknowledged may be lost; None: none of it."""

    def verify(point, folder):
        r = random.Random(point.seed)
        if r.random() < 0.3:  # the index of the log is not worth anything after a crash
            (folder / f"{power.DATABASE}-shm").write_bytes(r.randbytes(r.choice([0, 100, 32768, 65536])))
        at = point.position if position is None else position
        may_be_lost = lost_after(point)
        if may_be_lost is None and any(writer.acknowledged_at(at) for writer in writers) and r.random() < 0.2:
            power.check(folder)
        with power.Server(folder) as server, server.must_connect() as connection:
            ranges = changes.verify(connection, writers, at, may_be_lost)
            if r.random() < 0.5:
                server.stop()
            power.check(folder)
            return ranges

    return verify
