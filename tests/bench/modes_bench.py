#!/usr/bin/python3
"""Reads in each mode through a Larder on a shared PostgreSQL and MariaDB with no, one and two replicas, beside what an
application does itself on the same server with one statement for each read (pgbench, mariadb-slap), in the same run.
50 clients. Prints a table with ratios, and then what is aimed at.

    modes_bench.py [--scale 0.1] [--only postgres|mariadb] [--rounds 3] [--replicas 2]
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile

from bench import build_load
from databases_bench import BINARY, CLIENTS, ITSELF, KEYS, VALUE, benchmark

from harness import replicas, servers, store, wait

HOT = 100  # keys that everybody reads
BOUND_MS = 1000
HOT_READ = f"GET bounded={BOUND_MS}"
MODES = ["strong", "session", f"bounded={BOUND_MS}", "eventual"]


class Table:
    def __init__(self):
        self.rates = {}
        print("| | replicas | read | keys | pipeline | /s | of one statement |\n|---|---:|---|---:|---:|---:|---:|")

    def row(self, kind, count, what, keys, pipeline, rate, peer):
        self.rates[kind, count, what, keys, pipeline] = rate
        ratio = f"**{rate / peer:.2f}**" if peer else ""
        print(f"| {kind} | {count} | {what} | {keys:,} | {pipeline} | {rate:,.0f} | {ratio} |", flush=True)


def started(cluster, data, count, mode, folders):
    """A Larder on so many of the replicas, whose connections read in this mode."""
    folder = folders.enter_context(tempfile.TemporaryDirectory())
    urls = [replica.url(data.name) for replica in cluster.replicas[:count]]
    options = ["--unixsocket", f"{folder}/socket", "--read-consistency", mode]
    options += [word for url in urls for word in ("--replica", url)]
    return folders.enter_context(servers.Larder(folder, options, data=data, binary=BINARY))


def rate_of(server, name, pipeline, requests, keys=KEYS):
    return benchmark(f"{server.folder}/socket", name, pipeline, requests * (1 if pipeline == 1 else 6), keys)


def in_rotation(server):
    with server.connect() as c:
        for line in c("INFO", "replication").decode().splitlines():
            if line.startswith("connected_slaves:"):
                return int(line.split(":")[1])
    return 0


def reads(cluster, data, table, peer, requests):
    """GET in each mode, of all keys and of some hot ones."""
    for count in range(len(cluster.replicas) + 1):
        for mode in MODES:
            with contextlib.ExitStack() as folders:
                server = started(cluster, data, count, mode, folders)
                wait.until(lambda: in_rotation(server) == count, "replicas are in rotation")
                for keys in (KEYS, HOT):
                    for pipeline in (1, 16):
                        rate = rate_of(server, "GET", pipeline, requests, keys)
                        table.row(cluster.kind, count, f"GET {mode}", keys, pipeline, rate, peer)


def mixed(load, server, seconds):
    """Every other command is a write: most reads come right behind one."""
    done = subprocess.run(
        [load, *map(str, (server.port, CLIENTS, 1, seconds, KEYS, len(VALUE), 50))], check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])["ops"]


def compared(measure, one, other, rounds):
    """What other does for each that one does: both in turn, the median of the rounds."""
    ratios = []
    for n in range(rounds):
        order = (one, other) if n % 2 else (other, one)
        rate = {server: measure(server) for server in order}
        ratios.append(rate[other] / rate[one])
    return statistics.median(ratios)


def behind_writes(cluster, data, options, load):
    """Session reads after writes and strong ones; and writes whose position is asked for and those where nobody does."""
    seconds = max(0.5, 8 * options.scale)
    with contextlib.ExitStack() as folders:
        strong, session = (started(cluster, data, len(cluster.replicas), m, folders) for m in ("strong", "session"))
        bare, asked = (started(cluster, data, 0, m, folders) for m in ("strong", "session"))
        write = lambda server: rate_of(server, "SET", 16, int(20_000 * options.scale) + 100)  # noqa: E731
        return {
            "half writes, half reads: session beside strong": compared(
                lambda server: mixed(load, server, seconds), strong, session, options.rounds),
            "SET: with positions beside without": compared(write, bare, asked, options.rounds),
        }  # fmt: skip


def aims(kind, rates, peer, ratios):
    """What was aimed at on two processors, and what it is."""
    yield "strong GET, pipeline 1, of one statement", rates[kind, 0, "GET strong", KEYS, 1] / peer, 1.0
    yield "strong GET, pipeline 16, of one statement", rates[kind, 0, "GET strong", KEYS, 16] / peer, 5.0
    for pipeline, aim in ((1, 3.0), (16, 15.0)):
        hot = [rate for (k, _, what, keys, p), rate in rates.items() if (k, what, keys, p) == (kind, HOT_READ, HOT, pipeline)]
        yield f"bounded GET of hot keys, pipeline {pipeline}, of one statement", max(hot) / peer, aim
    for (name, ratio), aim in zip(ratios.items(), (0.9, 0.98)):
        yield name, ratio, aim


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--replicas", type=int, default=2)
    options.add_argument("--only", choices=list(replicas.KINDS))
    options = options.parse_args()
    table, met = Table(), []
    with tempfile.TemporaryDirectory() as folder:
        load = build_load(folder)
        for kind in [options.only] if options.only else replicas.KINDS:
            cluster = replicas.KINDS[kind](options.replicas, durable=True)
            for replica in cluster.replicas:  # nothing is acknowledged there
                replica.durable = False
            with cluster:
                peer = ITSELF[kind](cluster.primary, max(2, int(10 * options.scale)))["GET"][0]
                table.row(kind, 0, "one statement", KEYS, 1, peer, peer)
                data = store.KINDS[kind](on=cluster.primary)  # over its Unix socket, as the statements
                with contextlib.ExitStack() as folders:  # the keys that are read
                    rate_of(started(cluster, data, 0, "strong", folders), "SET", 16, int(60_000 * options.scale) + 100)
                cluster.follow(limit=600)
                reads(cluster, data, table, peer, int(60_000 * options.scale) + 100)
                met += [(kind, *aim) for aim in aims(kind, table.rates, peer, behind_writes(cluster, data, options, load))]
    print("\n| | ratio | is | aim |\n|---|---|---:|---:|")
    for kind, name, ratio, aim in met:
        print(f"| {kind} | {name} | **{ratio:.2f}**{'' if ratio >= aim else ' (missed)'} | {aim} |")


if __name__ == "__main__":
    sys.exit(main())
