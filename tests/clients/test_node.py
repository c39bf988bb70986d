"""Node: ioredis, node-redis, and programs that use them, with its own test runner."""

import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
FILES = sorted(HERE.glob("*.test.js"))


def test_the_lock_names_no_host():
    lock = json.loads((HERE / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert packages
    assert all("integrity" in package and "resolved" not in package for package in packages.values())


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_node(path, server, modules):
    done = subprocess.run(
        ["node", "--test", "--test-reporter=spec", path.name],
        cwd=HERE,
        env={**os.environ, "TEST_PORT": str(server.port), "TEST_SOCKET": server.unix_socket},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
