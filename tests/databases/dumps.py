"""Dumps of the databases' own tools, and how they are brought back."""

import os
import subprocess

from harness import store

WAYS = {
    "postgres": {"plain": ["-Fp"], "no-owner": ["-Fp", "--no-owner", "--no-privileges"], "custom": ["-Fc"]},
    "mariadb": {
        "default": [],
        "single-transaction": ["--single-transaction"],
        "routines": ["--routines"],
        "both": ["--single-transaction", "--routines"],
    },
}
PAIRS = [(kind, way) for kind, ways in WAYS.items() for way in ways]


def tool(server, *argv, text=b"", ok=True):
    """Runs a program against a database server; what it prints."""
    done = subprocess.run(
        list(map(str, argv)), input=text, capture_output=True, cwd="/", timeout=120,
        env={**server.environment(), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert not ok or done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout if ok else done.returncode


def where(server):
    if server.kind == "postgres":
        return ["-h", server.folder, "-p", server.port, "-U", "larder"]
    return ["--no-defaults", f"--socket={server.socket}", "-u", "root"]


def dump(data, way, *more):
    program = {"postgres": "pg_dump", "mariadb": "mariadb-dump"}[data.kind]
    return tool(data.server, program, *where(data.server), *WAYS[data.kind][way], *more, data.name)


def restore(server, name, text, *, ok=True):
    """Into an empty database."""
    if server.kind == "mariadb":
        return tool(server, "mariadb", *where(server), name, text=text, ok=ok)
    if text.startswith(b"PGDMP"):
        return tool(server, "pg_restore", *where(server), "--exit-on-error", "-d", name, text=text, ok=ok)
    return tool(server, "psql", *where(server), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", name, text=text, ok=ok)


def copy_of(data, text, *, name=None, on=None, ok=True, **options):
    """A database that a dump was brought back into: another one, or an empty one of the same name."""
    server = on or data.server
    copy = object.__new__(store.KINDS[data.kind])
    copy.server, copy.alone = server, options.get("mode") == "exclusive"
    if name:
        server.drop_database(name)
        server.query(f"CREATE DATABASE {name}")
    copy.name = name or server.new_database()
    copy.url = server.url(copy.name, **options)
    copy.restored = restore(server, copy.name, text, ok=ok)
    return copy
