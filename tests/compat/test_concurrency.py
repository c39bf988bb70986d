"""Many connections at once: every command is atomic, in some order, and seen by all as soon as it is answered."""

import threading

import pytest

CLIENTS = 8


@pytest.fixture(params=[[], ["--cache-memory", "0"]], ids=["cached", "uncached"])
def server(request, subjects):
    server = subjects(*request.param)
    with server.connect() as c:
        c("FLUSHALL")
    return server


def together(server, work, count=CLIENTS):
    """Runs work(connection, number) on so many connections at once; their results in order."""
    results = [None] * count
    start = threading.Barrier(count)

    def run(number):
        try:
            with server.connect() as connection:
                start.wait()
                results[number] = work(connection, number)
        except BaseException as e:
            results[number] = e

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_increments_are_all_counted(server):
    def work(c, number):
        seen = [c("INCR", "counter") for _ in range(100)]
        seen += [r.plain() for r in c.pipeline([["INCR", "counter"]] * 300)]
        return seen

    seen = together(server, work)
    assert sorted(value for part in seen for value in part) == list(range(1, 400 * CLIENTS + 1))
    assert all(part == sorted(part) for part in seen)


def test_what_mset_writes_is_seen_whole(server):
    keys = [f"group:{i}" for i in range(10)]

    def work(c, number):
        if number % 2:
            for i in range(150):
                c("MSET", *(part for key in keys for part in (key, f"{number}-{i}")))
            return []
        return [c("MGET", *keys) for _ in range(300)]

    for part in together(server, work):
        assert all(len(set(values)) == 1 for values in part)


def test_appends_do_not_tear(server):
    def work(c, number):
        c.pipeline([["APPEND", "text", f"<{number}:{i}>"] for i in range(200)])

    together(server, work)
    with server.connect() as c:
        pieces = c("GET", "text").decode()[1:-1].split("><")
    assert sorted(pieces) == sorted(f"{n}:{i}" for n in range(CLIENTS) for i in range(200))
    for n in range(CLIENTS):
        assert [p for p in pieces if p.startswith(f"{n}:")] == [f"{n}:{i}" for i in range(200)]


@pytest.mark.parametrize("command", [["SETNX", "{}", "v"], ["SET", "{}", "v", "NX", "GET"], ["MSETNX", "{}", "v", "x{}", "v"]])
def test_only_one_is_first(server, command):
    first = {"SETNX": 1, "SET": None, "MSETNX": 1}[command[0]]

    def work(c, number):
        names = [f"key:{i}" for i in range(100)]
        replies = c.pipeline([[word.format(name) for word in command] for name in names])
        return {name for name, reply in zip(names, replies) if reply.plain() == first}

    won = together(server, work)
    assert sum(map(len, won)) == 100 and len(set.union(*won)) == 100


@pytest.mark.parametrize("command", [["GETDEL", "{}"], ["RENAME", "{}", "taken:{}"], ["DEL", "{}"]])
def test_each_is_taken_once(server, command):
    names = [f"key:{i}" for i in range(200)]
    with server.connect() as c:
        c("MSET", *(part for name in names for part in (name, "v")))

    def work(c, number):
        replies = c.pipeline([[word.format(name) for word in command] for name in names])
        return {name for name, reply in zip(names, replies) if reply.plain() in (b"v", b"OK", 1)}

    taken = together(server, work)
    assert sum(map(len, taken)) == 200 and len(set.union(*taken)) == 200


def test_what_was_answered_is_seen_by_the_others(server):
    """One writes and says so; whoever hears it finds it, or something later."""
    said = [-1]

    def work(c, number):
        if number == 0:
            for i in range(500):
                c("SET", "k", i)
                said[0] = i
            return []
        found = []
        while said[0] < 499:
            least = said[0]
            found.append((least, int(c("GET", "k") or -1)))
        return found

    for part in together(server, work, 4):
        assert all(value >= least for least, value in part)
        values = [value for _, value in part]
        assert values == sorted(values)


def test_a_pipeline_sees_its_own_writes(server):
    def work(c, number):
        for i in range(30):
            replies = c.pipeline(
                [["SET", "shared", f"{number}"], ["SET", f"own:{number}", i], ["INCR", f"own:{number}"],
                 ["GET", f"own:{number}"], ["DEL", f"own:{number}"], ["EXISTS", f"own:{number}"]]
            )  # fmt: skip
            assert [r.plain() for r in replies] == [b"OK", b"OK", i + 1, b"%d" % (i + 1), 1, 0]

    together(server, work)
