"""Random tables and what is done with them, on Larder and on real tables of SQLite side by side: after every step both say the same.

Rows are written by ROW.PUT, ROW.UPDATE, ROW.DEL and SQL, tables made, altered and dropped; rows are read by the primary key, by every index
in pages (forward and backward), with bounds, and by SQL. SQLite's tables are STRICT, so that both refuse the same values.
"""

import random
import sqlite3

TYPES = {"INTEGER": "INTEGER", "REAL": "REAL", "TEXT": "TEXT", "BLOB": "BLOB", "TIMESTAMP": "INTEGER"}
WORDS = ["", "a", "A", "aa", "ab", "b", "Mary", "Mary Ann", "z" * 40, "é", "☃", "a/L/b", "10", "9", "\x01"]
NUMBERS = [0, 1, -1, 9, 10, 127, 128, 255, 256, -255, -256, -257, 65535, 65536, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)]
MILLIS = [0, 1, -1, 999, 1000, 1700000000000, 253402300799999, -62167219200000]


class Column:
    def __init__(self, name, kind):
        self.name, self.kind = name, kind

    def value(self, rnd):
        if self.kind == "INTEGER":
            return rnd.choice([rnd.choice(NUMBERS), rnd.randrange(20)])
        if self.kind == "TIMESTAMP":
            return rnd.choice([rnd.choice(MILLIS), rnd.randrange(20)])
        if self.kind == "REAL":
            return float(rnd.choice([0.0, 1.5, -1.5, 1e300, -1e-300, 3.0, rnd.randrange(10) / 4]))
        if self.kind == "TEXT":
            return rnd.choice(WORDS)
        return rnd.choice([b"", b"\0", b"\0\xff", b"\xff", b"a", rnd.randbytes(3)])


def argument(value):
    return repr(value) if isinstance(value, float) else value if isinstance(value, (bytes, str)) else str(value)


class Index:
    def __init__(self, name, parts, unique):
        self.name, self.parts, self.unique = name, parts, unique

    @property
    def text(self):
        return ", ".join(f"{c.name}{' DESC' if desc else ''}" for c, desc in self.parts)


class Table:
    """A table of both, by its description."""

    def __init__(self, rnd, name):
        self.rnd, self.name = rnd, name
        self.columns = [Column(f"c{i}", rnd.choice(list(TYPES))) for i in range(rnd.randrange(2, 7))]
        self.key = Index(None, self.parts(rnd.randrange(1, min(3, len(self.columns)) + 1)), True)
        self.added = len(self.columns)
        self.indexes = [self.new_index(i) for i in range(rnd.randrange(4))]
        self.numbers = len(self.indexes)

    def parts(self, n):
        return [(c, self.rnd.random() < 0.3) for c in self.rnd.sample(self.columns, n)]

    def new_index(self, number):
        return Index(f"{self.name}_{number}", self.parts(self.rnd.randrange(1, min(3, len(self.columns)) + 1)), self.rnd.random() < 0.3)

    @property
    def description(self):
        items = [f"{c.name} {c.kind}" for c in self.columns] + [f"PRIMARY KEY ({self.key.text})"]
        items += [f"{'UNIQUE ' * i.unique}INDEX {i.name} ({i.text})" for i in self.indexes]
        return ", ".join(items)

    def statements(self):
        keys = {c for c, _ in self.key.parts}
        columns = [f"{c.name} {TYPES[c.kind]}{' NOT NULL' * (c in keys)}" for c in self.columns]
        yield f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({self.key.text})) STRICT"
        for i in self.indexes:
            yield self.index_statement(i)

    def index_statement(self, i):
        return f"CREATE {'UNIQUE ' * i.unique}INDEX {i.name} ON {self.name} ({i.text})"

    def order(self, index):
        """The columns that the rows come in the order of."""
        has = {c for c, _ in index.parts}
        return index.parts + [p for p in self.key.parts if p[0] not in has]

    def row(self):
        keys = {c for c, _ in self.key.parts}
        return [None if c not in keys and self.rnd.random() < 0.2 else c.value(self.rnd) for c in self.columns]


