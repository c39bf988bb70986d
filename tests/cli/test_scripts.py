"""The checks of include directions and of the code's shape find what they should."""

import re
import subprocess

from harness import servers


def check(src, script="check-includes"):
    done = subprocess.run([servers.ROOT / "scripts" / script, src], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def write(src, files):
    for name, text in files.items():
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text(text)


def test_directions_of_includes(tmp_path):
    src = tmp_path / "src"
    write(src, {
        "base/a.h": "",
        "base/a.c": '#include "base/b.h"\n#include "base/a.h"\n',
        "base/b.h": '#include "engine/e.h"\n',
        "engine/e.h": '#include "base/a.h"\n',
        "engine/e_internal.h": "",
        "command/c.c": '#include "engine/e_internal.h"\n#  include "engine/absent.h"\n#include "e.h"\n#include <e.h>\n',
        "odd/o.c": "",
        "store/s.h": "enum status store_x(struct s *s);\n",
        "store/deep/d.c": "",
        "engine/far.h": '#include "store/s.h"\n',
        "command/far.c": '#include "engine/far.h"\nvoid f(void)\n{\n    store_x(0); /* store_y() */\n}\n',
    })
    assert check(src) == (
        1,
        [
            "odd/: not in the list of layers",
            "store/deep/: not in the list of layers",
            'src/base/a.c: "base/a.h" does not come first',
            'src/base/b.h: "engine/e.h": base/ must not know engine/',
            'src/command/c.c: "engine/e_internal.h" is private to engine/',
            'src/command/c.c: "engine/absent.h" is not named by its place under src/',
            'src/command/c.c: "e.h" is not named by its place under src/',
            "src/command/far.c: store_x() of store/s.h: command/ must not know store/",
        ],
    )


def test_the_sources():
    assert check(servers.ROOT / "src")[0] == 0


def test_the_shape(tmp_path):
    src = tmp_path / "src"
    body = "".join(f"    step_{i}(a);\n" for i in range(6))
    long = "".join(f"    other_{i}(a);\n" for i in range(58))
    write(src, {
        "base/a.h": "\n" * 300,
        "base/b.h": "\n" * 301,
        "base/a.c": f"void a(int a)\n{{\n{body}}}\n",
        "base/b.c": f"int first(void)\n{{\n    return 1;\n}}\n\nvoid b(int a)\n{{\n    /* no */\n{body}}}\n",
        "base/long.c": f"void long_one(int a)\n{{\n{long}}}\n",
        **{f"engine/{i}.c": "" for i in range(41)},
    })
    assert check(src, "check-shape") == (
        1,
        [
            "src/engine/: 41 files, 40 at most",
            "src/base/b.h: a header of 301 lines, 300 at most",
            "src/base/long.c: long_one has 61 lines, 60 at most",
            "src/base/a.c:3 and src/base/b.c:9 share 6 lines or more",
        ],
    )


HOP = re.compile(r"^ {4,}(\w+) +([a-z_/]+\.c)(?: |$)", re.MULTILINE)


def test_the_walks_of_the_architecture():
    """Every function that the page walks through is defined in the file that it names."""
    hops = HOP.findall((servers.ROOT / "docs" / "architecture.md").read_text())
    assert len(hops) > 50
    for function, place in hops:
        text = (servers.ROOT / "src" / place).read_text()
        assert re.search(rf"^[a-z][^\n;=]*\b{function}\(", text, re.MULTILINE), f"{function} is not in {place}"
