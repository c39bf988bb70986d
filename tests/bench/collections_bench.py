"""Collections: the usual commands beside redis-server, and what large values cost."""
import socket
import statistics
import threading
import time

MEMBERS = 1_000_000

# name: redis-benchmark arguments
WRITES = {
    "LPUSH": ["-t", "lpush"],
    "RPOP": ["-t", "rpop"],
    "SADD": ["-t", "sadd"],
    "SPOP": ["-t", "spop"],
    "HSET": ["-t", "hset"],
    "ZADD": ["-t", "zadd"],
    "ZPOPMIN": ["-t", "zpopmin"],
}
READS = {
    "LRANGE 100": ["LRANGE", "list:__rand_int__", "0", "99"],
    "LRANGE 600": ["LRANGE", "biglist", "0", "599"],
    "HGETALL 10": ["HGETALL", "hash10:__rand_int__"],
    "HGETALL 100": ["HGETALL", "hash100:__rand_int__"],
    "HGET of 100": ["HGET", "hash100:__rand_int__", "field50"],
    "SMEMBERS 100": ["SMEMBERS", "set:__rand_int__"],
    "SISMEMBER of 100": ["SISMEMBER", "set:__rand_int__", "member50"],
    "ZRANGE 100": ["ZRANGE", "zset:__rand_int__", "0", "-1"],
    "ZRANK of 100": ["ZRANK", "zset:__rand_int__", "member50"],
}
READ_KEYS = 1000


def encode(*words):
    out = [b"*%d\r\n" % len(words)]
    for w in words:
        w = w if isinstance(w, bytes) else str(w).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(w), w))
    return b"".join(out)


