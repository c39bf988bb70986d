"""The pages that are made from the server's own tables are those of this server."""

import pytest

from harness import servers


@pytest.mark.parametrize(
    "page, command", [("docs/commands.md", ["commands"]), ("docs/configuration.md", ["config", "--markdown"])]
)
def test_generated_pages_are_current(page, command):
    done = servers.run(command)
    assert done.returncode == 0, done.stderr
    again = f"write it anew: larder {' '.join(command)} > {page}"
    assert (servers.ROOT / page).read_text() == done.stdout, again
