"""Requests that a peer sends who means harm, or does not know better: what two servers might read differently is refused,
nothing behind a refusal is run, limits hold, and the server stays well."""

import random
import re
import socket
import threading

import pytest

from harness import wait
from harness.http import HttpLarder

LIMIT = 60.0
HOST = b"Host: localhost\r\n"
PUT = b"PUT /keys/k HTTP/1.1\r\n" + HOST + b"Content-Type: application/octet-stream\r\n"
PROBE = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
# Behind a request that is refused: must not run.
SMUGGLED = PUT.replace(b"/keys/k", b"/keys/smuggled") + b"Content-Length: 1\r\n\r\nx"


def chunked(*headers, body=b"3\r\nabc\r\n0\r\n\r\n"):
    return PUT + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + body


def get(*headers):
    return b"GET /healthz HTTP/1.1\r\n" + HOST + b"".join(h + b"\r\n" for h in headers) + b"\r\n"


TE = b"Transfer-Encoding: chunked"

# What comes first, and the status that ends the connection.
REFUSED = {
    # Two lengths, or none that makes sense.
    "content-length twice": (PUT + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    "content-length differs": (PUT + b"Content-Length: 3\r\nContent-Length: 40\r\n\r\nabc", 400),
    "content-length list": (PUT + b"Content-Length: 3, 3\r\n\r\nabc", 400),
    "content-length plus": (PUT + b"Content-Length: +3\r\n\r\nabc", 400),
    "content-length minus": (PUT + b"Content-Length: -3\r\n\r\nabc", 400),
    "content-length hex": (PUT + b"Content-Length: 0x3\r\n\r\nabc", 400),
    "content-length words": (PUT + b"Content-Length: 3 3\r\n\r\nabc", 400),
    "content-length empty": (PUT + b"Content-Length: \r\n\r\nabc", 400),
    "content-length 2^64": (PUT + b"Content-Length: 18446744073709551616\r\n\r\nabc", 400),
    "content-length 2^64-1": (PUT + b"Content-Length: 18446744073709551615\r\n\r\nabc", 400),
    "content-length folded": (PUT + b"Content-Length:\r\n 3\r\n\r\nabc", 400),
    "content-length folded on": (PUT + b"Content-Length: 3\r\n 3\r\n\r\nabc", 400),
    "content-length space colon": (PUT + b"Content-Length : 3\r\n\r\nabc", 400),
    "content-length tab colon": (PUT + b"Content-Length\t: 3\r\n\r\nabc", 400),
    "content-length indented": (PUT + b" Content-Length: 3\r\n\r\nabc", 400),
    "content-length too large": (PUT + b"Content-Length: 1073741825\r\n\r\nabc", 413),
    "both lengths": (chunked(b"Content-Length: 3", TE), 400),
    "both lengths, reversed": (chunked(TE, b"Content-Length: 3"), 400),
    # Codings that others might not see, or see otherwise.
    "coding twice": (chunked(TE, TE), 400),
    "coding and identity": (chunked(TE, b"Transfer-Encoding: identity"), 400),
    "identity and coding": (chunked(b"Transfer-Encoding: identity", TE), 400),
    "coding identity": (chunked(b"Transfer-Encoding: identity"), 501),
    "coding gzip first": (chunked(b"Transfer-Encoding: gzip, chunked"), 501),
    "coding gzip last": (chunked(b"Transfer-Encoding: chunked, gzip"), 501),
    "coding chunked chunked": (chunked(b"Transfer-Encoding: chunked, chunked"), 501),
    "coding xchunked": (chunked(b"Transfer-Encoding: xchunked"), 501),
    "coding chunkedx": (chunked(b"Transfer-Encoding: chunkedx"), 501),
    "coding quoted": (chunked(b'Transfer-Encoding: "chunked"'), 501),
    "coding parameter": (chunked(b"Transfer-Encoding: chunked;q=1"), 501),
    "coding empty": (chunked(b"Transfer-Encoding: "), 501),
    "coding vertical tab": (chunked(b"Transfer-Encoding: \x0bchunked"), 501),
    "coding vertical tab behind": (chunked(b"Transfer-Encoding: chunked\x0b"), 400),
    "coding space colon": (chunked(b"Transfer-Encoding : chunked"), 400),
    "coding folded": (chunked(b"Transfer-Encoding:\r\n chunked"), 400),
    "coding folded on": (chunked(TE + b"\r\n , identity"), 400),
    "coding in HTTP/1.0": (chunked(TE).replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    # Chunks.
    "chunk line feed": (chunked(TE, body=b"3\nabc\n0\n\n"), 400),
    "chunk extension line feed": (chunked(TE, body=b"3;a\nabc\r\n0\r\n\r\n"), 400),
    "chunk negative": (chunked(TE, body=b"-3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk 0x": (chunked(TE, body=b"0x3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk indented": (chunked(TE, body=b" 3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk overflow": (chunked(TE, body=b"10000000000000003\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk 2^64-1": (chunked(TE, body=b"ffffffffffffffff\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk too long": (chunked(TE, body=b"3\r\nabcd\r\n0\r\n\r\n"), 400),
    "chunk without end": (chunked(TE, body=b"3\r\nabc0\r\n\r\n"), 400),
    "chunk zeros without end": (chunked(TE, body=b"0" * 30 + b"3\r\nabc\r\n0\r\n\r\n"), 400),
    "chunk size ends otherwise": (chunked(TE, body=b"3\rxabc\r\n0\r\n\r\n"), 400),
    "chunk ends otherwise": (chunked(TE, body=b"3\r\nabcxx0\r\n\r\n"), 400),
    "last chunk ends otherwise": (chunked(TE, body=b"3\r\nabc\r\n0\rx\rx"), 400),
    "trailers end otherwise": (chunked(TE, body=b"3\r\nabc\r\n0\r\nA: b\r\n\rx"), 400),
    "head ends otherwise": (PROBE[:-1] + b"x", 400),
    "chunk no number": (chunked(TE, body=b"\r\nabc\r\n0\r\n\r\n"), 400),
    # Lines.
    "carriage returns": (b"GET /healthz HTTP/1.1\rHost: localhost\r\r", 400),
    "carriage return in a value": (get(b"A: b\rc"), 400),
    "nul in a value": (get(b"A: b\0c"), 400),
    "nul in a name": (get(b"A\0: b"), 400),
    "nul in the target": (PROBE.replace(b"/healthz", b"/heal\0thz"), 400),
    "control in the target": (PROBE.replace(b"/healthz", b"/heal\x01thz"), 400),
    "space in the target": (PROBE.replace(b"/healthz", b"/heal thz"), 400),
    "folded": (get(b"A: b\r\n c"), 400),
    "folded first": (b"GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n", 400),
    "no colon": (get(b"foo"), 400),
    "no name": (get(b": foo"), 400),
    "space in a name": (get(b"a b: c"), 400),
    "parentheses in a name": (get(b"a(b): c"), 400),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "two hosts": (get(b"Host: y"), 400),
    "two authorizations": (get(b"Authorization: Bearer x", b"Authorization: Bearer y"), 400),
    "expects a miracle": (PUT + b"Expect: miracle\r\nContent-Length: 3\r\n\r\nabc", 417),
    # Other versions, methods, protocols.
    "HTTP/2.0": (PROBE.replace(b"1.1", b"2.0"), 505),
    "HTTP/1.10": (PROBE.replace(b"1.1", b"1.10"), 505),
    "HTTP/0.9": (b"GET /healthz\r\n", 400),
    "http/1.1": (PROBE.replace(b"HTTP", b"http"), 400),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 501),
    "lower case": (PROBE.replace(b"GET", b"get"), 501),
    "no such method": (PROBE.replace(b"GET", b"GETGETGETGETGET"), 501),
    "tab behind the method": (PROBE.replace(b"GET ", b"GET\t"), 501),
    "RESP": (b"*1\r\n$4\r\nPING\r\n", 501),
    "TLS": (bytes.fromhex("16030100c8010000c40303") + bytes(190), 501),
    "all bytes": (bytes(range(256)) * 4, 501),
    # Limits.
    "long target": (b"GET /" + b"a" * 17000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    "long header": (get(b"A: " + b"a" * 33000), 431),
    "many headers": (get(*[b"A: b"] * 10000), 431),
    "lines before the request": (b"\r\n" * 20000, 431),
    "endless chunk extension": (chunked(TE, body=b"3;" + b"a" * 100000), 431),
}

# What is unusual and all right, and the statuses of its answers (the last is the probe's).
TAKEN = {
    "coding in capitals": (chunked(b"TRANSFER-ENCODING: CHUNKED"), [201]),
    "chunk extensions": (chunked(TE, body=b'3;a=b;c="d"\r\nabc\r\n0;x\r\n\r\n'), [201]),
    "chunk zeros": (chunked(TE, body=b"0000003\r\nabc\r\n000\r\n\r\n"), [201]),
    "trailers": (chunked(TE, body=b"3\r\nabc\r\n0\r\nContent-Length: 50\r\nTransfer-Encoding: x\r\nHost: y\r\n\r\n"), [201]),
    "body in capitals": (PUT.replace(b"Content-Type", b"CONTENT-TYPE") + b"CONTENT-LENGTH:3\r\n\r\nabc", [201]),
    "length with zeros": (PUT + b"Content-Length: 0003 \r\n\r\nabc", [201]),
    "GET with a body": (get(b"Content-Length: 3")[:-2] + b"\r\nabc", [200]),
    "GET with chunks": (get(TE) + b"3\r\nabc\r\n0\r\n\r\n", [200]),
    "HTTP/1.0 that stays": (b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", [200]),
    "HTTP/1.2": (PROBE.replace(b"1.1", b"1.2"), [200]),
    "lines before": (b"\r\n\r\n" + PROBE, [200]),
    "upgrade": (get(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"), [200]),
    "a proxy's target": (PROBE.replace(b" /", b" http://elsewhere/"), [200]),
    "empty header": (get(b"A:", b"B: "), [200]),
    "expects to go on, has gone on": (PUT + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", [201]),
    "expects to go on, no body": (get(b"Expect: 100-continue"), [200]),
    "line ends in a key": (PROBE.replace(b"/healthz", b"/keys/%0d%0aX-Injected:%20y"), [404]),
}


class Raw:
    """A connection, read as strictly as answers have to be."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
        self.data = b""

    def send(self, data):
        """False: the server has hung up meanwhile."""
        try:
            self.socket.sendall(data)
            return True
        except ConnectionError:
            return False

    def fill(self):
        try:
            part = self.socket.recv(1 << 16)
        except ConnectionError:
            part = b""
        self.data += part
        return bool(part)

    def answer(self, head_only=False):
        """(status, headers, body), or None at the end."""
        while b"\r\n\r\n" not in self.data:
            if not self.fill():
                assert not self.data, self.data
                return None
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        status = re.fullmatch(r"HTTP/1\.1 ([1-5][0-9][0-9]) [A-Za-z ]+", lines[0])
        assert status, lines[0]
        headers = {}
        for line in lines[1:]:
            name, value = re.fullmatch(r"([A-Za-z-]+): ([\x20-\x7e]*)", line).groups()
            assert name.lower() not in headers or name == "WWW-Authenticate", line
            headers[name.lower()] = value
        code = int(status[1])
        if code < 200 or code in (204, 304) or head_only:
            return code, headers, b""
        length = int(headers["content-length"])
        while len(self.data) < length:
            assert self.fill(), "the body is cut short"
        body, self.data = self.data[:length], self.data[length:]
        return code, headers, body

    def final(self):
        """The next answer that is one: whether the server says that one may go on depends on what it has read."""
        while (answer := self.answer())[0] == 100:
            pass
        return answer

    def all(self):
        """Every answer up to the end, which is the server's doing."""
        answers = []
        while (answer := self.answer()) is not None:
            answers.append(answer)
        return answers

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Site:
    def __init__(self, fleet, *options):
        self.server = fleet.new(HttpLarder, *options).start()

    def raw(self):
        return Raw(self.server.http_port)

    def unharmed(self):
        """It answers, and nothing that was smuggled has run."""
        with self.server.connect() as c:
            assert c("EXISTS", "smuggled") == 0
        with self.raw() as r:
            r.send(PROBE)
            assert r.answer()[0] == 200


@pytest.fixture(scope="module")
def site(shared_fleet):
    site = Site(shared_fleet)
    yield site
    site.server.stop()


def pieces(data, generator):
    """The same bytes in a few pieces."""
    cuts = sorted(generator.randrange(len(data) + 1) for _ in range(generator.randrange(1, 6)))
    return [data[a:b] for a, b in zip([0] + cuts, cuts + [len(data)]) if a < b]


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("what", REFUSED)
def test_refused(site, what, split):
    data, status = REFUSED[what]
    generator = random.Random(what)
    with site.raw() as r:
        for piece in pieces(data + SMUGGLED + PROBE, generator) if split else [data + SMUGGLED + PROBE]:
            if not r.send(piece):
                break
        answers = r.all()
    assert [a[0] for a in answers] == [status]
    assert answers[0][1]["connection"] == "close"
    assert answers[0][1]["content-type"] == "application/json" and b'"error"' in answers[0][2]
    site.unharmed()


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("what", TAKEN)
def test_taken(site, what, split):
    data, statuses = TAKEN[what]
    generator = random.Random(what)
    with site.server.connect() as c:
        c("DEL", "k")
    with site.raw() as r:
        for piece in pieces(data + PROBE, generator) if split else [data + PROBE]:
            assert r.send(piece)
        answers = [r.final() for _ in statuses + [200]]
    assert [a[0] for a in answers] == statuses + [200]
    assert "x-injected" not in answers[0][1]
    if 201 in statuses:
        with site.server.connect() as c:
            assert c("GET", "k") == b"abc"


# --- one at a time


def test_byte_by_byte(site):
    data = chunked(TE, body=b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n") + PUT + b"Content-Length: 2\r\n\r\nxy" + PROBE
    with site.raw() as r:
        r.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(data)):
            assert r.send(data[i : i + 1])
        assert [r.answer()[0] for _ in range(3)][1:] == [200, 200]


def test_pipelined_bodies(site):
    """Each body is its own request's, in order, to the last byte."""
    n = 300
    data = b""
    for i in range(n):
        body = b"%d" % i * (i % 7) + b"\r\n\r\nDELETE /keys/k HTTP/1.1\r\n\r\n"
        if i % 2:
            data += PUT.replace(b"/keys/k", b"/keys/p%d" % i) + b"Content-Length: %d\r\n\r\n" % len(body) + body
        else:
            data += PUT.replace(b"/keys/k", b"/keys/p%d" % i) + TE + b"\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    with site.raw() as r:
        sender = threading.Thread(target=r.send, args=(data,))
        sender.start()
        assert [r.answer()[0] for _ in range(n)] == [201] * n
        sender.join()
    with site.server.connect() as c:
        for i in range(n):
            assert c("GET", f"p{i}") == b"%d" % i * (i % 7) + b"\r\n\r\nDELETE /keys/k HTTP/1.1\r\n\r\n"
            c("DEL", f"p{i}")


def test_told_to_go_on(site):
    with site.raw() as r:
        r.send(PUT + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert r.answer()[0] == 100
        r.send(b"abc" + PROBE)
        assert r.answer()[0] in (200, 201) and r.answer()[0] == 200


def test_told_to_go_on_behind_others(site):
    with site.raw() as r:
        r.send(PROBE * 3 + PUT + b"Expect: 100-continue\r\n" + TE + b"\r\n\r\n")
        assert [r.answer()[0] for _ in range(4)] == [200, 200, 200, 100]
        r.send(b"3\r\nabc\r\n0\r\n\r\n" + PROBE)
        assert r.answer()[0] in (200, 201) and r.answer()[0] == 200


def test_not_told_to_go_on(site):
    """A body that will not be taken is not asked for; HTTP/1.0 does not know the word."""
    with site.raw() as r:
        r.send(PUT + b"Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n")
        assert [a[0] for a in r.all()] == [413]
    with site.raw() as r:
        r.send(PUT.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc")
        assert [a[0] for a in r.all()] in ([200], [201])


def test_head(site):
    """No body, whatever there would have been, and the next answer is found."""
    with site.server.connect() as c:
        c("SET", "k", "v" * 1000)
    with site.raw() as r:
        for target in b"/keys/k", b"/keys/none", b"/healthz", b"/no/such/path/at/all", b"/keys/%zz", b"/keys/k?x=y":
            asked = b" %b HTTP/1.1\r\n" % target + HOST + b"Content-Length: 4\r\n\r\nbody"
            r.send(b"HEAD" + asked + b"GET" + asked)
            head, whole = r.answer(head_only=True), r.answer()
            assert head[0] == whole[0] and head[1]["content-length"] == whole[1]["content-length"], target
            assert int(head[1]["content-length"]) == len(whole[2]) > 0


def test_http_1_0(site):
    with site.raw() as r:
        r.send(b"GET /healthz HTTP/1.0\r\n\r\n" + SMUGGLED)
        answers = r.all()
        assert [a[0] for a in answers] == [200] and answers[0][1]["connection"] == "close"
    with site.raw() as r:
        r.send(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n")
        answers = r.all()
        assert [a[1]["connection"] for a in answers] == ["keep-alive", "close"]
    site.unharmed()


def test_nothing_runs_behind_close(site):
    for header in b"Connection: close", b"connection: CLOSE", b"Connection: keep-alive, close":
        with site.raw() as r:
            r.send(get(header) + SMUGGLED)
            assert [a[0] for a in r.all()] == [200]
    site.unharmed()


def test_half_a_request(site):
    """An end in the middle of a request is no request."""
    whole = SMUGGLED[:-1]
    for cut in range(1, len(whole), 7):
        with site.raw() as r:
            r.send(whole[:cut])
            r.socket.shutdown(socket.SHUT_WR)
            assert [a[0] for a in r.all()] in ([], [400])
    with site.raw() as r:
        r.send(chunked(TE, body=b"3\r\nabc\r\n").replace(b"/keys/k", b"/keys/smuggled"))
        r.socket.shutdown(socket.SHUT_WR)
        assert [a[0] for a in r.all()] in ([], [400])
    site.unharmed()


def test_refusal_is_read_by_who_sends_on(fleet):
    """The reason arrives although the client has sent a megabyte that nobody read."""
    site = Site(fleet, "--http-max-body", "1kb")
    for _ in range(5):
        with site.raw() as r:
            assert r.send(PUT + b"Content-Length: 100000000\r\n\r\n" + b"x" * 4000000)
            assert r.answer()[0] == 413 and r.answer() is None


# --- resources


def rss(server):
    with server.connect() as c:
        return int(re.search(rb"used_memory_rss:(\d+)", c("INFO", "memory"))[1])


@pytest.mark.slow
def test_small_chunks_take_no_memory(fleet):
    """A body may be in a million chunks, but what stands around them is not kept without end."""
    site = Site(fleet, "--http-max-body", "8mb")
    before = rss(site.server)
    n = 150000
    with site.raw() as r:
        assert r.send(chunked(TE, body=b"1\r\nx\r\n" * n + b"0\r\n\r\n"))
        assert r.answer()[0] == 201
    with site.server.connect() as c:
        assert c("STRLEN", "k") == n
    with site.raw() as r:
        r.send(chunked(TE, body=b"1\r\nx\r\n" * 4000000))
        assert [a[0] for a in r.all()] == [413]
    with site.raw() as r:
        r.send(chunked(TE, body=(b"1;" + b"y" * 10000 + b"\r\nx\r\n") * 2000))
        assert [a[0] for a in r.all()] == [413]
    assert rss(site.server) - before < 200 << 20
    site.unharmed()


def test_announced_bodies_take_no_memory(fleet):
    site = Site(fleet, "--http-max-body", "1gb")
    before = rss(site.server)
    idle = [site.raw() for _ in range(50)]
    for r in idle:
        r.send(PUT + b"Content-Length: 1000000000\r\n\r\nx")
    site.unharmed()
    assert rss(site.server) - before < 100 << 20
    for r in idle:
        r.close()


def test_slow_requests_end(fleet):
    """Who sends a byte now and then does not hold a connection for ever."""
    site = Site(fleet, "--http-request-timeout", "1s")
    slow = [site.raw() for _ in range(3)]
    slow[0].send(b"GET /heal")
    slow[1].send(PUT + b"Content-Length: 10\r\n\r\nabc")
    slow[2].send(chunked(TE, body=b"3\r\nabc\r\n"))
    stop = threading.Event()

    def drip():
        while not stop.wait(0.1):
            slow[0].send(b"t")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        assert [[a[0] for a in r.all()] for r in slow] == [[408]] * 3
    finally:
        stop.set()
        dripping.join()
    site.unharmed()


def test_unread_answers_end(fleet):
    """Who asks and does not read is not answered without end."""
    site = Site(fleet, "--http-request-timeout", "1s")
    with site.server.connect() as c:
        c("SET", "k", "v" * 1000000)
        with site.raw() as r:
            r.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            r.socket.settimeout(1)
            try:
                r.socket.sendall((b"GET /keys/k HTTP/1.1\r\n" + HOST + b"\r\n") * 2000)
            except (TimeoutError, ConnectionError):
                pass

            def closed():
                return b"connected_clients:1\r" in c("INFO", "clients")

            wait.until(closed, "the connection is closed", LIMIT)
    site.unharmed()


# --- at random


def test_random_damage(site):
    """Requests with bytes changed, lost, doubled: every answer is sound, and the server lives."""
    generator = random.Random(20240229)
    seeds = [data for data, _ in REFUSED.values() if len(data) < 2000] + [data for data, _ in TAKEN.values()]
    for _ in range(400):
        data = bytearray(b"".join(generator.choice(seeds) for _ in range(generator.randrange(1, 4))))
        for _ in range(generator.randrange(1, 4)):
            at = generator.randrange(len(data))
            what = generator.randrange(4)
            if what == 0:
                data[at] = generator.randrange(256)
            elif what == 1:
                del data[at : at + generator.randrange(1, 20)]
            elif what == 2:
                data[at:at] = data[at : at + generator.randrange(1, 40)]
            else:
                data[at:at] = generator.choice([b"\r\n", b"\n", b" ", b"\0", b":", b"0\r\n\r\n", b"\r\n\r\n"])
            if not data:
                data = bytearray(b"x")
        with site.raw() as r:
            if r.send(bytes(data)):
                r.socket.shutdown(socket.SHUT_WR)
            head_only = b"HEAD " in data
            while not head_only and r.answer() is not None:
                pass
    with site.raw() as r:
        r.send(PROBE)
        assert r.answer()[0] == 200
