"""A journal that is damaged: no server starts on it, and `larder check --salvage` finds a way back. On every database."""

import contextlib
import hashlib
import random
import sqlite3
import time

import pytest

from harness import redolog, servers, store
from harness.resp import encode

pytestmark = pytest.mark.sqlite  # once: it chooses the databases itself

ROWS = 8  # of the journal
EACH = 25  # keys that a row sets: more than go straight into the tables
OPTIONS = ["--journal-max", "64mb", "--apply-lag", "60s", "--durability", "always"]


class FileTables:
    """SQL on the file of a server that does not run. Its groups went to the log beside it: they become rows of the journal, which is
    what earlier versions left, and servers that had no room for a log. test_log.py damages logs."""

    keep = "CREATE TABLE kept (seq INTEGER, changes BLOB)"
    stop = "SELECT 1"
    keys, hex = "keys", "hex(changes)"

    def __init__(self, data):
        self.data = data
        self.copy = f"{data.path}.salvaged"

    def keep_groups(self):
        for record in redolog.records(self.data.path):
            self(f"INSERT INTO kept VALUES ({record.seq}, {self.literal(record.payload)})")
        for file in redolog.segments(self.data.path):
            file.unlink()
        self("UPDATE larder_meta SET value = '0' WHERE name = 'redo_open'")

    def _run(self, path, sql):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            return connection.executescript(sql) if ";" in sql else connection.execute(sql).fetchall()

    def __call__(self, sql):
        return self._run(self.data.path, sql)

    def literal(self, data):
        return f"x'{data.hex()}'"

    def salvaged(self, what):
        """Of the rows that were left out."""
        return self._run(self.copy, f"SELECT {what} FROM larder_journal ORDER BY seq")

    def lost(self, what):
        return self._run(self.copy, f"SELECT {what.format(key='hex(key)', value='hex(value)')} FROM lost")

    @property
    def place(self):
        return self.copy


class ServerTables:
    """SQL on a database server."""

    place = "the tables larder_journal_salvaged and larder_lost"

    def __init__(self, data):
        self.data = data

    def __call__(self, sql):
        return self.data.server.query(sql, self.data.name)

    def keep_groups(self):
        """A trigger has."""

    def salvaged(self, what):
        return self(f"SELECT {what} FROM larder_journal_salvaged ORDER BY seq")


class PostgresTables(ServerTables):
    keep = """CREATE TABLE kept (seq bigint, changes bytea);
              CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
               BEGIN INSERT INTO kept VALUES (NEW.seq, NEW.changes); RETURN NEW; END $$;
              CREATE TRIGGER keep BEFORE INSERT ON larder_journal FOR EACH ROW EXECUTE FUNCTION keep()"""
    stop = "DROP TRIGGER keep ON larder_journal; DROP FUNCTION keep"
    keys, hex = "keys", "encode(changes, 'hex')"

    def literal(self, data):
        return f"'\\x{data.hex()}'::bytea"

    def lost(self, what):
        return self(f"SELECT {what.format(key=self.hex_of('key'), value=self.hex_of('value'))} FROM larder_lost")

    @staticmethod
    def hex_of(column):
        return f"encode({column}, 'hex')"


class MariaTables(ServerTables):
    keep = """CREATE TABLE kept (seq BIGINT, changes LONGBLOB);
              CREATE TRIGGER keep AFTER INSERT ON larder_journal FOR EACH ROW INSERT INTO kept VALUES (NEW.seq, NEW.changes)"""
    stop = "DROP TRIGGER keep"
    keys, hex = "`keys`", "HEX(changes)"

    def literal(self, data):
        return f"x'{data.hex()}'"

    def lost(self, what):
        return self(f"SELECT {what.format(key='HEX(`key`)', value='HEX(value)')} FROM larder_lost")


ITEMS = ("chunk", "hash", "list", "set", "zset", "zset_block", "trash")
TABLES = {"sqlite": FileTables, "postgres": PostgresTables, "mariadb": MariaTables}
META = ("applied", "applying", "next_id", "next_db_number")


