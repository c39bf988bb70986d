"""Tables for tests of their indexes: filled, described, asked."""

from . import wait

MANY = 1250  # rows: more than are indexed at once
ROWS = "id INTEGER PRIMARY KEY, name TEXT, age INTEGER"


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def index(client, name, table="t"):
    """What TABLE.INFO tells of an index; None: there is none."""
    for one in pairs(client("TABLE.INFO", table))[b"indexes"]:
        if pairs(one)[b"name"] == name.encode():
            return pairs(one)
    return None


def state(client, name, table="t"):
    found = index(client, name, table)
    return found and found[b"state"].decode()


def wait_ready(client, name, table="t"):
    wait.until(lambda: state(client, name, table) != "building", f"index {name} is built")
    assert state(client, name, table) == "ready", index(client, name, table)


def put(client, key, table="t", **columns):
    words = [w for item in {"id": key, **columns}.items() for w in item]
    return client("ROW.PUT", table, "FIELDS", len(words) // 2, *words)


def fill(client, n=MANY, table="t", name=lambda i: f"n{i}", age=lambda i: i % 50):
    """A table of so many rows."""
    assert client("TABLE.CREATE", table, ROWS) == b"OK"
    rows = [["ROW.PUT", table, "FIELDS", 3, "id", i, "name", name(i), "age", age(i)] for i in range(n)]
    assert {reply.plain() for reply in client.pipeline(rows)} == {1}


def ids(client, name, *values, table="t"):
    """The ids of the rows that an index has under these values."""
    rows, token, _ = client("ROW.QUERY", table, "INDEX", name, "EQ", len(values), *values, "LIMIT", 10000)
    assert token is None
    return sorted(pairs(r)[b"id"] for r in rows)


def hold(client, on=True):
    assert client("DEBUG", "SET-ACTIVE-EXPIRE", "0" if on else "1") == b"OK"
