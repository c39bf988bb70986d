"""SCAN and KEYS: a key that is there during a whole iteration is returned, whatever is written meanwhile, and an
iteration ends however fast keys are added."""

import random
import threading

import pytest

FAR = 99_999_999_999_000  # milliseconds since the epoch
LONG = 70_000  # bytes of a value that does not fit in its key's row


def pages(connection, count=None, cursor=b"0", limit=100_000):
    """The pages of one iteration, each when it has been asked for."""
    options = [] if count is None else ["COUNT", count]
    for _ in range(limit):
        cursor, keys = connection("SCAN", cursor, *options)
        assert 0 <= int(cursor) < 2**53, "a cursor that some client cannot hold"
        yield keys
        if cursor == b"0":
            return
    raise AssertionError(f"no end after {limit} pages")


def scan(connection, *options, limit=100_000):
    """All keys of one iteration, in the order in which they came."""
    found = []
    cursor = b"0"
    for _ in range(limit):
        cursor, keys = connection("SCAN", cursor, *options)
        found += keys
        if cursor == b"0":
            return found
    raise AssertionError(f"no end after {limit} pages")


def fill(connection, keys, value=b"v"):
    """A scan may see a row twice that comes into the table while it goes on: with SAVE they are there."""
    connection.pipeline([["SET", key, value] for key in keys])
    connection("SAVE")


def names(count, prefix=b"key:"):
    return [prefix + b"%d" % i for i in range(count)]


# --- nothing is written


@pytest.mark.parametrize("count", [None, 1, 2, 3, 9, 10, 11, 99, 499, 500, 501, 100_000, 2**31, 2**63 - 1])
def test_each_key_comes_once(client, count):
    keys = names(500)
    fill(client, keys)
    parts = list(pages(client, count))
    assert sorted(key for part in parts for key in part) == sorted(keys)
    assert max(map(len, parts)) <= (count or 10), "COUNT is how many keys a page should have"
    assert len(parts) <= 500 // (count or 10) + 1


def test_an_empty_database(client):
    assert list(pages(client)) == [[]]
    assert client("KEYS", "*") == []


def test_names_are_bytes(client):
    keys = [b"", b"\0", b"\0\0", b"a\0b", b"\r\n", b"\xff" * 3, bytes(range(256)), b"x" * 10_000]
    fill(client, keys)
    assert sorted(scan(client, "COUNT", 3)) == sorted(keys)
    assert sorted(client("KEYS", "*")) == sorted(keys)
    assert scan(client, "MATCH", b"a\0*") == client("KEYS", b"a\0*") == [b"a\0b"]


def test_match_and_type_filter_what_comes(client):
    fill(client, names(300, b"user:") + names(300, b"item:"))
    for count in (1, 10, 1000):
        assert sorted(scan(client, "MATCH", "user:*", "COUNT", count)) == sorted(names(300, b"user:"))
        assert sorted(scan(client, "MATCH", "*:7", "COUNT", count)) == [b"item:7", b"user:7"]
        assert scan(client, "MATCH", "item:299", "COUNT", count) == [b"item:299"]
        assert len(scan(client, "TYPE", "string", "COUNT", count)) == 600
        assert scan(client, "TYPE", "hash", "COUNT", count) == []
        assert len(scan(client, "TYPE", "STRING", "MATCH", "*1", "COUNT", count)) == 60
        assert scan(client, "TYPE", "unheard-of", "COUNT", count) == []


def test_patterns_match_as_in_redis(larder, oracle):
    r = random.Random(7)
    keys = list({bytes(r.choices(b"ab[]^-*?\\\xff\0", k=r.randint(0, 5))) for _ in range(600)})
    patterns = [bytes(r.choices(b"ab[]^-*?\\\xff\0", k=r.randint(0, 6))) for _ in range(1500)]
    with larder.connect() as ours, oracle.connect() as theirs:
        theirs("FLUSHALL")
        for connection in (ours, theirs):
            fill(connection, keys)
        mine = ours.pipeline([["KEYS", p] for p in patterns])
        right = theirs.pipeline([["KEYS", p] for p in patterns])
        for pattern, a, b in zip(patterns, mine, right):
            assert sorted(a.plain()) == sorted(b.plain()), f"KEYS {pattern!r}"
        for pattern, b in zip(patterns[:100], right):
            assert sorted(scan(ours, "MATCH", pattern, "COUNT", 200)) == sorted(b.plain()), f"SCAN MATCH {pattern!r}"
        theirs("FLUSHALL")


# --- one batch sees itself


