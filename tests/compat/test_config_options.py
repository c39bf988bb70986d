"""Options of Redis that Larder keeps for its clients' sake: each is read, set and refused as redis-server does."""

import pytest

from harness import resp, servers

# What the two servers cannot have the same: addresses, files, limits of the machine, and what they are tested with.
OWN = {
    "bind", "port", "unixsocket", "dir", "logfile", "loglevel", "tls-port", "tls-auth-clients", "tls-protocols",
    "pidfile", "enable-debug-command", "maxclients", "tls-cert-file", "tls-key-file", "tls-ca-cert-file", "requirepass",
    "protected-mode", "dbfilename", "tcp-backlog", "unixsocketperm", "tls-key-file-pass", "tls-ca-cert-dir",
    "oom-score-adj", "jemalloc-bg-thread", "save",
}  # fmt: skip
VALUES = ["yes", "no", "YES", "0", "1", "7", "-1", "-2", "2147483648", "9223372036854775808", "3mb", "2k", "1x", "@@", "a b"]
# Their values are checked further in Redis, or come back in another form.
ROUGH = {
    "cluster-announce-hostname", "latency-tracking-info-percentiles", "notify-keyspace-events", "oom-score-adj-values",
    "proc-title-template", "bind-source-addr", "active-defrag-cycle-min", "active-defrag-cycle-max", "maxmemory-clients",
    "activedefrag", "hz", "appendonly", "cluster-announce-ip", "tls-client-cert-file", "tls-client-key-file",
    "tls-client-key-file-pass", "tls-dh-params-file", "timeout", "tcp-keepalive", "shutdown-timeout", "latency-monitor-threshold",
    "client-output-buffer-limit", "tls-session-cache-timeout", "tls-ciphers", "tls-ciphersuites",
    "tls-session-caching", "tls-session-cache-size", "tls-prefer-server-ciphers", "tls-cluster", "tls-replication",
    "ignore-warnings", "maxmemory", "cluster-link-sendbuf-limit", "repl-backlog-size", "auto-aof-rewrite-min-size", "proto-max-bulk-len", "client-query-buffer-limit",
}  # fmt: skip


def everything(connection):
    words = connection("CONFIG", "GET", "*")
    return dict(zip((w.decode() for w in words[::2]), words[1::2]))


def ask(connection, *words):
    try:
        return connection(*words)
    except resp.ServerError as e:
        return str(e)


@pytest.fixture
def both(fleet):
    with fleet.redis().connect() as a, fleet.larder().connect() as b:
        yield a, b


def test_every_option_of_redis_is_known_with_its_default(both):
    theirs, ours = map(everything, both)
    assert {k for k in theirs if k not in ours} == {"dir"}
    assert {k: v for k, v in ours.items() if k in theirs and k not in OWN and v != theirs[k]} == {}
    assert ours["save"] == b""


def test_values_are_taken_and_refused_alike(both):
    theirs, ours = both
    names = sorted(set(everything(theirs)) - OWN - ROUGH)
    assert len(names) > 120
    different = []
    for name in names:
        for value in VALUES:
            replies = [[ask(c, "CONFIG", "SET", name, value), c("CONFIG", "GET", name)] for c in (theirs, ours)]
            if replies[0] != replies[1]:
                different.append((name, value, *replies))
    assert not different, "\n".join(map(str, different))


def test_rough_checks_refuse_what_makes_no_sense(client):
    for name in ("notify-keyspace-events", "save", "latency-tracking-info-percentiles", "maxmemory-clients"):
        assert "CONFIG SET failed" in ask(client, "CONFIG", "SET", name, "@@")
    assert client("CONFIG", "SET", "notify-keyspace-events", "KEA", "save", "3600 1 60 100") == b"OK"
    assert client("CONFIG", "GET", "notify-keyspace-events", "save") == [
        b"notify-keyspace-events", b"KEA", b"save", b"3600 1 60 100",
    ]  # fmt: skip


def test_an_old_name_is_the_same_option(both):
    for c in both:
        assert c("CONFIG", "SET", "hash-max-ziplist-entries", "7") == b"OK"
        assert c("CONFIG", "GET", "hash-max-listpack-entries") == [b"hash-max-listpack-entries", b"7"]
    words = ["CONFIG", "SET", "hash-max-ziplist-entries", "8", "hash-max-listpack-entries", "9"]
    assert ask(both[0], *words) == ask(both[1], *words)


def test_rewrite_keeps_them_and_a_start_tells_of_them(fleet, tmp_path):
    conf = tmp_path / "larder.conf"
    conf.write_text("# mine\nmaxmemory 10mb\nhash-max-ziplist-entries 3\n")
    larder = fleet.larder("--config", str(conf))
    assert "these options of Redis have no effect" in larder.log_text() and "names=maxmemory\n" in larder.log_text()
    with larder.connect() as c:
        assert c("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "20mb", "save", "60 1") == b"OK"
        assert c("CONFIG", "SET", "hash-max-listpack-entries", "5") == b"OK"
        assert c("CONFIG", "REWRITE") == b"OK"
    larder.stop()
    text = conf.read_text()
    assert text.startswith("# mine\nmaxmemory 20mb\nhash-max-listpack-entries 5\n\n# Added by CONFIG REWRITE\n")
    assert text.endswith("\nmaxmemory-policy allkeys-lru\nsave 60 1\n")
    with larder.start().connect() as c:
        assert c("CONFIG", "GET", "maxmemory-policy") == [b"maxmemory-policy", b"allkeys-lru"]


def test_what_redis_fixes_at_the_start_has_one_value(fleet):
    done = servers.run(["--cluster-enabled", "yes"])
    assert done.returncode == 2 and "cluster-enabled" in done.stderr and "nothing else" in done.stderr
    fleet.larder("--cluster-enabled", "no")
