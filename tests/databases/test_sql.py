"""What applications and administrators do in SQL: functions, views, roles, prefixes and schemas."""

import concurrent.futures
import copy
import re

import pytest

from harness import servers, wait
from harness.databases import QueryError
from harness.resp import encode

from .test_conflicts import NO_SPACE, plant

HOSTILE = [
    b"", b"\0", b"\0\0", b"a\0b", b"\xff\xfe\x80 not UTF-8 \xc3", b"\xff\xff\xff", b"' OR 1=1 --%s", b'"\\\'\n\r\x1a',
    bytes(range(256)), b"\\", b"\\x41", b"$1 ?1 {,|}", b"x" * 992, b"x" * 1000, b"x" * 1001, b"y" * 1024,
    b"x" * 992 + b"tail", b"z" * 3000, b"\xf0\x9f\x8d\x9e" * 700,
]  # fmt: skip


def literal(kind, value):
    return f"'\\x{value.hex()}'::bytea" if kind == "postgres" else f"x'{value.hex()}'"


def hex_of(data, key):
    call = {"postgres": "SELECT encode(larder_get({}), 'hex')", "mariadb": "SELECT lower(hex(larder_get({})))"}
    return call[data.kind].format(literal(data.kind, key))


def sql_get(data, key):
    value = data.query(hex_of(data, key))
    return None if value == [] or value[0][0] is None else bytes.fromhex(value[0][0])


def sql_set(data, key, value, ttl_ms=None):
    key, value = literal(data.kind, key), literal(data.kind, value)
    if data.kind == "postgres":
        ttl = "NULL" if ttl_ms is None else f"interval '{ttl_ms} milliseconds'"
        return f"SELECT larder_set({key}, {value}, {ttl});"
    return f"CALL larder_set({key}, {value}, {'NULL' if ttl_ms is None else ttl_ms / 1000});"


def sql_del(data, key):
    return f"{'SELECT' if data.kind == 'postgres' else 'CALL'} larder_del({literal(data.kind, key)});"


def test_every_type_keeps_every_byte(fleet, data):
    first = fleet.larder("--cache-memory", "1mb", data=data)
    with first.connect() as c:
        for i, value in enumerate(HOSTILE):
            other = HOSTILE[-1 - i]
            c("SET", b"s" + value, other)
            c("HSET", "hash", value, other)
            c("RPUSH", "list", value)
            c("SADD", "set", value)
            c("ZADD", "zset", i % 3, value)
        big = bytes(range(256)) * 4096
        c("SET", "big", big)
        c("HSET", "hash", "big", big)
    first.stop()
    first.check()
    again = fleet.larder("--cache-memory", "1mb", data=data)
    with again.connect() as c:
        for i, value in enumerate(HOSTILE):
            assert c("GET", b"s" + value) == HOSTILE[-1 - i]
            assert c("HGET", "hash", value) == HOSTILE[-1 - i]
            assert c("SISMEMBER", "set", value) == 1
            assert float(c("ZSCORE", "zset", value)) == i % 3
        assert c("LRANGE", "list", 0, -1) == HOSTILE
        assert c("GET", "big") == big
        assert c("HGET", "hash", "big") == big
        order = sorted(HOSTILE, key=lambda v: (HOSTILE.index(v) % 3, v))
        assert c("ZRANGE", "zset", 0, -1) == order
        assert set(c("KEYS", "*")) == {b"hash", b"list", b"set", b"zset", b"big"} | {b"s" + v for v in HOSTILE}


def test_long_members_are_in_order(fleet, data):
    """Where the index has only the beginning of names, their order is still that of their bytes."""
    members = sorted([b"m" * n + t for n in (900, 992, 1000, 2000) for t in (b"", b"a", b"b", b"\0", b"\xff")])
    server = fleet.larder("--cache-memory", "0", data=data)
    with server.connect() as c:
        for i in range(1200):  # so that it is not read whole
            c("ZADD", "z", 0, b"a%06d" % i)
        for m in reversed(members):
            c("ZADD", "z", 0, m)
        assert c("ZRANGE", "z", 1200, -1) == members
        assert c("ZRANGE", "z", 0, len(members) - 1, "REV") == members[::-1]
        for i, m in enumerate(members):
            assert c("ZRANK", "z", m) == 1200 + i
            assert c("ZRANGEBYLEX", "z", b"[" + m, "+") == members[i:]
            assert c("ZRANGEBYLEX", "z", b"(a000000", b"(" + m)[1199:] == members[:i]
            assert c("ZLEXCOUNT", "z", b"[" + m, "+") == len(members) - i


