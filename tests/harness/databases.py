#!/usr/bin/python3
"""PostgreSQL and MariaDB for the tests: real servers in temporary folders, on a socket of their own and a free port of
127.0.0.1, run by a user that is not root and ended by their process id.

As a program it runs a command beside a server, and tells it where: LARDER_TEST_STORE, LARDER_TEST_URL.

    databases.py postgres|mariadb [--durable] COMMAND...
"""

import concurrent.futures
import contextlib
import ctypes
import itertools
import os
import pathlib
import pwd
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import newer_postgres, wait  # noqa: E402

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
START_LIMIT = 60.0
STOP_LIMIT = 60.0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def end_with_us():
    """For a new process: the kernel ends it when the tests do (in truth when the thread ends that started it)."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Starter:
    """A thread that stays until the tests end, and starts what must not end with any other thread."""

    def __init__(self):
        self.work = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            future, function = self.work.get()
            try:
                future.set_result(function())
            except BaseException as e:  # noqa: BLE001
                future.set_exception(e)

    def __call__(self, function):
        future = concurrent.futures.Future()
        self.work.put((future, function))
        return future.result()


starter = Starter()


def unprivileged(*names):
    """The user that runs a server: ourselves, or the first of these when we are root."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid()).pw_name
    for name in names:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise RuntimeError(f"a database server needs one of the users {', '.join(names)}")


