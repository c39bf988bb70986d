"""/metrics of a server that has done something of everything: the text itself, what it counts, and that the page, the
dashboard and the alert rules of docs/ speak of what is there."""

import json
import pathlib
import re
import socket
import sqlite3
import subprocess
import urllib.request

import pytest

from harness import prometheus, store, wait
from harness.http import HttpLarder
from harness.resp import Closed

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
METRIC = re.compile(r"\b(?:larder|process)_[a-z_]+\b")

# What the dashboard does without.
NOT_SHOWN = {
    "larder_cache_rows", "larder_memory_peak_bytes", "larder_sweep_passes_total", "process_max_fds",
    "process_start_time_seconds", "process_threads", "process_virtual_memory_bytes", "larder_replica_connected",
    "larder_replica_failures_total", "larder_script_memory_bytes", "larder_scripts_cached", "larder_functions",
    "larder_function_libraries", "larder_scripts_busy_total", "larder_scripts_killed_total",
    "larder_sql_threads", "larder_sql_queries", "larder_sql_queries_total", "larder_sql_query_duration_seconds",
    "larder_sql_snapshot_seconds", "larder_renumbered_items_total",
}  # fmt: skip


class Scraped:
    """A server with an HTTP port."""

    def __init__(self, fleet, *options):
        self.server = fleet.new(HttpLarder, *options).start()
        self.http_port = self.server.http_port
        self.connect = self.server.connect
        self.text()  # so that an answer is counted

    def text(self):
        with urllib.request.urlopen(self.server.url + "/metrics", timeout=60) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            return answer.read()

    def scrape(self):
        return prometheus.parse(self.text())


@pytest.fixture
def scraped(fleet):
    return Scraped(fleet)


