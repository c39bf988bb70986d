"""Sidekiq, unchanged: a worker process that fetches jobs, and a program that enqueues, schedules, retries and buries them.
The poller that moves what is due is a script (SCRIPT LOAD, EVALSHA)."""

import contextlib
import json
import os
import shutil
import subprocess

import pytest

JOBS = """
class Add
  include Sidekiq::Worker
  def perform(a, b) = Sidekiq.redis { |r| r.rpush("results", a + b) }
end

class Fragile
  include Sidekiq::Worker
  sidekiq_options retry: 1
  sidekiq_retry_in { 3600 }
  def perform
    raise "broken" unless Sidekiq.redis { |r| r.get("mended") }
    Sidekiq.redis { |r| r.rpush("results", "mended") }
  end
end
"""

PROGRAM = """
require "json"
require "sidekiq"
require "sidekiq/api"
require "sidekiq/scheduled"
require "./jobs"

def wait_for(what)
  limit = Time.now + 30
  until (value = yield)
    raise "waited in vain: #{what}" if Time.now > limit
    sleep 0.01
  end
  value
end

def results = Sidekiq.redis { |r| r.lrange("results", 0, -1) }

poller = Sidekiq::Scheduled::Poller.new
report = {}
Add.perform_async(1, 2)
Sidekiq::Client.push_bulk("class" => Add, "args" => (0...20).map { |i| [i, 100] })
wait_for("the queue is worked off") { results.size == 21 }
report["done"] = results.map(&:to_i).sort

poller.enqueue
Add.perform_in(3600, 1000, 1)
Add.perform_in(7200, 1, 1)
report["scheduled"] = Sidekiq::ScheduledSet.new.map { |job| [job.klass, job.args] }.sort
poller.enqueue
report["not due"] = Sidekiq::ScheduledSet.new.size
Sidekiq::ScheduledSet.new.find { |job| job.args == [1000, 1] }.reschedule(Time.now - 1)
Sidekiq.redis { |r| r.script(:flush) }
poller.enqueue
wait_for("what is due is run") { results.include?("1001") }
report["still scheduled"] = Sidekiq::ScheduledSet.new.size

Fragile.perform_async
failed = wait_for("the failure is noted") { Sidekiq::RetrySet.new.first }
report["to retry"] = [failed.klass, failed["error_message"], failed["retry_count"]]
failed.reschedule(Time.now - 1)
poller.enqueue
dead = wait_for("it dies of its second failure") { Sidekiq::DeadSet.new.first }
report["dead"] = [dead.klass, dead["error_message"], dead["retry_count"], Sidekiq::RetrySet.new.size]
Sidekiq.redis { |r| r.set("mended", 1) }
dead.retry
wait_for("it is run again") { results.include?("mended") }
report["left"] = [Sidekiq::DeadSet.new.size, Sidekiq::Queue.new.size]
wait_for("the worker's heart beats") { Sidekiq::ProcessSet.new.size == 1 }
puts JSON.generate(report)
"""


@contextlib.contextmanager
def worker(server, folder):
    (folder / "jobs.rb").write_text(JOBS)
    with open(folder / "worker.log", "w") as log:
        process = subprocess.Popen(
            ["sidekiq", "-r", "./jobs.rb", "-c", "2"], cwd=folder, env=environment(server), stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def environment(server):
    return {**os.environ, "REDIS_URL": f"redis://127.0.0.1:{server.port}/0"}


@pytest.mark.skipif(shutil.which("sidekiq") is None, reason="sidekiq is not installed")
def test_jobs(server, tmp_path):
    with worker(server, tmp_path) as process:
        done = subprocess.run(
            ["ruby", "-e", PROGRAM], cwd=tmp_path, env=environment(server), capture_output=True, text=True, timeout=120
        )
        assert process.poll() is None
    log = (tmp_path / "worker.log").read_text()
    assert done.returncode == 0, done.stderr[-3000:] + log[-3000:]
    assert json.loads(done.stdout) == {
        "done": sorted([3, *range(100, 120)]),
        "scheduled": [["Add", [1, 1]], ["Add", [1000, 1]]],
        "not due": 2,
        "still scheduled": 1,
        "to retry": ["Fragile", "broken", 0],
        "dead": ["Fragile", "broken", 1, 0],
        "left": [0, 0],
    }
