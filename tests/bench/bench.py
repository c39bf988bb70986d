#!/usr/bin/python3
"""Runs Larder and redis-server side by side and prints ratios.

Both write to the same disk and take turns: in each round every test runs on one server, then on the other; the table has
the median of the rounds. redis-benchmark makes the load (50 clients, 64-byte values, a million keys), tests/bench/load.c the
mixed one. Results go to bench/results/ (JSON, SVG) and, with --docs, into docs/performance.md between its markers.
"""
import argparse
import csv
import io
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import chart
import collections_bench
import durable_bench
import http_bench
import pops_bench
import scale_bench
import scripts_bench
import servers
import tables_bench

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEYS, CLIENTS, VALUE = 1_000_000, 50, 64

PARTS = ["strings", "durable", "pops", "scale", "collections", "scripts", "tables", "large", "memory", "sweep", "http"]

# name: (redis-benchmark arguments, does it write)
STRINGS = {
    "SET": (["-t", "set"], True),
    "GET": (["-t", "get"], False),
    "INCR": (["-t", "incr"], True),
    "MSET (10 keys)": (["-t", "mset"], True),
}


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def build_load(folder):
    binary = os.path.join(folder, "load")
    source = os.path.join(ROOT, "tests", "bench", "load.c")
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-o", binary, source], check=True)
    return binary


def redis_benchmark(server, arguments, pipeline, requests):
    argv = ["redis-benchmark", "-p", str(server.port), "-c", str(CLIENTS), "-d", str(VALUE), "-r", str(KEYS), "-P", str(pipeline),
            "-n", str(requests), "--csv", *arguments]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=900)
    if "Error from server" in done.stderr:
        raise RuntimeError(f"{server.name}: {done.stderr.splitlines()[0]}")
    out = done.stdout
    rows = [r for r in csv.reader(io.StringIO(out)) if len(r) >= 7 and r[0] != "test"]
    if not rows:
        raise RuntimeError(f"redis-benchmark said nothing useful: {out!r}")
    return {"rps": float(rows[-1][1]), "p50_ms": float(rows[-1][4]), "p99_ms": float(rows[-1][6])}


def mixed(load, server, pipeline, seconds):
    argv = [load, str(server.port), str(CLIENTS), str(pipeline), str(seconds), str(KEYS), str(VALUE), "90", "key:"]
    r = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=seconds + 60).stdout)
    return {"rps": r["ops"], "p50_ms": r["p50_us"] / 1000, "p99_ms": r["p99_us"] / 1000}


def fill(server):
    """Every key once, so that reads find something and writes replace something."""
    redis_benchmark(server, ["-t", "set"], 16, KEYS * 2)


def requests_for(pipeline, writes, scale):
    base = 200_000 if writes else 400_000
    return int((base if pipeline == 1 else base * 4) * scale)


def compare_strings(options, load, results):
    """The string tests at both durabilities; reads only once, they do not depend on it."""
    for level in ("always", "everysec"):
        pair = servers.contestants(options, level)
        try:
            for s in pair:
                s.start()
                say(f"filling {s.name} with {KEYS:,} keys")
                fill(s)
            for pipeline in (1, 16):
                for name, (arguments, writes) in STRINGS.items():
                    if not writes and level == "everysec":
                        continue
                    n = requests_for(pipeline, writes, options.scale) // (10 if "10 keys" in name else 1)
                    run_pair(results, pair, f"{name} P{pipeline} {level}", options.rounds,
                             lambda s: redis_benchmark(s, arguments, pipeline, n))
                run_pair(results, pair, f"mixed 90/10 P{pipeline} {level}", options.rounds,
                         lambda s: mixed(load, s, pipeline, 5 * options.scale))
        finally:
            for s in pair:
                s.remove()


def median(runs):
    rates = [x["rps"] for x in runs]
    return {"rps": statistics.median(rates), "min": min(rates), "max": max(rates),
            "p50_ms": statistics.median(x["p50_ms"] for x in runs), "p99_ms": statistics.median(x["p99_ms"] for x in runs)}


def run_pair(results, pair, name, rounds, test):
    runs = {s.name: [] for s in pair}
    for _ in range(rounds):
        for s in pair:
            runs[s.name].append(test(s))
    row = {"test": name, **{kind: median(runs[s.name]) for kind, s in zip(("redis", "larder", "before"), pair)}}
    row["ratio"] = row["larder"]["rps"] / row["redis"]["rps"]
    before = f"  before {row['before']['rps']:>10,.0f}/s" if "before" in row else ""
    results.append(row)
    say(f"{name:28} redis {row['redis']['rps']:>10,.0f}/s  larder {row['larder']['rps']:>10,.0f}/s  x {row['ratio']:.2f}{before}")


