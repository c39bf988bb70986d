"""Taking members out of large collections, durably: pops at the ends, removals by name, queues, and ranges at once."""

import statistics
import time

from collections_bench import Client
from durable_bench import FILLS, POPPED, Run, table

MEMBERS, QUICK_MEMBERS = 1_000_000, 200_000
RANGE = 10_000
SECONDS, QUICK_SECONDS = 60, 3

# write: the ratio aimed at with one command at a time, and with sixteen
AIMS = {
    **{w: {1: 0.9, 16: 0.6} for w in ("zpopmin", "zpopmax", "spop", "srem", "hdel", "zrem", "delay queue")},
    **{w: {1: 1.0, 16: 0.8} for w in ("rpop", "lpop", "lmove")},
}
NAMED = ("srem", "hdel", "zrem")  # each member once, in no order
MOST_TIMES = 3  # of redis-server's time for a range


def take(run, server, write, pipeline, members):
    """Fills a key, which does not count, and takes members out of it until the time is over or all of them are gone."""
    server.command("DEL", *POPPED)
    run.fill(server, FILLS.get(write, "lpush"), members)
    count = 0 if write == "lmove" else members * 9 // 10
    return run.one(server, pipeline, write=write, count=count, keys=members, sequence=2 if write in NAMED else 0)


def removals(run, members):
    for write in [w for w in AIMS if w != "delay queue"]:
        names = {p: f"{write.upper()} P{p}, {members:,} members" for p in (1, 16)}
        if not any(run.wanted(n) for n in names.values()):
            continue
        with run.servers.running(run.servers.contestants(run.options, "always")) as pair:
            for pipeline, name in names.items():
                run.compare(pair, name, lambda s: take(run, s, write, pipeline, members), AIMS[write][pipeline])  # noqa: B023


def delay_queue(run, members):
    """What is due later: members come at random, and go at the front."""
    for pipeline in (1, 16):
        name = f"delay queue P{pipeline}, {members:,} members"
        if not run.wanted(name):
            continue
        with run.servers.running(run.servers.contestants(run.options, "always")) as pair:
            for s in pair:
                run.fill(s, "zadd", members)
            # Members are new ones: random out of a thousand times as many.
            run.compare(pair, name, lambda s: run.one(s, pipeline, write="delay", keys=members * 1000,  # noqa: B023
                                                      seed=time.monotonic_ns() % 2**32), AIMS["delay queue"][pipeline])


def range_ms(run, server, write, members, *words):
    """Milliseconds of one command on a key that has just been filled; the median of three."""
    times = []
    for _ in range(run.options.rounds):
        server.command("DEL", *POPPED)
        run.fill(server, write, members)
        times.append(Client(server).timed(*words))
    return statistics.median(times)


def ranges(run, members):
    """Removing many at once: how long the one command takes."""
    middle = members // 2
    tests = {
        f"ZREMRANGEBYRANK of {RANGE:,} in the middle of {members:,}": ("zadd", "ZREMRANGEBYRANK", "myzset", middle, middle + RANGE - 1),
        f"LTRIM of {members:,} to the first half": ("lpush", "LTRIM", "mylist", 0, middle - 1),
        f"LTRIM of {members:,} to the last half": ("lpush", "LTRIM", "mylist", middle, -1),
    }
    found = []
    for name, (write, *words) in tests.items():
        if not run.wanted(name):
            continue
        with run.servers.running(run.servers.contestants(run.options, "always")[:2]) as pair:
            redis, larder = (range_ms(run, s, write, members, *words) for s in pair)
        found.append({"test": name, "redis_ms": redis, "larder_ms": larder})
        run.say(f"{name}: redis {redis:.1f} ms, larder {larder:.1f} ms")
    return found


def compare(options, servers, load, run_pair, say, **shape):
    run = Run(options, servers, load, run_pair, say, shape)
    members = QUICK_MEMBERS if options.quick else max(1000, int(MEMBERS * min(1, options.scale)))
    run.seconds = options.seconds or (QUICK_SECONDS if options.quick else max(1, SECONDS * options.scale))
    removals(run, members)
    delay_queue(run, members)
    return {"rows": run.rows, "ranges": ranges(run, members), "seconds": run.seconds, "members": members, "failed": run.failed}


def markdown(report):
    lines = ["", f"Taking out of {report['members']:,} members, durably, for {report['seconds']:g} s or until nine in ten are gone:", "",
             *table(report["rows"])]
    if report["ranges"]:
        lines += ["", "| one command | redis-server | larder | times |", "|---|---:|---:|---:|"]
    for r in report["ranges"]:
        times = r["larder_ms"] / r["redis_ms"]
        lines.append(f"| {r['test']} | {r['redis_ms']:.1f} ms | {r['larder_ms']:.1f} ms | **{times:.1f}**{' (missed)' if times > MOST_TIMES else ''} |")
    if report["failed"]:
        lines += ["", "Failed: " + ", ".join(report["failed"]) + "."]
    return lines
