"""timeout_ms: the answer comes when it has run out, whatever the batch waits for, and what it says is true. And what takes
the place of answers whose commit has failed."""

import contextlib
import json
import sqlite3
import time

import pytest

from harness import wait
from harness.http import Raw

LONG = "60s"  # nobody waits for so long
PATIENCE = 30  # seconds, of a client: less than that


LARGE = "v" * 40_000
# Commits that wait for a lock of another process: without a journal, and those that are too large for it, which go into
# the tables as well. The rest goes into the log, which needs no lock.
IN_TABLES = pytest.mark.parametrize("journal_max", ["64kb", "0"], ids=["outsized", "direct"])


def batch(timeout_ms, *keys, value="v"):
    return {"operations": [{"op": "put", "key": key, "value": value} for key in keys], "timeout_ms": timeout_ms}


def request(method, path, body=None):
    text = b"" if body is None else json.dumps(body).encode()
    kind = "Content-Type: application/json\r\n" if text else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {len(text)}\r\n\r\n".encode() + text


def nothing_done(answer):
    return answer.status == 503 and answer.error == "timeout"


def uncertain(answer):
    return answer.status == 500 and answer.error == "uncertain"


@contextlib.contextmanager
def locked(server):
    """Another process has SQLite's write lock."""
    other = sqlite3.connect(server.store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def test_while_writers_are_paused(server, redis):
    redis("CLIENT", "PAUSE", "60000", "WRITE")
    try:
        start = time.monotonic()
        with server.http(timeout=PATIENCE) as web:
            for i in range(8):
                assert nothing_done(web.post("/batch", batch(20, f"k{i}")))
        assert time.monotonic() - start < 4, "they were answered when somebody happened to look"
        with Raw(server.http_port, timeout=PATIENCE) as raw:  # each has its own time
            raw.send(request("POST", "/batch", batch(20, "a")) + request("POST", "/batch", batch(3_600_000, "b")))
            assert raw.answer()[0] == 503
            assert redis("EXISTS", "a", "b") == 0
            redis("CLIENT", "UNPAUSE")
            assert raw.answer()[0] == 200
        assert redis("DBSIZE") == 1
    finally:
        redis("CLIENT", "UNPAUSE")


@pytest.mark.sqlite
@IN_TABLES
def test_while_a_commit_waits(start, journal_max):
    """The commit has begun, and nobody knows how it will end."""
    server = start("--busy-timeout", LONG, "--journal-max", journal_max)
    with server.http(timeout=PATIENCE) as web, server.http(timeout=PATIENCE) as other:
        with locked(server):
            assert uncertain(web.post("/batch", batch(1000, "first", value=LARGE)))
            answers = {f"k{i}": other.post("/batch", batch(50, f"k{i}")) for i in range(3)}
            assert all(uncertain(a) or nothing_done(a) for a in answers.values()), answers
        wait.until(lambda: web.get("/keys/first").status == 200, "it is committed after all")
        assert web.post("/batch", batch(60_000, "last")).status == 200
        for key, answer in answers.items():
            assert web.get(f"/keys/{key}").status == (404 if nothing_done(answer) else 200), key


@pytest.mark.sqlite
@IN_TABLES
def test_behind_an_answer_that_may_wait(start, journal_max):
    """Answers leave in the order of their requests: one without a deadline holds up the next."""
    server = start("--busy-timeout", LONG, "--journal-max", journal_max)
    with Raw(server.http_port, timeout=PATIENCE) as raw, server.http(timeout=PATIENCE) as web:
        with locked(server):
            raw.send(request("PUT", "/keys/a", {"value": LARGE}) + request("POST", "/batch", batch(50, "b")))
            c = web.post("/batch", batch(500, "c", value=LARGE))
            assert uncertain(c) or nothing_done(c), c  # it may have come when the lock was known to be held
        assert raw.answer()[0] == 201
        b = raw.answer()[0]
        assert b in (200, 500, 503)
        assert web.post("/batch", batch(60_000, "last")).status == 200
        assert web.get("/keys/b").status == (404 if b == 503 else 200)
        assert web.get("/keys/c").status == (404 if nothing_done(c) else 200)


@pytest.mark.sqlite
def test_while_the_journal_is_full(start):
    """Those that did not begin were not done, those that did are, whenever the tables get them."""
    server = start("--busy-timeout", LONG, "--journal-max", "1mb")
    keys, answers = iter(range(200)), {}
    with server.http(timeout=PATIENCE) as web:
        with locked(server):
            while not any(nothing_done(answer) for answer in answers.values()):
                key = f"k{next(keys)}"
                operation = {"op": "put", "key": key, "value": "v" * 60_000}
                answers[key] = web.post("/batch", {"operations": [operation], "timeout_ms": 10})
        assert web.post("/batch", batch(60_000, "last")).status == 200
        for key, answer in answers.items():
            assert answer.status == 200 or uncertain(answer) or nothing_done(answer), answer
            assert web.get(f"/keys/{key}").status == (404 if nothing_done(answer) else 200), key


@pytest.mark.parametrize("atomic", [True, False])
def test_while_it_runs(server, redis, atomic):
    """However far it got."""
    keys = [f"k{i}" for i in range(20_000)]
    with server.http() as web:
        for timeout_ms in (1, 10, 30, 60, 100, 150, 200, 300, 10_000):
            redis("FLUSHALL")
            answer = web.post("/batch", {**batch(timeout_ms, *keys), "atomic": atomic})
            if answer.status == 200:
                done = sum("version" in one for one in answer.json["results"])
                assert done == len(keys) or not atomic
            else:
                assert nothing_done(answer) or uncertain(answer), answer
                done = 0
            if uncertain(answer):
                wait.until(lambda: redis("DBSIZE") == len(keys) or not atomic, "it is committed after all")
            else:
                assert redis("DBSIZE") == done
    assert answer.status == 200


@pytest.mark.sqlite
def test_each_answer_fails_in_its_own_words(start):
    """Requests of both dialects, and HEAD, in one pipeline, whose commit fails."""
    server = start("--busy-timeout", "100ms", "--journal-max", "0")
    asked = [
        ("PUT", "/keys/a", {"value": "v"}),
        ("POST", "/", ["SET", "b", "v"]),
        ("HEAD", "/keys/a", None),
        ("POST", "/batch", batch(60_000, "c")),
        ("POST", "/pipeline", [["SET", "d", "v"]]),
        ("GET", "/keys/a", None),
    ]
    with Raw(server.http_port, timeout=PATIENCE) as raw:
        with locked(server):
            raw.send(b"".join(request(*one) for one in asked))
            for method, path, _ in asked:
                status, _, body = raw.answer(method)
                assert status == 503, (method, path, status, body)
                if method == "HEAD":
                    assert body == b""
                elif path in ("/", "/pipeline"):
                    assert json.loads(body)["error"].startswith("TRYAGAIN "), (path, body)
                else:
                    assert json.loads(body)["error"] == "try_again", (path, body)
        raw.send(request("GET", "/keys/a"))
        assert raw.answer()[0] == 404
