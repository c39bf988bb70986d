"""Tables and SQL: each line of what is promised for them, measured in one run, beside what it is compared with."""

import json
import os
import pathlib
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import databases, store  # noqa: E402
from harness import servers as harness_servers  # noqa: E402

SCHEMA = "id TEXT, name TEXT, city INTEGER, age INTEGER, PRIMARY KEY (id), INDEX by_city (city), INDEX by_age (age)"
CREATE = ["CREATE TABLE bench (id TEXT PRIMARY KEY, name TEXT, city INTEGER, age INTEGER)",
          "CREATE INDEX by_city ON bench (city)", "CREATE INDEX by_age ON bench (age)"]
RANGE = 100
CITIES = 1000


def rows(count, seed=1):
    """Rows as tests/bench/load.c makes them, each id once."""
    rnd = random.Random(seed)
    for i in rnd.sample(range(count), count):
        yield f"key:{i:012}", "x" * 64, rnd.randrange(CITIES), rnd.randrange(1_000_000)


class Run:
    """What a run shares: the options, the functions of bench.py, the lines that it has found."""

    def __init__(self, options, servers, load, redis_benchmark, say):
        self.options, self.servers, self.load, self.benchmark, self.say = options, servers, load, redis_benchmark, say
        self.keys = max(10_000, int(1_000_000 * min(1, options.scale)))
        self.lines = []

    def line(self, name, of, peer, ours, unit, target, ratio=None, better=">="):
        ratio = ours / peer if ratio is None else ratio
        self.lines.append({"test": name, "of": of, "peer": peer, "larder": ours, "unit": unit, "ratio": ratio,
                           "target": f"{better} {target}"})
        self.say(f"{name:44} {of} {peer:>12,.0f}  larder {ours:>12,.0f} {unit}  x {ratio:.2f} (target {better} {target})")

    def larder(self, *options, level="always"):
        return self.servers.larder(self.options.disk, self.options.binary, level, *options)

    def loaded(self, port, write, pipeline=1, seconds=None, keys=None, rate=0, prefix="key:"):
        """What tests/bench/load.c tells of so many seconds."""
        seconds = seconds or max(2, 10 * self.options.scale)
        argv = [self.load, str(port), "50", str(pipeline), str(seconds), str(keys or self.keys), "64", "0", prefix, write, str(rate)]
        done = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=seconds + 120).stdout)
        if done["errors"]:
            raise RuntimeError(f"{write}: {done['errors']} errors")
        return done

    def median(self, test):
        return statistics.median(test() for _ in range(self.options.rounds))

    def in_turn(self, *tests):
        """The medians of several tests that take turns."""
        found = [[] for _ in tests]
        for _ in range(self.options.rounds):
            for test, values in zip(tests, found):
                values.append(test())
        return [statistics.median(values) for values in found]


def expect(server, *words):
    reply = server.command(*words)
    if reply[:1] == b"-":
        raise RuntimeError(f"{' '.join(words)[:80]}: {reply.decode().strip()}")
    return reply


