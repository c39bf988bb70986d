"""Runs the same commands on two servers, compares, and shrinks what differs to the least that still does.

A command here is an Item: on which of the connections it goes, in which pipeline, its arguments, and the rule by
which its replies are compared. Items with the same pipeline number that stand together are sent in one piece.
"""

import dataclasses
import itertools
import time

import pytest

from . import compare
from .resp import Closed, ProtocolError, encode, show

PROTOCOLS = [2, 3]  # of each connection


@dataclasses.dataclass
class Item:
    pipeline: int
    connection: int
    args: list
    rule: object = compare.exact

    def __str__(self):
        return " ".join(quote(arg) for arg in self.args)


def quote(arg):
    """An argument as a transcript writes it."""
    if len(arg) > 60 and arg == arg[:1] * len(arg):
        return f"{quote(arg[:1])}*{len(arg)}"
    plain = arg and all(33 <= c <= 126 and c not in b"\"'\\#@" for c in arg)
    if plain:
        return arg.decode()
    return '"' + "".join(chr(c) if 32 <= c <= 126 and c not in b'"\\' else f"\\x{c:02x}" for c in arg) + '"'


@dataclasses.dataclass
class Difference:
    position: int  # of the item, or the number of items when the contents at the end differ
    text: str


def _exchange(connection, items):
    """The replies of one pipeline, or the words for why there are none."""
    replies = []
    try:
        with connection.sending(b"".join(encode(item.args) for item in items)):
            for _ in items:
                replies.append(connection.read())
    except Closed:
        replies.append("(connection closed)")
    except TimeoutError:
        replies.append("(no reply)")
    except ProtocolError as e:
        replies.append(f"(protocol error: {e})")
    return replies


class Queue:
    """The rules of the commands that a connection has queued: EXEC's reply is made of their replies."""

    def __init__(self):
        self.rules = []

    def rule(self, item, expected):
        """How the reply to an item is compared, given the oracle's."""
        name = item.args[0].upper()
        if name in (b"EXEC", b"DISCARD", b"RESET"):
            rules, self.rules = self.rules, []
            return together(rules) if name == b"EXEC" else item.rule
        if not isinstance(expected, str) and expected.raw == b"+QUEUED\r\n":
            self.rules.append(item.rule)
            return compare.exact
        return item.rule


def together(rules):
    def rule(a, b):
        if a.kind != b"*" or b.kind != b"*" or a.value is None or b.value is None:
            return a.raw == b.raw
        return len(a.value) == len(b.value) == len(rules) and all(r(x, y) for r, x, y in zip(rules, a.value, b.value))

    return rule


def run(items, oracle, subject):
    """Runs items on two emptied servers. None, or the first difference."""
    names = oracle.name, subject.name
    connections = []
    try:
        for server in (oracle, subject):
            with server.connect() as c:
                c("FLUSHALL")
        for server in (oracle, subject):
            connections.append([server.connect() for _ in PROTOCOLS])
            for connection, protocol in zip(connections[-1], PROTOCOLS):
                if protocol == 3:
                    connection.call("HELLO", "3")
        queues = [Queue() for _ in PROTOCOLS]
        position = 0
        for (_, which), group in itertools.groupby(items, lambda item: (item.pipeline, item.connection)):
            group = list(group)
            expected, actual = (_exchange(both[which], group) for both in connections)
            for item, a, b in zip(group, expected, actual):
                rule = queues[which].rule(item, a)
                if isinstance(a, str) or isinstance(b, str) or not rule(a, b):
                    shown = [x if isinstance(x, str) else show(x.raw, 1200) for x in (a, b)]
                    return Difference(position, f"{item}\n  {names[0]}: {shown[0]}\n  {names[1]}: {shown[1]}")
                position += 1
        lines = compare.different_contents(compare.contents(oracle), compare.contents(subject), names)
        if lines:
            return Difference(position, "at the end, " + "\n".join(lines[:5]))
        return None
    except (Closed, ConnectionError) as e:
        return Difference(len(items), f"lost the connection: {e}")
    finally:
        for connection in itertools.chain(*connections):
            connection.close()


def shrink(items, fails, limit=90.0):
    """The least part of items for which fails(part) is still true: delta debugging, then shorter arguments."""
    deadline = time.monotonic() + limit
    chunk = max(1, len(items) // 2)
    while True:
        removed = False
        start = 0
        while start < len(items):
            part = items[:start] + items[start + chunk :]
            if time.monotonic() > deadline:
                return items
            if part and fails(part):
                items = part
                removed = True
            else:
                start += chunk
        if chunk > 1:
            chunk = max(1, chunk // 2)
        elif not removed:
            break
    for simpler in (
        [dataclasses.replace(item, connection=0) for item in items],
        [dataclasses.replace(item, pipeline=i) for i, item in enumerate(items)],
        [dataclasses.replace(item, connection=0, pipeline=i) for i, item in enumerate(items)],
    ):
        if fails(simpler):
            items = simpler
    items = _without_each(items, fails)
    for i in range(len(items)):
        for smaller in _simpler(items[i].args):
            part = items[:i] + [dataclasses.replace(items[i], args=smaller)] + items[i + 1 :]
            if time.monotonic() > deadline:
                return items
            if fails(part):
                items = part
                break
    return items


def _without_each(items, fails):
    for i in range(len(items) - 1, -1, -1):
        part = items[:i] + items[i + 1 :]
        if part and fails(part):
            items = part
    return items


def _simpler(args):
    """Shorter arguments. None is left out: that would most often only exchange one error for another."""
    for at in range(1, len(args)):
        if len(args[at]) > 8:
            for length in (1, 8, len(args[at]) // 2):
                yield args[:at] + [args[at][:length]] + args[at + 1 :]


def describe(items):
    """The items for a person: pipelines are set apart, connections are named when there are two."""
    lines = []
    several = len({item.connection for item in items}) > 1
    for number, ((_, which), group) in enumerate(
        itertools.groupby(items, lambda item: (item.pipeline, item.connection))
    ):
        group = list(group)
        for item in group:
            mark = f"[connection {which}] " if several else ""
            mark += f"[pipeline {number}] " if len(group) > 1 else ""
            lines.append(f"  {mark}{item}")
    return "\n".join(lines)


def check(seed, items, oracle, subject, reduce=lambda items, fails: items, tell=describe, limit=90.0):
    """Fails when the two differ, and says what the least is that shows it. reduce: makes that smaller still."""

    def fails(part):
        if not subject.alive:
            subject.process = None
            subject.start()
        return run(part, oracle, subject)

    found = fails(items)
    if found is None:
        return
    crashed = not subject.alive
    least = reduce(shrink(items[: found.position + 1], fails, limit), fails)
    again = fails(least) or found
    pytest.fail(
        f"seed {seed}: {subject.name} {'crashed' if crashed else 'differs'} at command {found.position}: {found.text}\n\n"
        f"{len(least)} commands that show it:\n{tell(least)}\n\n{again.text}",
        pytrace=False,
    )
