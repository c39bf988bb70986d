"""The log beside a SQLite database: starts on it, ends, what does not belong together, and backups."""

import contextlib
import pathlib
import shutil
import sqlite3
import threading

import pytest

from harness import redolog, servers, store, wait

pytestmark = pytest.mark.sqlite  # database servers have no log

KEYS = 40


@contextlib.contextmanager
def locked(path):
    """Nothing comes into the tables meanwhile: another process has their lock."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextlib.contextmanager
def behind(larder):
    """While the log holds what the tables have not: `old` is in both, `new` only in the log, KEYS groups."""
    with larder.connect() as c:
        c("SET", "old", "1")
        c("SAVE")
        with locked(larder.store.path):
            for n in range(KEYS):
                assert c("SET", f"new:{n}", n) == b"OK"
            yield


class Crashed:
    """A server that was killed then."""

    def __init__(self, fleet):
        self.larder = fleet.larder()
        self.path = pathlib.Path(self.larder.store.path)
        with behind(self.larder):
            self.larder.kill()
        assert self.tables("SELECT count(*) FROM larder_key") == 1

    def records(self):
        """Those of the log that the tables have not."""
        applied = self.tables("SELECT value FROM larder_meta WHERE name = 'applied'")
        found = [r for r in redolog.records(self.path) if r.seq > applied]
        assert len(found) == KEYS
        return found

    def tables(self, sql, path=None):
        with contextlib.closing(sqlite3.connect(path or self.path, isolation_level=None)) as connection:
            row = connection.execute(sql).fetchone()
            return row and row[0]

    def refused(self):
        with pytest.raises(servers.StartError) as failure:
            self.larder.start()
        return failure.value.log

    def check(self, *options, path=None):
        return servers.run(["check", "--store", f"sqlite:{path or self.path}", *options])

    def new(self):
        """Starts; how many of the keys are there that only the log had. They are the first ones."""
        self.larder.start()
        return count_new(self.larder)


def count_new(larder):
    with larder.connect() as c:
        assert c("GET", "old") == b"1"
        found = c("MGET", *(f"new:{n}" for n in range(KEYS)))
    there = [n for n in range(KEYS) if found[n] is not None]
    assert [found[n] for n in there] == [b"%d" % n for n in there]
    return len(there)


@pytest.fixture
def crashed(fleet):
    return Crashed(fleet)


# ---- starts and ends ----


def test_an_end_leaves_one_file(fleet):
    larder = fleet.larder()
    path = larder.store.path
    with larder.connect() as c:
        c("MSET", *(x for n in range(1000) for x in (f"k{n}", n)))
    assert len(redolog.segments(path)) == 1
    larder.stop()
    assert redolog.files(path) == ["larder.db"]
    assert larder.store.query("SELECT count(*) FROM larder_key") == [(1000,)]
    assert larder.store.query("SELECT value FROM larder_meta WHERE name = 'redo_open'") == [("0",)]
    assert larder.store.query("SELECT count(*) FROM larder_journal") == [(0,)]


@pytest.mark.parametrize("busy_timeout", ["5s", "20ms"])
def test_an_end_waits_for_the_tables_only_so_long(fleet, busy_timeout):
    """Then the log stays, which is a clean end all the same: the next start has everything, and goes on with it."""
    larder = fleet.larder("--shutdown-timeout", "1h", "--busy-timeout", busy_timeout)
    path = larder.store.path
    with behind(larder):
        with larder.connect() as c:
            assert c("CONFIG", "SET", "shutdown-timeout", "1") == b"OK"
        larder.stop()  # the exit code is 0
        assert redolog.segments(path)
        assert "the log stays beside the database: the next start goes on with it" in larder.log_text()
    larder.start()
    assert count_new(larder) == KEYS
    larder.stop()
    assert redolog.files(path) == ["larder.db"]
    larder.check()


def test_a_start_serves_and_writes_before_the_log_is_applied(crashed):
    """What the log holds stays in it until then, and new groups come behind it, through any number of crashes."""
    for again in range(4):
        crashed.larder.start()
        with locked(crashed.path), crashed.larder.connect() as c:
            assert count_new(crashed.larder) == KEYS
            assert c("INCR", "starts") == again + 1
            assert c("SET", "new:0", 0) == b"OK"
            crashed.larder.kill()
    assert crashed.new() == KEYS
    crashed.larder.stop()
    assert redolog.files(crashed.path) == ["larder.db"]
    assert crashed.tables("SELECT count(*) FROM larder_key") == KEYS + 2
    assert crashed.check().returncode == 0


def test_check_knows_the_log(crashed):
    before = [f.read_bytes() for f in redolog.segments(crashed.path)]
    done = crashed.check()
    assert done.returncode == 0 and f"log ... ok, {KEYS} groups to be applied\n" in done.stdout, done.stdout
    assert [f.read_bytes() for f in redolog.segments(crashed.path)] == before
    assert crashed.tables("SELECT count(*) FROM larder_key") == 1, "what was brought in was taken back"
    assert crashed.new() == KEYS
    with behind(crashed.larder):
        done = crashed.check()
        assert done.returncode == 0 and f"log ... ok, {KEYS} groups to be applied by the server\n" in done.stdout, done.stdout


def test_without_a_journal_the_log_is_applied_first(crashed):
    crashed.larder.options = ["--journal-max", "0"]
    assert crashed.new() == KEYS
    assert redolog.segments(crashed.path) == []
    assert crashed.tables("SELECT count(*) FROM larder_key") == KEYS + 1
    crashed.larder.kill()
    crashed.larder.options = []
    assert crashed.new() == KEYS


def test_a_database_of_the_version_before(crashed):
    """Its rows of the journal are applied, and from then on older programs refuse it."""
    groups = crashed.records()
    for file in redolog.segments(crashed.path):
        file.unlink()
    with contextlib.closing(sqlite3.connect(crashed.path)) as old, old:
        old.executemany("INSERT INTO larder_journal VALUES (?, ?)", [(g.seq, g.payload) for g in groups])
        old.execute("DELETE FROM larder_meta WHERE name LIKE 'redo_%'")
        old.execute("ALTER TABLE larder_key DROP COLUMN numbers")
        old.execute("UPDATE larder_meta SET value = 2 WHERE name = 'schema_version'")
    assert crashed.new() == KEYS
    assert crashed.tables("SELECT count(*) FROM larder_key") == KEYS + 1, "it is applied before the first record"
    assert crashed.tables("SELECT value FROM larder_meta WHERE name = 'schema_version'") == 4
    with crashed.larder.connect() as c:
        c("SET", "new:0", 0)
    crashed.larder.kill()
    assert crashed.new() == KEYS


# ---- what does not belong together ----


def both_ways(crashed, log, why):
    """The message names two ways out, and both work, each on a copy."""
    assert why in log and "--apply-log" in log and "--discard-log" in log, log
    kept = crashed.path.parent / "kept"
    shutil.copytree(crashed.path.parent, kept, ignore=shutil.ignore_patterns("kept", "*.log"))
    done = crashed.check("--apply-log", path=kept / crashed.path.name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert redolog.files(kept / crashed.path.name) == [crashed.path.name]
    applied = crashed.tables("SELECT count(*) FROM larder_key WHERE CAST(key AS TEXT) LIKE 'new:%'", kept / crashed.path.name)

    done = crashed.check("--discard-log")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: " in done.stdout and "'new:0'" in done.stdout, done.stdout
    assert redolog.files(crashed.path) == [crashed.path.name, crashed.path.name + ".salvaged"]
    lost = crashed.tables("SELECT count(*) FROM lost", f"{crashed.path}.salvaged")
    assert lost == KEYS, "nothing is thrown away"
    crashed.larder.start()
    return applied


def test_a_log_of_another_database(fleet, crashed):
    other = Crashed(fleet)
    for file in redolog.segments(crashed.path):
        file.unlink()
    for file in redolog.segments(other.path):
        shutil.copy(file, crashed.path.parent)
    assert both_ways(crashed, crashed.refused(), "the log beside the database is of another one") == KEYS
    assert count_new(crashed.larder) == 0


def test_a_missing_log(crashed):
    (file,) = redolog.segments(crashed.path)
    file.rename(crashed.path.parent / "away")
    log = crashed.refused()
    assert "is missing" in log and "--discard-log" in log
    assert crashed.check().returncode == 3
    (crashed.path.parent / "away").rename(file)
    assert crashed.new() == KEYS
    crashed.larder.kill()
    for file in redolog.segments(crashed.path):
        file.unlink()
    crashed.refused()
    assert crashed.check("--discard-log").returncode == 0
    crashed.larder.start()


def test_a_missing_end_of_the_log(fleet):
    """The segment before the last one knows of it."""
    larder = fleet.larder()
    path = pathlib.Path(larder.store.path)
    with behind(larder), larder.connect() as c:
        n = 0
        while len(redolog.segments(path)) < 3:  # the first one has a megabyte; how large the next ones are depends on when they are made
            n += 1
            c("SET", f"large:{n}", b"v" * 600_000)
        larder.kill()
    newest = redolog.segments(path)[-1]
    newest.rename(path.parent / "away")
    with pytest.raises(servers.StartError) as failure:
        larder.start()
    assert f"{newest.name} is missing" in failure.value.log, failure.value.log
    assert servers.run(["check", "--store", f"sqlite:{path}"]).returncode == 3
    (path.parent / "away").rename(newest)
    larder.start()
    with larder.connect() as c:
        assert c("STRLEN", f"large:{n}") == 600_000


def test_all_files_copied_elsewhere(fleet, crashed):
    """A copy of a crashed server's files has everything, and needs one word from somebody who knows that they belong together."""
    copy = crashed.path.parent.parent / "copy"
    copy.mkdir()
    for name in redolog.files(crashed.path):
        shutil.copy(crashed.path.parent / name, copy)
    crashed.path = copy / crashed.path.name
    crashed.larder = fleet.new(servers.Larder, data=store.SqliteStore(copy))
    log = crashed.refused()
    assert both_ways(crashed, log, "another file") == KEYS
    assert count_new(crashed.larder) == 0


