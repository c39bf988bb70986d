"""SIGKILL at every single call that a server makes to change its files: in the middle of a commit, of a checkpoint, of
its start and of its end, and again and again while the next one recovers."""

import concurrent.futures
import copy
import os
import pathlib
import random
import shutil
import signal
import tempfile

import pytest

from crash import changes, power
from crash.scenario import DIRECT, HURRIED, WHOLE

pytestmark = pytest.mark.sqlite

WRITERS = 2
EACH = 8  # change sets
# Which of the calls of a run are tried: one in so many.
STEP = int(os.environ.get("LARDER_CRASH_KILL_STEP", 7))
LIMIT = 20_000  # calls of a run
SWEEP = ["--sweep-interval", "5ms"]


def serve(folder, writers, end, options=(), **environment):
    """A server that serves the writers and is ended by a signal, or was killed before; its exit code."""
    with power.Server(folder, [*SWEEP, *options], power.recorded(folder, **environment)) as server:
        connections = [server.connect() for _ in writers]
        if all(connections):
            changes.join_all(changes.run_all(writers, connections, EACH), writers)
        server.process.send_signal(end)
        code = server.process.wait(60)
        assert code in (0, -signal.SIGKILL), f"the server ended with {code}: {server.text()}"
        return code


def verify(folder, writers):
    for writer in writers:
        writer.freeze()
    with power.Server(folder) as server, server.must_connect() as connection:
        changes.verify(connection, writers, 0)
        server.stop()
    power.check(folder)


def kill_at(call, options, half, base, writers):
    """Kills a server at that call, and verifies what is left; False when it came to its end before."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kill-", dir=power.STATES))
    try:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        writers = copy.deepcopy(writers)
        code = serve(folder, writers, signal.SIGTERM, options, CRASH_KILL_AT=call, **half)
        verify(folder, writers)
        return code != 0
    except BaseException as e:
        raise AssertionError(f"killed at call {call}: {e}") from e
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["new", "crashed"])
def base(request, tmp_path):
    """A folder that a server starts on, and its writers: empty, or as a killed server has left it."""
    folder = tmp_path / "base"
    folder.mkdir()
    writers = [changes.Writer(i, 1 + i, lambda: 0) for i in range(WRITERS)]
    if request.param == "crashed":
        serve(folder, writers, signal.SIGKILL)
    return folder, writers


@pytest.mark.parametrize("half", [{}, {"CRASH_KILL_HALF": 1}], ids=["before a call", "within a write"])
@pytest.mark.parametrize("options", [[], HURRIED, WHOLE, DIRECT], ids=["default", "hurried", "whole", "direct"])
def test_kill_at_every_call(base, options, half):
    first = random.randint(1, STEP)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for call in range(first, LIMIT, 2 * STEP):
            killed = [pool.submit(kill_at, at, options, half, *base) for at in (call, call + STEP)]
            if not all([k.result() for k in killed]):
                break
        else:
            raise AssertionError("a server that never ends")
    assert call > 50, "a run has more calls than that"


def test_kill_while_recovering_from_the_last_kill(tmp_path):
    """The same files, again and again: each start gets a little further than the one before."""
    writers = [changes.Writer(i, 1 + i, lambda: 0) for i in range(WRITERS)]
    folder = tmp_path / "data"
    folder.mkdir()
    replayed = kills = 0
    for _ in range(3):
        serve(folder, writers, signal.SIGKILL)
        for call in range(1, LIMIT):
            with power.Server(folder, SWEEP, power.recorded(folder, CRASH_KILL_AT=call)) as server:
                connection = server.connect()
                kills += connection is None
                replayed += "read the log" in server.text()
                if connection:
                    connection.close()
                    break
        verify(folder, writers)
    assert replayed and kills > 20, "there was a log to read, and who read it was killed"
