"""Where a Larder under test keeps its data. The one place that makes store URLs.

LARDER_TEST_STORE chooses the database: "sqlite" (default). Another database adds a class here.
"""

import os
import pathlib
import sqlite3

CHOICE = os.environ.get("LARDER_TEST_STORE", "sqlite")


class SqliteStore:
    """A database file in the server's folder."""

    kind = "sqlite"

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "larder.db"
        self.url = f"sqlite:{self.path}"

    def query(self, sql, *args):
        """Runs a query on a connection of its own, as another process would; all its rows."""
        connection = sqlite3.connect(self.path, timeout=30)
        try:
            rows = connection.execute(sql, args).fetchall()
            connection.commit()
            return rows
        finally:
            connection.close()


KINDS = {"sqlite": SqliteStore}


def new(folder):
    if CHOICE not in KINDS:
        raise ValueError(f"LARDER_TEST_STORE={CHOICE}: known are {', '.join(KINDS)}")
    return KINDS[CHOICE](folder)
