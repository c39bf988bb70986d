"""Figures in the documentation that are defaults of options: the table of options is what they must agree with."""

import re

import pytest

from harness import servers

# `apply-lag` (10 s) | (`apply-lag`, 10 s) | `http-timeout` 75s
STATEMENTS = [
    re.compile(r"`([a-z][a-z-]+)` \((\d[\d.]* ?[a-zA-Z]*)(?: by default|, the default)?\)"),
    re.compile(r"\(`([a-z][a-z-]+)`, (\d[\d.]* ?[a-zA-Z]*)\)"),
    re.compile(r"`([a-z][a-z-]+)` (\d[\d.]* ?(?:ms|s|kb|mb|gb|KiB|MiB|MB|GB))\b"),
]
# .It Fl \-cache-memory Ar size / How much memory ..., 320mb by default.
IN_THE_MAN_PAGE = re.compile(r"\.It Fl \\-([a-z-]+) Ar (?:number|size)\n[^;]*?[ ,;](\d+[a-z]*) by default")


def defaults():
    text = servers.run(["config"]).stdout
    return dict(re.findall(r"^(?:# (?=\S+ \d+[kmg]b$))?([a-z][a-z-]+) (.+)$", text, re.MULTILINE))


def plain(value):
    """10 s and 10s, 64 MB and 64mb are the same."""
    return value.replace(" ", "").lower().replace("kib", "kb").replace("mib", "mb")


def statements(path):
    text = path.read_text()
    for pattern in [IN_THE_MAN_PAGE] if path.suffix == ".1" else STATEMENTS:
        for match in pattern.finditer(text):
            yield match[1], match[2], text.count("\n", 0, match.start()) + 1


PAGES = [*sorted((servers.ROOT / "docs").glob("*.md")), servers.ROOT / "README.md", servers.ROOT / "docs" / "larder.1"]


def test_figures_agree_with_the_options():
    known = defaults()
    found, wrong = 0, []
    for page in PAGES:
        for name, value, line in statements(page):
            if name not in known:
                continue
            found += 1
            if plain(value) != plain(known[name]):
                wrong.append(f"{page.name}:{line}: {name} {value}, the default is {known[name]}")
    assert not wrong, "\n".join(wrong)
    assert found >= 8, "the patterns find hardly anything any more"


@pytest.mark.parametrize("text", ["`apply-lag` (1 s)", "(`apply-lag`, 1 s)", "`apply-lag` 1s of"])
def test_a_wrong_figure_is_found(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"The tables trail by {text}.\n")
    assert [(name, plain(value)) for name, value, _ in statements(page)] == [("apply-lag", "1s")]
