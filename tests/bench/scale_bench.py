"""Durable SETs of random keys out of many, while their number grows: what a write costs when the data does not fit memory.

Both servers take turns, step by step, on the same disk. A step writes a tenth of the keys, 32 at a time, and then runs for some
seconds at 1 and at 16. Beside rates: the bytes that went to the disk for each byte of keys and values that was sent, and what
Larder's INFO tells of where the time went.
"""

import os
import re
import subprocess
import time

from durable_bench import run

KEYS, STEPS, CLIENTS, VALUE, MEMORY = 20_000_000, 10, 50, 64, "512mb"
KEY_BYTES = len("key:") + 12
GROW, OTHERS = 32, (1, 16)
# What is aimed at with all keys: ratios by pipeline, p99 in ms, bytes to the disk for a byte of data.
AIMS, P99_AIM, BYTES_AIM = {1: 1.0, 16: 0.5}, 100, 20
LONGEST, IDLE_SECONDS = 600, 120

# Histograms of INFO whose sum over a step is told, if the server has them; all end in _usec.
TIMES = re.compile(r"^(\w*(?:read|apply|pass|checkpoint|sync|commit|throttle|wait|log|redo)\w*)_usec$")
# Sizes and states of INFO at the end of a step.
STATES = ["apply_lag_ms", "journal_bytes", "memtable_bytes", "memtable_rows", "store_wal_bytes", "store_bytes", "redo_bytes", "log_bytes"]


def written(server):
    """Bytes that the server's process made the system write to disk."""
    with open(f"/proc/{server.process.pid}/io") as f:
        fields = dict(line.split(": ") for line in f.read().splitlines())
    return int(fields["write_bytes"]) - int(fields["cancelled_write_bytes"])


def device_written(folder):
    """Bytes that the disk of this folder was given by everybody; None where the system does not tell."""
    at = os.stat(folder).st_dev
    try:
        with open(f"/sys/dev/block/{os.major(at)}:{os.minor(at)}/stat") as f:
            return int(f.read().split()[6]) * 512
    except OSError:
        return None


def info(server):
    text = server.command("INFO", "larder").decode(errors="replace")
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def total(field):
    """The sum of a histogram, or a number."""
    m = re.search(r"sum=(\d+)", field)
    return int(m.group(1)) if m else int(field) if field.isdigit() else 0


def spent(before, after):
    """Seconds of each kind between two INFOs."""
    out = {}
    for name, value in after.items():
        m = TIMES.match(name)
        if m:
            seconds = (total(value) - total(before.get(name, "0"))) / 1e6
            if seconds > 0:
                out[m.group(1)] = seconds
    return out


def memory_options(binary):
    """One option for all memory; the row cache's on a server that has no such option."""
    text = subprocess.run([binary, "serve", "--help"], capture_output=True, text=True).stdout
    return ["--memory", MEMORY] if re.search(r"^ +--memory ", text, re.M) else ["--cache-memory", MEMORY]


class Step:
    """One server's part of a step: rates by pipeline, and what growing wrote and took."""

    def __init__(self, server, load, keys, number, seconds):
        shape = {"keys": keys, "value": VALUE, "clients": CLIENTS}
        larder, count = not server.name.startswith("redis"), keys // STEPS
        before, disk, device = info(server) if larder else {}, written(server), device_written(server.folder)
        began = time.monotonic()
        self.rates = {GROW: run(load, server, GROW, LONGEST, count=count, seed=1000 * number, **shape)}
        self.seconds = time.monotonic() - began
        data = count * (KEY_BYTES + VALUE)
        self.amplification = (written(server) - disk) / data
        self.device = (device_written(server.folder) - device) / data if device is not None else None
        after = info(server) if larder else {}
        self.times, self.states = spent(before, after), {k: after[k] for k in STATES if k in after}
        for pipeline in OTHERS:
            self.rates[pipeline] = run(load, server, pipeline, seconds, seed=1000 * number + pipeline, **shape)
            data += self.rates[pipeline]["rps"] * seconds * (KEY_BYTES + VALUE)
        self.data = data
        self.keys = int(server.command("DBSIZE")[1:].split(b"\r")[0])
        self.rss = server.rss()


def rested(server):
    """Seconds until everything is in the tables, and the bytes that it took to the disk."""
    began, disk = time.monotonic(), written(server)
    while time.monotonic() - began < IDLE_SECONDS and int(info(server).get("memtable_rows", 0)) > 0:
        time.sleep(0.2)
    return {"seconds": time.monotonic() - began, "bytes": written(server) - disk}


