"""TLS on the wire: large and long, slow and byte by byte, damaged, cut off, killed."""

import os
import select
import socket
import ssl

import pytest

from harness import servers, tls, wait
from harness.resp import Closed, Connection, encode

MEGABYTE = 1 << 20


@pytest.fixture(params=[servers.Redis, servers.Larder], ids=["redis", "larder"])
def kind(request):
    return request.param


@pytest.fixture
def server(kind, start_tls):
    return start_tls(kind)


@pytest.fixture
def larder(start_tls):
    return start_tls(servers.Larder)


# --- large, long, slow


def test_large_values(server, dial):
    c = dial(server)
    value = os.urandom(MEGABYTE) * 64
    assert c("SET", "large", value) == b"OK"
    assert c("STRLEN", "large") == len(value)
    assert c("GET", "large") == value
    assert dial(server)("GETRANGE", "large", 0, 99) == value[:100]


def test_long_pipelines(server, dial):
    c = dial(server)
    c.send(b"".join(encode(["SET", f"key:{i}", i]) for i in range(10_000)))
    assert all(c.read().value == b"OK" for _ in range(10_000))
    c.send(b"".join(encode(["GET", f"key:{i}"]) for i in range(10_000)))
    assert [int(c.read().value) for _ in range(10_000)] == list(range(10_000))


def test_replies_that_are_not_read_in_time(server, authority):
    """Both directions full: the client goes on writing and reads only what it must."""
    s = authority.context().wrap_socket(tls.plain(server), server_hostname="localhost")
    value = b"v" * 50_000
    s.sendall(encode(["SET", "k", value]))
    assert s.recv(100) == b"+OK\r\n"
    s.setblocking(False)
    out = memoryview(encode(["GET", "k"]) * 400 + encode(["ECHO", "end"]))
    expected = 400 * (len(value) + 10) + 9
    got, last = 0, b""
    while got < expected:
        moved = False
        if out:
            try:
                out = out[s.send(out[:100_000]) :]
                moved = True
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                pass
        try:
            part = s.recv(65536)
            assert part, "closed"
            got, last, moved = got + len(part), (last + part)[-9:], True
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        if not moved:
            select.select([s], [s] if out else [], [], 60)
    assert got == expected and last == b"$3\r\nend\r\n"
    s.close()


@pytest.mark.parametrize("step", [1, 7])
def test_a_client_that_sends_byte_by_byte(server, authority, step):
    c = tls.ByteWise(server, authority.context(), step)
    assert c.exchange(encode(["PING"]), 7) == b"+PONG\r\n"
    assert c.exchange(encode(["SET", "k", "v" * 3000]), 5) == b"+OK\r\n"
    assert c.exchange(encode(["GETRANGE", "k", "0", "4"]) * 20, 220) == b"$5\r\nvvvvv\r\n" * 20
    c.socket.close()


def test_records_of_a_byte_each(server, dial):
    """Many small records in one segment: what is decrypted must not wait for the next one."""
    c = dial(server)
    c.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
    for byte in encode(["SET", "k", "v" * 500]) + encode(["GET", "k"]):
        c.socket.send(bytes([byte]))
    assert c.read().value == b"OK"
    assert c.read().value == b"v" * 500


def test_blocked_and_woken_clients(server, dial):
    waiting, other = dial(server), dial(server)
    waiting.send(encode(["BLPOP", "queue", "0"]) + encode(["PING"]))
    wait.until(lambda: b"cmd=blpop" in other("CLIENT", "LIST"), "the client waits")
    assert other("RPUSH", "queue", "item") == 1
    assert waiting.read().plain() == [b"queue", b"item"]
    assert waiting.read().value == b"PONG"


# --- ends, good and bad


def test_close_notify(server, authority):
    context = authority.context()
    s = context.wrap_socket(tls.plain(server), server_hostname="localhost", suppress_ragged_eofs=False)
    s.sendall(encode(["QUIT"]))
    assert s.recv(100) == b"+OK\r\n"
    assert s.recv(100) == b""
    s.close()


def test_commands_in_front_of_an_end_are_run(larder, authority, dial):
    """A last command, and then close_notify, or an end without it: both are ends."""
    for i, notify in enumerate((True, False)):
        s = authority.context().wrap_socket(tls.plain(larder), server_hostname="localhost")
        s.sendall(encode(["SET", f"last{i}", "v" * 100_000]))
        if notify:
            with pytest.raises(ssl.SSLError, match="APPLICATION_DATA_AFTER_CLOSE_NOTIFY"):  # the reply
                s.unwrap()
        else:
            s.shutdown(socket.SHUT_WR)
            s = socket.socket(fileno=s.detach())  # Python takes its own end for the connection's
            s.settimeout(60)
            assert len(tls.ended(s)) > 5
        s.close()
        assert dial(larder)("STRLEN", f"last{i}") == 100_000
    other = dial(larder)
    wait.until(lambda: other("CLIENT", "LIST").count(b"\n") == 3, "the connections are gone")


def test_a_client_that_is_sent_away_hears_why(server, authority):
    s = authority.context().wrap_socket(tls.plain(server), server_hostname="localhost", suppress_ragged_eofs=False)
    s.sendall(b"*1\r\n+PING\r\n")
    assert s.recv(1000) == b"-ERR Protocol error: expected '$', got '+'\r\n"
    assert s.recv(100) == b""
    s.close()


def test_http_requests_in_a_row(larder, authority):
    address = ("127.0.0.1", larder.https_port)
    s = authority.context().wrap_socket(socket.create_connection(address, timeout=60), server_hostname="localhost")
    request = b"GET /keys/none HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /keys/none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    s.sendall(request * 500 + last)
    answers = tls.ended(s)
    assert answers.count(b"HTTP/1.1 404 Not Found\r\n") == 501
    s.close()