class Crashed:
    """What a server leaves that was killed before it applied any of its journal, and what it had acknowledged: key n was
    set to n, EACH of them by each row of the journal.

    When a server applies its journal is a matter of moments. So that nothing depends on them, the rows are kept as they
    come, and after the kill the tables get the state that they had before the first of them."""

    first = 0
    sent = acknowledged = ROWS * EACH

    def __init__(self, fleet, kind, extra=lambda row: []):
        """`extra` has more commands for each row."""
        data = store.KINDS[kind](mode="exclusive") if kind != "sqlite" else None
        self.larder = fleet.larder(*OPTIONS, **({"data": data} if data else {}))
        self.tables = TABLES[kind](self.larder.store)
        self.larder.stop()
        before = {name: self.meta(name) for name in META}
        self.tables(self.tables.keep)
        self.larder.start()
        self.write(extra)
        self.larder.kill()
        self.tables.keep_groups()
        reset = "".join(f"UPDATE larder_meta SET value = '{value}' WHERE name = '{name}'; " for name, value in before.items())
        self.tables(
            f"{self.tables.stop}; DELETE FROM larder_key; DELETE FROM larder_journal;"
            f"UPDATE larder_db SET {self.tables.keys} = 0, expires = 0; {reset}"
            + "".join(f"DELETE FROM larder_{table};" for table in ITEMS) +
            "INSERT INTO larder_journal SELECT seq, changes FROM kept; DROP TABLE kept"
        )
        self.rows = self.pending()
        assert len(self.rows) == ROWS

    def write(self, extra):
        with self.larder.connect() as c:
            for row in range(ROWS):
                numbers = range(row * EACH, (row + 1) * EACH)
                commands = [[b"SET", b"key:%07d" % n, b"%d" % n] for n in numbers] + extra(row)
                c.send(b"".join(encode(command) for command in [[b"MULTI"], *commands, [b"EXEC"]]))
                replies = [c.read() for _ in range(len(commands) + 2)][-1].plain()
                assert replies[:EACH] == [b"OK"] * EACH and len(replies) == len(commands)

    def meta(self, name):
        ((value,),) = self.tables(f"SELECT value FROM larder_meta WHERE name = '{name}'")
        return int(value)

    def pending(self):
        """The numbers of the rows that are not in the tables."""
        return [int(seq) for (seq,) in self.tables(f"SELECT seq FROM larder_journal WHERE seq > {self.meta('applied')} ORDER BY seq")]

    def row(self, seq):
        ((row,),) = self.tables(f"SELECT {self.tables.hex} FROM larder_journal WHERE seq = {seq}")
        return bytes.fromhex(row)

    def put(self, seq, row):
        self.tables(f"UPDATE larder_journal SET changes = {self.tables.literal(row)} WHERE seq = {seq}")

    def damage(self, seq, r=random.Random(1)):
        """One bit of the row changes."""
        row = bytearray(self.row(seq))
        at = r.randrange(len(row) * 8)
        row[at // 8] ^= 1 << at % 8
        self.put(seq, bytes(row))

    def refused(self):
        with pytest.raises(servers.StartError) as failure:
            self.larder.start()
        return failure.value.log

    def check(self, *options):
        return servers.run(["check", "--store", self.larder.store.url, *options], binary=self.larder.binary)

    def present(self, others=0):
        """The keys that are there, by number; each has its value. There are so many others."""
        found = []
        with self.larder.connect() as c:
            for n, value in enumerate(c("MGET", *(f"key:{n:07}" for n in range(self.sent)))):
                assert value in (None, b"%d" % n)
                if value is not None:
                    found.append(n)
            assert c("DBSIZE") == len(found) + others
        return found

    def of_rows(self, *indexes):
        """The keys that these rows of the journal set."""
        return [n for i in indexes for n in range(i * EACH, (i + 1) * EACH)]

    def lost(self):
        """The numbers of the keys that were left out and are certain."""
        lost = set()
        for key, value, certain, db, kind in self.tables.lost("{key}, {value}, certain, db, type"):
            if certain in (1, "1", "t"):
                assert bytes.fromhex(key) == b"key:%07d" % int(bytes.fromhex(value)) and int(db) == 0 and kind == "string"
                lost.add(int(bytes.fromhex(value)))
        return lost


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def crashed(fleet, request):
    return Crashed(fleet, request.param)


def test_a_journal_is_checked_and_left_alone(crashed):
    done = crashed.check()
    assert done.returncode == 0, done.stdout
    assert f"journal ... ok, {ROWS} rows to be applied\n" in done.stdout
    assert crashed.pending() == crashed.rows
    done = crashed.check("--salvage")
    assert done.returncode == 0 and done.stdout == f"nothing is damaged: {ROWS} rows to be applied by the next server\n"
    assert crashed.pending() == crashed.rows
    crashed.larder.start()
    assert crashed.present() == crashed.of_rows(*range(ROWS))


@pytest.mark.parametrize("at", [0, ROWS // 2, ROWS - 1], ids=["first", "middle", "last"])
def test_what_is_behind_a_damaged_row_is_left_out(crashed, at):
    damaged = crashed.rows[at]
    crashed.damage(damaged)
    log = crashed.refused()
    assert f"row {damaged} of the journal is damaged: " in log
    assert "larder check --salvage" in log

    done = crashed.check()
    assert done.returncode == 3 and "journal ... WRONG\n" in done.stdout and f"row {damaged} of the journal is damaged" in done.stdout
    assert "see larder check --salvage" in done.stdout

    done = crashed.check("--salvage")
    assert done.returncode == 0, done.stdout + done.stderr
    behind = crashed.rows[at:]
    assert f"row {damaged} is damaged: " in done.stdout
    assert f"left out: {len(behind)} of {ROWS} rows" in done.stdout
    assert f"copied to {crashed.tables.place}\n" in done.stdout
    assert f"\napplied: {at} row" in done.stdout
    for i in range(at + 1, ROWS):
        names = ", ".join(f"'key:{n:07}'" for n in crashed.of_rows(i)[:10])
        assert f"\n  row {crashed.rows[i]}: {names} and {EACH - 10} more\n" in done.stdout
    assert crashed.pending() == []

    crashed.larder.start()
    assert crashed.present() == crashed.of_rows(*range(at)), "what is there is a state of the past"
    assert crashed.lost() == set(crashed.of_rows(*range(at + 1, ROWS)))
    assert [(int(seq), bool(why)) for seq, why in crashed.tables.salvaged("seq, damage")] == [(seq, seq == damaged) for seq in behind]

    # It goes on as if nothing had been.
    with crashed.larder.connect() as c:
        c("SET", "more", "x")
        c("RPUSH", "list", *range(20))
    crashed.larder.kill()
    crashed.larder.check()
    crashed.larder.start()
    with crashed.larder.connect() as c:
        assert c("GET", "more") == b"x" and c("LLEN", "list") == 20


def test_only_damaged_rows_are_skipped(crashed):
    damaged = 1
    crashed.damage(crashed.rows[damaged])
    crashed.refused()
    done = crashed.check("--salvage=skip")
    assert f"left out: 1 of {ROWS} rows" in done.stdout
    assert done.returncode == 0, done.stdout  # strings do not depend on each other
    crashed.larder.start()
    assert crashed.present() == crashed.of_rows(*(i for i in range(ROWS) if i != damaged)), "one stretch is missing"


def collections(row):
    """Collections of every type that grow, shrink and go."""
    return [
        [b"RPUSH", b"list", *(b"%d-%d" % (row, i) for i in range(20))],
        [b"HSET", b"hash", *(b"%d-%d" % (row, i // 2) for i in range(20))],
        [b"SADD", b"set", *(b"%d-%d" % (row, i) for i in range(20))],
        [b"ZADD", b"zset", *(b"%d" % (row * 20 + i // 2) for i in range(20))],
        [b"SETRANGE", b"long", b"%d" % (row * 40_000), b"x" * 40_000],
        [b"LPOP", b"list", b"3"],
        [b"SREM", b"set", b"%d-3" % row, b"%d-4" % (row - 1)],
        *([[b"DEL", b"hash", b"set"]] if row == 2 else []),
    ]


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("how", ["--salvage", "--salvage=skip"])
def test_collections(fleet, kind, how):
    """What remains before the damaged row fits together. What was behind it does not without it, and the report says so."""
    crashed = Crashed(fleet, kind, collections)
    crashed.damage(crashed.rows[5])
    done = crashed.check(how)
    whole = how == "--salvage"
    assert done.returncode == (0 if whole else 3), done.stdout + done.stderr
    crashed.larder.start()
    with crashed.larder.connect() as c:
        if whole:
            assert c("LRANGE", "list", 0, -1) == [b"%d-%d" % (row, i) for row in range(5) for i in range(20)][15:]
            assert c("HLEN", "hash") == 20 and c("ZCARD", "zset") == 50 and c("STRLEN", "long") == 200_000
        else:
            assert c.call("LRANGE", "list", 0, -1).is_error
            c("DEL", "list", "hash", "set", "zset", "long")
    found = crashed.present(others=5 if whole else 0)
    assert found == crashed.of_rows(*(range(5) if whole else (0, 1, 2, 3, 4, 6, 7)))
    crashed.larder.stop()
    crashed.larder.check()


def test_numbers_of_items_are_put_right(crashed):
    """Of what survives in the tables: each item has a number of its own, below those that the key gives out next."""
    bytes_of, maria = crashed.tables.literal, isinstance(crashed.tables, MariaTables)
    columns = ("seq, `key`" if maria else "key") + ", db, type, id, size, first, version, expire_at, value, numbers"
    bits = ", bits" if maria else ""
    rows = [(1, b"torn", 4, 500_001, 5, 4), (2, b"dense", 2, 500_002, 2, 1), (3, b"holes", 5, 500_003, 2, 9)]
    crashed.tables("".join(
        f"INSERT INTO larder_key ({columns}) SELECT {f'{seq}, ' if maria else ''}{bytes_of(name)}, number, {kind}, {id}, {size}, 0, 1, 0, {bytes_of(b'')}, {numbers}"
        " FROM larder_db WHERE db = 0;" for seq, name, kind, id, size, numbers in rows
    ) + "INSERT INTO larder_set (id, member, ord) VALUES "
        + ", ".join(f"(500001, {bytes_of(m)}, {ord})" for m, ord in ((b"a", 3), (b"b", 3), (b"c", 9)))
        + ";INSERT INTO larder_hash (id, field, expire_at, ord, value) VALUES "
        + ", ".join(f"(500002, {bytes_of(f)}, 0, {ord}, {bytes_of(f)})" for f, ord in ((b"a", 1), (b"b", 0)))
        + f";INSERT INTO larder_zset (id, member, score, ord{bits}) VALUES "
        + ", ".join(f"(500003, {bytes_of(m)}, 0.0, {ord}{', 0' if bits else ''})" for m, ord in ((b"a", 0), (b"b", 7)))
        + ";UPDATE larder_meta SET value = '600000' WHERE name = 'next_id';"
    )  # fmt: skip
    crashed.damage(crashed.rows[1])
    done = crashed.check("--salvage=skip")
    assert done.returncode == 0, done.stdout + done.stderr
    found = crashed.tables("SELECT id, size, numbers FROM larder_key WHERE id >= 500001 ORDER BY id")
    assert [tuple(map(int, row)) for row in found] == [(500_001, 3, 12), (500_002, 2, 0), (500_003, 2, 9)]
    ords = crashed.tables("SELECT ord FROM larder_set WHERE id = 500001 ORDER BY member")
    assert [int(ord) for (ord,) in ords] == [3, 11, 9], "one of two that share a number gets another"
    crashed.larder.start()
    with crashed.larder.connect() as c:
        assert c("SCARD", "torn") == 3 and c("SMISMEMBER", "torn", "a", "b", "c") == [1, 1, 1]
        assert c("HMGET", "dense", "a", "b") == [b"a", b"b"] and c("ZCARD", "holes") == 2


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
def test_scripts_and_functions(fleet, kind):
    """They are in no client's database, and are salvaged with the rows before the damaged one."""
    code = b"#!lua name=lib%d\nredis.register_function('f%d', function() return %d end)"
    crashed = Crashed(fleet, kind, lambda row: [[b"SCRIPT", b"LOAD", b"return %d" % row], [b"FUNCTION", b"LOAD", code % (row, row, row)]])
    crashed.damage(crashed.rows[5])
    done = crashed.check("--salvage")
    assert done.returncode == 0, done.stdout + done.stderr
    crashed.larder.start()
    with crashed.larder.connect() as c:
        shas = [hashlib.sha1(b"return %d" % row).hexdigest() for row in range(ROWS)]
        assert c("SCRIPT", "EXISTS", *shas) == [1] * 5 + [0] * 3
        assert [c("EVALSHA", shas[row], 0) for row in range(5)] == [c("FCALL", f"f{row}", 0) for row in range(5)] == list(range(5))
        assert len(c("FUNCTION", "LIST")) == 5
        c("FLUSHALL")  # numbers of databases go on from where they were
        c("SET", "key", "x")
        assert c("FCALL", "f4", 0) == 4
    assert crashed.meta("next_db_number") < 1000
    crashed.larder.stop()
    crashed.larder.check()


def test_rows_that_are_partly_in_the_tables(crashed):
    """Then what was before cannot be had any more: rows up to there are kept, but for the damaged one."""
    crashed.tables(f"UPDATE larder_meta SET value = '{crashed.rows[3]}' WHERE name = 'applying'")
    crashed.damage(crashed.rows[1])
    done = crashed.check()
    assert done.returncode == 3 and "were not checked" in done.stdout
    done = crashed.check("--salvage")
    assert done.returncode == 0, done.stdout
    assert f"left out: {ROWS - 3} of {ROWS} rows" in done.stdout
    crashed.larder.start()
    assert crashed.present() == crashed.of_rows(0, 2, 3)


@pytest.mark.parametrize("crashed", ["sqlite"], indirect=True)  # what is judged are the same bytes everywhere
def test_every_kind_of_damage(crashed):
    """Whatever became of a row, it is found, and what was before it is there."""
    damaged = crashed.rows[2]
    row = crashed.row(damaged)
    for bad in [b"", b"\x01", row[:-1], row[: len(row) // 2], row + b"\0", b"\x02" + row[1:], bytes(len(row)), random.Random(2).randbytes(len(row))]:
        crashed.put(damaged, bad)
        done = crashed.check()
        assert done.returncode == 3 and f"row {damaged} of the journal is damaged" in done.stdout, bad[:20]
    crashed.refused()
    done = crashed.check("--salvage")
    assert done.returncode == 0 and f"row {damaged} is damaged" in done.stdout
    crashed.larder.start()
    assert crashed.present() == crashed.of_rows(0, 1)


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_the_lease_of_a_server_elsewhere(fleet, kind):
    """It may still answer from memory: nothing changes before its lease is over, and then it is no longer the owner."""
    crashed = Crashed(fleet, kind)
    crashed.tables("UPDATE larder_meta SET value = 'pid 1 on host far (0); lease 1500 ms; process far 1' WHERE name = 'owner'")
    crashed.damage(crashed.rows[1])
    started = time.monotonic()
    done = crashed.check("--salvage")
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - started >= 1.5
    assert crashed.tables("SELECT count(*) FROM larder_meta WHERE name = 'owner' AND value = ''") == [["1"]]


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb"])
def test_a_server_is_in_the_way(fleet, kind):
    larder = fleet.larder(**({"data": store.KINDS[kind](mode="exclusive")} if kind != "sqlite" else {}))
    done = servers.run(["check", "--salvage", "--store", larder.store.url], binary=larder.binary)
    assert done.returncode == 1 and "in use" in done.stderr


def test_check_beside_a_busy_server(fleet):
    """It finds a moment when the tables are whole."""
    larder = fleet.larder("--journal-max", "1mb", "--apply-lag", "50ms")
    with larder.connect() as c:
        for round in range(5):
            first = round * 20_000
            c.send(b"".join(encode([b"HSET", b"hash%d" % (n % 100), b"f%d" % n, b"v" * 50]) for n in range(first, first + 20_000)))
            done = servers.run(["check", "--store", larder.store.url], binary=larder.binary)
            assert done.returncode == 0, done.stdout + done.stderr
            for _ in range(20_000):
                c.read()
