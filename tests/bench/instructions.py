#!/usr/bin/python3
"""Counts instructions of a command, by part of the server, under valgrind's callgrind.

Times on a machine that does other things differ from run to run; instructions hardly do. A release build runs with one
connection (P1: a batch is a command), with fifty that each send one command (P1 x50) and with fifty that send sixteen (P16),
on keys that are in memory. What the kernel does is not counted. Lines of code count for the file they were written in,
wherever the compiler put them.
"""
import argparse
import collections
import glob
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import scripts_bench
import servers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEYS, VALUE = 1000, b"x" * 64

MSET_KEYS = 10
new = itertools.count()

COMMANDS = {
    "GET": lambda i: (b"GET", b"key:%012d" % (i % KEYS)),
    "SET": lambda i: (b"SET", b"key:%012d" % (i % KEYS), VALUE),
    "INCR": lambda i: (b"INCR", b"num:%012d" % (i % KEYS)),
    "HSET": lambda i: (b"HSET", b"myhash", b"field:%012d" % (i % KEYS), VALUE),
    "ZADD": lambda i: (b"ZADD", b"myzset", b"%d" % (i * 7919 % 100003), b"member:%012d" % (i % KEYS)),
    "MSET": lambda i: (b"MSET", *(w for j in range(MSET_KEYS) for w in (b"key:%012d" % ((i * MSET_KEYS + j) % KEYS), VALUE))),
    "SADD": lambda i: (b"SADD", b"myset", b"member:%012d" % next(new)),
    "LPUSH": lambda i: (b"LPUSH", b"mylist", VALUE),
    "RPOP": lambda i: (b"RPOP", b"longlist"),
    "SPOP": lambda i: (b"SPOP", b"largeset"),
    "ZPOPMIN": lambda i: (b"ZPOPMIN", b"largezset"),
    **{name: lambda i, words=words: tuple(w.replace("__rand_int__", "%012d" % (i % KEYS)).encode() for w in words)
       for name, (words, _, _) in scripts_bench.TESTS.items()},
}

# A row with two indexes, and a hash with the same fields.
PEOPLE = b"first TEXT, last TEXT, address TEXT, ssn INTEGER, age INTEGER, PRIMARY KEY (first, last), INDEX a (ssn), INDEX b (age)"


def person(i):
    return (b"first", b"first%d" % (i % KEYS), b"last", b"last%d" % (i % KEYS), b"address", VALUE, b"ssn", b"%d" % i, b"age", b"42")


TABLES = {
    "HGETALL": lambda i: (b"HGETALL", b"person:%d" % (i % KEYS)),
    "HMSET": lambda i: (b"HMSET", b"person:%d" % (i % KEYS), *person(i)),
    "ROW.GET": lambda i: (b"ROW.GET", b"people", b"first%d" % (i % KEYS), b"last%d" % (i % KEYS)),
    "ROW.PUT": lambda i: (b"ROW.PUT", b"people", b"FIELDS", b"5", *person(i)),
}
COMMANDS.update(TABLES)


def prepare_tables(server):
    connection = servers.connect(server.port)
    send([connection], 1, 1, lambda i: (b"TABLE.CREATE", b"people", PEOPLE))
    for name in ("HMSET", "ROW.PUT"):
        send([connection], 16, KEYS // 16 + 1, COMMANDS[name])


# What fills the key that a pop takes from.
POPS = {
    "RPOP": lambda i: (b"LPUSH", b"longlist", VALUE),
    "SPOP": lambda i: (b"SADD", b"largeset", b"member:%012d" % next(new)),
    "ZPOPMIN": lambda i: (b"ZADD", b"largezset", b"%d" % (i * 7919 % 100003), b"member:%012d" % next(new)),
}

SHARES = {name: share for name, (_, _, share) in scripts_bench.TESTS.items()}

# clients, commands at a time
SHAPES = {"P1, one client": (1, 1), "P1, 50 clients": (50, 1), "P16, 50 clients": (50, 16), "P1, 800 clients": (800, 1)}

# The first that fits the source file, or the object for code that has none, is the group.
GROUPS = [
    ("parser", r"src/proto/resp\.c|src/server/resp_client\.c|src/base/num"),
    ("dispatch", r"src/exec/|src/stats/|src/command/table\.|histogram|src/base/clock"),
    ("scripts", r"src/script/|src/command/script/"),
    ("Lua", r"lua"),
    ("handler", r"src/command/"),
    ("lookup", r"src/engine/cache|src/base/hash|xxhash"),
    ("reply", r"src/proto/|src/server/held"),
    ("change set", r"src/engine/"),
    ("memtable put", r"src/journal/mem|src/memtable/"),
    ("journal encode", r"src/journal/encoding|src/base/crc32c"),
    ("store", r"src/store/|src/journal/|src/sql/"),
    ("sockets, batches", r"src/server/|src/net/|libevent"),
    ("buffers, arenas", r"src/base/"),
    ("allocator", r"jemalloc|malloc"),
    ("SQLite", r"sqlite"),
    ("C library", r"."),
]


def group_of(path):
    return next(name for name, pattern in GROUPS if re.search(pattern, path))


def read_profile(path):
    """Instructions of each (file, function) itself, from callgrind's own format."""
    names = {"ob": {}, "fl": {}, "fn": {}}
    cost = collections.Counter()
    at = {"ob": "", "fl": "", "fn": ""}
    skip = False

    def resolve(kind, text):
        m = re.match(r"\((\d+)\)(?: (.*))?$", text)
        if not m:
            return text
        if m.group(2) is not None:
            names[kind][m.group(1)] = m.group(2)
        return names[kind].get(m.group(1), "???")

    with open(path) as f:
        for line in f:
            if line[0].isdigit() or line[0] in "+-*":
                if skip:
                    skip = False
                    continue
                words = line.split()
                if len(words) > 1:
                    file = at["fl"] if at["fl"] != "???" else at["ob"]
                    cost[file, at["fn"]] += int(words[1])
                continue
            m = re.match(r"(ob|fl|fi|fe|fn|cob|cfi|cfl|cfn|calls)=(.*)$", line)
            if not m:
                continue
            key, text = m.groups()
            if key == "calls":
                skip = True
            elif key[0] == "c":
                resolve({"cob": "ob", "cfi": "fl", "cfl": "fl", "cfn": "fn"}[key], text)
            else:
                at[{"fi": "fl", "fe": "fl"}.get(key, key)] = resolve({"fi": "fl", "fe": "fl"}.get(key, key), text)
    return cost


class Counted:
    """A server under callgrind, and what it did between two moments."""

    def __init__(self, binary, durability):
        self.server = servers.larder(tempfile.gettempdir(), binary, durability)
        self.out = os.path.join(self.server.folder, "profile")
        self.server.argv = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes", "--fair-sched=yes",
                            "--compress-pos=no", f"--callgrind-out-file={self.out}", *self.server.argv]

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.remove()

    def control(self, *words):
        subprocess.run(["callgrind_control", *words, str(self.server.process.pid)], check=True, capture_output=True, timeout=120)

    def count(self, work):
        """{thread: {(file, function): instructions}}"""
        for old in glob.glob(self.out + ".*"):
            os.remove(old)
        self.control("-z")
        self.control("-i", "on")
        work()
        self.control("-i", "off")
        self.control("-d")
        return {int(p.rsplit("-", 1)[1]): read_profile(p) for p in glob.glob(self.out + ".*-*")}