class Client:
    """Just enough of RESP2 to wait for replies."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=600)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", buffering=1 << 20)

    def reply(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(line.decode())
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2] if rest != b"-1" else None
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest

    def __call__(self, *words):
        self.socket.sendall(encode(*words))
        return self.reply()

    def timed(self, *words):
        began = time.perf_counter()
        self(*words)
        return (time.perf_counter() - began) * 1000

    def many(self, commands, pipeline=200):
        for i in range(0, len(commands), pipeline):
            part = commands[i:i + pipeline]
            self.socket.sendall(b"".join(encode(*c) for c in part))
            for _ in part:
                self.reply()


def prepare(server):
    """A thousand collections of each size that the reading tests pick from."""
    c = Client(server)
    commands = []
    for i in range(READ_KEYS):
        n = "%012d" % i
        commands.append(["RPUSH", f"list:{n}", *(f"item{j}" for j in range(100))])
        commands.append(["HSET", f"hash10:{n}", *(w for j in range(10) for w in (f"field{j}", "x" * 20))])
        commands.append(["HSET", f"hash100:{n}", *(w for j in range(100) for w in (f"field{j}", "x" * 20))])
        commands.append(["SADD", f"set:{n}", *(f"member{j}" for j in range(100))])
        commands.append(["ZADD", f"zset:{n}", *(w for j in range(100) for w in (j * 1.5, f"member{j}"))])
    commands.append(["RPUSH", "biglist", *(f"item{j}" for j in range(1000))])
    c.many(commands, 50)


def compare(options, servers, run_pair, redis_benchmark, results, say):
    for level in ("always", "everysec"):
        pair = [servers.redis(options.disk, level), servers.larder(options.disk, options.binary, level)]
        try:
            for s in pair:
                s.start()
            for pipeline in (1, 16):
                n = int(100_000 * (1 if pipeline == 1 else 4) * options.scale)
                for name, arguments in WRITES.items():
                    run_pair(results, pair, f"{name} P{pipeline} {level}", options.rounds,
                             lambda s: redis_benchmark(s, arguments, pipeline, n))
            if level == "everysec":
                continue
            for s in pair:
                s.command("FLUSHALL")
                prepare(s)
            for pipeline in (1, 16):
                for name, command in READS.items():
                    n = int((50_000 if pipeline == 1 else 100_000) * options.scale)
                    run_pair(results, pair, f"{name} P{pipeline}", options.rounds,
                             lambda s: redis_benchmark(s, ["-r", str(READ_KEYS), *command], pipeline, n))
        finally:
            for s in pair:
                s.remove()


# --- large values

def fill_large(c, key, kind):
    step = 500
    commands = []
    for i in range(0, MEMBERS, step):
        names = [f"member:{j:07d}" for j in range(i, i + step)]
        if kind == "hash":
            commands.append(["HSET", key, *(w for n in names for w in (n, "value"))])
        elif kind == "set":
            commands.append(["SADD", key, *names])
        elif kind == "list":
            commands.append(["RPUSH", key, *names])
        else:
            commands.append(["ZADD", key, *(w for k, n in enumerate(names) for w in (i + k, n))])
    c.many(commands, 20)


def median_ms(c, times, *words):
    return statistics.median(c.timed(*words) for _ in range(times))


POSITIONS = [10, MEMBERS // 2, MEMBERS - 10]


def deep(c):
    """Milliseconds of reads at the front, the middle and the end of a million members."""
    out = {}
    for at in POSITIONS:
        member = f"member:{at:07d}"
        out[f"ZRANK at {at:,}"] = median_ms(c, 21, "ZRANK", "zset", member)
        out[f"ZREVRANK at {at:,}"] = median_ms(c, 21, "ZREVRANK", "zset", member)
        out[f"ZCOUNT up to {at:,}"] = median_ms(c, 21, "ZCOUNT", "zset", "-inf", at)
        out[f"ZRANGE at {at:,}"] = median_ms(c, 21, "ZRANGE", "zset", at, at + 5)
        out[f"LINDEX at {at:,}"] = median_ms(c, 21, "LINDEX", "list", at)
    out["ZREMRANGEBYRANK 10 in the middle"] = median_ms(c, 5, "ZREMRANGEBYRANK", "zset", MEMBERS // 2, MEMBERS // 2 + 9)
    for command, key in (("HLEN", "hash"), ("SCARD", "set"), ("LLEN", "list"), ("ZCARD", "zset")):
        out[f"{command}"] = median_ms(c, 21, command, key)
    return out


def constant_time(c):
    """Milliseconds of commands that must not depend on a million members."""
    out = {}
    c("RENAME", "hash", "hash1")
    c("RENAME", "hash1", "hash")
    for command in (["EXPIRE", "hash", "1000"], ["RENAME", "hash", "hash2"], ["SET", "hash2", "over"], ["UNLINK", "set"],
                    ["DEL", "list"], ["FLUSHDB"]):
        out[" ".join(command[:1])] = c.timed(*command)
    return out


def waiting(server, c, command):
    """The longest that another client waits for a PING while this one reads a large collection."""
    stop, longest = threading.Event(), [0.0]
    other = Client(server)

    def ping():
        while not stop.is_set():
            longest[0] = max(longest[0], other.timed("PING"))

    thread = threading.Thread(target=ping)
    thread.start()
    took = median_ms(c, 5, *command)
    stop.set()
    thread.join()
    return {"ms": took, "other_client_ms": longest[0]}


def large(options, servers, say):
    report = {}
    for s in (servers.redis(options.disk, "everysec"), servers.larder(options.disk, options.binary, "everysec")):
        try:
            s.start()
            c = Client(s)
            name = s.name.split()[0]
            for kind in ("hash", "set", "list", "zset"):
                say(f"{name}: a {kind} of {MEMBERS:,}")
                fill_large(c, kind, kind)
            c.many([["HSET", "hash100k", *(w for j in range(i, i + 500) for w in (f"f{j}", "value"))]
                    for i in range(0, 100_000, 500)])
            c.many([["SADD", "set100k", *(f"m{j}" for j in range(i, i + 500))] for i in range(0, 100_000, 500)])
            c.many([["RPUSH", "list100k", *(f"m{j}" for j in range(i, i + 500))] for i in range(0, 100_000, 500)])
            report[name] = {
                "deep": deep(c),
                "streams": {"HGETALL 100,000": waiting(s, c, ["HGETALL", "hash100k"]),
                            "SMEMBERS 100,000": waiting(s, c, ["SMEMBERS", "set100k"]),
                            "LRANGE 100,000": waiting(s, c, ["LRANGE", "list100k", "0", "-1"])},
                "constant": constant_time(c),
            }
        finally:
            s.remove()
    return report


def markdown(report):
    r, l = report["redis"], report["larder"]
    lines = ["", f"Keys with {MEMBERS:,} members, milliseconds of one command over loopback:", "",
             "| command | redis-server | larder |", "|---|---:|---:|"]
    for part in ("constant", "deep"):
        for name in r[part]:
            lines.append(f"| {name} | {r[part][name]:.2f} | {l[part][name]:.2f} |")
    lines += ["", "| reading 100,000 items | redis-server | larder | another client waits, redis-server | larder |",
              "|---|---:|---:|---:|---:|"]
    for name in r["streams"]:
        a, b = r["streams"][name], l["streams"][name]
        lines.append(f"| {name} | {a['ms']:.1f} ms | {b['ms']:.1f} ms | {a['other_client_ms']:.1f} ms | {b['other_client_ms']:.1f} ms |")
    return lines
