"""Simulated power loss: records what a server does to its files, makes from it what a crash at some position leaves
on the disk, and starts a server there. README.md has the idea, recording.h and replay.c the details.
"""

import collections
import concurrent.futures
import fcntl
import mmap
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import time

from harness import servers
from harness.resp import Closed, Connection, ServerError

# Beside the server under test, or (the release build has no tests) in the build for daily work.
TOOLS = next(
    (path for path in (servers.BINARY.parent / "tests", servers.ROOT / "build/dev/tests") if (path / "crash_replay").exists()),
    servers.BINARY.parent / "tests",
)
RECORDER = TOOLS / "libcrash_recorder.so"
REPLAY = TOOLS / "crash_replay"

DATABASE = "larder.db"
LOG = DATABASE + "-wal"
REDO = DATABASE + "-redo."
HEADER = 4096
FRAME_HEADER = 24  # of SQLite's log
CAPACITY = 4 << 30  # of a recording; the file is sparse
START_LIMIT = 60

# Where states after a crash are made and verified: nothing is learnt there from waiting for a disk.
STATES = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

KINDS = [None, "opened", "created", "unlinked", "renamed", "written", "truncated", "syncing", "synced"]
VARIANTS = ["none", "all", "not-last", "only-last", "earlier", "sizes", "random"]

Entry = collections.namedtuple("Entry", "kind name offset length time commit")
Point = collections.namedtuple("Point", "position variant seed")


class Recording:
    """What was done to the files of `folder`, by any number of processes with environment()."""

    def __init__(self, path, folder):
        self.path = pathlib.Path(path)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.path, "wb") as file:
            file.truncate(CAPACITY)
        self.file = open(self.path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), CAPACITY, access=mmap.ACCESS_READ)

    @property
    def position(self):
        """How many calls have been recorded: what was acknowledged before this was asked for must survive a crash at
        any later position."""
        return struct.unpack_from("<Q", self.map, 0)[0]

    def environment(self, **more):
        return recorded(self.folder, CRASH_LOG=self.path, **more)

    def kill(self, process):
        """SIGKILL while no recorded call is under way: what is recorded is what was done."""
        fcntl.flock(self.file, fcntl.LOCK_EX)
        try:
            process.kill()
            process.wait()
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)

    def entries(self):
        found = []
        names = {(1 << 64) - 1: ""}
        at = HEADER
        for _ in range(self.position):
            kind, file, offset, length, when = struct.unpack_from("<5Q", self.map, at)
            if KINDS[kind] in ("opened", "created"):
                names[file] = self.map[at + 40 : at + 40 + length].decode()
            # The last frame of a transaction in the log has a size of the database in its header, others a zero.
            header = KINDS[kind] == "written" and names[file] == LOG and length == FRAME_HEADER
            commit = header and any(self.map[at + 44 : at + 48])
            found.append(Entry(KINDS[kind], names.get(file), offset, length, when, commit))
            at += 40 + (length + 7 & ~7)
        return found

    def close(self):
        """The file stays, for whoever wants to look into a failure."""
        used = HEADER + struct.unpack_from("<Q", self.map, 8)[0]
        self.map.close()
        self.file.truncate(used)
        self.file.close()


def recorded(folder, **more):
    """The environment of a process whose calls on the files of a folder are watched by the recorder."""
    asan = os.environ.get("ASAN_OPTIONS", "")
    return {
        "LD_PRELOAD": str(RECORDER),
        # The recorder stands before the sanitizer's own functions, and passes on to them.
        "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0".lstrip(":"),
        "CRASH_FOLDER": str(folder),
        **{name: str(value) for name, value in more.items()},
    }


