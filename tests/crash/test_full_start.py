"""A start on a disk without room, with a log that is not in the tables: everything acknowledged can be read, and writes
work when there is room, without another start."""

import os
import resource
import sqlite3
import subprocess

import pytest

from harness import redolog, servers, store, wait

pytestmark = pytest.mark.sqlite

OPTIONS = ["--apply-lag", "60s"]
EVERYSEC = ["--durability", "everysec"]
SMALL_CACHE = ["--cache-memory", "64kb"]
DATABASES = 4

# --- data of every kind


def before(c):
    """What is in the tables when the log begins to fill."""
    commands = [["SET", f"old:{i}", os.urandom(100)] for i in range(400)]
    commands += [["RPUSH", "list", *(f"e{i}" for i in range(300))], ["SADD", "set", *range(500)]]
    commands += [["HSET", "hash", *(x for i in range(300) for x in (f"f{i}", i))]]
    commands += [["ZADD", "zset", *(x for i in range(500) for x in (i * 7 % 500, f"m{i}"))]]
    commands += [["SET", "big", os.urandom(200_000)], ["SELECT", 1], ["MSET", "a", 1, "b", 2], ["SELECT", 2]]
    commands += [["MSET", "c", 3, "d", 4], ["SELECT", 0]]
    assert not any(reply.is_error for reply in c.pipeline(commands))
    assert c("SAVE") == b"OK"


def change(c, name):
    """One record of the log: new rows, changed ones, deleted ones, and databases."""
    commands = [["SET", f"{name}:{i}", os.urandom(100)] for i in range(300)]
    commands += [["SET", f"old:{i}", f"changed by {name}"] for i in range(100, 200)]
    commands += [["DEL", *(f"old:{i}" for i in range(200, 250))], ["SET", "old:210", "again"]]
    commands += [["RPUSH", "list", *(f"{name}{i}" for i in range(300))], ["LPOP", "list", 50], ["LPUSH", "list", name]]
    commands += [["SREM", "set", *range(100)], ["SADD", "set", *(f"{name}{i}" for i in range(100))]]
    commands += [["HSET", "hash", *(x for i in range(200, 400) for x in (f"f{i}", name))], ["HDEL", "hash", "f1", "f2"]]
    commands += [["ZADD", "zset", *(x for i in range(300, 700) for x in (-i, f"m{i}"))], ["ZREM", "zset", "m3"]]
    commands += [["DEL", "big"], ["SET", f"big:{name}", os.urandom(100_000)], ["SADD", f"new:{name}", *range(300)]]
    commands += [["PEXPIRE", "old:1", 86_400_000], ["SELECT", 1], ["FLUSHDB"], ["SET", "after", "flush"]]
    commands += [["SWAPDB", 2, 3], ["SELECT", 3], ["SET", "swapped", name], ["SELECT", 0]]
    assert c("MULTI") == b"OK"
    replies = c.pipeline([*commands, ["EXEC"]])
    assert not any(reply.is_error for reply in replies), [r for r in replies if r.is_error][:3]


def scan(c):
    keys, cursor = [], b"0"
    while True:
        cursor, some = c("SCAN", cursor, "COUNT", 50)
        keys += some
        if cursor == b"0":
            return keys


READ = {
    b"string": lambda key: ["GET", key],
    b"list": lambda key: ["LRANGE", key, 0, -1],
    b"set": lambda key: ["SMEMBERS", key],
    b"hash": lambda key: ["HGETALL", key],
    b"zset": lambda key: ["ZRANGE", key, 0, -1, "WITHSCORES"],
}


def value_of(c, key):
    kind = c("TYPE", key)
    value = c(*READ[kind](key))
    pairs = list(zip(value[::2], value[1::2])) if kind == b"hash" else value
    return kind, sorted(pairs) if kind in (b"set", b"hash") else pairs, c("PEXPIRETIME", key)


def everything(c):
    """All that a client can read."""
    found = []
    for db in range(DATABASES):
        c("SELECT", db)
        keys = sorted(c("KEYS", "*"))
        assert sorted(set(scan(c))) == keys
        assert c("DBSIZE") == len(keys)
        assert not keys or c("RANDOMKEY") in keys
        found.append({key: value_of(c, key) for key in keys})
    c("SELECT", 0)
    found.append([c("ZRANK", "zset", "m400"), c("ZCOUNT", "zset", "-inf", 0), c("LINDEX", "list", 250), c("LLEN", "list")])
    found.append(c("ZRANGEBYSCORE", "zset", -450, -440))
    return found


# --- disks


class SmallDisk:
    """A file system of a few megabytes."""

    def __init__(self, folder):
        self.folder, self.ballast = folder, folder / "ballast"

    def fill(self, larder):
        for spare in self.folder.glob("*-redo.spare.*"):  # a start removes them, which would be room
            spare.unlink()
        with open(self.ballast, "wb", buffering=0) as f:
            for size in (1 << 16, 4096, 1):
                try:
                    while f.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def make_room(self, larder):
        self.ballast.unlink()


