"""Disks that are full, files that are damaged, locked or not ours: a clear word for whoever asks, and no loss."""

import os
import pathlib
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest

from crash.scenario import DIRECT, HURRIED
from harness import servers, store, wait
from harness.resp import ServerError, encode

pytestmark = pytest.mark.sqlite

VALUE = os.urandom(8000)


def refused(larder):
    """Starts a server that must not start; what it said."""
    with pytest.raises(servers.StartError) as caught:
        larder.start()
    larder.process = None
    assert caught.value.code > 0, f"ended by a signal: {caught.value.code}"
    larder.check_log()
    return caught.value.log


# --- a second server


def test_a_second_server_is_refused(fleet):
    first = fleet.larder()
    with first.connect() as c:
        c("SET", "k", "v")
        for path in (first.store.path, first.folder / "link.db"):
            if not path.exists():
                path.symlink_to(first.store.path)
            second = fleet.new(servers.Larder, data=store.SqliteStore(path.parent))
            second.store.url = f"sqlite:{path}"
            said = refused(second)
            assert f"{path} is in use by another server: pid {first.pid} " in said, said
            assert c("GET", "k") == b"v"
        c("SET", "k", "w")
    first.kill()
    with fleet.new(servers.Larder, data=first.store) as second, second.connect() as c:
        assert c("GET", "k") == b"w"


# --- no space

EVERYSEC = ["--durability", "everysec"]


def fill(connection, prefix="key"):
    """Writes until the server refuses: the keys that were acknowledged, and the error. The log takes as much as memory may hold."""
    done = []
    for i in range(60_000):
        key = f"{prefix}:{i}"
        reply = connection.call("SET", key, VALUE)
        if reply.is_error:
            return done, reply.value.decode()
        done.append(key)
    raise AssertionError("the disk is never full")


def says_writes_work(connection):
    said = connection("INFO", "persistence")
    assert (b"aof_last_write_status:ok" in said) != (b"aof_last_write_status:err" in said)
    return b"aof_last_write_status:ok" in said


def check_full(connection, done, error):
    assert not says_writes_work(connection)
    assert error.startswith(("MISCONF", "IOERR")), error
    assert "space" in error or error.startswith("IOERR"), error
    # Reads go on, also of what was never read before; other commands too; a pipeline fails command by command.
    assert connection("PING") == b"PONG"
    assert all(connection("GET", key) == VALUE for key in done)
    assert connection("DBSIZE") == len(done)
    replies = connection.pipeline([["GET", done[0]], ["SET", "more", VALUE * 20], ["GET", "more"], ["GET", done[-1]]])
    assert replies[0].plain() == replies[3].plain() == VALUE
    assert replies[1].is_error and not isinstance(replies[2].plain(), bytes)


def check_recovered(larder, connection, done):
    wait.until(lambda: not connection.call("SET", "again", VALUE).is_error, "writes work again")
    assert says_writes_work(connection)
    assert connection("GET", "again") == VALUE
    if connection("CONFIG", "GET", "durability")[1] != b"always":
        assert connection("SAVE") == b"OK"
    larder.kill()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert all(c("GET", key) == VALUE for key in done)
        assert c("GET", "again") == VALUE
        assert c("GET", "more") is None


