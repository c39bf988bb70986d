"""Transactions that the database fails in the middle of: nothing of them is left, and whoever sent them is told."""

import contextlib
import sqlite3

import pytest

from crash.power import recorded
from crash.scenario import DIRECT
from harness import store, wait
from harness.http import HttpLarder
from harness.resp import encode

pytestmark = pytest.mark.sqlite

ABORTED = b"EXECABORT Transaction discarded because of a failure of the database: IOERR "
# With a journal, the first thread reads and another one writes, which may well go on.
MODES = {
    "journal": ([], {"CRASH_FIRST": 1}),
    "everysec": (["--durability", "everysec"], {"CRASH_FIRST": 1}),
    "nothing works": ([], {}),
    "direct": (DIRECT, {}),
}


class Disk:
    """A server whose files cannot be read while this is entered, and a hash that is not in its memory."""

    def __init__(self, fleet, folder, options, what):
        self.flag = folder / "no-reads"
        files = folder / "files"
        files.mkdir()
        self.larder = fleet.new(
            HttpLarder, "--cache-memory", "64kb", "--page-cache", "64kb", *options,
            data=store.SqliteStore(files), env=recorded(files, CRASH_NO_READS=self.flag, **what),
        ).start()  # fmt: skip
        with self.larder.connect() as c:
            for i in range(0, 5000, 500):
                c("HSET", "large", *(word for j in range(i, i + 500) for word in (f"field{j}", "x" * 200)))
            c("MSET", "a", 0, "b", 0)
            assert c("SAVE") == b"OK"  # it is in the tables

    @contextlib.contextmanager
    def fails(self, connection):
        """Reads fail, but those of a and b, which are in memory."""
        assert connection("MGET", "a", "b") == [b"0", b"0"]
        self.flag.touch()
        try:
            yield
        finally:
            self.flag.unlink()

    def restart(self):
        self.larder.kill()
        self.larder.check()
        self.larder.start()


@pytest.fixture(params=MODES)
def disk(request, fleet, tmp_path):
    return Disk(fleet, tmp_path, *MODES[request.param])


def untouched(connection):
    assert connection("MGET", "a", "b", "c") == [b"0", b"0", None]
    assert connection("HLEN", "large") == 5000 and connection("HGET", "large", "field7") == b"x" * 200


def transfer(*more):
    return [("MULTI",), ("DECRBY", "a", 5), ("HSET", "large", "field7", "new"), *more, ("INCRBY", "b", 5), ("EXEC",)]


def test_all_or_nothing(disk):
    with disk.larder.connect() as c:
        c("CLIENT", "SETNAME", "before")
        c("WATCH", "a")
        with disk.fails(c):
            replies = c.pipeline([("MULTI",), ("SELECT", 1), ("CLIENT", "SETNAME", "after"), ("SELECT", 0), *transfer()[1:]])
            assert replies[-1].is_error and replies[-1].value.startswith(ABORTED), replies
            assert c.call("MULTI").plain() == b"OK"  # it is in no transaction any more, ...
            assert c("DISCARD") == b"OK"
        assert c("CLIENT", "GETNAME") == b"before"
        untouched(c)
        c("SET", "a", 0)
        assert c.pipeline(transfer())[-1].plain() == [-5, 0, 5]  # ... and watches nothing
        assert c("MSET", "a", 0, "b", 0, "c", 0) == b"OK"
        assert c("HSET", "large", "field7", "x" * 200) == 0
        assert c("SAVE") == b"OK"
    disk.restart()
    with disk.larder.connect() as c:
        assert c("DEL", "c") == 1
        untouched(c)


def test_what_stands_beside_it_is_told_the_truth(disk):
    """A transaction that looks through its own rows brings them into the database's transaction first. When it fails
    then, so does all that shares it; whatever was acknowledged is there, and nothing else."""
    with disk.larder.connect() as c:
        with disk.fails(c):
            beside = [("SET", "x", 1), *transfer(("KEYS", "*")), ("SET", "y", 1)]
            replies = c.pipeline(beside)
            assert replies[-2].is_error
        told = [not replies[0].is_error, not replies[-1].is_error]
    disk.restart()
    with disk.larder.connect() as c:
        assert [n == 1 for n in (c("EXISTS", "x"), c("EXISTS", "y"))] == told
        untouched(c)


