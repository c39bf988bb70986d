"""`larder selftest`, on servers as they are and behind a proxy that takes features away; and servers on databases that are
not proven: they refuse, or do without."""

import concurrent.futures
import json
import signal
import subprocess
import threading

import pytest

from harness import servers, store, wait
from harness.resp import encode
from harness.rewriter import Rewriter

SCRATCHES = {
    "postgres": "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'lardertest%'",
    "mariadb": "SHOW DATABASES LIKE 'lardertest%'",
}

# Advisory locks that are always had, as some servers have them.
NO_LOCKS = """CREATE FUNCTION fake_try_advisory_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION fake_try_advisory_lock_shared(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION fake_try_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION fake_advisory_lock_shared(bigint) RETURNS text LANGUAGE sql AS 'SELECT ''''::text';
CREATE FUNCTION fake_advisory_xact_lock(bigint) RETURNS text LANGUAGE sql AS 'SELECT ''''::text';
CREATE FUNCTION fake_advisory_xact_lock(int, int) RETURNS text LANGUAGE sql AS 'SELECT ''''::text';
CREATE FUNCTION fake_advisory_xact_lock_shared(bigint) RETURNS text LANGUAGE sql AS 'SELECT ''''::text';
CREATE FUNCTION fake_advisory_unlock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION fake_advisory_unlock_shared(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'"""
ALWAYS = "CREATE FUNCTION always(a VARCHAR(200), b INT) RETURNS INT DETERMINISTIC RETURN 1"
MINE = "CREATE FUNCTION mine(a VARCHAR(200)) RETURNS BIGINT DETERMINISTIC RETURN CONNECTION_ID()"

# What is taken away, what a selftest says does not hold, and whether Larder can be used all the same.
CASES = {
    "postgres": {
        "no advisory locks": ([(r"pg_(try_)?advisory_", r"no_\1advisory_")], ["locks of sessions", "mode=exclusive"], True),
        "advisory locks do nothing": (
            [(r"pg_(try_)?advisory_", r"public.fake_\1advisory_")],
            ["locks of sessions", "mode=exclusive"],
            True,
        ),
        "no LISTEN": ([(r"^(UN)?LISTEN", r"\1LISTEN TO NOBODY,")], ["LISTEN"], True),
        "NOTIFY does nothing": ([(r"pg_notify\(", "concat(")], ["LISTEN"], False),
        "no SKIP LOCKED": ([("SKIP LOCKED", "SKIP THEM")], ["SKIP LOCKED"], True),
        "SKIP LOCKED does nothing": ([(" SKIP LOCKED", "")], ["SKIP LOCKED"], False),
        "no row locks": ([(r" FOR UPDATE( OF k)?(?! SKIP)", "")], ["row locks"], False),
        "every statement is committed": ([("^BEGIN$", "SELECT 1")], ["rollback and savepoints", "uncommitted rows are not seen"], False),
        "weak snapshots": ([("REPEATABLE READ", "READ COMMITTED")], ["readers see one state"], False),
        "rounded numbers": ([(r"k\.version", "(k.version::float8)::bigint")], ["numbers of 64 bits"], False),
    },
    "mariadb": {
        "no locks of sessions": ([(r"\b(GET|RELEASE|IS_USED|IS_FREE)_LOCK\(", r"NO_\1_LOCK(")], ["locks of sessions", "mode=exclusive"], True),
        "locks of sessions do nothing": ([(r"\bGET_LOCK\(", "fake.always(")], ["locks of sessions", "mode=exclusive"], True),
        "locks of sessions look like some": (
            [(r"\bGET_LOCK\(", "fake.always("), (r"\bIS_USED_LOCK\(", "fake.mine("), (r"\bRELEASE_LOCK\(", "LENGTH(1 OR ")],
            ["locks of sessions"],
            False,
        ),
        "no SKIP LOCKED": ([("SKIP LOCKED", "SKIP THEM")], ["SKIP LOCKED"], True),
        "no row locks": ([(" FOR UPDATE(?! SKIP)", "")], ["row locks"], False),
        "every statement is committed": ([("^(BEGIN|START TRANSACTION)(?=;|$)", "DO 0")], ["uncommitted rows are not seen"], False),
        "weak snapshots": (
            [("ISOLATION LEVEL REPEATABLE READ", "ISOLATION LEVEL READ COMMITTED"), (" WITH CONSISTENT SNAPSHOT, READ ONLY", "")],
            ["readers see one state"],
            False,
        ),
    },
}  # fmt: skip


def selftest(url, *options):
    return servers.run(["selftest", "--store", url, *(options or ("--load", "0.2")), "--json", "--quiet"])


def verdicts(done):
    """The report, and the names of what does not hold but for settings and functions, which are others' business."""
    report = json.loads(done.stdout)
    fails = [f["name"] for f in report["features"] if f["verdict"] == "does not"]
    return report, [name for name in fails if name not in ("commits are on the disk", "functions for applications")]


