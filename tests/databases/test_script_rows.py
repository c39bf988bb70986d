"""Scripts and libraries of functions belong to the database: every server on it knows them, at once and after a restart."""

import concurrent.futures

import pytest

from harness import store

from .test_shared import round_trips

BODY = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
MODES = {"sqlite": ("sqlite", {}), "postgres": ("postgres", {}), "mariadb": ("mariadb", {})}
MODES |= {f"{kind} alone": (kind, {"mode": "exclusive"}) for kind in ("postgres", "mariadb")}


def sha_of(c, body):
    return c("SCRIPT", "LOAD", body)


def known(c, *shas):
    return c("SCRIPT", "EXISTS", *shas)


NOSCRIPT = "NOSCRIPT No matching script. Please use EVAL."


@pytest.fixture
def two(fleet, data):
    return [fleet.larder("--workers", "2", data=data) for _ in range(2)]


def test_a_script_is_known_to_all_servers(two):
    with two[0].connect() as a, two[1].connect() as b, two[1].connect() as c:  # b and c are of two workers
        for i in range(5):
            sha = sha_of(a, f"{BODY} -- {i}")
            brought = a("EVAL", f"return '{i}'", 0)
            assert brought == b"%d" % i
            for x in (b, c, a):
                assert x("EVALSHA", sha, 1, "n", 1) and known(x, sha, "0" * 40) == [1, 0]
            b("EVAL", "return 'only here'", 0)
            only = b("EVAL", "return redis.sha1hex(\"return 'only here'\")", 0)
            assert b("EVALSHA", only, 0) == c("EVALSHA", only, 0) == b"only here" and known(b, only) == [1]
            assert known(a, only) == [0] and a.error("EVALSHA", only, 0) == NOSCRIPT
            (b if i % 2 else a)("SCRIPT", "FLUSH")
            for x in (c, b, a):
                assert x.error("EVALSHA", sha, 1, "n", 1) == x.error("EVALSHA", only, 0) == NOSCRIPT
                assert known(x, sha, only) == [0, 0]
        assert a("GET", "n") == b"15"


