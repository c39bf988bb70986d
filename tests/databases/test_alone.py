"""One server that has the tables of a database server for itself, with a journal in front of them."""

import contextlib
import os
import random
import re
import time

import pytest

from harness import servers, store, wait
from harness.databases import QueryError
from harness.proxy import Proxy

from .faults import Behind, Faults, Site
from .load import Crowd
from .test_sql import sql_set

CLIENTS = int(os.environ.get("LARDER_HOSTILE_CLIENTS", 48))
SECONDS = float(os.environ.get("LARDER_HOSTILE_SECONDS", 0))  # no longer than every fault takes once
LEAST = 300
SMALL = ["--journal-max", "256kb", "--apply-lag", "20ms"]
KEYS = [f"key{i}" for i in range(50)]


@pytest.fixture
def mine(own):
    """A database on a server for one test alone, which one Larder has for itself."""
    return store.KINDS[own.kind](on=own, mode="exclusive")


@pytest.fixture
def proxied(request, tmp_path, own, mine):
    """A Larder that reaches it through a proxy, and the proxy. A test may say how long its lease is."""
    lease = getattr(request, "param", "5s")
    proxy = Proxy(own.port)
    url = own.url(mine.name, tcp=True, mode="exclusive").replace(f":{own.port}/", f":{proxy.port}/")
    larder = servers.Larder(
        tmp_path / "proxied", ["--store-timeout", "5s", "--exclusive-lease", lease], data=Behind(mine, url)
    ).start()
    yield larder, proxy
    larder.kill()
    larder.check_log()
    proxy.close()


def is_refused(data):
    """Whether another server is kept out."""
    done = servers.run(["serve", "--port", str(servers.free_port()), "--busy-timeout", "10ms", "--store", data.url])
    return done.returncode == 1 and "is in use by another server: pid" in done.stdout + done.stderr


def serves(server):
    with server.connect() as c:
        return not c.call("SET", "probe", server.port).is_error


@contextlib.contextmanager
def tables_stand_still(data):
    """They can be read, and nobody can write to larder_key."""
    lock = {"postgres": "BEGIN; LOCK TABLE larder_key IN SHARE MODE", "mariadb": "LOCK TABLES larder_key READ"}
    with data.server.during(lock[data.kind], data.name):
        yield


def pending(data):
    (count,) = data.server.query(store.BEHIND.format(data.number), data.name)
    return int(count[0])


def write_all(server, value):
    """In one change set that is too large to go straight into the tables."""
    with server.connect() as c:
        replies = c.pipeline([("MULTI",), *(("SET", key, f"{key} {value}") for key in KEYS), ("HSET", "h", "f", value), ("EXEC",)])
        assert not replies[-1].is_error, replies[-1]


def has_all(server, value):
    with server.connect() as c:
        assert c("MGET", *KEYS) == [f"{key} {value}".encode() for key in KEYS]
        assert c("HGETALL", "h") == [b"f", value.encode()]


@contextlib.contextmanager
def left_in_the_journal(fleet, data, value):
    """Written, acknowledged, and not in the tables when its server was killed. They stand still yet."""
    larder = fleet.larder(data=data)
    write_all(larder, "before")
    wait.until(lambda: pending(data) == 0, "the tables are current")
    with tables_stand_still(data):
        write_all(larder, value)
        has_all(larder, value)
        larder.kill()
        assert pending(data) > 0
        yield larder


# --- crashes


def test_what_is_in_the_journal_is_applied_by_the_next_start(fleet, alone):
    with left_in_the_journal(fleet, alone, "new") as larder:
        pass
    done = servers.run(["check", "--store", alone.url])
    assert done.returncode == 0 and re.search(r"journal \.\.\. ok, \d+ rows? to be applied\n", done.stdout), done.stdout
    assert pending(alone) > 0
    larder.start()
    assert pending(alone) == 0
    has_all(larder, "new")
    larder.stop()
    larder.check()