def scratches(database):
    """What is left of selftests; PostgreSQL tells it of one database at a time."""
    everywhere = database.query("SELECT datname FROM pg_database WHERE datallowconn") if database.kind == "postgres" else [["mysql"]]
    return [left for (name,) in everywhere for left in database.query(SCRATCHES[database.kind], name)]


@pytest.fixture
def database(kind):
    return store.server(kind)


def test_a_server_as_it_is(kind, database):
    done = servers.run(["selftest", "--store", database.url(database.new_database()), "--load", "0.5"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Larder can be used there" in done.stdout and "not tried" not in done.stdout
    (told,) = [line for line in done.stderr.splitlines() if "which is removed at the end" in line]
    assert "lardertest_" in told
    assert scratches(database) == []


def run_case(database, rules):
    name = database.new_database()
    if database.kind == "postgres":
        database.query(NO_LOCKS, name)
    with Rewriter(database, rules) as proxy:
        return name, selftest(proxy.url(name))


def test_what_is_taken_away_is_found(kind, database):
    if kind == "mariadb":
        database.query(f"CREATE DATABASE IF NOT EXISTS fake; USE fake; {ALWAYS}; {MINE}")
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        runs = {case: pool.submit(run_case, database, rules) for case, (rules, _, _) in CASES[kind].items()}
    if kind == "mariadb":
        database.query("DROP DATABASE fake")
    for case, (_, missing, fit) in CASES[kind].items():
        name, done = runs[case].result()
        assert done.stdout, (case, done.stderr)
        report, fails = verdicts(done)
        assert set(missing) <= set(fails) and (not fit or missing == fails), (case, fails, report)
        assert (report["fit"], done.returncode) == (fit, 0 if fit else 3), (case, done.stdout, done.stderr)
        assert report["marked"] == fit, case
        if not fit:
            assert database.query(MARKS[kind], name) == [["0"]], case
    assert scratches(database) == []


MARKS = {
    "postgres": "SELECT count(*) FROM pg_tables WHERE tablename = 'larder_tested'",
    "mariadb": "SELECT count(*) FROM information_schema.tables WHERE table_name = 'larder_tested' AND table_schema = DATABASE()",
}

# Says that it is another server.
STRANGERS = {
    "postgres": ([(r"SELECT version\(\)", "SELECT 'CockroachDB CCL v23.1.11 (x86_64)'::text")], None),
    "mariadb": ([("SELECT @@version, @@version_comment", "SELECT '8.0.36', 'MySQL Community Server - GPL'")], "8.0.36"),
}
UPGRADED = {"CockroachDB CCL v23.1.11": "CockroachDB CCL v23.2.0", "8.0.36": "8.4.0"}


class Behind(store.ServerStore):
    """A database behind a proxy."""

    def __init__(self, proxy):
        self.kind = proxy.database.kind
        super().__init__(on=proxy.database)
        self.url = proxy.url(self.name)


def refusal(url, *options):
    """What a server says that does not start there."""
    done = servers.run(["serve", "--port", str(servers.free_port()), "--store", url, "--store-wait", "0", *options], timeout=30)
    assert done.returncode == 1, done.stderr
    return done.stderr


def use(fleet, data, *options):
    """Two servers whose clients count at the same time, and wait for each other."""
    two = [fleet.larder(*options, "--workers", "1", data=data) for _ in range(2)]
    with two[0].connect() as c:
        c("DEL", "counter")

    def count(server):
        with server.connect() as c:
            for _ in range(40):
                c("INCR", "counter")

    threads = [threading.Thread(target=count, args=(server,)) for server in two]
    for thread in threads:
        thread.start()
    with two[0].connect() as waiter, two[1].connect() as pusher:
        waiter.send(encode(["BLPOP", "list", "20"]))
        pusher("RPUSH", "list", "v")
        assert waiter.read().plain() == [b"list", b"v"]
        pusher("SET", "gone", "1", "PX", "1")
        wait.until(lambda: data.query("SELECT count(*) FROM larder_key WHERE expire_at > 0") == [["0"]], "it is swept")
        for thread in threads:
            thread.join()
        assert pusher("GET", "counter") == b"80"
    log = "".join(server.log_text() for server in two)
    for server in two:
        server.stop()
    return log


def test_a_stranger_is_refused_until_it_is_proven(kind, database, fleet):
    rules, greeting = STRANGERS[kind]
    with Rewriter(database, rules, greeting) as proxy:
        data = Behind(proxy)
        for _ in range(2):
            log = refusal(data.url)
            assert "larder selftest --store URL" in log and "--accept-untested" in log, log
        assert database.query(MARKS[kind], data.name) == [["0"]]
        assert "this database server has not been proven" in use(fleet, data, "--accept-untested")
        done = selftest(data.url)
        report, fails = verdicts(done)
        assert done.returncode == 0 and fails == [] and report["marked"] and not report["tested"], done.stdout
        assert "has not been proven" not in use(fleet, data)
    for old, new in UPGRADED.items():
        rules = [(pattern, text.replace(old, new)) for pattern, text in rules]
    with Rewriter(database, rules, greeting) as proxy:
        data.url = proxy.url(data.name)
        assert "--accept-untested" in refusal(data.url)  # it has been upgraded


def test_servers_do_without(kind, database, fleet):
    """Everything that can be missing is."""
    cases = [rules for case, (rules, _, fit) in CASES[kind].items() if fit and "do nothing" not in case]
    with Rewriter(database, [rule for rules in cases for rule in rules]) as proxy:
        data = Behind(proxy)
        assert "its locks of sessions do nothing: not proven" in refusal(data.url)
        assert "not been proven" in use(fleet, data, "--accept-untested")
        assert data.query("SELECT value FROM larder_meta WHERE name = 'locks'") == [["rows"]]
        assert "mode=exclusive needs locks" in refusal(data.url + "&mode=exclusive", "--accept-untested")


@pytest.fixture
def poor(kind, database):
    """A role that may not make schemas or databases: the URL of its own."""
    name = database.new_database()
    if kind == "postgres":
        database.query("DROP OWNED BY poor; DROP ROLE poor" if database.query("SELECT 1 FROM pg_roles WHERE rolname = 'poor'") else "")
        database.query("CREATE ROLE poor LOGIN")
    else:
        database.query(f"CREATE OR REPLACE USER poor@localhost; GRANT ALL ON {name}.* TO poor@localhost")
    return database.url(name, user="poor")


def test_a_mark_that_cannot_be_left(kind, database, poor):
    """The role may make a schema, and no table beside it: what was found is told, and decides."""
    name = poor.split("/")[-1].split("?")[0]
    rules, greeting = STRANGERS[kind]
    if kind == "postgres":
        database.query(f"GRANT CREATE ON DATABASE {name} TO poor")
    else:
        database.query(
            "CREATE OR REPLACE USER poor@'127.0.0.1'; GRANT ALL PRIVILEGES ON `lardertest\\_%`.* TO poor@'127.0.0.1';"
            f"GRANT SELECT ON {name}.* TO poor@'127.0.0.1'"
        )
    with Rewriter(database, rules, greeting) as proxy:
        url = proxy.url(name).replace("larder@", "poor@").replace("root@", "poor@")
        done = selftest(url)
        report, _ = verdicts(done)
        assert done.returncode == 0 and report["fit"] and not report["marked"], done.stdout
        assert "larder_tested cannot be written" in done.stderr and "--accept-untested" in done.stderr, done.stderr
        database.query("CREATE TABLE larder_tested (server VARCHAR(160), level INT, larder VARCHAR(40))", name)
        assert ("permission denied" if kind == "postgres" else "not proven") in refusal(url)
        if kind == "postgres":  # a mark that cannot be read need not be when that is accepted
            assert "not been proven" in refusal(url, "--accept-untested")  # and makes no tables
    with Rewriter(database, [*rules, *CASES[kind]["weak snapshots"][0]], greeting) as proxy:
        done = selftest(proxy.url(name).replace("larder@", "poor@").replace("root@", "poor@"))
        report, fails = verdicts(done)
        assert done.returncode == 3 and not report["fit"] and fails == ["readers see one state"], done.stdout
        assert "an older mark may be" in done.stderr, done.stderr
    assert scratches(database) == []


def test_what_is_left_is_told(own):
    """The database goes away in the middle: nobody can remove what was made there."""
    process = subprocess.Popen(
        [str(servers.BINARY), "selftest", "--store", own.url(own.new_database())], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env=servers.clean_environment(),
    )  # fmt: skip
    name = process.stderr.readline().split(",")[0].split()[-1]
    for _ in range(3):
        process.stderr.readline()
    own.stop_at_once()
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 1 and f"{name} is left there" in rest, rest
    own.start()
    assert scratches(own) == [[name]]


def test_refusals(database):
    done = servers.run(["selftest", "--store", "sqlite:x.db"])
    assert done.returncode == 2 and "database servers" in done.stderr
    for load in ("x", "-1", "1e9"):
        assert selftest("postgres://nobody@127.0.0.1:1/x", "--load", load).returncode == 2
    done = selftest(database.url("nobody_has_this"))
    assert done.returncode == 1 and done.stdout == "" and "nobody_has_this" in done.stderr, done.stderr


def test_who_may_not_is_told_and_a_signal_leaves_nothing(database, poor):
    done = selftest(poor)
    assert done.returncode == 1 and "run: GRANT" in done.stderr, done.stderr
    database.query(done.stderr.split("run: ")[1])
    process = subprocess.Popen(
        [str(servers.BINARY), "selftest", "--store", poor], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env=servers.clean_environment(),
    )  # fmt: skip
    told = [process.stderr.readline() for _ in range(4)]
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait() == 1 and "ended by a signal" in rest, (told, rest)
    process.stderr.close()
    assert scratches(database) == []
