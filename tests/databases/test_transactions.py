"""Transactions on a database that goes away in the middle of them: all of each or nothing, and the client knows which."""

import threading

import pytest

from harness import store, wait
from harness.http import HttpLarder

ABORTED = "EXECABORT Transaction discarded because of a failure of the database: "
ACCOUNTS = [f"account{i}" for i in range(8)]
CLIENTS = 4
FIELDS = 3000


@pytest.fixture(params=["shared", "exclusive"])
def mode(request):
    return request.param


@pytest.fixture
def larder(fleet, own, mode):
    """Most of a large hash is not in its memory."""
    data = store.KINDS[own.kind](on=own, **({"mode": mode} if mode == "exclusive" else {}))
    larder = fleet.new(HttpLarder, "--cache-memory", "64kb", "--store-timeout", "5s", data=data).start()
    with larder.connect() as c:
        for i in range(0, FIELDS, 500):
            c("HSET", "large", *(word for j in range(i, i + 500) for word in (f"field{j}", "x" * 200)))
        c("MSET", *(word for account in ("a", "b", "done", *ACCOUNTS) for word in (account, 0)))
        assert c("SAVE") == b"OK"
    return larder


def serves(c):
    """Memory may answer GET; a field of a large hash comes from the database."""
    return not c.call("GET", "a").is_error and not c.call("HGET", "large", "field7").is_error


def between_multi_and_exec(larder, own):
    with larder.connect() as c, larder.http() as web:
        c("CLIENT", "SETNAME", "before")
        assert c("MGET", "a", "b") == [b"0", b"0"]
        for command in (("MULTI",), ("SELECT", 1), ("CLIENT", "SETNAME", "after"), ("SELECT", 0), ("DECRBY", "a", 5),
                        ("HSET", "large", "field7", "new"), ("INCRBY", "b", 5), ("SELECT", 1)):  # fmt: skip
            c(*command)
        own.stop()
        reply = c.call("EXEC")
        assert reply.is_error and reply.value.decode().startswith(ABORTED), reply
        answer = web.post("/multi-exec", [["DECRBY", "a", 5], ["HSET", "large", "field7", "new"], ["INCRBY", "b", 5]])
        assert answer.status == 503 and answer.json["error"].startswith(ABORTED), answer
        answer = web.post("/batch", {"operations": [{"op": "decrby", "key": "a", "args": [5]},
                                                    {"op": "hset", "key": "large", "args": ["field7", "new"]}]})  # fmt: skip
        assert answer.status == 503, answer
        own.start()
        wait.until(lambda: serves(c), "it serves again", 30)
        assert c("MGET", "a", "b") == [b"0", b"0"]  # in database 0
        assert c("HGET", "large", "field7") == b"x" * 200
        assert c("CLIENT", "GETNAME") == b"before"


class Teller(threading.Thread):
    """Moves money between accounts, with something between that has to be read."""

    def __init__(self, larder, number, stop):
        super().__init__()
        self.larder, self.number, self.stop = larder, number, stop
        self.done = self.refused = self.uncertain = 0
        self.wrong = None

    def run(self):
        try:
            with self.larder.connect() as c:
                n = self.number
                while not self.stop.is_set():
                    n = (n * 7 + 11) % 10007
                    self.note(c.pipeline(self.transfer(n))[-1])
        except Exception as e:  # the test looks at it
            self.wrong = repr(e)

    def transfer(self, n):
        giver, taker = ACCOUNTS[n % len(ACCOUNTS)], ACCOUNTS[(n + 1 + n % 5) % len(ACCOUNTS)]
        return [
            ("MULTI",), ("DECRBY", giver, n), ("HSET", "large", f"field{n % FIELDS}", n),
            ("INCRBY", taker, n), ("INCR", "done"), ("EXEC",),
        ]  # fmt: skip

    def note(self, reply):
        if not reply.is_error:
            assert all(isinstance(one, int) for one in reply.plain()), reply
            self.done += 1
        elif reply.value.startswith(b"UNCERTAIN "):
            self.uncertain += 1
        else:
            self.refused += 1


def wait_for(tellers, count, what):
    """Each of them counts on."""
    before = [count(t) for t in tellers]
    wait.until(lambda: all(count(t) > n or t.wrong for t, n in zip(tellers, before)), what, 60)


def the_sum_stays(larder, own, mode):
    stop = threading.Event()
    tellers = [Teller(larder, i, stop) for i in range(CLIENTS)]
    for teller in tellers:
        teller.start()
    try:
        wait_for(tellers, lambda t: t.done, "they work")
        own.stop_at_once() if mode == "shared" else own.stop()
        wait_for(tellers, lambda t: t.refused, "they notice")
        own.start()
        wait_for(tellers, lambda t: t.done, "they work again")
    finally:
        stop.set()
        for teller in tellers:
            teller.join(60)
    assert [t.wrong for t in tellers] == [None] * CLIENTS
    done, uncertain = sum(t.done for t in tellers), sum(t.uncertain for t in tellers)
    with larder.connect() as c:
        wait.until(lambda: serves(c), "it serves again", 30)
        assert sum(int(n) for n in c("MGET", *ACCOUNTS)) == 0
        assert done <= int(c("GET", "done")) <= done + uncertain


def test_all_or_nothing(larder, own, mode):
    """One after the other on the same database, which takes a while to make."""
    between_multi_and_exec(larder, own)
    the_sum_stays(larder, own, mode)
    larder.stop()
    larder.check()