def test_functions(fleet, alone):
    data = alone
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        c("SADD", "taken", "x")
        with pytest.raises(QueryError, match="for itself alone"):
            data.query(sql_set(data, b"k", b"v"))
        with pytest.raises(QueryError, match="for itself alone"):
            data.query(sql_del(data, b"k"))
        c("SET", "k", "v")
        assert sql_get(data, b"k") == b"v"  # reading is always possible
        assert sql_get(data, b"taken") is None
    larder.stop()
    for i, value in enumerate(HOSTILE):
        data.query(sql_set(data, b"f" + value, HOSTILE[-1 - i]))
    data.query(sql_set(data, b"taken", b"over"))
    data.query(sql_set(data, b"big", b"\0\xff" * 100_000))
    data.query(sql_set(data, b"big", b"\1\xff" * 100_000))
    data.query(sql_set(data, b"soon", b"gone", 1))
    data.query(sql_set(data, b"later", b"there", 1_000_000))
    data.query(sql_set(data, b"k", b"w", 5000) + sql_set(data, b"k", b"x"))
    data.query(sql_set(data, b"bye", b"bye") + sql_del(data, b"bye") + sql_del(data, b"never"))
    with pytest.raises(QueryError, match="longer than nothing"):
        data.query(sql_set(data, b"k", b"v", 0))
    for i, value in enumerate(HOSTILE):
        assert sql_get(data, b"f" + value) == HOSTILE[-1 - i]
    assert sql_get(data, b"soon") is None and sql_get(data, b"bye") is None
    larder.check()
    larder.start()
    with larder.connect() as c:
        for i, value in enumerate(HOSTILE):
            assert c("GET", b"f" + value) == HOSTILE[-1 - i]
        assert c("GET", "taken") == b"over"
        assert c("GET", "big") == b"\1\xff" * 100_000
        assert c("GET", "soon") is None
        assert 0 < c("PTTL", "later") <= 1_000_000
        assert c("GET", "k") == b"x" and c("PTTL", "k") == -1
        assert c("EXISTS", "bye") == 0
        assert c("DBSIZE") == len(c("KEYS", "*")) == len(HOSTILE) + 4


@pytest.fixture
def orders(data):
    """A table of the application's own."""
    data.query("CREATE TABLE orders (n integer)" + ("" if data.kind == "postgres" else " ENGINE = InnoDB"))


BEGIN = {"postgres": "BEGIN", "mariadb": "START TRANSACTION"}


def test_keys_and_own_tables_in_one_transaction(fleet, data, orders):
    """What a transaction does to its tables and to keys is seen by Larders when it has been committed, and by nobody when
    it is rolled back."""
    servers = [fleet.larder(data=data) for _ in range(2)]
    with servers[0].connect() as a, servers[1].connect() as b, data.session() as sql:
        a("SET", "old", "there")
        for n, end, there in ((1, "ROLLBACK", False), (2, "COMMIT", True)):
            sql(BEGIN[data.kind])
            sql(f"INSERT INTO orders VALUES ({n})")
            sql(sql_set(data, b"order", b"%d" % n) + sql_del(data, b"old") + sql_set(data, b"soon", b"gone", 900_000))
            assert "".join(sql(hex_of(data, b"order"))).strip() == (b"%d" % n).hex()  # it sees its own
            assert "".join(sql(hex_of(data, b"old"))).strip() in ("", "NULL")
            for c in (a, b):
                assert c("MGET", "order", "old", "soon") == [None, b"there", None]
            sql(end)
            expected = [b"2", None, b"gone"] if there else [None, b"there", None]
            for c in (b, a):
                assert c("MGET", "order", "old", "soon") == expected
            assert data.query("SELECT n FROM orders") == ([[str(n)]] if there else [])
        assert 0 < a("PTTL", "soon") <= 900_000 and b("DBSIZE") == 2
    servers[0].check()


