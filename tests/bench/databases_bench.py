#!/usr/bin/python3
"""Larder on PostgreSQL and MariaDB beside what an application would do itself on the same server: one statement for each
operation, 50 clients. Prints a table with ratios.

    databases_bench.py [--scale 0.1] [--only postgres|mariadb]
"""

import argparse
import os
import pathlib
import random
import re
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


def postgres_itself(server, seconds):
    """pgbench with a prepared upsert, and a prepared read, for each operation."""
    server.query("CREATE TABLE app (k bytea PRIMARY KEY, v bytea NOT NULL, expire_at bigint NOT NULL)")
    scripts = {
        "SET": f"INSERT INTO app VALUES (('key:' || :n)::bytea, '{VALUE}', 0) ON CONFLICT (k) DO UPDATE SET v = excluded.v;",
        "GET": "SELECT v FROM app WHERE k = ('key:' || :n)::bytea;",
    }
    rates = {}
    for name, text in scripts.items():
        script = server.folder / f"{name}.sql"
        script.write_text(f"\\set n random(1, {KEYS})\n{text}\n")
        out = server.run(
            f"{server.tools}/pgbench", "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds),
            "-f", str(script), "-h", str(server.folder), "-p", str(server.port), "-U", "larder", "postgres",
        )  # fmt: skip
        rates[name] = float(re.search(r"tps = ([\d.]+)", out)[1])
    return rates


def mariadb_itself(server, seconds):
    """mariadb-slap with an upsert, and a read, for each operation."""
    server.query("CREATE DATABASE app; CREATE TABLE app.kv (k VARBINARY(255) PRIMARY KEY, v BLOB NOT NULL,"
                 " expire_at BIGINT NOT NULL)")  # fmt: skip
    texts = {
        "SET": "INSERT INTO app.kv VALUES ('key:{}', '" + VALUE + "', 0) ON DUPLICATE KEY UPDATE v = VALUES(v)",
        "GET": "SELECT v FROM app.kv WHERE k = 'key:{}'",
    }
    rates = {}
    for name, text in texts.items():
        n = int(8000 * seconds)
        script = server.folder / f"{name}.sql"
        script.write_text(";".join(text.format(random.randrange(KEYS)) for _ in range(2000)))
        if os.getuid() == 0:
            shutil.chown(script, server.user)
        out = server.run(
            "mariadb-slap", "--no-defaults", f"--socket={server.socket}", "-u", "root", f"--concurrency={CLIENTS}",
            f"--number-of-queries={n}", f"--query={script}", "--delimiter=;", "--iterations=1",
        )  # fmt: skip
        rates[name] = n / float(re.search(r"Average number of seconds.*: ([\d.]+)", out)[1])
    return rates


ITSELF = {"postgres": postgres_itself, "mariadb": mariadb_itself}


def larder(data, requests):
    """redis-benchmark without and with a pipeline."""
    rates = {}
    with servers.Larder(tempfile.mkdtemp(), data=data, binary=BINARY) as server:
        for pipeline in (1, 16):
            for name in ("SET", "GET"):
                n = requests * (1 if pipeline == 1 else 6)
                out = subprocess.run(
                    ["redis-benchmark", "-p", str(server.port), "-c", str(CLIENTS), "-n", str(n), "-r", str(KEYS),
                     "-P", str(pipeline), "-d", str(len(VALUE)), "-t", name.lower(), "--csv"],
                    capture_output=True, text=True, timeout=600, check=True,
                ).stdout  # fmt: skip
                rates[name, pipeline] = float(out.strip().splitlines()[-1].split(",")[1].strip('"'))
    return rates


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--only", choices=list(databases.KINDS))
    options = options.parse_args()
    print("| | operation | pipeline | statements of its own /s | Larder /s | ratio |\n|---|---|---:|---:|---:|---:|")
    for kind in [options.only] if options.only else databases.KINDS:
        with databases.KINDS[kind](durable=True) as server:
            own = ITSELF[kind](server, max(2, int(10 * options.scale)))
            for mode in ("shared", "exclusive"):
                rates = larder(store.KINDS[kind](on=server, mode=mode), int(100_000 * options.scale))
                for (name, pipeline), rate in rates.items():
                    print(f"| {kind}, {mode} | {name} | {pipeline} | {own[name]:,.0f} | {rate:,.0f} |"
                          f" **{rate / own[name]:.2f}** |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