def test_a_pipeline_sees_what_it_wrote(client):
    fill(client, names(20))
    replies = client.pipeline(
        [
            ["SET", "new", "1"],
            ["DEL", "key:3"],
            ["RENAME", "key:4", "renamed"],
            ["PEXPIREAT", "key:5", 1],
            ["KEYS", "*"],
            ["SCAN", 0, "COUNT", 1000],
            ["DBSIZE"],
            ["FLUSHDB"],
            ["KEYS", "*"],
            ["SCAN", 0, "COUNT", 1000],
            ["SET", "after", "1"],
            ["KEYS", "*"],
            ["SCAN", 0],
            ["DBSIZE"],
        ]
    )
    values = [reply.plain() for reply in replies]
    expected = sorted((set(names(20)) - {b"key:3", b"key:4", b"key:5"}) | {b"new", b"renamed"})
    assert sorted(values[4]) == expected
    assert sorted(values[5][1]) == expected and values[5][0] == b"0"
    assert values[6] == len(expected)
    assert values[8] == values[9][1] == []
    assert values[11] == values[12][1] == [b"after"]
    assert values[13] == 1


# --- others write meanwhile


class Churn:
    """Random writes that leave some keys in place: `stable` are there at every moment, whatever happens to their
    values; `fleeting` come and go."""

    def __init__(self, connection, seed, stable):
        self.connection = connection
        self.random = random.Random(seed)
        self.stable = stable
        self.fleeting = names(400, b"fleeting:")
        self.ever = set(stable)
        self.writes = [
            lambda s, f, g: ["SET", f, "v"],
            lambda s, f, g: ["SET", f, "v", "PX", 1],
            lambda s, f, g: ["SET", f, "v", "PXAT", FAR],
            lambda s, f, g: ["DEL", f, g],
            lambda s, f, g: ["PEXPIREAT", f, 1],
            lambda s, f, g: ["RENAME", f, g],
            lambda s, f, g: ["COPY", s, f, "REPLACE"],
            lambda s, f, g: ["SETRANGE", f, LONG, "x"],
            lambda s, f, g: ["RENAME", f, s],
            lambda s, f, g: ["COPY", f, s, "REPLACE"],
            lambda s, f, g: ["PERSIST", s],
            lambda s, f, g: ["SET", s, "w"],
            lambda s, f, g: ["SET", s, "w", "PXAT", FAR],
            lambda s, f, g: ["PEXPIREAT", s, FAR],
            lambda s, f, g: ["APPEND", s, "x"],
            lambda s, f, g: ["SETRANGE", s, LONG, "x"],
            lambda s, f, g: ["MSET", s, "1", f, "2"],
        ]

    def write(self, count):
        commands = []
        for _ in range(count):
            r = self.random
            s, f, g = r.choice(self.stable), r.choice(self.fleeting), r.choice(self.fleeting)
            command = r.choice(self.writes)(s, f, g)
            if command[0] in ("RENAME", "COPY") and command[2] == s:
                # What takes a stable key's place must not end soon itself.
                commands.append(["SET", command[1], "from"])
            commands.append(command)
            self.ever.update((f, g))
        self.connection.pipeline(commands)

    def flood(self, count):
        fresh = names(count, b"flood:%d:" % self.random.getrandbits(60))
        fill(self.connection, fresh)
        self.ever.update(fresh)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 7, 50])
def test_the_guarantee(fleet, seed, count):
    options = [["--cache-memory", "1mb"], ["--sweep-interval", "1ms", "--sweep-pause", "0ms"], ["--sweep", "no"]][seed % 3]
    larder = fleet.larder("--durability", "off", *options)
    with larder.connect() as reader, larder.connect() as writer:
        stable = names(200)
        random.Random(seed).shuffle(stable)
        fill(writer, stable)
        churn = Churn(writer, seed, stable)
        churn.write(300)
        for _ in range(3):
            seen = set()
            for part in pages(reader, count):
                seen.update(part)
                churn.write(churn.random.randint(1, 20))
            missing = set(stable) - seen
            assert not missing, f"not returned though there all the time: {sorted(missing)[:10]}"
            assert seen <= churn.ever
        reader("DEBUG", "SLEEP", 0.01)  # the last of what ends soon has ended
        assert sorted(scan(reader, "COUNT", 1000)) == sorted(reader("KEYS", "*"))


def test_keys_deleted_before_are_not_returned(client):
    keys = names(1000)
    fill(client, keys)
    client("DEL", *keys[::2])
    client.pipeline([["PEXPIREAT", key, 1] for key in keys[1::4]])
    assert sorted(scan(client)) == sorted(keys[3::4]) == sorted(client("KEYS", "*"))