class Database:
    """A database server. Subclasses say how it is made, started and asked."""

    kind = "database"
    users = ("nobody",)
    names = itertools.count(1)  # of all servers: a copy of one has its databases

    def __init__(self, durable=False, settings=None):
        """`settings` are more of those that its configuration file has."""
        self.durable = durable
        self.settings = settings or {}
        self.env = {}  # of the server alone
        self.user = unprivileged(*self.users)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"larder-{self.kind}-"))
        os.chmod(self.folder, 0o755)
        self.home = self.folder / "data"
        self.log_path = self.folder / "server.log"
        self.port = None
        self.process = None
        if os.getuid() == 0:
            shutil.chown(self.folder, self.user)

    def run(self, *argv, **more):
        """Runs one of the server's own programs as its user."""
        done = subprocess.run(
            argv, capture_output=True, text=True, cwd=self.folder, timeout=120, stdin=subprocess.DEVNULL,
            user=self.user if os.getuid() == 0 else None, env=self.environment(), **more,
        )  # fmt: skip
        assert done.returncode == 0, f"{argv[0]}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    @staticmethod
    def environment():
        mine = {k: v for k, v in os.environ.items() if not k.startswith(("LARDER_", "PG", "MYSQL_"))}
        return {**mine, "LC_ALL": "C", "HOME": "/nonexistent"}

    # --- starting and ending

    def start(self):
        if not self.home.exists():
            self.create()
        for _ in range(5):
            self.port = self.port or free_port()
            self.spawn()
            wait.until(lambda: self.process.poll() is not None or self.answers(), f"{self.kind} answers", START_LIMIT)
            if self.process.poll() is None:
                return self
            time.sleep(0.2)
        raise AssertionError(f"{self.kind} does not start:\n{self.log_path.read_text(errors='replace')[-3000:]}")

    def spawn(self):
        with open(self.log_path, "ab") as log:
            self.process = starter(lambda: subprocess.Popen(
                self.argv(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**self.environment(), **self.env}, preexec_fn=end_with_us, user=self.user if os.getuid() == 0 else None,
                start_new_session=True,
            ))  # fmt: skip

    def stop(self, signo=None):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signo or self.stop_signal)
            try:
                self.process.wait(STOP_LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def kill(self):
        """As a crash: nothing is written any more."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop_at_once(self):
        """Its own way to end without cleaning up, where it has one."""
        self.stop(self.abort_signal)

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    def give(self, source, name):
        """A copy of a file that only the server may read."""
        target = self.folder / name
        shutil.copyfile(source, target)
        target.chmod(0o600)
        if os.getuid() == 0:
            shutil.chown(target, self.user)
        return str(target)

    def new_name(self):
        return f"test{os.getpid()}_{next(self.names)}"

    @contextlib.contextmanager
    def during(self, sql, name):
        """What a session has begun with these statements (a lock, say) lasts as long as this."""
        session = subprocess.Popen(
            self.client(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment(), cwd="/",
        )  # fmt: skip
        try:
            session.stdin.write(f"{sql}; SELECT 'begun';\n".encode())
            session.stdin.flush()
            assert b"begun" in session.stdout.readline()
            yield
        finally:
            session.kill()
            session.wait()
            session.stdin.close()
            session.stdout.close()


class Postgres(Database):
    kind = "postgres"
    users = ("postgres", "nobody")
    stop_signal = signal.SIGINT  # fast shutdown
    abort_signal = signal.SIGQUIT  # immediate shutdown
    tools = "/usr/lib/postgresql/15/bin"

    @property
    def programs(self):
        """Where the server's own are: Debian's, or those of a newer one."""
        return newer_postgres.programs() if os.environ.get("LARDER_TEST_POSTGRES") == "18" else self.tools

    def create(self):
        self.run(
            f"{self.programs}/initdb", "-D", str(self.home), "-U", "larder", "-A", "trust", "-E", "UTF8",
            "--locale=C.UTF-8", "--no-sync",
        )  # fmt: skip

    def argv(self):
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder,
            "fsync": "on" if self.durable else "off", "max_connections": 200, "shared_buffers": "64MB",
            "max_wal_size": "2GB", "logging_collector": "off", "log_min_messages": "warning",
            "log_checkpoints": "off", "autovacuum_naptime": "5s", **self.settings,
        }  # fmt: skip
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        return [f"{self.programs}/postgres", "-D", str(self.home), *flags]

    def answers(self):
        ready = [f"{self.tools}/pg_isready", "-q", "-h", str(self.folder), "-p", str(self.port), "-U", "larder"]
        return subprocess.run(ready, env=self.environment(), cwd="/").returncode == 0

    def url(self, name="postgres", *, user="larder", tcp=False, **options):
        host = "127.0.0.1" if tcp else urllib.parse.quote(str(self.folder), safe="")
        more = "?" + urllib.parse.urlencode(options) if options else ""
        return f"postgres://{user}@{host}:{self.port}/{name}{more}"

    def client(self, name, user="larder"):
        return ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-p", str(self.port),
                "-U", user, "-d", name, "-f", "-"]  # fmt: skip

    def query(self, sql, name="postgres", *, user="larder", timeout=60):
        """Runs statements on a connection of their own: rows as lists of texts, NULL as None."""
        done = subprocess.run(
            [*self.client(name, user), "-F", "\x1f", "-R", "\x1e", "-P", "null=\x1d"],
            input=sql.encode(), capture_output=True, env=self.environment(), cwd="/", timeout=timeout,
        )  # fmt: skip
        return answer(done, sql)

    def session(self, name):
        argv = ["psql", "-X", "-q", "-A", "-t", "-h", str(self.folder), "-p", str(self.port), "-U", "larder", "-d", name]
        return SqlSession(argv, self.environment(), f"\\echo '{SqlSession.END}'")

    def new_database(self):
        name = self.new_name()
        self.query(f"CREATE DATABASE {name} STRATEGY file_copy")
        return name

    def drop_database(self, name):
        self.query(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def keep_log(self):
        """From now on its log is written by commits that somebody waits for, and by nobody else: what comes behind
        the last of them is lost in a crash (lose_log)."""
        ((pid,),) = self.query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        self.log_writer = int(pid)
        while True:
            os.kill(self.log_writer, signal.SIGSTOP)
            with contextlib.suppress(subprocess.TimeoutExpired):
                if self.query(f"SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}", timeout=5) == [["WalWriterMain"]]:
                    return  # it sleeps, and holds no lock that anybody will want
            os.kill(self.log_writer, signal.SIGCONT)

    def lose_log(self):
        """An immediate shutdown, after keep_log."""
        self.process.send_signal(self.abort_signal)
        os.kill(self.log_writer, signal.SIGKILL)
        self.process.wait(STOP_LIMIT)
        self.process = None

    def end_sessions(self):
        """All but the one that says so."""
        self.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


class MariaDB(Database):
    kind = "mariadb"
    users = ("mysql", "nobody")
    stop_signal = signal.SIGTERM
    abort_signal = signal.SIGKILL

    def create(self):
        self.home.mkdir()
        if os.getuid() == 0:
            shutil.chown(self.home, self.user)
        self.run(
            "mariadb-install-db", "--no-defaults", f"--datadir={self.home}", "--skip-test-db",
            "--auth-root-authentication-method=normal", "--innodb-log-file-size=64M", self.temporary,
        )  # fmt: skip

    @property
    def socket(self):
        return self.folder / "sock"

    @property
    def temporary(self):
        """A folder of its own: a server that starts removes what it takes for leftovers there, which may be another's."""
        return f"--tmpdir={self.folder}"

    def argv(self):
        return [
            "mariadbd", "--no-defaults", f"--datadir={self.home}", f"--socket={self.socket}", f"--port={self.port}",
            "--bind-address=127.0.0.1", f"--pid-file={self.folder}/pid", "--skip-name-resolve", self.temporary,
            f"--innodb-flush-log-at-trx-commit={1 if self.durable else 2}", "--innodb-log-file-size=64M",
            "--innodb-buffer-pool-size=128M", "--max-allowed-packet=1G", "--max-connections=300",
            "--performance-schema=OFF", f"--innodb-flush-method={'fsync' if self.durable else 'nosync'}",
            f"--debug-no-sync={0 if self.durable else 1}",  # of files beside InnoDB's: each CREATE has several
            *(f"--{name}={value}" for name, value in self.settings.items()),
        ]  # fmt: skip

    def answers(self):
        ping = ["mariadb-admin", "--no-defaults", f"--socket={self.socket}", "-u", "root", "--silent", "ping"]
        return subprocess.run(ping, env=self.environment(), cwd="/", capture_output=True).returncode == 0

    def url(self, name="mysql", *, user="root", tcp=False, **options):
        if not tcp:
            options = {"socket": str(self.socket), **options}
        more = "?" + urllib.parse.urlencode(options) if options else ""
        return f"mysql://{user}@{'127.0.0.1' if tcp else 'localhost'}:{self.port}/{name}{more}"

    def client(self, name, user="root"):
        return ["mariadb", "--no-defaults", f"--socket={self.socket}", "-u", user, "-D", name, "-N", "-B", "-n",
                "--binary-mode", "--default-character-set=utf8mb4"]  # fmt: skip

    def query(self, sql, name="mysql", *, user="root", timeout=60):
        done = subprocess.run(
            self.client(name, user), input=sql.encode(), capture_output=True, env=self.environment(), cwd="/",
            timeout=timeout,
        )  # fmt: skip
        if done.returncode != 0:
            raise QueryError(done.stderr.decode(errors="replace"), sql)
        lines = done.stdout.decode(errors="surrogateescape").splitlines()
        return [[None if v == "NULL" else v for v in line.split("\t")] for line in lines]

    def session(self, name):
        argv = ["mariadb", "--no-defaults", f"--socket={self.socket}", "-u", "root", "-D", name, "-N", "-B", "-n", "--force"]
        return SqlSession(argv, self.environment(), f"SELECT '{SqlSession.END}';")

    def keep_log(self):
        """Its own settings say when it is written (innodb_flush_log_at_trx_commit)."""

    def lose_log(self):
        self.kill()

    def new_database(self):
        name = self.new_name()
        self.query(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name):
        self.query(f"DROP DATABASE IF EXISTS {name}")

    def end_sessions(self):
        for (number,) in self.query(
            "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND command <> 'Daemon'"
            " AND command NOT LIKE 'Slave%' AND command NOT LIKE 'Binlog%'"
        ):
            with contextlib.suppress(QueryError):  # it may have ended meanwhile
                self.query(f"KILL CONNECTION {number}")


class SqlSession:
    """A client that stays connected, so that a transaction can be left open: the database's own command line."""

    END = "\x04 that was all"

    def __init__(self, argv, env, end):
        self.end = end
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd="/", text=True
        )

    def __call__(self, sql):
        """Runs statements; their output, line by line."""
        self.process.stdin.write(f"{sql};\n{self.end}\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()).rstrip("\n") != self.END:
            assert line, f"the session ended: {lines}"
            lines.append(line.rstrip("\n"))
        failed = [line for line in lines if line.startswith("ERROR")]
        if failed:
            raise QueryError(failed[0], sql)
        return lines

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class QueryError(AssertionError):
    """The database refused a statement."""

    def __init__(self, text, sql):
        self.text = text
        super().__init__(f"{text.strip()}\n{sql[:2000]}")


def answer(done, sql):
    if done.returncode != 0:
        raise QueryError(done.stderr.decode(errors="replace"), sql)
    text = done.stdout.decode(errors="surrogateescape")
    rows = text.removesuffix("\n").split("\x1e") if text else []
    return [[None if v == "\x1d" else v for v in row.split("\x1f")] for row in rows]


KINDS = {"postgres": Postgres, "mariadb": MariaDB}


def main(argv):
    if len(argv) < 2 or argv[0] not in KINDS:
        print(__doc__, file=sys.stderr)
        return 2
    durable = argv[1] == "--durable"
    command = argv[1 + durable :]
    with KINDS[argv[0]](durable) as database:
        url = database.url(database.new_database())
        more = {"LARDER_TEST_STORE": argv[0], "LARDER_TEST_URL": url}
        return subprocess.run(command, env={**os.environ, **more}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
