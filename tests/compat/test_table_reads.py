"""When the tables are asked: never while memory knows, at once when another process has written, and for many keys together."""

import pytest

pytestmark = pytest.mark.sqlite

KEYS = 400


def counts(client):
    info = dict(line.split(":", 1) for line in client("INFO", "larder").decode().splitlines() if ":" in line)
    return {name: int(info[name]) for name in ("table_reads", "key_lookups", "external_changes")}


def more(client, before):
    return {name: n - before[name] for name, n in counts(client).items()}


def fill(client):
    client.pipeline([["SET", f"key:{i}", f"value {i}"] for i in range(KEYS)])
    client("SAVE")


def test_reads_that_memory_answers_ask_no_tables(fleet):
    with fleet.larder().connect() as client:
        fill(client)
        client("GET", "key:0")
        before = counts(client)
        for i in range(KEYS):
            assert client("GET", f"key:{i}") == b"value %d" % i
            assert client("EXISTS", f"key:{i}") == 1
            assert client("TTL", f"key:{i}") == -1
        found = more(client, before)
        assert found["key_lookups"] == 0
        assert found["table_reads"] < KEYS // 10, "the sweeper and INFO look now and then, GET does not"


def test_writes_of_rows_that_memory_has_ask_no_tables(fleet):
    """While the thread brings rows into the tables, a batch may have to look whether that was another process."""
    larder = fleet.larder("--durability", "everysec")
    with larder.connect() as client:
        fill(client)
        before = counts(client)
        client.pipeline([["SET", f"key:{i}", f"again {i}"] for i in range(KEYS)])
        client.pipeline([["INCR", f"number:{i % 7}"] for i in range(KEYS)])
        client.pipeline([["EXPIRE", f"key:{i}", "1000"] for i in range(KEYS)])
        assert more(client, before)["key_lookups"] <= 1, "of the numbers, which were nowhere"


def test_what_another_process_has_committed_is_seen_by_the_next_command(fleet):
    """Between commands that ask no tables: with each kind of command, and in each database of the pipeline."""
    larder = fleet.larder()
    with larder.connect() as client, larder.connect() as other:
        fill(client)
        for i in range(30):
            key = f"key:{i}"
            assert client("GET", key) == b"value %d" % i
            before = counts(other)
            client.pipeline([["GET", key]] * 5)
            larder.store.query("UPDATE larder_key SET value = ?, version = version + 1 WHERE key = ?", b"by SQL", key.encode())
            if i % 3 == 0:
                assert client("GET", key) == b"by SQL"
            elif i % 3 == 1:
                assert client("SET", key, "mine", "GET") == b"by SQL"
            else:
                replies = client.pipeline([["STRLEN", key], ["GETSET", key, "x"], ["GET", key]])
                assert [r.value for r in replies] == [b"6", b"by SQL", b"x"]
            assert more(other, before)["external_changes"] >= 1


def test_what_another_process_has_committed_is_seen_while_the_server_writes(fleet):
    """The thread brings rows into the tables all the time, and its commits are not taken for another's, nor the other way."""
    larder = fleet.larder("--durability", "everysec", "--apply-lag", "10ms")
    with larder.connect() as client, larder.connect() as busy:
        fill(client)
        before = counts(client)
        for i in range(20):
            busy.pipeline([["SET", f"busy:{n}", f"{i}"] for n in range(200)])
            assert client("GET", "key:1") == b"value 1"
        assert more(client, before)["external_changes"] == 0
        for i in range(20):
            busy.pipeline([["SET", f"busy:{n}", f"{i}"] for n in range(200)])
            assert client("GET", "key:1") is not None
            larder.store.query("UPDATE larder_key SET value = ?, version = version + 1 WHERE key = ?", b"round %d" % i, b"key:1")
            assert client("GET", "key:1") == b"round %d" % i


def test_what_another_process_reads_is_no_change(fleet):
    larder = fleet.larder()
    with larder.connect() as client:
        fill(client)
        assert client("GET", "key:1") == b"value 1"
        before = counts(client)
        assert larder.store.query("SELECT count(*) FROM larder_key WHERE key = ?", b"key:1") == [(1,)]
        assert client("GET", "key:1") == b"value 1"
        assert more(client, before)["external_changes"] == 0


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(lambda i: [["SET", f"key:{i}", "x"]], id="SET"),
        pytest.param(lambda i: [["GET", f"key:{i}"]], id="GET"),
        pytest.param(lambda i: [["DEL", f"key:{i}"], ["EXPIRE", f"key:{i}", "10"]], id="DEL"),
        pytest.param(lambda i: [["SADD", f"set:{i}", "x"], ["SETNX", f"key:{i}", "y"]], id="mixed"),
        pytest.param(lambda i: [["MSET", f"key:{i}", "x", f"more:{i}", "y"]], id="MSET"),
    ],
)
def test_keys_that_are_missing_in_memory_are_asked_for_together(fleet, commands):
    larder = fleet.larder()
    with larder.connect() as client:
        fill(client)
    larder.stop()
    larder.start()
    with larder.connect() as client:
        before = counts(client)
        lines = [line for i in range(KEYS) for line in commands(i)]
        client.pipeline(lines)
        assert more(client, before)["key_lookups"] <= len(lines) // 20
        client("SAVE")
        assert client("DBSIZE") == len(client("KEYS", "*"))
    larder.stop()
    larder.start()
