"""HTTP itself: connections, pipelines, limits, time-outs, the end."""

import json
import signal
import socket
import threading

import pytest

from harness import wait
from harness.http import Raw


def request(method, path, body=b"", **headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body or method in ("PUT", "POST"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.fixture
def raw(server):
    with Raw(server.http_port) as raw:
        yield raw


def test_pipelines(raw):
    n = 3000
    raw.send(b"".join(request("PUT", f"/keys/k{i % 7}", b"%d" % i) + request("GET", f"/keys/k{i % 7}") for i in range(n)))
    for i in range(n):
        status, _, body = raw.answer()
        assert status in (200, 201)
        status, _, body = raw.answer()
        assert status == 200 and json.loads(body)["value"] == str(i)


def test_every_cut(server):
    """However a request is cut into packets, its answer is the same."""
    data = request("PUT", "/keys/k", b"value") + request("GET", "/keys/k", Accept="application/octet-stream")
    for step in (1, 2, 3, 7, 50):
        with Raw(server.http_port) as raw:
            raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(data), step):
                raw.send(data[at : at + step])
            assert raw.answer()[0] in (200, 201)
            assert raw.answer()[2] == b"value"


def test_chunks(raw):
    raw.send(b"PUT /keys/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    for piece in (b"5\r\nhello\r\n", b"1;x=y\r\n \r\n", b"5\r\nworld\r\n", b"0\r\n\r\n"):
        raw.send(piece)
    assert raw.answer()[0] == 201
    raw.send(request("GET", "/keys/k"))
    assert json.loads(raw.answer()[2])["value"] == "hello world"


def test_continue(raw):
    raw.send(b"PUT /keys/k HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    assert raw.answer()[0] == 100
    raw.send(b"hello")
    assert raw.answer()[0] == 201


def test_head_in_a_pipeline(raw):
    raw.send(request("PUT", "/keys/k", b"v") + request("HEAD", "/keys/k") + request("GET", "/keys/k"))
    assert raw.answer()[0] == 201
    status, headers, _ = raw.answer("HEAD")
    assert status == 200 and int(headers["content-length"]) > 0
    assert json.loads(raw.answer()[2])["value"] == "v"


def test_connections_that_end(server):
    with Raw(server.http_port) as raw:
        raw.send(request("GET", "/healthz", Connection="close") + request("PUT", "/keys/never", b"v"))
        status, headers, _ = raw.answer()
        assert status == 200 and headers["connection"] == "close"
        assert raw.ended() == b""
    with Raw(server.http_port) as raw:
        raw.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert raw.answer()[0] == 200 and raw.ended() == b""
    with Raw(server.http_port) as raw:
        raw.send(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert raw.answer()[1]["connection"] == "keep-alive"
        raw.send(request("GET", "/keys/never"))
        assert raw.answer()[0] == 404
    with Raw(server.http_port) as raw:  # the client has said all, and still wants its answers
        raw.send(request("PUT", "/keys/k", b"v") + request("GET", "/keys/k"))
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.answer()[0] == 201 and raw.answer()[0] == 200 and raw.ended() == b""


BROKEN = [
    (b"hello\r\n\r\n", 501),
    (b"GET /x HTTP/9.9\r\nHost: x\r\n\r\n", 505),
    (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"PUT /keys/k HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    (b"PUT /keys/k HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"PUT /keys/k HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    (b"PUT /keys/k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 501),
    (b"*1\r\n$4\r\nPING\r\n", 501),
]


@pytest.mark.parametrize("data,status", BROKEN)
def test_what_is_no_request(raw, server, data, status):
    raw.send(request("PUT", "/keys/before", b"v") + data)
    assert raw.answer()[0] == 201
    got, headers, body = raw.answer()
    assert got == status and headers["connection"] == "close" and json.loads(body)["error"]
    assert raw.ended() == b""
    with server.http() as web:
        assert web.get("/keys/before").status == 200


def test_limits(start):
    server = start("--http-max-body", "10kb", "--http-max-header", "2kb", "--http-max-uri", "500")
    cases = [
        (request("PUT", "/keys/k", b"x" * 10240), 201),
        (request("PUT", "/keys/k", b"x" * 10241), 413),
        (request("GET", "/keys/" + "k" * 494), 404),
        (request("GET", "/keys/" + "k" * 495), 414),
        (request("GET", "/keys/none", X="x" * 1900), 404),
        (request("GET", "/keys/none", X="x" * 2048), 431),
        (b"GET /keys/none HTTP/1.1\r\n" + b"A: b\r\n" * 1000, 431),
        (b"GET /" + b"k" * 100000, 414),
        (b"PUT /keys/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n"
         + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 10, 413),
    ]  # fmt: skip
    for data, status in cases:
        with Raw(server.http_port) as raw:
            raw.send(data)
            got, _, body = raw.answer()
            assert got == status, (data[:60], body)
            if status >= 413:
                assert json.loads(body)["error"] and raw.ended() == b""


def test_a_body_that_will_not_be_taken_is_not_read(start):
    """The answer comes before the body has been sent, and is not lost although the client goes on sending."""
    server = start("--http-max-body", "1mb")
    with Raw(server.http_port) as raw:
        raw.send(b"PUT /keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        raw.send(b"x" * 300_000)
        assert raw.answer()[0] == 413


def test_strangers_cannot_fill_memory(start):
    server = start("--requirepass", "secret")
    with Raw(server.http_port) as raw:
        raw.send(b"PUT /keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000000\r\n\r\n")
        status, headers, _ = raw.answer()
        assert status == 401 and "www-authenticate" in headers and headers["connection"] == "close"


def test_large_values(web):
    value = bytes(range(256)) * 40_000
    headers = {"Content-Type": "application/octet-stream"}
    assert web.put("/keys/large", value, headers=headers).status == 201
    assert web.get("/keys/large", headers={"Accept": "application/octet-stream"}).body == value
    assert len(web.get("/keys/large").json["value"]) == 4 * -(-len(value) // 3)


def test_slow_requests(start):
    server = start("--http-request-timeout", "500ms")
    with Raw(server.http_port) as head, Raw(server.http_port) as body, Raw(server.http_port) as idle, server.http() as web:
        head.send(b"GET /healthz HT")
        body.send(b"PUT /keys/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
        for slow in (head, body):
            status, headers, text = slow.answer()
            assert status == 408 and json.loads(text)["error"] == "request_timeout" and headers["connection"] == "close"
            assert slow.ended() == b""
        assert web.get("/keys/k").status == 404
        idle.send(request("GET", "/healthz"))  # nothing was begun here, so nothing was late
        assert idle.answer()[0] == 200


def test_idle_connections(start):
    server = start("--http-timeout", "300ms")
    with Raw(server.http_port) as raw:
        raw.send(request("GET", "/healthz"))
        assert raw.answer()[0] == 200
        assert raw.ended() == b""


def test_answers_that_nobody_reads(start):
    server = start("--http-request-timeout", "500ms")
    with server.http() as web, server.connect() as redis:
        redis("SET", "large", b"x" * 30_000_000)
        with Raw(server.http_port) as raw:
            raw.send(request("GET", "/keys/large", Accept="application/octet-stream"))
            wait.until(
                lambda: sum(b"cmd=http" in line for line in redis("CLIENT", "LIST").splitlines()) <= 1, "the client is gone"
            )
        assert web.get("/healthz").status == 200


def test_connection_limit(start):
    server = start("--http-max-connections", "3")
    held = [Raw(server.http_port) for _ in range(3)]
    try:
        for raw in held:
            raw.send(request("GET", "/healthz"))
            assert raw.answer()[0] == 200
        with Raw(server.http_port) as raw:
            data = raw.ended()
            assert data.startswith(b"HTTP/1.1 503 ") and b"Retry-After:" in data and b"too_many_connections" in data
        with server.connect() as redis:  # others have their own limit
            assert redis("PING") == b"PONG"
        held.pop().close()

        def served():
            with Raw(server.http_port) as raw:
                raw.send(request("GET", "/healthz"))
                answer = raw.answer()
                return answer and answer[0] == 200

        wait.until(served, "there is room again")
    finally:
        for raw in held:
            raw.close()


def test_the_end(start):
    """What has been asked is answered; connections end; nothing of what was acknowledged is lost."""
    server = start()
    stored = []
    with Raw(server.http_port) as idle, Raw(server.http_port) as busy:
        idle.send(request("GET", "/healthz"))
        assert idle.answer()[0] == 200
        stop = threading.Event()

        def write():
            for i in range(100_000):
                try:
                    busy.send(request("PUT", f"/keys/k{i}", b"v"))
                    answer = busy.answer()
                except (ConnectionError, AssertionError):
                    return
                if answer is None:
                    return
                assert answer[0] == 201
                stored.append(i)
                stop.set()
                if answer[1].get("connection") == "close":
                    return

        thread = threading.Thread(target=write)
        thread.start()
        stop.wait(30)
        server.stop(signal.SIGTERM)
        thread.join()
        assert idle.ended() == b""
    server.start()
    with server.http() as web:
        assert stored
        for i in stored[-50:]:
            assert web.get(f"/keys/k{i}").status == 200


def test_what_was_answered_survives(start):
    server = start()
    for round in range(3):
        answered = []
        with Raw(server.http_port) as raw:
            raw.send(b"".join(request("PUT", f"/keys/{round}-{i}", b"v") for i in range(500)))
            while len(answered) < 150:
                status, headers, _ = raw.answer()
                assert status == 201
                answered.append(len(answered))
            server.kill()
        server.start()
        with server.http() as web:
            for i in answered:
                assert web.get(f"/keys/{round}-{i}").status == 200


def test_both_protocols_in_one_batch(server):
    """Writers over RESP and HTTP at once: no update is lost."""
    n, workers = 200, 4
    failures = []

    def over_http():
        with server.http() as web:
            for _ in range(n):
                if web.post("/", ["INCR", "n"]).status != 200:
                    failures.append("http")

    def over_resp():
        with server.connect() as redis:
            for _ in range(n):
                redis("INCR", "n")

    def swap():
        with server.http() as web:
            for _ in range(n // 4):
                while True:
                    now = web.get("/keys/cas")
                    value = int(now.json["value"]) if now.status == 200 else 0
                    headers = {"If-Match": now.etag} if now.status == 200 else {"If-None-Match": "*"}
                    done = web.put("/keys/cas", {"value": str(value + 1)}, headers=headers)
                    if done.status in (200, 201):
                        break
                    assert done.status == 412

    threads = [threading.Thread(target=f) for f in [over_http, over_resp, swap] * workers]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    with server.http() as web:
        assert web.command("GET", "n") == str(2 * n * workers)
        assert web.get("/keys/cas").json["value"] == str(n // 4 * workers)
