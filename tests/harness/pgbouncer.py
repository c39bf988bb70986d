"""PgBouncer, a connection pooler, in front of a PostgreSQL of harness/databases.py."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from . import databases, wait

CONFIG = """[databases]
* = host={folder} port={port} user=larder
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
logfile = {here}/log
pidfile = {here}/pid
{more}
"""


class PgBouncer:
    """`mode` is session, transaction or statement; `settings` are lines of its configuration."""

    def __init__(self, database, mode, settings=""):
        self.database = database
        self.user = databases.unprivileged("postgres", "nobody")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="larder-pgbouncer-"))
        self.port = databases.free_port()
        config = self.folder / "ini"
        config.write_text(
            CONFIG.format(folder=database.folder, port=database.port, own=self.port, mode=mode, here=self.folder, more=settings)
        )
        if os.getuid() == 0:
            shutil.chown(self.folder, self.user)
        with open(self.folder / "out", "wb") as out:
            self.process = subprocess.Popen(
                ["pgbouncer", str(config)], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder,
                user=self.user if os.getuid() == 0 else None, preexec_fn=databases.end_with_us,
            )  # fmt: skip
        os.chmod(self.folder, 0o755)

    def url(self, name, **options):
        return self.database.url(name, tcp=True, **options).replace(f":{self.database.port}/", f":{self.port}/")

    def answers(self):
        assert self.process.poll() is None, (self.folder / "out").read_text()
        ready = [f"{self.database.tools}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "larder"]
        return subprocess.run(ready, env=self.database.environment(), cwd="/").returncode == 0

    def __enter__(self):
        wait.until(self.answers, "pgbouncer answers")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
