"""Random commands on Larder and on redis-server: the same replies, the same contents at the end.

A failure names its seed and prints the shortest sequence found that still differs. LARDER_LONG=1 runs 200,000
commands and more, on seeds of its own each time (or from LARDER_SEED on).
"""

import os
import random
import time

import pytest

from compat import grammar
from harness import compare, differential
from harness.differential import Item

LONG = os.environ.get("LARDER_LONG") == "1"
COMMANDS = 2000  # in one test
FIRST = int(os.environ.get("LARDER_SEED", time.time() if LONG else 1))
COUNT = int(os.environ.get("LARDER_SEEDS", 104 if LONG else 10))
SEEDS = range(FIRST, FIRST + COUNT)


def make(seed, commands=COMMANDS, **which):
    """A seeded sequence in pipelines of random length over both connections."""
    r = random.Random(seed)
    generator = grammar.Generator(r, **which)
    items = []
    pipeline = 0
    while len(items) < commands:
        pipeline += 1
        connection = r.choice([0, 0, 0, 1])
        length = r.choice([1, 1, 1, 2, 3, r.randint(1, 20), r.randint(1, 200)])
        if "transaction" in generator.families and r.random() < 0.15:
            pipeline = transaction(r, generator, items, pipeline, connection)
            continue
        for _ in range(length):
            args, rule = generator.command()
            items.append(Item(pipeline, connection, args, rule))
    return items[:commands]


def transaction(r, generator, items, pipeline, connection):
    """A whole transaction; some watch keys before, and some of those find that the other connection was there."""
    if r.random() < 0.5:
        watched = grammar.some(grammar.anything, 1, 3)(r)
        items.append(Item(pipeline, connection, [b"WATCH", *watched], compare.exact))
        pipeline += 1
        for _ in range(r.choice([0, 0, 1, 1, 3])):
            items.append(Item(pipeline, r.choice([0, 1]), *generator.command_on(watched)))
        pipeline += 1
    for args, rule in generator.transaction(r.choice([0, 1, 2, 3, r.randint(1, 40)])):
        items.append(Item(pipeline, connection, args, rule))
    return pipeline


# The same commands must come to the same whether rows come from memory or from the tables, and whoever is at work
# beside them.
SETTINGS = {
    "default": [],
    "uncached": ["--cache-memory", "0", "--page-cache", "64kb"],
    "sweeping": ["--sweep-interval", "1ms", "--sweep-pause", "0", "--sweep-batch", "3", "--durability", "everysec"],
}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_commands(seed, oracle, subjects):
    name = list(SETTINGS)[seed % len(SETTINGS)]
    differential.check(f"{seed} ({name})", make(seed), oracle, subjects(*SETTINGS[name]))


# --- the test itself, on two redis-servers


def test_redis_equals_redis(shared_fleet, oracle):
    differential.check(1, make(1, 1000), oracle, shared_fleet.redis())


@pytest.mark.parametrize(
    "planted, least",
    [
        # PERSIST does what TOUCH does: wrong replies for keys without a time, wrong contents for others.
        (["PERSIST", "", "TOUCH", "PERSIST"], 2),
        (["SETRANGE", ""], 1),
        # APPEND does what GETSET does: the first one answers something else.
        (["APPEND", "", "GETSET", "APPEND"], 1),
        # Items go to the wrong end, which is seen by reading them.
        (["LPUSH", "", "RPUSH", "LPUSH"], 1),
        # Every difference is taken for a union.
        (["SDIFFSTORE", "", "SUNIONSTORE", "SDIFFSTORE"], 2),
    ],
    ids=lambda planted: planted[0] if isinstance(planted, list) else "",
)
def test_a_planted_difference_is_found_and_shrunk(shared_fleet, oracle, planted, least):
    options = [word for name, new in zip(planted[::2], planted[1::2]) for word in ("--rename-command", name, new)]
    impostor = shared_fleet.redis(*options)
    items = make(7, 3000, without=planted[2::4])
    with pytest.raises(pytest.fail.Exception) as caught:
        differential.check(7, items, oracle, impostor)
    assert f"\n{least} commands that show it" in str(caught.value)
    assert "seed 7" in str(caught.value)
    assert planted[0] in str(caught.value).upper()
    impostor.stop()


def test_shrinking_keeps_only_what_matters():
    items = [Item(i // 7, 0, [b"SET", b"k%d" % i, b"v" * i]) for i in range(100)]

    def fails(part):
        keys = [item.args[1] for item in part if len(item.args) > 1]
        return b"k13" in keys and b"k77" in keys and keys.index(b"k13") < keys.index(b"k77")

    least = differential.shrink(items, fails)
    assert [item.args[:2] for item in least] == [[b"SET", b"k13"], [b"SET", b"k77"]]
    assert all(len(item.args[2]) == 1 for item in least)


def test_descriptions_can_be_read():
    items = [Item(1, 0, [b"SET", b"a b", b"\x00"]), Item(1, 0, [b"GET", b""]), Item(2, 1, [b"ECHO", b"x" * 100])]
    assert differential.describe(items).splitlines() == [
        '  [connection 0] [pipeline 0] SET "a b" "\\x00"',
        '  [connection 0] [pipeline 0] GET ""',
        "  [connection 1] ECHO x*100",
    ]


