"""When two replies, and two servers' whole contents, count as equal."""

from .resp import AGGREGATES, show

# How far apart two servers may be when they compute a time from their own clock, in milliseconds.
TIME_TOLERANCE = 30_000


def exact(a, b):
    return a.raw == b.raw


def ignore(_a, _b):
    return True


def shape(a, b):
    """Same types all the way down and aggregates of the same length. Errors: the same code."""
    if a.kind != b.kind or (a.value is None) != (b.value is None):
        return False
    if a.value is not None and a.kind in AGGREGATES:
        return len(a.value) == len(b.value) and all(map(shape, a.value, b.value))
    if a.is_error:
        return a.value.split(b" ")[0] == b.value.split(b" ")[0]
    return True


def canonical(reply):
    """Bytes that are the same for aggregates that differ only in the order of their members, at any depth."""
    if reply.value is None or reply.kind not in AGGREGATES:
        return reply.raw
    items = [canonical(item) for item in reply.value]
    if reply.kind == b"%":
        items = [key + value for key, value in zip(items[::2], items[1::2])]
    return reply.kind + b"%d\r\n" % len(items) + b"".join(sorted(items))


def unordered(a, b):
    return a.raw == b.raw or canonical(a) == canonical(b)


def times(unit):
    """Integers that may differ as much as the servers' clocks; negative answers (no time, no key) may not."""

    def rule(a, b):
        if a.raw == b.raw:
            return True
        if a.kind != b":" or b.kind != b":" or int(a.value) < 0 or int(b.value) < 0:
            return False
        return abs(int(a.value) - int(b.value)) <= TIME_TOLERANCE // unit

    return rule


# --- whole contents

# How a type's value is read, and whether its order is part of it. A new type adds a line.
READERS = {
    b"string": (lambda key: [b"GET", key], True),
    b"hash": (lambda key: [b"HGETALL", key], "pairs"),
    b"list": (lambda key: [b"LRANGE", key, b"0", b"-1"], True),
    b"set": (lambda key: [b"SMEMBERS", key], False),
    b"zset": (lambda key: [b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], True),
}


def _normal(reply, order):
    if reply.value is None or reply.kind not in AGGREGATES:
        return reply.raw
    items = [item.raw for item in reply.value]
    if order == "pairs":
        items = [key + value for key, value in zip(items[::2], items[1::2])]
    return tuple(items if order is True else sorted(items))


def contents(server):
    """Everything in a server: {(db, key): (type, value, expire time in ms)}. On a connection of its own, RESP2."""
    result = {}
    with server.connect() as c:
        db = 0
        while not c.call("SELECT", db).is_error:
            keys = sorted(c("KEYS", "*"))
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                types = [r.value for r in c.pipeline([["TYPE", key] for key in part])]
                values = c.pipeline([READERS.get(t, READERS[b"string"])[0](key) for t, key in zip(types, part)])
                expires = c.pipeline([["PEXPIRETIME", key] for key in part])
                for key, kind, value, expire in zip(part, types, values, expires):
                    order = READERS.get(kind, READERS[b"string"])[1]
                    result[db, key] = (kind, _normal(value, order), int(expire.value))
            size = c("DBSIZE")
            # It may count keys that have expired and are still to be removed, which KEYS does not show.
            assert size >= len(keys), f"{server.name}: DBSIZE of db {db} is {size}, KEYS shows {len(keys)}"
            db += 1
    return result


def _show_entry(entry):
    if entry is None:
        return "absent"
    kind, value, expire = entry
    shown = show(value) if isinstance(value, bytes) else "[" + ", ".join(map(show, value[:20])) + "]"
    return f"{kind.decode()} {shown} expires {expire}"


def different_contents(expected, actual, names=("redis", "larder")):
    """Lines that say where two results of contents() differ; none when they are equal."""
    lines = []
    for where in sorted(expected.keys() | actual.keys()):
        a, b = expected.get(where), actual.get(where)
        if a == b:
            continue
        if a and b and a[:2] == b[:2] and min(a[2], b[2]) >= 0 and abs(a[2] - b[2]) <= TIME_TOLERANCE:
            continue
        lines.append(f"db {where[0]} key {show(where[1])}:\n  {names[0]}: {_show_entry(a)}\n  {names[1]}: {_show_entry(b)}")
    return lines
