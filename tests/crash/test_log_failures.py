"""The redo log when its disk or somebody else fails it: no write is acknowledged that is not there, and what was
acknowledged stays."""

import os
import pathlib
import resource

import pytest

from crash import power
from crash.scenario import HURRIED
from harness import redolog, servers, wait

pytestmark = pytest.mark.sqlite  # database servers have no log

EVERYSEC = ["--durability", "everysec"]


class Served:
    """A server whose syncs fail while there is a flag."""

    def __init__(self, folder, *options):
        self.folder = folder / "data"
        self.folder.mkdir()
        self.flag = folder / "flag"
        self.path = self.folder / power.DATABASE
        self.options = options
        self.there = {}  # what was acknowledged
        self.start()

    def start(self):
        self.server = power.Server(self.folder, self.options, power.recorded(self.folder, CRASH_FAIL_SYNC=self.flag))
        self.c = self.server.must_connect()

    def fail(self, names):
        self.flag.write_text(names)

    def set(self, key, value):
        reply = self.c.call("SET", key, value)
        if reply.is_error:
            return reply.value.decode()
        self.there[key] = value
        return None

    def verify(self):
        for key, value in self.there.items():
            assert self.c("GET", key) == value.encode(), key

    def kill(self):
        self.c.close()
        self.server.__exit__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


@pytest.mark.parametrize("names", ["", power.REDO], ids=["all", "log"])
def test_a_sync_that_fails(tmp_path, names):
    """Nothing is acknowledged behind it; what failed does not come back behind what was written later."""
    with Served(tmp_path) as s:
        for n in range(20):
            assert s.set(f"k{n}", "old") is None
        s.fail(names)
        for n in range(5):
            said = s.set(f"k{n}", "failed")
            assert said and said.split()[0] in ("UNCERTAIN", "MISCONF", "IOERR"), said
        s.verify()
        assert b"aof_last_write_status:err" in s.c("INFO", "persistence")
        s.flag.unlink()
        wait.until(lambda: s.set("again", "1") is None, "writes work again")
        for n in range(20, 40):
            assert s.set(f"k{n}", "new") is None
        s.verify()
        s.kill()
        power.check(s.folder)
        s.start()
        s.verify()


def test_a_sync_that_fails_and_a_kill(tmp_path):
    """The next server reads what failed from the system's memory, or does not: it is written again before it counts."""
    with Served(tmp_path) as s:
        assert s.set("k", "old") is None
        for n in range(5):
            s.fail(power.REDO)
            assert s.set("k", f"failed {n}")
            s.kill()
            s.flag.unlink()
            s.start()
            assert s.c("GET", "k") in (s.there["k"].encode(), f"failed {n}".encode())
            assert s.set("k", f"{n}") is None
            s.verify()


@pytest.mark.parametrize("options", [EVERYSEC, EVERYSEC + HURRIED], ids=["everysec", "hurried"])
def test_a_sync_that_fails_later(tmp_path, options):
    """Under everysec a reply does not wait for it: writes are refused as soon as it has failed, and when it works again
    everything that was acknowledged is made durable."""
    with Served(tmp_path, *options) as s:
        for n in range(20):
            assert s.set(f"k{n}", "old") is None
        s.fail(power.REDO)
        wait.until(lambda: s.set("k0", f"{os.urandom(4).hex()}") is not None, "writes are refused")
        s.verify()
        s.flag.unlink()
        wait.until(lambda: s.set("again", "1") is None, "writes work again")
        assert s.c("SAVE") == b"OK"
        s.verify()
        s.kill()
        s.start()
        s.verify()


def test_a_sync_that_fails_behind_a_new_segment(tmp_path):
    """To begin a segment the log syncs the one before it: that part of what no reply has waited for is not appended
    again, which the log would refuse, and writers with it for good."""
    with Served(tmp_path, "--durability", "off") as s:
        assert s.set("k", "old") is None
        before = len(redolog.segments(s.path))
        value = "v" * 8000
        for n in range(4000):  # without a pause, in which it would be synced; a group is what 0.1 s bring
            if len(redolog.segments(s.path)) >= before + 3:
                break
            assert s.set(f"k{n % 50}", f"{n} {value}") is None
        s.fail(power.REDO)
        assert "sync" in s.c.call("SAVE").value.decode()
        s.flag.unlink()
        wait.until(lambda: s.set("again", "1") is None, "writes work again")
        assert s.c("SAVE") == b"OK"
        s.kill()
        s.start()
        s.verify()


