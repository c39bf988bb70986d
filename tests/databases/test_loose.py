"""Batches that lock nothing (src/store/remote/remote_loose.c), while another server writes what they have read."""

import contextlib

from harness import wait
from harness.resp import encode


class Held:
    """A row that an application has locked, and leaves as it is: who writes it waits until then."""

    def __init__(self, data, key):
        self.data = data
        self.key = key

    def __enter__(self):
        ((number,),) = self.data.query("SELECT number FROM larder_db WHERE db = 0")
        postgres = self.data.kind == "postgres"
        name = f"key = convert_to('{self.key}', 'UTF8')" if postgres else f"`key` = '{self.key}'"
        index = "" if postgres else "FORCE INDEX (larder_key_name)"
        self.session = self.data.session().__enter__()
        self.session("BEGIN")
        self.session(f"SELECT seq FROM larder_key {index} WHERE db = {number} AND {name} FOR UPDATE")
        return self

    def __exit__(self, *_):
        self.session("ROLLBACK")
        self.session.__exit__()


def waiting(data):
    """How many sessions wait for a row."""
    if data.kind == "postgres":
        sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    else:
        sql = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
    return int(data.query(sql)[0][0])


def waits(data):
    return waiting(data) > 0


def send(c, *commands):
    c.send(b"".join(encode(command) for command in commands))


def two(fleet, data):
    """Servers of one worker each, and what they have to know of the tables is known."""
    servers = [fleet.larder("--workers", "1", data=data) for _ in range(2)]
    for server in servers:
        with server.connect() as c:
            c("MSET", "x", 0, "y", 0, "z", 0)
            for _ in range(80):  # transactions that lock, behind one that conflicts
                c("SET", "x", 0)
    return servers


def test_a_transaction_that_reads_first_is_one_state(fleet, data):
    """MULTI has been answered: what follows it comes as a pipeline, a read and then a write of one key each."""
    here, there = two(fleet, data)
    with here.connect() as a, there.connect() as b:
        assert a("MULTI") == b"OK"
        with Held(data, "x"):
            send(a, ("GET", "y"), ("SET", "x", 1), ("EXEC",))
            wait.until(lambda: waits(data), "it waits for the row")
            assert b("SET", "y", 1) == b"OK"
            assert b("GET", "x") == b"0"
        assert [a.read().plain() for _ in range(3)][-1] == [b"1", b"OK"]


def test_what_comes_behind_another_clients_write_is_as_new(fleet, data):
    """Who has read what a client of the same batch writes reads nothing older behind it."""
    here, there = two(fleet, data)
    with here.connect() as first, here.connect() as writer, here.connect() as reader, there.connect() as b:
        for c in (first, writer, reader):
            c("PING")
        with Held(data, "x"):
            with Held(data, "z"):
                send(first, ("SET", "z", 1))  # the others come meanwhile, and are one batch
                wait.until(lambda: waits(data), "the first waits for the row")
                send(writer, ("SET", "x", 1))
                send(reader, ("GET", "x"), ("GET", "y"))
            first.read()
            wait.until(lambda: waits(data), "the second waits for the row")
            assert b("SET", "y", 1) == b"OK"
            assert b("GET", "x") == b"0"
        assert [reader.read().plain() for _ in range(2)] == [b"1", b"1"]
        writer.read()


def test_a_worker_waits_for_no_other_with_more_than_it_must(fleet, data):
    """Of two clients in one batch, one writes what another worker of the same server is about to write."""
    server = fleet.larder("--workers", "2", data=data)
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(6):  # in turn, they go to the one worker and the other
            clients.append(stack.enter_context(server.connect()))
            clients[-1]("PING")
        here, there = clients[::2], clients[1::2]
        here[0]("MSET", "x", 0, "y", 0, "z", 0)
        with Held(data, "x"):
            send(here[0], ("SET", "x", 1))
            wait.until(lambda: waiting(data) == 1, "one worker waits for the row")
            with Held(data, "z"):
                send(there[0], ("SET", "z", 1))  # the others come meanwhile, and are one batch
                wait.until(lambda: waiting(data) == 2, "both workers wait")
                send(there[1], ("SET", "x", 2))
                send(there[2], ("SET", "y", 1))
            assert there[2].read().plain() == b"OK"
            assert there[0].read().plain() == b"OK"
        assert here[0].read().plain() == b"OK"
        assert there[1].read().plain() == b"OK"
        assert here[1]("MGET", "y", "z") == [b"1", b"1"]
