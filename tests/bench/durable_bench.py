"""Writes for a minute at a time, not a burst: what a journal put off has to be paid within the run. Each test beside what is aimed at."""

import json
import os
import re
import subprocess
import time

WRITES = ["set", "incr", "lpush", "rpop", "hset", "sadd", "zadd", "mset"]
SECONDS, QUICK_SECONDS = 60, 0.6
COLD_KEYS, COLD_CACHE = 1_000_000, "16mb"  # some 165 MB of rows
NEW_MEMBERS = 1_000_000_000

# what fills the key that a pop empties
FILLS = {"rpop": "lpush", "lpop": "lpush", "spop": "sadd", "srem": "sadd", "hdel": "hset", **dict.fromkeys(("zpopmin", "zpopmax", "zrem"), "zadd")}
POPPED = ("mylist", "myset", "myhash", "myzset")
# The most that a round pops, for each second of it: more than any server takes, so that time ends the round, not the key.
POPS = {1: 150_000, 16: 900_000}

# (durability, write): the ratio aimed at with one command at a time, and with sixteen
AIMS = {
    **{("always", w): {1: 1.3, 16: 1.0} for w in ("set", "incr", "lpush", "rpop")},
    **{("always", w): {1: 1.0, 16: 0.8} for w in ("hset", "sadd", "zadd", "mset")},
    **{("everysec", w): {1: 1.0, 16: 0.8} for w in ("set", "incr")},
}


class Run:
    """What all tests share: the options, the load's shape, and the rows that came of it."""

    def __init__(self, options, servers, load, run_pair, say, shape):
        self.options, self.servers, self.load, self.run_pair, self.say, self.shape = options, servers, load, run_pair, say, shape
        self.rows, self.failed = [], []
        self.seconds = options.seconds or (QUICK_SECONDS if options.quick else max(1, SECONDS * options.scale))

    def wanted(self, name):
        return not self.options.case or re.search(self.options.case, name)

    def compare(self, pair, name, test, aim=None):
        """One row. A test that fails is told of, and the others go on."""
        if not self.wanted(name):
            return
        try:
            self.run_pair(self.rows, pair, name, self.options.rounds, test)
            self.rows[-1]["aim"] = aim
        except (RuntimeError, OSError, subprocess.SubprocessError, ValueError) as e:
            self.failed.append(name)
            self.say(f"{name}: FAILED: {e}")

    def one(self, server, pipeline, seconds=None, **changes):
        return run(self.load, server, pipeline, seconds or self.seconds, **{**self.shape, **changes})

    def fill(self, server, write, count, **changes):
        run(self.load, server, 64, 600, write=write, count=count, sequence=True, **{**self.shape, "keys": max(count, 1), **changes})


def run(load, server, pipeline, seconds, *, keys, value, clients, reads=0, prefix="key:", write="set", rate=0, count=0, sequence=False, seed=0):
    argv = [load, server.port, clients, pipeline, seconds, keys, value, reads, prefix, write, rate, f"seed={seed}", f"count={count}",
            f"sequence={int(sequence)}"]
    done = subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True, timeout=seconds + 120)
    r = json.loads(done.stdout)
    if r["errors"]:
        raise RuntimeError(f"{server.name}: {r['errors']} errors")
    return {"rps": r["ops"], "p50_ms": r["p50_us"] / 1000, "p99_ms": r["p99_us"] / 1000}


def pops(run, server, write, pipeline, count):
    """Fills a key and empties it, for as long as a round is; filling does not count."""
    server.command("DEL", *POPPED)
    run.fill(server, FILLS[write], count)
    return run.one(server, pipeline, write=write, count=count)


def new_members(run, server, pipeline):
    """SADD that finds nothing there: a member that is in the set already is no write."""
    server.command("DEL", "myset")
    return run.one(server, pipeline, write="sadd", keys=NEW_MEMBERS)


def sustained(run, level):
    """Each kind of write on servers of its own, so that each starts from nothing but its keys."""
    for write in WRITES:
        names = {p: f"{write.upper()}{' (10 keys)' if write == 'mset' else ''} P{p} {level}" for p in (1, 16)}
        if not any(run.wanted(n) for n in names.values()):
            continue
        with run.servers.running(run.servers.contestants(run.options, level)) as pair:
            for s in pair:
                if write not in FILLS and write != "sadd":
                    run.one(s, 64, max(0.5, run.seconds / 6), write=write)
            for pipeline, name in names.items():
                if write in FILLS:
                    test = lambda s: pops(run, s, write, pipeline, int(POPS[pipeline] * min(run.seconds, 10)))  # noqa: B023, E731
                elif write == "sadd":
                    test = lambda s: new_members(run, s, pipeline)  # noqa: B023, E731
                else:
                    test = lambda s: run.one(s, pipeline, write=write)  # noqa: B023, E731
                run.compare(pair, name, test, AIMS.get((level, write), {}).get(pipeline))


