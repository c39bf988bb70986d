"""What takes two connections, or what transcripts cannot compare because it differs from run to run: on both
servers where Redis has it, with the changing parts taken out."""

import re
import time

import pytest

from harness import compare
from harness.resp import Closed, encode

SECRET = "a-password"


@pytest.fixture(params=["oracle", "subject"])
def server(request):
    """Each of the two servers in turn: what is expected here must be true of Redis as well."""
    server = request.getfixturevalue(request.param)
    with server.connect() as c:
        c("FLUSHALL")
        c("CONFIG", "RESETSTAT")
        c("SLOWLOG", "RESET")
    return server


def info(connection, *sections):
    text = connection("INFO", *sections).decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


# --- the command table

# What came with Redis 7.2, a command, a subcommand (so its container has other members too) and WITHSCORE, and with 7.4 and 8,
# fields that expire; and what Redis does not have.
FIELD_EXPIRY = b"hexpire hpexpire hexpireat hpexpireat httl hpttl hexpiretime hpexpiretime hpersist hsetex hgetex hgetdel"
CONSISTENCY = b"larder.consistency larder.read larder.token"
TABLES = b"table.create table.alter table.drop table.info table.list table.rebuild table.unparsed sql"
ROWS = b"row.put row.update row.get row.mget row.del row.expire row.ttl row.pttl row.query"
OURS = {b"client|setinfo", b"script|show", b"zrank", b"zrevrank", b"waitaof"} | set(b" ".join([FIELD_EXPIRY, CONSISTENCY, TABLES, ROWS]).split())
OTHER_MEMBERS = {b"client", b"script"}


@pytest.mark.parametrize("resp", [2, 3])
def test_every_command_is_described_as_redis_does(oracle, subject, resp):
    with oracle.connect() as redis, subject.connect() as larder:
        redis("HELLO", resp)
        larder("HELLO", resp)
        names = set(larder("COMMAND", "LIST")) - OURS - OTHER_MEMBERS
        assert len(names) > 100
        different = [
            f"{name.decode()}\n  redis:  {a!r}\n  larder: {b!r}"
            for name in sorted(names)
            for a, b in [(redis.call("COMMAND", "INFO", name), larder.call("COMMAND", "INFO", name))]
            if not compare.unordered(a, b)
        ]
        assert not different, "\n".join(different)


def test_every_command_counts_its_arguments_as_redis_does(oracle, subject):
    with oracle.connect() as redis, subject.connect() as larder:
        tried = 0
        for name in sorted(set(larder("COMMAND", "LIST")) - OURS):
            words = name.split(b"|")
            arity = larder("COMMAND", "INFO", name)[0][1]
            counts = set(range(len(words), abs(arity))) | ({arity + 1} if arity > 0 else set())
            for count in counts:
                command = words + [b"x"] * (count - len(words))
                a, b = redis.call(*command), larder.call(*command)
                assert a.raw == b.raw, command
                assert b.is_error
                tried += 1
        assert tried > 100


# --- MONITOR


def monitored(server, commands):
    """The lines that a monitor sees of these commands, without time and address."""
    with server.connect() as watcher, server.connect() as c:
        assert watcher("MONITOR") == b"OK"
        for command in commands:
            c.call(*command)
        c.call("ECHO", "the end")
        lines = []
        while not lines or b"the end" not in lines[-1]:
            line = watcher.read()
            assert line.kind == b"+"
            lines.append(line.value)
    pattern = re.compile(rb'(\d{10}\.\d{6}) \[(\d+) 127\.0\.0\.1:\d+\] (.*)', re.DOTALL)
    return [(int(m[2]), m[3]) for m in (pattern.fullmatch(line) for line in lines)][:-1]


