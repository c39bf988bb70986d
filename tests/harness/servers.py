"""Real servers on loopback: redis-server as the oracle and larder under test. LARDER_TEST_OPTIONS has options for every
larder, which a test's own override.

Each runs in a folder of its own on a free port, is ended by its process id, and must end well: exit code 0 and
no sanitizer report in its log.
"""

import ctypes
import os
import pathlib
import re
import resource
import shlex
import signal
import socket
import subprocess
import time

from . import store, wait
from .resp import Connection

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = shlex.split(os.environ.get("LARDER_TEST_OPTIONS", ""))
BINARY = pathlib.Path(os.environ.get("LARDER_BINARY", ROOT / "build" / "dev" / "larder")).absolute()

SANITIZER_REPORT = re.compile(
    rb"ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|: runtime error: |SUMMARY: \w+Sanitizer"
)
IN_USE = re.compile(rb"address already in use", re.IGNORECASE)
START_LIMIT = 60.0
STOP_LIMIT = 120.0

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def sockets_of(pid):
    found = set()
    try:
        for fd in os.scandir(f"/proc/{pid}/fd"):
            try:
                found.add(os.readlink(fd.path))
            except OSError:
                pass
    except OSError:
        pass
    return {name for name in found if name.startswith("socket:")}


def owns_port(pid, port):
    """True when the process itself listens on the port (another's server may have been quicker)."""
    sockets = sockets_of(pid)
    for table in ("tcp", "tcp6") if sockets else ():  # the kernel takes long for these
        try:
            lines = pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port and f"socket:[{fields[9]}]" in sockets:
                return True
    return False


class StartError(AssertionError):
    """The server ended before it listened."""

    def __init__(self, server, code):
        self.code = code
        self.log = server.log_text()
        super().__init__(f"{server.name} ended with {code} before it listened:\n{self.log[-4000:]}")


class Server:
    """A server process. Subclasses say how it is started."""

    name = "server"
    live = []  # every server that has been started and not been ended, for logs on failure

    def __init__(self, folder, options=(), *, limits=(), env=None, user=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.options = list(options)
        self.limits = list(limits)
        self.env = env or {}
        self.user = user
        self.port = None
        self.process = None
        self.log_path = self.folder / f"{self.name}.log"

    def argv(self):
        raise NotImplementedError

    # --- starting

    def start(self):
        """Starts it and returns when it accepts connections. A restart keeps the port."""
        fixed = self.port is not None
        for _ in range(20):
            if not fixed:
                self.port = free_port()
            log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
            self._spawn()
            try:
                wait.until(self._listening_or_ended, f"{self.name} listens on {self.port}", START_LIMIT)
            except AssertionError:
                self.kill()
                raise
            if self.process.poll() is None:
                return self
            code = self.process.returncode
            Server.live.remove(self)
            if not IN_USE.search(self.log_path.read_bytes()[log_start:]):
                raise StartError(self, code)
            time.sleep(0.1 if fixed else 0)
        raise StartError(self, code)

    def _spawn(self):
        def prepare():
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for which, values in self.limits:
                resource.setrlimit(which, values)

        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.argv(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={k: v for k, v in {**clean_environment(), **self.env}.items() if v is not None},
                preexec_fn=prepare,
                user=self.user,
            )
        Server.live.append(self)

    def _listening_or_ended(self):
        return self.process.poll() is not None or owns_port(self.process.pid, self.port)

    # --- talking

    @property
    def pid(self):
        return self.process.pid

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def connect(self, **options):
        return Connection(self.address, **options)

    def log_text(self):
        return self.log_path.read_text(errors="backslashreplace") if self.log_path.exists() else ""

    # --- ending

    def stop(self, signo=signal.SIGTERM):
        """Asks it to end and checks that it does so well."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signo)
        self.wait_ended()

    def wait_ended(self):
        """Waits for an end that somebody asked for, and checks that it was a good one."""
        try:
            code = self.process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end within {STOP_LIMIT:g} s") from None
        self._ended()
        self.check_log()
        assert code == 0, f"{self.name} ended with {code}:\n{self.log_text()[-4000:]}"

    def kill(self):
        """SIGKILL, as a crash."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self._ended()

    def _ended(self):
        self.process = None
        if self in Server.live:
            Server.live.remove(self)

    def check_log(self):
        text = self.log_path.read_bytes()
        found = SANITIZER_REPORT.search(text)
        assert not found, f"sanitizer report of {self.name}:\n" + text[max(0, found.start() - 500) :][:8000].decode(
            errors="backslashreplace"
        )

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        else:
            self.kill()


class Redis(Server):
    """The oracle: redis-server, nothing on disk."""

    name = "redis"

    def argv(self):
        return [
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
            "--loglevel", "warning", "--save", "", "--appendonly", "no", "--enable-debug-command", "yes", *self.options,
        ]  # fmt: skip


class Larder(Server):
    """The server under test."""

    name = "larder"

    def __init__(self, folder, options=(), *, data=None, binary=None, **more):
        super().__init__(folder, options, **more)
        self.store = data or store.new(self.folder)
        self.binary = binary or BINARY

    def argv(self):
        return [
            str(self.binary), "serve", "--port", str(self.port), "--store", self.store.url,
            "--enable-debug-command", "yes", *OPTIONS, *self.options,
        ]  # fmt: skip

    def check(self):
        """`larder check` on its data; the server must not be running."""
        done = run(["check", "--store", self.store.url], binary=self.binary)
        assert done.returncode == 0, f"larder check: {done.returncode}\n{done.stdout}{done.stderr}"


def clean_environment():
    """The environment without options for larder, so that only a test's own count. No server opens the usual HTTP port,
    which is one for the whole machine."""
    return {k: v for k, v in os.environ.items() if not k.startswith("LARDER_")} | {"LARDER_HTTP_PORT": "0"}


def run(args, *, binary=None, env=None, cwd=None, timeout=120):
    """Runs larder to its end with these arguments."""
    return subprocess.run(
        [str(binary or BINARY), *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        env={**clean_environment(), **(env or {})},
        cwd=cwd,
        timeout=timeout,
    )