def test_a_script_is_loaded_at_once_from_everywhere(two):
    """The same one, and others: all are there in the end."""
    bodies = [f"return {i}" for i in range(10)]

    def load(server):
        with server.connect() as c:
            return [sha_of(c, body) for body in bodies for _ in range(2)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = [a.result() for a in [pool.submit(load, server) for server in two * 2]]
    assert all(a == answers[0] for a in answers)
    shas = list(dict.fromkeys(answers[0]))
    for server in two:
        with server.connect() as c:
            assert known(c, *shas) == [1] * 10
            assert [c("EVALSHA", sha, 0) for sha in shas] == list(range(10))
    two[0].stop()
    two[1].stop()
    two[0].check()


def test_scripts_cost_no_round_trip(fleet, data):
    server = fleet.larder("--sweep", "no", "--workers", "1", data=data)
    with server.connect() as c:
        c("SET", "n", 1)
        sha = sha_of(c, BODY)
        c("EVALSHA", sha, 1, "n", 1)
        read = sha_of(c, "return redis.call('GET', KEYS[1])")
        c("EVALSHA_RO", read, 1, "n")
        for command, most in ((("EVALSHA", sha, 1, "n", 1), 2), (("EVAL", BODY, 1, "n", 1), 2), (("EVALSHA_RO", read, 1, "n"), 1)):
            assert min(round_trips(server, c, [command]) for _ in range(3)) == most, command


@pytest.fixture(params=MODES)
def mode(request, tmp_path):
    kind, options = MODES[request.param]
    folder = tmp_path / "data"
    folder.mkdir()
    return store.KINDS[kind](folder, **options)


def test_they_survive_everything_that_concerns_clients(fleet, mode):
    """What is acknowledged is there after a crash; no client's database is theirs."""
    larder = fleet.larder(data=mode)
    with larder.connect() as c:
        sha, other = sha_of(c, BODY), sha_of(c, "return 2")
        c("EVALSHA", sha, 1, "n", 1)
        c("SWAPDB", 0, 1)
        c("FLUSHALL")
        c("SET", "k", "v")
        assert c("DBSIZE") == 1 and c("KEYS", "*") == [b"k"] and c("RANDOMKEY") == b"k" and c("SCAN", 0)[1] == [b"k"]
        keyspace = c("INFO", "keyspace").decode()
        assert "db0:keys=1," in keyspace and keyspace.count("db") == 1
        c.send(b"SCRIPT LOAD 'return 3'\r\n")  # the last that is acknowledged before the crash
        last = c.read().plain()
    larder.kill()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert known(c, sha, other, last) == [1, 1, 1]
        assert c("EVALSHA", last, 0) == 3 and c("EVALSHA", sha, 1, "n", 5) == 5
        c("MULTI")
        c("SCRIPT", "FLUSH")
        c("SCRIPT", "LOAD", "return 4")
        fourth = c("EXEC")[1]
        assert known(c, sha, fourth) == [0, 1]
    larder.stop()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert known(c, sha, fourth) == [0, 1] and c("DBSIZE") == 2


@pytest.mark.parametrize("mode", ["sqlite", "postgres"], indirect=True)
def test_thousands_of_scripts(fleet, mode):
    """Nothing of them is read at a start."""
    larder = fleet.larder(data=mode)
    with larder.connect() as c:
        shas = [r.plain() for r in c.pipeline([("SCRIPT", "LOAD", f"return {i}") for i in range(2000)])]
    larder.stop()
    larder.start()
    with larder.connect() as c:
        assert c("EVALSHA", shas[1999], 0) == 1999 and sum(known(c, *shas[:50])) == 50
        c("SCRIPT", "FLUSH")
        assert known(c, shas[1]) == [0]
    larder.stop()
    larder.check()


# ---- libraries of functions ----


def library(name, result):
    return f"#!lua name={name}\nredis.register_function('{name}', function(keys, args) return {result} end)"


def names(c):
    return sorted(dict(zip(x[::2], x[1::2]))[b"library_name"].decode() for x in c("FUNCTION", "LIST"))


def test_a_library_is_what_the_transaction_sees(two):
    """From the reply to FUNCTION LOAD on, on every server and worker."""
    with two[0].connect() as a, two[1].connect() as b, two[1].connect() as c:
        for i in range(5):
            loads, calls = (a, (b, c, a)) if i % 2 else (b, (a, c, b))
            assert loads("FUNCTION", "LOAD", "REPLACE", library("lib", i)) == b"lib"
            assert [x("FCALL", "lib", 1, "k") for x in calls] == [i] * 3
        c("MULTI")
        c("FUNCTION", "LOAD", library("other", "redis.call('INCR', keys[1])"))
        c("FCALL", "other", 1, "n")
        assert b.error("FCALL", "other", 1, "n") == "ERR Function not found"
        assert c("EXEC") == [b"other", 1]
        assert b("FCALL", "other", 1, "n") == 2 and names(a) == ["lib", "other"]
        a("FUNCTION", "DELETE", "lib")
        assert b.error("FCALL", "lib", 0) == c.error("FCALL", "lib", 0) == "ERR Function not found"
        dump = b("FUNCTION", "DUMP")
        c("FUNCTION", "FLUSH")
        assert a.error("FCALL", "other", 1, "n") == "ERR Function not found" and names(b) == []
        a("FUNCTION", "RESTORE", dump)
        assert c("FCALL", "other", 1, "n") == 3


def test_two_servers_load_the_same_library(two):
    """One of them does."""

    def load(server, i):
        with server.connect() as c:
            return [c.call("FUNCTION", "LOAD", library(f"lib{n}", i)) for n in range(10)]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [a.result() for a in [pool.submit(load, server, i) for i, server in enumerate(two)]]
    with two[0].connect() as c:
        for n, pair in enumerate(zip(*answers)):
            winner = [not r.is_error for r in pair].index(True)
            assert pair[1 - winner].value == b"ERR Library 'lib%d' already exists" % n
            assert c("FCALL", f"lib{n}", 0) == winner
    two[0].stop()
    two[1].stop()
    two[0].check()


def test_functions_cost_no_round_trip(fleet, data):
    a, b = (fleet.larder("--sweep", "no", "--workers", "1", data=data) for _ in range(2))
    with a.connect() as c, b.connect() as other:
        c("FUNCTION", "LOAD", "#!lua name=lib\n"
          "redis.register_function('add', function(keys, args) return redis.call('INCR', keys[1]) end)\n"
          "redis.register_function{function_name='look', callback=function(keys, args) return redis.call('GET', keys[1]) end,"
          " flags={'no-writes'}}")  # fmt: skip
        for x in (c, other):
            assert x("FCALL", "add", 1, "n") and x("FCALL_RO", "look", 1, "n")
        for server, x in ((a, c), (b, other)):
            for command, most in ((("FCALL", "add", 1, "n"), 2), (("FCALL_RO", "look", 1, "n"), 1)):
                assert min(round_trips(server, x, [command]) for _ in range(3)) == most, command


def test_libraries_survive(fleet, mode):
    larder = fleet.larder(data=mode)
    with larder.connect() as c:
        c("FUNCTION", "LOAD", library("lib", "redis.call('INCR', keys[1])"))
        c("FUNCTION", "LOAD", library("gone", 1))
        c("FUNCTION", "DELETE", "gone")
        c("FUNCTION", "LOAD", library("long", "'" + "x" * 200_000 + "'"))
        c("FLUSHALL")
        assert c("FCALL", "lib", 1, "n") == 1
    larder.kill()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert names(c) == ["lib", "long"] and c("FCALL", "lib", 1, "n") == 2 and len(c("FCALL", "long", 0)) == 200_000
        assert c("DBSIZE") == 1
        c("FUNCTION", "FLUSH")
    larder.stop()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert names(c) == []


def test_a_server_that_only_reads(fleet, data):
    """It runs what the others load; what it is told itself it knows alone."""
    a, b = fleet.larder(data=data), fleet.larder("--read-only", data=data)
    with a.connect() as writer, b.connect() as reader:
        sha = sha_of(writer, "return 1")
        writer("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function{function_name='f', callback=function() return 2 end, flags={'no-writes'}}")
        assert reader("EVALSHA_RO", sha, 0) == 1 and reader("FCALL_RO", "f", 0) == 2
        own = sha_of(reader, "return 3")
        assert reader("EVALSHA_RO", own, 0) == 3 and known(reader, sha, own) == [1, 1] and known(writer, sha, own) == [1, 0]
        for refused in ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH"), ("FUNCTION", "LOAD", library("x", 1)):
            assert reader.error(*refused).startswith("READONLY"), refused
        writer("SCRIPT", "FLUSH")
        assert reader.error("EVALSHA_RO", sha, 0) == reader.error("EVALSHA_RO", own, 0) == NOSCRIPT