def test_monitor_shows_commands_as_they_came(server):
    assert monitored(
        server,
        [
            ["set", "k", b'a"b\\c\n\r\t\a\b\x00\x7f\xff'],
            ["GET", "k"],
            ["select", "5"],
            ["PING"],
            ["INCR", "k2"],
            ["LPUSHX"],
            ["NOSUCH", "x"],
            ["GET"],
            ["CONFIG", "GET", "port"],
            ["CLIENT", "ID"],
            ["SLOWLOG", "LEN"],
            ["COMMAND", "COUNT"],
            ["DEL", "k2"],
            ["GET", ""],
        ],
    ) == [
        (0, b'"set" "k" "a\\"b\\\\c\\n\\r\\t\\a\\b\\x00\\x7f\\xff"'),
        (0, b'"GET" "k"'),
        (5, b'"select" "5"'),
        (5, b'"PING"'),
        (5, b'"INCR" "k2"'),
        (5, b'"CLIENT" "ID"'),
        (5, b'"COMMAND" "COUNT"'),
        (5, b'"DEL" "k2"'),
        (5, b'"GET" ""'),
    ]


def test_monitor_shows_no_secrets(server):
    lines = monitored(
        server,
        [
            ["AUTH", SECRET],
            ["AUTH", "default", SECRET],
            ["AUTH", "nobody", SECRET],
            ["HELLO", "3", "AUTH", "default", SECRET, "SETNAME", "x"],
            ["HELLO", "2", "SETNAME", "x", "auth", "nobody", SECRET],
            ["CONFIG", "SET", "requirepass", ""],
        ],
    )
    assert lines == [
        (0, b'"AUTH" "(redacted)"'),
        (0, b'"AUTH" "(redacted)" "(redacted)"'),
        (0, b'"AUTH" "(redacted)" "(redacted)"'),
        (0, b'"HELLO" "3" "AUTH" "(redacted)" "(redacted)" "SETNAME" "x"'),
        (0, b'"HELLO" "2" "SETNAME" "x" "auth" "(redacted)" "(redacted)"'),
    ]


def test_monitor_itself(server):
    with server.connect() as c:
        assert c("MONITOR") == b"OK"
        assert b"Replica can't interact with the keyspace" in c.call("GET", "k").value
        c.send(encode(["PING"]))
        said = [c.read().value, c.read().value]
        assert b"PONG" in said and any(line.endswith(b'"PING"') for line in said)
        c.send(encode(["RESET"]))
        while c.read().value != b"RESET":
            pass
        assert c("GET", "k") is None


# --- SLOWLOG


def test_slowlog_entries(server):
    with server.connect() as c, server.connect() as control:
        port = c.socket.getsockname()[1]
        c("CLIENT", "SETNAME", "slow")
        control("CONFIG", "SET", "slowlog-log-slower-than", "0")
        try:
            c("SLOWLOG", "RESET")
            before = time.time()
            c("SET", "k", "v" * 200)
            c("MSET", *[f"x{i}" for i in range(40)])
            c.call("AUTH", "nobody", SECRET)
            c.call("CONFIG", "SET", "requirepass", "", "timeout", "0")
        finally:
            control("CONFIG", "SET", "slowlog-log-slower-than", "-1")
        entries = [e for e in c("SLOWLOG", "GET", "-1") if e[5] == b"slow"]
    assert [e[3] for e in entries] == [
        [b"CONFIG", b"SET", b"requirepass", b"(redacted)", b"timeout", b"0"],
        [b"AUTH", b"(redacted)", b"(redacted)"],
        [b"MSET"] + [b"x%d" % i for i in range(30)] + [b"... (10 more arguments)"],
        [b"SET", b"k", b"v" * 128 + b"... (72 more bytes)"],
        [b"SLOWLOG", b"RESET"],
    ]
    ids = [e[0] for e in entries]
    assert ids == sorted(ids, reverse=True)
    assert all(abs(e[1] - before) < 60 and e[2] >= 0 and e[4] == b"127.0.0.1:%d" % port for e in entries)


# --- CLIENT

FIELDS = (
    "id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem multi-mem rbs rbp obl oll "
    "omem tot-mem events cmd user redir resp"
).split()


def parse_client(line):
    return dict(pair.split("=", 1) for pair in line.split(" "))


