"""docs/backup.md: its commands are run as they stand there, on databases of the name that it uses, and what they bring back
is what clients saw."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from harness import databases, servers, store, wait

from .test_dumps import content, fill

PAGE = (servers.ROOT / "docs" / "backup.md").read_text()


def section(title, within=PAGE):
    level = re.search(rf"^(#+) {re.escape(title)}$", within, re.M)[1]
    return re.search(rf"^{level} {re.escape(title)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", within, re.M | re.S)[1]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


class Shell:
    """A shell in a folder of its own, where the tools find the database server and the program under test."""

    def __init__(self, folder, database=None):
        self.folder, self.database = pathlib.Path(folder), database
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "bin").mkdir(exist_ok=True)
        (self.folder / "bin" / "larder").symlink_to(servers.BINARY)
        self.env = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(self.folder), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        if database and database.kind == "postgres":
            self.env |= {"PGHOST": str(database.folder), "PGPORT": str(database.port), "PGUSER": "larder"}
        elif database:
            (self.folder / ".my.cnf").write_text(f"[client]\nsocket={database.socket}\nuser=root\n")

    def __call__(self, command):
        if self.database:
            command = re.sub(r"\w+://larder@db\.example/(\w+)", lambda m: f"'{self.database.url(m[1])}'", command)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env=self.env, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, text):
        """Runs the commands of a part of the page."""
        for block in blocks(text, "console"):
            for line in block.splitlines():
                if line.startswith("$ "):
                    self(line[2:])


def named(database, name):
    """The store in a database of this name."""
    data = object.__new__(store.KINDS[database.kind])
    data.server, data.name, data.alone, data.url = database, name, False, database.url(name)
    return data


def shown(fleet, data):
    """What a server on it shows."""
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        found = content(c)
        c("SET", "new", "key")
        assert c("DBSIZE") == len([k for k in found if k[0] == 0]) + 1
    larder.stop()
    larder.check()
    return found


class AtPath:
    kind = "sqlite"

    def __init__(self, path):
        self.path, self.url = path, f"sqlite:{path}"


def test_sqlite(fleet, tmp_path):
    shell = Shell(tmp_path / "shell")
    larder = fleet.larder(data=AtPath(shell.folder / "larder.db"))
    with larder.connect() as c:
        fill(c)
        expected = content(c)
        shell.follow(section("SQLite"))
        backup = next(line for line in section("SQLite").splitlines() if "COMMIT" in line)[2:]
        assert shell(backup.replace("backup2", "backup3")) == ""  # it says nothing
    for name in ("backup.db", "backup2.db"):
        assert shown(fleet, AtPath(shell.folder / name)) == expected
    larder.stop()
    for name in ("larder.db-wal", "larder.db-shm"):
        (shell.folder / name).unlink(missing_ok=True)
    shutil.copy(shell.folder / "backup3.db", shell.folder / "larder.db")
    assert shown(fleet, AtPath(shell.folder / "larder.db")) == expected


@pytest.mark.parametrize(
    "damage, says",
    [
        ("DROP TABLE larder_trash", "the database lacks table larder_trash: restore it anew"),
        ("DELETE FROM larder_meta WHERE name = 'next_id'", "the database lacks row next_id of larder_meta"),
        ("DROP VIEW larder_keys; ALTER TABLE larder_journal DROP COLUMN changes", "lacks column larder_journal.changes"),
    ],
)
def test_a_file_that_is_not_whole(fleet, tmp_path, damage, says):
    data = AtPath(tmp_path / "larder.db")
    assert servers.run(["migrate", "--store", data.url]).returncode == 0
    Shell(tmp_path / "shell")(f'sqlite3 {data.path} "{damage}"')
    for command in ("check", "migrate"):
        done = servers.run([command, "--store", data.url])
        assert done.returncode == 1 and says in done.stderr, done
    larder = fleet.new(servers.Larder, data=data)
    with pytest.raises(servers.StartError) as failed:
        larder.start()
    larder.process = None
    assert says in failed.value.log


# --- dumps


@pytest.mark.parametrize("title, kind, copies", [("PostgreSQL", "postgres", ["shop_copy", "shop_text"]), ("MariaDB", "mariadb", ["shop_copy"])])
def test_dumps(fleet, tmp_path, title, kind, copies):
    with databases.KINDS[kind]() as database:
        database.query("CREATE DATABASE shop")
        shell = Shell(tmp_path / "shell", database)
        larder = fleet.larder(data=named(database, "shop"))
        with larder.connect() as c:
            fill(c)
            expected = content(c)
            shell.follow(section(title).split("### ")[0])
        larder.stop()
        for name in copies:
            assert shown(fleet, named(database, name)) == expected


def test_a_schema_that_is_renamed(fleet):
    data = store.KINDS["postgres"](schema="kv")
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        fill(c)
        expected = content(c)
    larder.stop()
    data.query("ALTER SCHEMA kv RENAME TO other")
    data.url = data.server.url(data.name, schema="other")
    done = servers.run(["migrate", "--store", data.url])
    assert done.stdout == "schema version 4, its views and functions were made again\n", done
    data.query("SELECT other.larder_del('gone')")
    assert shown(fleet, data) == expected


# --- back to a moment


class Recovered(databases.Postgres):
    """A server whose data folder is a base backup, with what the page says added to it."""

    def __init__(self, base, more):
        super().__init__()
        self.base, self.more = base, more

    def create(self):
        shutil.copytree(self.base, self.home)
        with open(self.home / "postgresql.auto.conf", "a") as f:
            f.write(self.more)
        (self.home / "recovery.signal").touch()
        os.chmod(self.home, 0o700)
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", self.user, str(self.home)], check=True)


def test_postgres_back_to_a_moment(fleet, tmp_path):
    steps = section("Back to a moment", section("PostgreSQL"))
    archiving, recovering = blocks(steps, "ini")
    place = pathlib.Path(tempfile.mkdtemp(prefix="larder-backup-"))
    try:
        os.chmod(place, 0o777)
        (place / "wal").mkdir()
        os.chmod(place / "wal", 0o777)
        settings = dict(re.findall(r"^(\w+) = '?(.*?)'?$", archiving.replace("/backup", str(place)), re.M))
        assert settings["archive_mode"] == "on"
        with databases.Postgres(settings=settings) as database:
            database.query("CREATE DATABASE shop")
            larder = fleet.larder(data=named(database, "shop"))
            with larder.connect() as c:
                c("SET", "in the base", "1")
                shell = Shell(tmp_path / "shell", database)
                shell.follow(steps.replace("/backup", str(place)))
                fill(c)
                expected = content(c)
                ((moment,),) = database.query("SELECT clock_timestamp()")
                c("FLUSHALL")
                c("SET", "after", "the mistake")
            larder.stop()
            ((last,),) = database.query("SELECT pg_walfile_name(pg_switch_wal())")
            wait.until(lambda: (place / "wal" / last).exists(), "the log is in the archive")
            wait.until(lambda: database.query("SELECT last_archived_wal FROM pg_stat_archiver")[0][0] >= last, "as a whole")
        more = recovering.replace("/backup", str(place)).replace("2026-11-15 12:00:00+00", moment)
        assert moment in more
        with Recovered(place / "base", more) as again:
            wait.until(lambda: again.query("SELECT pg_is_in_recovery()") == [["f"]], "it has been promoted")
            assert servers.run(["check", "--store", again.url("shop")]).returncode == 0
            assert shown(fleet, named(again, "shop")) == expected
    finally:
        shutil.rmtree(place)


def test_mariadb_back_to_a_moment(fleet, tmp_path):
    steps = section("Back to a moment", section("MariaDB"))
    (replay,) = blocks(steps, "sh")
    settings = {"log-bin": "binlog", "binlog-format": "ROW", "log-bin-trust-function-creators": 1, "server-id": 1}
    with databases.MariaDB(settings=settings) as database, databases.MariaDB() as empty:
        database.query("CREATE DATABASE shop")
        shell, other = Shell(tmp_path / "shell", database), Shell(tmp_path / "other", empty)
        larder = fleet.larder(data=named(database, "shop"))
        with larder.connect() as c:
            c("SET", "in the base", "1")
            shell.follow(steps)
            fill(c)
            expected = content(c)
        # The clock of the log has seconds: the mistake is made an hour later by it.
        database.query("SET timestamp = unix_timestamp() + 3600; CALL larder_del('list'); CALL larder_set('after', 'the mistake', NULL);", "shop")
        larder.stop()
        found = re.search(r"MASTER_LOG_FILE='(.*?)', MASTER_LOG_POS=(\d+);", shell('grep -m 1 "CHANGE MASTER" base.sql'))
        logs = sorted(str(p) for p in database.home.glob("binlog.0*") if p.name >= found[1])
        ((moment,),) = database.query("SELECT DATE_FORMAT(UTC_TIMESTAMP() + INTERVAL 1800 SECOND, '%Y-%m-%d %H:%i:%s')")
        command = replay.replace("4711", found[2]).replace("2026-11-15 12:00:00", moment)
        command = command.replace("binlog.000001 binlog.000002", " ".join(logs))
        assert moment in command and found[2] in command and logs[0] in command
        shutil.copy(shell.folder / "base.sql", other.folder)
        other("set -e\n" + command)
        assert servers.run(["check", "--store", empty.url("shop")]).returncode == 0
        assert shown(fleet, named(empty, "shop")) == expected