def memory_and_start(options):
    """Five million keys of 100 bytes: what stays resident, and how long a start on that file takes."""
    count = int(5_000_000 * min(1, options.scale))
    server = servers.larder(options.disk, options.binary, "off")
    try:
        server.start()
        say(f"loading {count:,} keys of 100 bytes")
        argv = ["redis-benchmark", "-p", str(server.port), "-c", "50", "-P", "64", "-n", str(count), "-r", str(count * 100), "-q",
                "SET", "key:__rand_int__", "x" * 100]
        subprocess.run(argv, check=True, capture_output=True, timeout=3600)
        peak = server.rss()
        server.stop()
        started = server.start()
        options_mb = [int(server.command("CONFIG", "GET", name).split(b"\r\n")[-2]) / 2**20 for name in ("cache-memory", "journal-max")]
        return {"keys": count, "rss_mb": peak / 2**20, "options_mb": options_mb, "start_seconds": started,
                "rss_after_start_mb": server.rss() / 2**20}
    finally:
        server.remove()


def sweep_latency(options, load):
    """GET latency while a million expired keys are swept, beside the same load without anything to sweep."""
    count = int(1_000_000 * min(1, options.scale))
    server = servers.larder(options.disk, options.binary, "always")
    try:
        server.start()
        fill(server)
        idle = json.loads(subprocess.run([load, str(server.port), "50", "1", "10", str(KEYS), "64", "100", "key:"],
                                         check=True, capture_output=True, text=True).stdout)
        say(f"loading {count:,} keys that expire together")
        at = int(time.time()) + 60
        subprocess.run(["redis-benchmark", "-p", str(server.port), "-c", "50", "-P", "64", "-n", str(count), "-r", str(count * 100), "-q",
                        "SET", "gone:__rand_int__", "x" * 64, "EXAT", str(at)], check=True, capture_output=True, timeout=900)
        time.sleep(max(0, at - time.time()) + 0.5)
        began = time.monotonic()
        busy = json.loads(subprocess.run([load, str(server.port), "50", "1", "10", str(KEYS), "64", "100", "key:"],
                                         check=True, capture_output=True, text=True).stdout)
        left = count
        while left and time.monotonic() - began < 600:
            out = subprocess.run(["sqlite3", f"file:{server.folder}/larder.db?mode=ro",
                                  "select count(*) from larder_key where expire_at <> 0"], capture_output=True, text=True).stdout
            left = int(out or left)
            time.sleep(0.2)
        return {"keys": count, "seconds": time.monotonic() - began, "left": left,
                "get_p99_ms_idle": idle["p99_us"] / 1000, "get_p99_ms_sweeping": busy["p99_us"] / 1000,
                "get_per_s_idle": idle["ops"], "get_per_s_sweeping": busy["ops"]}
    finally:
        server.remove()


def machine():
    cpu = "unknown processor"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2]
    return f"{os.cpu_count()} cores ({cpu}), Linux {platform.release().split('-')[0]}, redis-server {version.lstrip('v=')}"


