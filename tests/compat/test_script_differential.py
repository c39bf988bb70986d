"""Random scripts on Larder and on redis-server: the same replies, and the same contents at the end.

A failure names its seed and prints the shortest sequence found that still differs, with the script's lines reduced to
those that matter. LARDER_LONG=1 runs many more, on seeds of its own each time (or from LARDER_SEED on).
"""

import dataclasses
import functools
import os
import random
import time

import pytest

from compat import grammar, lua_grammar
from harness import differential, servers
from harness.differential import Item

LONG = os.environ.get("LARDER_LONG") == "1"
COMMANDS = 400  # in one test
FIRST = int(os.environ.get("LARDER_SEED", time.time() if LONG else 1))
COUNT = int(os.environ.get("LARDER_SEEDS", 300 if LONG else 8))
SEEDS = range(FIRST, FIRST + COUNT)
FAMILIES = [name for name in grammar.FAMILIES if name not in ("connection", "transaction", "border")]


def script(r, commands, pipeline, connection):
    """The items of one script: EVAL, or a SCRIPT LOAD and an EVALSHA of it, or a FUNCTION LOAD and an FCALL."""
    text, keys, argv, rule = lua_grammar.make(r, commands, r.choice([1, 1, 2, 3, 5, 8]))
    if r.random() < 0.05:
        text = r.choice([b"#!lua\n", b"#!lua flags=no-writes\n", b"#!lua flags=allow-oom\n"]) + text
    numbers = [b"%d" % len(keys), *keys, *argv]
    if r.random() < 0.15 and not text.startswith(b"#!"):
        yield from function(r, pipeline, connection, text, numbers, rule)
        return
    name = r.choices([b"EVAL", b"EVAL_RO", b"EVALSHA", b"EVALSHA_RO"], [12, 1, 3, 0.3])[0]
    if name.startswith(b"EVALSHA"):
        yield Item(pipeline, connection, [b"SCRIPT", b"LOAD", text])
        text = lua_grammar.sha(text)
    yield Item(pipeline, connection, [name, text, *numbers], rule)


def function(r, pipeline, connection, text, numbers, rule):
    """The same text as a function of a library, and a call of it. Each has a name of its own: a library that cannot be
    loaded leaves the one before, whose replies are compared by another rule."""
    name = b"f" + lua_grammar.sha(text)
    flags = r.choice([b"", b"", b"", b"'no-writes'", b"'allow-oom', 'allow-stale'"])
    register = b"redis.register_function"
    if flags:
        body = b"%s{function_name='%s', callback=function(KEYS, ARGV)\n%s\nend, flags={%s}}" % (register, name, text, flags)
    else:
        body = b"%s('%s', function(KEYS, ARGV)\n%s\nend)" % (register, name, text)
    yield Item(pipeline, connection, [b"FUNCTION", b"LOAD", b"REPLACE", b"#!lua name=lib\n" + body])
    yield Item(pipeline, connection, [r.choices([b"FCALL", b"FCALL_RO"], [9, 1])[0], name, *numbers], rule)


def make(seed, count=COMMANDS):
    """Commands and scripts in pipelines over both connections; some scripts inside of transactions."""
    r = random.Random(seed)
    commands = grammar.Generator(r, FAMILIES)
    items = []
    pipeline = 0
    while len(items) < count:
        pipeline += 1
        connection = r.choice([0, 0, 1])
        queued = r.random() < 0.1
        if queued:
            items.append(Item(pipeline, connection, [b"MULTI"]))
        for _ in range(r.choice([1, 1, 2, 5, 15])):
            if r.random() < 0.5:
                items.append(Item(pipeline, connection, *commands.command()))
            else:
                items += script(r, commands, pipeline, connection)
        if queued:
            items.append(Item(pipeline, connection, [b"EXEC"]))
    return items


