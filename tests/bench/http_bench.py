"""HTTP: wrk (one thread, 50 connections, keep-alive) on Larder and on webdis in front of redis-server, in one run, and beside
them the Redis protocol of the same Larder.

redis-server behind webdis keeps nothing on disk; Larder's PUT is durable before it is answered.
"""
import json
import os
import re
import socket
import subprocess
import tempfile
import urllib.request

import servers

KEYS, CONNECTIONS, VALUE = 100_000, 50, 64

# The requests are made before the clock runs: Lua would be the bottleneck.
SCRIPT = """
local made, n = {}, 0
init = function()
    for i = 1, 20000 do
        local key = "key:" .. string.format("%%012d", math.random(0, %(keys)d - 1))
        made[i] = wrk.format("%(method)s", "%(path)s" .. key, {["Content-Type"] = "application/octet-stream"}, %(body)s)
    end
end
request = function()
    n = n %% 20000 + 1
    return made[n]
end
done = function(summary, latency)
    io.write(string.format("p50=%%d p99=%%d bad=%%d", latency:percentile(50), latency:percentile(99), summary.errors.status))
end
"""


class Webdis(servers.Server):
    """webdis with two threads, in front of a redis-server of its own."""

    def __init__(self, disk):
        folder, port = tempfile.mkdtemp(prefix="bench-webdis-", dir=disk), servers.free_port()
        redis_port = servers.free_port()
        self.redis = servers.Server("redis", ["redis-server", "--port", str(redis_port), "--bind", "127.0.0.1", "--save", "",
                                              "--appendonly", "no", "--dir", folder], folder, redis_port)
        settings = os.path.join(folder, "webdis.json")
        with open(settings, "w") as f:
            json.dump({"redis_host": "127.0.0.1", "redis_port": redis_port, "redis_auth": None, "http_host": "127.0.0.1",
                       "http_port": port, "threads": 2, "pool_size": 20, "daemonize": False, "websockets": False, "database": 0,
                       "verbosity": 1, "logfile": os.path.join(folder, "webdis.log")}, f)
        super().__init__("webdis", ["webdis", settings], folder, port)

    def start(self):
        self.redis.start()
        return super().start()

    def command(self, *words):
        """Is it there? It does not speak the Redis protocol."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/PING", timeout=60) as answer:
            return b"+PONG" if answer.status == 200 else b""

    def stop(self):
        super().stop()
        self.redis.stop()


def wrk(folder, port, method, path, seconds):
    body = f'string.rep("x", {VALUE})' if method == "PUT" else "nil"
    script = os.path.join(folder, "wrk.lua")
    with open(script, "w") as f:
        f.write(SCRIPT % {"keys": KEYS, "method": method, "path": path, "body": body})
    argv = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "-s", script, f"http://127.0.0.1:{port}"]
    out = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=seconds + 60).stdout
    told = {k: int(v) for k, v in re.findall(r"(p50|p99|bad)=(\d+)", out)}
    if told["bad"]:
        raise RuntimeError(f"{told['bad']} answers were errors: {out}")
    rate = float(re.search(r"Requests/sec:\s*([\d.]+)", out).group(1))
    return {"rps": rate, "p50_ms": told["p50"] / 1000, "p99_ms": told["p99"] / 1000}


def fill(port):
    """Every key once, so that every GET finds something."""
    value = b"x" * VALUE
    with socket.create_connection(("127.0.0.1", port), timeout=120) as s:
        for first in range(0, KEYS, 1000):
            s.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n" % (i, VALUE, value) for i in range(first, first + 1000)))
            missing = 1000 * len(b"+OK\r\n")
            while missing:
                missing -= len(s.recv(missing))


def compare(options, redis_benchmark, median, say):
    """Rows of GET and PUT: webdis, Larder over HTTP, Larder over RESP."""
    http_port = servers.free_port()
    webdis = Webdis(options.disk)
    larder = servers.larder(options.disk, options.binary, "always", "--http-port", str(http_port))
    rows, seconds = [], 5 * options.scale
    try:
        webdis.start()
        larder.start()
        fill(webdis.redis.port)
        fill(larder.port)
        for name, method, paths, command in (("GET", "GET", ("/GET/", "/keys/"), "get"), ("PUT", "PUT", ("/SET/", "/keys/"), "set")):
            runs = {"webdis": [], "larder": [], "resp": []}
            for _ in range(options.rounds):
                runs["webdis"].append(wrk(webdis.folder, webdis.port, method, paths[0], seconds))
                runs["larder"].append(wrk(larder.folder, http_port, method, paths[1], seconds))
                runs["resp"].append(redis_benchmark(larder, ["-t", command, "-r", str(KEYS)], 1, int(200_000 * options.scale)))
            row = {"test": name, **{k: median(v) for k, v in runs.items()}}
            row["to_webdis"] = row["larder"]["rps"] / row["webdis"]["rps"]
            row["to_resp"] = row["larder"]["rps"] / row["resp"]["rps"]
            rows.append(row)
            say(f"HTTP {name:4} webdis {row['webdis']['rps']:>8,.0f}/s  larder {row['larder']['rps']:>8,.0f}/s  x {row['to_webdis']:.2f}; "
                f"RESP {row['resp']['rps']:>8,.0f}/s  x {row['to_resp']:.2f}")
        return rows
    finally:
        larder.remove()
        webdis.remove()


def markdown(rows):
    lines = ["", f"HTTP: wrk with one thread and {CONNECTIONS} connections, {KEYS:,} keys, {VALUE}-byte values. webdis has two threads, and "
             "behind it a redis-server that keeps nothing on disk; Larder's PUT is durable (`durability always`). The last columns are "
             "Larder's own Redis protocol without pipelining, by redis-benchmark.", "",
             "| request | webdis /s | larder /s | ratio | p99 webdis | p99 larder | larder RESP /s | HTTP to RESP |",
             "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for r in rows:
        a, b, c = r["webdis"], r["larder"], r["resp"]
        lines.append(f"| {r['test']} | {a['rps']:,.0f} ({a['min']:,.0f}–{a['max']:,.0f}) | {b['rps']:,.0f} ({b['min']:,.0f}–{b['max']:,.0f}) "
                     f"| **{r['to_webdis']:.2f}** | {a['p99_ms']:.2f} ms | {b['p99_ms']:.2f} ms | {c['rps']:,.0f} | **{r['to_resp']:.2f}** |")
    return lines