def test_client_list_fields(server):
    with server.connect() as c, server.connect() as other:
        other("CLIENT", "SETNAME", "other")
        other("SELECT", "7")
        other("GET", "k")
        lines = c("CLIENT", "LIST").decode().splitlines()
        clients = {line["id"]: line for line in map(parse_client, lines)}
        for line in clients.values():
            assert list(line)[: len(FIELDS)] == FIELDS
        me = clients[str(c("CLIENT", "ID"))]
        assert me["addr"] == "127.0.0.1:%d" % c.socket.getsockname()[1]
        assert me["laddr"] == "127.0.0.1:%d" % c.socket.getpeername()[1]
        assert (me["cmd"], me["db"], me["resp"], me["flags"], me["user"]) == ("client|list", "0", "2", "N", "default")
        them = clients[str(other("CLIENT", "ID"))]
        assert (them["name"], them["db"], them["cmd"]) == ("other", "7", "get")
        mine = parse_client(c("CLIENT", "INFO").decode().rstrip("\n"))
        assert (mine["id"], mine["cmd"]) == (me["id"], "client|info")
        both = c("CLIENT", "LIST", "ID", me["id"], them["id"]).decode().splitlines()
        assert [parse_client(line)["id"] for line in both] == [me["id"], them["id"]]


def test_client_list_tells_the_last_command(server):
    with server.connect() as c, server.connect() as other:
        who = str(other("CLIENT", "ID"))

        def last():
            return parse_client(c("CLIENT", "LIST", "ID", who).decode().rstrip("\n"))["cmd"]

        assert last() == "client|id"
        other.call("NOSUCH")
        assert last() == "NULL"
        other.call("GET")
        assert last() == "get"
        other.call("CLIENT", "NOSUCH")
        assert last() == "NULL"
        other.call("CLIENT")
        assert last() == "client"


def closed(connection):
    try:
        connection.call("PING")
        return False
    except Closed:
        return True


def test_client_kill(server):
    with server.connect() as c, server.connect() as a, server.connect() as b, server.connect() as d:
        a_id = a("CLIENT", "ID")
        b_addr = "127.0.0.1:%d" % b.socket.getsockname()[1]
        assert c("CLIENT", "KILL", "ID", a_id) == 1
        assert c("CLIENT", "KILL", "ID", a_id) == 0
        assert closed(a)
        assert c("CLIENT", "KILL", b_addr) == b"OK"
        assert closed(b)
        assert c("CLIENT", "KILL", "ID", c("CLIENT", "ID")) == 0
        assert not closed(c)
        d_id = d("CLIENT", "ID")
        assert c("CLIENT", "KILL", "ID", d_id, "TYPE", "pubsub") == 0
        assert c("CLIENT", "KILL", "ID", d_id, "TYPE", "normal", "USER", "default") == 1
        assert closed(d)


def test_client_kills_itself_behind_the_reply(server):
    with server.connect() as c:
        assert c("CLIENT", "KILL", "ID", c("CLIENT", "ID"), "SKIPME", "no") == 1
        assert closed(c)
    with server.connect() as c:
        assert c("CLIENT", "KILL", "127.0.0.1:%d" % c.socket.getsockname()[1]) == b"OK"
        assert closed(c)


@pytest.mark.parametrize("mode", ["WRITE", "ALL"])
def test_client_pause(server, mode):
    with server.connect() as c, server.connect() as other:
        other("SET", "k", "old")
        start = time.monotonic()
        c("CLIENT", "PAUSE", "300", mode)
        if mode == "WRITE":
            assert other("GET", "k") == b"old"
            assert time.monotonic() - start < 0.25
        assert other("SET", "k", "new") == b"OK"
        assert 0.25 < time.monotonic() - start < 20
        assert c("GET", "k") == b"new"


