"""Starts and stops the servers that the benchmark compares, on loopback, in temporary folders on one disk."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connect(port):
    c = socket.create_connection(("127.0.0.1", port), timeout=300)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return c


def read_replies(connection, n):
    """n replies, of lines, bulks and arrays of them; the last line."""
    data, at, reply = b"", 0, b""
    while n > 0:
        while True:
            end = data.find(b"\r\n", at)
            if end >= 0:
                reply = data[at:end]
                whole = end + 2
                if reply[:1] == b"$" and reply != b"$-1":
                    whole += int(reply[1:]) + 2
                if whole <= len(data):
                    break
            more = connection.recv(65536)
            if not more:
                raise ConnectionError("the server closed the connection")
            data += more
        if reply[:1] == b"-":
            raise RuntimeError(reply.decode())
        n += max(0, int(reply[1:])) - 1 if reply[:1] == b"*" else -1
        at = whole
    return reply


class Server:
    """One process; `name` is how the tables call it."""

    def __init__(self, name, argv, folder, port):
        self.name, self.folder, self.port = name, folder, port
        self.argv = argv
        self.process = None

    def start(self):
        log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(self.argv, cwd=self.folder, stdout=log, stderr=log)
        began = time.monotonic()
        while True:
            try:
                if self.command("PING").startswith(b"+PONG"):
                    return time.monotonic() - began
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() - began > 60:
                raise RuntimeError(f"{self.name} did not start; see {self.folder}/log")
            time.sleep(0.002)

    def command(self, *words):
        out = b"*%d\r\n" % len(words)
        for w in words:
            w = str(w).encode()
            out += b"$%d\r\n%s\r\n" % (len(w), w)
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as s:
            s.sendall(out)
            return s.recv(65536)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=120)
        self.process = None

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=120)

    def rss(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) * 1024
        return 0

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def redis(disk, fsync):
    folder, port = tempfile.mkdtemp(prefix="bench-redis-", dir=disk), free_port()
    argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
            "--appendfsync", fsync, "--dir", folder]
    return Server(f"redis {fsync}", argv, folder, port)


def larder(disk, binary, durability, *options):
    folder, port = tempfile.mkdtemp(prefix="bench-larder-", dir=disk), free_port()
    argv = [binary, "serve", "--port", str(port), "--http-port", "0", "--store", f"sqlite:{folder}/larder.db", "--durability", durability,
            "--enable-debug-command", "yes", *options]
    return Server(f"larder {durability}", argv, folder, port)


def contestants(options, level):
    """redis-server and Larder; with --before also the Larder that it is compared with."""
    found = [redis(options.disk, level), larder(options.disk, options.binary, level)]
    if options.before:
        found.append(larder(options.disk, options.before, level))
        found[-1].name = f"before {level}"
    return found


@contextlib.contextmanager
def running(found):
    """Starts them, and removes them whatever happened; nobody needs their data, so that they are not given time to end well."""
    try:
        for s in found:
            s.start()
        yield found
    finally:
        for s in found:
            s.kill()
            s.remove()