def markdown(report):
    lines = [f"Measured on {report['machine']}, {report['date']}; median of {report['rounds']} rounds (spread in brackets), "
             f"{CLIENTS} clients, {VALUE}-byte values, {KEYS:,} keys. Reproduce with `make bench`.", ""]
    rows = report["strings"] + report["collections"] + report["scripts"]
    if rows:
        lines += ["| test | redis-server /s | larder /s | ratio | p99 redis | p99 larder |", "|---|---:|---:|---:|---:|---:|"]
    durable = report.get("durable")
    before = any("before" in r for r in report["strings"])
    if before:
        lines[-2:] = ["| test | redis-server /s | larder /s | ratio | p99 redis | p99 larder | before /s | larder to before |",
                      "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for r in rows:
        a, b = r["redis"], r["larder"]
        lines.append(f"| {r['test']} | {a['rps']:,.0f} ({a['min']:,.0f}–{a['max']:,.0f}) | {b['rps']:,.0f} ({b['min']:,.0f}–{b['max']:,.0f}) "
                     f"| **{r['ratio']:.2f}** | {a['p99_ms']:.2f} ms | {b['p99_ms']:.2f} ms |")
        if "before" in r:
            was = r["before"]
            lines[-1] += f" {was['rps']:,.0f} ({was['min']:,.0f}–{was['max']:,.0f}) | **{b['rps'] / was['rps']:.2f}** |"
    if durable:
        lines += durable_bench.markdown(durable)
    if report.get("pops"):
        lines += pops_bench.markdown(report["pops"])
    if report.get("scale"):
        lines += scale_bench.markdown(report["scale"])
    m = report.get("memory")
    if m:
        lines += ["", f"Memory: {m['keys']:,} keys of 100 bytes loaded: {m['rss_mb']:.0f} MB resident; cache-memory and journal-max are "
                  f"{sum(m['options_mb']):.0f} MB. Start on that file: {m['start_seconds']:.2f} s."]
    s = report.get("sweep")
    if s:
        lines += ["", f"Sweep: {s['keys']:,} keys that expire in the same second are gone after {s['seconds']:.0f} s; GET p99 meanwhile "
                  f"{s['get_p99_ms_sweeping']:.2f} ms, without a sweep {s['get_p99_ms_idle']:.2f} ms."]
    if report.get("large"):
        lines += collections_bench.markdown(report["large"])
    if report.get("tables"):
        lines += tables_bench.markdown(report["tables"])
    if report.get("http"):
        lines += http_bench.markdown(report["http"])
    return "\n".join(lines) + "\n"


def write_docs(text):
    path = os.path.join(ROOT, "docs", "performance.md")
    with open(path) as f:
        page = f.read()
    begin, end = "<!-- bench: begin -->\n", "<!-- bench: end -->"
    head, rest = page.split(begin, 1)
    tail = rest.split(end, 1)[1]
    with open(path, "w") as f:
        f.write(head + begin + text + end + tail)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", default=os.path.join(ROOT, "build", "release", "larder"))
    p.add_argument("--before", metavar="BINARY", help="another larder, which strings, durable and pops measure as well")
    p.add_argument("--disk", default=tempfile.gettempdir(), help="folder on the disk to measure")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--scale", type=float, default=1.0, help="0.1 for a quick look")
    p.add_argument("--seconds", type=float, help="of each round of durable and pops, and of each step of scale")
    p.add_argument("--quick", action="store_true", help="one short round of each; durable takes less than three minutes")
    p.add_argument("--case", metavar="REGEX", help="of durable and pops, only the tests whose name has this: 'SET.*always'")
    p.add_argument("--only", choices=PARTS, action="append")
    p.add_argument("--docs", action="store_true", help="write the summary into docs/performance.md")
    options = p.parse_args()
    if options.quick:
        options.rounds, options.scale = 1, min(options.scale, 0.02)
    parts = options.only or PARTS
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # two thousand connections, which the servers and the load inherit
    report = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "rounds": options.rounds, "strings": [], "collections": [], "scripts": []}
    with tempfile.TemporaryDirectory() as folder:
        load = build_load(folder)
        if "strings" in parts:
            compare_strings(options, load, report["strings"])
        if "durable" in parts:
            report["durable"] = durable_bench.compare(options, servers, load, run_pair, say, keys=KEYS, value=VALUE, clients=CLIENTS)
        if "pops" in parts:
            report["pops"] = pops_bench.compare(options, servers, load, run_pair, say, keys=KEYS, value=VALUE, clients=CLIENTS)
        if "scale" in parts:
            report["scale"] = scale_bench.compare(options, servers, load, say)
        if "collections" in parts:
            collections_bench.compare(options, servers, run_pair, redis_benchmark, report["collections"], say)
        if "scripts" in parts:
            scripts_bench.compare(options, servers, run_pair, redis_benchmark, requests_for, fill, report["scripts"])
        if "tables" in parts:
            report["tables"] = tables_bench.compare(options, servers, load, redis_benchmark, say)
        if "large" in parts:
            report["large"] = collections_bench.large(options, servers, say)
        if "memory" in parts:
            report["memory"] = memory_and_start(options)
        if "sweep" in parts:
            report["sweep"] = sweep_latency(options, load)
        if "http" in parts:
            report["http"] = http_bench.compare(options, redis_benchmark, median, say)
    out = os.path.join(ROOT, "bench", "results")
    os.makedirs(out, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    with open(os.path.join(out, f"{stamp}.json"), "w") as f:
        json.dump(report, f, indent=2)
    rows = report["strings"] + report["collections"] + report["scripts"]
    if rows:
        with open(os.path.join(out, f"{stamp}.svg"), "w") as f:
            f.write(chart.ratios(rows))
    text = markdown(report)
    print(text)
    if options.docs:
        write_docs(text)


if __name__ == "__main__":
    main()
