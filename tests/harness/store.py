"""Where a Larder under test keeps its data. The one place that makes store URLs.

LARDER_TEST_STORE chooses the database: "sqlite" (default), "postgres" or "mariadb". Another database adds a class here.
LARDER_TEST_MODE chooses how servers use a database server: "shared" (default) or "exclusive".
"""

import atexit
import os
import pathlib
import sqlite3

from . import databases, redolog, wait

CHOICE = os.environ.get("LARDER_TEST_STORE", "sqlite")
MODE = os.environ.get("LARDER_TEST_MODE", "shared")


# Whether everything in the journal is in the tables, as docs/schema.md says it.
APPLIED = "(SELECT value FROM larder_meta WHERE name = 'applied')"
CURRENT = f"SELECT {APPLIED} >= ? AND NOT EXISTS (SELECT 1 FROM larder_journal WHERE seq > {APPLIED})"
# The same where values are texts: rows that are missing.
BEHIND = """SELECT count(*) FROM larder_journal WHERE seq >
            (SELECT {} FROM larder_meta WHERE name = 'applied')"""


class SqliteStore:
    """A database file in the server's folder."""

    kind = "sqlite"

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "larder.db"
        self.url = f"sqlite:{self.path}"

    def query(self, sql, *args):
        """Runs a query on a connection of its own, as another process would; all its rows. The tables may be a
        little behind what was written: waits until they are not."""
        connection = sqlite3.connect(self.path, timeout=30)
        try:
            if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'larder_journal'").fetchone():
                last = redolog.last_seq(self.path)
                wait.until(lambda: connection.execute(CURRENT, [last]).fetchone()[0], "the tables are current")
            rows = connection.execute(sql, args).fetchall()
            connection.commit()
            return rows
        finally:
            connection.close()


_servers = {}


def server(kind):
    """The database server of this kind that the tests of a session share; it goes when they have ended."""
    if kind not in _servers:
        _servers[kind] = databases.KINDS[kind]().start()
        atexit.register(_servers[kind].remove)
    return _servers[kind]


class ServerStore:
    """A database of its own on the server that the tests share."""

    kind = None

    def __init__(self, _folder=None, *, on=None, **options):
        self.server = on or server(self.kind)
        self.name = self.server.new_database()
        self.alone = options.get("mode") == "exclusive"
        self.url = self.server.url(self.name, **options)

    def query(self, sql):
        """Runs statements on a connection of their own; all rows, as texts. Waits until the tables are not behind what
        was written."""
        if self.alone:
            wait.until(lambda: self.server.query(BEHIND.format(self.number), self.name) == [["0"]], "the tables are current")
        return self.server.query(sql, self.name)

    def session(self):
        """A connection that stays."""
        return self.server.session(self.name)


class PostgresStore(ServerStore):
    kind = "postgres"
    number = "value::bigint"


class MariaStore(ServerStore):
    kind = "mariadb"
    number = "CAST(value AS SIGNED)"


KINDS = {"sqlite": SqliteStore, "postgres": PostgresStore, "mariadb": MariaStore}


def new(folder):
    if CHOICE not in KINDS:
        raise ValueError(f"LARDER_TEST_STORE={CHOICE}: known are {', '.join(KINDS)}")
    alone = CHOICE != "sqlite" and MODE == "exclusive"
    return KINDS[CHOICE](folder, **({"mode": "exclusive"} if alone else {}))