def test_a_call_that_fails_leaves_nothing(server, data):
    """Also where no transaction is open: the call is one."""
    plant(data, NO_SPACE[data.kind], 1, "larder_count")
    call = "SELECT" if data.kind == "postgres" else "CALL"
    with server.connect() as c:
        with pytest.raises(QueryError):
            data.query(f"{call} larder_set('k', 'v', NULL)")
        assert c("EXISTS", "k") == c("DBSIZE") == 0
        data.query(f"{call} larder_set('k', 'v', NULL)")
        assert c("GET", "k") == b"v" and c("DBSIZE") == 1


def test_calls_for_the_same_keys(server, data):
    """Sessions make and remove the same few keys, no transaction being open: every key is counted once."""
    call = "SELECT" if data.kind == "postgres" else "CALL"
    words = [f"larder_set('k{i % 5}', 'v', NULL)" if i % 3 else f"larder_del('k{i % 5}')" for i in range(200)]

    def work(rotate):
        with data.server.session(data.name) as session:
            for word in words[rotate:] + words[:rotate]:
                session(f"{call} {word}")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    with server.connect() as c:
        assert c("DBSIZE") == len(c("KEYS", "*"))
    server.check()


def test_a_command_waits_for_a_transaction_with_its_key(server, data, orders):
    """And those that watch the key learn of it."""
    with server.connect() as c, server.connect() as watches, data.session() as sql:
        c("SET", "n", 1)
        watches("WATCH", "n")
        sql(BEGIN[data.kind])
        sql(sql_set(data, b"n", b"41"))
        c.send(b"INCR n\r\n")
        assert c.read_available(0.3) == (b"", False)
        sql("COMMIT")
        assert c.read().plain() == 42
        watches("MULTI")
        watches("SET", "n", "0")
        assert watches("EXEC") is None
        assert c("GET", "n") == b"42" and sql_get(data, b"n") == b"42"


def test_views(server, data):
    with server.connect() as c:
        c("SET", "s", "grüße")
        c("SET", "gone", "x", "PX", 1)
        c("SET", "big", b"b" * 70_000, "EX", 1000)
        c("HSET", "h", "f", "v", "g", "w")
        c("HPEXPIRE", "h", 1, "FIELDS", 1, "g")
        c("RPUSH", "l", "a", "b")
        c("LPUSH", "l", "z")
        c("SADD", "set", "m")
        c("ZADD", "z", 1.5, "m", "inf", "i")
        c("SELECT", 3)
        c("SET", "other", "\0")
    keys = data.query("SELECT db, key_bytes, type, size FROM larder_keys ORDER BY db, key_bytes")
    found = {(int(r[0]), r[2], int(r[3])) for r in keys}
    assert found == {(0, "string", 7), (0, "string", 70_000), (0, "hash", 1), (0, "list", 3), (0, "set", 1),
                     (0, "zset", 2), (3, "string", 1)}  # fmt: skip
    name = "key" if data.kind == "postgres" else "`key`"
    assert data.query(f"SELECT value FROM larder_strings WHERE {name} = 's'") == [["grüße"]]
    assert data.query(f"SELECT length(value) FROM larder_strings WHERE {name} = 'big'") == [["70000"]]
    assert data.query("SELECT field, value FROM larder_hashes") == [["f", "v"]]
    assert data.query("SELECT position, value FROM larder_lists ORDER BY position") == [
        ["0", "z"], ["1", "a"], ["2", "b"]]  # fmt: skip
    assert data.query("SELECT member FROM larder_sets") == [["m"]]
    assert data.query("SELECT member, score FROM larder_zsets ORDER BY score")[0] == ["m", "1.5"]
    ttl = data.query(f"SELECT round(ttl), expires IS NOT NULL FROM larder_keys WHERE {name} = 'big'")[0]
    assert 990 < float(ttl[0]) <= 1000 and ttl[1] in ("t", "1")


def documented_grants(data):
    """What docs/databases.md says, for the role that it names and a database of this name."""
    block = re.search(r"```sql\n(-- PostgreSQL\n.*?)```", (servers.ROOT / "docs/databases.md").read_text(), re.DOTALL)[1]
    postgres, mariadb = block.split("-- MariaDB\n")
    if data.kind == "mariadb":
        return "CREATE USER IF NOT EXISTS larder_rows@localhost;" + mariadb.replace("shop.*", f"{data.name}.*")
    role = "DO $$ BEGIN CREATE ROLE larder_rows LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
    return role + "REVOKE ALL ON SCHEMA public FROM PUBLIC;" + postgres