class Different(AssertionError):
    pass


class Oracle:
    def __init__(self, connection, seed):
        self.rnd = random.Random(seed)
        self.larder = connection
        self.sqlite = sqlite3.connect(":memory:", isolation_level=None)
        self.tables = []
        self.made = 0
        self.steps = self.refused = 0

    # --- asking both

    def direct(self, sql, values=()):
        """What SQLite says; None: it refuses."""
        try:
            return self.sqlite.execute(sql, values).fetchall()
        except sqlite3.IntegrityError:
            return None

    def ask(self, *words):
        """What Larder says; None: it refuses for a reason of the rows'."""
        reply = self.larder.call(*words)
        if not reply.is_error:
            return reply.plain()
        if reply.value.split()[0] not in (b"DUPLICATE", b"CONSTRAINT"):
            raise Different(f"{words}: {reply.value}")
        return None

    def both_refuse(self, what, ours, theirs):
        if (ours is None) != (theirs is None):
            raise Different(f"{what}: {'refused' if ours is None else 'done'}, by SQLite {'refused' if theirs is None else 'done'}")
        self.refused += ours is None

    def read(self, table, reply):
        """A row of a reply as SQLite has it."""
        return tuple(self.cell(c, v) for c, v in zip(table.columns, reply[1::2]))

    @staticmethod
    def cell(column, value):
        if value is None or column.kind in ("INTEGER", "TIMESTAMP", "BLOB"):
            return value
        return float(value) if column.kind == "REAL" else value.decode()

    # --- steps

    def create(self):
        self.made += 1
        table = Table(self.rnd, f"t{self.made}")
        self.larder("TABLE.CREATE", table.name, table.description)
        for statement in table.statements():
            self.sqlite.execute(statement)
        self.tables.append(table)

    def drop(self, table):
        self.larder(self.rnd.choice(["TABLE.DROP", "DEL"]), table.name)
        self.sqlite.execute(f"DROP TABLE {table.name}")
        self.tables.remove(table)

    def rename(self, table):
        self.made += 1
        name = f"t{self.made}"
        self.larder("RENAME", table.name, name)
        self.sqlite.execute(f"ALTER TABLE {table.name} RENAME TO {name}")
        table.name = name

    def add_column(self, table):
        column = Column(f"c{table.added}", self.rnd.choice(["INTEGER", "TEXT"]))
        table.added += 1
        default = "7" if column.kind == "INTEGER" else "'new'"
        self.larder("TABLE.ALTER", table.name, f"ADD COLUMN {column.name} {column.kind} DEFAULT {default}")
        self.sqlite.execute(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {TYPES[column.kind]} DEFAULT {default}")
        table.columns.append(column)

    def add_index(self, table):
        index = table.new_index(table.numbers)
        table.numbers += 1
        ours = self.ask("TABLE.ALTER", table.name, f"ADD {'UNIQUE ' * index.unique}INDEX {index.name} ({index.text})")
        theirs = self.direct(table.index_statement(index))
        self.both_refuse(f"index {index.text} on {table.name}", ours, theirs)
        if ours is not None:
            table.indexes.append(index)

    def drop_index(self, table):
        if table.indexes:
            index = table.indexes.pop(self.rnd.randrange(len(table.indexes)))
            self.larder("SQL", f"DROP INDEX {index.name}")
            self.sqlite.execute(f"DROP INDEX {index.name}")

    def some_row(self, table):
        rows = self.sqlite.execute(f"SELECT * FROM {table.name} ORDER BY random() LIMIT 1").fetchall() if self.rnd.random() < 0.7 else []
        return list(rows[0]) if rows else table.row()

    def put(self, table):
        row = table.row() if self.rnd.random() < 0.7 else self.some_row(table)
        names = [c.name for c in table.columns]
        given = [(n, v) for n, v in zip(names, row) if v is not None]
        nulls = [n for n, v in zip(names, row) if v is None]
        words = ["ROW.PUT", table.name, "FIELDS", str(len(given)), *(w for n, v in given for w in (n, argument(v)))]
        ours = self.ask(*words, *(["NULLS", str(len(nulls)), *nulls] if nulls else []))
        keys = {c for c, _ in table.key.parts}
        rest = [c.name for c in table.columns if c not in keys]
        action = "UPDATE SET " + ", ".join(f"{n} = excluded.{n}" for n in rest) if rest else "NOTHING"
        theirs = self.direct(
            f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(row))})"
            f" ON CONFLICT ({', '.join(c.name for c in keys)}) DO {action}", row
        )  # fmt: skip
        self.both_refuse(f"put {row} into {table.name}", ours, theirs)

    def key_of(self, table, row):
        return [argument(row[table.columns.index(c)]) for c, _ in table.key.parts]

    def where_key(self, table):
        return " AND ".join(f"{c.name} = ?" for c, _ in table.key.parts)

    def key_values(self, table, row):
        return [row[table.columns.index(c)] for c, _ in table.key.parts]

    def update(self, table):
        row, column = self.some_row(table), self.rnd.choice(table.columns)
        value = column.value(self.rnd)
        ours = self.ask("ROW.UPDATE", table.name, "KEY", *self.key_of(table, row), "FIELDS", "1", column.name, argument(value))
        theirs = self.direct(
            f"UPDATE {table.name} SET {column.name} = ? WHERE {self.where_key(table)}", [value, *self.key_values(table, row)]
        )
        there = self.direct(f"SELECT 1 FROM {table.name} WHERE {self.where_key(table)}", self.key_values(table, row))
        if ours is not None or theirs is None or there:  # absent: null, and not refused
            self.both_refuse(f"update {column.name} of {row}", ours, theirs)

    def delete(self, table):
        row = self.some_row(table)
        ours = self.larder("ROW.DEL", table.name, *self.key_of(table, row))
        theirs = self.sqlite.execute(f"DELETE FROM {table.name} WHERE {self.where_key(table)}", self.key_values(table, row)).rowcount
        if (ours or 0) != theirs:
            raise Different(f"delete {row}: {ours}, by SQLite {theirs}")

    def condition(self, table):
        column = self.rnd.choice(table.columns)
        if self.rnd.random() < 0.15:
            return f"{column.name} IS {'NOT ' * self.rnd.randrange(2)}NULL", []
        op = self.rnd.choice(["=", "<", "<=", ">", ">=", "<>"])
        return f"{column.name} {op} ?", [(column, column.value(self.rnd))]

    def literal(self, value):
        if isinstance(value, bytes):
            return f"x'{value.hex()}'"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if value == -(2**63):
            return "(-9223372036854775807 - 1)"
        return repr(value)

    def where(self, table):
        parts = [self.condition(table) for _ in range(self.rnd.randrange(1, 4))]
        text = self.rnd.choice([" AND ", " AND ", " OR "]).join(p for p, _ in parts)
        for _, values in parts:
            for _, value in values:
                text = text.replace("?", self.literal(value).replace("?", "¿"), 1)
        return text.replace("¿", "?")

    def sql(self, table, text):
        ours, theirs = self.ask("SQL", text), self.direct(text)
        self.both_refuse(text, ours, theirs)

    def change_by_sql(self, table):
        column, where = self.rnd.choice(table.columns), self.where(table)
        if self.rnd.random() < 0.3:
            self.sql(table, f"DELETE FROM {table.name} WHERE {where}")
        elif column not in {c for i in [table.key, *table.indexes] if i.unique for c, _ in i.parts}:
            self.sql(table, f"UPDATE {table.name} SET {column.name} = {self.literal(column.value(self.rnd))} WHERE {where}")

    def select(self, table):
        columns = ", ".join(c.name for c in table.columns)
        order = self.rnd.choice([table.key, *table.indexes])
        by = ", ".join(f"{c.name}{' DESC' if desc else ''}" for c, desc in table.order(order))
        text = f"SELECT {columns} FROM {table.name} WHERE {self.where(table)} ORDER BY {by}"
        reply = dict(zip(*[iter(self.larder("SQL", text))] * 2))
        ours = [tuple(self.cell(c, v) for c, v in zip(table.columns, row)) for row in reply[b"rows"]]
        self.same(text, ours, self.sqlite.execute(text).fetchall())

    def same(self, what, ours, theirs):
        if ours != theirs:
            raise Different(f"{what}:\n  {ours}\n  by SQLite {theirs}")

    def query(self, table):
        """A range of an order, in pages."""
        index, reverse = self.rnd.choice([table.key, *table.indexes]), self.rnd.random() < 0.4
        like = self.some_row(table)
        words, where, values = [], [], []
        n = self.rnd.randrange(len(index.parts))
        for c, _ in index.parts[:n]:
            value = like[table.columns.index(c)]
            if value is None:
                break
            words.append(argument(value))
            where.append(f"{c.name} = ?")
            values.append(value)
        words = ["EQ", str(len(words)), *words] if words else []
        column = index.parts[len(values)][0]
        for word, opens, ops in (("FROM", "[(", (">=", ">")), ("TO", "])", ("<=", "<"))):
            if self.rnd.random() < 0.4:
                value, exclusive = column.value(self.rnd), self.rnd.randrange(2)
                text = argument(value)
                words += [word, opens[exclusive].encode() + (text if isinstance(text, bytes) else text.encode())]
                where.append(f"{column.name} {ops[exclusive]} ?")
                values.append(value)
        order = ", ".join(f"{c.name}{' DESC' if desc != reverse else ''}" for c, desc in table.order(index))
        theirs = self.sqlite.execute(f"SELECT * FROM {table.name} {'WHERE ' * bool(where)}{' AND '.join(where)} ORDER BY {order}", values).fetchall()
        begin = ["ROW.QUERY", table.name, *(["INDEX", index.name] if index.name else []), *words, *(["REV"] if reverse else [])]
        ours, token = [], None
        limit = self.rnd.choice([1, 2, 3, 7, 1000])
        while True:
            rows, token, _ = self.larder(*begin, "LIMIT", str(limit), *(["AFTER", token] if token else []))
            ours += [self.read(table, row) for row in rows]
            if token is None:
                break
            if not rows:
                raise Different(f"{begin}: an empty page with a token")
        self.same(begin, ours, theirs)

    def get(self, table):
        row = self.some_row(table)
        reply = self.larder("ROW.GET", table.name, *self.key_of(table, row))
        theirs = self.sqlite.execute(f"SELECT * FROM {table.name} WHERE {self.where_key(table)}", self.key_values(table, row)).fetchall()
        self.same(f"get {row}", [self.read(table, reply)] if reply else [], theirs)

    STEPS = {put: 40, get: 8, query: 14, select: 10, update: 10, delete: 5, change_by_sql: 5, add_index: 1, drop_index: 1, add_column: 0.3,
             rename: 0.3, drop: 0.3}  # fmt: skip

    def run(self, n):
        steps, weights = list(self.STEPS), list(self.STEPS.values())
        for _ in range(n):
            self.steps += 1
            if len(self.tables) < 3:
                self.create()
                continue
            table = self.rnd.choice(self.tables)
            self.rnd.choices(steps, weights)[0](self, table)

    def compare_all(self):
        for table in self.tables:
            for _ in range(3):
                self.query(table)
            rows = self.sqlite.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
            self.same(f"count of {table.name}", self.larder("ROW.QUERY", table.name, "COUNT")[0], rows)
