"""What the database does not take: told when it cannot be helped, tried again when others were only in the way."""

import hashlib
import random
import re
import threading
import time

from harness import wait
from harness.resp import ServerError

NO_SPACE = {"postgres": "53100", "mariadb": 1021}
DEADLOCK = {"postgres": "40P01", "mariadb": 1213}


def plant(data, code, times, table="larder_key"):
    """The next writes to a table fail with a code of the database's, so many of them."""
    if data.kind == "postgres":
        data.query(
            f"""CREATE SEQUENCE planted;
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('planted') <= {times} THEN RAISE 'planted' USING ERRCODE = '{code}'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION fail();"""
        )
    else:
        body = (
            f"IF NEXT VALUE FOR planted <= {times} THEN"
            f" SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'planted', MYSQL_ERRNO = {code}; END IF"
        )
        data.query("CREATE SEQUENCE planted")
        for event in ("INSERT", "UPDATE"):
            trigger = f"CREATE TRIGGER fail_{event} BEFORE {event} ON {table} FOR EACH ROW {body}"
            data.query(f"DELIMITER //\n{trigger}//\n")


def test_a_commit_that_fails_is_told(server, data):
    """Whatever a reply says of is there: one that relied on the commit becomes the error."""
    with server.connect() as c:
        c("SET", "k", "old")
        plant(data, NO_SPACE[data.kind], 1)
        replies = c.pipeline([("PING",), ("SET", "k", "new"), ("GET", "k"), ("RPUSH", "l", "a"), ("ECHO", "e")])
        assert [r.is_error for r in replies] == [False, True, True, True, False]
        assert replies[1].value.startswith(b"MISCONF ")
        assert c("GET", "k") == b"old" and c("EXISTS", "l") == 0
        assert c("SET", "k", "new") == b"OK" and c("GET", "k") == b"new"


def conflicts(c):
    return int(re.search(rb"conflicts:(\d+)", c("INFO", "larder"))[1])


def test_writers_in_the_way_are_not_noticed(fleet, data):
    """The database ends the transaction a few times, at its writes: it is run again, all of it, once in effect."""
    server = fleet.larder("--workers", "1", data=data)  # who waits is served within the pipeline
    with server.connect() as c, server.connect() as blocked:
        c("SET", "n", 5)
        c("WATCH", "n")
        blocked.send(b"*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$1\r\n0\r\n")
        wait.until(lambda: b"blocked_clients:1\r" in c("INFO", "clients"), "it waits")
        before = conflicts(c)
        plant(data, DEADLOCK[data.kind], 3)
        replies = c.pipeline(
            [
                ("INCR", "n"),
                ("RPUSH", "q", "a", "b"),
                ("SELECT", 1),
                ("INCR", "n"),
                ("SELECT", 0),
                ("MULTI",),
                ("INCR", "n"),
                ("EXEC",),
                ("INCR", "q"),
                ("LRANGE", "q", 0, -1),
                ("GET", "n"),
            ]
        )
        wrong_type = b"WRONGTYPE Operation against a key holding the wrong kind of value"
        assert [r.plain() for r in replies] == [6, 2, b"OK", 1, b"OK", b"OK", b"QUEUED", None, ServerError(wrong_type),
                                                [b"b"], b"6"]
        assert blocked.read().plain() == [b"q", b"a"]
        assert conflicts(c) == before + 3
        assert c("GET", "n") == b"6" and c("LRANGE", "q", 0, -1) == [b"b"]
        stats = c("INFO", "commandstats")
        assert b"cmdstat_incr:calls=3," in stats and b"cmdstat_blpop:calls=2," in stats


def test_it_is_told_when_others_are_always_in_the_way(server, data):
    with server.connect() as c:
        c("SET", "k", "old")
        plant(data, DEADLOCK[data.kind], 1000)
        replies = c.pipeline([("SET", "k", "new"), ("PING",), ("GET", "k")])
        assert replies[0].is_error and replies[0].value.startswith(b"TRYAGAIN ") and replies[1].value == b"PONG"
        assert c("GET", "k") == b"old"