def test_a_role_for_rows_alone(fleet, data):
    """serve needs no more than the documented grants; without tables it says what to do."""
    url = data.server.url(data.name, user="larder_rows")
    data.query(documented_grants(data))
    rows = fleet.new(servers.Larder, "--sweep-interval", "20ms", data=data)
    data.url, owner = url, data.url
    with pytest.raises(servers.StartError) as failed:
        rows.start()
    assert "larder migrate --store" in failed.value.log
    rows.process = None
    done = servers.run(["migrate", "--store", owner])
    assert done.returncode == 0 and re.fullmatch(r"schema version \d+, was 0\n", done.stdout)
    assert servers.run(["migrate", "--store", owner]).stdout.endswith("nothing to do\n")
    data.query(documented_grants(data))
    with pytest.raises(QueryError):
        data.server.query("CREATE TABLE larder_more (n integer)", data.name, user="larder_rows")
    with pytest.raises(QueryError):
        data.server.query("DROP TABLE larder_key", data.name, user="larder_rows")
    rows.start()
    with rows.connect() as c:
        c("SET", "k", "v")
        c("SET", "long", b"x" * 300_000)
        for i in range(3):
            c("ZADD", "z", i, b"m%d" % i)
        c("HSET", "h", *[w for i in range(2000) for w in (f"f{i}", "v")])
        c("RPUSH", "l", "a", "b")
        c("SADD", "s", "m")
        assert c("BLMOVE", "l", "other", "LEFT", "RIGHT", 1) == b"a"
        c("SELECT", 1)
        c("SET", "k", "one")
        c("SWAPDB", 0, 1)
        c("FLUSHDB")
        c("SELECT", 0)
        assert c("GET", "k") == b"one"
        c("SET", "brief", "v", "PX", 1)
        wait.until(lambda: c("DBSIZE") == 1, "the sweeper works")
        items = "SELECT (SELECT count(*) FROM larder_trash) + (SELECT count(*) FROM larder_hash)"
        wait.until(lambda: data.query(items) == [["0"]], "and removes what was flushed")
    rows.stop()
    rows.check()


def test_prefixes_keep_two_apart(fleet, data):
    pair = []
    for prefix in ("shop_", "blog_"):
        own = copy.copy(data)
        own.url = data.server.url(data.name, prefix=prefix)
        pair.append(fleet.larder(data=own))
    with pair[0].connect() as a, pair[1].connect() as b:
        a("SET", "k", "shop")
        b("SET", "k", "blog")
        assert a("GET", "k") == b"shop" and b("GET", "k") == b"blog"
    assert data.query("SELECT value FROM shop_strings") == [["shop"]]
    assert data.query("SELECT value FROM blog_strings") == [["blog"]]


def test_a_schema_of_its_own(fleet, data):
    if data.kind == "mariadb":
        pytest.skip("a schema is a database there")
    data.url = data.server.url(data.name, schema="kv")
    server = fleet.larder(data=data)
    with server.connect() as c:
        c("SET", "k", "v")
    assert data.query("SELECT value FROM kv.larder_strings") == [["v"]]
    server.stop()
    data.query("SELECT kv.larder_set('k', 'from elsewhere')")
    assert data.query("SELECT larder_text FROM kv.larder_text(kv.larder_get('k'))") == [["from elsewhere"]]


def test_a_second_server_is_refused(fleet, alone):
    fleet.larder(data=alone)
    second = fleet.new(servers.Larder, "--busy-timeout", "100ms", data=alone)
    with pytest.raises(servers.StartError) as failed:
        second.start()
    second.process = None
    assert "is in use by another server: pid" in failed.value.log


