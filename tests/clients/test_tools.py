"""redis-cli and redis-benchmark."""

import re
import subprocess

import pytest


def cli(server, *args, stdin=None):
    done = subprocess.run(
        ["redis-cli", "-p", str(server.port), *args],
        input=stdin, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_redis_cli(server):
    assert cli(server, "ping") == "PONG\n"
    assert cli(server, "set", "k", "v w") == "OK\n"
    assert cli(server, "--no-raw", "get", "k") == '"v w"\n'
    assert cli(server, "-n", "3", "dbsize") == "0\n"
    assert cli(server, "-3", "--no-raw", "mget", "k", "none") == '1) "v w"\n2) (nil)\n'
    assert cli(server, stdin="set a 1\nincr a\nnosuch\nget a\n") == (
        "OK\n2\nERR unknown command 'nosuch', with args beginning with: \n\n2\n"
    )
    assert cli(server, "-s", server.unix_socket, "get", "k") == "v w\n"
    assert sorted(cli(server, "--scan").split()) == ["a", "k"]
    assert "redis_version:7." in cli(server, "info", "server")


def test_redis_cli_pipe(server):
    """Mass insertion waits for the reply to an ECHO at the end."""
    commands = "".join(f"SET pipe:{i} {i}\r\n" for i in range(5000))
    assert "errors: 0, replies: 5000" in cli(server, "--pipe", stdin=commands)
    assert cli(server, "dbsize") == "5000\n"


def test_redis_cli_statistics(server):
    out = cli(server, "--bigkeys")
    assert "Biggest string" in out or "Sampled 0 keys" in out


@pytest.mark.parametrize("depth", [1, 16])
def test_redis_benchmark(server, depth):
    done = subprocess.run(
        ["redis-benchmark", "-p", str(server.port), "-n", "2000", "-c", "20", "-P", str(depth), "-r", "100",
         "-t", "ping,set,get,incr,mset", "--csv"],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
    names = [row[0].strip('"') for row in rows if len(row) > 1]
    assert len(names) >= 6, done.stdout + done.stderr
    assert all(re.match(r'^"[\d.]+"$', row[1]) and float(row[1].strip('"')) > 0 for row in rows if len(row) == 8)
    assert "rror" not in done.stderr and "rror" not in done.stdout
