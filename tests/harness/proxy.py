"""A TCP proxy between Larder and its database, which a test may cut, stall or make deaf. It runs as a process of its own,
so that it is not slowed down by the test.

    pass    bytes go through (at first)
    cut     all connections end with a reset; the next ones go through
    stall   nothing goes through, nothing ends: a network that has gone silent
    deaf    the database hears everything, and what it answers is thrown away
    refuse  all connections end, and new ones end at once
    only N  so many bytes of the database's answers go through; then as cut
    to N    as cut, and the next ones go to this port
"""

import asyncio
import ctypes
import pathlib
import signal
import socket
import struct
import subprocess
import sys

RESET = struct.pack("ii", 1, 0)


class Proxy:
    """`port` of 127.0.0.1 leads to the target's."""

    def __init__(self, target):
        def prepare():
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

        self.process = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__), str(target)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=prepare,
        )
        self.port = int(self.process.stdout.readline())

    def tell(self, mode):
        """Returns when it is so."""
        self.process.stdin.write(mode.encode() + b"\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"ok\n", mode

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Switch:
    """What the process does."""

    def __init__(self, target):
        self.target = target
        self.mode = "pass"
        self.left = 0
        self.open = asyncio.Event()
        self.open.set()
        self.writers = set()

    async def serve(self):
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        loop = asyncio.get_running_loop()
        commands = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
            self.change(line.decode().strip())
            print("ok", flush=True)

    def change(self, mode):
        mode, *number = mode.split()
        self.left = int(number[0]) if number else 0
        if mode == "to":
            self.target, mode = self.left, "cut"
        self.mode = "pass" if mode == "cut" else mode
        if mode == "stall":
            self.open.clear()
        else:
            self.open.set()
        if mode in ("cut", "refuse"):
            for writer in list(self.writers):
                self.end(writer)

    def end(self, writer):
        self.writers.discard(writer)
        sock = writer.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()

    async def accept(self, reader, writer):
        self.writers.add(writer)
        if self.mode == "refuse":
            return self.end(writer)
        await self.open.wait()
        try:
            to = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return self.end(writer)
        self.writers.add(to[1])
        await asyncio.gather(self.pump(reader, to[1], False), self.pump(to[0], writer, True))

    async def pump(self, reader, writer, answers):
        try:
            while data := await reader.read(1 << 16):
                await self.open.wait()
                if answers and self.mode == "deaf":
                    continue
                if answers and self.mode == "only":
                    data = data[: self.left]
                    self.left -= len(data)
                writer.write(data)
                await writer.drain()
                if self.mode == "only" and self.left == 0:
                    self.change("cut")
        except OSError:
            pass
        self.writers.discard(writer)
        writer.close()


if __name__ == "__main__":
    asyncio.run(Switch(int(sys.argv[1])).serve())