def test_a_lock_that_is_not_had_in_time_is_tried_again(fleet, data):
    """Somebody has that of a new key for longer than MariaDB waits at once, and lets it go before the time is up."""
    if data.kind != "mariadb":
        return  # PostgreSQL waits for as long as there is time
    server = fleet.larder("--workers", "1", "--store-timeout", "12s", data=data)
    waits = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_ROW_LOCK_WAITS'"
    replies = []

    def write():
        with server.connect() as c:
            replies.extend(c.pipeline([("INCR", "other"), ("INCR", "k"), ("GET", "k")]))

    with server.connect() as c, data.session() as session:
        c("SET", "k", 1)
        before = conflicts(c)
        session(f"START TRANSACTION; SELECT n FROM larder_lock WHERE n = {stripe('other')} FOR UPDATE")
        (start,) = session(waits)
        writer = threading.Thread(target=write)
        writer.start()
        wait.until(lambda: replies or int(session(waits)[0]) >= int(start) + 2, "it waits for the second time")
        assert not replies, replies
        session("COMMIT")
        writer.join(60)
        assert [r.plain() for r in replies] == [1, 2, b"2"]
        assert conflicts(c) > before


def stripe(key):
    """Which of the locks is that of a key."""
    first, second = hashlib.sha256(key.encode()).digest()[:2]
    return first * 2 + second // 128


def test_one_that_takes_locks_backwards_starves_nobody(server, data):
    """It wants what the other has just locked, again and again, more often than the other tries; InnoDB ends the one that
    has written less, each time."""
    if data.kind != "mariadb":
        return  # PostgreSQL ends the one that looks first, after a second
    lock = "SELECT n FROM larder_lock WHERE n = {} {}"
    keys = {stripe(f"k{i}"): f"k{i}" for i in range(36)}
    first, *others = sorted(keys, reverse=True)
    replies = []

    def write():
        with server.connect() as c:
            replies.append(c.call("MSET", *[word for key in keys.values() for word in (key, "v")]).value)

    with data.session() as session:
        session("CREATE TABLE heavy (n INT PRIMARY KEY); START TRANSACTION; INSERT INTO heavy SELECT seq FROM seq_1_to_999")
        session(lock.format(-1, "LOCK IN SHARE MODE"))  # as everybody who writes
        session(lock.format(first, "FOR UPDATE"))
        writer = threading.Thread(target=write)
        writer.start()
        for n in others:
            time.sleep(0.12)  # InnoDB tells what it knew at most 0.1 s ago
            waiting = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
            wait.until(lambda: replies or session(waiting) == ["1"], "the writer waits")
            session(lock.format(n, "FOR UPDATE"))
        session("COMMIT")
    writer.join(60)
    assert replies == [b"OK"]
    with server.connect() as c:
        assert conflicts(c) > 0


def in_the_way(data, first, second):
    """What an application does that locks one row, and a while later another."""
    lock = "SELECT 1 FROM larder_key WHERE db = (SELECT number FROM larder_db WHERE db = 0) AND {} = '{}' FOR UPDATE;"
    if data.kind == "postgres":
        column, pause = "key", "SELECT pg_sleep(1);"
        begin = "SET deadlock_timeout = '30s'; BEGIN;"
    else:
        column, pause = "`key`", "SELECT SLEEP(1);"
        begin = "CREATE TABLE heavy (n INT PRIMARY KEY); START TRANSACTION; INSERT INTO heavy SELECT seq FROM seq_1_to_999;"
    data.query(begin + lock.format(column, first) + pause + lock.format(column, second) + "COMMIT;")