def test_passwords_are_not_shown(fleet, data, kind):
    user = "larder" if kind == "postgres" else "root"
    data.url = data.url.replace(f"{user}@", f"{user}:s3cret@") if kind == "postgres" else data.url
    if kind == "mariadb":
        data.query("CREATE OR REPLACE USER pw@localhost IDENTIFIED BY 's3cret'; GRANT ALL ON *.* TO pw@localhost;")
        data.url = data.url.replace("root@", "pw:s3cret@")
    server = fleet.larder(data=data)
    with server.connect() as c:
        shown = c("INFO") + b"".join(c("CONFIG", "GET", "store"))
    assert b":***@" in shown and b"s3cret" not in shown
    assert "s3cret" not in server.log_text()


@pytest.mark.parametrize(
    "url, says",
    [
        ("postgres://127.0.0.1:1/x", "onnect"),
        ("mysql://u@127.0.0.1:1/x", "onnect"),
        ("mysql://u@127.0.0.1:1/", "names no database"),
        ("mysql://u@127.0.0.1:1/x?sslmode=require", "sslmode: known parameters are"),
        ("postgres://127.0.0.1:1/x?sslmod=require", "sslmod"),
        ("postgres://127.0.0.1:1/x?prefix=A-b", "prefix=A-b"),
        ("postgres://127.0.0.1:1/x?schema=a;b", "schema=a;b"),
        ("oracle://x", "no such kind of database"),
        ("mysql://%zz@h/d", "cannot be read"),
    ],
)
def test_wrong_urls(url, says):
    for command in ("serve", "migrate", "check"):
        done = servers.run([command, "--store", url, *(["--port", "0", "--store-wait", "0"] if command == "serve" else [])])
        assert done.returncode == 1 and says in done.stderr, (command, done.stderr)


# --- functions and roles


@pytest.fixture
def migrated(data):
    """A database that no server has used yet."""
    done = servers.run(["migrate", "--store", data.url])
    assert done.returncode == 0, done.stderr
    return data


SAY = {"postgres": "SELECT {}", "mariadb": "CALL {}"}


def test_functions_before_the_first_server(fleet, migrated):
    data = migrated
    data.query(sql_set(data, b"k", b"v") + sql_set(data, b"big", b"x" * 70_000) + sql_del(data, b"none"))
    where = {"postgres": "larder_set('k', 'w', db => 15)", "mariadb": "larder_set_in(15, 'k', 'w', NULL)"}
    data.query(SAY[data.kind].format(where[data.kind]))
    assert sql_get(data, b"k") == b"v"
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        assert c("MGET", "k", "big") == [b"v", b"x" * 70_000] and c("DBSIZE") == 2
        c("SELECT", 15)
        assert c("GET", "k") == b"w"
        c("FLUSHDB")
        c("SET", "new", "1")
        assert c("DBSIZE") == 1
    larder.stop()
    larder.check()
    few = fleet.larder("--databases", "4", data=data)
    with few.connect() as c:
        assert c("GET", "k") == b"v"
    few.stop()
    many = fleet.larder("--databases", "20", data=data)
    with many.connect() as c:
        c("SELECT", 19)
        c("SET", "k", "19")
        c("SELECT", 15)
        assert c("KEYS", "*") == [b"new"]
    many.stop()
    many.check()