def test_nobody_is_served_by_what_was_undone(disk):
    with disk.larder.connect() as waiting, disk.larder.connect() as c:
        waiting.send(encode(["BLPOP", "queue", 0]))
        wait.until(lambda: b"blocked_clients:1\r" in c("INFO", "clients"), "it waits")
        with disk.fails(c):
            replies = c.pipeline([("MULTI",), ("RPUSH", "queue", "undone"), ("HSET", "large", "field7", "new"), ("EXEC",)])
            assert replies[-1].value.startswith(ABORTED), replies
        assert b"blocked_clients:1\r" in c("INFO", "clients")
        assert c("RPUSH", "queue", "done") == 1
        assert waiting.read().plain() == [b"queue", b"done"]


def test_over_http(disk):
    commands = [["DECRBY", "a", "5"], ["HSET", "large", "field7", "new"], ["INCRBY", "b", "5"]]
    operations = [{"op": c[0].lower(), "key": c[1], "args": c[2:]} for c in commands]
    with disk.larder.connect() as c, disk.larder.http() as web:
        with disk.fails(c):
            answer = web.post("/multi-exec", commands)
            assert answer.status == 503 and list(answer.json) == ["error"], answer
            assert answer.json["error"].encode().startswith(ABORTED), answer
            answer = web.post("/batch", {"operations": operations})
            assert answer.status == 503 and answer.error == "io_error", answer
            assert c("MGET", "a", "b") == [b"0", b"0"]
        untouched(c)


def test_commands_of_several_keys(disk):
    """Each is all or nothing by itself."""
    with disk.larder.connect() as c:
        c("SADD", "others", *range(3000))
        c("RPUSH", "list", *(f"{i:0200}" for i in range(3000)))
        for command in (
            ("MSET", "a", 1, "far", 1, "b", 1),
            ("SMOVE", "others", "a", "17"),
            ("LMOVE", "list", "a", "LEFT", "LEFT"),
            ("SORT", "list", "BY", "nosort", "STORE", "a"),
            ("SUNIONSTORE", "a", "others"),
            ("RENAME", "list", "b"),
            ("COPY", "large", "a", "REPLACE"),
            ("HSET", "large", "field7", "new", "more", "new"),
        ):
            assert c("SAVE") == b"OK"
            with disk.fails(c):
                reply = c.call(*command)
            if not reply.is_error:  # it was in memory after all, and is whole
                assert command[0] in ("RENAME", "MSET"), command
                c("RENAME", "b", "list") if command[0] == "RENAME" else c("DEL", "far")
                c("MSET", "a", 0, "b", 0)
            untouched(c)
            assert c("SCARD", "others") == 3000 and c("LLEN", "list") == 3000 and not c("EXISTS", "far")
    disk.restart()
    with disk.larder.connect() as c:
        untouched(c)


def test_a_database_that_was_chosen_in_vain(fleet):
    """The commit fails: a SELECT in the queue is undone with the rest."""
    larder = fleet.larder("--busy-timeout", "50ms", "--journal-max", "0")  # else the log takes it
    other = sqlite3.connect(larder.store.path, isolation_level=None)
    queue = [("MULTI",), ("SELECT", 1), ("SET", "k", "v"), ("EXEC",)]
    with larder.connect() as c:
        other.execute("BEGIN IMMEDIATE")
        assert c.pipeline(queue)[-1].value.startswith(b"TRYAGAIN ")
        assert b" db=0 " in c("CLIENT", "INFO")
        replies = c.pipeline([*queue, ("SELECT", 2)])  # which is the client's own word
        assert replies[-2].value.startswith(b"TRYAGAIN ") and b" db=2 " in c("CLIENT", "INFO")
        other.execute("ROLLBACK")
        assert c("SELECT", 0) == b"OK"
        assert c.pipeline(queue)[-1].plain() == [b"OK", b"OK"]
        assert b" db=1 " in c("CLIENT", "INFO") and c("GET", "k") == b"v"
    other.close()
