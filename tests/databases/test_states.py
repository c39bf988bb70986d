"""What SQL sees of tables that one server has for itself is a state that was, and stays so whatever is killed."""

import contextlib
import signal
import time

import pytest

from harness import servers, store, wait
from harness.databases import QueryError
from harness.transfers import SUM, Transfers

SECONDS = 3.0
OFTEN = ["--apply-lag", "100ms"]  # passes, one behind the other
LOOK = 0.15  # InnoDB tells of transactions from a copy, which stays as it is while it is asked for more often than each 0.1 s
NUMBER = {"postgres": "value::bigint", "mariadb": "CAST(value AS SIGNED)"}
KEY = {"postgres": "key", "mariadb": "`key`"}


def applied(kind):
    return f"(SELECT {NUMBER[kind]} FROM larder_meta WHERE name = 'applied')"


def look(session, kind):
    """In one statement: what all amounts add up to, and up to which change set the tables have them."""
    total, upto = session(f"SELECT ({SUM.format(KEY[kind])}), {applied(kind)}")[0].replace("|", "\t").split("\t")
    return 0 if total in ("", "NULL") else int(float(total)), int(upto)


def look_in_parts(session, kind):
    """The same in two statements, each of which sees a state of its own."""
    parts = [f"{SUM.format(KEY[kind])} AND {KEY[kind]} {which} LIKE '%0'" for which in ("", "NOT")]
    return sum(int(float(session(part)[0] or 0)) for part in parts if session(part)[0] not in ("", "NULL"))


def applier_of(data):
    """The number of the session whose transaction brings rows into the tables; None: there is none now."""
    sql = {
        "postgres": "SELECT a.pid FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid WHERE a.datname = current_database()"
        " AND l.locktype = 'relation' AND l.relation = 'larder_key'::regclass AND l.mode = 'RowExclusiveLock' LIMIT 1",
        "mariadb": "SELECT t.trx_mysql_thread_id FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p"
        " ON p.id = t.trx_mysql_thread_id WHERE p.db = database() AND t.trx_rows_modified > 100 LIMIT 1",
    }
    rows = data.server.query(sql[data.kind], data.name)
    return rows[0][0] if rows else None


def kill_applier(data):
    number = wait.until(lambda: applier_of(data), "a pass runs", pause=LOOK)
    end = {"postgres": "SELECT pg_terminate_backend({})", "mariadb": "KILL CONNECTION {}"}
    with contextlib.suppress(QueryError):  # it may have ended meanwhile
        data.server.query(end[data.kind].format(number), data.name)


def settled(data):
    """The sum in the tables when they have everything."""
    (row,) = data.query(SUM.format(KEY[data.kind]))
    return int(float(row[0]))


def test_every_sum_is_of_one_state(fleet, kind, alone):
    larder = fleet.larder(*OFTEN, data=alone)
    states, torn = set(), 0
    with Transfers(larder) as transfers, alone.session() as session:
        wait.until(lambda: look(session, kind)[1] > 0, "something is in the tables")
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            total, upto = look(session, kind)
            assert total == 0, f"half a transfer, at {upto}"
            states.add(upto)
        deadline = time.monotonic() + 30
        while not torn and time.monotonic() < deadline:  # it can be seen when there is something to see
            torn += look_in_parts(session, kind) != 0
    assert torn and len(states) > 2 and transfers.done > 100 and not transfers.problems
    assert settled(alone) == 0
    larder.stop()
    larder.check()


def test_a_pass_whose_session_is_ended_is_done_again(fleet, kind, alone):
    larder = fleet.larder(*OFTEN, data=alone)
    with Transfers(larder, keys=20000, at_once=200) as transfers, alone.session() as session:
        for _ in range(3):
            kill_applier(alone)
            assert look(session, kind)[0] == 0
        before = look(session, kind)[1]
        wait.until(lambda: look(session, kind)[1] > before, "passes go on")
    assert transfers.done > 100 and not transfers.problems
    assert settled(alone) == 0
    larder.stop()
    larder.check()


