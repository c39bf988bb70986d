"""Sets of every size around the borders of their forms (in memory, in the tables): what they answer is what a model
says, before and after a restart; random members are any of them, scans miss nothing, and `larder check` finds nothing
wrong with the tables."""

import os
import random
import threading

import pytest

LONG = os.environ.get("LARDER_LONG") == "1"
SIZES = [1, 128, 129, 1024, 1025, 4096, 4097, 10_000] + ([2, 127, 1023, 4095, 100_000] if LONG else [])
QUICK = ["--durability", "everysec"]
SETTINGS = {"default": QUICK, "uncached": [*QUICK, "--cache-memory", "0", "--page-cache", "256kb"]}


def names(size, prefix=b"member:"):
    return [prefix + b"%d" % i for i in range(size)]


def add(connection, key, members, at_once=500):
    for i in range(0, len(members), at_once):
        connection("SADD", key, *members[i : i + at_once])


def members(connection, key):
    found = connection("SMEMBERS", key)
    result = set(found)
    assert len(found) == len(result) == connection("SCARD", key)
    return result


def pages(connection, key, *options, limit=1_000_000):
    cursor = b"0"
    for _ in range(limit):
        cursor, page = connection("SSCAN", key, cursor, *options)
        yield page
        if cursor == b"0":
            return
    raise AssertionError(f"no end after {limit} pages")


def scan(connection, key, *options):
    return [member for page in pages(connection, key, *options) for member in page]


@pytest.fixture(params=SETTINGS)
def server(request, fleet):
    larder = fleet.larder(*SETTINGS[request.param])
    yield larder
    larder.stop()
    larder.check()


