"""TLS: client libraries and tools, versions and certificates, slow and broken clients, new certificates at run time.

What redis-server does as well runs on it too.
"""

import os
import select
import signal
import socket
import ssl
import struct
import subprocess

import pytest
import redis

from harness import servers, wait
from harness.certificates import Authority
from harness.resp import Closed, Connection, encode

MEGABYTE = 1 << 20


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def server_pair(authority):
    return authority.issue("server")


@pytest.fixture(scope="session")
def client_pair(authority):
    return authority.issue("client")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


class Start:
    """Starts servers with a TLS port; `tls_port` of the server is where it is."""

    def __init__(self, fleet, pair, authority):
        self.fleet = fleet
        self.pair = pair
        self.authority = authority

    def __call__(self, kind, *options, auth="no"):
        for _ in range(20):
            port = servers.free_port()
            server = self.fleet.new(
                kind, "--tls-port", str(port), "--tls-cert-file", self.pair.cert, "--tls-key-file", self.pair.key,
                "--tls-ca-cert-file", self.authority.cert, "--tls-auth-clients", auth, *options,
            )  # fmt: skip
            try:
                server.start()
            except servers.StartError as e:
                self.fleet.started.remove(server)
                if not servers.IN_USE.search(e.log.encode()):
                    raise
                continue
            server.tls_port = port
            return server
        raise AssertionError("no free port for TLS")


@pytest.fixture
def start(fleet, server_pair, authority):
    return Start(fleet, server_pair, authority)


@pytest.fixture(params=[servers.Redis, servers.Larder], ids=["redis", "larder"])
def kind(request):
    return request.param


@pytest.fixture
def server(kind, start):
    return start(kind)


@pytest.fixture
def larder(start):
    return start(servers.Larder)


