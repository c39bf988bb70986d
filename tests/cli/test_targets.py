"""What README, CONTRIBUTING and the Makefile tell people to type works in a clean clone, and every file that is a program
can be run. A target or a command that is not in the lists below fails here, so that each is run once.

The builds are real; what takes long is given little to do.
"""

import os
import re
import shlex
import signal
import subprocess

import pytest

from harness import servers, wait
from harness.databases import free_port
from harness.resp import Connection

ROOT = servers.ROOT
LIMIT = 600


def git(*args, cwd=ROOT):
    return subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True, timeout=60).stdout


def test_programs_can_be_run():
    """Every file that begins with #! has its run bit, in the repository and here."""
    wrong = []
    for line in git("ls-files", "--stage").splitlines():
        mode, path = line.split()[0], line.split("\t")[1]
        if (ROOT / path).is_file() and (ROOT / path).read_bytes()[:2] == b"#!":
            if mode != "100755" or not os.access(ROOT / path, os.X_OK):
                wrong.append(path)
    assert not wrong, f"git update-index --chmod=+x {' '.join(wrong)}; chmod +x {' '.join(wrong)}"


# --- the clone


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What is committed, and what is not of the files that are known to git."""
    folder = tmp_path_factory.mktemp("clone") / "larder"
    state = git("stash", "create").strip() or git("rev-parse", "HEAD").strip()
    git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(folder))
    git("checkout", "--quiet", state, cwd=folder)
    return folder


def environment(**more):
    """Of a person at a terminal: nothing that these tests or another make have set."""
    mine = {k: v for k, v in servers.clean_environment().items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTEST_CURRENT_TEST")}
    return {**mine, **more}


def run(clone, command, **more):
    """A command as in a terminal; what it prints."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=clone, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT,
        env=environment(**more), errors="backslashreplace",
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


# --- README's blocks, in their order, on the server that `make run` builds and starts


def blocks(page):
    return re.findall(r"^```console\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)


def commands(block):
    """(command, what it prints) of each: a command goes on until its quotes are closed."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found[-1][0].count('"') % 2:
            found[-1][0] += "\n" + line
        else:
            found[-1][1].append(line)
    return found


class Terminal:
    """Runs blocks with a server on ports of its own, which is the only difference from what is written."""

    def __init__(self, clone):
        self.clone = clone
        self.port, self.http = free_port(), free_port()
        self.options = f"--port {self.port} --http-port {self.http}"
        self.started = []

    def start(self, command, limit=LIMIT):
        with open(self.clone / "terminal.log", "ab") as log:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.clone, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=environment(), start_new_session=True,
            )  # fmt: skip
        self.started.append(process)

        def ready():
            assert process.poll() is None, (self.clone / "terminal.log").read_text()[-3000:]
            try:
                with Connection(("127.0.0.1", self.port)) as c:
                    return c("PING") == b"PONG"
            except OSError:
                return False

        wait.until(ready, command, limit, 0.05)

    def server(self):
        """The process that listens: the last that was started, or its child."""
        pid = self.started[-1].pid
        tree = [pid, *(int(p) for p in subprocess.run(["pgrep", "-s", str(pid)], capture_output=True, text=True).stdout.split())]
        binary = str(self.clone / "build/release/larder")  # the kernel's list of ports is no snapshot: while others connect, it may lack one
        (found,) = {p for p in tree if os.readlink(f"/proc/{p}/exe") == binary}
        return found

    def session(self, block):
        lines = block.splitlines()[1:]
        typed = [line.split("> ", 1)[1] for line in lines if re.match(r"127\.0\.0\.1:6379(\(TX\))?> ", line)]
        shown = [line for line in lines if not line.startswith("127.0.0.1:6379")]
        done = subprocess.run(
            ["redis-cli", "--no-raw", "-p", str(self.port)], input="\n".join(typed) + "\n", capture_output=True, text=True, timeout=60
        )
        assert done.stdout.splitlines() == shown

    def command(self, text, shown):
        if text.startswith("make run"):
            self.start(f'make run ARGS="{self.options}"')
        elif text == "kill -9 $(pidof larder)":
            os.kill(self.server(), signal.SIGKILL)
            self.started[-1].wait(60)
        elif text == "build/release/larder &":
            self.start(f"build/release/larder {self.options}", 60)
        else:
            text = re.sub(r"\bredis-cli\b", f"redis-cli --no-raw -p {self.port}", text)
            text = re.sub(r"\blocalhost:\d+", f"localhost:{self.http}", text)
            text = re.sub(r"^curl ", "curl -sS ", text)
            text = re.sub(r"^build/release/larder sql ", f"build/release/larder sql --port {self.port} ", text)
            assert run(self.clone, text).splitlines() == shown

    def end(self):
        """The last server ends as it does at a person's Ctrl-C; of others nothing is left."""
        os.kill(self.server(), signal.SIGTERM)
        assert self.started[-1].wait(60) == 0

    def close(self):
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.mark.slow
def test_the_readme(clone):
    terminal = Terminal(clone)
    try:
        for block in blocks("README.md"):
            if block.startswith("$ redis-cli\n"):
                terminal.session(block)
                continue
            for text, shown in commands(block):
                terminal.command(text, shown)
        terminal.end()
    finally:
        terminal.close()
    assert git("status", "--porcelain", cwd=clone) == "?? terminal.log\n"
    (clone / "terminal.log").unlink()


# --- the Makefile: each target, and how it is called here. The server is built already, by `make run`.

ONE_TEST = 'PYTEST_ADDOPTS=\'-k "{}"\''
TARGETS = {
    "help": "make",
    "run": None,  # README's first block
    "build": "make build",
    "check": f"{ONE_TEST.format('test_directions_of_includes')} CTEST_OPTIONS='-R base_test' make check",
    "test": "make test STEPS=lint",
    "torture": 'make torture ARGS="--kills 1 --only sqlite/default --clients 2"',
    "crash-long": f"{ONE_TEST.format('test_save_and_stricter')} make crash-long POINTS=2 STEP=400",
    "numbers-long": "make numbers-long DRAWS=500",
    "databases-long": f"{ONE_TEST.format('test_a_push_is_acknowledged or test_tls_is_not_given_up')} make databases-long SECONDS=1",
    "consistency-long": f"{ONE_TEST.format('test_a_hung_replica and postgres')} make consistency-long SECONDS=1",
    "tables-long": f"{ONE_TEST.format('journal')} make tables-long OPERATIONS=100",
    "bench": 'make bench ARGS="--scale 0.001 --rounds 1 --only memory --only collections"',
    "bench-databases": 'make bench-databases ARGS="--scale 0.001 --only postgres"',
    "bench-servers": 'make bench-servers ARGS="--scale 0.001 --rounds 1 --replicas 1 --only postgres"',
    "soak": 'make soak ARGS="--seconds 2"',
    "count-instructions": 'make count-instructions ARGS="--only GET --commands 50"',
    "install": "make install DESTDIR=$PWD/build/root",
    "uninstall": "make uninstall DESTDIR=$PWD/build/root",
    "lint": 'make lint CHECKS="format includes docs"',  # tidy and cppcheck are steps of `make test`
    "format": "make format",
    "docs": "make docs",
    "clean": None,  # the last test
}


def targets():
    return re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)


