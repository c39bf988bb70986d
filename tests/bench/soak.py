#!/usr/bin/python3
"""Writes flat out for minutes, beside clients that do little, and judges whether everything stays within bounds.

32 clients send 16 writes at a time (SET of random keys, one of thirteen with 4 KB; HSET, ZADD, LPUSH) as fast as they are
answered. Four quiet clients read 100 keys a second in all, four others write 50. Each second it is noted what memory, journal and log
take and how long everybody waited. Ends with 1 when a bound was exceeded.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import servers
from bench import ROOT, build_load, say

MB = 2**20
KEYS, VALUE = 1_000_000, 64
CACHE_MEMORY, PAGE_CACHE, JOURNAL_MAX = 256 * MB, 16 * MB, 64 * MB  # less than the defaults: they are reached sooner

# Beside what the options say: 8 MB of the program, its libraries and threads' stacks; 16 MB of buffers (40 clients with up to 64 KB
# of input and output each, the batch's changes); 16 MB of the checkpoint's own connection and the index of a log of 192 MB; and what
# jemalloc holds back of memory that was freed within the last ten seconds, which is a part of what goes through: 32 MB.
CONSTANT = 72 * MB
RSS_MAX = CACHE_MEMORY + PAGE_CACHE + 3 * JOURNAL_MAX + CONSTANT
# Above wal-max passes wait until SQLite's log is copied back; one of them may come on top.
WAL_MAX = 2048 * MB + JOURNAL_MAX

WRITERS = {"clients": 32, "pipeline": 16, "reads": 0, "write": "mix", "rate": 0}
READERS = {"clients": 4, "pipeline": 1, "reads": 100, "write": "set", "rate": 100}
SETTERS = {"clients": 4, "pipeline": 1, "reads": 0, "write": "set", "rate": 50}


class Load:
    """A process of load.c and its reports, one for each second."""

    def __init__(self, binary, port, seconds, *, clients, pipeline, reads, write, rate):
        argv = [binary, port, clients, pipeline, seconds, KEYS, VALUE, reads, "key:", write, rate, 1]
        self.process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, text=True)
        self.reports = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.reports.append(json.loads(line))

    def end(self, timeout):
        code = self.process.wait(timeout=timeout)
        self.thread.join(timeout=10)
        if code != 0:
            raise RuntimeError(f"a load ended with {code}")


def info(connection):
    connection.sendall(b"*2\r\n$4\r\nINFO\r\n$6\r\nlarder\r\n")
    data = connection.recv(65536)
    size = int(data[1:data.index(b"\r\n")])
    while len(data) < size:
        data += connection.recv(65536)
    fields = dict(line.split(":", 1) for line in data.decode().split("\r\n") if ":" in line)
    return {k: int(fields[k]) for k in ("journal_bytes", "store_wal_bytes", "memtable_bytes", "cache_bytes", "store_bytes", "external_changes")}


def watch(server, seconds):
    """One sample a second of what the server takes."""
    samples = []
    connection = servers.connect(server.port)
    began = time.monotonic()
    for i in range(1, int(seconds) + 1):
        time.sleep(max(0, began + i - time.monotonic()))
        asked = time.monotonic()
        sample = info(connection)
        sample["info_ms"] = (time.monotonic() - asked) * 1000
        sample["rss"] = server.rss()
        samples.append(sample)
    return samples


# what the table shows: (name, where from, field, unit)
COLUMNS = [
    ("resident MB", "server", "rss", MB),
    ("row cache MB", "server", "cache_bytes", MB),
    ("memtables MB", "server", "memtable_bytes", MB),
    ("journal MB", "server", "journal_bytes", MB),
    ("log MB", "server", "store_wal_bytes", MB),
    ("database MB", "server", "store_bytes", MB),
    ("writes /s", "writers", "ops", 1),
    ("p99 ms, 16 writes", "writers", "p99_us", 1000),
    ("p99 ms, quiet reads", "readers", "p99_us", 1000),
    ("p99 ms, quiet writes", "setters", "p99_us", 1000),
    ("slowest quiet ms", "readers", "max_us", 1000),
]


def minutes(rows):
    return [rows[i:i + 60] for i in range(0, len(rows) - 29, 60)]


def table(series):
    count = min(len(minutes(rows)) for rows in series.values())
    lines = ["| | " + " | ".join(f"minute {i + 1}" for i in range(count)) + " |", "|---|" + "---:|" * count]
    for name, source, field, unit in COLUMNS:
        cells = []
        for minute in minutes(series[source])[:count]:
            values = sorted(r[field] / unit for r in minute)
            cells.append(" / ".join(f"{v:,.1f}" if v < 100 else f"{v:,.0f}" for v in
                                    (values[0], statistics.median(values), values[-1])))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def p99_of(minute):
    return statistics.median(r["p99_us"] / 1000 for r in minute)


def judge(series):
    """(what, found, bound, kept) for each promise."""
    server, writers = series["server"], minutes(series["writers"])
    found = []

    def at_most(what, value, bound, unit):
        found.append((what, f"{value / unit:,.1f}", f"{bound / unit:,.1f}", value <= bound))

    at_most("resident MB", max(s["rss"] for s in server), RSS_MAX, MB)
    at_most("journal MB", max(s["journal_bytes"] for s in server), 2 * JOURNAL_MAX, MB)
    at_most("log MB", max(s["store_wal_bytes"] for s in server), WAL_MAX, MB)
    if len(writers) > 1:
        second = p99_of(writers[min(1, len(writers) - 2)])
        at_most("p99 ms of the last minute, twice the second's", p99_of(writers[-1]), 2 * second, 1)
    for who in ("readers", "setters"):
        idle = sum(r["ops"] == 0 for r in series[who])
        at_most(f"seconds without an answer, quiet {who}", idle, 0, 1)
        at_most(f"slowest answer ms, quiet {who}", max(max(r["max_us"], r["waiting_us"]) for r in series[who]), 1e6, 1000)
    at_most("writes taken for those of others", server[-1]["external_changes"], 0, 1)
    at_most("errors", sum(r["errors"] for who in ("writers", "readers", "setters") for r in series[who]), 0, 1)
    return found


def soak(options):
    with tempfile.TemporaryDirectory() as folder:
        load = build_load(folder)
        server = servers.larder(options.disk, options.binary, options.durability, "--cache-memory", CACHE_MEMORY, "--page-cache",
                                PAGE_CACHE, "--journal-max", JOURNAL_MAX)
        server.argv = [str(a) for a in server.argv]
        loads = {}
        try:
            server.start()
            for who, what in (("writers", WRITERS), ("readers", READERS), ("setters", SETTERS)):
                loads[who] = Load(load, server.port, options.seconds, **what)
            samples = watch(server, options.seconds)
            for one in loads.values():
                one.end(60)
            began = time.monotonic()
            server.stop()
            say(f"stopped in {time.monotonic() - began:.1f} s")
        finally:
            for one in loads.values():
                if one.process.poll() is None:
                    one.process.kill()
            server.remove()
    return {"server": samples, **{who: one.reports for who, one in loads.items()}}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--binary", default=os.path.join(ROOT, "build", "release", "larder"))
    p.add_argument("--seconds", type=float, default=300)
    p.add_argument("--durability", default="always")
    p.add_argument("--disk", default=tempfile.gettempdir())
    p.add_argument("--json", help="a file for every second's numbers")
    options = p.parse_args()
    series = soak(options)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(series, f)
    verdicts = judge(series)
    print("\n".join(table(series)))
    print("\n| bound | found | allowed | |\n|---|---:|---:|---|")
    for what, value, bound, kept in verdicts:
        print(f"| {what} | {value} | {bound} | {'kept' if kept else '**exceeded**'} |")
    sys.exit(0 if all(kept for *_, kept in verdicts) else 1)


if __name__ == "__main__":
    main()