def test_client_unpause(server):
    with server.connect() as c, server.connect() as other:
        start = time.monotonic()
        c("CLIENT", "PAUSE", "20000", "WRITE")
        other.send(encode(["SET", "k", "v"]))
        assert c("GET", "k") is None
        assert c("CLIENT", "UNPAUSE") == b"OK"
        assert other.read().value == b"OK"
        assert time.monotonic() - start < 10


# --- statistics


def test_command_statistics(server):
    with server.connect() as c:
        c("CONFIG", "RESETSTAT")
        for _ in range(3):
            c("SET", "k", "v")
        c.call("INCR", "k")
        c.call("GET")
        c.call("NOSUCH")
        c.call("CLIENT", "ID", "x")
        stats = info(c, "commandstats")
        pattern = r"calls=%d,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=%d,failed_calls=%d"
        assert re.fullmatch(pattern % (3, 0, 0), stats["cmdstat_set"])
        assert re.fullmatch(pattern % (1, 0, 1), stats["cmdstat_incr"])
        assert re.fullmatch(pattern % (0, 1, 0), stats["cmdstat_get"])
        assert re.fullmatch(pattern % (0, 1, 0), stats["cmdstat_client|id"])
        assert re.fullmatch(pattern % (1, 0, 0), stats["cmdstat_config|resetstat"])
        assert info(c, "errorstats") == {"errorstat_ERR": "count=4"}
        c.call("APPEND", "nolist", "x")
        c.call("AUTH", "nobody", "x")
        assert info(c, "errorstats") == {"errorstat_ERR": "count=4", "errorstat_WRONGPASS": "count=1"}
        stats = info(c, "stats")
        assert stats["total_error_replies"] == "5"
        assert int(stats["total_commands_processed"]) >= 8
        assert re.fullmatch(
            r"p50=\d+\.\d{3},p99=\d+\.\d{3},p99\.9=\d+\.\d{3}",
            info(c, "latencystats")["latency_percentiles_usec_set"],
        )
        histogram = dict(zip(*[iter(c("LATENCY", "HISTOGRAM", "SET"))] * 2))[b"set"]
        assert histogram[:3] == [b"calls", 3, b"histogram_usec"]
        assert histogram[3][-1] == 3 and histogram[3][1::2] == sorted(histogram[3][1::2])