class Limit:
    """Files that may not grow, which looks much the same and needs no permission. SQLite's log is as long as it may be, and there
    can be no other segment."""

    def __init__(self, folder):
        self.folder = folder

    def fill(self, larder):
        size = min(os.stat(f"{larder.store.path}-wal").st_size, 1 << 19)
        larder.limits = [(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))]

    def make_room(self, larder):
        larder.limits = []
        if larder.alive:
            resource.prlimit(larder.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


keep_open = []


def close_all():
    while keep_open:
        keep_open.pop().close()


@pytest.fixture
def disk(request, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limit":
        yield Limit(folder)
        close_all()
        return
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.strip()}")
    yield SmallDisk(folder)
    for server in list(servers.Server.live):
        if getattr(server, "store", None) and folder in server.store.path.parents:
            server.kill()
    close_all()
    subprocess.run(["umount", folder], check=True)


def leave_a_log(larder):
    """Kills a server that has not applied its log, because somebody held the lock; what could be read of it."""
    with larder.connect() as c:
        before(c)
        holder = sqlite3.connect(larder.store.path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        change(c, "one")
        had = everything(c)
    larder.kill()
    holder.execute("ROLLBACK")
    applied = holder.execute("SELECT value FROM larder_meta WHERE name = 'applied'").fetchone()[0]
    assert [r for r in redolog.records(larder.store.path) if r.seq > applied]
    keep_open.append(holder)  # who closes last brings SQLite's log in
    return had


def expect_stuck(larder, had):
    """Reads work, and writes are refused."""
    with larder.connect() as c:
        assert c("PING") == b"PONG"
        assert b"aof_last_write_status:err" in c("INFO", "persistence")
        assert everything(c) == had
        for command in (["SET", "k", "v"], ["DEL", "list"], ["RPUSH", "list", "x"], ["FLUSHDB"], ["SAVE"]):
            said = c.error(*command)
            assert said.startswith("MISCONF") and "no space" in said, said
        assert c("MULTI") == b"OK"
        assert c.error("SET", "k", "v").startswith("MISCONF")
        assert c.error("EXEC").startswith("EXECABORT")
        assert everything(c) == had
    assert larder.alive
    assert "there is no room for a log" in larder.log_text()


def expect_well(larder, had):
    """Writes work, soon, and all is as it was."""
    with larder.connect() as c:
        wait.until(lambda: not c.call("SET", "k", "v").is_error, "writes work again")
        assert c("DEL", "k") == 1
        assert b"aof_last_write_status:ok" in c("INFO", "persistence")
        assert everything(c) == had
        change(c, "later")
        had = everything(c)
        assert c("SAVE") == b"OK"
        assert everything(c) == had
    larder.stop()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert everything(c) == had


@pytest.mark.parametrize(
    ("disk", "options"),
    [("disk", []), ("disk", EVERYSEC), ("disk", ["--journal-max", "0"]), ("disk", SMALL_CACHE), ("limit", [])],
    indirect=["disk"],
)
def test_reads_are_served_and_writes_when_there_is_room(fleet, disk, options):
    larder = fleet.larder(*OPTIONS, data=store.SqliteStore(disk.folder))
    had = leave_a_log(larder)
    disk.fill(larder)
    larder.options = [*OPTIONS, *options]
    larder.start()
    expect_stuck(larder, had)
    disk.make_room(larder)
    expect_well(larder, had)


@pytest.mark.parametrize("disk", ["disk", "limit"], indirect=True)
def test_a_kill_while_there_is_no_room_loses_nothing(fleet, disk):
    larder = fleet.larder(*OPTIONS, data=store.SqliteStore(disk.folder))
    had = leave_a_log(larder)
    disk.fill(larder)
    for _ in range(2):
        larder.start()
        expect_stuck(larder, had)
        larder.kill()
    disk.make_room(larder)
    larder.check()
    larder.start()
    expect_well(larder, had)


@pytest.mark.parametrize("disk", ["disk", "limit"], indirect=True)
def test_nor_does_an_end_that_was_asked_for(fleet, disk):
    """It is told that what the log holds is not in the tables."""
    larder = fleet.larder(*OPTIONS, data=store.SqliteStore(disk.folder))
    had = leave_a_log(larder)
    disk.fill(larder)
    larder.start()
    expect_stuck(larder, had)
    larder.process.terminate()
    assert larder.process.wait(60) == 1
    larder.kill()
    assert "the server cannot go on" in larder.log_text()
    larder.check_log()
    disk.make_room(larder)
    larder.check()
    larder.start()
    expect_well(larder, had)