class Replay:
    """Makes crashes of a recording, in the order of their positions."""

    def __init__(self, recording, base=None):
        self.process = subprocess.Popen(
            [REPLAY, recording.path, *([base] if base else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def crash(self, point, folder):
        """Makes the files that are left in an empty folder; how many calls were not synced."""
        self.process.stdin.write(f"{point.position} {point.variant} {point.seed} {folder}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if answer[:1] != ["ok"]:
            raise AssertionError(f"replay failed: {self.process.stderr.read()}")
        return int(answer[1])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        code = self.process.wait()
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert kind or code == 0, f"replay ended with {code}: {said}"


class Server:
    """A larder on the database in `folder`, reached by a Unix socket, started in a few milliseconds."""

    def __init__(self, folder, options=(), env=None):
        self.folder = pathlib.Path(folder)
        self.place = tempfile.mkdtemp(prefix="larder-")  # short, as a socket's path must be
        self.socket = f"{self.place}/s"
        self.log = f"{self.place}/log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    servers.BINARY, "serve", "--port", "0", "--unixsocket", self.socket,
                    "--store", f"sqlite:{self.folder / DATABASE}", *servers.OPTIONS, *options,
                ],  # fmt: skip
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**servers.clean_environment(), **(env or recorded(folder))},
            )

    def connect(self):
        """Waits for the server; None when it has ended."""
        deadline = time.monotonic() + START_LIMIT
        while self.process.poll() is None:
            try:
                return Connection(self.socket)
            except OSError:
                assert time.monotonic() < deadline, f"the server does not listen: {self.text()}"
                time.sleep(0.001)
        return None

    def must_connect(self):
        connection = self.connect()
        assert connection, f"the server ended with {self.process.returncode}: {self.text()}"
        return connection

    def stop(self):
        """Ends it well."""
        self.process.terminate()
        code = self.process.wait(servers.STOP_LIMIT)
        assert code == 0, f"the server ended with {code}: {self.text()}"

    def text(self):
        return pathlib.Path(self.log).read_text(errors="backslashreplace")[-6000:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        found = servers.SANITIZER_REPORT.search(pathlib.Path(self.log).read_bytes())
        text = self.text()
        shutil.rmtree(self.place)
        assert not found, f"sanitizer report: {text}"


def check(folder):
    """`larder check` finds nothing."""
    done = servers.run(["check", "--store", f"sqlite:{folder / DATABASE}"], env=recorded(folder))
    assert done.returncode == 0, f"larder check: {done.returncode}\n{done.stdout}{done.stderr}"


def choose(recording, count, seed):
    """Crash points: anywhere, around the ends of syncs, within checkpoints, where names change, and at the
    redo log's own writes."""
    r = random.Random(seed)
    entries = recording.entries()
    places = [
        range(len(entries) + 1),
        [at for i, e in enumerate(entries) if e.kind == "synced" for at in (i, i + 1)],
        [i for i, e in enumerate(entries) if e.name == DATABASE and e.kind in ("written", "truncated", "syncing")],
        [at for i, e in enumerate(entries) if e.kind in ("created", "unlinked", "renamed") for at in (i, i + 1, i + 2)],
        [at for i, e in enumerate(entries) if (e.name or "").startswith(REDO) and e.kind == "written" for at in (i, i + 1)],
    ]
    points = []
    for i in range(count):
        place = r.choices(places, [4, 3, 2, 2, 2])[0] or places[0]
        variant = VARIANTS[i % len(VARIANTS)] if i % 2 else "random"
        points.append(Point(min(r.choice(place), len(entries)), variant, r.getrandbits(32)))
    return sorted(points)


def simulate(recording, points, verify, *, base=None, threads=2):
    """Makes each crash and calls verify(point, folder) on it; the number of crashes with anything unsynced. The
    first failure is raised, with the point it came from."""
    failed = []

    def run(share):
        uncertain = 0
        with Replay(recording, base) as replay:
            for point in share:
                if failed:
                    break
                state = pathlib.Path(tempfile.mkdtemp(prefix="crash-", dir=STATES))
                try:
                    uncertain += replay.crash(point, state) > 0
                    verify(point, state)
                except BaseException as e:
                    failed.append(point)
                    raise AssertionError(f"{point}: {e}") from e
                finally:
                    shutil.rmtree(state)
        return uncertain

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        done = [pool.submit(run, points[i::threads]) for i in range(threads)]
        return sum(future.result() for future in done)


def kill_at(call, options, base, work, verify):
    """Kills a server over a copy of a folder at that call while a client works; False when it came to its end before."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kill-", dir=STATES))
    try:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        with Server(folder, options, recorded(folder, CRASH_KILL_AT=call)) as server:
            client = server.connect()
            if client:
                try:
                    work(client)
                except (Closed, ServerError):
                    pass
            server.process.terminate()
            code = server.process.wait(60)
        verify(folder)
        check(folder)
        return code != 0
    except BaseException as e:
        raise AssertionError(f"killed at call {call}: {e}") from e
    finally:
        shutil.rmtree(folder)