def test_every_target_is_known():
    assert sorted(targets()) == sorted(TARGETS)
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split()
    assert sorted(phony) == sorted(TARGETS)
    assert re.findall(r"^  make (\S+)", run(ROOT, "make"), re.M) == targets()


@pytest.mark.slow
@pytest.mark.parametrize("target", [name for name, command in TARGETS.items() if command])
def test_a_target(clone, target):
    run(clone, TARGETS[target])
    assert git("status", "--porcelain", cwd=clone) == ""


@pytest.mark.slow
def test_what_is_installed(clone):
    root = clone / "build" / "installed"
    run(clone, f"make install DESTDIR={root} PREFIX=/opt/larder SYSCONFDIR=/opt/etc")
    assert run(clone, f"{root}/opt/larder/bin/larder --version") == run(clone, "build/release/larder --version")
    unit = (root / "opt/larder/lib/systemd/system/larder.service").read_text()
    assert "/opt/larder/bin/larder" in unit and "/usr/local" not in unit
    (root / "opt/etc/larder/larder.conf").write_text("port 7000\n")  # what somebody changed is kept
    run(clone, f"make install uninstall DESTDIR={root} PREFIX=/opt/larder SYSCONFDIR=/opt/etc")
    assert [p.name for p in root.rglob("*") if p.is_file()] == ["larder.conf"]
    assert (root / "opt/etc/larder/larder.conf").read_text() == "port 7000\n"


# --- CONTRIBUTING's blocks. What follows # in them is a comment.

CONTRIBUTING = {
    "scripts/install-packages test": None,  # as `make test`
    "make build": None,  # as a target
    "cmake --preset dev && cmake --build --preset dev": None,  # as `make check`
    "ctest --test-dir build/dev": "{} -R base_test",
    "tests/harness/databases.py postgres build/dev/tests/store_test": "{}",
    "scripts/lint format includes shape": "{}",
    "scripts/test unit-dev small-journal": None,  # as `make check`, which names steps
}
PYTEST = re.compile(r"pytest -c tests/pytest.ini tests/compat -k hash$")


def contributing():
    found = [text for block in blocks("CONTRIBUTING.md") for text, _ in commands(block)]
    return [re.sub(r"\s+# .*", "", text) for text in found]


def test_every_command_of_contributing_is_known():
    assert [text for text in contributing() if text not in CONTRIBUTING and not PYTEST.search(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text in contributing() if PYTEST.search(text) or CONTRIBUTING.get(text)])
def test_a_command_of_contributing(clone, text):
    if PYTEST.search(text):
        text = text.replace("-k hash", f"-k {shlex.quote('test_transcript and hash_read and resp2')}")
    else:
        text = CONTRIBUTING[text].format(text)
    run(clone, text)


@pytest.mark.slow
def test_clean(clone):
    run(clone, "make clean")
    assert not (clone / "build").exists()