def test_expired_keys_are_not_returned_though_nobody_swept(fleet):
    larder = fleet.larder("--sweep", "no")
    with larder.connect() as client:
        fill(client, names(50))
        client.pipeline([["PEXPIRE", key, 1] for key in names(50)[:25]])
        client("DEBUG", "SLEEP", 0.01)
        assert sorted(scan(client)) == sorted(names(50)[25:]) == sorted(client("KEYS", "*"))
        assert client("DBSIZE") == 25


def test_it_ends_though_keys_are_added_faster_than_read(client):
    fill(client, names(1000))
    churn = Churn(client, 1, names(1000))
    asked = 0
    seen = set()
    for part in pages(client, 10, limit=1000):
        seen.update(part)
        asked += 1
        churn.flood(50)
    assert set(names(1000)) <= seen
    assert asked <= 1000 // 10 + 1


def test_it_ends_beside_a_busy_writer(larder):
    with larder.connect() as reader, larder.connect() as writer:
        stable = names(2000)
        fill(writer, stable)
        churn = Churn(writer, 2, stable)
        over = threading.Event()

        def write():
            while not over.is_set():
                churn.write(20)
                churn.flood(200)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for count in (5, 100):
                seen = {key for part in pages(reader, count, limit=20_000) for key in part}
                assert set(stable) <= seen
        finally:
            over.set()
            thread.join()


def test_many_iterations_at_once(larder):
    keys = names(300)
    with larder.connect() as client:
        fill(client, keys)
        iterations = [(pages(client, count), set()) for count in (1, 2, 3, 10, 40, 299)]
        while iterations:
            for entry in list(iterations):
                iteration, seen = entry
                part = next(iteration, None)
                if part is None:
                    assert seen == set(keys)
                    iterations.remove(entry)
                else:
                    seen.update(part)


def test_a_cursor_outlives_the_server(larder):
    keys = names(500)
    with larder.connect() as client:
        fill(client, keys)
        cursor, first = client("SCAN", 0, "COUNT", 100)
    larder.stop()
    larder.start()
    with larder.connect() as client:
        rest = [key for part in pages(client, 100, cursor=cursor) for key in part]
    assert sorted(first + rest) == sorted(keys)


def test_another_database_in_between(client):
    """Rows of all databases are walked in one order: none of them hides another's, and pages may be empty."""
    fill(client, names(10))
    client("SELECT", 1)
    fill(client, names(5000, b"other:"))
    client("SELECT", 0)
    assert sorted(scan(client)) == sorted(names(10))
    client("SELECT", 1)
    assert sorted(scan(client, "COUNT", 100)) == sorted(names(5000, b"other:"))
    client("SWAPDB", 0, 1)
    assert sorted(scan(client)) == sorted(names(10))
    client("FLUSHDB")
    assert scan(client) == client("KEYS", "*") == []


# --- KEYS


@pytest.mark.parametrize("seed", range(3))
def test_keys_equals_the_model(client, seed):
    r = random.Random(seed)
    model = {}
    alphabet = [b"%s%d" % (p, i) for p in (b"a", b"ab", b"b:", b"") for i in range(40)]
    for _ in range(40):
        commands = []
        for _ in range(r.randint(1, 60)):
            key, other = r.choice(alphabet), r.choice(alphabet)
            kind = r.randrange(6)
            if kind < 2:
                commands.append(["SET", key, "v"])
                model[key] = True
            elif kind == 2:
                commands.append(["DEL", key])
                model.pop(key, None)
            elif kind == 3:
                commands.append(["PEXPIREAT", key, r.choice([1, FAR])])
                if commands[-1][2] == 1:
                    model.pop(key, None)
            elif kind == 4:
                commands.append(["RENAME", key, other])
                if key in model:
                    del model[key]
                    model[other] = True
            else:
                commands.append(["COPY", key, other, "REPLACE"])
                if key in model:
                    model[other] = True
        client.pipeline(commands)
        assert sorted(client("KEYS", "*")) == sorted(model)
        for prefix in (b"a", b"ab", b"b", b"b:1", b"nothing"):
            assert sorted(client("KEYS", prefix + b"*")) == sorted(k for k in model if k.startswith(prefix))
        assert set(scan(client, "COUNT", r.randint(1, 30))) == set(model)  # twice is allowed
        assert client("DBSIZE") == len(model)
        anyone = client("RANDOMKEY")
        assert anyone in model if model else anyone is None
