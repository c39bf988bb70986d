"""A proxy in front of PostgreSQL or MariaDB that takes features away: it rewrites the texts of statements on their way
to the server, so that what is refused or done by halves is the server's own doing. One for each set of rules.
"""

import contextlib
import re
import socket
import struct
import threading


class Rewriter:
    """`rules` are pairs of a pattern and what stands in its place, for every statement; `greeting` is the version that a
    MariaDB tells of itself before anybody has asked."""

    def __init__(self, database, rules, greeting=None):
        self.database = database
        self.rules = [(re.compile(pattern.encode()), text.encode()) for pattern, text in rules]
        self.greeting = greeting and greeting.encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, name):
        plain = {"sslmode": "disable", "gssencmode": "disable"} if self.database.kind == "postgres" else {"ssl-mode": "disabled"}
        return self.database.url(name, tcp=True, **plain).replace(f":{self.database.port}/", f":{self.port}/")

    def close(self):
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- on the wire

    def rewrite(self, text):
        for pattern, instead in self.rules:
            text = pattern.sub(instead, text)
        return text

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.database.port))
            except OSError:
                return
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            requests = self._postgres if self.database.kind == "postgres" else self._mariadb
            threading.Thread(target=self._pump, args=(requests, client, server), daemon=True).start()
            threading.Thread(target=self._pump, args=(self._answers, server, client), daemon=True).start()

    def _pump(self, how, source, target):
        with contextlib.suppress(OSError, EOFError):
            how(source.makefile("rb"), target)
        for s in (source, target):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _read(stream, n):
        data = stream.read(n)
        if len(data) < n:
            raise EOFError
        return data

    def _answers(self, stream, target):
        if self.greeting:  # a packet: length, number, the protocol's version, the server's version
            head = self._read(stream, 4)
            body = self._read(stream, int.from_bytes(head[:3], "little"))
            body = body[:1] + self.greeting + body[body.index(b"\0", 1) :]
            target.sendall(len(body).to_bytes(3, "little") + head[3:] + body)
        while data := stream.read1(1 << 16):
            target.sendall(data)

    def _postgres(self, stream, target):
        size = self._read(stream, 4)  # the first message has no kind
        target.sendall(size + self._read(stream, struct.unpack("!I", size)[0] - 4))
        while True:
            head = self._read(stream, 5)
            body = self._read(stream, struct.unpack("!I", head[1:])[0] - 4)
            if head[:1] == b"Q":
                body = self.rewrite(body[:-1]) + b"\0"
            elif head[:1] == b"P":
                name, text, types = body.split(b"\0", 2)
                body = b"\0".join((name, self.rewrite(text), types))
            target.sendall(head[:1] + struct.pack("!I", len(body) + 4) + body)

    def _mariadb(self, stream, target):
        while True:
            head = self._read(stream, 4)
            body = self._read(stream, int.from_bytes(head[:3], "little"))
            if head[3] == 0 and body[:1] == b"\x03" and len(body) < 1 << 20:
                body = body[:1] + self.rewrite(body[1:])
            target.sendall(len(body).to_bytes(3, "little") + head[3:] + body)