def test_a_large_value_whose_sync_fails(tmp_path):
    """It goes into the tables, and is undone. The next start may find it there, by the number that the next record of the
    log would have, and whatever that one builds on it: so there is none."""
    with Served(tmp_path, "--journal-max", "64kb") as s:
        assert s.set("k", "old") is None
        s.fail(f"{power.DATABASE}-wal")
        assert s.c.call("HSET", "h", "f", "v" * 40_000).value.startswith(b"UNCERTAIN")
        s.flag.unlink()
        for n in range(5):
            s.set(f"k{n}", "new")
            s.c.call("HSET", "h", f"f{n}", "v")
        assert "started again" in s.set("k", "new")
        s.verify()
        assert s.c("EXISTS", "h") == 0
        s.kill()
        power.check(s.folder)
        s.start()
        s.verify()
        assert s.c("HGETALL", "h") in ({}, [], [b"f", b"v" * 40_000], {b"f": b"v" * 40_000})
        assert s.set("k", "newer") is None


def test_a_long_wal_that_cannot_be_synced(tmp_path):
    """It cannot start over, and no pass begins while it is longer than wal-max: writers hear of it, and do not wait."""
    with Served(tmp_path, "--journal-max", "64kb", "--wal-max", "1mb", "--apply-lag", "10ms") as s:
        for n in range(50):
            assert s.set(f"k{n}", "v" * 1000) is None
        s.fail(f"{power.DATABASE}-wal")
        said = wait.until(lambda: s.set(f"k{len(s.there)}", "v" * 10_000), "writes are refused")
        assert said.startswith("IOERR"), said
        s.verify()
        s.flag.unlink()
        s.kill()
        s.start()
        s.verify()
        assert s.set("k", "new") is None


def test_a_limit_in_the_middle_of_a_segment(tmp_path):
    """A record cannot be written, nor another segment be made: a word about space, and writes go on when there is some."""
    with Served(tmp_path) as s:
        value = "v" * 8000
        for n in range(100):
            assert s.set(f"k{n}", value) is None
        resource.prlimit(s.server.process.pid, resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
        said = wait.until(lambda: s.set(f"k{len(s.there)}", value), "writes are refused")
        assert "space" in said or said.startswith("UNCERTAIN"), said
        resource.prlimit(s.server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        wait.until(lambda: s.set("again", "1") is None, "writes work again")
        s.verify()
        s.kill()
        s.start()
        s.verify()


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def replace(path):
    """Another file has its name; the one that is written has one, too."""
    taken = path.rename(path.with_name("taken"))
    path.write_bytes(taken.read_bytes())


@pytest.mark.parametrize("how", [pathlib.Path.unlink, cut, replace], ids=["removed", "cut", "replaced"])
def test_a_segment_taken_away(fleet, how):
    """No write is acknowledged that is in a file without a name; in good order again when the tables have everything."""
    larder = fleet.larder()
    with larder.connect() as c:
        there = {f"k{n}": b"1" for n in range(20)}
        for key in there:
            assert c("SET", key, "1") == b"OK"
        how(redolog.segments(larder.store.path)[-1])
        if how is replace:  # that is looked at each second
            wait.until(lambda: c.call("SET", "k0", "1").is_error, "it is noticed")
        else:
            said = c.error("SET", "k1", "2")
            assert said.startswith(("UNCERTAIN", "MISCONF", "IOERR")), said
        for key, value in there.items():
            assert c("GET", key) == value
        c.call("SAVE")
        wait.until(lambda: not c.call("SET", "again", "1").is_error, "writes work again")
        there["again"] = b"1"
    larder.kill()
    larder.start()
    with larder.connect() as c:
        for key, value in there.items():
            assert c("GET", key) == value


def test_a_foreign_file_by_the_name_of_a_segment(fleet):
    larder = fleet.larder()
    with larder.connect() as c:
        c("SET", "k", "1")
    larder.stop()
    foreign = pathlib.Path(f"{larder.store.path}-redo.7")
    foreign.write_bytes(b"somebody's notes\n" * 1000)
    with pytest.raises(servers.StartError) as failure:
        larder.start()
    assert f"{foreign.name} is no segment" in failure.value.log and "larder check --" in failure.value.log, failure.value.log
    assert foreign.exists()
    larder.process = None
    assert servers.run(["check", "--discard-log", "--store", larder.store.url]).returncode == 0
    larder.start()
    with larder.connect() as c:
        assert c("GET", "k") == b"1"
