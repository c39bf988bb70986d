"""Examples of the documentation: commands in ```console blocks, and what they print."""

import os
import re
import subprocess

BLOCK = re.compile(r"^```console\n(.*?)^```", re.S | re.M)
# Versions, moments and times that pass are not what a page shows.
CHANGING = re.compile(r"\b\d{10,16}\b")


def of(text):
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


def check(commands, folder, before=""):
    """Runs them in one shell, so that variables live on, and compares. A line of its own marks the end of each answer."""
    script = before + "".join(f"{command}\necho; echo '--- end'\n" for command, _ in commands)
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, cwd=folder, env={**os.environ, "no_proxy": "*"}
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    answers = done.stdout.split("\n--- end\n")
    for (command, printed), answer in zip(commands, answers):
        assert CHANGING.sub("N", answer.strip()) == CHANGING.sub("N", "\n".join(printed).strip()), command
