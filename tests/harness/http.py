"""A Larder with an HTTP port, and a client that sends exactly what a test says."""

import base64
import http.client
import json
import socket
import urllib.parse

from . import servers


class HttpLarder(servers.Larder):
    """The server under test, with its HTTP port."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.http_port = None

    def start(self):
        if self.http_port is None:
            self.http_port = servers.free_port()
        return super().start()

    def argv(self):
        return [*super().argv(), "--http-port", str(self.http_port)]

    def _listening_or_ended(self):
        return self.process.poll() is not None or (
            super()._listening_or_ended() and servers.owns_port(self.process.pid, self.http_port)
        )

    def http(self, **more):
        return Http(self.http_port, **more)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http_port}"


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()
        self.will_close = response.will_close

    @property
    def json(self):
        assert self.headers["Content-Type"] == "application/json", self
        return json.loads(self.body)

    @property
    def etag(self):
        return self.headers["ETag"]

    @property
    def error(self):
        """Its code; the message must be there, and a sentence."""
        document = self.json
        assert document["message"], self
        return document["error"]

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:500]!r}"


class Http:
    """One connection, kept alive."""

    def __init__(self, port, headers=None, timeout=60):
        self.port = port
        self.headers = headers or {}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def __call__(self, method, path, body=None, headers=None, **query):
        """body: bytes are sent as they are, anything else as JSON."""
        sent = {**self.headers, **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        if query:
            path += "?" + urllib.parse.urlencode(query)
        self.connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in sent.items():
            self.connection.putheader(name, value)
        if body is not None:
            self.connection.putheader("Content-Length", str(len(body)))
        self.connection.endheaders(body)
        return Answer(self.connection.getresponse())

    def get(self, path, **more):
        return self("GET", path, **more)

    def put(self, path, body=None, **more):
        return self("PUT", path, body, **more)

    def patch(self, path, body=None, **more):
        return self("PATCH", path, body, **more)

    def post(self, path, body=None, **more):
        return self("POST", path, body, **more)

    def delete(self, path, **more):
        return self("DELETE", path, **more)

    def command(self, *words):
        """A Redis command; its result."""
        answer = self.post("/", list(words))
        assert answer.status == 200, answer
        return answer.json["result"]

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def quote(name):
    """A key, field or member as a segment of a path."""
    return urllib.parse.quote(name, safe="")


def b64(data):
    return base64.b64encode(data).decode()


class Raw:
    """A socket, for what no HTTP library would send."""

    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.received = b""

    def send(self, data):
        self.socket.sendall(data)

    def answer(self, method="GET"):
        """The next answer; None when the connection has ended."""
        while b"\r\n\r\n" not in self.received:
            if not self._receive():
                return None
        head, _, rest = self.received.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        self.received = rest
        while len(self.received) < length:
            assert self._receive(), "the connection ended within a body"
        body, self.received = self.received[:length], self.received[length:]
        return int(lines[0].split()[1]), headers, body

    def _receive(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self.received += data
        return bool(data)

    def ended(self):
        """Waits for the end of the connection; what had not been read until then."""
        while self._receive():
            pass
        return self.received

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
