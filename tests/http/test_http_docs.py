"""The examples of docs/http.md, run in their order on a server, print what the page says."""

from harness import examples, servers


def test_examples(start, tmp_path):
    server = start()
    page = (servers.ROOT / "docs" / "http.md").read_text().replace("localhost:8379", f"localhost:{server.http_port}")
    commands = [(c, p) for c, p in examples.of(page) if not c.startswith("larder ")]
    assert len(commands) > 35
    examples.check(commands, tmp_path)