def promtool(*args, text=None):
    done = subprocess.run(["promtool", *args], input=text, capture_output=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, (done.stdout + done.stderr).decode()


def work(connection):
    """Something of every family, some of it wrong."""
    c = connection.call
    for i in range(50):
        c("SET", f"key{i}", "v" * i)
        c("GET", f"key{i}")
    c("HSET", "hash", "f", "v")
    c("RPUSH", "list", "a", "b")
    c("SADD", "set", "a")
    c("ZADD", "zset", "1", "a")
    c("SETBIT", "bits", "7", "1")
    c("MULTI")
    c("INCR", "n")
    c("EXEC")
    c("INCR", "list")  # WRONGTYPE
    c("GET")  # rejected
    c("NOSUCHCOMMAND", 'a "quoted" \\ name\n')
    c("CLIENT", "LIST")
    c("SELECT", "3")
    c("SET", "there", "1", "PX", "100000")
    c("SELECT", "0")
    c("CONFIG", "GET", "port")


# --- the text


def test_text(scraped):
    before = scraped.scrape()
    with scraped.connect() as c:
        work(c)
        middle = scraped.scrape()
        work(c)
        prometheus.check_monotonic(before, middle)
        prometheus.check_monotonic(middle, scraped.scrape())


def test_promtool_is_content(scraped):
    with scraped.connect() as c:
        work(c)
    promtool("check", "metrics", text=scraped.text())


def test_clients_choose_no_label(scraped):
    """The number of series depends on the program alone."""
    with scraped.connect() as c:
        work(c)
        before = scraped.scrape()
        for i in range(100):
            c.call(f"NOSUCH{i}", f"x{i}")
            c.call("CLIENT", f"NOSUCH{i}")
            c.call("SET", f"another{i}", "x")
            c.call("CLIENT", "SETNAME", f"name{i}")
            c.call("GET", f"missing{i}", f"ERR{i}")
        after = scraped.scrape()
    series = [{s for f in families.values() for s in f.samples} for families in (before, after)]
    assert series[1] - series[0] == {
        ("larder_commands_total", (("command", "client|setname"), ("result", result)))
        for result in ("ok", "error", "rejected")
    } | {("larder_command_seconds_total", (("command", "client|setname"),))}


# --- what it counts


def test_commands(scraped):
    with scraped.connect() as c:
        work(c)
        m = scraped.scrape()
        info = c("INFO", "all").decode()
    commands = m["larder_commands_total"]
    assert commands.get(command="set", result="ok") == 51
    assert commands.get(command="get", result="ok") == 50 and commands.get(command="get", result="rejected") == 1
    assert commands.get(command="incr", result="ok") == 1 and commands.get(command="incr", result="error") == 1
    assert commands.get(command="client|list", result="ok") == 1
    assert m["larder_error_replies_total"].get(code="WRONGTYPE") == 1
    assert m["larder_error_replies_total"].get(code="ERR") == 2
    assert m["larder_command_duration_seconds"].get("_count", family="sorted-set") == 1
    assert m["larder_command_duration_seconds"].get("_count", family="transactions") == 2
    assert m["larder_keyspace_hits_total"].get() == 49 + 1  # the empty string is one, too
    calls = {name: int(n) for name, n in re.findall(r"cmdstat_([^:]+):calls=(\d+)", info)}
    calls.pop("info", None)
    for name, n in calls.items():
        told = sum(commands.get(command=name, result=r) for r in ("ok", "error"))
        assert told == n, name
    assert m["larder_keys"].get(db="0") == 56 and m["larder_keys"].get(db="3") == 1
    assert m["larder_keys_with_expiry"].get(db="3") == 1


def test_batches_and_commits(fleet):
    scraped = Scraped(fleet, "--durability", "always")
    with scraped.connect() as c:
        c("SET", "k", "v")
        before = scraped.scrape()
        c.pipeline([("SET", f"k{i}", "v") for i in range(100)])
        for i in range(10):
            c("SET", f"l{i}", "v")
        after = scraped.scrape()

    def grown(name, suffix=""):
        return after[name].get(suffix) - before[name].get(suffix)

    assert grown("larder_rows_written_total") >= 110
    assert grown("larder_batch_commands", "_sum") >= 110
    assert grown("larder_batch_commands", "_count") >= 11
    assert grown("larder_commit_duration_seconds", "_count") >= 11
    synced_here = store.CHOICE == "sqlite"  # a database server does it by itself
    if synced_here:
        assert grown("larder_sync_duration_seconds", "_count") >= 11
        assert grown("larder_sync_duration_seconds", "_sum") > 0
    with scraped.connect() as c:
        text = c("INFO", "larder").decode()
    for name in ["commit", "sync"] if synced_here else ["commit"]:
        told = re.search(rf"{name}_usec:count=(\d+),sum=(\d+),p50=(\d+),p99=(\d+),p99.9=(\d+)\r", text)
        count, total, *quantiles = map(int, told.groups())
        assert count >= after[f"larder_{name}_duration_seconds"].get("_count") and total > 0
        assert quantiles == sorted(quantiles) and quantiles[0] > 0
    assert after["larder_store_file_bytes"].get() > 0
    assert after["larder_store_wal_bytes"].get() > 0 or not synced_here


def test_expiry(scraped):
    with scraped.connect() as c:
        c("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        c("DEBUG", "CLOCK", "1700000000000")
        for i in range(20):
            c("SET", f"k{i}", "v", "PX", "1000")
        c("SET", "deleted", "v")
        c("DEL", "deleted")
        c("DEBUG", "CLOCK", "1700000010000")
        assert c("GET", "k1") is None and c("GET", "k2") is None
        for _ in range(5):  # each key counts once, however often it is asked for
            assert c("GET", "k1") is None and c("EXISTS", "k1", "k2") == 0 and c("MGET", "k1", "k2") == [None, None]
        m = scraped.scrape()
        assert m["larder_keys_expired_total"].get(by="read") == 2 and m["larder_keys_expired_total"].get(by="sweep") == 0
        assert m["larder_sweep_backlog_keys"].get() == 20
        assert m["larder_sweep_lag_seconds"].get() == 9
        c("DEBUG", "SET-ACTIVE-EXPIRE", "1")

        def swept():
            m = scraped.scrape()
            return m["larder_keys_expired_total"].get(by="sweep") == 20 and m["larder_sweep_passes_total"].get() and m

        m = wait.until(swept, "the sweeper removes what expired")
        # The sweeper goes on behind what it removed last. What a clock that was set back left before that place is found, too.
        c("DEBUG", "CLOCK", "1700000000000")
        c("SET", "early", "v", "PX", "10")
        c("SET", "later", "v", "PX", "9000")
        c("DEBUG", "CLOCK", "1700000010000")

        def swept_again():
            m = scraped.scrape()
            return m["larder_keys_expired_total"].get(by="sweep") == 22 and m

        wait.until(swept_again, "the sweeper removes what expired before that, too")
    assert m["larder_sweep_rows_total"].get(kind="expired") == 20
    assert m["larder_sweep_duration_seconds"].get("_count") >= 1
    assert m["larder_sweep_backlog_keys"].get() == 0 and m["larder_sweep_lag_seconds"].get() == 0


def test_connections(fleet, tmp_path):
    path = tmp_path / "socket"
    scraped = Scraped(fleet, "--unixsocket", str(path), "--maxclients", "6")
    with scraped.connect() as c, socket.socket(socket.AF_UNIX) as unix:
        unix.connect(str(path))
        unix.sendall(b"PING\r\n")
        assert unix.recv(100) == b"+PONG\r\n"
        m = scraped.scrape()
        assert m["larder_connections"].get(listener="tcp") == 1
        assert m["larder_connections"].get(listener="unix") == 1
        assert m["larder_connections"].get(listener="http") == 1
        assert m["larder_connections_max"].get() == 6
        received = m["larder_network_received_bytes_total"].get()
        c("ECHO", "x" * 10000)
        with scraped.connect() as other:
            c("CLIENT", "KILL", "ID", other("CLIENT", "ID"))
        with scraped.connect() as rude, pytest.raises(Closed):
            rude.send(b"*1\r\n$-5\r\n")
            rude.read()
            rude.read()
        wait.until(lambda: c("INFO", "clients").count(b"connected_clients:2"), "the others are gone")
        m = scraped.scrape()
        assert m["larder_connections_closed_total"].get(reason="killed") == 1
        assert m["larder_connections_closed_total"].get(reason="protocol") == 1
        assert m["larder_network_received_bytes_total"].get() > received + 10000
        assert m["larder_connections_accepted_total"].get(listener="http") >= 2
        many = [scraped.connect() for _ in range(8)]
        wait.until(lambda: b"rejected_connections:0" not in c("INFO", "stats"), "too many are turned away")
        for one in many:
            one.close()
        wait.until(lambda: c("INFO", "clients").count(b"connected_clients:2"), "the others are gone")
        m = scraped.scrape()
        assert m["larder_connections_rejected_total"].get(reason="maxclients") >= 1


@pytest.mark.sqlite
def test_database_errors(fleet):
    scraped = Scraped(fleet, "--busy-timeout", "0", "--journal-max", "0")
    with scraped.connect() as c:
        c("SET", "k", "v")
        other = sqlite3.connect(scraped.server.store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        reply = c.error("SET", "k", "w")
        other.execute("ROLLBACK")
        other.close()
        assert reply.startswith("TRYAGAIN")
        m = scraped.scrape()
    assert m["larder_database_errors_total"].get(status="busy") >= 1
    assert m["larder_database_errors_total"].get(status="corrupt") == 0
    assert m["larder_database_up"].get() == 1


@pytest.mark.skipif(store.CHOICE != "postgres", reason="needs a connection that can be cut off")
def test_reconnects(scraped):
    with scraped.connect() as c:
        c("SET", "k", "v")
        assert scraped.scrape()["larder_database_reconnects_total"].get() == 0
        scraped.server.store.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

        def works():
            return not c.call("SET", "k", "w").is_error

        wait.until(works, "the connection is made anew")
        m = scraped.scrape()
    assert m["larder_database_reconnects_total"].get() >= 1
    assert m["larder_database_up"].get() == 1


def test_http(scraped):
    for path, status in [("/version", 200), ("/keys/none", 404), ("/keys/none", 404), ("/keys/%zz", 400)]:
        with socket.create_connection(("127.0.0.1", scraped.http_port), timeout=60) as s:
            s.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            assert s.recv(12) == b"HTTP/1.1 %d" % status
    m = scraped.scrape()
    answers = {labels[0][1]: n for (_, labels), n in m["larder_http_answers_total"].samples.items()}
    assert answers == {"200": 2, "404": 2, "400": 1}
    assert m["larder_commands_total"].get(command="http|get", result="ok") == 2
    assert m["larder_connections_accepted_total"].get(listener="http") == 6


def test_reset(scraped):
    with scraped.connect() as c:
        work(c)
        c("CONFIG", "RESETSTAT")
    m = scraped.scrape()
    assert all(labels[0] != ("command", "get") for _, labels in m["larder_commands_total"].samples)
    assert m["larder_command_duration_seconds"].get("_count", family="string") == 0
    assert m["larder_keys"].get(db="0") == 56


def test_process(scraped):
    m = scraped.scrape()
    assert m["process_open_fds"].get() < m["process_max_fds"].get()
    fds = len(list(pathlib.Path(f"/proc/{scraped.server.pid}/fd").iterdir()))
    assert abs(m["process_open_fds"].get() - fds) <= 2
    assert m["process_resident_memory_bytes"].get() > 1 << 20
    ((_, labels),) = m["larder_build_info"].samples
    with scraped.connect() as c:
        assert f"larder_version:{dict(labels)['version']}\r\n" in c("INFO", "larder").decode()


# --- the documents


def existing(families):
    """Every name that a query may use."""
    names = set()
    for family in families.values():
        names |= {family.name + suffix for suffix in prometheus.SUFFIXES[family.type]}
    return names


def queries():
    """Every query of the dashboard, with what Grafana would put in."""
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", "5m").replace("$job", ".*").replace("$instance", ".*")
            yield panel["title"], query, target["legendFormat"]


def test_page(scraped):
    with scraped.connect() as c:
        work(c)
    families = scraped.scrape()
    page = (DOCS / "metrics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|(.*?)\| (.+) \|$", page, re.MULTILINE)
    told = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels, _ in rows}
    assert len(told) == len(rows)
    # Without replicas nothing is told of them.
    silent = {name for name in told if name.startswith(("larder_replica_", "larder_primary_"))}
    assert not any(families[name].samples for name in silent)
    assert told == {name: (f.type, told[name][1] if name in silent else f.label_names()) for name, f in families.items()}
    assert set(METRIC.findall(page)) - existing(families) <= set(families)
    # Values of labels that the program has a fixed list of.
    for name, label in [
        ("larder_database_errors_total", "status"),
        ("larder_connections", "listener"),
        ("larder_connections_rejected_total", "reason"),
        ("larder_connections_closed_total", "reason"),
        ("larder_sweep_rows_total", "kind"),
        ("larder_memory_bytes", "part"),
    ]:
        meaning = next(row[3] for row in rows if row[0] == name)
        for _, labels in families[name].samples:
            assert f"`{dict(labels)[label]}`" in meaning, (name, labels)


def test_dashboard(scraped, tmp_path):
    with scraped.connect() as c:
        work(c)
    families = scraped.scrape()
    names = existing(families)
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    panels = [p for p in dashboard["panels"] if p["type"] != "row"]
    assert [v["type"] for v in dashboard["templating"]["list"]][0] == "datasource"
    assert all(p["datasource"]["uid"] == "${datasource}" for p in panels)
    assert len({p["id"] for p in dashboard["panels"]}) == len(dashboard["panels"])
    used = set()
    rules = []
    for title, query, legend in queries():
        assert "$" not in query, title
        found = set(METRIC.findall(query))
        assert found and found <= names, title
        used |= found
        labels = set().union(*(families[n].label_names() for n in families if any(f.startswith(n) for f in found)))
        assert set(re.findall(r"{{(\w+)}}", legend)) <= labels | {"instance", "replica"}, title
        rules.append({"record": "checked", "expr": query})
    shown = {name for name in families if any(u.startswith(name) for u in used)}
    assert set(families) - shown == NOT_SHOWN
    path = tmp_path / "queries.yml"
    path.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", "--lint", "none", str(path)], capture_output=True, timeout=60)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_alerts(scraped):
    path = DOCS / "alerts.yml"
    promtool("check", "rules", str(path))
    used = set(METRIC.findall(path.read_text()))
    assert len(used) > 10 and used <= existing(scraped.scrape()) | {"larder_sync_duration_seconds"}