def test_plaintext_to_the_tls_port(larder, dial):
    for data in (b"PING\r\n", encode(["SET", "k", "v"]), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x00" * 500):
        s = tls.plain(larder)
        s.sendall(data)
        assert b"PONG" not in tls.ended(s)
        s.close()
    c = dial(larder)
    assert c("EXISTS", "k") == 0
    log = larder.log_text()
    assert log.count('level=warning msg="a TLS handshake failed" addr=127.0.0.1:') == 1  # not one for each


def test_tls_to_the_plain_port(larder, authority):
    with pytest.raises((ssl.SSLError, OSError)):
        Connection(("127.0.0.1", larder.port), tls=authority.context())
    with larder.connect() as c:
        assert c("PING") == b"PONG"


def test_handshakes_that_stall(start_tls, authority, dial):
    larder = start_tls(servers.Larder, "--tls-handshake-timeout", "100ms")
    hello = tls.client_hello(authority)
    stalled = [tls.plain(larder) for _ in range(20)]
    for i, s in enumerate(stalled):
        s.sendall(hello[: i * len(hello) // 19])
    c = dial(larder)
    for s in stalled:
        tls.ended(s)
        s.close()
    assert "not over within tls-handshake-timeout" in larder.log_text()
    assert c("PING") == b"PONG"  # the time is the handshake's, not the connection's
    assert c("CONFIG", "SET", "tls-handshake-timeout", "1h") == b"OK"
    with tls.plain(larder) as s:
        s.sendall(hello)
        assert c("PING") == b"PONG"
        assert len(s.recv(65536)) > 100


def test_handshakes_count_as_clients(start_tls, authority):
    larder = start_tls(servers.Larder, "--maxclients", "3")
    first = [tls.plain(larder) for _ in range(3)]
    with tls.plain(larder) as s:
        assert tls.ended(s) == b""
    first.pop().close()

    def admitted():
        return not tls.shut_out(larder, authority.context())

    wait.until(admitted, "the place is free again")
    for s in first:
        s.close()


def test_protected_mode_and_passwords(start_tls, dial):
    server = start_tls(servers.Larder, "--requirepass", "secret")
    c = dial(server)
    assert c.error("GET", "k").startswith("NOAUTH")
    assert c("AUTH", "secret") == b"OK"
    assert c("GET", "k") is None


def test_damaged_records(larder, authority, dial):
    """A byte that was changed on the way ends the connection, and none of it runs."""
    c = tls.ByteWise(larder, authority.context(), 1 << 20)
    c.drive(lambda: c.tls.write(encode(["SET", "damaged", "v"])))
    assert c.tls.write(encode(["SET", "damaged", "v"]))
    record = bytearray(c.outgoing.read())
    record[-1] ^= 1
    other = dial(larder)
    wait.until(lambda: other("EXISTS", "damaged"), "the first has run")
    assert other("DEL", "damaged") == 1
    c.socket.sendall(record)
    tls.ended(c.socket)
    c.socket.close()
    assert other("EXISTS", "damaged") == 0


def test_clients_that_vanish(larder, authority, dial):
    """In every stage of a connection, with RST and without."""
    context = authority.context()
    hello = tls.client_hello(authority)
    watcher = dial(larder)
    assert watcher("SET", "big", "b" * 4 * MEGABYTE) == b"OK"
    for i in range(120):
        s = tls.plain(larder)
        stage = i % 6
        if stage == 1:
            s.sendall(hello[:50])
        elif stage == 2:
            s.sendall(hello)
            s.recv(100)
        elif stage >= 3:
            s = context.wrap_socket(s, server_hostname="localhost")
        if stage == 4:
            s.sendall(encode(["SET", "half", "x" * MEGABYTE])[:-1000])
        elif stage == 5:
            s.sendall(encode(["GET", "big"]) * 3)
            s.recv(1000)
        if i % 12 < 6:
            tls.reset(s)
        s.close()
    assert watcher("EXISTS", "half") == 0
    wait.until(lambda: watcher("CLIENT", "LIST").count(b"\n") == 1, "the connections are gone")


def test_clients_that_come_and_go(larder, authority):
    context = authority.context()
    for i in range(300):
        with Connection(("127.0.0.1", larder.tls_port), tls=context) as c:
            assert c("INCR", "n") == i + 1


def test_a_server_that_is_killed(larder, dial):
    """What was acknowledged over TLS is there when it comes back."""
    c = dial(larder)
    for i in range(50):
        assert c("SET", f"key:{i}", i) == b"OK"
    c.send(encode(["SET", "unknown", "x" * MEGABYTE]) * 20)
    larder.kill()
    with pytest.raises((Closed, ssl.SSLError)):
        for _ in range(21):
            c.read()
    larder.start()
    with larder.connect() as again:
        assert again("MGET", *(f"key:{i}" for i in range(50))) == [str(i).encode() for i in range(50)]


def test_a_server_that_stops(larder, authority):
    """It says so to those who are connected, and does not wait for those who are not yet."""
    context = authority.context()
    clients = [
        context.wrap_socket(tls.plain(larder), server_hostname="localhost", suppress_ragged_eofs=False) for _ in range(10)
    ]
    for s in clients:
        s.sendall(encode(["PING"]))
        assert s.recv(100) == b"+PONG\r\n"
    half = tls.plain(larder)
    larder.stop()
    for s in clients:
        assert s.recv(100) == b""
        s.close()
    assert tls.ended(half) == b""
    half.close()