def reads_and_clients(run):
    """GET of keys in memory, mixed loads, and one and two thousand connections."""
    tests = [(f"GET hot P{p}", p, {"reads": 100}, {1: 1.1, 16: 1.5}[p]) for p in (1, 16)]
    tests += [(f"mixed 90/10 P{p}", p, {"reads": 90}, {1: 1.1, 16: 1.5}[p]) for p in (1, 16)]
    tests += [("SET, one client", 1, {"clients": 1}, 1.1), ("GET, one client", 1, {"clients": 1, "reads": 100}, 1.0)]
    tests += [("SET, 2,000 clients", 1, {"clients": 2000}, 1.0), ("GET, 2,000 clients", 1, {"clients": 2000, "reads": 100}, 1.0)]
    if not any(run.wanted(name) for name, *_ in tests):
        return
    with run.servers.running(run.servers.contestants(run.options, "always")) as pair:
        for s in pair:
            run.fill(s, "set", run.shape["keys"])
        for name, pipeline, changes, aim in tests:
            run.compare(pair, name, lambda s: run.one(s, pipeline, **changes), aim)  # noqa: B023


def same_rate(run):
    """p99 of durable SETs when both servers get the same load: 70 % of what the slower one can take."""
    seconds = min(10, run.seconds)
    with run.servers.running(run.servers.contestants(run.options, "always")[:2]) as pair:
        for s in pair:
            run.one(s, 64, max(0.5, seconds / 2))
        rate = 0.7 * min(run.one(s, 1, seconds)["rps"] for s in pair)
        p99 = {s.name: [] for s in pair}
        for _ in range(run.options.rounds):
            for s in pair:
                p99[s.name].append(run.one(s, 1, seconds, rate=rate)["p99_ms"])
        redis, larder = (sorted(p99[s.name])[len(p99[s.name]) // 2] for s in pair)
    run.say(f"p99 of SET at {rate:,.0f}/s: redis {redis:.2f} ms, larder {larder:.2f} ms")
    return {"rate": rate, "redis_p99_ms": redis, "larder_p99_ms": larder}


def cold(run):
    """GET of keys of which a tenth fits the cache. The operating system may have the file in memory."""
    shape = {"keys": COLD_KEYS // 10 if run.options.quick else COLD_KEYS}
    server = run.servers.larder(run.options.disk, run.options.binary, "off", "--cache-memory", COLD_CACHE)
    with run.servers.running([server]):
        run.fill(server, "set", shape["keys"])
        time.sleep(min(2, run.seconds))
        seconds = min(20, run.seconds)
        rates = {p: run.one(server, p, seconds, reads=100, **shape)["rps"] for p in (1, 16)}
        size = os.path.getsize(os.path.join(server.folder, "larder.db"))
    run.say(f"cold GET: {rates[1]:,.0f}/s at P1, {rates[16]:,.0f}/s at P16, {size / 2**20:.0f} MB of data, cache {COLD_CACHE}")
    return {"p1": rates[1], "p16": rates[16], "file_mb": size / 2**20, "cache": COLD_CACHE}


def compare(options, servers, load, run_pair, say, **shape):
    run = Run(options, servers, load, run_pair, say, shape)
    for level in ("always", "everysec"):
        sustained(run, level)
    reads_and_clients(run)
    report = {"rows": run.rows, "seconds": run.seconds, "failed": run.failed}
    if run.wanted("same rate"):
        report["same_rate"] = same_rate(run)
    if run.wanted("cold"):
        report["cold"] = cold(run)
    return report


def table(rows):
    lines = ["| test | redis-server /s | larder /s | ratio | aim | p99 redis | p99 larder |", "|---|---:|---:|---:|---:|---:|---:|"]
    for r in rows:
        a, b, aim = r["redis"], r["larder"], r.get("aim")
        missed = " (missed)" if aim and r["ratio"] < aim else ""
        lines.append(f"| {r['test']} | {a['rps']:,.0f} | {b['rps']:,.0f} | **{r['ratio']:.2f}**{missed} | {f'>= {aim}' if aim else ''} "
                     f"| {a['p99_ms']:.2f} ms | {b['p99_ms']:.2f} ms |")
    return lines


def markdown(report):
    lines = ["", f"Each for {report['seconds']:g} s, what is aimed at beside it:", "", *table(report["rows"])]
    same, c = report.get("same_rate"), report.get("cold")
    if same:
        lines += ["", f"At the same rate, {same['rate']:,.0f} durable SETs a second of 50 clients: p99 {same['larder_p99_ms']:.2f} ms, "
                  f"redis-server {same['redis_p99_ms']:.2f} ms."]
    if c:
        lines += ["", f"Cold: {c['file_mb']:.0f} MB of data with cache-memory {c['cache']}: {c['p1']:,.0f} GETs a second at P1, "
                  f"{c['p16']:,.0f} at P16."]
    if report["failed"]:
        lines += ["", "Failed: " + ", ".join(report["failed"]) + "."]
    return lines
