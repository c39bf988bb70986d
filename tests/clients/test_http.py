"""Node's clients of the HTTP API: Upstash's published one, and a judge of the OpenAPI document."""

import os
import pathlib
import subprocess

import pytest

from harness.http import HttpLarder

HERE = pathlib.Path(__file__).parent
FILES = sorted(HERE.glob("*.http.js"))
TOKEN = "a token"


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_node(path, fleet, modules):
    server = fleet.new(HttpLarder, "--requirepass", TOKEN).start()
    done = subprocess.run(
        ["node", "--test", "--test-reporter=spec", path.name],
        cwd=HERE,
        env={**os.environ, "TEST_URL": server.url, "TEST_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
