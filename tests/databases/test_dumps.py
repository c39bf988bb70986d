"""Dumps restore: under the same name and another, with nothing missing; and what is not whole is refused."""

import hashlib
import pathlib
import re

import pytest

from harness import servers, store, wait

from . import dumps

HERE = pathlib.Path(__file__).parent
BYTES = bytes(range(256))
LONG = b"k" * 3000
SCRIPT = b"return 'gr\xc3\xbc\xc3\x9fe \xff'"
FUNCTIONS = {"postgres": "SELECT {}", "mariadb": "CALL {}"}


def fill(c):
    """Keys of every type, with names and values that a dump may stumble over."""
    c("SET", b"s" + BYTES, BYTES)
    c("SET", LONG, "long name")
    c("SET", "chunks", BYTES * 300)
    c("SET", "brief", "x", "EX", 3600)
    c("SETRANGE", "sparse", 70_000, "end")
    c("HSET", "hash", BYTES, "v", "f", BYTES, LONG, "w")
    c("HPEXPIRE", "hash", 3_600_000, "FIELDS", 1, "f")
    c("RPUSH", "list", "b", BYTES)
    c("LPUSH", "list", "a")
    c("SADD", "set", BYTES, LONG, "m")
    c("ZADD", "zset", "-inf", "lo", "inf", "hi", "-0.0", BYTES, "1e-300", LONG)
    c("ZADD", "many", *[w for i in range(2000) for w in (i, b"m%d" % i)])
    c("SET", "gone", "x")
    c("DEL", "gone")
    c("SELECT", 5)
    c("SET", "other", "database")
    c("SELECT", 0)
    c("SCRIPT", "LOAD", SCRIPT)
    c("FUNCTION", "LOAD", b"#!lua name=lib\nlocal bytes = '\xff\xe9'\nredis.register_function('f', function() return bytes end)")


def content(c):
    """What clients see."""
    found = {}
    for db in range(6):
        c("SELECT", db)
        for key in sorted(c("KEYS", "*")):
            reads = {b"string": ("GET",), b"list": ("LRANGE", 0, -1), b"set": ("SMEMBERS",), b"hash": ("HGETALL",),
                     b"zset": ("ZRANGE", 0, -1, "WITHSCORES")}  # fmt: skip
            name, *rest = reads[c("TYPE", key)]
            value = c(name, key, *rest)
            found[db, key] = (sorted(value) if name in ("SMEMBERS", "HGETALL") else value, c("PEXPIRETIME", key))
    c("SELECT", 0)
    if c("SCRIPT", "EXISTS", hashlib.sha1(SCRIPT).hexdigest()) == [1]:
        found["script"] = c("EVALSHA", hashlib.sha1(SCRIPT).hexdigest(), 0)
    if c("FUNCTION", "LIST"):
        found["function"] = (c("FUNCTION", "LIST", "WITHCODE"), c("FCALL", "f", 0))
    return found


def check(data):
    done = servers.run(["check", "--store", data.url])
    assert done.returncode == 0, done.stdout + done.stderr


def serves(fleet, copy, expected):
    """The copy has what the original had, and is a store like any other."""
    check(copy)
    larder = fleet.larder("--sweep-interval", "1h", data=copy)
    with larder.connect() as c:
        assert content(c) == expected
        for i in range(50):  # numbers and ids that nobody has had
            c("SET", f"new:{i}", i)
            c("RPUSH", f"newlist:{i}", i)
        assert content(c).items() >= expected.items()
        assert c("DBSIZE") == len([k for k in expected if k[0] == 0]) + 100
    larder.stop()
    copy.query(FUNCTIONS[copy.kind].format("larder_set('from sql', 'v', NULL)"))
    assert copy.query("SELECT count(*) FROM larder_strings WHERE db = 5") == [["1"]]
    check(copy)