def test_a_server_that_is_killed_while_it_applies_the_journal(fleet, alone):
    with left_in_the_journal(fleet, alone, "new") as larder:
        for _ in range(3):
            larder._spawn()
            wait.until(lambda: waits_for_the_tables(alone), "the journal is being applied")
            larder.kill()
            assert pending(alone) > 0
    larder.start()
    has_all(larder, "new")
    larder.stop()
    larder.check()


def waits_for_the_tables(data):
    sessions = {
        "postgres": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
        "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%' AND db = database()",
    }
    (count,) = data.server.query(sessions[data.kind], data.name)
    return int(count[0]) > 0


@pytest.mark.parametrize("how", ["shared", "no journal"])
def test_whoever_comes_next_applies_it(fleet, kind, alone, how):
    with left_in_the_journal(fleet, alone, "new"):
        pass
    with pytest.raises(QueryError, match="has to be applied first"):
        alone.server.query(sql_set(alone, b"key1", b"of an application"), alone.name)
    if how == "shared":
        url = alone.server.url(alone.name)
        several = [fleet.larder(data=Behind(alone, url)) for _ in range(2)]
    else:
        several = [fleet.larder("--journal-max", "0", data=alone)]
    for server in several:
        has_all(server, "new")
        server.stop()
    alone.server.query(sql_set(alone, b"key1", b"of an application"), alone.name)
    alone.server.query(sql_set(alone, b"key1", b"of an application"), alone.name)
    larder = fleet.larder(data=alone)
    with larder.connect() as c:
        assert c("GET", "key1") == b"of an application"


def test_a_damaged_row_stops_the_start(fleet, alone):
    with left_in_the_journal(fleet, alone, "new") as larder:
        pass
    (row,) = alone.server.query("SELECT max(seq) FROM larder_journal", alone.name)
    alone.server.query(f"UPDATE larder_journal SET changes = substr(changes, 1, 40) WHERE seq = {row[0]}", alone.name)
    done = servers.run(["check", "--store", alone.url])
    assert done.returncode == 3 and f"row {row[0]} of the journal is damaged" in done.stdout
    with pytest.raises(servers.StartError, match="is damaged: its checksum is wrong"):
        larder.start()
    alone.server.query(f"DELETE FROM larder_journal WHERE seq >= {row[0]}", alone.name)  # as docs/databases.md has it
    larder.start()
    has_all(larder, "before")


# --- connections


def test_a_commit_whose_answer_is_lost_is_found_out_about(mine, proxied):
    larder, proxy = proxied
    lost = set()
    with larder.connect() as c:
        c("DEBUG", "SET-ACTIVE-EXPIRE", "0")  # the sweeper looks for rows that are due: no client waits behind its answer
        for _ in range(2):  # the second time they are in memory as they are in the tables
            c("MSET", "n", 1, *(word for i in range(60) for word in (f"x{i}", 0)))
            wait.until(lambda: pending(mine) == 0, "the tables are current")
            c("SAVE")  # ... and the server knows: what comes next need not ask for the numbers of rows
        for n in range(2, 7):
            size = 1 if n % 2 else 60  # straight into the tables, or through the journal
            c("SAVE")  # the server knows that they are current, and waits for no other answer
            wait.until(lambda: mine.server.query("SELECT count(*) FROM larder_journal", mine.name) == [["0"]], "the journal is empty")
            c("SAVE")  # ... and has the answer to that
            before = last_written(mine)
            proxy.tell("deaf")
            c.send(b"MULTI\r\nINCR n\r\n" + b"".join(b"SET x%d %d\r\n" % (i, n) for i in range(size)) + b"EXEC\r\n")
            if has_it_soon(mine, before):
                lost.add(size)
            proxy.tell("cut")
            for _ in range(size + 2):
                assert not c.read().is_error
            reply = c.read()
            assert not reply.is_error, reply
            assert c("GET", "n") == b"%d" % n and c("GET", "x0") == b"%d" % n
        assert lost == {1, 60}, "of either way"
        larder.kill()
        larder.start()
    with larder.connect() as c:
        assert c("GET", "n") == b"6" and c("GET", "x59") == b"6"
    larder.stop()
    larder.check()