def test_a_restored_backup_beside_an_old_log(crashed):
    """The FLUSHALL that it was restored for does not come again."""
    assert crashed.new() == KEYS
    with crashed.larder.connect() as c:
        c("SAVE")
        for n in range(KEYS):
            c("SET", f"new:{n}", n)
        c("SAVE")
        backup = f"{crashed.path}.copy"
        with contextlib.closing(sqlite3.connect(crashed.path)) as source, contextlib.closing(sqlite3.connect(backup)) as target:
            source.backup(target)
        with locked(crashed.path):
            c("FLUSHALL")
            crashed.larder.kill()
    # In place, as .restore does: the file is the same one.
    with contextlib.closing(sqlite3.connect(backup)) as source, contextlib.closing(sqlite3.connect(crashed.path)) as target:
        source.backup(target)
    pathlib.Path(backup).unlink()
    log = crashed.refused()
    assert "restored backup" in log and "--apply-log" in log and "--discard-log" in log, log
    assert crashed.check("--discard-log").returncode == 0
    assert crashed.new() == KEYS


def test_backups_that_are_restored_one_after_the_other(crashed):
    """A file that is a copy SQLite made, and a copy of that one: they count their cookies alike, and are told apart all the same."""

    def copy_to(name):
        with contextlib.closing(sqlite3.connect(crashed.path)) as source, contextlib.closing(sqlite3.connect(name)) as target:
            source.backup(target)

    def write_over(name):
        """As cp does: the file is the same one."""
        for end in ("-wal", "-shm"):
            pathlib.Path(f"{crashed.path}{end}").unlink(missing_ok=True)
        crashed.path.write_bytes(name.read_bytes())
        name.unlink()

    name = crashed.path.parent / "copy"
    assert crashed.new() == KEYS
    with crashed.larder.connect() as c:
        c("SAVE")
    copy_to(name)
    crashed.larder.stop()
    write_over(name)
    assert crashed.new() == KEYS
    with crashed.larder.connect() as c:
        c("SAVE")
        copy_to(name)
        c("FLUSHALL")
        crashed.larder.kill()
    write_over(name)
    log = crashed.refused()
    assert "restored backup" in log and "--apply-log" in log and "--discard-log" in log, log
    assert crashed.check("--discard-log").returncode == 0
    assert crashed.new() == KEYS