@pytest.mark.parametrize("size", SIZES)
def test_members_come_and_go(size, server):
    r = random.Random(size)
    with server.connect() as c:
        all_names = names(size)
        r.shuffle(all_names)
        add(c, "s", all_names)
        model = set(all_names)
        assert members(c, "s") == model
        assert c("SADD", "s", *all_names[:10]) == 0
        asked = r.sample(all_names, min(size, 50)) + [b"missing", b""]
        assert c("SMISMEMBER", "s", *asked) == [int(m in model) for m in asked]
        assert [c("SISMEMBER", "s", m) for m in asked] == [int(m in model) for m in asked]
        assert sorted(scan(c, "s")) == sorted(scan(c, "s", "COUNT", 1000)) == sorted(model)
        assert sorted(scan(c, "s", "COUNT", 100, "MATCH", "*7")) == sorted(m for m in model if m.endswith(b"7"))

        gone = r.sample(all_names, size // 3)
        for i in range(0, len(gone), 100):
            part = gone[i : i + 100]
            assert c("SREM", "s", *part, b"missing", part[0]) == len(part)
        model -= set(gone)
        assert members(c, "s") == model
        # Several in a pipeline, each behind the other's back.
        more = r.sample(sorted(model), min(len(model) - 1, 200)) if model else []
        assert [x.value for x in c.pipeline([["SREM", "s", m] for m in more])] == [b"1"] * len(more)
        model -= set(more)
        assert members(c, "s") == model
        add(c, "s", gone + more)
        model |= set(gone) | set(more)
    server.stop()
    server.start()
    with server.connect() as c:
        assert members(c, "s") == model
        assert sorted(scan(c, "s")) == sorted(model)
        for m in sorted(model)[: size - 1]:
            if r.random() < 0.02:
                assert c("SMOVE", "s", "t", m) == 1
                model.remove(m)
        assert members(c, "s") == model
        assert c("DEL", "s") == 1 and c("SCARD", "s") == 0


@pytest.mark.parametrize("size", SIZES)
def test_random_members(size, server):
    r = random.Random(size)
    with server.connect() as c:
        add(c, "s", names(size))
        model = set(names(size))
        for count in {0, 1, 2, size // 20, size // 8 - 1, size // 8, size // 2, size - 1, size, size + 1} - {-1}:
            got = c("SRANDMEMBER", "s", count)
            assert len(got) == len(set(got)) == min(count, size) and set(got) <= model
        got = c("SRANDMEMBER", "s", -min(3 * size, 3000))
        assert len(got) == min(3 * size, 3000) and set(got) <= model
        assert c("SRANDMEMBER", "s") in model
        assert members(c, "s") == model

        c("EXPIREAT", "s", 33177117420)
        for _ in range(6):
            if len(model) < 2:
                break
            left = len(model)
            count = r.choice([1, 2, left // 50, left // 10, left // 2, left // 2 + 1, left * 3 // 4, left - 1])
            got = c("SPOP", "s", count)
            assert len(got) == len(set(got)) == count and set(got) <= model
            model -= set(got)
            assert members(c, "s") == model
            assert sorted(scan(c, "s")) == sorted(model)
            assert c("EXPIRETIME", "s") == 33177117420
            back = r.sample(got, len(got) // 2)
            add(c, "s", back)
            model |= set(back)
            popped = c("SPOP", "s")
            assert popped in model
            model.remove(popped)
            assert members(c, "s") == model
        if model:
            assert set(c("SPOP", "s", len(model) + r.choice([0, 1]))) == model
        assert c("EXISTS", "s") == 0


@pytest.mark.parametrize("size", [127, 1024, 4097] + ([10_000, 100_000] if LONG else []))
def test_several_sets(size, server):
    r = random.Random(size)
    with server.connect() as c:
        model = {}
        for key, share in [("a", 1), ("b", 0.9), ("c", 0.5), ("d", 0.01), ("e", 0)]:
            some = [m for m in names(size) if r.random() < share]
            some += names(int(size * (1 - share) / 2), prefix=key.encode())
            add(c, key, some)
            model[key] = set(some)
        choices = ["a", "b", "ab", "ba", "ac", "ca", "ad", "da", "de", "abc", "cba", "abcd", "dcba", "abcde", "edcba", "aa", "dda"]
        for keys in choices:
            sets = [model[k] for k in keys]
            expected = {
                "INTER": set.intersection(*sets),
                "UNION": set.union(*sets),
                "DIFF": sets[0].difference(*sets[1:]),
            }
            for what, result in expected.items():
                got = c("S" + what, *keys)
                assert len(got) == len(result) and set(got) == result, (what, keys)
                assert c(f"S{what}STORE", "into", *keys) == len(result)
                assert members(c, "into") == result
            cardinality = len(expected["INTER"])
            assert c("SINTERCARD", len(keys), *keys) == cardinality
            for limit in (1, 511, 512, 513, size):
                assert c("SINTERCARD", len(keys), *keys, "LIMIT", limit) == min(limit, cardinality)
        # Into one of the sources.
        for what, into, keys in [("UNION", "d", "ad"), ("INTER", "b", "bc"), ("DIFF", "a", "ac"), ("DIFF", "c", "cc")]:
            sets = [model[k] for k in keys]
            result = {"UNION": sets[0] | sets[1], "INTER": sets[0] & sets[1], "DIFF": sets[0] - sets[1]}[what]
            assert c(f"S{what}STORE", into, *keys) == len(result)
            model[into] = result
            assert members(c, into) == result
        for key, expected in model.items():
            assert members(c, key) == expected


def test_many_small_sets(client):
    model = {}
    r = random.Random(1)
    for i in range(300):
        model[b"k%d" % i] = set(r.sample(names(2000), 20))
    client.pipeline([["SADD", key, *some] for key, some in model.items()])
    got = client("SUNION", *model)
    assert len(got) == len(set(got)) and set(got) == set.union(*model.values())
    add(client, "big", names(2000))
    assert set(client("SDIFF", "big", *model)) == set(names(2000)) - set.union(*model.values())
    assert client("SUNIONSTORE", "u", *model, "big") == 2000


@pytest.mark.parametrize("take", ["some", "most"])
@pytest.mark.parametrize("size", [100, 1000, 3000] + ([10_000] if LONG else []))
def test_a_scan_misses_nothing_that_stays(size, take, server):
    """Members that are there from the first page to the last come, whatever SADD, SREM and SPOP do in between."""
    r = random.Random(size)
    with server.connect() as c:
        for count in (10, 97):
            c("DEL", "s")
            add(c, "s", names(size))
            there = set(names(size))
            seen = set()
            fresh = 0
            for number, page in enumerate(pages(c, "s", "COUNT", count)):
                seen.update(page)
                if number % 3 == 0:
                    add(c, "s", [b"new:%d" % i for i in range(fresh, fresh + 3)])
                    fresh += 3
                if number % 4 == 1 and there:
                    gone = r.sample(sorted(there), min(len(there), 2))
                    c("SREM", "s", *gone)
                    there -= set(gone)
                if number == 5:
                    share = 0.1 if take == "some" else 0.6
                    there -= set(c("SPOP", "s", int(c("SCARD", "s") * share)))
            assert there <= seen, f"{len(there - seen)} of {len(there)} missed"


def test_one_page_for_all_though_numbers_are_missing(client):
    members = names(5000)
    client("SADD", "holes", *members)
    client("SREM", "holes", *members[:10], *members[2000:3000])
    cursor, found = client("SSCAN", "holes", 0, "COUNT", 100_000)
    assert cursor == b"0" and sorted(found) == sorted(members[10:2000] + members[3000:])


def test_a_scan_beside_writers(larder, client):
    """The same with writers that do not wait for the pages."""
    stay = names(20_000, b"stay:")
    add(client, "s", stay)
    stop = threading.Event()
    problems = []

    def write(number):
        r = random.Random(number)
        try:
            with larder.connect() as c:
                mine = []
                while not stop.is_set():
                    fresh = [b"w%d:%d" % (number, r.randrange(10**9)) for _ in range(20)]
                    c("SADD", "s", *fresh)
                    mine += fresh
                    r.shuffle(mine)
                    c("SREM", "s", *mine[:15])
                    del mine[:15]
        except Exception as e:  # pylint: disable=broad-except
            problems.append(e)

    writers = [threading.Thread(target=write, args=(i,)) for i in range(3)]
    for writer in writers:
        writer.start()
    try:
        for count in (50, 500, 5000):
            assert set(stay) <= set(scan(client, "s", "COUNT", count))
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not problems
    larder.stop()
    larder.check()


def test_random_members_are_any_of_them(client):
    """Each as likely as the others, in memory and in the tables, one by one and several at once."""
    for size, prefix in ((10, b"a"), (2000, b"b")):
        key = b"s%d" % size
        add(client, key, names(size, prefix))
        for count, times in ((-10_000, 4), (size // 2, 40), (size // 20 or 1, 400)):
            hits = dict.fromkeys(names(size, prefix), 0)
            for _ in range(times):
                for member in client("SRANDMEMBER", key, count):
                    hits[member] += 1
            expected = sum(hits.values()) / size
            # Four standard deviations of a count, and room for the largest of so many.
            spread = 4 * expected**0.5 + 3 * (size > 100) * expected**0.5
            assert all(abs(n - expected) <= spread + 5 for n in hits.values()), (size, count, min(hits.values()), max(hits.values()))


def test_popping_is_fair(client):
    """Of ten members, each is as likely to be left behind as the others."""
    left = dict.fromkeys(names(10), 0)
    round_ = [["SADD", "s", *names(10)], ["SPOP", "s", 9], ["SPOP", "s"]]
    for reply in client.pipeline(round_ * 2000)[2::3]:
        left[reply.value] += 1
    assert all(140 <= n <= 260 for n in left.values()), left


def test_members_of_a_large_set_that_came_some_other_way(fleet):
    """The server knows which names a set that outgrew memory can have; one that another process, COPY, a popped and
    added member, or a run before this one has brought is found all the same."""
    larder = fleet.larder(*QUICK)
    with larder.connect() as c:
        add(c, "set", names(6000))
        assert c("SADD", "set", "mine", "member:5", "other") == 2
        c("SAVE")
        larder.store.query(
            "INSERT INTO larder_set (id, member, ord) SELECT id, ?, size FROM larder_key WHERE key = ?", b"theirs", b"set"
        )
        larder.store.query("UPDATE larder_key SET size = size + 1, version = version + 1 WHERE key = ?", b"set")
        assert c("SADD", "set", "theirs", "mine", "new") == 1
        assert c("SCARD", "set") == 6004
        popped = c("SPOP", "set", 10)
        assert c("SADD", "set", *popped, *popped) == 10
        assert c("COPY", "set", "copy") == 1
        assert c("SADD", "copy", "theirs", "member:17", *popped) == 0
        assert c("SMISMEMBER", "copy", "new", "mine", "none") == [1, 1, 0]
    larder.stop()
    larder.check()
    larder.start()
    with larder.connect() as c:
        assert c("SADD", "set", "theirs", "member:17", *popped) == 0
        assert c("SCARD", "set") == 6004