def encode(words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def send(connections, pipeline, rounds, command):
    """Each connection a round, then all replies: what is sent together can be one batch."""
    n = 0
    for _ in range(rounds):
        for c in connections:
            c.sendall(b"".join(encode(command(n + i)) for i in range(pipeline)))
            n += pipeline
        for c in connections:
            servers.read_replies(c, pipeline)
    return n


def measure(counted, command, clients, pipeline, commands):
    connections = [servers.connect(counted.server.port) for _ in range(clients)]
    rounds = max(3, commands // (clients * pipeline))
    try:
        send(connections, pipeline, max(1, 2 * KEYS // (clients * pipeline)), command)
        return counted.count(lambda: send(connections, pipeline, rounds, command)), rounds * clients * pipeline
    finally:
        for c in connections:
            c.close()


def summarise(profiles, commands):
    """Per command: {group: instructions} of the loop's thread, and all of the other threads in one."""
    loop = min(profiles)
    groups = collections.Counter()
    for (file, _), n in profiles[loop].items():
        groups[group_of(file)] += n / commands
    groups["**loop**"] = sum(profiles[loop].values()) / commands
    groups["**store thread**"] = sum(sum(p.values()) for t, p in profiles.items() if t != loop) / commands
    return groups


def table(shape, results):
    names = [n for n, _ in GROUPS] + ["**loop**", "**store thread**"]
    lines = [f"| {shape} | " + " | ".join(results) + " |", "|---|" + "---:|" * len(results)]
    for name in names:
        if any(r[name] >= 0.5 for r in results.values()):
            lines.append(f"| {name} | " + " | ".join(f"{r[name]:,.0f}" for r in results.values()) + " |")
    return lines


def top(profiles, commands, n):
    for thread, profile in sorted(profiles.items()):
        by_function = collections.Counter()
        for (file, function), cost in profile.items():
            by_function[function, os.path.basename(file)] += cost
        total = sum(profile.values()) / commands
        if total < 1:
            continue
        print(f"  thread {thread}: {total:,.0f} a command", file=sys.stderr)
        for (function, file), cost in by_function.most_common(n):
            print(f"    {cost / commands:9,.1f}  {function} ({file})", file=sys.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--binary", default=os.path.join(ROOT, "build", "release", "larder"))
    p.add_argument("--commands", type=int, default=8000, help="of each kind and shape")
    p.add_argument("--durability", default="always")
    p.add_argument("--only", action="append", choices=list(COMMANDS))
    p.add_argument("--shape", action="append", choices=list(SHAPES))
    p.add_argument("--top", type=int, default=0, help="also the functions that cost most")
    options = p.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("instructions: valgrind is not installed")
    kinds = {k: f for k, f in COMMANDS.items() if not options.only or k in options.only}
    with Counted(options.binary, options.durability) as counted:
        if set(kinds) & set(scripts_bench.TESTS):
            scripts_bench.prepare(counted.server)
        if set(kinds) & set(TABLES):
            prepare_tables(counted.server)
        for shape, (clients, pipeline) in SHAPES.items():
            if options.shape and shape not in options.shape:
                continue
            results = {}
            for name, command in kinds.items():
                if name in POPS:
                    send([servers.connect(counted.server.port)], 100, (options.commands + 3 * KEYS) // 100, POPS[name])
                if name == "GET" or name in scripts_bench.TESTS and "GET" in name:
                    send([servers.connect(counted.server.port)], 16, KEYS // 16 + 1, COMMANDS["SET"])
                profiles, n = measure(counted, command, clients, pipeline, options.commands // SHARES.get(name, 1))
                results[name] = summarise(profiles, n)
                if options.top:
                    print(f"{name} {shape}", file=sys.stderr)
                    top(profiles, n, options.top)
            print("\n".join(table(shape, results)) + "\n", flush=True)


if __name__ == "__main__":
    main()
