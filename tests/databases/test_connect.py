"""How Larder comes to its database: TLS, passwords, several hosts."""

import threading
import time

import pytest

from harness import databases, replicas, servers, store, wait
from harness.certificates import Authority

from .load import Failed, Session, Unknown

PASSWORD = "p@ss/w:rd%?"
QUOTED = "p%40ss%2Fw%3Ard%25%3F"

HBA = """local all larder trust
hostssl all tls 127.0.0.1/32 trust
host all pw 127.0.0.1/32 scram-sha-256
local replication larder trust
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    folder.chmod(0o755)
    return Authority(folder)


class Secured:
    """A database server with a certificate, a user `tls` that must use it and a user `pw` that must give a password."""

    def __init__(self, kind, pair):
        self.database = databases.KINDS[kind]()
        names = ("ssl_cert_file", "ssl_key_file") if kind == "postgres" else ("ssl-cert", "ssl-key")
        self.database.settings = dict(zip(names, self.show(pair)))
        getattr(self, kind)()

    def show(self, pair):
        return self.database.give(pair.cert, "server.crt"), self.database.give(pair.key, "server.key")

    def exchange(self, pair):
        """Another certificate from now on."""
        self.show(pair)
        if self.database.kind == "mariadb":
            self.database.query("FLUSH SSL")
        else:
            before = self.database.query("SELECT pg_conf_load_time()")
            self.database.query("SELECT pg_reload_conf()")
            wait.until(lambda: self.database.query("SELECT pg_conf_load_time()") != before, "it has the certificate")

    def postgres(self):
        self.database.settings["ssl"] = "on"
        self.database.create()
        (self.database.home / "pg_hba.conf").write_text(HBA)
        self.database.start()
        self.database.query(f"CREATE ROLE tls LOGIN SUPERUSER; CREATE ROLE pw LOGIN SUPERUSER PASSWORD '{PASSWORD}'")

    def mariadb(self):
        self.database.start()
        self.database.query(
            "CREATE USER tls@'127.0.0.1' REQUIRE SSL; GRANT ALL ON *.* TO tls@'127.0.0.1';"
            f"CREATE USER pw@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO pw@'127.0.0.1';"
        )


@pytest.fixture(scope="module")
def pairs(authority):
    return {"right": authority.issue("right"), "wrong": authority.issue("wrong", names="DNS:db.example")}


@pytest.fixture(scope="module")
def started(pairs):
    started = {}
    yield started
    for secured in started.values():
        secured.database.remove()


@pytest.fixture
def secured(kind, started, pairs):
    """The database server of this kind; its certificate is for localhost."""
    if kind not in started:
        started[kind] = Secured(kind, pairs["right"])
    return started[kind].database


def migrate(url, **env):
    return servers.run(["migrate", "--store", url], env={"HOME": "/nonexistent", **env})


TLS = {
    "postgres": {
        "require": {"sslmode": "require"},
        "ca": {"sslmode": "verify-ca", "sslrootcert": "CA"},
        "name": {"sslmode": "verify-full", "sslrootcert": "CA"},
        "none": {"sslmode": "disable"},
        "says": "certificate verify failed",
        "says_name": "does not match host name",
    },
    "mariadb": {
        "require": {"ssl-mode": "required"},
        "ca": {"ssl-mode": "verify-ca", "ssl-ca": "CA"},
        "name": {"ssl-mode": "verify-identity", "ssl-ca": "CA"},
        "none": {"ssl-mode": "disabled"},
        "says": "certificate",
        "says_name": "ertificate",
    },
}


def url_with(database, name, mode, ca):
    options = {k: ca if v == "CA" else v for k, v in TLS[database.kind][mode].items()}
    return database.url(name, user="tls", tcp=True, **options)


@pytest.mark.parametrize("mode", ["require", "ca", "name"])
def test_tls(kind, secured, authority, fleet, mode):
    database = secured
    data = store.KINDS[kind](on=database)
    data.url = url_with(database, data.name, mode, authority.cert)
    larder = fleet.larder(data=data)  # a user that is not let in without TLS
    with larder.connect() as c:
        c("SET", "k", "v")
        assert c("GET", "k") == b"v"
    larder.stop()
    larder.check()


def test_without_tls(kind, secured, authority):
    database = secured
    done = migrate(url_with(database, database.new_database(), "none", authority.cert))
    assert done.returncode == 1 and ("denied" in done.stderr or "no encryption" in done.stderr), done.stderr


@pytest.mark.parametrize("mode", ["ca", "name"])
def test_tls_of_a_stranger(kind, secured, tmp_path, mode):
    database, stranger = secured, Authority(tmp_path / "stranger", "stranger")
    done = migrate(url_with(database, database.new_database(), mode, stranger.cert))
    assert done.returncode == 1 and TLS[kind]["says"] in done.stderr, done.stderr


def test_tls_for_another_name(kind, secured, started, pairs, authority):
    name = secured.new_database()
    started[kind].exchange(pairs["wrong"])
    try:
        for mode in ("require", "ca"):
            done = migrate(url_with(secured, name, mode, authority.cert))
            assert done.returncode == 0, (mode, done.stderr)
        done = migrate(url_with(secured, name, "name", authority.cert))
        assert done.returncode == 1 and TLS[kind]["says_name"] in done.stderr, done.stderr
    finally:
        started[kind].exchange(pairs["right"])


def test_tls_is_not_given_up_silently(kind, authority):
    """Where the server has none, those who asked for it are refused."""
    shared = store.server(kind)
    name = shared.new_database()
    user = "larder" if kind == "postgres" else "root"
    for mode in ("require", "ca", "name"):
        options = {k: authority.cert if v == "CA" else v for k, v in TLS[kind][mode].items()}
        done = migrate(shared.url(name, user=user, tcp=True, **options))
        assert done.returncode == 1 and ("SSL" in done.stderr or "TLS" in done.stderr), (mode, done.stderr)


# --- passwords


def ways(kind, database, home):
    """Each is (user part of the URL, environment)."""
    home.mkdir()
    where = {"HOME": str(home)}
    yield f"pw:{QUOTED}", {}
    if kind == "postgres":
        yield "pw", {"PGPASSWORD": PASSWORD}
        escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
        (home / ".pgpass").write_text(f"127.0.0.1:{database.port}:*:pw:{escaped}\n")
        (home / ".pgpass").chmod(0o600)
        yield "pw", where
    else:
        yield "pw", {"MYSQL_PWD": PASSWORD}
        for group in ("larder", "client"):
            (home / ".my.cnf").write_text(f"[{group}]\npassword='{PASSWORD}'\n")
            yield "pw", where


def test_passwords(kind, secured, tmp_path, fleet):
    database = secured
    for user, env in ways(kind, database, tmp_path / "home"):
        data = store.KINDS[kind](on=database)
        data.url = database.url(data.name, user=user, tcp=True)
        larder = fleet.larder(data=data, env={"HOME": "/nonexistent", **env})
        with larder.connect() as c:
            c("SET", "k", "v")
            assert PASSWORD.encode() not in c("INFO") + b"".join(c("CONFIG", "GET", "store"))
        larder.stop()
        assert PASSWORD not in larder.log_text() and QUOTED not in larder.log_text()


def test_wrong_passwords(kind, secured):
    database = secured
    name = database.new_database()
    for user in ("pw", "pw:wr0ng"):
        done = migrate(database.url(name, user=user, tcp=True))
        said = done.stdout + done.stderr
        assert done.returncode == 1 and "wr0ng" not in said, said
        assert "password" in said


# --- several hosts


class SynchronousPostgres(replicas.PostgresCluster):
    """The standby has everything that was acknowledged."""

    def __init__(self):
        super().__init__(1, settings={"synchronous_commit": "remote_apply"})

    def start(self):
        super().start()
        self.primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.query("SELECT pg_reload_conf()")
        synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait.until(lambda: self.primary.query(synchronous) == [["1"]], "the standby follows")
        return self

    def create(self, data):
        pass

    def take_over(self, node):
        node.query("ALTER SYSTEM SET synchronous_standby_names = ''")
        super().take_over(node)


class StrictMariaDB(replicas.MariaCluster):
    """Its replication does not make the primary wait: before it ends, the replica is waited for."""

    def __init__(self):
        super().__init__(1, settings={"log-bin-trust-function-creators": 0})

    def create(self, data):
        """With a binary log, functions are made by those who have SUPER; halfway is no harm."""
        done = migrate(data.url)
        assert done.returncode == 1 and "SUPER" in done.stderr, done.stderr
        done = migrate(self.primary.url(data.name))
        assert done.returncode == 0, done.stderr


REPLICATED = {"postgres": SynchronousPostgres, "mariadb": StrictMariaDB}


def test_a_failover_is_followed(kind, fleet):
    """The standby is the first host of the URL: it is passed over while it cannot be written to. When the primary is
    gone and the standby has taken its place, service goes on, and what was acknowledged is there."""
    with REPLICATED[kind]() as pair:
        data = store.KINDS[kind](on=pair.primary)
        data.url = pair.url(data.name, *reversed(pair.nodes))
        pair.create(data)
        several = [fleet.larder(data=data) for _ in range(2)]
        counts, stop = {"acknowledged": 0, "unknown": 0}, threading.Event()

        def work():
            session = Session(several, 0)
            while not stop.is_set():
                try:
                    session("INCR", "n")
                    counts["acknowledged"] += 1
                except Unknown:
                    counts["unknown"] += 1
                except Failed:
                    time.sleep(0.01)
            session.leave()

        thread = threading.Thread(target=work)
        thread.start()
        wait.until(lambda: counts["acknowledged"] > 50, "work is done")
        if kind == "mariadb":
            stop.set()
            thread.join()
            pair.follow()
        pair.primary.kill()
        pair.promote(0)
        for server in several:
            with server.connect() as c:
                wait.until(lambda: not c.call("SET", "k", "v").is_error, "service goes on by itself", 60)
        stop.set()
        thread.join()
        with several[1].connect() as c:
            assert counts["acknowledged"] <= int(c("GET", "n")) <= counts["acknowledged"] + counts["unknown"]
        for server in several:
            server.stop()
        several[0].check()