def test_latency_histogram_bounds(server):
    """How long commands take differs from run to run; which bounds there are does not."""
    with server.connect() as c:
        c("SET", "k", "v" * 1000000)
        for seconds in [0] * 50 + [0.001, 0.003, 0.007, 0.015, 0.06]:
            c("DEBUG", "SLEEP", str(seconds))
        replies = c("LATENCY", "HISTOGRAM")
    bounds = {bound for histogram in replies[1::2] for bound in histogram[3][::2]}
    # 1,024 ns doubled, as a histogram of two digits rounds it.
    assert bounds <= {(1024 * 2**n * 129 // 128 - 1) // 1000 for n in range(21)}
    assert len(bounds) > 5


def test_keyspace_statistics(server):
    with server.connect() as c:
        c("CONFIG", "RESETSTAT")
        c("SET", "k", "v")
        c("GET", "k")
        c("GET", "nokey")
        c("MGET", "k", "k", "nokey")
        c("EXISTS", "k", "nokey")
        stats = info(c, "stats")
        assert (stats["keyspace_hits"], stats["keyspace_misses"]) == ("4", "3")


# --- what clients parse


def test_info_that_clients_parse(server):
    with server.connect() as c:
        c("SET", "k", "v")
        c("SELECT", "9")
        c("MSET", "a", "1", "b", "2")
        c("EXPIRE", "a", "1000")
        everything = info(c)
    assert tuple(map(int, everything["redis_version"].split("."))) >= (7, 0, 0)
    expected = {
        "redis_mode": "standalone",
        "loading": "0",
        "async_loading": "0",
        "role": "master",
        "maxmemory": "0",
        "maxmemory_policy": "noeviction",
        "cluster_enabled": "0",
        "connected_slaves": "0",
        "rdb_bgsave_in_progress": "0",
        "aof_enabled": "0",
        "blocked_clients": "0",
        "arch_bits": "64",
        "db0": "keys=1,expires=0,avg_ttl=0",
    }
    assert {name: everything.get(name) for name in expected} == expected
    assert everything["db9"].startswith("keys=2,expires=1,avg_ttl=")
    assert re.fullmatch("[0-9a-f]{40}", everything["run_id"])
    assert int(everything["used_memory"]) > 0 and int(everything["used_memory_rss"]) > 0
    assert re.fullmatch(r"\d+\.\d\d[KMGT]", everything["used_memory_human"])
    assert everything["tcp_port"] == str(server.port)


def test_larder_section(client):
    client("MSET", "a", "1", "b", "2")
    section = info(client, "larder")
    assert section["durability"] == "always" and section["commit_failures"] == "0"
    assert int(section["commits"]) >= 1 and int(section["cache_rows"]) >= 2


# --- DEBUG, SAVE, SHUTDOWN


def test_debug_is_off_by_default(fleet):
    text = (
        b'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a '
        b"local connection, otherwise you need to set this option in the configuration file, and then restart the "
        b"server."
    )
    for server in (fleet.redis("--enable-debug-command", "no"), fleet.larder("--enable-debug-command", "no")):
        with server.connect() as c:
            assert c.call("DEBUG", "SLEEP", "0").value == text
            assert b"wrong number of arguments" in c.call("DEBUG").value
    for server in (fleet.redis("--enable-debug-command", "local"), fleet.larder("--enable-debug-command", "local")):
        with server.connect() as c:
            assert c("DEBUG", "SLEEP", "0") == b"OK"


def test_debug_clock_counts_from_the_next_command_on(client):
    client("SET", "k", "v", "PX", "1000")
    now = int(time.time() * 1000)
    client.send(encode(["DEBUG", "CLOCK", now + 10_000]) + encode(["GET", "k"]) + encode(["DEBUG", "CLOCK", "REAL"]))
    assert [client.read().value for _ in range(3)] == [b"OK", None, b"OK"]
    for wrong in ("", "abc", "+", "-5", "+-5", "0", "99999999999999999999"):
        assert client.call("DEBUG", "CLOCK", wrong).is_error


def test_save_is_told(fleet):
    larder = fleet.larder("--durability", "everysec")
    with larder.connect() as c:
        before = c("LASTSAVE")
        c.send(encode(["SET", "k", "v"]) + encode(["SAVE"]) + encode(["GET", "k"]))
        assert [c.read().value for _ in range(3)] == [b"OK", b"OK", b"v"]
        assert c("LASTSAVE") >= before
        state = info(c, "persistence")
        assert (state["rdb_saves"], state["rdb_changes_since_last_save"]) == ("1", "0")
        c("SET", "k", "w")
        assert info(c, "persistence")["rdb_changes_since_last_save"] == "1"
        assert c("BGSAVE") == b"Background saving started"
        assert info(c, "persistence")["rdb_saves"] == "2"


@pytest.mark.parametrize("options", [[], ["NOSAVE"], ["SAVE", "NOW"], ["NOW", "FORCE"]])
def test_shutdown_answers_nothing(fleet, options):
    larder = fleet.larder()
    with larder.connect() as c:
        c("SET", "k", "v")
        with pytest.raises(Closed):
            c.call("SHUTDOWN", *options)
    assert larder.process.wait(20) == 0


# --- CONFIG REWRITE


def test_config_rewrite(fleet, tmp_path):
    file = tmp_path / "larder.conf"
    file.write_text("# kept\nslowlog-max-len 5\n")
    larder = fleet.larder("--config", str(file))
    with larder.connect() as c:
        c("CONFIG", "SET", "slowlog-max-len", "77", "requirepass", SECRET)
        assert c("CONFIG", "REWRITE") == b"OK"
        c("CONFIG", "SET", "requirepass", "")
    text = file.read_text()
    assert text.startswith("# kept\nslowlog-max-len 77\n") and SECRET in text