def test_check_of_numbers(migrated):
    """Each of what a key's row says of its items' numbers is compared; functions leave none behind."""
    data, quote = migrated, {"postgres": '"', "mariadb": "`"}[migrated.kind]
    data.query(
        f"INSERT INTO larder_key (seq, db, {quote}key{quote}, type, id, size, first, version, expire_at, value, numbers)"
        " VALUES (1, 0, 'set', 4, 1, 2, 0, 1, 0, '', 9), (2, 0, 'list', 3, 2, 1, 0, 1, 0, '', 0);"
        "INSERT INTO larder_set (id, member, ord) VALUES (1, 'a', 8), (1, 'b', 3);"
        "INSERT INTO larder_list (id, pos, value) VALUES (2, 0, 'x');"
        "UPDATE larder_meta SET value = '3' WHERE name = 'next_id';"
        f"UPDATE larder_db SET {quote}keys{quote} = 2 WHERE db = 0"
    )
    assert servers.run(["migrate", "--store", data.url]).returncode == 0  # numbers of rows go on behind these

    def check():
        return servers.run(["check", "--store", data.url]).stdout

    def broken(damage, finding, repair):
        data.query(damage)
        assert finding in check()
        data.query(repair)

    sound = check()
    assert "WRONG" not in sound
    size, member = "UPDATE larder_key SET numbers = {} WHERE id = {}", "UPDATE larder_set SET ord = {} WHERE member = '{}'"
    broken(size.format(8, 1), "key row 1 has size 2, but 2 items, numbered 3 to 8, 2 numbers of 8", size.format(9, 1))
    broken(size.format(0, 1), "2 items, numbered 3 to 8, 2 numbers of 2", size.format(9, 1))
    broken(member.format(3, "a"), "2 items, numbered 3 to 3, 1 numbers of 9", member.format(8, "a"))
    broken(member.format(-1, "a"), "2 items, numbered -1 to 3", member.format(8, "a"))
    broken(size.format(7, 2), "key row 2 has numbers below 7, and no items that have any", size.format(0, 2))
    broken(
        member.format(0, "a") + ";" + member.format(1, "b") + ";" + size.format(2, 1),
        "2 items, numbered 0 to 1, 2 numbers of 2",
        member.format(8, "a") + ";" + member.format(3, "b") + ";" + size.format(9, 1),
    )
    data.query(sql_set(data, b"set", b"v"))
    assert data.query("SELECT type, numbers FROM larder_key WHERE seq = 1") == [["1", "0"]]
    data.query("UPDATE larder_key SET type = 4, id = 7, size = 1, numbers = 9 WHERE seq = 1;" + sql_del(data, b"set"))
    assert data.query("SELECT type, numbers FROM larder_key WHERE seq = 1") == [["0", "0"]]


def test_null_arguments(migrated):
    data, say = migrated, SAY[migrated.kind]
    ttl = "" if data.kind == "postgres" else ", NULL"
    for call, says in [
        (f"larder_set(NULL, 'v'{ttl})", "the key must not be NULL"),
        (f"larder_set('k', NULL{ttl})", "the value must not be NULL"),
        ("larder_del(NULL)", "the key must not be NULL"),
        ("larder_set('k', 'v', NULL, NULL)", "database must not be NULL"),
    ]:
        if data.kind == "mariadb" and "database" in says:
            call = "larder_set_in(NULL, 'k', 'v', NULL)"
        with pytest.raises(QueryError, match=says):
            data.query(say.format(call))
    assert data.query("SELECT larder_get(NULL) IS NULL")[0][0] in ("t", "1")
    assert data.query("SELECT count(*) FROM larder_key") == [["0"]]


def test_one_meaning_of_ttl(migrated):
    """The same number is the same time on every database: seconds, as in the view."""
    data, say = migrated, SAY[migrated.kind]
    calls = {"seconds": "100", "fraction": "99.5"}
    if data.kind == "postgres":
        calls |= {"text": "'100'", "words": "'1 minute 40 s'", "interval": "interval '100 s'"}
    for key, ttl in calls.items():
        data.query(say.format(f"larder_set('{key}', 'v', {ttl})"))
    name = "key" if data.kind == "postgres" else "`key`"
    for key in calls:
        ((ttl,),) = data.query(f"SELECT ttl FROM larder_keys WHERE {name} = '{key}'")
        assert 90 < float(ttl) <= 100, key
    for ttl in ("0", "-1", "0.0001"):
        with pytest.raises(QueryError, match="longer than nothing"):
            data.query(say.format(f"larder_set('k', 'v', {ttl})"))
    data.query(say.format("larder_set('seconds', 'v', NULL)"))
    assert data.query(f"SELECT ttl FROM larder_keys WHERE {name} = 'seconds'") == [[None]]


def test_text_arguments(migrated):
    data = migrated
    if data.kind == "mariadb":
        pytest.skip("takes text for bytes anyway")
    data.query("CREATE TABLE orders (id integer, name text, raw bytea); INSERT INTO orders VALUES (7, 'grüße', '\\x00ff');")
    data.query("SELECT larder_set('o:' || id, name), larder_set('r:' || id, raw), larder_set('c:' || id, name::varchar, '1 h') FROM orders")
    assert data.query("SELECT larder_get_text('o:' || id), larder_get('r:' || id) FROM orders") == [["grüße", "\\x00ff"]]
    assert data.query("SELECT larder_get_text('c:7'), larder_get('c:7') = convert_to('grüße', 'UTF8')") == [["grüße", "t"]]
    data.query("SELECT larder_set('k', 'v', db => 3)")
    assert data.query("SELECT larder_get_text('k', 3), larder_get_text('k')") == [["v", None]]
    assert data.query("SELECT larder_del('o:' || id), larder_del('none') FROM orders") == [["t", "f"]]
    assert data.query("SELECT larder_get('o:7')") == [[None]]


