"""Scripts that run for longer than busy-reply-threshold: what other clients are told, who may end them, and what stays.
What Redis does as well runs on redis-server, too, so that what is expected here is what Redis does."""

import contextlib
import hashlib
import select
import signal
import threading
import time

import pytest

from harness import wait
from harness.http import HttpLarder
from harness.resp import Closed, ServerError, encode

OPTIONS = ("--busy-reply-threshold", "50", "--workers", "1")
BUSY = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
BUSY_FUNCTION = BUSY.replace("SCRIPT", "FUNCTION")
UNKILLABLE = (
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script "
    "termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)
FOR_EVER = "while true do end"
# Writes, and ends by itself.
A_WHILE = """
redis.call('SET', KEYS[1], 'written')
local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
local till = now() + ARGV[1] * 1000
while now() < till do end
return 'done'
"""


@pytest.fixture(params=["oracle", "subject"])
def server(request):
    if request.param == "subject":
        server = request.getfixturevalue("subjects")(*OPTIONS)
    else:
        server = request.getfixturevalue("oracle")
    with server.connect() as c:
        c("FLUSHALL")
        c("CONFIG", "SET", "busy-reply-threshold", 50)
    yield server
    if server.alive:
        with server.connect() as c:
            c("CONFIG", "SET", "busy-reply-threshold", 5000)


@pytest.fixture
def subject(subjects):
    server = subjects(*OPTIONS)
    with server.connect() as c:
        c("FLUSHALL")
        c("CONFIG", "SET", "busy-reply-threshold", 50)
    return server


def is_busy(client):
    reply = client.call("PING")
    return reply.is_error and reply.value.startswith(b"BUSY")


def make_busy(runner, other, *command):
    """Runs a script and returns when it is busy. One that has ended before that was seen is run again."""
    runner.send(encode(command))

    def seen():
        if is_busy(other):
            return True
        if select.select([runner.socket], [], [], 0)[0]:
            runner.read()
            runner.send(encode(command))
        return False

    wait.until(seen, "the script to be busy", pause=0.001)


@contextlib.contextmanager
def running(server, *command):
    """(the client that runs a script, another client), from when the script is busy on."""
    with server.connect() as runner, server.connect() as other:
        make_busy(runner, other, *command)
        try:
            yield runner, other
        finally:
            end_script(server)


def end_script(server):
    """A test that fails leaves no script behind that the end of its server would wait for."""
    with contextlib.suppress(Closed, OSError), server.connect() as c:
        if is_busy(c):
            c.call("SCRIPT", "KILL")
            c.call("FUNCTION", "KILL")


@contextlib.contextmanager
def endless(server, script=FOR_EVER):
    """So, of a script that is ended behind it."""
    with running(server, "EVAL", script, 0) as (runner, other):
        yield runner, other
        assert other("SCRIPT", "KILL") == b"OK"
        assert b"Script killed by user" in runner.read().value
        assert other("PING") == b"PONG"


def test_other_clients_are_told(server):
    with endless(server) as (_, other):
        for command in (
            ["GET", "k"],
            ["SET", "k", "v"],
            ["PING"],
            ["CLIENT", "LIST"],
            ["CONFIG", "GET", "port"],
            ["INFO"],
            ["SELECT", "1"],
            ["EVAL", "return 1", "0"],
            ["SCRIPT", "EXISTS", "a"],
            ["FUNCTION", "KILL"],
            ["FUNCTION", "STATS"],
            ["SHUTDOWN"],
            ["SHUTDOWN", "SAVE"],
        ):
            assert other.error(*command) == BUSY, command
        assert other.error("NOSUCH") == "ERR unknown command 'NOSUCH', with args beginning with: "
        assert other.error("GET") == "ERR wrong number of arguments for 'get' command"
        assert other.error("CLIENT", "NOPE") == "ERR unknown subcommand 'NOPE'. Try CLIENT HELP."
        assert other.error("SCRIPT", "KILL", "x") == "ERR wrong number of arguments for 'script|kill' command"
        assert other.error("SHUTDOWN", "NOSAVE", "x") == "ERR syntax error"


def test_what_is_about_the_connection_works(server):
    with endless(server) as (_, other):
        assert other("HELLO", 3)[b"proto"] == 3
        assert other("HELLO", 2)[4:6] == [b"proto", 2]
        assert other.error("AUTH", "x").startswith("ERR AUTH <password> called without any password")
        assert other("UNWATCH") == b"OK"
        assert other("RESET") == b"RESET"
        with server.connect() as late:
            assert late.error("GET", "k") == BUSY
            assert late("QUIT") == b"OK"
            with pytest.raises(Closed):
                late.read()


def test_a_transaction_that_is_refused_a_command_fails_as_a_whole(server):
    with server.connect() as early:
        early("MULTI")
        early("SET", "k", "1")
        with endless(server) as (_, other):
            assert other("MULTI") == b"OK"
            assert other.error("SET", "k", "2") == BUSY
            assert other("DISCARD") == b"OK"
            assert other("MULTI") == b"OK"
            assert other("SCRIPT", "KILL") == b"QUEUED"
            assert other.error("EXEC") == "EXECABORT Transaction discarded because of: " + BUSY
            assert other.error("EXEC") == "EXECABORT Transaction discarded because of: " + BUSY
            assert early.error("SET", "k", "3") == BUSY
        assert early.error("EXEC") == "EXECABORT Transaction discarded because of previous errors."
        assert early("EXISTS", "k") == 0


def test_watch_would_need_the_database(subject):
    with endless(subject) as (_, other):
        assert other.error("WATCH", "k") == BUSY


def test_nothing_runs_nothing_is_killed(server):
    with server.connect() as c:
        assert c.error("SCRIPT", "KILL") == "NOTBUSY No scripts in execution right now."
        assert c.error("FUNCTION", "KILL") == "NOTBUSY No scripts in execution right now."


def test_the_text_of_the_end(server):
    with running(server, "EVAL", "\n" + FOR_EVER, 0) as (runner, other):
        assert other("SCRIPT", "KILL") == b"OK"
        sha = hashlib.sha1(b"\n" + FOR_EVER.encode()).hexdigest().encode()
        assert runner.read().plain() == ServerError(
            b"ERR Script killed by user with SCRIPT KILL... script: %s, on @user_script:2." % sha
        )


def test_pcall_does_not_hold_the_end_back(server):
    with endless(server, "while true do pcall(function() while true do end end) end"):
        pass


@pytest.mark.parametrize(
    "script",
    [
        "pcall(function() while true do end end) return 5",
        "local c = coroutine.wrap(function() while true do pcall(function() while true do end end) end end) c() return 5",
        "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() while true do end end) return 5",
        "string.gsub('a', 'a', function() while true do end end) return 5",
        "xpcall(function() while true do end end, function() while true do end end) return 5",
    ],
)
def test_nothing_holds_the_end_back(subject, script):
    with endless(subject, script):
        pass


def test_inside_a_transaction_the_others_of_it_stand(server):
    with server.connect() as runner, server.connect() as other:
        runner.pipeline([["MULTI"], ["SET", "a", "1"], ["EVAL", FOR_EVER, "0"], ["SET", "b", "1"]])
        make_busy(runner, other, "EXEC")
        assert other("SCRIPT", "KILL") == b"OK"
        first, second, third = runner.read().plain()
        assert (first, third) == (b"OK", b"OK")
        assert second.text.startswith(b"ERR Script killed by user with SCRIPT KILL...")
        assert other("MGET", "a", "b") == [b"1", b"1"]


def test_a_threshold_of_zero_makes_no_script_busy(server):
    with server.connect() as c, server.connect() as other:
        c("CONFIG", "SET", "lua-time-limit", 0)
        c.send(encode(["EVAL", A_WHILE, 1, "k", 200]))
        wait.until(lambda: other("EXISTS", "k"), "the script to be over")
        assert c.read().plain() == b"done"


def test_calls_of_a_client_that_waits_for_its_script_run_behind_it(server):
    with running(server, "EVAL", A_WHILE, 1, "k", 300) as (runner, _):
        runner.send(encode(["GET", "k"]) + encode(["PING"]))
        assert [runner.read().plain() for _ in range(3)] == [b"done", b"written", b"PONG"]


def test_clients_come_and_go(server):
    with endless(server) as (_, other):
        for _ in range(50):
            with server.connect() as c:
                assert c.error("GET", "k") == BUSY
        with server.connect() as c:
            c.send(encode(["GET", "k"]) * 3000)
            assert [c.read().plain() for _ in range(3000)] == [ServerError(BUSY.encode())] * 3000
            c.send(b"*1\r\n$4\r\nPI")
            assert other.error("PING") == BUSY
            c.send(b"NG\r\n")
            assert c.read().plain() == ServerError(BUSY.encode())
        with server.connect() as c:
            c.send(b"*1\r\n$x\r\n")
            assert c.read().plain() == ServerError(b"ERR Protocol error: invalid bulk length")
            with pytest.raises(Closed):
                c.read()


def test_replies_that_are_off_stay_off(server):
    with server.connect() as quiet:
        quiet.send(encode(["CLIENT", "REPLY", "OFF"]))
        with endless(server) as (_, other):
            quiet.send(encode(["GET", "k"]))
            assert other.error("PING") == BUSY
            assert quiet.read_available(0.05) == (b"", False)
        quiet.send(encode(["CLIENT", "REPLY", "ON"]))
        assert quiet.read().plain() == b"OK"


def test_the_client_of_a_script_goes_and_the_script_goes_on(server):
    with server.connect() as other:
        with server.connect() as runner:
            make_busy(runner, other, "EVAL", A_WHILE, 1, "k", 300)
        wait.until(lambda: not is_busy(other), "the script to be over")
        assert other("GET", "k") == b"written"


def test_a_blocked_client_is_served_behind_the_script(server):
    with server.connect() as blocked, server.connect() as patient:
        blocked.send(encode(["BLPOP", "q", "0.1"]))
        patient.send(encode(["BLPOP", "other", "0"]))
        with endless(server) as (_, other):
            time.sleep(0.15)  # the patience of the first ends while the script runs
            assert other.error("PING") == BUSY
        assert blocked.read().plain() is None
        assert blocked("RPUSH", "other", "x") == 1
        assert patient.read().plain() == [b"other", b"x"]


def test_statistics_count_what_was_refused(server):
    with server.connect() as c:
        c("CONFIG", "RESETSTAT")
        with endless(server) as (_, other):
            for _ in range(5):
                other.error("GET", "k")
        stats = c("INFO", "commandstats").decode()
        assert "cmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=5,failed_calls=0" in stats
        assert "cmdstat_script|kill:calls=1," in stats
        errors = c("INFO", "errorstats").decode()
        assert int(errors.split("errorstat_BUSY:count=")[1].split()[0]) >= 6
        entry = c("SLOWLOG", "GET", 1)[0]
        assert entry[3][:2] == [b"EVAL", FOR_EVER.encode()]
        assert entry[2] > 50000


# ---- the end of the server ----


@pytest.fixture(params=["redis", "larder"])
def own(request, fleet):
    """A server that may end."""
    if request.param == "redis":
        return fleet.redis("--busy-reply-threshold", "50")
    return fleet.larder(*OPTIONS)


def test_only_shutdown_nosave_ends_a_script_that_has_written(own):
    with running(own, "EVAL", "redis.call('SET', 'half', '1') " + FOR_EVER, 0) as (_, other):
        assert other.error("SCRIPT", "KILL") == UNKILLABLE
        assert other.error("FUNCTION", "KILL") == UNKILLABLE
        assert other.error("SHUTDOWN") == BUSY
        other.send(encode(["SHUTDOWN", "NOSAVE"]))
        own.wait_ended()


def test_sigterm_waits_for_the_script(own):
    with running(own, "EVAL", FOR_EVER, 0) as (_, other):
        own.process.send_signal(signal.SIGTERM)
        for _ in range(20):
            assert other.error("GET", "k") == BUSY
        assert other("SCRIPT", "KILL") == b"OK"
        own.wait_ended()


def test_nothing_of_a_script_stays_that_the_end_has_met(fleet):
    server = fleet.larder(*OPTIONS)
    with server.connect() as c:
        c("SET", "kept", "1")
    with running(server, "EVAL", "redis.call('SET', 'kept', '2') redis.call('SET', 'half', '1') " + FOR_EVER, 0) as (
        runner,
        other,
    ):
        runner.send(encode(["SET", "behind", "1"]))
        other.send(encode(["SHUTDOWN", "NOSAVE"]))
        assert b"killed by SHUTDOWN" in runner.read().value
        server.wait_ended()
    server.process = None
    server.start()
    with server.connect() as c:
        assert c("GET", "kept") == b"1"
        assert c("EXISTS", "half") == 0


def test_what_sigterm_waited_for_is_there(fleet):
    server = fleet.larder(*OPTIONS)
    with running(server, "EVAL", A_WHILE, 1, "k", 300) as (runner, _):
        server.process.send_signal(signal.SIGTERM)
        assert runner.read().plain() == b"done"
        server.wait_ended()
    server.process = None
    server.start()
    with server.connect() as c:
        assert c("GET", "k") == b"written"


def test_a_script_that_never_ends_and_kill_9(fleet):
    server = fleet.larder(*OPTIONS)
    with running(server, "EVAL", "redis.call('SET', 'half', '1') " + FOR_EVER, 0):
        server.kill()
    server.process = None
    server.start()
    with server.connect() as c:
        assert c("DBSIZE") == 0


# ---- HTTP ----


def test_http_is_told_503(fleet):
    server = fleet.new(HttpLarder, *OPTIONS).start()
    with server.http() as h, running(server, "EVAL", FOR_EVER, 0) as (_, other):
        for ask in (
            lambda: h.get("/keys/k"),
            lambda: h.put("/keys/k", b"v"),
            lambda: h.get("/metrics"),
            lambda: h.get("/readyz"),
            lambda: h.post("/batch", {"operations": [{"op": "get", "key": "k"}]}),
        ):
            answer = ask()
            assert (answer.status, answer.json["error"], answer.json["message"]) == (503, "busy", BUSY)
            assert answer.headers["Retry-After"] == "1"
        for ask in (lambda: h.post("/", ["GET", "k"]), lambda: h.post("/pipeline", [["GET", "k"]])):
            answer = ask()
            assert (answer.status, answer.json["error"]) == (503, BUSY)
        assert h.get("/healthz").json == {"status": "ok"}
        assert h.get("/nothing/of/this/kind").status == 404
        assert h.post("/", ["SCRIPT", "KILL"]).json == {"result": "OK"}
        wait.until(lambda: not is_busy(other), "the script to be over")
        assert h.get("/keys/k").status == 404


def test_a_script_of_http_answers_behind_others(fleet):
    server = fleet.new(HttpLarder, *OPTIONS).start()
    with server.http() as h, server.connect() as other, server.http() as second:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(h.post("/", ["EVAL", FOR_EVER, 0])))
        thread.start()

        def seen():
            """By one client after the other: one whose PING ran in the script's own transaction waits with that."""
            with contextlib.suppress(TimeoutError), server.connect(timeout=0.5) as c:
                return is_busy(c)

        wait.until(seen, "the script to be busy")
        assert second.get("/keys/k").status == 503
        assert other("SCRIPT", "KILL") == b"OK"
        thread.join()
        assert answers[0].json["error"].startswith("ERR Script killed by user")
        assert second.post("/", ["GET", "k"]).json == {"result": None}
