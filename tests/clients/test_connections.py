"""Connections: pipelines, slow and vanishing clients, limits, pauses, sockets."""

import os
import signal
import socket
import stat
import struct
import threading
import time

import pytest

from harness import wait
from harness.resp import Connection, encode

PING = encode(["PING"])
PONG = b"+PONG\r\n"


def memory(server):
    """Resident memory in MiB."""
    with open(f"/proc/{server.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024


def connected(server):
    with server.connect() as c:
        text = c("INFO", "clients").decode()
    return int(text.split("connected_clients:")[1].split("\r\n")[0]) - 1


def read_to_end(connection):
    return connection.read_bytes(0, until_closed=True)


# --- pipelines


@pytest.mark.slow
def test_a_million_commands_in_one_pipeline(fleet):
    larder = fleet.larder("--journal-max", "8mb")  # what waits for the tables takes memory as well
    with larder.connect() as client:
        run_a_million_commands(larder, client)


def run_a_million_commands(larder, client):
    count = 1_000_000
    data = b"".join(encode(["SET", f"key:{i % 1000}", i]) for i in range(count))
    before = memory(larder)
    with client.sending(data):
        received = 0
        while received < 5 * count:
            part = client.socket.recv(1 << 20)
            assert part and part.strip(b"+OK\r\n") == b""
            received += len(part)
    assert client("GET", "key:999") == b"999999"
    assert memory(larder) - before < 100


def test_everything_is_sent_before_anything_is_read(client):
    """The server must not wait for a client that has not yet begun to read."""
    value = b"x" * 1000
    client("SET", "key", value)
    reply = b"$1000\r\n" + value + b"\r\n"
    count = 50_000
    client.send(encode(["GET", "key"]) * count)
    received = bytearray()
    while len(received) < count * len(reply):
        received += client.socket.recv(1 << 20)
    assert received == reply * count


def test_unread_replies_do_not_pile_up(larder, client):
    """Small commands wait in memory, not their large replies."""
    client("SET", "key", b"x" * 1_000_000)
    before = memory(larder)
    client.send(encode(["GET", "key"]) * 500)
    time.sleep(0.3)
    with larder.connect() as other:
        assert other("PING") == b"PONG"
    assert memory(larder) - before < 100
    for _ in range(500):
        assert len(client.read().plain()) == 1_000_000


@pytest.mark.slow
def test_the_largest_value(larder, client):
    size = 512 << 20
    block = os.urandom(1 << 20)
    client.send(b"*3\r\n$3\r\nSET\r\n$4\r\nhuge\r\n$%d\r\n" % size)
    for _ in range(size >> 20):
        client.send(block)
    client.send(b"\r\n")
    assert client.read().plain() == b"OK"
    client.send(encode(["GET", "huge"]))
    header = b"$%d\r\n" % size
    data = bytearray(size + len(header) + 2)
    got = 0
    while got < len(data):
        got += client.socket.recv_into(memoryview(data)[got:])
    assert data[: len(header)] == header
    assert all(data[len(header) + (i << 20) :][: 1 << 20] == block for i in range(0, size >> 20, 37))
    assert client("DEL", "huge") == 1
    # the buffers are given back
    wait.until(lambda: memory(larder) < 400, "memory is given back")
    client.send(b"*3\r\n$3\r\nSET\r\n$4\r\nhuge\r\n$%d\r\n" % (size + 1))
    assert read_to_end(client) == (b"-ERR Protocol error: invalid bulk length\r\n", True)


def test_pipelines_of_many_clients_are_fair(larder):
    """One client's deep pipeline does not make another wait for its end."""
    with larder.connect() as busy, larder.connect() as other:
        data = encode(["SET", "key", "x" * 100]) * 200_000
        with busy.sending(data):
            started = time.monotonic()
            for _ in range(5):
                assert other("PING") == b"PONG"
            waited = time.monotonic() - started
            busy.read_bytes(5 * 200_000, until_closed=False)
        assert waited < 2


# --- how connections end


def test_a_half_closed_connection_gets_all_its_replies(larder, client):
    client("SET", "key", b"x" * 1_000_000)
    client.send(encode(["GET", "key"]) * 50 + b"*1\r\n$4\r\nPI")
    client.socket.shutdown(socket.SHUT_WR)
    time.sleep(0.1)
    data, closed = read_to_end(client)
    assert closed and data == (b"$1000000\r\n" + b"x" * 1_000_000 + b"\r\n") * 50


def test_clients_that_vanish(larder, client):
    client("SET", "key", b"x" * 1_000_000)
    for i in range(100):
        c = larder.connect()
        c.send(encode(["GET", "key"]) * 10 + encode(["INCR", "counter"]))
        if i % 2:
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
    assert client("PING") == b"PONG"
    wait.until(lambda: connected(larder) == 1, "vanished clients are forgotten")


def test_quit_ends_the_input(client):
    client.send(PING + encode(["QUIT"]) + PING)
    assert read_to_end(client) == (PONG + b"+OK\r\n", True)


def test_a_killed_client_runs_no_more(larder, client):
    with larder.connect() as victim:
        number = victim("CLIENT", "ID")
        client.send(encode(["CLIENT", "KILL", "ID", number]) + encode(["CLIENT", "LIST"]))
        assert client.read().plain() == 1
        assert f"id={number} ".encode() not in client.read().plain()
        assert read_to_end(victim) == (b"", True)
    number = client("CLIENT", "ID")
    client.send(encode(["CLIENT", "KILL", "ID", number, "SKIPME", "no"]) + encode(["SET", "after", "1"]))
    assert read_to_end(client) == (b":1\r\n", True)
    with larder.connect() as c:
        assert c("EXISTS", "after") == 0


def test_http_is_hung_up_on(larder, oracle):
    for text in (b"POST / HTTP/1.1\r\nPING\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nSET posted 1\r\n"):
        for server in (oracle, larder):
            with server.connect() as c:
                c.send(text)
                assert read_to_end(c) == (b"", True)


def test_the_end_sends_the_last_replies(larder, client):
    client("SET", "key", b"x" * 1_000_000)
    client.send(encode(["MGET"] + ["key"] * 20))
    assert client.socket.recv(5, socket.MSG_WAITALL) == b"*20\r\n"
    os.kill(larder.pid, signal.SIGTERM)
    data, closed = read_to_end(client)
    assert closed and len(data) == 20 * (len(b"$1000000\r\n\r\n") + 1_000_000)
    larder.wait_ended()


# --- limits


def test_idle_clients_are_closed(fleet):
    larder = fleet.larder("--timeout", "1")
    with larder.connect() as idle, larder.connect() as busy, larder.connect() as monitor:
        assert monitor("MONITOR") == b"OK"
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            assert busy("PING") == b"PONG"
            time.sleep(0.1)
        assert read_to_end(idle) == (b"", True)
        assert busy("PING") == b"PONG"
        assert not monitor.read_available(0.05)[1]


def test_the_hard_output_limit(fleet):
    larder = fleet.larder("--client-output-buffer-limit", "normal 3mb 0 0")
    with larder.connect() as c:
        c("SET", "key", b"x" * 1_000_000)
        c.send(encode(["MGET"] + ["key"] * 50))
        data, closed = read_to_end(c)
        assert closed and len(data) < 50_000_000
    assert "client-output-buffer-limit" in larder.log_text()
    with larder.connect() as c:
        assert b"client_output_buffer_limit_disconnections:1\r\n" in c("INFO", "stats")


def test_the_soft_output_limit(fleet):
    larder = fleet.larder("--client-output-buffer-limit", "normal 0 1mb 3")
    with larder.connect() as c, larder.connect() as reader:
        for connection in (c, reader):
            connection("SET", "key", b"x" * 1_000_000)
            connection.send(encode(["MGET"] + ["key"] * 30))
        assert len(reader.read().plain()) == 30
        wait.until(lambda: connected(larder) == 1, "the client that does not read is closed")
        assert reader("PING") == b"PONG"


def test_monitors_that_do_not_read_are_closed(fleet):
    larder = fleet.larder("--client-output-buffer-limit", "normal 2mb 0 0")
    with larder.connect() as monitor, larder.connect() as c:
        assert monitor("MONITOR") == b"OK"
        for _ in range(40):
            c("SET", "key", b"x" * 500_000)
        wait.until(lambda: connected(larder) == 1, "the monitor is closed")


def test_the_query_buffer_limit(fleet):
    larder = fleet.larder("--client-query-buffer-limit", "1mb")
    with larder.connect() as c:
        c._send_quietly(b"*2\r\n$4\r\nECHO\r\n$3000000\r\n" + b"x" * 2_900_000)
        data, closed = read_to_end(c)
        assert data == b"" and closed
    assert "client-query-buffer-limit" in larder.log_text()


def test_a_pipeline_longer_than_the_query_buffer_limit(fleet):
    """The limit is on what a command needs, not on how much a client sends before it reads."""
    larder = fleet.larder("--client-query-buffer-limit", "1mb")
    with larder.connect() as c:
        c("SET", "key", b"x" * 200)
        count = 200_000
        c.send(encode(["GET", "key"]) * count)
        size = count * len(b"$200\r\n" + b"x" * 200 + b"\r\n")
        data, closed = c.read_bytes(size, until_closed=False)
        assert len(data) == size and not closed


@pytest.mark.parametrize("kind", ["redis", "larder"])
def test_limits_until_a_client_has_authenticated(fleet, kind):
    server = getattr(fleet, kind)("--requirepass", "secret")
    large = b"*2\r\n$4\r\nECHO\r\n$16385\r\n" + b"x" * 16385 + b"\r\n"
    for sent, expected in (
        (b"*11\r\n", b"-ERR Protocol error: unauthenticated multibulk length\r\n"),
        (large[:22], b"-ERR Protocol error: unauthenticated bulk length\r\n"),
    ):
        with server.connect() as c:
            c.send(sent)
            assert read_to_end(c) == (expected, True)
    with server.connect() as c:
        c.send(encode(["AUTH", "secret"]) + large + encode(["MGET"] + ["a"] * 20))
        assert c.read().plain() == b"OK"
        assert len(c.read().plain()) == 16385
        assert len(c.read().plain()) == 20


# --- CLIENT PAUSE


def test_paused_commands_wait_in_their_order(larder, client):
    with larder.connect() as other:
        client("CLIENT", "PAUSE", "400", "WRITE")
        started = time.monotonic()
        other.send(encode(["GET", "key"]) + encode(["SET", "key", "1"]) + encode(["GET", "key"]) + b"*1\r\nx\r\n")
        assert other.read().plain() is None
        assert time.monotonic() - started < 0.3
        data, closed = read_to_end(other)
        assert time.monotonic() - started > 0.3
        assert data == b"+OK\r\n$1\r\n1\r\n-ERR Protocol error: expected '$', got 'x'\r\n" and closed


def test_unpause(larder, client):
    client("CLIENT", "PAUSE", "100000", "WRITE")
    with larder.connect() as other, larder.connect() as dropped:
        other.send(encode(["SET", "key", "1"]))
        dropped.send(encode(["SET", "dropped", "1"]))
        time.sleep(0.05)
        number = [line for line in client("CLIENT", "LIST").split(b"\n") if b"cmd=NULL" in line]
        assert len(number) == 2
        client("CLIENT", "UNPAUSE")
        assert other.read().plain() == b"OK"
        assert dropped.read().plain() == b"OK"


def test_a_pause_holds_its_own_client_too(client):
    started = time.monotonic()
    client.send(encode(["CLIENT", "PAUSE", "200"]) + PING)
    assert client.read().plain() == b"OK"
    assert client.read().plain() == b"PONG"
    assert time.monotonic() - started >= 0.19


# --- replies that are not wanted


def test_client_reply(client):
    client.send(
        encode(["CLIENT", "REPLY", "OFF"])
        + PING
        + encode(["SET", "key", "1"])
        + encode(["CLIENT", "REPLY", "ON"])
        + encode(["CLIENT", "REPLY", "SKIP"])
        + PING
        + encode(["GET", "key"])
    )
    assert client.read().raw == b"+OK\r\n"
    assert client.read().plain() == b"1"


# --- sockets


def test_bind_lists(fleet):
    larder = fleet.larder("--bind", "127.0.0.1 -192.0.2.77 -::1")
    with larder.connect() as c:
        assert c("PING") == b"PONG"


def test_unix_socket_and_its_permissions(fleet, tmp_path):
    path = str(tmp_path / "s")
    larder = fleet.larder("--unixsocket", path, "--unixsocketperm", "700")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    with Connection(path) as c:
        assert c("PING") == b"PONG"
        assert f"addr={path}:0 laddr={path}:0 ".encode() in c("CLIENT", "LIST")
    larder.kill()
    # what a crash left behind is replaced
    larder.start()
    with Connection(path) as c:
        assert c("PING") == b"PONG"
    larder.stop()
    assert not os.path.exists(path)


def test_many_clients_come_and_go_at_once(larder):
    problems = []

    def visit():
        try:
            for _ in range(30):
                with larder.connect() as c:
                    assert c("INCR", "visits") > 0
        except Exception as e:  # reported below, in the test's own thread
            problems.append(e)

    threads = [threading.Thread(target=visit) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
    with larder.connect() as c:
        assert c("GET", "visits") == b"600"