@pytest.mark.parametrize("kind, way", dumps.PAIRS)
def test_a_dump_restores(fleet, kind, way):
    """Made while a server runs; brought back beside the original, and again when that is gone."""
    data = store.KINDS[kind]()
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        fill(c)
        expected = content(c)
        assert expected["script"] and expected["function"]
        text = dumps.dump(data, way)
        c("SET", "later", "is not in the dump")
        before = content(c)
        copy = dumps.copy_of(data, text)
        serves(fleet, copy, expected)
        assert content(c) == before  # nothing of the copy's reached the original
    larder.stop()
    check(data)
    data.server.drop_database(data.name)
    copy.query(FUNCTIONS[kind].format("larder_set('without the original', 'v', NULL)"))
    check(copy)
    serves(fleet, dumps.copy_of(data, text, name=data.name), expected)


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_dump_of_a_server_alone_has_its_journal(fleet, kind):
    """What was acknowledged is in the dump, in the tables or in the journal; whoever comes next applies it."""
    data = store.KINDS[kind](mode="exclusive")
    larder = fleet.larder("--apply-lag", "1h", data=data)
    with larder.connect() as c:
        fill(c)
        for i in range(200):
            c.send(b"SET many:%d %d\r\n" % (i, i))
        for _ in range(200):
            assert c.read().plain() == b"OK"
        expected = content(c)
        text = dumps.dump(data, next(iter(dumps.WAYS[kind])) if kind == "postgres" else "single-transaction")
    larder.kill()
    serves(fleet, dumps.copy_of(data, text), expected)
    serves(fleet, dumps.copy_of(data, text, mode="exclusive"), expected)


def start_is_refused(fleet, data):
    """A server on it ends with a message; that."""
    larder = fleet.new(servers.Larder, data=data)
    with pytest.raises(servers.StartError) as failed:
        larder.start()
    larder.process = None
    return failed.value.log


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_tables_of_version_1_are_migrated(fleet, kind):
    """As `larder serve` made them before the default of a column named a sequence no more."""
    text = (HERE / "version1" / f"{kind}.sql").read_bytes()
    data = store.KINDS[kind]()
    data = dumps.copy_of(data, text)
    assert "larder migrate --store URL brings it there" in start_is_refused(fleet, data)
    done = servers.run(["migrate", "--store", data.url])
    assert (done.returncode, done.stdout) == (0, "schema version 4, was 1\n"), done.stderr
    expected = {
        (0, b"greeting"): ("grüße \0 and all".encode(), -1),
        (0, b"hash"): ([b"f", b"g", b"v", b"w"], -1),
        (0, b"later"): (b"x", 5794775000000),
        (0, b"list"): ([b"a", b"b", b"c"], -1),
        (0, b"long"): (bytes(65536) + b"tail", -1),
        (0, b"set"): ([b"m", b"n"], -1),
        (0, b"zset"): ([b"j", b"-inf", b"m", b"1.5", b"i", b"inf"], -1),
        (3, b"other"): (b"3", -1),
    }
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        found = content(c)
        expected[0, b"later"] = (b"x", found[0, b"later"][1])
        assert found == expected and found[0, b"later"][1] > 5_000_000_000_000
        text = dumps.dump(data, next(iter(dumps.WAYS[kind])))
    larder.stop()
    whole = {"postgres": "SELECT encode(larder_get('long'), 'hex')", "mariadb": "SELECT lower(hex(larder_get('long')))"}
    assert data.query(whole[kind]) == [[(bytes(65536) + b"tail").hex()]]
    check(data)
    copy = dumps.copy_of(data, text)
    check(copy)
    assert servers.run(["migrate", "--store", copy.url]).returncode == 0
    assert copy.query(whole[kind]) == [[(bytes(65536) + b"tail").hex()]]


