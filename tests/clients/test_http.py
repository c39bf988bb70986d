"""Node's clients of the HTTP API: Upstash's published one, and a judge of the OpenAPI document."""

import json
import os
import pathlib
import subprocess
import urllib.request

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


def test_redocly(fleet, modules, tmp_path):
    """A stricter judge of the document: it finds nothing, nor anything that it would advise."""
    server = fleet.new(HttpLarder).start()
    document = tmp_path / "openapi.json"
    document.write_bytes(urllib.request.urlopen(f"{server.url}/openapi.json", timeout=60).read())
    done = subprocess.run(
        [HERE / "node_modules" / ".bin" / "redocly", "lint", "--format=json", document.name],
        cwd=tmp_path,
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = [(p["ruleId"], p["message"], p["location"][0]["pointer"]) for p in json.loads(done.stdout)["problems"]]
    assert found == [] and done.returncode == 0, done.stderr