@pytest.mark.parametrize("killed", ["the server", "the database"])
def test_killed_during_a_pass(fleet, own, killed):
    data = store.KINDS[own.kind](on=own, mode="exclusive")
    larder = fleet.larder(*OFTEN, data=data)
    with Transfers(larder, keys=20000, at_once=200) as transfers:
        wait.until(lambda: applier_of(data), "a pass runs", pause=LOOK)
        if killed == "the server":
            larder.kill()
        else:
            own.kill()
            own.start()
    with data.session() as session:
        assert look(session, own.kind)[0] == 0
    if killed == "the server":
        larder.start()
    with larder.connect() as c:
        wait.until(lambda: not c.call("SET", "probe", 1).is_error, "it serves")
    assert transfers.done > 100 and settled(data) == 0
    larder.stop()
    larder.check()


def test_a_superseded_server_commits_no_pass(fleet, kind, alone):
    """The owner is another one, as after a takeover that it has not noticed: its next pass does."""
    larder = fleet.larder(data=alone)
    with larder.connect() as c:
        c("MSET", *(word for i in range(100) for word in (f"old{i}", 1)))
        c("SAVE")
        alone.server.query("UPDATE larder_meta SET value = 'another' WHERE name = 'owner'", alone.name)
        c("MSET", *(word for i in range(100) for word in (f"new{i}", 1)))
    assert larder.process.wait(30) == 1
    larder.kill()
    assert "was taken over" in larder.log_text()
    (count,) = alone.server.query(f"SELECT count(*) FROM larder_strings WHERE {KEY[kind]} LIKE 'new%'", alone.name)
    assert count == ["0"]
    other = fleet.larder(data=alone)
    with other.connect() as c:
        assert c("EXISTS", "old1", "new1") == 2


@contextlib.contextmanager
def a_pass_that_waits(fleet, data):
    """A server whose pass has begun and cannot go on, and which has lost its other sessions."""
    larder = fleet.larder("--store-timeout", "20s", data=data)
    with larder.connect() as c:
        lock = {"postgres": "BEGIN; LOCK TABLE larder_key IN SHARE MODE", "mariadb": "LOCK TABLES larder_key READ"}
        with data.server.during(lock[data.kind], data.name):
            c("MSET", *(word for i in range(100) for word in (f"new{i}", 1)))
            mine = {
                "postgres": "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
                "mariadb": "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for table%' AND db = database()",
            }
            ((number,),) = wait.until(lambda: data.server.query(mine[data.kind], data.name), "a pass waits")
            larder.process.send_signal(signal.SIGSTOP)
            end_others(data, number)
            yield larder
    larder.kill()


def end_others(data, number):
    if data.kind == "postgres":
        data.server.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'larder'"
            f" AND datname = current_database() AND pid <> {number}",
            data.name,
        )
        return
    others = f"SELECT id FROM information_schema.processlist WHERE db = database() AND command = 'Sleep' AND id <> {number}"
    for (other,) in data.server.query(others, data.name):
        with contextlib.suppress(QueryError):  # it may have ended meanwhile
            data.server.query(f"KILL CONNECTION {other}", data.name)


def test_no_server_comes_in_while_a_pass_runs(fleet, kind, alone):
    with a_pass_that_waits(fleet, alone):
        done = servers.run(["serve", "--port", str(servers.free_port()), "--busy-timeout", "10ms", "--store", alone.url])
        assert done.returncode == 1 and "is in use by another server" in done.stdout + done.stderr
        done = servers.run(["serve", "--port", str(servers.free_port()), "--busy-timeout", "10ms", "--store", alone.server.url(alone.name)])
        assert done.returncode == 1 and "is in use by another server" in done.stdout + done.stderr


def test_whoever_changes_the_owner_waits_for_a_pass(fleet, kind, alone):
    """As an application's function does, and a server of an earlier version, which look for two locks."""
    soon = {"postgres": "SET lock_timeout = 200", "mariadb": "SET innodb_lock_wait_timeout = 1"}
    with a_pass_that_waits(fleet, alone), pytest.raises(QueryError, match="lock timeout|Lock wait timeout"):
        alone.server.query(f"{soon[kind]}; UPDATE larder_meta SET value = '' WHERE name = 'owner'", alone.name)
