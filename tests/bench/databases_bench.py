#!/usr/bin/python3
"""Larder on PostgreSQL and MariaDB beside what an application would do itself on the same server: one statement for each
operation, 50 clients, over a Unix socket in either way. Prints a table with ratios, and what an operation costs in processor
time: of the database, of Larder and of the program that makes the load. Where other work shares the processors, those tell more
than rates do.

    databases_bench.py [--scale 0.1] [--only postgres|mariadb]
"""

import argparse
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import databases, servers, store  # noqa: E402

CLIENTS = 50
KEYS = 100_000
VALUE = "x" * 64
BINARY = servers.ROOT / "build" / "release" / "larder"


def ticks(pid):
    """Seconds that a process and its children have used."""
    total = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == pid:
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def used():
    """Seconds of processor time of the programs that made load and have ended."""
    mine = resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime


class Costs:
    """Microseconds of processor time for each operation: of these processes, and of the load."""

    def __init__(self, *pids):
        self.pids = pids

    def __enter__(self):
        self.before = [*map(ticks, self.pids), used()]
        return self

    def __exit__(self, *_):
        after = [*map(ticks, self.pids), used()]
        self.seconds = [b - a for a, b in zip(self.before, after)]

    def each(self, operations):
        micros = [s / operations * 1e6 for s in self.seconds]
        return f"{sum(micros):.1f} (" + " + ".join(f"{m:.1f}" for m in micros) + ")"


def postgres_itself(server, seconds):
    """pgbench with a prepared upsert, or a prepared read, for each operation."""
    server.query("CREATE TABLE app (k bytea PRIMARY KEY, v bytea NOT NULL, expire_at bigint NOT NULL);"
                 "CREATE TABLE counter (k bytea PRIMARY KEY, n bigint NOT NULL);"
                 "CREATE TABLE field (k bytea, f bytea, v bytea NOT NULL, PRIMARY KEY (k, f))")  # fmt: skip
    scripts = {
        "SET": f"INSERT INTO app VALUES (('key:' || :n)::bytea, '{VALUE}', 0) ON CONFLICT (k) DO UPDATE SET v = excluded.v;",
        "GET": "SELECT v FROM app WHERE k = ('key:' || :n)::bytea;",
        "INCR": "INSERT INTO counter VALUES (('key:' || :n)::bytea, 1) ON CONFLICT (k) DO UPDATE SET n = counter.n + 1 RETURNING n;",
        "HSET": f"INSERT INTO field VALUES (('key:' || :n)::bytea, 'field', '{VALUE}')"
                " ON CONFLICT (k, f) DO UPDATE SET v = excluded.v RETURNING xmax = 0;",
    }
    rates = {}
    for name, text in scripts.items():
        script = server.folder / f"{name}.sql"
        script.write_text(f"\\set n random(1, {KEYS})\n{text}\n")
        with Costs(server.process.pid) as costs:
            out = server.run(
                f"{server.tools}/pgbench", "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds),
                "-f", str(script), "-h", str(server.folder), "-p", str(server.port), "-U", "larder", "postgres",
            )  # fmt: skip
        done = int(re.search(r"actually processed: (\d+)", out)[1])
        rates[name] = float(re.search(r"tps = ([\d.]+)", out)[1]), costs.each(done)
    return rates