@pytest.fixture
def small_disk(tmp_path):
    """A file system of some megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.strip()}")
    yield folder
    for server in list(servers.Server.live):
        if getattr(server, "store", None) and folder in server.store.path.parents:
            server.stop()
    subprocess.run(["umount", folder], check=True)


def test_disk_full(fleet, small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(12_000_000))
    larder = fleet.larder(data=store.SqliteStore(small_disk))
    with larder.connect() as c:
        done, error = fill(c)
        assert len(done) > 50
        check_full(c, done, error)
        assert "space" in larder.log_text() or "full" in larder.log_text()
        ballast.unlink()
        check_recovered(larder, c, done)


def test_disk_full_when_a_server_starts(fleet, small_disk):
    """More of that, with much in the journal, in test_full_start.py."""
    larder = fleet.larder(data=store.SqliteStore(small_disk))
    with larder.connect() as c:
        done, _ = fill(c)
    larder.kill()
    larder.start()
    with larder.connect() as c:
        assert all(c("GET", key) == VALUE for key in done)
        assert c("DBSIZE") == len(done)
    larder.kill()  # there is no room to bring all of it into the tables


# Where the journal is small, what cannot be written is found out while it is brought into the tables.
@pytest.mark.parametrize("options", [[], EVERYSEC, HURRIED, HURRIED + EVERYSEC, DIRECT])
def test_file_size_limit(fleet, options):
    """As with a quota: the write fails with another error than on a full disk, and a signal comes with it."""
    larder = fleet.larder(*options)
    with larder.connect() as c:
        c("SET", "first", VALUE)
        assert says_writes_work(c)
        resource.prlimit(larder.pid, resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
        done, error = fill(c)
        assert len(done) > 50
        done.append("first")
        check_full(c, done, error)
        assert "space" in larder.log_text()
        resource.prlimit(larder.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        check_recovered(larder, c, done)


# --- files that cannot be used


def test_a_file_that_is_no_database(fleet):
    larder = fleet.new(servers.Larder)
    text = b"These are somebody's notes and not a database.\n" * 100
    larder.store.path.write_bytes(text)
    said = refused(larder)
    assert "larder.db" in said and "not a database" in said, said
    assert larder.store.path.read_bytes() == text


def test_somebody_elses_database(fleet):
    """Tables of others in the file stay as they are, and Larder's stand beside them."""
    larder = fleet.new(servers.Larder)
    larder.store.query("CREATE TABLE recipes (name TEXT)")
    larder.store.query("INSERT INTO recipes VALUES ('soup')")
    larder.start()
    with larder.connect() as c:
        c("SET", "k", "v")
    assert larder.store.query("SELECT name FROM recipes") == [("soup",)]


def test_a_newer_schema_is_refused(fleet):
    larder = fleet.larder()
    larder.stop()
    larder.store.query("UPDATE larder_meta SET value = 99 WHERE name = 'schema_version'")
    said = refused(larder)
    assert "newer" in said and "99" in said, said
    assert larder.store.query("SELECT value FROM larder_meta WHERE name = 'schema_version'") == [(99,)]


def test_a_folder_that_does_not_exist(fleet):
    larder = fleet.new(servers.Larder)
    larder.store.url = f"sqlite:{larder.folder}/no/such/folder/larder.db"
    said = refused(larder)
    assert "no/such/folder" in said, said


def damaged(larder):
    """A database whose pages beyond the first few are noise."""
    with larder.connect() as c:
        c.pipeline([["SET", f"key:{i}", f"{i}:" + "v" * 500] for i in range(2000)])
    larder.stop()
    size = larder.store.path.stat().st_size
    assert size > 500_000
    with open(larder.store.path, "r+b") as f:
        for at in range(200_000, size - 8192, 20_000):
            f.seek(at)
            f.write(os.urandom(4096))


def test_a_damaged_file_is_told(fleet):
    larder = fleet.larder()
    damaged(larder)
    done = servers.run(["check", "--store", larder.store.url])
    assert done.returncode > 0
    assert done.stdout + done.stderr
    try:
        larder.start()
    except servers.StartError as e:
        assert e.code > 0
        larder.process = None
        return
    # It opens when the damage is elsewhere; then it is told to whoever reads there. (Noise within a value cannot be
    # told from a value: SQLite keeps no checksums.)
    with larder.connect() as c:
        replies = c.pipeline([["GET", f"key:{i}"] for i in range(2000)])
        errors = [r.value.decode() for r in replies if r.is_error]
        assert errors, "damage must be told, not taken for missing keys"
        assert all("damaged" in error for error in errors), errors[0]
        assert c("PING") == b"PONG"


