"""RQ, unchanged: queues, registries, the scheduler and the script that empties a queue; and its worker, which keeps results
in streams."""

import datetime
import shutil
import subprocess

import pytest
import redis

rq = pytest.importorskip("rq")
from rq import Queue, Retry  # noqa: E402
from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry  # noqa: E402
from rq.scheduler import RQScheduler  # noqa: E402

HOUR = datetime.timedelta(hours=1)
JOBS = """
from rq import get_current_connection

def add(a, b):
    return a + b

def fragile():
    if get_current_connection().incr("attempts") < 3:
        raise ValueError("broken")
    return "mended"
"""


@pytest.fixture
def r(server):
    with redis.Redis(port=server.port) as r:
        yield r


def test_queues_and_schedules(r):
    queue = Queue(connection=r)
    jobs = [queue.enqueue("jobs.add", i, 1) for i in range(5)]
    front = queue.enqueue("jobs.add", 9, 9, at_front=True)
    waiting = queue.enqueue("jobs.add", 1, 1, depends_on=jobs[0])
    assert queue.job_ids == [front.id, *(job.id for job in jobs)] and waiting.get_status() == "deferred"
    due, later = (queue.enqueue_in(d, "jobs.add", 0, 0) for d in (-HOUR, HOUR))
    scheduler = RQScheduler([queue], connection=r)
    assert scheduler.acquire_locks() == {queue.name}
    assert RQScheduler([queue], connection=r).acquire_locks() == set()
    scheduler.enqueue_scheduled_jobs()
    assert due.id in queue.job_ids and ScheduledJobRegistry(queue=queue).get_job_ids() == [later.id]
    scheduler.release_locks()
    jobs[1].cancel()
    assert jobs[1].get_status() == "canceled" and jobs[1].id not in queue.job_ids
    assert queue.empty() == 6 and queue.job_ids == []  # the script
    assert not r.exists(jobs[0].key, front.key, due.key) and r.exists(waiting.key, later.key) == 2
    queue.delete()
    assert Queue.all(connection=r) == []


def work(server, folder):
    (folder / "jobs.py").write_text(JOBS)
    return subprocess.run(
        ["rq", "worker", "--burst", "--url", f"redis://127.0.0.1:{server.port}", "--path", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.skipif(shutil.which("rq") is None, reason="rq is not installed")
def test_a_worker(server, r, tmp_path):
    queue = Queue(connection=r)
    good = queue.enqueue("jobs.add", 1, 2)
    if "xadd" not in r.command():
        done = work(server, tmp_path)
        assert "unknown command 'SUBSCRIBE'" in done.stderr and "unknown command 'XADD'" in done.stderr
        pytest.skip("a worker subscribes to a channel (SUBSCRIBE) and adds a result to a stream (XADD)")
    after = queue.enqueue("jobs.add", 3, 4, depends_on=good)
    retried = queue.enqueue("jobs.fragile", retry=Retry(max=1))
    done = work(server, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [job.return_value() for job in (good, after)] == [3, 7]
    assert FinishedJobRegistry(queue=queue).count == 2
    assert FailedJobRegistry(queue=queue).get_job_ids() == [retried.id] and r.get("attempts") == b"2"
    FailedJobRegistry(queue=queue).requeue(retried)
    assert work(server, tmp_path).returncode == 0
    assert retried.return_value() == "mended" and FailedJobRegistry(queue=queue).count == 0