def without_lines(items, fails):
    """The items with every line taken out of their scripts that can be without the failure going away."""
    for i, item in enumerate(items):
        if not item.args[0].upper().startswith(b"EVAL") or len(item.args) < 3:
            continue
        lines = item.args[1].split(b"\n")
        at = len(lines) - 1
        while at >= 0:
            shorter = lines[:at] + lines[at + 1 :]
            changed = dataclasses.replace(item, args=[item.args[0], b"\n".join(shorter), *item.args[2:]])
            part = items[:i] + [changed] + items[i + 1 :]
            if fails(part):
                lines, item, items = shorter, changed, part
            at -= 1
    return items


def describe(items):
    """The items, and under each script its lines."""
    texts = [differential.describe(items)]
    for item in items:
        if item.args[0].upper().startswith(b"EVAL"):
            texts.append(item.args[1].decode("utf-8", "backslashreplace"))
    return "\n\n".join(texts)


def check(seed, items, oracle, subject):
    differential.check(seed, items, oracle, subject, without_lines, describe, 60.0)


@pytest.fixture(scope="module")
def unused(shared_fleet):
    """A server without rows that other tests have left: SCAN passes over those that wait for the sweeper, and one call
    of it would not be enough here."""
    return functools.cache(lambda *options: shared_fleet.new(servers.Larder, *options))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_scripts(seed, oracle, unused):
    uncached = ["--cache-memory", "0", "--page-cache", "64kb"] if seed % 4 == 3 else []
    check(seed, make(seed), oracle, unused(*uncached))


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_random_calls_of_libraries(seed, oracle, subject):
    """Functions of Lua, and of Redis for Lua, with arguments of all kinds: the same results, the same errors."""
    r = random.Random(seed)
    scripts = [lua_grammar.library(r) for _ in range(1000)]
    replies = []
    for server in (oracle, subject):
        with server.connect() as c:
            c("FLUSHALL")
            replies.append([c.call("EVAL", text, 1, "k1", "v") for text in scripts])
    for text, expected, actual in zip(scripts, *replies):
        if expected.raw == actual.raw:
            continue
        lines = text.decode("latin-1").split("\n")[-len(expected.value) - 1 :] if expected.kind == b"*" else []
        found = [
            f"{line}\n  {oracle.name}: {a!r}\n  {subject.name}: {b!r}"
            for line, a, b in zip(lines, expected.value, actual.value)
            if a.raw != b.raw
        ]
        pytest.fail(f"seed {seed}: {found or (text, expected, actual)}", pytrace=False)


def test_a_planted_difference_is_found(shared_fleet, oracle):
    """One of two redis-servers takes RPUSH for LPUSH, which scripts alone get to see."""
    impostor = shared_fleet.redis("--rename-command", "RPUSH", "", "--rename-command", "LPUSH", "RPUSH")
    items = [
        Item(0, 0, [b"SET", b"k", b"v"]),
        Item(1, 0, [b"EVAL", b"local a = 1\nredis.call('rpush', 'l', 1, 2)\nlocal b = 2\nreturn redis.call('lrange', 'l', 0, -1)", b"0"]),
        Item(2, 0, [b"GET", b"k"]),
    ]
    with pytest.raises(pytest.fail.Exception) as caught:
        check(0, items, oracle, impostor)
    assert "1 commands that show it" in str(caught.value)
    assert "local a" not in str(caught.value).split("commands that show it")[1]
    impostor.stop()


def test_scripts_call_every_family():
    """What the scripts call reaches every command of the grammar but those that they cannot compare."""
    r = random.Random(1)
    commands = grammar.Generator(r, FAMILIES)
    seen = b" ".join(lua_grammar.make(r, commands, 8)[0] for _ in range(1500)).upper()
    rows = [row for name in FAMILIES for row in grammar.FAMILIES[name]]
    names = {row.name.split()[0] for row in rows if row.rule in lua_grammar.RULES and row.weight >= 0.1}
    assert not sorted(name for name in names if f"'{name}'".encode() not in seen)