def fill_table(run, server):
    """Every row once."""
    with run.servers.connect(server.port) as c:
        batch = []
        for id, name, city, age in rows(run.keys):
            words = ["ROW.PUT", "bench", "FIELDS", "4", "id", id, "name", name, "city", str(city), "age", str(age)]
            batch.append(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
            if len(batch) == 1000:
                c.sendall(b"".join(batch))
                run.servers.read_replies(c, len(batch))
                batch.clear()
        c.sendall(b"".join(batch))
        run.servers.read_replies(c, len(batch))


def sqlite_file(run, folder):
    """The same rows in a table of SQLite, and the time that it took."""
    path = os.path.join(folder, "peer.db")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    for statement in CREATE:
        db.execute(statement)
    data = list(rows(run.keys))
    began = time.monotonic()
    db.execute("BEGIN")
    db.executemany("INSERT INTO bench VALUES (?, ?, ?, ?)", data)
    db.execute("COMMIT")
    return db, time.monotonic() - began


def hot_reads(run, server):
    n = int(200_000 * max(0.1, run.options.scale))
    for i in range(1000):
        expect(server, "HSET", f"hash:{i:012}", "id", f"key:{i:012}", "name", "x" * 64, "city", "12", "age", "345678")
    for pipeline in (1, 16):
        hash_rate, row_rate = run.in_turn(
            lambda: run.benchmark(server, ["-r", "1000", "HGETALL", "hash:__rand_int__"], pipeline, n)["rps"],
            lambda: run.benchmark(server, ["-r", "1000", "ROW.GET", "bench", "key:__rand_int__"], pipeline, n)["rps"])
        run.line(f"ROW.GET hot, pipeline {pipeline}", "HGETALL", hash_rate, row_rate, "/s", 0.9)


def durable_writes(run, server):
    redis = run.servers.redis(run.options.disk, "always")
    try:
        redis.start()
        for pipeline in (1, 16):
            theirs, ours = run.in_turn(lambda: run.loaded(redis.port, "multi", pipeline)["ops"],
                                       lambda: run.loaded(server.port, "row", pipeline)["ops"])
            run.line(f"durable ROW.PUT, 2 indexes, pipeline {pipeline}", "redis-server MULTI{HSET,SADD,ZADD}", theirs, ours, "/s", 1.0)
    finally:
        redis.remove()


def ranges(run, server, db):
    n = int(20_000 * max(0.1, run.options.scale))

    def direct():
        rnd, began = random.Random(2), time.monotonic()
        for _ in range(n // 10):
            at = f"key:{rnd.randrange(run.keys):012}"
            db.execute("SELECT * FROM bench WHERE id >= ? ORDER BY id LIMIT 100", (at,)).fetchall()
        return (n // 10) / (time.monotonic() - began)

    words = ["-r", str(run.keys), "ROW.QUERY", "bench", "FROM", "[key:__rand_int__", "LIMIT", str(RANGE)]
    theirs, ours = run.in_turn(direct, lambda: run.benchmark(server, words, 16, n)["rps"])
    run.line(f"range of {RANGE} rows", "sqlite3 in Python", theirs, ours, "/s", 0.5)


GROUP = "SELECT city, count(*), sum(age) FROM bench GROUP BY city"


def grouping(run, server, db):
    def direct():
        began = time.monotonic()
        db.execute(GROUP).fetchall()
        return time.monotonic() - began

    def ours():
        with run.servers.connect(server.port) as c:
            began = time.monotonic()
            c.sendall(b"*2\r\n$3\r\nSQL\r\n$%d\r\n%s\r\n" % (len(GROUP), GROUP.encode()))
            run.servers.read_replies(c, 1)
            return time.monotonic() - began

    theirs, mine = run.in_turn(direct, ours)
    run.line(f"GROUP BY over {run.keys:,} rows", "sqlite3", theirs * 1000, mine * 1000, "ms", 0.4, ratio=theirs / mine)


def beside(run, server, what):
    """The 99th percentile of SETs at a fixed rate while something goes on, in ms."""
    done = threading.Event()
    thread = threading.Thread(target=what, args=(done,))
    thread.start()
    try:
        return run.loaded(server.port, "set", rate=5000)["p99_us"] / 1000
    finally:
        done.set()
        thread.join()


def long_select(run, server):
    """SETs beside queries that read everything, one after the other."""
    def queries(done):
        while not done.is_set():
            with run.servers.connect(server.port) as c:
                c.sendall(b"*2\r\n$3\r\nSQL\r\n$%d\r\n%s\r\n" % (len(GROUP), GROUP.encode()))
                run.servers.read_replies(c, 1)

    quiet, busy = run.in_turn(lambda: beside(run, server, lambda done: done.wait()), lambda: beside(run, server, queries))
    run.line("SET p99 while a long SELECT runs", "SET p99 alone", quiet * 1000, busy * 1000, "us", 1.5, better="<=")


def index_build(run, server):
    times, state = [], {}

    def building(done):
        began = time.monotonic()
        while not done.is_set():
            began = time.monotonic()
            expect(server, "TABLE.ALTER", "bench", "ADD", "INDEX", "by_both", "(city, age)")
            while b"building" in expect(server, "TABLE.INFO", "bench"):
                time.sleep(0.005)
            times.append(time.monotonic() - began)
            expect(server, "TABLE.ALTER", "bench", "DROP", "INDEX", "by_both")

    quiet, busy = run.in_turn(lambda: beside(run, server, lambda done: done.wait()), lambda: beside(run, server, building))
    run.line("SET p99 while an index is built", "SET p99 alone", quiet * 1000, busy * 1000, "us", 2, better="<=")
    state["rate"] = run.keys / statistics.median(times)
    run.line("index build beside them", "100,000 rows/s", 100_000, state["rate"], "rows/s", 1.0)


def bulk_load(run, folder, seconds):
    path = os.path.join(folder, "rows.csv")
    with open(path, "w") as f:
        f.write("id,name,city,age\n")
        f.writelines(f"{id},{name},{city},{age}\n" for id, name, city, age in rows(run.keys))
    server = run.larder()
    try:
        server.start()
        expect(server, "TABLE.CREATE", "bench", SCHEMA)
        began = time.monotonic()
        subprocess.run([run.options.binary, "load", "bench", path, "--port", str(server.port)], check=True, capture_output=True,
                       timeout=3600)
        ours = time.monotonic() - began
    finally:
        server.remove()
    run.line(f"bulk load of {run.keys:,} rows", "sqlite3 executemany", seconds * 1000, ours * 1000, "ms", 2.5, better="<=")


def hash_tables(run):
    """HSET on a server without tables on hashes, with one elsewhere, with one that has the hash in an index."""
    n = int(100_000 * max(0.1, run.options.scale))
    plain, other, indexed = (run.larder() for _ in range(3))
    words = ["HSET", "user:__rand_int__", "name", "x" * 64, "age", "__rand_int__"]
    try:
        for s in (plain, other, indexed):
            s.start()
        expect(other, "TABLE.CREATE", "t", "id TEXT, age INTEGER, INDEX by_age (age)", "ON", "HASH", "PREFIX", "nobody:")
        expect(indexed, "TABLE.CREATE", "t", "id TEXT, age INTEGER, INDEX by_age (age)", "ON", "HASH", "PREFIX", "user:")
        a, b, c = run.in_turn(*(lambda s=s: run.benchmark(s, words, 16, n)["rps"] for s in (plain, other, indexed)))
        run.line("HSET beside a table of another prefix", "HSET without tables", a, b, "/s", 0.98)
        run.line("HSET with one index over it", "HSET without tables", a, c, "/s", 0.7)
    finally:
        for s in (plain, other, indexed):
            s.remove()


def postgres(run):
    """Prepared statements of pgbench, and ROW.PUT and ROW.GET over the same server, 50 clients each."""
    seconds, n = max(2, int(10 * run.options.scale)), int(50_000 * max(0.1, run.options.scale))
    with databases.KINDS["postgres"](durable=True) as server:
        server.query("CREATE TABLE app (id text PRIMARY KEY, name text, city bigint, age bigint); CREATE INDEX ON app (city);"
                     " CREATE INDEX ON app (age)")
        texts = {"ROW.PUT": "INSERT INTO app VALUES ('key:' || :n, '%s', :n %% 1000, :n) ON CONFLICT (id) DO UPDATE SET name = excluded.name,"
                            " city = excluded.city, age = excluded.age;" % ("x" * 64),
                 "ROW.GET": "SELECT * FROM app WHERE id = 'key:' || :n;"}
        own = {}
        for name, text in texts.items():
            script = server.folder / f"{name}.sql"
            script.write_text(f"\\set n random(1, 100000)\n{text}\n")
            out = server.run(f"{server.tools}/pgbench", "-n", "-M", "prepared", "-c", "50", "-j", "2", "-T", str(seconds), "-f", str(script),
                             "-h", str(server.folder), "-p", str(server.port), "-U", "larder", "postgres")
            own[name] = float(re.search(r"tps = ([\d.]+)", out)[1])
        with tempfile.TemporaryDirectory() as folder:
            data = store.KINDS["postgres"](on=server, mode="shared")
            with harness_servers.Larder(pathlib.Path(folder), [], data=data, binary=pathlib.Path(run.options.binary)) as ours:
                with ours.connect() as c:
                    c("TABLE.CREATE", "bench", SCHEMA)
                words = {"ROW.PUT": ["ROW.PUT", "bench", "FIELDS", "4", "id", "key:__rand_int__", "name", "x" * 64, "city", "12", "age", "345"],
                         "ROW.GET": ["ROW.GET", "bench", "key:__rand_int__"]}
                for name, command in words.items():
                    rate = run.benchmark(ours, ["-r", "100000", *command], 1, n)["rps"]
                    run.line(f"PostgreSQL, 50 clients, {name}", "pgbench, prepared", own[name], rate, "/s", 0.5)


def compare(options, servers, load, redis_benchmark, say):
    run = Run(options, servers, load, redis_benchmark, say)
    server = run.larder("--sql-timeout", "600s")
    with tempfile.TemporaryDirectory(dir=options.disk) as folder:
        db, seconds = sqlite_file(run, folder)
        try:
            server.start()
            expect(server, "TABLE.CREATE", "bench", SCHEMA)
            fill_table(run, server)
            hot_reads(run, server)
            ranges(run, server, db)
            grouping(run, server, db)
            long_select(run, server)
            index_build(run, server)
            durable_writes(run, server)
        finally:
            server.remove()
            db.close()
        bulk_load(run, folder, seconds)
    hash_tables(run)
    postgres(run)
    return run.lines


def markdown(lines):
    out = ["", "Tables and SQL, each beside what it is compared with:", "",
           "| test | compared with | theirs | larder | ratio | aim |", "|---|---|---:|---:|---:|---:|"]
    for r in lines:
        out.append(f"| {r['test']} | {r['of']} | {r['peer']:,.0f} {r['unit']} | {r['larder']:,.0f} {r['unit']} | **{r['ratio']:.2f}** | {r['target']} |")
    return out