def test_a_schema_that_was_changed_while_it_was_served(fleet):
    """An index of one's own, or VACUUM: with the next pass that is the schema that the log belongs to."""
    larder = fleet.larder()
    for sql in ("CREATE INDEX mine ON larder_hash (field, value)", "VACUUM"):
        with contextlib.closing(sqlite3.connect(larder.store.path, isolation_level=None, timeout=60)) as db:
            db.execute(sql)
        with behind(larder):
            larder.kill()
        larder.start()
        assert count_new(larder) == KEYS


def test_a_database_that_is_older_than_its_log(crashed):
    applied = crashed.tables("SELECT value FROM larder_meta WHERE name = 'applied'")
    assert crashed.new() == KEYS

    def log_knows():
        """A record tells that the tables have more: they are synced each second, however steadily there is something new."""
        assert c("SET", "more", "1") == b"OK"
        return max(r.tables for r in redolog.records(crashed.path)) > applied

    with crashed.larder.connect() as c:
        wait.until(log_knows, "the log knows of the tables")
        with locked(crashed.path):
            c("SET", "most", "1")
            crashed.larder.kill()
    with contextlib.closing(sqlite3.connect(crashed.path)) as db, db:
        db.execute("UPDATE larder_meta SET value = ? WHERE name = 'applied'", [applied])
    log = crashed.refused()
    assert "the database is older than its log" in log and "--apply-log" in log and "--discard-log" in log, log
    done = crashed.check("--apply-log")
    assert done.returncode == 0 and "what is between them is in neither" in done.stdout, done.stdout
    crashed.larder.start()
    with crashed.larder.connect() as c:
        assert c("MGET", "more", "most") == [b"1", b"1"]


