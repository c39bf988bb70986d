"""Celery, unchanged, with a worker process. Its broker needs lists, and a lock (which is a script) before it takes tasks of a
lost worker; remote control, events and its results in Redis are pub/sub."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
import redis
from harness import wait

pytest.importorskip("celery")

APP = """
import os
import celery
import redis

url = f"redis://127.0.0.1:{os.environ['TEST_PORT']}"
app = celery.Celery("app", broker=f"{url}/0", backend=os.environ["TEST_BACKEND"].replace("redis:", f"{url}/1"))
app.conf.worker_enable_remote_control = False
app.conf.broker_transport_options = {"visibility_timeout": 0.1}

@app.task
def add(a, b):
    return a + b

@app.task(bind=True, max_retries=2)
def fragile(self):
    if self.request.retries < 2:
        raise self.retry(exc=ValueError("broken"), countdown=0.01)
    return self.request.retries

@app.task
def broken():
    raise ValueError("broken")

@app.task(acks_late=True)
def hang_once():
    r = redis.Redis.from_url(f"{url}/2")
    if r.incr("runs") == 1:
        r.blpop("never", 600)
    return "done"
"""

PROGRAM = """
import json
from app import add, broken, fragile
from celery import chain, group

def failure(result):
    try:
        result.get(timeout=60)
    except ValueError as e:
        return str(e)

print(json.dumps([
    add.delay(1, 2).get(timeout=60),
    fragile.delay().get(timeout=60),
    failure(broken.delay()),
    add.apply_async((3, 4), countdown=0.1).get(timeout=60),
    chain(add.s(1, 2), add.s(4))().get(timeout=60),
    group(add.s(i, i) for i in range(20))().get(timeout=60),
]))
"""

# No fanout of any kind: that is pub/sub.
QUIET = ["--without-gossip", "--without-mingle", "--without-heartbeat"]


def environment(server, backend):
    return {**os.environ, "TEST_PORT": str(server.port), "TEST_BACKEND": backend}


@contextlib.contextmanager
def worker(server, folder, backend="rpc://", options=QUIET):
    (folder / "app.py").write_text(APP)
    with open(folder / "worker.log", "a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "app", "worker", "-P", "solo", "-l", "INFO", *options],
            cwd=folder,
            env=environment(server, backend),
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def run(server, folder, program, backend="rpc://"):
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(server, backend),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-4000:] + (folder / "worker.log").read_text()[-4000:]
    return done.stdout


def test_tasks(server, tmp_path):
    """Results come back over the broker (rpc://): lists, no pub/sub."""
    with worker(server, tmp_path):
        assert json.loads(run(server, tmp_path, PROGRAM)) == [3, 2, "broken", 7, 7, [2 * i for i in range(20)]]


def test_a_task_of_a_lost_worker(server, tmp_path):
    """The next worker takes it over, one at a time by a lock on what is not acknowledged."""
    with redis.Redis(port=server.port, db=2) as r, redis.Redis(port=server.port) as broker:
        with worker(server, tmp_path):
            run(server, tmp_path, "import app; app.hang_once.delay()")
            wait.until(lambda: r.get("runs") == b"1", "the task is taken")
        assert broker.hlen("unacked") == 1
        with worker(server, tmp_path):
            wait.until(lambda: r.get("runs") == b"2", "the task is taken again")
            wait.until(lambda: not broker.exists("unacked", "unacked_index", "unacked_mutex"), "it is acknowledged")


def test_results_in_redis(larder, tmp_path):
    (tmp_path / "app.py").write_text(APP)
    with redis.Redis(port=larder.port) as r:
        if "publish" not in r.command():
            ask = "import app\ntry: app.app.backend.store_result('id', 3, 'SUCCESS')\nexcept Exception as e: print(e)"
            assert "unknown command 'PUBLISH'" in run(larder, tmp_path, ask, "redis:")
            pytest.skip("a result is published (PUBLISH) to whom waits for it (SUBSCRIBE)")
    with worker(larder, tmp_path, "redis:", []):
        assert json.loads(run(larder, tmp_path, PROGRAM, "redis:"))[:3] == [3, 2, "broken"]
