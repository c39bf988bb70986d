"""A RESP client that keeps every byte of a reply, so that two servers can be compared byte for byte.

Deliberately small: blocking, no reconnects, no conversions. Real client libraries have tests of their own.
"""

import contextlib
import socket
import threading
import time

AGGREGATES = b"*%~>"
TIMEOUT = 60.0


class Closed(Exception):
    """The server closed the connection."""


class ProtocolError(Exception):
    """The server sent what no RESP decoder can read."""


class Reply:
    """One reply as a tree. kind is its RESP type byte; value is bytes for scalars (None for a null), or a
    list of replies for aggregates (a map's keys and values alternate); raw is what was on the wire."""

    __slots__ = ("kind", "value", "raw")

    def __init__(self, kind, value, raw):
        self.kind = kind
        self.value = value
        self.raw = raw

    @property
    def is_error(self):
        return self.kind in b"-!"

    def plain(self):
        """The reply as Python values: bytes, int, float, bool, None, list (maps: dict; errors: ServerError)."""
        if self.value is None:
            return None
        if self.kind == b":":
            return int(self.value)
        if self.kind == b",":
            return float(self.value)
        if self.kind == b"#":
            return self.value == b"t"
        if self.kind in b"-!":
            return ServerError(self.value)
        if self.kind == b"=":
            return self.value[4:]
        if self.kind == b"%":
            flat = [item.plain() for item in self.value]
            return dict(zip(flat[::2], flat[1::2]))
        if self.kind in AGGREGATES:
            return [item.plain() for item in self.value]
        return self.value

    def __repr__(self):
        return show(self.raw)


class ServerError(Exception):
    """An error reply. Equal to another with the same text."""

    def __init__(self, text):
        super().__init__(text.decode("utf-8", "backslashreplace"))
        self.text = text

    def __eq__(self, other):
        return isinstance(other, ServerError) and self.text == other.text

    def __hash__(self):
        return hash(self.text)


def show(raw, limit=400):
    """Bytes for a person: printable, one line, shortened in the middle."""
    text = repr(bytes(raw))[2:-1]
    if len(text) > limit:
        text = f"{text[:limit // 2]} ... {text[-limit // 2:]} ({len(raw)} bytes)"
    return text


def encode(args):
    """A command as the multibulk that clients send."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        if isinstance(arg, str):
            arg = arg.encode()
        elif isinstance(arg, (int, float)):
            arg = str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


class Decoder:
    """Reads replies from `recv`, a function that returns more bytes, or b"" at the end."""

    def __init__(self, recv):
        self.recv = recv
        self.buffer = bytearray()
        self.pos = 0

    def _fill(self):
        if self.pos:
            del self.buffer[: self.pos]
            self.pos = 0
        data = self.recv()
        if not data:
            raise Closed("connection closed by the server" + (f" within a reply: {show(self.buffer)}" if self.buffer else ""))
        self.buffer += data

    def _line(self):
        while True:
            end = self.buffer.find(b"\r\n", self.pos)
            if end >= 0:
                line = bytes(self.buffer[self.pos : end])
                self.pos = end + 2
                return line
            self._fill()

    def _exactly(self, count):
        parts = []
        while count:
            if self.pos == len(self.buffer):
                self._fill()
            part = bytes(self.buffer[self.pos : self.pos + count])
            self.pos += len(part)
            count -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        head = line + b"\r\n"
        if kind in (b"+", b"-", b":", b",", b"#", b"("):
            return Reply(kind, rest, head)
        if kind == b"_":
            return Reply(kind, None, head)
        if not kind or kind not in b"$!=*%~>":
            raise ProtocolError(f"no RESP type: {show(line)}")
        try:
            count = int(rest)
        except ValueError:
            raise ProtocolError(f"no length: {show(line)}") from None
        if count < 0:
            return Reply(kind, None, head)
        if kind in b"$!=":
            body = self._exactly(count + 2)
            if body[-2:] != b"\r\n":
                raise ProtocolError(f"no line end behind a bulk: {show(head + body)}")
            return Reply(kind, body[:-2], head + body)
        items = [self.read() for _ in range(count * 2 if kind == b"%" else count)]
        return Reply(kind, items, head + b"".join(item.raw for item in items))

    def pending(self):
        """What has been received and not decoded yet, taken away."""
        data = bytes(self.buffer[self.pos :])
        self.buffer.clear()
        self.pos = 0
        return data


class Connection:
    """A connection to a server at `address`: (host, port), or the path of a Unix socket. `tls` is an SSLContext."""

    def __init__(self, address, timeout=TIMEOUT, tls=None):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.decoder = Decoder(self._recv)

    def _recv(self):
        try:
            return self.socket.recv(1 << 20)
        except ConnectionError as e:
            raise Closed(str(e)) from None

    def send(self, data):
        try:
            self.socket.sendall(data)
        except ConnectionError as e:
            raise Closed(str(e)) from None

    def read(self):
        return self.decoder.read()

    def call(self, *args):
        """One command; its reply as a tree, errors included."""
        self.send(encode(args))
        return self.read()

    def __call__(self, *args):
        """One command; its reply as Python values. An error is raised."""
        value = self.call(*args).plain()
        if isinstance(value, ServerError):
            raise value
        return value

    def error(self, *args):
        """One command that must fail; the text of its error."""
        reply = self.call(*args)
        assert reply.is_error, f"{args!r} answered {reply!r} rather than an error"
        return reply.value.decode("utf-8", "backslashreplace")

    def pipeline(self, commands):
        """Sends all and reads all replies."""
        with self.sending(b"".join(encode(args) for args in commands)):
            return [self.read() for _ in commands]

    @contextlib.contextmanager
    def sending(self, data):
        """Sends while the body reads, so that neither side waits for the other with its buffers full."""
        if len(data) <= 32 * 1024:
            self.send(data)
            yield
            return
        thread = threading.Thread(target=self._send_quietly, args=(data,))
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def _send_quietly(self, data):
        try:
            self.send(data)
        except (Closed, OSError):
            pass  # whoever reads notices

    def read_available(self, wait=0.0):
        """Whatever arrives until nothing has for `wait` seconds: (bytes, whether the server closed)."""
        data = [self.decoder.pending()]
        before = self.socket.gettimeout()
        try:
            while True:
                self.socket.settimeout(max(wait, 0.000001))
                try:
                    part = self.socket.recv(1 << 20)
                except (TimeoutError, BlockingIOError):
                    return b"".join(data), False
                except ConnectionError:
                    return b"".join(data), True
                if not part:
                    return b"".join(data), True
                data.append(part)
        finally:
            self.socket.settimeout(before)

    def read_bytes(self, count, until_closed, limit=TIMEOUT):
        """At least `count` bytes (and the end, if asked), or what there is at the end or after `limit` seconds."""
        data = bytearray(self.decoder.pending())
        deadline = time.monotonic() + limit
        while len(data) < count or until_closed:
            part, closed = self.read_available(0.01)
            data += part
            if closed:
                return bytes(data), True
            if time.monotonic() > deadline:
                break
        return bytes(data), False

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
