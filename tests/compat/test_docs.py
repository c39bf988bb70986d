"""The documentation is true: generated pages are current, links lead somewhere, and the examples on the pages about tables
and scripts give what the pages say."""

import re
import subprocess

import pytest

from harness import examples, servers

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{p.name}" for p in (servers.ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
# A block of commands or SQL and, when its output does not depend on the moment, what it prints.
EXAMPLE = re.compile(r"^```(redis|sql)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)


@pytest.mark.parametrize(
    "page, command",
    [("docs/commands.md", ["commands"]), ("docs/configuration.md", ["config", "--markdown"]), ("larder.conf", ["config"])],
)
def test_generated_pages_are_current(page, command):
    done = servers.run(command)
    assert done.returncode == 0, done.stderr
    again = f"write it anew: larder {' '.join(command)} > {page}"
    assert (servers.ROOT / page).read_text() == done.stdout, again


def anchors(text):
    """The names by which headings can be linked, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = servers.ROOT / page
    wrong = []
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            wrong.append(link)
        elif anchor and anchor not in anchors(target.read_text()):
            wrong.append(link)
    assert not wrong


def test_every_page_is_linked_from_the_readme():
    readme = (servers.ROOT / "README.md").read_text()
    assert not [page for page in PAGES if page != "README.md" and f"({page})" not in readme]


def trimmed(text):
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


FILE = re.compile(r"`(\w+\.lua)`:\n\n```lua\n(.*?)^```", re.S | re.M)


def test_examples_of_scripts(larder, tmp_path):
    """The files that the page shows, and its commands as a terminal shows what they print."""
    page = (servers.ROOT / "docs" / "scripting.md").read_text()
    for name, text in FILE.findall(page):
        (tmp_path / name).write_text(text)
    commands = list(examples.of(page))
    assert len(commands) > 15
    examples.check(commands, tmp_path, f'redis-cli() {{ command redis-cli -p {larder.port} --no-raw "$@"; }}\n')


def test_examples_of_tables(fleet, tmp_path):
    """The commands of the page about relational tables, over all three ways in."""
    http = servers.free_port()
    larder = fleet.larder("--http-port", str(http))
    commands = list(examples.of((servers.ROOT / "docs" / "tables.md").read_text()))
    assert len(commands) > 40
    before = (
        f'redis-cli() {{ command redis-cli -p {larder.port} --no-raw "$@"; }}\n'
        f'larder() {{ command {larder.binary} "$@" --port {larder.port}; }}\n'
        f'curl() {{ command curl "${{@//localhost:8379/localhost:{http}}}"; }}\n'
    )
    examples.check(commands, tmp_path, before)


@pytest.mark.sqlite
def test_examples_of_the_tables(larder):
    """As the page promises: all of them in their order, on a server that runs."""
    tools = {
        "redis": ["redis-cli", "-p", str(larder.port)],
        "sql": ["sqlite3", "-bail", "-header", "-column", "-cmd", ".timeout 30000", str(larder.store.path)],
    }
    examples = EXAMPLE.findall((servers.ROOT / "docs" / "schema.md").read_text())
    assert len(examples) > 20
    for kind, text, expected in examples:
        larder.store.query("SELECT 1")  # waits for tables that are current
        done = subprocess.run(tools[kind], input=text, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), text
        assert "ERR" not in done.stdout, text
        if expected:
            assert trimmed(done.stdout) == trimmed(expected), text
    larder.stop()
    larder.check()