ROLES = {"larder migrate": "larder_owner", "reads views": "shop_reports", "calls functions": "shop_app"}


def grant(data, purpose):
    """A role with what docs/databases.md says that it needs, and nothing else."""
    role = ROLES[purpose]
    block = re.search(
        rf"```sql\n-- PostgreSQL: {purpose}\n(.*?)-- MariaDB: {purpose}\n(.*?)```",
        (servers.ROOT / "docs/databases.md").read_text(),
        re.DOTALL,
    )
    if data.kind == "mariadb":
        data.query(f"CREATE OR REPLACE USER {role}@localhost;" + block[2].replace("shop.", f"{data.name}."))
    else:
        made = f"DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
        data.query(made + "REVOKE ALL ON SCHEMA public FROM PUBLIC;" + block[1])
    return lambda sql: data.server.query(sql, data.name, user=role)


def test_a_role_that_migrates(fleet, data):
    url = data.server.url(data.name, user="larder_owner")
    if data.kind == "postgres":
        data.query("DO $$ BEGIN CREATE ROLE larder_owner LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;")
        done = servers.run(["migrate", "--store", url])
        assert done.returncode == 1 and "permission denied for schema public" in done.stderr
    grant(data, "larder migrate")
    done = servers.run(["migrate", "--store", url])
    assert (done.returncode, done.stdout) == (0, "schema version 4, was 0\n"), done.stderr
    assert servers.run(["migrate", "--store", url]).stdout.endswith("nothing to do\n")
    data.query("DROP VIEW larder_keys")
    assert servers.run(["migrate", "--store", url]).stdout.endswith("were made again\n")


def test_a_role_that_reads_views(fleet, server, data):
    with server.connect() as c:
        c("SET", "s", "v")
        c("SET", "long", "x" * 70_000)
        c("HSET", "h", "f", "v")
        c("RPUSH", "l", "v")
        c("SADD", "set", "m")
        c("ZADD", "z", 1, "m")
    as_role = grant(data, "reads views")
    for view, n in {"keys": 6, "strings": 2, "hashes": 1, "lists": 1, "sets": 1, "zsets": 1}.items():
        assert as_role(f"SELECT count(*) FROM larder_{view}") == [[str(n)]], view
    assert as_role("SELECT max(length(value)) FROM larder_strings") == [["70000"]]
    for sql in ("SELECT * FROM larder_key", "DELETE FROM larder_list", SAY[data.kind].format("larder_del('s')")):
        with pytest.raises(QueryError, match="denied"):
            as_role(sql)


def test_a_role_that_calls_functions(fleet, migrated):
    data = migrated
    as_role = grant(data, "calls functions")
    for value in (b"short", b"x" * 70_000, b"y" * 80_000, b"again"):
        as_role(sql_set(data, b"k", value, 60_000))
        assert bytes.fromhex(as_role(hex_of(data, b"k"))[0][0]) == value
    as_role(sql_del(data, b"k") + sql_set(data, b"other", b"v"))
    for sql in ("DELETE FROM larder_key", "DROP TABLE larder_key", "UPDATE larder_db SET number = 1"):
        with pytest.raises(QueryError):
            as_role(sql)
    larder = fleet.larder(data=data)
    with larder.connect() as c:
        assert c("KEYS", "*") == [b"other"]
    larder.stop()
    larder.check()


def test_functions_lock_what_servers_lock(server, data):
    """A transaction of an application has looked at a key that is not there: nobody makes it before that has ended."""
    with server.connect() as c, server.connect() as other, data.session() as application:
        application("BEGIN")
        application(SAY[data.kind].format("larder_del('nothing')"))
        c.send(encode(["SET", "nothing", "v"]))
        assert c.read_available(0.3) == (b"", False)
        application("COMMIT")
        assert c.read().plain() == b"OK" and other("GET", "nothing") == b"v"
