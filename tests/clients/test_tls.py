"""TLS: client libraries and tools, versions, sessions, certificates, and new ones while the server runs.

What redis-server does as well runs on it too.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess

import pytest
import redis

from harness import servers, tls, wait
from harness.resp import Connection, encode


@pytest.fixture(params=[servers.Redis, servers.Larder], ids=["redis", "larder"])
def kind(request):
    return request.param


@pytest.fixture
def server(kind, start_tls):
    return start_tls(kind)


@pytest.fixture
def larder(start_tls):
    return start_tls(servers.Larder)


# --- tools and libraries


def test_redis_cli_and_benchmark(kind, start_tls, authority, client_pair):
    server = start_tls(kind, auth="yes")
    to = ["-p", str(server.tls_port), "--tls", "--cacert", authority.cert, "--cert", client_pair.cert,
          "--key", client_pair.key]  # fmt: skip

    def run(*args, stdin=None):
        done = subprocess.run(args, input=stdin, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("redis-cli", *to, "set", "k", "v w") == "OK\n"
    assert run("redis-cli", *to, "-3", "--no-raw", "mget", "k", "none") == '1) "v w"\n2) (nil)\n'
    commands = "".join(f"SET pipe:{i} {i}\r\n" for i in range(5000))
    assert "errors: 0, replies: 5000" in run("redis-cli", *to, "--pipe", stdin=commands)
    assert run("redis-cli", *to, "dbsize") == "5001\n"
    out = run("redis-benchmark", *to, "-n", "2000", "-c", "20", "-P", "8", "-t", "set,get,lpush,mset", "--csv")
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


def curl(server, authority, path, *args, pair=None, fails=False):
    """curl to the HTTPS port: what it prints, or with `fails` its exit code."""
    show = ["--cert", pair.cert, "--key", pair.key] if pair else []
    done = subprocess.run(
        ["curl", "-sS", "--cacert", authority.cert, *show, *args, f"https://localhost:{server.https_port}{path}"],
        capture_output=True, timeout=120,
    )  # fmt: skip
    if fails:
        assert done.returncode != 0
        return done.returncode
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_curl(larder, authority, dial, tmp_path):
    body = os.urandom(1 << 20) * 20
    (tmp_path / "body").write_bytes(body)
    binary = "application/octet-stream"
    curl(larder, authority, "/keys/large", "-T", str(tmp_path / "body"), "-H", f"Content-Type: {binary}", "-o", "/dev/null")
    assert curl(larder, authority, "/keys/large", "-H", f"Accept: {binary}") == body
    assert dial(larder)("STRLEN", "large") == len(body)
    assert dial(larder)("SET", "k", "v") == b"OK"
    assert json.loads(curl(larder, authority, "/keys/k"))["value"] == "v"
    url = f"https://localhost:{larder.https_port}/keys/k"
    both = curl(larder, authority, "/keys/k", url, "-w", "%{num_connects}\n")
    assert [line.split(b"}")[1] for line in both.splitlines()] == [b"1", b"0"]


def test_protocols_by_name(larder, authority):
    """ALPN: HTTP has a name, and who cannot speak it is not let in; the Redis protocol has none."""

    def chosen(port, *names):
        context = authority.context()
        context.set_alpn_protocols(names)
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost") as s:
            return s.selected_alpn_protocol()

    assert chosen(larder.https_port, "h2", "http/1.1") == "http/1.1"
    assert chosen(larder.https_port, "http/1.1", "http/1.0") == "http/1.1"
    with pytest.raises(ssl.SSLError, match="no application protocol"):
        chosen(larder.https_port, "h2")
    with pytest.raises(ssl.SSLError, match="no application protocol"):
        chosen(larder.https_port, "http/1.10", "http/1.")
    assert chosen(larder.tls_port, "h2", "redis") is None
    with larder.connect() as c:
        # those that are let in and are gone at once may count, too
        assert 2 <= int(re.search(rb"rejected_connections:(\d+)", c("INFO", "stats"))[1]) <= 5


def test_curl_and_certificates(start_tls, authority, client_pair, stranger):
    larder = start_tls(servers.Larder, auth="yes")
    assert curl(larder, authority, "/healthz", pair=client_pair)
    curl(larder, authority, "/healthz", fails=True)
    curl(larder, authority, "/healthz", pair=stranger.issue("curl"), fails=True)
    assert curl(larder, stranger, "/healthz", pair=client_pair, fails=True) == 60  # who is that server?
    curl(larder, authority, "/healthz", "--tls-max", "1.1", pair=client_pair, fails=True)


EXAMPLE = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)


def test_the_page_about_tls(fleet, tmp_path):
    """docs/tls.md: its commands one after the other, on ports that are free here."""
    examples = EXAMPLE.findall((servers.ROOT / "docs" / "tls.md").read_text())
    ports = {"6380": str(servers.free_port()), "8443": str(servers.free_port())}
    assert len(examples) == 4
    for text, expected in examples:
        for port, free in ports.items():
            text = text.replace(port, free)
        if text.startswith("larder "):
            larder = fleet.new(servers.Larder, *shlex.split(text.replace("\\\n", ""))[1:])
            for name in ("server.crt", "server.key", "ca.crt"):
                shutil.copy(tmp_path / name, larder.folder)
            larder.port = int(ports["6380"])
            larder.start()
            continue
        done = subprocess.run(["sh", "-e", "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == expected.strip(), text


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


def test_the_unix_socket_stays_plain(start_tls, tmp_path):
    server = start_tls(servers.Larder, "--unixsocket", str(tmp_path / "s"))
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


def test_a_version_can_be_left_out(start_tls, authority):
    server = start_tls(servers.Larder, "--tls-protocols", "TLSv1.3")
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


def test_ciphers(start_tls, dial, authority):
    server = start_tls(
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
def test_sessions_are_resumed(start_tls, authority, client_pair, version, caching):
    server = start_tls(servers.Larder, "--tls-session-caching", caching, auth="yes")
    only = ssl.TLSVersion[version]
    context = authority.context(client_pair, lowest=only, highest=only)

    def connect(session):
        s = context.wrap_socket(tls.plain(server), server_hostname="localhost", session=session)
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


@pytest.mark.parametrize("auth", ["yes", "optional", "no"])
def test_client_certificates(kind, start_tls, dial, authority, stranger, client_pair, auth):
    server = start_tls(kind, auth=auth)
    assert dial(server, authority.context(client_pair))("PING") == b"PONG"
    assert tls.shut_out(server, authority.context()) == (auth == "yes")
    assert tls.shut_out(server, authority.context(stranger.issue("client"))) == (auth != "no")


def test_client_certificates_are_asked_for_by_default(fleet, server_pair):
    larder = fleet.new(
        servers.Larder, "--tls-port", str(servers.free_port()), "--tls-cert-file", server_pair.cert,
        "--tls-key-file", server_pair.key,
    )  # fmt: skip
    with pytest.raises(servers.StartError, match="tls-ca-cert-file or tls-ca-cert-dir is needed"):
        larder.start()
    fleet.started.remove(larder)


def test_a_folder_of_authorities(kind, start_tls, dial, authority, client_pair, stranger, tmp_path):
    folder = tmp_path / "authorities"
    folder.mkdir()
    (folder / "ca.pem").write_bytes(open(authority.cert, "rb").read())
    subprocess.run(["openssl", "rehash", str(folder)], check=True, timeout=60)
    server = start_tls(kind, "--tls-ca-cert-file", "", "--tls-ca-cert-dir", str(folder), auth="yes")
    assert dial(server, authority.context(client_pair))("PING") == b"PONG"
    assert tls.shut_out(server, authority.context(stranger.issue("client2")))


def test_a_key_with_a_password(fleet, kind, start_tls, dial, authority, tmp_path):
    pair = authority.issue("locked", password="open sesame")
    options = ["--tls-cert-file", pair.cert, "--tls-key-file", pair.key]
    server = start_tls(kind, *options, "--tls-key-file-pass", "open sesame")
    assert dial(server)("PING") == b"PONG"
    with pytest.raises(servers.StartError):
        start_tls(kind, *options, "--tls-key-file-pass", "wrong")
    with pytest.raises(servers.StartError):
        start_tls(kind, *options)


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
def test_mistakes_at_the_start(start_tls, client_pair, tmp_path, option, value, message):
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate\n")
    value = {"OTHER": client_pair.key, "GARBAGE": str(garbage)}.get(value, value)
    with pytest.raises(servers.StartError) as e:
        start_tls(servers.Larder, option, value)
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
    larder = tls.Start(fleet, used, authority)(servers.Larder)
    old = dial(larder)
    assert old("SET", "k", "v") == b"OK"
    copy(second, used)
    assert serial(dial(larder)) == serial(old)
    reloaded(larder)
    new = dial(larder)
    assert serial(new) != serial(old)
    assert old("GET", "k") == new("GET", "k") == b"v"
    assert ssl.get_server_certificate(("localhost", larder.https_port)) in open(second.cert).read()
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
    larder = tls.Start(fleet, used, authority)(servers.Larder)
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


def test_config_set_changes_certificates(kind, start_tls, dial, authority):
    server = start_tls(kind)
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
