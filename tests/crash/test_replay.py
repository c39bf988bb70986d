"""The simulation of power loss itself: what the recorder sees, and what replay leaves of it."""

import signal
import subprocess
import sys

import pytest

from crash import power
from harness import servers

pytestmark = pytest.mark.sqlite

OLD, NEW = b"o" * 4096, b"n" * 4096

PROGRAM = """
import os, sys
os.chdir(sys.argv[1])
def path(name): return f"{sys.argv[1]}/{name}"
def make(name): return os.open(path(name), os.O_RDWR | os.O_CREAT)
def sync_folder():
    fd = os.open(sys.argv[1], os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
OLD, NEW = b"o" * 4096, b"n" * 4096
"""


@pytest.fixture
def recording(tmp_path):
    recording = power.Recording(tmp_path / "recording", tmp_path / "data")
    yield recording
    recording.close()


def run(recording, text, code=0, **environment):
    """Runs a program of a few lines under the recorder."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + text, recording.folder],
        env={**servers.clean_environment(), **recording.environment(**environment)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    return done.stderr


class Crashes:
    """crash(variant, seed): {name: contents} after a crash, at the end or at another position."""

    def __init__(self, recording, tmp_path, base=None):
        self.recording, self.folder, self.base = recording, tmp_path, base
        self.count = 0

    def __call__(self, variant, seed=0, position=None):
        self.count += 1
        state = self.folder / f"state{self.count}"
        state.mkdir()
        with power.Replay(self.recording, self.base) as replay:
            replay.crash(power.Point(self.recording.position if position is None else position, variant, seed), state)
        return {path.name: path.read_bytes() for path in state.iterdir()}


@pytest.fixture
def crash(recording, tmp_path):
    return Crashes(recording, tmp_path)


def test_what_is_synced_stays(recording, crash):
    run(recording, "fd = make('f'); os.pwrite(fd, OLD, 0); os.fsync(fd); sync_folder()")
    for variant in power.VARIANTS:
        assert crash(variant) == {"f": OLD}


def test_what_is_not_synced_may_be_lost(recording, crash):
    run(recording, "fd = make('f'); os.pwrite(fd, OLD, 0); os.fdatasync(fd); sync_folder(); os.pwrite(fd, NEW, 0)")
    assert crash("none") == {"f": OLD}
    assert crash("all") == crash("only-last") == {"f": NEW}
    assert crash("not-last") == {"f": OLD}
    seen = {crash("random", seed)["f"] for seed in range(40)}
    assert {OLD, NEW} < seen, "a write is kept, lost, and torn"
    for data in seen:
        sectors = [data[at : at + 512] for at in range(0, 4096, 512)]
        assert set(sectors) <= {OLD[:512], NEW[:512]}


def test_a_sync_is_about_what_came_before_it_began(recording, crash):
    """Another thread writes while a sync is under way."""
    run(recording, "fd = make('f'); sync_folder(); os.pwrite(fd, OLD, 0); os.fsync(fd)")
    kinds = [entry.kind for entry in recording.entries()]
    assert kinds == ["created", "syncing", "synced", "written", "syncing", "synced"]
    assert crash("none", position=5) == {"f": b""}, "not before it has ended"
    assert crash("none", position=6) == {"f": OLD}


def test_the_name_of_a_synced_file_may_be_lost(recording, crash):
    run(recording, "fd = make('f'); os.pwrite(fd, OLD, 0); os.fsync(fd)")
    assert crash("none") == {}
    assert crash("all") == {"f": OLD}
    assert {len(crash("random", seed)) for seed in range(20)} == {0, 1}


def test_the_end_of_a_name_may_be_lost(recording, crash):
    run(recording, "fd = make('f'); os.pwrite(fd, OLD, 0); os.fsync(fd); sync_folder(); os.unlink(path('f')); make('f')")
    assert crash("none") == {"f": OLD}
    assert crash("all") == {"f": b""}
    assert crash("all", position=recording.position - 1) == {}


def test_renaming(recording, crash):
    run(
        recording,
        """
fd = make('new'); os.pwrite(fd, NEW, 0); os.fsync(fd); fd = make('f'); os.pwrite(fd, OLD, 0); os.fsync(fd)
sync_folder()
os.rename(path('new'), path('f'))
""",
    )
    assert crash("none") == {"new": NEW, "f": OLD}
    assert crash("all") == {"f": NEW}


def test_sizes(recording, crash):
    run(recording, "fd = make('f'); os.pwrite(fd, OLD, 0); os.fsync(fd); sync_folder(); os.pwrite(fd, NEW, 4096)")
    assert crash("none") == {"f": OLD}
    assert crash("sizes") == {"f": OLD + bytes(4096)}
    assert crash("all") == {"f": OLD + NEW}
    assert {len(crash("random", seed)["f"]) for seed in range(40)} == {4096, 8192}


def test_what_was_cut_off_does_not_come_back(recording, crash):
    """A longer file than before, of which the beginning is new: behind it zeros, or all of the old file."""
    run(
        recording,
        """
fd = make('f'); os.pwrite(fd, OLD * 2, 0); os.fsync(fd); sync_folder()
os.ftruncate(fd, 0); os.pwrite(fd, NEW, 8192)
""",
    )
    assert crash("none") == {"f": OLD * 2}
    assert crash("all") == {"f": bytes(8192) + NEW}
    for seed in range(60):
        data = crash("random", seed)["f"]
        assert data in (OLD * 2, b"") or (len(data) == 12288 and not any(data[:8192]))


def test_files_that_were_there(recording, tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    for folder in (base, recording.folder):
        (folder / "f").write_bytes(OLD)
    run(recording, "fd = make('f'); os.pwrite(fd, NEW, 4096)")
    crash = Crashes(recording, tmp_path, base)
    assert crash("all", position=0) == crash("none") == {"f": OLD}
    assert crash("all") == {"f": OLD + NEW}


def test_several_processes(recording, crash):
    run(recording, "fd = make('f'); os.pwrite(fd, OLD, 0); sync_folder()")
    run(recording, "fd = make('f'); os.write(fd, NEW); os.fsync(fd)")
    assert crash("none") == {"f": NEW}


def test_a_disk_that_lies(recording, crash):
    run(recording, "fd = make('f'); os.pwrite(fd, OLD, 0); os.fsync(fd); sync_folder()", CRASH_LIE=1)
    assert crash("none") == {}


def test_kill_at_a_call(recording):
    program = "fd = make('f'); os.pwrite(fd, OLD, 0); os.fsync(fd); os.pwrite(fd, NEW, 0)"
    for at, left in [(1, None), (2, b""), (3, OLD), (4, OLD)]:
        run(recording, program, -signal.SIGKILL, CRASH_KILL_AT=at)
        path = recording.folder / "f"
        assert (path.read_bytes() if path.exists() else None) == left
        path.unlink(missing_ok=True)
    run(recording, program, -signal.SIGKILL, CRASH_KILL_AT=4, CRASH_KILL_HALF=1)
    assert (recording.folder / "f").read_bytes() == NEW[:2048] + OLD[2048:]
    run(recording, program, CRASH_KILL_AT=5)


@pytest.mark.parametrize(
    "call",
    ["os.posix_fallocate(fd, 0, 100)", "os.writev(fd, [OLD])", "os.pwritev(fd, [OLD], 0)", "import mmap; os.pwrite(fd, OLD, 0); mmap.mmap(fd, 0)"],
)
def test_what_is_not_recorded_is_refused(recording, call):
    said = run(recording, "fd = make('f'); " + call, -signal.SIGABRT)
    assert "is not recorded" in said