def test_an_application_that_locks_rows_in_another_order(server, data):
    """SORT has the list and comes to the weights later; the application has a weight and wants the list."""
    with server.connect() as c:
        c("RPUSH", "list", "a", "b", "c")
        c("MSET", "w_a", 3, "w_b", 2, "w_c", 1)
        for _ in range(5):
            application = threading.Thread(target=in_the_way, args=(data, "w_b", "list"))
            application.start()
            time.sleep(0.4)
            assert c("SORT", "list", "BY", "w_*", "STORE", "sorted") == 3
            application.join(60)
            assert c("LRANGE", "sorted", 0, -1) == [b"c", b"b", b"a"]
            if conflicts(c):
                return
            if data.kind == "mariadb":
                data.query("DROP TABLE heavy")
        raise AssertionError("nobody was in the way")


def test_servers_that_come_to_keys_in_different_orders(fleet, data):
    """Weights of SORT, keys of other databases, new keys: nobody sees that the servers met."""
    several = [fleet.larder(data=data) for _ in range(2)]
    with several[0].connect() as c:
        for i in range(4):
            c("RPUSH", f"l{i}", *"abcdef")
    done, failures, until = [0] * 8, [], time.monotonic() + 2

    def client(number):
        order = random.Random(number)
        with several[number % 2].connect() as c:
            while time.monotonic() < until and not failures:
                commands = []
                for db in order.sample(range(3), 3):
                    commands += [("SELECT", db), ("INCR", f"n{order.randrange(3)}")]
                done[number] += 3
                commands += [("SELECT", 0), ("SORT", f"l{order.randrange(4)}", "BY", f"w{order.randrange(9)}_*",
                                             "STORE", f"s{order.randrange(4)}")]
                commands += [("INCR", f"w{order.randrange(9)}_{order.choice('abcdef')}"),
                             ("SET", f"new{order.randrange(10**6)}", "v", "EX", 100)]
                failures.extend(r for r in c.pipeline(commands) if r.is_error)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(len(done))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failures
    with several[0].connect() as c:
        total = 0
        for db in range(3):
            c("SELECT", db)
            total += sum(int(c("GET", f"n{i}") or 0) for i in range(3))
    assert total == sum(done) > 0
    several[0].check()


def unplant(data, table="larder_key"):
    for name in ("fail",) if data.kind == "postgres" else ("fail_INSERT", "fail_UPDATE"):
        data.query(f"DROP TRIGGER {name}" + (f" ON {table}" if data.kind == "postgres" else ""))


def test_others_go_on_while_a_transaction_waits_for_its_next_try(fleet, data):
    """Clients of other workers are served, may ask the worker to stand still, and may kill the client that waits."""
    server = fleet.larder("--workers", "2", data=data)
    with server.connect() as control, server.connect() as waiting, server.connect() as beside:
        beside("SET", "other", "v")
        number = waiting("CLIENT", "ID")
        before = conflicts(control)
        plant(data, DEADLOCK[data.kind], 1000)
        waiting.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nnew\r\n*1\r\n$4\r\nPING\r\n")
        wait.until(lambda: conflicts(control) > before, "it has been tried")
        assert control("CONFIG", "SET", "maxclients", 500) == b"OK"
        assert control("CLIENT", "KILL", "ID", number) in (0, 1)
        assert beside("GET", "other") == b"v"
        unplant(data)
        assert control("EXISTS", "k") == 0
        assert beside("SET", "k", "newer") == b"OK" and control("GET", "k") == b"newer"


def test_it_ends_while_a_transaction_waits_for_its_next_try(fleet, data):
    """What was sent before is answered."""
    server = fleet.larder("--workers", "1", data=data)
    with server.connect() as c:
        plant(data, DEADLOCK[data.kind], 1000)
        c.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
        column = "last_value" if data.kind == "postgres" else "next_not_cached_value"
        wait.until(lambda: int(data.query(f"SELECT {column} FROM planted")[0][0]) > 1, "it has been tried")
        server.stop()
        reply = c.read()
        assert reply.is_error and reply.value.startswith(b"TRYAGAIN ")
