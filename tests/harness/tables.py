"""Rows of tables and their entries as they lie in a database: whether the entries are what the rows say.

The codes of keys are written here a second time, from their description alone (src/table/keycode.h)."""

import base64
import json
import struct

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


def items(data, table, number):
    """Names and values of what a table of the database has under an id."""
    name, value = (HEX[data.kind].format(column) for column in ("name", "value"))
    rows = data.query(f"SELECT {name}, {value} FROM {table} WHERE id = {number}")
    return {bytes.fromhex(row[0]): bytes.fromhex(row[1]) for row in rows}


def check(data):
    """Asserts that every table's entries are those of its rows, and says how many rows and entries there are."""
    nrows = nentries = 0
    for number, schema in data.query(f"SELECT id, {HEX[data.kind].format('value')} FROM larder_key WHERE type = 6"
                                     " AND db IN (SELECT number FROM larder_db)"):
        table = Table(bytes.fromhex(schema))
        rows = items(data, "larder_row", number)
        want = {}
        for name, value in rows.items():
            assert table.name(value) == name, (name, value)
            for entry, of in table.entries(value):
                assert entry not in want, f"two rows have one unique value: {entry}"
                want[entry] = of
        found = {name: value for name, value in items(data, "larder_entry", number).items() if name[:2] != b"\0\0"}
        assert found == want
        nrows += len(rows)
        nentries += len(found)
    return nrows, nentries
