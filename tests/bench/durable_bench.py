"""Writes for a minute at a time, not a burst: what a journal put off has to be paid within the run."""

import json
import os
import subprocess
import time

WRITES = ["set", "incr", "hset", "lpush", "zadd"]
SECONDS = 60
COLD_KEYS, COLD_CACHE = 1_000_000, "16mb"  # some 165 MB of rows


def run(load, server, pipeline, seconds, *, keys, value, clients, reads=0, prefix="key:", write="set", rate=0):
    argv = [load, server.port, clients, pipeline, seconds, keys, value, reads, prefix, write, rate]
    done = subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True, timeout=seconds + 120)
    r = json.loads(done.stdout)
    if r["errors"]:
        raise RuntimeError(f"{server.name}: {r['errors']} errors")
    return {"rps": r["ops"], "p50_ms": r["p50_us"] / 1000, "p99_ms": r["p99_us"] / 1000}


def sustained(options, servers, load, run_pair, results, say, shape):
    """Each kind of write with appendfsync always, on servers of its own, so that each starts from nothing but its keys."""
    seconds = max(2, SECONDS * options.scale)
    for write in WRITES:
        pair = servers.contestants(options, "always")
        try:
            for s in pair:
                s.start()
                run(load, s, 64, max(1, seconds / 6), write=write, **shape)
            for pipeline in (1, 16):
                run_pair(results, pair, f"{write.upper()} P{pipeline} always, {seconds:.0f} s", options.rounds,
                         lambda s: run(load, s, pipeline, seconds, write=write, **shape))
        finally:
            for s in pair:
                s.remove()


def same_rate(options, servers, load, results, say, shape):
    """p99 of durable SETs when both servers get the same load: 70 % of what the slower one can take."""
    seconds = max(2, 10 * options.scale)
    pair = [servers.redis(options.disk, "always"), servers.larder(options.disk, options.binary, "always")]
    try:
        for s in pair:
            s.start()
            run(load, s, 64, max(1, seconds / 2), **shape)
        rate = 0.7 * min(run(load, s, 1, seconds, **shape)["rps"] for s in pair)
        p99 = {s.name: [] for s in pair}
        for _ in range(options.rounds):
            for s in pair:
                p99[s.name].append(run(load, s, 1, seconds, rate=rate, **shape)["p99_ms"])
    finally:
        for s in pair:
            s.remove()
    redis, larder = (sorted(p99[s.name])[len(p99[s.name]) // 2] for s in pair)
    say(f"p99 of SET at {rate:,.0f}/s: redis {redis:.2f} ms, larder {larder:.2f} ms")
    return {"rate": rate, "redis_p99_ms": redis, "larder_p99_ms": larder}


def cold(options, servers, load, say, shape):
    """GET of keys of which a tenth fits the cache. The operating system may have the file in memory."""
    server = servers.larder(options.disk, options.binary, "off", "--cache-memory", COLD_CACHE)
    try:
        server.start()
        run(load, server, 64, max(5, 30 * options.scale), **{**shape, "keys": COLD_KEYS})
        time.sleep(2)
        seconds = max(2, 20 * options.scale)
        rates = {p: run(load, server, p, seconds, reads=100, **{**shape, "keys": COLD_KEYS})["rps"] for p in (1, 16)}
        size = os.path.getsize(os.path.join(server.folder, "larder.db"))
    finally:
        server.remove()
    say(f"cold GET: {rates[1]:,.0f}/s at P1, {rates[16]:,.0f}/s at P16, {size / 2**20:.0f} MB of data, cache {COLD_CACHE}")
    return {"p1": rates[1], "p16": rates[16], "file_mb": size / 2**20, "cache": COLD_CACHE}


def compare(options, servers, load, run_pair, say, **shape):
    report = {"rows": []}
    sustained(options, servers, load, run_pair, report["rows"], say, shape)
    report["same_rate"] = same_rate(options, servers, load, report["rows"], say, shape)
    report["cold"] = cold(options, servers, load, say, shape)
    return report


def markdown(report):
    same, c = report["same_rate"], report["cold"]
    return ["", f"At the same rate, {same['rate']:,.0f} durable SETs a second of 50 clients: p99 {same['larder_p99_ms']:.2f} ms, "
            f"redis-server {same['redis_p99_ms']:.2f} ms.", "",
            f"Cold: {c['file_mb']:.0f} MB of data with cache-memory {c['cache']}: {c['p1']:,.0f} GETs a second at P1, {c['p16']:,.0f} at P16."]