VERSION_3 = "ALTER TABLE larder_key DROP COLUMN numbers; UPDATE larder_meta SET value = '3' WHERE name = 'schema_version'"


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_tables_of_version_3_are_migrated(fleet, kind):
    """In place, and not while a server has them. One that comes back to tables of a newer version serves nothing."""
    data = store.KINDS[kind]()
    larder, migrate = fleet.larder(data=data), ["migrate", "--store", data.url]
    version = "UPDATE larder_meta SET value = '{}' WHERE name = 'schema_version'"
    with larder.connect() as c:
        fill(c)
        before = content(c)
        data.query(version.format(3))
        done = servers.run(migrate)
        assert done.returncode == 1 and "is in use: end all servers on it first" in done.stderr, done
        assert data.query("SELECT value FROM larder_meta WHERE name = 'schema_version'") == [["3"]]
        assert c("SADD", "set", "still here") == 1, "it goes on"
        c("SREM", "set", "still here")
    larder.stop()
    data.query(VERSION_3)
    assert "has schema version 3, this program needs version 4" in start_is_refused(fleet, data)
    done = servers.run(migrate)
    assert (done.returncode, done.stdout) == (0, "schema version 4, was 3\n"), done
    assert "from=3 to=4" in done.stderr
    larder.start()
    with larder.connect() as c:
        assert content(c) == before
        assert c("ZREM", "many", "m7", "m9") == 2 and c("ZCARD", "many") == 1998
        assert data.query("SELECT size, numbers FROM larder_key WHERE numbers > 0") == [["1998", "2000"]]
        check(data)
        data.query(version.format(99))
        data.server.end_sessions()
        wait.until(lambda: b"schema version 99" in c.call("GET", "chunks").raw, "it serves none", limit=20)
        data.query(version.format(4))
        wait.until(lambda: not c.call("GET", "chunks").is_error, "it is back")
    larder.stop()


def test_a_sequence_becomes_a_table_of_blocks():
    """MariaDB's, of version 3, wherever a migration to the next one had broken off: no number is given out again."""
    data = store.KINDS["mariadb"]()
    migrate = ["migrate", "--store", data.url]
    sequence = "CREATE SEQUENCE larder_seq INCREMENT BY 1024 NOCACHE ENGINE = InnoDB; DO SETVAL(larder_seq, {}, 0);"
    assert servers.run(migrate).returncode == 0
    states = ["DROP TABLE larder_block;" + sequence.format(102401), sequence.format(204801), ""]
    for key, (state, given) in enumerate(zip(states, [102401, 204801, 204801], strict=True)):
        data.query(state + "UPDATE larder_meta SET value = '3' WHERE name = 'schema_version'")
        done = servers.run(migrate)
        assert done.returncode == 0 and done.stdout.endswith(", was 3\n"), done
        assert data.query("SELECT count(*) FROM information_schema.tables WHERE table_name = 'larder_seq'"
                          " AND table_schema = DATABASE()") == [["0"]]  # fmt: skip
        data.query(f"CALL larder_set('{key}', 'v', NULL)")
        assert int(data.query("SELECT max(seq) FROM larder_key")[0][0]) >= given
    assert data.query("SELECT count(*), (SELECT count(*) FROM larder_block) FROM larder_key") == [["3", "0"]]
    check(data)


