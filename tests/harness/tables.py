"""Rows of tables and their entries as they lie in a database: whether the entries are what the rows say.

The codes of keys are written here a second time, from their description alone (src/table/keycode.h)."""

import base64
import contextlib
import json
import struct

from . import wait

HEX = {"sqlite": "hex({})", "postgres": "upper(encode({}, 'hex'))", "mariadb": "hex({})"}


def code(kind, value, desc=False):
    """A value of a column as a part of a key."""
    if value is None:
        out = b"\x05"
    elif kind in ("TEXT", "BLOB"):
        raw = value.encode() if kind == "TEXT" else base64.b64decode(value)
        out = (b"\x14" if kind == "TEXT" else b"\x12") + raw.replace(b"\0", b"\0\xff") + b"\0\x01"
    elif kind in ("INTEGER", "TIMESTAMP"):
        n = (abs(value).bit_length() + 7) // 8
        number = value if value >= 0 else value + 256**n - 1
        out = bytes([0x28 + n if value >= 0 else 0x28 - n]) + number.to_bytes(n, "big")
    elif kind == "REAL":
        bits = struct.unpack(">Q", struct.pack(">d", value + 0.0))[0]
        bits = bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63
        out = b"\x34" + struct.pack(">Q", bits)
    elif kind == "BOOLEAN":
        out = b"\x39" if value else b"\x38"
    else:
        raise ValueError(kind)
    return bytes(255 - byte for byte in out) if desc else out


class Table:
    """A table as its key's row describes it."""

    def __init__(self, schema):
        self.schema = json.loads(schema)
        self.columns = {column["id"]: column for column in self.schema["columns"]}

    def values(self, row):
        """The values of a row, by the columns' ids."""
        row = json.loads(row)
        return {n: row[n] if n < len(row) else column.get("missing") for n, column in self.columns.items()}

    def codes(self, values, parts):
        return b"".join(
            code(self.columns[part["column"]]["type"], values[part["column"]], part.get("desc", False)) for part in parts
        )

    def name(self, row):
        return self.codes(self.values(row), self.schema["key"])

    def entries(self, row):
        """The entries that a row has: names and values."""
        values = self.values(row)
        for index in self.schema.get("indexes", []):
            if index.get("state", "ready") == "failed":
                continue
            parts = index["parts"]
            own = [part["column"] for part in parts]
            unique = index.get("unique", False) and all(values[n] is not None for n in own)
            name = index["number"].to_bytes(2, "big") + self.codes(values, parts)
            if not unique:
                name += self.codes(values, [part for part in self.schema["key"] if part["column"] not in own])
            yield name, self.name(row) if unique else b""


def read(data):
    """One state of all tables: {id: schema}, and of each id the rows and the entries, {name: value}."""
    hexed = HEX[data.kind]
    name, value = hexed.format("name"), hexed.format("value")
    found = data.query(
        f"""SELECT 0, id, '', {value} FROM larder_key WHERE type = 6 AND db IN (SELECT number FROM larder_db)
        UNION ALL SELECT 1, id, {name}, {value} FROM larder_row
        UNION ALL SELECT 2, id, {name}, {value} FROM larder_entry"""
    )
    schemas, rows, entries = {}, {}, {}
    for part, number, name, value in found:
        of = (schemas, rows, entries)[int(part)].setdefault(number, {})
        of[bytes.fromhex(name)] = bytes.fromhex(value)
    return schemas, rows, entries


def compare(data):
    """What is wrong with the entries of a state, or None; and how many rows and entries it has."""
    schemas, all_rows, all_entries = read(data)
    nrows = nentries = 0
    for number, schema in schemas.items():
        table = Table(schema[b""])
        rows = all_rows.get(number, {})
        found = {name: value for name, value in all_entries.get(number, {}).items() if name[:2] != b"\0\0"}
        want = {}
        for name, value in rows.items():
            assert table.name(value) == name, (name, value)
            for entry, of in table.entries(value):
                if entry in want:
                    return f"two rows have one unique value: {entry}", (0, 0)
                want[entry] = of
        if found != want:
            missing, extra = want.items() - found.items(), found.items() - want.items()
            return f"missing {sorted(missing)[:3]}, not of any row {sorted(extra)[:3]}", (0, 0)
        nrows += len(rows)
        nentries += len(found)
    return None, (nrows, nentries)


def check(data):
    """Asserts that every table's entries are those of its rows, and says how many rows and entries there are. Where a
    journal is before the tables they may be in the midst of following it, as docs/schema.md says."""
    wrong, counts = compare(data)
    if wrong and (data.kind == "sqlite" or data.alone):
        with contextlib.suppress(AssertionError):
            wait.until(lambda: compare(data)[0] is None, "the tables have followed the journal", 20)
        wrong, counts = compare(data)
    assert wrong is None, wrong
    return counts