def test_a_copy_without_a_log(fleet, crashed):
    copy = crashed.path.parent.parent / "copy"
    copy.mkdir()
    for name in redolog.files(crashed.path):
        if "-redo" not in name:
            shutil.copy(crashed.path.parent / name, copy)
    larder = fleet.larder(data=store.SqliteStore(copy))
    assert count_new(larder) == 0
    assert "the database is a copy without a log" in larder.log_text()


# ---- damage ----


@pytest.mark.parametrize("at", [0, KEYS // 2])
def test_damage_in_the_middle(crashed, at):
    crashed.records()[at].flip()
    log = crashed.refused()
    assert "is damaged" in log and "larder check --salvage" in log, log
    done = crashed.check()
    assert done.returncode == 3 and "log ... WRONG\n" in done.stdout, done.stdout
    assert crashed.check("--apply-log").returncode == 1
    done = crashed.check("--salvage")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"left out: {KEYS - at} of {KEYS} rows" in done.stdout, done.stdout
    assert redolog.segments(crashed.path) == []
    assert crashed.tables("SELECT count(*) FROM lost", f"{crashed.path}.salvaged") == KEYS - at - 1
    assert crashed.new() == at


def test_damage_is_skipped(crashed):
    """A record, and the head of a segment: everything else is there."""
    crashed.records()[3].flip()
    with redolog.segments(crashed.path)[0].open("r+b") as f:
        f.write(b"\0" * 64)
    assert "larder check --salvage" in crashed.refused()
    done = crashed.check("--salvage=skip")
    assert done.returncode == 0, done.stdout + done.stderr
    crashed.larder.start()
    with crashed.larder.connect() as c:
        assert [n for n in range(KEYS) if c("GET", f"new:{n}") is None] == [3]


def test_a_torn_tail_is_no_damage(crashed):
    """The last record was being written: nobody was told."""
    crashed.records()[-1].flip()
    assert crashed.check().returncode == 0
    assert crashed.new() == KEYS - 1


# ---- backups ----


def backup(larder, to, *options):
    return servers.run(["backup", str(to), "--store", larder.store.url, *options])


def served(fleet, path):
    """A server on a copy, in a folder of its own."""
    folder = path.parent / f"of-{path.name}"
    folder.mkdir()
    path.rename(folder / "larder.db")
    return fleet.larder(data=store.SqliteStore(folder))


def test_backups_beside_a_server(fleet, tmp_path):
    """SQLite's own have what was in the tables; larder backup has what was acknowledged."""
    larder = fleet.larder()
    with behind(larder):
        done = backup(larder, tmp_path / "whole.db")
        assert done.returncode == 0 and f"with {KEYS} groups of the log" in done.stdout, done.stdout + done.stderr
        with contextlib.closing(sqlite3.connect(larder.store.path, isolation_level=None)) as db:
            db.execute("VACUUM INTO ?", [str(tmp_path / "vacuumed.db")])
            with contextlib.closing(sqlite3.connect(tmp_path / "backup.db")) as target:
                db.backup(target)
    assert redolog.files(tmp_path / "whole.db") == ["whole.db"]
    for name, keys in (("whole.db", KEYS), ("vacuumed.db", 0), ("backup.db", 0)):
        assert servers.run(["check", "--store", f"sqlite:{tmp_path / name}"]).returncode == 0
        copy = served(fleet, tmp_path / name)
        assert count_new(copy) == keys
        assert ("is a copy without a log" in copy.log_text()) == (keys == 0)


def test_a_backup_without_a_server(fleet, crashed, tmp_path):
    done = backup(crashed.larder, tmp_path / "b.db")
    assert done.returncode == 0, done.stderr
    assert crashed.tables("SELECT count(*) FROM larder_key", tmp_path / "b.db") == KEYS + 1
    assert crashed.tables("SELECT group_concat(value, '') FROM larder_meta WHERE name IN ('redo_id', 'redo_inode', 'owner')", tmp_path / "b.db") == ""
    again = backup(crashed.larder, tmp_path / "b.db")
    assert again.returncode == 1 and "--force" in again.stderr
    assert backup(crashed.larder, tmp_path / "b.db", "--force").returncode == 0
    itself = backup(crashed.larder, crashed.path, "--force")
    assert itself.returncode == 1 and "the database itself" in itself.stderr
    assert backup(crashed.larder, tmp_path / "nowhere" / "b.db").returncode == 1
    assert redolog.files(tmp_path / "b.db") == ["b.db"]
    assert crashed.new() == KEYS


def test_backups_under_load(fleet, tmp_path):
    """Transfers between keys go on; every copy has a sum of 0, and what was acknowledged before it began."""
    larder = fleet.larder("--apply-lag", "100ms")
    path, stop, told = pathlib.Path(larder.store.path), threading.Event(), [0]

    def write():
        with larder.connect() as c:
            while not stop.is_set():
                c("MULTI")
                c("INCRBY", f"a{told[0] % 500}", 7)
                c("DECRBY", f"b{told[0] % 700}", 7)
                c("SET", "count", told[0] + 1)
                c("EXEC")
                told[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for i in range(8):
            before, copy = told[0], tmp_path / f"b{i}.db"
            done = backup(larder, copy)
            assert done.returncode == 0, done.stderr
            with contextlib.closing(sqlite3.connect(copy)) as db:
                ((sum,),) = db.execute("SELECT sum(CAST(value AS TEXT)) FROM larder_key WHERE key <> CAST('count' AS BLOB)")
                assert (sum or 0) == 0
                (count,) = db.execute("SELECT CAST(value AS TEXT) FROM larder_key WHERE key = CAST('count' AS BLOB)").fetchone() or (0,)
                assert before <= int(count) <= told[0] + 1
    finally:
        stop.set()
        writer.join()
    assert servers.run(["check", "--store", f"sqlite:{copy}"]).returncode == 0


@pytest.mark.parametrize(("url", "tool"), [("postgres://db.example/shop", "pg_dump"), ("mysql://db.example/shop", "mariadb-dump")])
def test_backups_of_database_servers_are_their_own(tmp_path, url, tool):
    done = servers.run(["backup", str(tmp_path / "b"), "--store", url])
    assert done.returncode == 1 and tool in done.stderr