def has_it_soon(data, before):
    """Whether it is the commit's answer that is lost, and not an earlier one: the server is told before it gives up."""
    deadline = time.monotonic() + 2
    while last_written(data) <= before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def last_written(data):
    """The highest number of a change set that the database has."""
    seqs = f"SELECT coalesce(max(seq), 0) FROM larder_journal UNION SELECT {data.number} FROM larder_meta WHERE name = 'applied'"
    return max(int(v) for (v,) in data.server.query(seqs, data.name))


@pytest.mark.parametrize("proxied", ["10m"], indirect=True)
def test_while_the_database_is_away(proxied):
    larder, proxy = proxied
    with larder.connect() as c:
        c("MSET", "a", 1, "b", 2)
        proxy.tell("refuse")
        begun = time.monotonic()
        reply = c.call("SET", "a", "3")
        assert reply.is_error and reply.value.startswith((b"IOERR", b"UNCERTAIN")), reply
        assert time.monotonic() - begun < 30
        assert c("GET", "b") == b"2", "what is in memory is read"
        assert c("PING") == b"PONG"
        begun = time.monotonic()
        reply = c.call("SET", "b", "4")
        assert reply.is_error and reply.value.startswith(b"IOERR"), reply
        assert b"unknown" not in reply.value, "nothing was done, and that is known"
        assert time.monotonic() - begun < 4, "nobody waits for what is known to be away"
        proxy.tell("pass")
        wait.until(lambda: serves(larder), "it serves again by itself")
        assert c("MGET", "a", "b") == [b"1", b"2"]
        assert c("INCR", "b") == 3
    larder.stop()
    larder.check()


@pytest.mark.parametrize("proxied", ["500ms"], indirect=True)
def test_a_server_that_was_away_too_long_ends(fleet, mine, proxied):
    larder, proxy = proxied
    write_all(larder, "first")
    assert is_refused(mine)
    proxy.tell("refuse")
    other = fleet.larder(data=mine)
    has_all(other, "first")
    write_all(other, "second")
    with larder.connect() as c:
        c.send(b"SET key1 of-the-first\r\n")
        proxy.tell("pass")
        reply = c.read()
        assert reply.is_error, reply
    assert larder.process.wait(30) == 1
    assert "was taken over while the connection to it was lost" in larder.log_text()
    has_all(other, "second")
    other.stop()
    other.check()


def test_one_lost_connection_does_not_cost_the_tables(fleet, own, mine):
    larder = fleet.larder(data=mine)
    write_all(larder, "first")
    for n in range(6):
        end_one_session(own)
        assert is_refused(mine)
        with larder.connect() as c:
            assert c("INCR", "n") == n + 1
            assert c("GET", f"nothing{n}") is None  # of which memory knows nothing
    has_all(larder, "first")
    larder.stop()


def end_one_session(database):
    if database.kind == "postgres":
        sessions = "SELECT pid FROM pg_stat_activity WHERE application_name = 'larder' ORDER BY random() LIMIT 1"
        end = "SELECT pg_terminate_backend({})"
    else:
        sessions = "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND command = 'Sleep' ORDER BY rand() LIMIT 1"
        end = "KILL CONNECTION {}"
    for (number,) in database.query(sessions):
        database.query(end.format(number))


# --- everything


@pytest.mark.parametrize("options", [pytest.param([], marks=pytest.mark.slow), SMALL], ids=["default", "small"])
def test_nothing_is_wrong_while_everything_fails(fleet, own, mine, options):
    seed = int(os.environ.get("LARDER_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    with Site(fleet, own, mine, 1, options, mode="exclusive") as site, Faults(site, seed, SECONDS) as faults:
        with Crowd(site.servers, CLIENTS) as crowd:
            begun = time.monotonic()
            faults.run()
            wait.until(lambda: serves(site.servers[0]), "the server serves again by itself", 30)
            before = crowd.acknowledged()
            wait.until(lambda: crowd.acknowledged() > before + LEAST or crowd.problems, "work goes on")
            print(f"{len(faults.done)} faults in {time.monotonic() - begun:.0f} s; {crowd.report()}")
        assert not crowd.findings()
        site.servers[0].stop()
        site.servers[0].check()
