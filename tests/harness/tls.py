"""Servers with TLS, and clients that are slow or broken on the wire."""

import socket
import ssl
import struct

from . import servers
from .resp import Closed, Connection


class Start:
    """Starts servers with a port for TLS, and one for HTTP over it: `tls_port` and `https_port` of the server."""

    def __init__(self, fleet, pair, authority):
        self.fleet = fleet
        self.pair = pair
        self.authority = authority

    def __call__(self, kind, *options, auth="no"):
        for _ in range(20):
            port, http = servers.free_port(), servers.free_port()
            more = ("--tls-http-port", str(http)) if kind is servers.Larder else ()
            server = self.fleet.new(
                kind, "--tls-port", str(port), "--tls-cert-file", self.pair.cert, "--tls-key-file", self.pair.key,
                "--tls-ca-cert-file", self.authority.cert, "--tls-auth-clients", auth, *more, *options,
            )  # fmt: skip
            try:
                server.start()
            except servers.StartError as e:
                self.fleet.started.remove(server)
                if not servers.IN_USE.search(e.log.encode()):
                    raise
                continue
            server.tls_port, server.https_port = port, http
            return server
        raise AssertionError("no free port for TLS")


def plain(server):
    """A TCP connection to the TLS port."""
    s = socket.create_connection(("127.0.0.1", server.tls_port), timeout=60)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def ended(s):
    """Reads to the end of a connection; what came before it."""
    data = b""
    while True:
        try:
            part = s.recv(65536)
        except ConnectionError:
            return data
        if not part:
            return data
        data += part


def reset(s):
    """Closes as a crash of the client's machine would: with RST."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.socket.close(s)


def shut_out(server, context):
    """TLS 1.3: the client is done before the server has looked at its certificate, and hears of it later."""
    try:
        with Connection(("127.0.0.1", server.tls_port), tls=context) as c:
            c("PING")
    except (ssl.SSLError, Closed, OSError):
        return True
    return False


def client_hello(authority):
    """The first message of a handshake."""
    outgoing = ssl.MemoryBIO()
    tls = authority.context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class ByteWise:
    """A client that puts its records on the wire a few bytes at a time."""

    def __init__(self, server, context, step):
        self.socket = plain(server)
        self.step = step
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.drive(self.tls.do_handshake)

    def flush(self):
        data = self.outgoing.read()
        for i in range(0, len(data), self.step):
            self.socket.sendall(data[i : i + self.step])

    def drive(self, action):
        while True:
            try:
                value = action()
                self.flush()
                return value
            except ssl.SSLWantReadError:
                self.flush()
                data = self.socket.recv(65536)
                assert data, "closed"
                self.incoming.write(data)

    def exchange(self, data, length):
        self.drive(lambda: self.tls.write(data))
        reply = b""
        while len(reply) < length:
            reply += self.drive(lambda: self.tls.read(65536))
        return reply
