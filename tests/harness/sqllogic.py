"""Files of statements and queries with their answers, in the format of sqllogictest, run on SQLite and on Larder.

    statement ok | statement error     a statement, and whether it must work
    query TYPES [SORT]                 a query; TYPES has I, R or T for each column; SORT is nosort (default) or rowsort
    ----                               behind it, one line for each value
    skipif NAME, onlyif NAME           before a record: not on, or only on, `sqlite` or `larder`
    # ...                              a comment

Answers are SQLite's: `sqllogic.py FILE...` writes them (and only SQLite is asked), so what a file says is what SQLite does.
"""

import pathlib
import re
import sqlite3
import sys


class Record:
    def __init__(self, conditions, head, sql, answer, line):
        self.conditions, self.head, self.sql, self.answer, self.line = conditions, head, sql, answer, line

    def is_for(self, name):
        return all((word == "onlyif") == (of == name) for word, of in self.conditions)

    @property
    def is_query(self):
        return self.head[0] == "query"


def parse(text):
    """The records of a file; the text must have nothing else."""
    records, comments = [], []
    for block in re.finditer(r"(?:[^\n]+\n?)+", text):
        lines = block.group().rstrip("\n").split("\n")
        at = text.count("\n", 0, block.start()) + 1
        conditions = []
        while lines and lines[0].startswith(("#", "skipif ", "onlyif ")):
            line = lines.pop(0)
            if line.startswith("#"):
                comments.append(line)
            else:
                conditions.append(tuple(line.split()))
        if not lines:
            continue
        head = lines.pop(0).split()
        assert head[0] in ("statement", "query"), f"line {at}: {head}"
        answer = None
        if "----" in lines:
            split = lines.index("----")
            lines, answer = lines[:split], lines[split + 1 :]
        records.append(Record(conditions, head, "\n".join(lines), answer, at))
    return records


def show(value, kind):
    if value is None:
        return "NULL"
    if kind == "R":
        return f"{float(value):.3f}"
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, float):
        return f"{value:.3f}"
    text = re.sub(r"[\x00-\x1f]", "@", str(value))
    return text or "(empty)"


def lines_of(rows, kinds, sort):
    shown = [[show(value, kind) for value, kind in zip(row, kinds)] for row in rows]
    if sort == "rowsort":
        shown.sort()
    return [value for row in shown for value in row]


class Failed(Exception):
    """A statement that the database refused."""


class Sqlite:
    name = "sqlite"

    def __init__(self):
        self.db = sqlite3.connect(":memory:", isolation_level=None)

    def run(self, sql):
        try:
            return self.db.execute(sql).fetchall()
        except sqlite3.Error as e:
            raise Failed(str(e)) from e


class Larder:
    name = "larder"

    def __init__(self, connection):
        self.call = connection.call
        connection("HELLO", "3")

    def run(self, sql):
        reply = self.call("SQL", sql)
        if reply.is_error:
            raise Failed(str(reply.value))
        return dict(reply.plain())[b"rows"]


def problems(engine, records):
    """What is not as the file says, each as a text."""
    found = []
    for r in records:
        if not r.is_for(engine.name):
            continue
        try:
            rows, failure = engine.run(r.sql), None
        except Failed as e:
            rows, failure = [], str(e)
        if r.is_query:
            said = failure or lines_of(rows, r.head[1], r.head[2] if len(r.head) > 2 else "nosort")
            if said != r.answer:
                found.append(f"line {r.line}: {r.sql}\n  has to be {r.answer}\n  is        {said}")
        elif (failure is None) != (r.head[1] == "ok"):
            found.append(f"line {r.line}: {r.sql}\n  has to be {r.head[1]}\n  is        {failure or 'ok'}")
    return found


def kinds_of(rows):
    kinds = []
    for column in zip(*rows):
        types = {type(value) for value in column if value is not None}
        kinds.append("R" if float in types and types <= {float, int} else "I" if types == {int} else "T")
    return "".join(kinds) or "I"


def record(path):
    """Writes SQLite's answers into a file."""
    engine, out = Sqlite(), []
    for r in parse(path.read_text()):
        out += [" ".join(c) for c in r.conditions]
        try:
            rows = engine.run(r.sql) if r.is_for("sqlite") else []
            if r.is_query:
                sort = r.head[-1] if r.head[-1] == "rowsort" else "nosort"
                kinds = kinds_of(rows)
                out += [f"query {kinds} {sort}", r.sql, "----", *lines_of(rows, kinds, sort), ""]
                continue
        except Failed as e:
            assert not r.is_query, f"{path}: line {r.line}: {e}"
            assert r.head[1] == "error", f"{path}: line {r.line}: {e}"
        out += [" ".join(r.head), r.sql, ""]
    path.write_text("\n".join(out))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(pathlib.Path(name))