def test_a_truncated_file(fleet):
    larder = fleet.larder()
    with larder.connect() as c:
        c.pipeline([["SET", f"key:{i}", "v" * 500] for i in range(2000)])
    larder.stop()
    os.truncate(larder.store.path, larder.store.path.stat().st_size // 2)
    done = servers.run(["check", "--store", larder.store.url])
    assert done.returncode > 0
    assert done.stdout + done.stderr


@pytest.fixture
def open_folder():
    """A folder that any user may enter, and a copy of the binary there."""
    if os.getuid() != 0:
        pytest.skip("only root can start a server as another user")
    folder = tempfile.mkdtemp(prefix="larder-test-")
    os.chmod(folder, 0o755)
    binary = shutil.copy(servers.BINARY, folder)
    os.chmod(binary, 0o755)
    yield pathlib.Path(folder), binary
    shutil.rmtree(folder)


def as_nobody(folder, binary):
    larder = servers.Larder(folder / "data", binary=binary, user="nobody")
    shutil.chown(larder.folder, "nobody")
    return larder


def test_a_file_without_permission(open_folder):
    folder, binary = open_folder
    larder = as_nobody(folder, binary)
    with larder, larder.connect() as c:
        c("SET", "k", "v")
    os.chmod(larder.store.path, 0)
    shutil.chown(larder.store.path, "root")
    said = refused(larder)
    assert "larder.db" in said and ("permission" in said.lower() or "denied" in said.lower()), said


def test_a_file_that_may_only_be_read(open_folder):
    """It is served for reading when the database allows that, else refused with the reason; never half."""
    folder, binary = open_folder
    larder = as_nobody(folder, binary)
    with larder, larder.connect() as c:
        c("SET", "k", "v")
    shutil.chown(larder.store.path, "root")
    os.chmod(larder.store.path, 0o444)
    try:
        larder.start()
    except servers.StartError as e:
        assert e.code > 0
        assert "larder.db" in e.log, e.log
        assert any(word in e.log.lower() for word in ("permission", "denied", "read-only", "readonly")), e.log
        larder.process = None
        return
    with larder.connect() as c:
        assert c("GET", "k") == b"v"
        assert c.error("SET", "k", "w").startswith("READONLY")
        assert c("GET", "k") == b"v"
    larder.stop()


def test_the_file_is_removed_while_it_is_served(fleet):
    """Nothing sensible can be kept then, but nothing may crash, and the log says it or writes go on."""
    larder = fleet.larder()
    with larder.connect() as c:
        c("SET", "k", "v")
        larder.store.path.unlink()
        reply = c.call("SET", "k", "w")
        assert reply.is_error or reply.raw == b"+OK\r\n"
        assert c("PING") == b"PONG"
    larder.kill()


CUT = "the database's -wal file was cut short while it was in use"


@pytest.mark.parametrize("part", [0, 0.5, 0.99])
@pytest.mark.parametrize("options", [[], DIRECT, EVERYSEC], ids=["journal", "direct", "everysec"])
def test_the_log_is_cut_short_while_it_is_served(fleet, options, part):
    """What is written behind the gap would be lost with the next start: no such write is acknowledged. One that is in
    the redo log is not behind it."""
    larder = fleet.larder(*options)
    path = pathlib.Path(f"{larder.store.path}-wal")
    acknowledged = []
    with larder.connect() as c:
        c("MSET", *(word for i in range(500) for word in (f"k{i}", "v" * 200)))
        c("SAVE")
        os.truncate(path, int(path.stat().st_size * part))
        for i in range(5):
            reply = c.call("SET", f"new{i}", "w")
            if reply.is_error:
                assert reply.value.startswith(b"IOERR ") and CUT in reply.value.decode(), reply.raw
            else:
                assert options != DIRECT
                acknowledged.append(f"new{i}")
        assert c("PING") == b"PONG"
        for key, value in (("k7", b"v" * 200), ("new1", b"w" if "new1" in acknowledged else None)):
            reply = c.call("GET", key)  # right, or an error where pages are missing; never wrong
            assert reply.value == value or reply.is_error and CUT in reply.value.decode(), reply.raw
        error = c.error("SAVE")
        assert CUT in error, error
    if options != DIRECT:  # there, every command fails before anything is to be committed
        assert CUT in larder.log_text()
    before = larder.store.path.read_bytes()
    larder.process.send_signal(signal.SIGTERM)
    assert larder.process.wait(60) == 1, "it could not end well"
    larder.process = None
    assert larder.store.path.read_bytes() == before, "frames that are not there were copied into the database"
    if not acknowledged:
        return
    try:
        larder.start()
    except servers.StartError as e:  # the log knows that the tables had more
        larder.process = None
        assert "--apply-log" in e.log and "--discard-log" in e.log, e.log
    else:  # what was cut off was in the log, too
        with larder.connect() as c:
            assert c("EXISTS", *acknowledged, *(f"k{i}" for i in range(500))) == len(acknowledged) + 500


@pytest.mark.parametrize("options", [[], DIRECT, EVERYSEC], ids=["journal", "direct", "everysec"])
def test_what_is_lost_with_the_log_is_not_saved(fleet, options):
    """Nobody has written since: neither SAVE nor a clean end says that everything is there."""
    larder = fleet.larder(*options)
    path = pathlib.Path(f"{larder.store.path}-wal")
    with larder.connect() as c:
        c("MSET", *(word for i in range(500) for word in (f"k{i}", "v" * 200)))
        c("SAVE")
        os.truncate(path, path.stat().st_size // 2)
        error = c.error("SAVE")
        assert CUT in error, error
    larder.process.send_signal(signal.SIGTERM)
    assert larder.process.wait(60) == 1
    larder.process = None


def test_a_log_that_others_cut_as_sqlite_does_is_none_that_was_cut_short(fleet):
    """A checkpoint of another process empties it when all of it is in the database."""
    larder = fleet.larder()
    path = pathlib.Path(f"{larder.store.path}-wal")
    with larder.connect() as c:
        for round_ in range(5):
            c("MSET", *(word for i in range(200) for word in (f"k{i}", f"{round_}" * 200)))
            c("SAVE")
            other = sqlite3.connect(larder.store.path, timeout=60)
            wait.until(lambda: other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "the log is empty")
            other.close()
            assert path.stat().st_size == 0
            if round_ % 2:
                c("SAVE")
            c("SET", "after", str(round_))
            assert c("GET", "k7") == b"%d" % round_ * 200
    larder.stop()
    larder.check()


# --- others at work in the same file


def test_sql_writes_are_seen_at_once(larder, client):
    client("SET", "k", "old")
    client("GET", "missing")
    assert client("GET", "k") == b"old"
    client("SAVE")
    for i in range(20):
        larder.store.query("UPDATE larder_key SET value = ? WHERE key = ?", b"new %d" % i, b"k")
        assert client("GET", "k") == b"new %d" % i
    number = larder.store.query("SELECT number FROM larder_db WHERE db = 0")[0][0]
    larder.store.query(
        "INSERT INTO larder_key (db, key, type, id, size, first, version, expire_at, value) VALUES (?, ?, 1, 0, 0, 0, 1, 0, ?)",
        number, b"missing", b"found",
    )  # fmt: skip
    assert client("GET", "missing") == b"found"
    larder.store.query("UPDATE larder_key SET expire_at = -1 WHERE key = ?", b"k")
    assert client("GET", "k") is None
    assert client("SET", "k", "again") == b"OK"
    assert client("GET", "k") == b"again"


def test_our_own_log_that_starts_over_is_not_taken_for_anothers_write(fleet):
    """Large transactions, so that SQLite writes, and begins its log anew, before they are committed."""
    larder = fleet.larder("--page-cache", "64kb", "--journal-max", "256kb")
    with larder.connect() as writer, larder.connect() as reader:
        for round_ in range(5):
            words = [word for i in range(4000) for word in (f"key:{i}", f"{round_}" * 4000)]
            writer.send(encode(["MSET", *words]))
            while not select.select([writer.socket], [], [], 0)[0]:
                assert reader("GET", "other") is None
            assert writer.read().value == b"OK"
        assert b"external_changes:0" in reader("INFO", "larder")


def test_the_sqlite_shell_reads_while_the_server_runs(larder, client):
    client("MSET", "a", "1", "b", "two")
    client("SET", "gone", "x", "PXAT", "1000")
    client("SAVE")
    done = subprocess.run(
        ["sqlite3", larder.store.path, "SELECT key, value FROM larder_strings ORDER BY key"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "a|1\nb|two\n"), done.stderr
    done = subprocess.run(
        ["sqlite3", larder.store.path, "SELECT key, type, size FROM larder_keys ORDER BY key"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "a|string|1\nb|string|3\n", done.stderr


def test_a_long_reader_does_not_stop_writers(larder, client):
    client("SET", "k", "old")
    client("SAVE")
    reader = sqlite3.connect(larder.store.path, isolation_level=None)
    try:
        reader.execute("BEGIN")
        assert reader.execute("SELECT value FROM larder_strings").fetchall() == [("old",)]
        client("SET", "k", "new")
        assert client("GET", "k") == b"new"
        client("SAVE")
        assert reader.execute("SELECT value FROM larder_strings").fetchall() == [("old",)]
        reader.execute("COMMIT")
        assert reader.execute("SELECT value FROM larder_strings").fetchall() == [("new",)]
    finally:
        reader.close()


def test_a_writer_that_holds_the_lock(fleet):
    """Writes go to the log, which no other process locks; the tables get them when the lock is free."""
    larder = fleet.larder("--busy-timeout", "100ms")
    with larder.connect() as c:
        c("SET", "k", "old")
        c("SAVE")
        writer = sqlite3.connect(larder.store.path, isolation_level=None)
        try:
            writer.execute("BEGIN IMMEDIATE")
            assert c("SET", "k", "new") == b"OK"
            assert c("GET", "k") == b"new"
            with pytest.raises(ServerError) as caught:
                c("SAVE")
            assert str(caught.value).split()[0].isupper(), caught.value
            assert writer.execute("SELECT value FROM larder_strings").fetchall() == [("old",)]
            writer.execute("ROLLBACK")
            wait.until(lambda: c.call("SAVE").raw == b"+OK\r\n", "the tables can be written again")
            assert writer.execute("SELECT value FROM larder_strings").fetchall() == [("new",)]
        finally:
            writer.close()


def test_writes_without_a_journal_wait_for_a_lock_and_readers_go_on(fleet):
    larder = fleet.larder("--journal-max", "0", "--busy-timeout", "30s")
    client = larder.connect()
    client("SET", "k", "old")
    client("SET", "other", "here")
    writer = sqlite3.connect(larder.store.path, isolation_level=None)
    with larder.connect() as first, larder.connect() as second, larder.connect() as third:
        try:
            writer.execute("BEGIN IMMEDIATE")
            first.send(encode(["GET", "k"]) + encode(["APPEND", "k", "1"]) + encode(["GET", "k"]))
            assert first.read().value == b"old"
            start = time.monotonic()
            for _ in range(200):  # of what is being written, nobody may be told yet
                assert client("GET", "other") == b"here"
            assert time.monotonic() - start < 2.0, "reads waited for the lock"
            second.send(encode(["MULTI"]) + encode(["APPEND", "k", "2"]) + encode(["EXEC"]))
            assert second.read().value == b"OK"
            third.send(encode(["LPUSH", "list", "x"]))
            third.close()
            assert client("EXISTS", "other", "list") == 1
        finally:
            writer.execute("COMMIT")
            writer.close()
        assert [first.read().value, first.read().value] == [b"4", b"old1"]
        assert second.read().value == b"QUEUED"
        assert second.read().plain() == [5]
        assert client("GET", "k") == b"old12"
    client.close()


def test_counts_that_another_writer_made_wrong_are_not_believed_after_a_kill(larder):
    with larder.connect() as c:
        c("SET", "ours", "1")
        c("SAVE")
        writer = sqlite3.connect(larder.store.path, isolation_level=None)
        writer.execute("DELETE FROM larder_key WHERE key = CAST('ours' AS BLOB)")
        writer.close()
        c("SET", "other", "1")
    larder.kill()
    larder.start()
    with larder.connect() as c:
        assert c("DBSIZE") == 1
        assert c("KEYS", "*") == [b"other"]


def test_signals_that_are_no_reason_to_end(larder, client):
    for signo in (signal.SIGPIPE, signal.SIGXFSZ):
        os.kill(larder.pid, signo)
    assert client("PING") == b"PONG"