def row(number, steps):
    """A line of the report, and of the table: redis-server beside Larder at the same step."""
    redis, larder = steps[0], steps[1]
    return {"step": number, "keys": larder.keys, "rss": larder.rss, "redis_rss": redis.rss,
            "rates": {p: {"redis": redis.rates[p], "larder": larder.rates[p],
                          "ratio": larder.rates[p]["rps"] / redis.rates[p]["rps"]} for p in sorted(larder.rates)},
            "amplification": larder.amplification, "redis_amplification": redis.amplification,
            "device": larder.device, "redis_device": redis.device,
            "seconds": larder.seconds, "times": larder.times, "states": larder.states}


def compare(options, servers, load, say):
    keys = int(KEYS * options.scale) // STEPS * STEPS
    seconds = options.seconds or max(0.5, 10 * min(1, options.scale))
    memory = memory_options(options.binary)
    pair = [servers.redis(options.disk, "always"), servers.larder(options.disk, options.binary, "always", *memory)]
    report = {"keys": keys, "seconds": seconds, "options": " ".join(memory), "rows": []}
    with servers.running(pair):
        sent = 0
        report["apply_lag"] = pair[1].command("CONFIG", "GET", "apply-lag").decode().split("\r\n")[-2]
        for number in range(1, STEPS + 1):
            steps = [Step(s, load, keys, number, seconds) for s in pair]
            report["rows"].append(row(number, steps))
            sent += steps[1].data
            say(line(report["rows"][-1]))
        report["rested"] = rested(pair[1])
        report["amplification"] = written(pair[1]) / sent
    return report


def line(r):
    rates = "  ".join(f"P{p} {x['redis']['rps']:,.0f}/{x['larder']['rps']:,.0f} x {x['ratio']:.2f} p99 {x['redis']['p99_ms']:.1f}/"
                      f"{x['larder']['p99_ms']:.1f} ms" for p, x in r["rates"].items())
    return f"{r['keys']:>10,} keys  {rates}  bytes {r['redis_amplification']:.1f}/{r['amplification']:.1f}  " + times_of(r)


def times_of(r):
    return ", ".join(f"{name} {seconds / r['seconds']:.0%}" for name, seconds in r["times"].items())


def markdown(report):
    lines = ["", f"Durable SET of random keys out of {report['keys']:,}, {CLIENTS} clients, {VALUE}-byte values, {report['options']}, apply-lag "
             f"{report['apply_lag']}; redis-server / Larder. {GROW} at a time while a tenth of the keys is written, 1 and 16 for "
             f"{report['seconds']:g} s behind it. Bytes: to the disk for each byte of keys and values. Times: of the step's, by INFO.", "",
             "| keys | " + " | ".join(f"SET/s P{p} | p99 ms P{p}" for p in report["rows"][0]["rates"]) + " | bytes | MB resident | times |",
             "|---:|" + "---:|" * (2 * len(report["rows"][0]["rates"]) + 2) + "---|"]
    for r in report["rows"]:
        cells = [f"{x['redis']['rps']:,.0f} / {x['larder']['rps']:,.0f} **{x['ratio']:.2f}** | "
                 f"{x['redis']['p99_ms']:.1f} / {x['larder']['p99_ms']:.1f}" for x in r["rates"].values()]
        lines.append(f"| {r['keys']:,} | " + " | ".join(cells) + f" | {r['redis_amplification']:.1f} / {r['amplification']:.1f} "
                     f"| {r['redis_rss'] / 2**20:,.0f} / {r['rss'] / 2**20:,.0f} | {times_of(r)} |")
    last, rest = report["rows"][-1], report["rested"]
    lines += ["", f"Then everything was in the tables after {rest['seconds']:.1f} s and another {rest['bytes'] / 2**20:,.0f} MB; with that, and "
              f"from the start, {report['amplification']:.1f} bytes went to the disk for each byte. "
              "At the end of the last step: " + ", ".join(f"{k} {v}" for k, v in last["states"].items()) + "."]
    if last["device"] is not None:
        lines += ["", f"The disk itself counted {last['redis_device']:.1f} / {last['device']:.1f} bytes a byte in the last step, of all processes."]
    aims = [f"P{p} >= {aim}: **{last['rates'][p]['ratio']:.2f}**" for p, aim in AIMS.items()]
    lines += ["", f"Aims: {', '.join(aims)}; p99 of P16 <= {P99_AIM} ms: **{last['rates'][16]['larder']['p99_ms']:.0f}**; bytes a byte "
              f"<= {BYTES_AIM}: **{report['amplification']:.1f}**."]
    return lines
