"""The check of include directions finds what it should."""

import subprocess

from harness import servers


def check(src):
    done = subprocess.run([servers.ROOT / "scripts" / "check-includes", src], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def test_directions_of_includes(tmp_path):
    src = tmp_path / "src"
    for name, text in {
        "base/a.h": "",
        "base/a.c": '#include "base/b.h"\n#include "base/a.h"\n',
        "base/b.h": '#include "engine/e.h"\n',
        "engine/e.h": '#include "base/a.h"\n',
        "engine/e_internal.h": "",
        "command/c.c": '#include "engine/e_internal.h"\n#  include "engine/absent.h"\n#include "e.h"\n#include <e.h>\n',
        "odd/o.c": "",
    }.items():
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text(text)
    assert check(src) == (
        1,
        [
            "odd/: not in the list of layers",
            'src/base/a.c: "base/a.h" does not come first',
            'src/base/b.h: "engine/e.h": base/ must not know engine/',
            'src/command/c.c: "engine/e_internal.h" is private to engine/',
            'src/command/c.c: "engine/absent.h" is not named by its place under src/',
            'src/command/c.c: "e.h" is not named by its place under src/',
        ],
    )


def test_the_sources():
    assert check(servers.ROOT / "src")[0] == 0