@pytest.fixture
def dial(authority):
    """Connections over TLS, closed at the end."""
    opened = []

    def connect(server, context=None, **options):
        address = ("127.0.0.1", server.tls_port)
        opened.append(Connection(address, tls=context or authority.context(), **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.socket.close()


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


# --- tools and libraries


def test_redis_cli_and_benchmark(kind, start, authority, client_pair):
    server = start(kind, auth="yes")
    tls = ["-p", str(server.tls_port), "--tls", "--cacert", authority.cert, "--cert", client_pair.cert,
           "--key", client_pair.key]  # fmt: skip

    def run(*args, stdin=None):
        done = subprocess.run(args, input=stdin, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("redis-cli", *tls, "set", "k", "v w") == "OK\n"
    assert run("redis-cli", *tls, "-3", "--no-raw", "mget", "k", "none") == '1) "v w"\n2) (nil)\n'
    commands = "".join(f"SET pipe:{i} {i}\r\n" for i in range(5000))
    assert "errors: 0, replies: 5000" in run("redis-cli", *tls, "--pipe", stdin=commands)
    assert run("redis-cli", *tls, "dbsize") == "5001\n"
    out = run("redis-benchmark", *tls, "-n", "2000", "-c", "20", "-P", "8", "-t", "set,get,lpush,mset", "--csv")
    assert len(out.splitlines()) == 5 and "rror" not in out


def test_redis_py(server, authority):
    with redis.Redis(
        host="localhost", port=server.tls_port, ssl=True, ssl_ca_certs=authority.cert, ssl_check_hostname=True
    ) as r:
        for value in (b"", b"\x00\r\n", bytes(range(256)), b"x" * 3_000_000):
            assert r.set("k", value)
            assert r.get("k") == value
        with r.pipeline(transaction=True) as p:
            for i in range(1000):
                p.incr("n")
            assert p.execute() == list(range(1, 1001))
        assert r.client_list()[0]["laddr"] == f"127.0.0.1:{server.tls_port}"
        assert r.info("server")["tcp_port"] == server.port
        r.connection_pool.disconnect()
        assert r.ping()


def test_node(server, authority, modules):
    done = subprocess.run(
        ["node", "--test", "--test-reporter=spec", "ioredis.test.js"],
        cwd=os.path.dirname(__file__),
        env={**os.environ, "TEST_PORT": str(server.tls_port), "TEST_CA": authority.cert},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_a_tls_port_alone(fleet, kind, server_pair, authority):
    port = servers.free_port()
    server = fleet.new(
        kind, "--port", "0", "--tls-port", str(port), "--tls-cert-file", server_pair.cert,
        "--tls-key-file", server_pair.key, "--tls-auth-clients", "no",
    )  # fmt: skip
    server.port = port  # the harness waits for this one
    server.start()
    with Connection(("127.0.0.1", port), tls=authority.context()) as c:
        assert f"tcp_port:{port}\r\n".encode() in c("INFO", "server")
        assert c("CONFIG", "GET", "port") == [b"port", b"0"]


def test_the_unix_socket_stays_plain(start, tmp_path):
    server = start(servers.Larder, "--unixsocket", str(tmp_path / "s"))
    with Connection(str(tmp_path / "s")) as c:
        assert c("PING") == b"PONG"
    with server.connect() as c:
        assert c("PING") == b"PONG"


# --- versions, ciphers, sessions


def s_client(server, authority, *args, stdin="PING\r\n"):
    """openssl s_client, which takes versions that Python's module no longer does."""
    return subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{server.tls_port}", "-CAfile", authority.cert, *args],
        input=stdin, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_versions_that_are_spoken(server, authority, dial, version):
    only = ssl.TLSVersion[version.replace(".", "_")]
    c = dial(server, authority.context(lowest=only, highest=only))
    assert c.socket.version() == version
    assert c("PING") == b"PONG"


@pytest.mark.parametrize("version", ["-tls1", "-tls1_1"])
def test_versions_that_are_not(server, authority, version):
    done = s_client(server, authority, version, "-cipher", "DEFAULT:@SECLEVEL=0")
    assert done.returncode != 0
    assert "protocol version" in done.stderr, done.stderr


def test_a_version_can_be_left_out(start, authority):
    server = start(servers.Larder, "--tls-protocols", "TLSv1.3")
    with pytest.raises(ssl.SSLError):
        Connection(
            ("127.0.0.1", server.tls_port), tls=authority.context(highest=ssl.TLSVersion.TLSv1_2)
        )
    with server.connect() as c:
        assert "Unable to update TLS" in c.error("CONFIG", "SET", "tls-protocols", "TLSv1.1 TLSv1.2")
        assert c("CONFIG", "GET", "tls-protocols") == [b"tls-protocols", b"TLSv1.3"]
        assert c("CONFIG", "SET", "tls-protocols", "") == b"OK"
    assert "tls-protocols takes TLSv1.2 and TLSv1.3, not TLSv1.1" in server.log_text()
    with Connection(("127.0.0.1", server.tls_port), tls=authority.context(highest=ssl.TLSVersion.TLSv1_2)) as c:
        assert c.socket.version() == "TLSv1.2"


def test_ciphers(start, dial, authority):
    server = start(
        servers.Larder, "--tls-ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305",
        "--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", "--tls-prefer-server-ciphers", "yes",
    )  # fmt: skip
    assert dial(server).socket.cipher()[0] == "TLS_CHACHA20_POLY1305_SHA256"
    old = dial(server, authority.context(highest=ssl.TLSVersion.TLSv1_2))
    assert old.socket.cipher()[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"
    assert "Unable to update TLS" in old.error("CONFIG", "SET", "tls-ciphers", "NO-SUCH-CIPHER")
    assert "Unable to update TLS" in old.error("CONFIG", "SET", "tls-ciphersuites", "NO-SUCH-SUITE")


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("caching", ["yes", "no"])
def test_sessions_are_resumed(start, authority, client_pair, version, caching):
    server = start(servers.Larder, "--tls-session-caching", caching, auth="yes")
    only = ssl.TLSVersion[version]
    context = authority.context(client_pair, lowest=only, highest=only)

    def connect(session):
        s = context.wrap_socket(plain(server), server_hostname="localhost", session=session)
        s.sendall(encode(["PING"]))
        assert s.recv(100) == b"+PONG\r\n"
        session, reused = s.session, s.session_reused
        s.unwrap().close()
        return session, reused

    session, reused = connect(None)
    assert not reused
    assert connect(session)[1] == (caching == "yes")


def test_renegotiation_is_refused(server, authority):
    done = s_client(server, authority, "-tls1_2", stdin="R\nPING\r\n")
    assert "RENEGOTIATING" in done.stderr
    assert "no renegotiation" in done.stderr, done.stderr
    assert "PONG" not in done.stdout


def test_new_keys_when_the_client_asks(server, authority):
    """K: s_client sends a KeyUpdate and asks for one."""
    process = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{server.tls_port}", "-CAfile", authority.cert, "-tls1_3"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1,
    )  # fmt: skip
    try:
        for i in range(5):
            process.stdin.write(f"ECHO answer-{i}\r\n")
            process.stdin.flush()
            while True:
                line = process.stdout.readline()
                assert line, "the connection ended"
                if line.startswith(f"answer-{i}"):
                    break
            process.stdin.write("K\n")
            process.stdin.flush()
            while "KEYUPDATE" not in process.stdout.readline():
                pass
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


# --- certificates


def test_a_client_that_does_not_trust_the_server(server, stranger):
    with pytest.raises(ssl.SSLCertVerificationError):
        Connection(("127.0.0.1", server.tls_port), tls=stranger.context())


def shut_out(server, context):
    """TLS 1.3: the client is done before the server has looked at its certificate, and hears of it later."""
    try:
        with Connection(("127.0.0.1", server.tls_port), tls=context) as c:
            c("PING")
    except (ssl.SSLError, Closed, OSError):
        return True
    return False


@pytest.mark.parametrize("auth", ["yes", "optional", "no"])
def test_client_certificates(kind, start, dial, authority, stranger, client_pair, auth):
    server = start(kind, auth=auth)
    assert dial(server, authority.context(client_pair))("PING") == b"PONG"
    assert shut_out(server, authority.context()) == (auth == "yes")
    assert shut_out(server, authority.context(stranger.issue("client"))) == (auth != "no")


def test_client_certificates_are_asked_for_by_default(fleet, server_pair):
    larder = fleet.new(
        servers.Larder, "--tls-port", str(servers.free_port()), "--tls-cert-file", server_pair.cert,
        "--tls-key-file", server_pair.key,
    )  # fmt: skip
    with pytest.raises(servers.StartError, match="tls-ca-cert-file or tls-ca-cert-dir is needed"):
        larder.start()
    fleet.started.remove(larder)


def test_a_folder_of_authorities(kind, start, dial, authority, client_pair, stranger, tmp_path):
    folder = tmp_path / "authorities"
    folder.mkdir()
    (folder / "ca.pem").write_bytes(open(authority.cert, "rb").read())
    subprocess.run(["openssl", "rehash", str(folder)], check=True, timeout=60)
    server = start(kind, "--tls-ca-cert-file", "", "--tls-ca-cert-dir", str(folder), auth="yes")
    assert dial(server, authority.context(client_pair))("PING") == b"PONG"
    assert shut_out(server, authority.context(stranger.issue("client2")))


def test_a_key_with_a_password(fleet, kind, start, dial, authority, tmp_path):
    pair = authority.issue("locked", password="open sesame")
    options = ["--tls-cert-file", pair.cert, "--tls-key-file", pair.key]
    server = start(kind, *options, "--tls-key-file-pass", "open sesame")
    assert dial(server)("PING") == b"PONG"
    with pytest.raises(servers.StartError):
        start(kind, *options, "--tls-key-file-pass", "wrong")
    with pytest.raises(servers.StartError):
        start(kind, *options)


@pytest.mark.parametrize(
    "option, value, message",
    [
        ("--tls-cert-file", "/none.crt", "tls-cert-file /none.crt cannot be used: No such file or directory"),
        ("--tls-cert-file", "", "TLS needs tls-cert-file and tls-key-file"),
        ("--tls-key-file", "/none.key", "tls-key-file /none.key cannot be used: No such file or directory"),
        ("--tls-key-file", "OTHER", "cannot be used: key values mismatch"),
        ("--tls-cert-file", "GARBAGE", "cannot be used: no start line"),
        ("--tls-ca-cert-dir", "/none", "tls-ca-cert-dir /none is not a folder"),
        ("--tls-protocols", "SSLv3", "tls-protocols takes TLSv1.2 and TLSv1.3, not SSLv3"),
        ("--tls-ciphers", "NONE-SUCH", "tls-ciphers cannot be used: no cipher match"),
    ],
)
def test_mistakes_at_the_start(start, client_pair, tmp_path, option, value, message):
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate\n")
    value = {"OTHER": client_pair.key, "GARBAGE": str(garbage)}.get(value, value)
    with pytest.raises(servers.StartError) as e:
        start(servers.Larder, option, value)
    assert message in e.value.log
    assert e.value.code == 1


# --- new certificates while it runs


def serial(connection):
    return connection.socket.getpeercert()["serialNumber"]


def copy(pair, to):
    for source, target in ((pair.cert, to.cert), (pair.key, to.key)):
        with open(source, "rb") as r, open(target, "wb") as w:
            w.write(r.read())


def reloaded(server):
    """SIGHUP, and the moment when it has been dealt with."""
    marks = ('msg="TLS is set up"', 'msg="the certificates stay')
    before = sum(server.log_text().count(mark) for mark in marks)
    server.process.send_signal(signal.SIGHUP)
    wait.until(lambda: sum(server.log_text().count(mark) for mark in marks) > before, "the log tells of the reload")


def test_sighup_reads_the_certificates_anew(fleet, authority, dial):
    used, first, second = (authority.issue(f"used{i}") for i in range(3))
    copy(first, used)
    larder = Start(fleet, used, authority)(servers.Larder)
    old = dial(larder)
    assert old("SET", "k", "v") == b"OK"
    copy(second, used)
    assert serial(dial(larder)) == serial(old)
    reloaded(larder)
    new = dial(larder)
    assert serial(new) != serial(old)
    assert old("GET", "k") == new("GET", "k") == b"v"
    # what cannot be used is not
    with open(used.cert, "w") as f:
        f.write("-----BEGIN CERTIFICATE-----\nnonsense\n")
    reloaded(larder)
    assert serial(dial(larder)) == serial(new)
    copy(first, used)
    with open(used.key, "wb") as f, open(second.key, "rb") as other:
        f.write(other.read())
    reloaded(larder)
    assert serial(dial(larder)) == serial(new)
    assert larder.log_text().count('msg="TLS cannot be set up"') == 2
    copy(first, used)
    reloaded(larder)
    assert serial(dial(larder)) == serial(old)
    assert [c("GET", "k") for c in (old, new)] == [b"v", b"v"]


def test_sighup_amid_traffic(fleet, authority, dial):
    used, other = authority.issue("traffic"), authority.issue("traffic2")
    larder = Start(fleet, used, authority)(servers.Larder)
    clients = [dial(larder) for _ in range(5)]
    copy(other, used)
    for i in range(30):
        for c in clients:
            c.send(encode(["INCR", "n"]) * 10)
        if i % 10 == 5:
            larder.process.send_signal(signal.SIGHUP)
        clients.append(dial(larder))
        for c in clients[:-1]:
            for _ in range(10):
                assert c.read().kind == b":"
    assert int(clients[0]("GET", "n")) == sum(10 * (5 + i) for i in range(30))


def test_config_set_changes_certificates(kind, start, dial, authority):
    server = start(kind)
    other = authority.issue("other")
    old = dial(server)
    assert old("CONFIG", "SET", "tls-cert-file", other.cert, "tls-key-file", other.key) == b"OK"
    assert serial(dial(server)) != serial(old)
    assert old("PING") == b"PONG"
    error = old.error("CONFIG", "SET", "tls-cert-file", "/none")
    assert "(possibly related to argument 'tls-cert-file') - Unable to update TLS configuration." in error
    assert old("CONFIG", "GET", "tls-cert-file") == [b"tls-cert-file", other.cert.encode()]
    assert old("CONFIG", "SET", "tls-auth-clients", "no", "tls-session-cache-size", "10") == b"OK"


def test_config_set_takes_back_what_went_with_it(larder, dial):
    c = dial(larder)
    error = c.error("CONFIG", "SET", "maxclients", "77", "tls-key-file", "/none", "timeout", "99")
    assert "tls-key-file" in error
    assert c("CONFIG", "GET", "maxclients") == [b"maxclients", b"10000"]
    assert c("CONFIG", "GET", "timeout") == [b"timeout", b"0"]
    assert "immutable" in c.error("CONFIG", "SET", "tls-port", "1")


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
    s = authority.context().wrap_socket(plain(server), server_hostname="localhost")
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


@pytest.mark.parametrize("step", [1, 7])
def test_a_client_that_sends_byte_by_byte(server, authority, step):
    c = ByteWise(server, authority.context(), step)
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
    s = context.wrap_socket(plain(server), server_hostname="localhost", suppress_ragged_eofs=False)
    s.sendall(encode(["QUIT"]))
    assert s.recv(100) == b"+OK\r\n"
    assert s.recv(100) == b""
    s.close()


def test_commands_in_front_of_an_end_are_run(larder, authority, dial):
    """A last command, and then close_notify, or an end without it: both are ends."""
    for i, notify in enumerate((True, False)):
        s = authority.context().wrap_socket(plain(larder), server_hostname="localhost")
        s.sendall(encode(["SET", f"last{i}", "v" * 100_000]))
        if notify:
            with pytest.raises(ssl.SSLError, match="APPLICATION_DATA_AFTER_CLOSE_NOTIFY"):  # the reply
                s.unwrap()
        else:
            s.shutdown(socket.SHUT_WR)
            s = socket.socket(fileno=s.detach())  # Python takes its own end for the connection's
            s.settimeout(60)
            assert len(ended(s)) > 5
        s.close()
        assert dial(larder)("STRLEN", f"last{i}") == 100_000
    other = dial(larder)
    wait.until(lambda: other("CLIENT", "LIST").count(b"\n") == 3, "the connections are gone")


def test_plaintext_to_the_tls_port(larder, dial):
    for data in (b"PING\r\n", encode(["SET", "k", "v"]), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x00" * 500):
        s = plain(larder)
        s.sendall(data)
        assert b"PONG" not in ended(s)
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


def client_hello(authority):
    outgoing = ssl.MemoryBIO()
    tls = authority.context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_handshakes_that_stall(start, authority, dial):
    larder = start(servers.Larder, "--tls-handshake-timeout", "100ms")
    hello = client_hello(authority)
    stalled = [plain(larder) for _ in range(20)]
    for i, s in enumerate(stalled):
        s.sendall(hello[: i * len(hello) // 19])
    c = dial(larder)
    for s in stalled:
        ended(s)
        s.close()
    assert "not over within tls-handshake-timeout" in larder.log_text()
    assert c("PING") == b"PONG"  # the time is the handshake's, not the connection's
    assert c("CONFIG", "SET", "tls-handshake-timeout", "1h") == b"OK"
    with plain(larder) as s:
        s.sendall(hello)
        assert c("PING") == b"PONG"
        assert len(s.recv(65536)) > 100


def test_handshakes_count_as_clients(start, authority):
    larder = start(servers.Larder, "--maxclients", "3")
    first = [plain(larder) for _ in range(3)]
    with plain(larder) as s:
        assert ended(s) == b""
    first.pop().close()

    def admitted():
        return not shut_out(larder, authority.context())

    wait.until(admitted, "the place is free again")
    for s in first:
        s.close()


def test_protected_mode_and_passwords(start, dial):
    server = start(servers.Larder, "--requirepass", "secret")
    c = dial(server)
    assert c.error("GET", "k").startswith("NOAUTH")
    assert c("AUTH", "secret") == b"OK"
    assert c("GET", "k") is None


def test_damaged_records(larder, authority, dial):
    """A byte that was changed on the way ends the connection, and none of it runs."""
    c = ByteWise(larder, authority.context(), 1 << 20)
    c.drive(lambda: c.tls.write(encode(["SET", "damaged", "v"])))
    assert c.tls.write(encode(["SET", "damaged", "v"]))
    record = bytearray(c.outgoing.read())
    record[-1] ^= 1
    other = dial(larder)
    wait.until(lambda: other("EXISTS", "damaged"), "the first has run")
    assert other("DEL", "damaged") == 1
    c.socket.sendall(record)
    ended(c.socket)
    c.socket.close()
    assert other("EXISTS", "damaged") == 0


def test_clients_that_vanish(larder, authority, dial):
    """In every stage of a connection, with RST and without."""
    context = authority.context()
    hello = client_hello(authority)
    watcher = dial(larder)
    assert watcher("SET", "big", "b" * 4 * MEGABYTE) == b"OK"
    for i in range(120):
        s = plain(larder)
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
            reset(s)
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
        context.wrap_socket(plain(larder), server_hostname="localhost", suppress_ragged_eofs=False) for _ in range(10)
    ]
    for s in clients:
        s.sendall(encode(["PING"]))
        assert s.recv(100) == b"+PONG\r\n"
    half = plain(larder)
    larder.stop()
    for s in clients:
        assert s.recv(100) == b""
        s.close()
    assert ended(half) == b""
    half.close()
