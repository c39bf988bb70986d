"""Stock clients over a database with a replica that stands still: what they read is what they have chosen, and with a token
their own writes."""

import os
import pathlib
import subprocess

import pytest
import redis

from harness import replicas, store, wait
from harness.http import HttpLarder

HERE = pathlib.Path(__file__).parent


class Behind:
    """A database on the cluster, as a store of several nodes."""

    def __init__(self, cluster):
        data = cluster.data()
        self.kind, self.query, self.name = data.kind, data.query, data.name
        self.url = cluster.url(data.name, cluster.primary)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two Larders, the second of which reads from any replica unless it is told otherwise."""
    if store.CHOICE != "sqlite":
        pytest.skip("starts its own databases: once is enough")
    with replicas.KINDS["postgres"](1) as cluster:
        data = Behind(cluster)
        servers = []
        for more in ([], ["--read-consistency", "eventual"]):
            options = [*cluster.replica_options(data.name), *more]
            servers.append(HttpLarder(tmp_path_factory.mktemp("larder"), options, data=data).start())
        for server in servers:
            wait.until(lambda: 'msg="a replica is read from"' in server.log_text(), "the replica is in rotation")
        cluster.pause(0)
        yield servers
        cluster.resume(0)
        for server in servers:
            server.stop()


def test_node(pair, modules):
    one, two = pair
    urls = {"TEST_URL": one.url, "TEST_OTHER_URL": two.url, "TEST_PORT": str(one.port), "TEST_OTHER_PORT": str(two.port)}
    done = subprocess.run(
        ["node", "--test", "--test-reporter=spec", "replicas.replica.js"],
        cwd=HERE,
        env={**os.environ, **urls},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_redis_py(pair):
    one, two = (redis.Redis(port=server.port, single_connection_client=True, decode_responses=True) for server in pair)
    assert one.set("py", "new")
    assert one.wait(1, 20) == 0
    assert one.get("py") == "new"
    assert two.get("py") is None
    assert one.readonly() and one.get("py:other") is None
    assert one.execute_command("LARDER.CONSISTENCY") == "eventual"
    assert one.readwrite() and one.get("py") == "new"
    assert two.execute_command("LARDER.CONSISTENCY", "SESSION") == "OK"
    assert two.execute_command("LARDER.TOKEN", one.execute_command("LARDER.TOKEN")) == "OK"
    assert two.get("py") == "new"
    assert two.execute_command("WAITAOF", 1, 1, 20) == [1, 0]
    with pytest.raises(redis.ResponseError, match="^BADTOKEN"):
        two.execute_command("LARDER.TOKEN", "none")
    assert two.role()[0] == "master"
    for client in (one, two):
        client.close()


def curl(*words):
    done = subprocess.run(["curl", "-sS", "--max-time", "60", *words], capture_output=True, text=True, check=True, timeout=90)
    return done.stdout


def test_curl(pair, tmp_path):
    one, two = pair
    head = tmp_path / "head"
    curl("-D", head, "-H", "Larder-Token;", f"{one.url}/set/curl/new")
    token = next(line.split(":", 1)[1].strip() for line in head.read_text().splitlines() if line.startswith("Larder-Token"))
    assert curl(f"{two.url}/get/curl") == '{"result":null}'
    assert curl("-H", f"Larder-Token: {token}", f"{two.url}/get/curl") == '{"result":"new"}'
    assert curl(f"{two.url}/get/curl?consistent=true") == '{"result":"new"}'
    answer = curl("-i", "-H", "Larder-Consistency: strong", f"{two.url}/keys/curl")
    assert '"value":"new"' in answer and "Larder-Read: primary\n" in answer.replace("\r", "")