DAMAGE = [
    ("DROP TABLE larder_trash", "lacks table larder_trash"),
    ("DROP TABLE larder_meta", "lacks table larder_meta"),
    ("ALTER TABLE larder_journal DROP COLUMN changes", "lacks column larder_journal.changes"),
    ("DELETE FROM larder_meta WHERE name = 'next_id'", "lacks row next_id of larder_meta"),
    ("DELETE FROM larder_meta WHERE name = 'schema_version'", "lacks row schema_version of larder_meta"),
    ("DELETE FROM larder_db", "lacks rows of larder_db"),
    ("DELETE FROM larder_key", "lacks rows of larder_key"),
]
DAMAGE_OF = {
    "postgres": [
        ("DROP INDEX larder_key_name", "lacks index larder_key_name"),
        ("DROP SEQUENCE larder_seq CASCADE", "lacks sequence larder_seq"),
        ("ALTER TABLE larder_list DROP CONSTRAINT larder_list_pkey", "lacks index larder_list_pkey"),
    ],
    "mariadb": [
        ("ALTER TABLE larder_key DROP KEY larder_key_name", "lacks index larder_key_name of larder_key"),
        ("DELETE FROM larder_lock WHERE n = 511", "lacks rows of larder_lock"),
        ("DROP TABLE larder_block", "lacks table larder_block"),
    ],
}


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_what_is_not_whole_is_refused(fleet, kind):
    """By a server, by check, and by migrate, which must not make up for rows that are gone."""
    data = store.KINDS[kind]()
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        fill(c)
    larder.stop()
    way = "custom" if kind == "postgres" else "routines"
    text = dumps.dump(data, way)
    for damage, says in DAMAGE + DAMAGE_OF[kind]:
        copy = dumps.copy_of(data, text)
        copy.query(damage)
        for command in ("check", "migrate"):
            done = servers.run([command, "--store", copy.url])
            known = "has no tables of this program" if command == "check" and "larder_meta" in says else says
            assert done.returncode == 1 and (says in done.stderr or known in done.stderr), (damage, done)
        assert says in start_is_refused(fleet, copy), damage
        copy.server.drop_database(copy.name)


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_views_and_functions_are_made_again(fleet, kind):
    data = store.KINDS[kind]()
    assert servers.run(["migrate", "--store", data.url]).returncode == 0
    drop = "DROP FUNCTION larder_del(text, integer)" if kind == "postgres" else "DROP PROCEDURE larder_del_in"
    data.query(f"{drop}; DROP VIEW larder_zsets;")
    log = start_is_refused(fleet, data)
    assert "lacks view larder_zsets: restore it anew, or if its rows are whole: larder migrate" in log
    done = servers.run(["migrate", "--store", data.url])
    assert (done.returncode, done.stdout) == (0, "schema version 4, its views and functions were made again\n")
    assert servers.run(["migrate", "--store", data.url]).stdout == "schema version 4, nothing to do\n"
    assert data.query("SELECT count(*) FROM larder_zsets") == [["0"]]
    data.query(f"{drop};")  # a server does that alone
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        c("SET", "k", "v")
    data.query(FUNCTIONS[kind].format("larder_del('k')"))
    with larder.connect() as c:
        assert c("EXISTS", "k") == 0


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_restore_that_broke_off_is_refused(fleet, kind):
    """Wherever it did: a server never begins to serve a part, nor takes it for a new database."""
    data = store.KINDS[kind]()
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        fill(c)
    larder.stop()
    text = dumps.dump(data, "plain" if kind == "postgres" else "routines")
    ends = [m.start() for m in re.finditer(rb"^(CREATE|COPY|ALTER|INSERT|UNLOCK|/\*!50001 (CREATE|VIEW))", text, re.M)]
    begun = next(i for i, end in enumerate(ends) if text[end:].startswith(b"CREATE TABLE"))
    for end in ends[begun + 1 :: 9] + ends[-1:]:
        copy = dumps.copy_of(data, text[:end], ok=False)
        log = start_is_refused(fleet, copy)
        assert " lacks " in log, (text[end : end + 80], log)
        copy.server.drop_database(copy.name)


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_numbers_that_are_behind(fleet, kind):
    """Numbers of rows are given out once, also when what numbers them was brought back from before."""
    data = store.KINDS[kind]()
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        for i in range(3000):
            c("SET", f"k{i}", i)
    larder.stop()
    done = servers.run(["check", "--store", data.url])
    assert done.returncode == 0
    if kind == "postgres":
        data.query("ALTER SEQUENCE larder_seq RESTART WITH 1")
    else:
        data.query("ALTER TABLE larder_block AUTO_INCREMENT = 1")
    done = servers.run(["check", "--store", data.url])
    assert done.returncode == 3 and "which was never given out" in done.stdout
    larder.start()
    with larder.connect() as c:
        for i in range(3000):
            c("SET", f"n{i}", i)
        assert c("DBSIZE") == 6000
    larder.stop()
    larder.check()
