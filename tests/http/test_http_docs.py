"""The examples of docs/http.md, run in their order on a server, print what the page says."""

import os
import re
import subprocess

from harness import servers

BLOCK = re.compile(r"^```console\n(.*?)^```", re.S | re.M)
# Versions, moments and times that pass are not what the page shows.
CHANGING = re.compile(r"\b\d{10,16}\b")


def examples(text):
    """Commands with what they print. A command begins with "$ ", goes on with "> "."""
    for block in BLOCK.findall(text):
        command, printed = None, []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield command, printed
                command, printed = line[2:], []
            elif line.startswith("> "):
                command += "\n" + line[2:]
            else:
                printed.append(line)
        yield command, printed


def test_examples(start, tmp_path):
    server = start()
    commands = [(c, p) for c, p in examples((servers.ROOT / "docs" / "http.md").read_text()) if not c.startswith("larder ")]
    assert len(commands) > 35
    # One shell for all, so that variables live on; a line of its own marks the end of each answer.
    script = "".join(f"{c.replace('localhost:8379', f'localhost:{server.http_port}')}\necho; echo '--- end'\n" for c, _ in commands)
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, cwd=tmp_path, env={**os.environ, "no_proxy": "*"}
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    answers = done.stdout.split("\n--- end\n")
    for (command, printed), answer in zip(commands, answers):
        assert CHANGING.sub("N", answer.strip()) == CHANGING.sub("N", "\n".join(printed)), command