def questions(server):
    return int(server.query("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])


def mariadb_itself(server, seconds):
    """mariadb-slap with an upsert, or a read, for each operation."""
    server.query("CREATE DATABASE app; CREATE TABLE app.kv (k VARBINARY(255) PRIMARY KEY, v BLOB NOT NULL,"
                 " expire_at BIGINT NOT NULL); CREATE TABLE app.counter (k VARBINARY(255) PRIMARY KEY, n BIGINT NOT NULL);"
                 " CREATE TABLE app.field (k VARBINARY(255), f VARBINARY(255), v BLOB NOT NULL, PRIMARY KEY (k, f))")  # fmt: skip
    texts = {
        "SET": "INSERT INTO app.kv VALUES ('key:{}', '" + VALUE + "', 0) ON DUPLICATE KEY UPDATE v = VALUES(v)",
        "GET": "SELECT v FROM app.kv WHERE k = 'key:{}'",
        "INCR": "INSERT INTO app.counter VALUES ('key:{}', 1) ON DUPLICATE KEY UPDATE n = n + 1",
        "HSET": "INSERT INTO app.field VALUES ('key:{}', 'field', '" + VALUE + "') ON DUPLICATE KEY UPDATE v = VALUES(v)",
    }
    rates = {}
    asked = questions(server)
    for name, text in texts.items():
        n = int(8000 * seconds)
        script = server.folder / f"{name}.sql"
        script.write_text(";".join(text.format(random.randrange(KEYS)) for _ in range(2000)))
        if os.getuid() == 0:
            shutil.chown(script, server.user)
        with Costs(server.process.pid) as costs:
            out = server.run(
                "mariadb-slap", "--no-defaults", f"--socket={server.socket}", "-u", "root", f"--concurrency={CLIENTS}",
                f"--number-of-queries={n}", f"--query={script}", "--delimiter=;", "--iterations=1",
                "--create-schema=app", "--no-drop",  # without a database that is there it connects in vain, and does not tell
            )  # fmt: skip
        asked, before = questions(server), asked
        assert asked - before >= n, f"mariadb-slap has run {asked - before} statements of {n}"
        rates[name] = n / float(re.search(r"Average number of seconds.*: ([\d.]+)", out)[1]), costs.each(n)
    return rates


ITSELF = {"postgres": postgres_itself, "mariadb": mariadb_itself}


# What redis-benchmark is asked for. Its own test of HSET has all clients at one hash.
COMMANDS = {"HSET": ["HSET", "hash:__rand_int__", "field", VALUE]}


def benchmark(socket, name, pipeline, requests, keys=KEYS):
    """Operations a second, by redis-benchmark."""
    out = subprocess.run(
        ["redis-benchmark", "-s", socket, "-c", str(CLIENTS), "-n", str(requests), "-r", str(keys),
         "-P", str(pipeline), "-d", str(len(VALUE)), "--csv", *COMMANDS.get(name, ["-t", name.lower()])],
        capture_output=True, text=True, timeout=600, check=True,
    ).stdout  # fmt: skip
    return float(out.strip().splitlines()[-1].split(",")[1].strip('"'))


def larder(database, data, requests):
    """redis-benchmark without and with a pipeline."""
    rates = {}
    folder = tempfile.mkdtemp()
    socket = f"{folder}/socket"
    with servers.Larder(folder, ["--unixsocket", socket], data=data, binary=BINARY) as server:
        for pipeline in (1, 16):
            for name in ("SET", "GET", "INCR", "HSET"):
                n = requests * (1 if pipeline == 1 else 6)
                with Costs(database.process.pid, server.process.pid) as costs:
                    rate = benchmark(socket, name, pipeline, n)
                rates[name, pipeline] = rate, costs.each(n)
    return rates


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--only", choices=list(databases.KINDS))
    options = options.parse_args()
    print("| | operation | pipeline | statements of its own /s | Larder /s | ratio | µs of its own: database + load |"
          " µs of Larder's: database + Larder + load |\n|---|---|---:|---:|---:|---:|---:|---:|")  # fmt: skip
    for kind in [options.only] if options.only else databases.KINDS:
        with databases.KINDS[kind](durable=True) as server:
            own = ITSELF[kind](server, max(2, int(10 * options.scale)))
            for mode in ("shared", "exclusive"):
                rates = larder(server, store.KINDS[kind](on=server, mode=mode), int(100_000 * options.scale))
                for (name, pipeline), (rate, cost) in rates.items():
                    print(f"| {kind}, {mode} | {name} | {pipeline} | {own[name][0]:,.0f} | {rate:,.0f} |"
                          f" **{rate / own[name][0]:.2f}** | {own[name][1]} | {cost} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
