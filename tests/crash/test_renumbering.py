"""SIGKILL while numbers with many holes are made fewer, at every call that the server makes to change its files, with two
clients that write to the same set meanwhile."""

import pathlib
import random
import shutil
import signal
import tempfile
import threading

import pytest

from crash import power
from crash.scenario import DIRECT, HURRIED
from crash.test_kill import LIMIT, STEP
from harness import wait
from harness.resp import Closed

pytestmark = pytest.mark.sqlite

ALL, LEFT = 5000, 1100  # members; fewer than a quarter of the numbers are taken then, and memory does not keep them whole
STEADY = [b"steady:%d" % i for i in range(LEFT)]
EAGER = ["--sweep-interval", "5ms", "--sweep-pause", "0"]
STRIDE = 8 * STEP if STEP > 1 else 1  # calls from one kill to the next
MOVED = 600  # items that are moved at least, of the thousand


class Writer:
    """Adds members of its own and removes them again."""

    def __init__(self, name):
        self.name = name
        self.there = set()
        self.doubtful = set()
        self.added = 0

    def one(self, connection):
        gone = self.added % 3 == 2
        member = next(iter(self.there)) if gone else b"%s:%d" % (self.name, self.added)
        self.added += 1
        self.doubtful = {member}
        assert connection("SREM" if gone else "SADD", "s", member) == 1
        (self.there.discard if gone else self.there.add)(member)
        self.doubtful = set()
        assert connection("SRANDMEMBER", "s")

    def run(self, connection, enough):
        try:
            while not enough.is_set():
                self.one(connection)
        except (Closed, OSError):
            pass


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A set with many holes, that nobody has made fewer yet."""
    folder = tmp_path_factory.mktemp("sparse")
    with power.Server(folder, ["--sweep", "no"]) as server, server.must_connect() as connection:
        members = [*STEADY, *(b"fleeting:%d" % i for i in range(ALL - LEFT))]
        random.Random(1).shuffle(members)
        for i in range(0, ALL, 500):
            connection("SADD", "s", *members[i : i + 500])
        connection("SREM", "s", *(m for m in members if m.startswith(b"fleeting")))
        server.stop()
    return folder


def renumbered(connection):
    return int(connection("INFO", "larder").split(b"renumbered_items:")[1].split(b"\r")[0])


def serve(folder, call, options, half):
    """A server that is killed at that call, if it gets so far before the holes have become few; its exit code."""
    writers = [Writer(b"one"), Writer(b"two")]
    enough = threading.Event()
    env = power.recorded(folder, CRASH_KILL_AT=call, **half)
    with power.Server(folder, [*EAGER, *options], env) as server:
        connections = [server.connect() for _ in range(3)]
        if all(connections):
            threads = [threading.Thread(target=w.run, args=(c, enough)) for w, c in zip(writers, connections)]
            for thread in threads:
                thread.start()
            try:
                wait.until(lambda: renumbered(connections[2]) >= MOVED, "items are moved")
            except (Closed, OSError):
                pass
            enough.set()
            for thread in threads:
                thread.join()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(60)
        assert code in (0, -signal.SIGKILL), f"the server ended with {code}: {server.text()}"
    return code, writers


def verify(folder, writers):
    doubtful = set().union(*(w.doubtful for w in writers))
    expected = set(STEADY).union(*(w.there for w in writers)) - doubtful
    with power.Server(folder) as server, server.must_connect() as connection:
        found = set(connection("SMEMBERS", "s"))
        assert found - doubtful == expected
        assert connection("SCARD", "s") == len(found)
        scanned, cursor = set(), b"0"
        while True:
            cursor, page = connection("SSCAN", "s", cursor, "COUNT", 300)
            scanned.update(page)
            if cursor == b"0":
                break
        assert scanned == found
        drawn = connection("SRANDMEMBER", "s", 50)
        assert len(set(drawn)) == 50 and set(drawn) <= found
        server.stop()
    power.check(folder)


@pytest.mark.parametrize("half", [{}, {"CRASH_KILL_HALF": 1}], ids=["before a call", "within a write"])
@pytest.mark.parametrize("options", [[], HURRIED, DIRECT], ids=["default", "hurried", "direct"])
def test_kill_while_renumbering(base, options, half):
    kills = 0
    for call in range(random.randint(1, min(STRIDE, 20)), LIMIT, STRIDE):  # the first one is certain to come
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kill-", dir=power.STATES))
        try:
            shutil.copytree(base, folder, dirs_exist_ok=True)
            code, writers = serve(folder, call, options, half)
            verify(folder, writers)
        except BaseException as e:
            raise AssertionError(f"killed at call {call}: {e}") from e
        finally:
            shutil.rmtree(folder)
        if code == 0:
            break
        kills += 1
    else:
        raise AssertionError("a server that never ends")
    assert kills, "a server was killed"
