"""Transcripts: files of commands that run on two servers, whose replies must be the same byte for byte.

One command a line, quoted as redis-cli quotes: "..." with \\xNN \\n \\r \\t \\a \\b \\\\ \\" and '...' with \\'.
Blank lines and lines that begin with # are skipped. A line that begins with @ is a directive:

    @unordered            the next reply's aggregates are compared as multisets
    @shape                of the next reply only types and the lengths of aggregates are compared
    @ignore               the next command runs, its reply is not compared
    @config name value    CONFIG SET on both servers, undone at the end of the file
    @reconnect            a new connection on both
    @raw "bytes"          sends the bytes as they are; what comes back is compared, and whether the server closed

A connection that was closed by the server is opened again for the next line. At the end of a file everything in
both servers is compared.
"""

import dataclasses
import pathlib

from . import compare
from .resp import Closed, Reply, encode, show

RULES = {"unordered": compare.unordered, "shape": compare.shape, "ignore": compare.ignore}
ESCAPES = {ord("n"): b"\n", ord("r"): b"\r", ord("t"): b"\t", ord("a"): b"\a", ord("b"): b"\b"}
# How long the oracle may take before a command counts as one without a reply.
SILENCE = 20.0


class ParseError(Exception):
    """A line that is not a transcript's."""


class Difference(AssertionError):
    """The servers disagree."""


def split(line):
    """A line's arguments, as redis-cli reads them."""
    args = []
    i = 0
    while True:
        while i < len(line) and line[i : i + 1].isspace():
            i += 1
        if i == len(line):
            return args
        arg = bytearray()
        quote = None
        while True:
            char = line[i : i + 1]
            if quote and not char:
                raise ParseError("a quote is not closed")
            if quote == b'"' and char == b"\\":
                digits = line[i + 2 : i + 4]
                if line[i + 1 : i + 2] == b"x" and len(digits) == 2 and all(d in b"0123456789abcdefABCDEF" for d in digits):
                    arg.append(int(digits, 16))
                    i += 4
                    continue
                if i + 1 == len(line):
                    raise ParseError("a quote is not closed")
                arg += ESCAPES.get(line[i + 1], line[i + 1 : i + 2])
                i += 2
                continue
            if quote == b"'" and line[i : i + 2] == b"\\'":
                arg += b"'"
                i += 2
                continue
            if quote and char == quote:
                i += 1
                if i < len(line) and not line[i : i + 1].isspace():
                    raise ParseError("text directly behind a closing quote")
                break
            if not quote:
                if not char or char.isspace():
                    break
                if char in b"\"'":
                    quote = char
                    i += 1
                    continue
            arg += char
            i += 1
        args.append(bytes(arg))


@dataclasses.dataclass
class Step:
    """One line that does something."""

    line: int
    text: str
    action: str  # command, raw, config, reconnect
    args: list
    rule: object = compare.exact


def parse(text, name="transcript"):
    steps = []
    rule = None
    for number, line in enumerate(text.split(b"\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith(b"#"):
            continue
        try:
            args = split(stripped)
        except ParseError as e:
            raise ParseError(f"{name}:{number}: {e}: {show(stripped)}") from None
        shown = stripped.decode("utf-8", "backslashreplace")
        if not stripped.startswith(b"@"):
            steps.append(Step(number, shown, "command", args, rule or compare.exact))
            rule = None
            continue
        word = args[0][1:].decode()
        if rule is not None:
            raise ParseError(f"{name}:{number}: a directive must be followed by its command, not by @{word}")
        if word in RULES and len(args) == 1:
            rule = RULES[word]
        elif word == "config" and len(args) == 3 or word == "reconnect" and len(args) == 1:
            steps.append(Step(number, shown, word, args[1:]))
        elif word == "raw" and len(args) == 2:
            steps.append(Step(number, shown, word, args[1:]))
        else:
            raise ParseError(f"{name}:{number}: no such directive: {shown}")
    if rule is not None:
        raise ParseError(f"{name}: a directive at the end without its command")
    return steps


CLOSED = Reply(b"", b"", b"(connection closed)")


class Side:
    """One of the two servers during a run."""

    def __init__(self, server, resp):
        self.server = server
        self.resp = resp
        self.connection = None
        self.control = server.connect()  # authenticated, whatever a file does to requirepass
        self.config_before = {}

    def connect(self):
        if self.connection:
            self.connection.close()
        self.connection = self.server.connect()
        if self.resp == 3:
            reply = self.connection.call("HELLO", "3")
            ok = not reply.is_error or reply.value.startswith(b"NOAUTH")
            assert ok, f"{self.server.name}: HELLO 3: {reply!r}"

    def send(self, data):
        try:
            self.connection.send(data)
        except Closed:
            pass  # the read will tell

    def read(self):
        try:
            return self.connection.read()
        except Closed:
            return CLOSED

    def settle(self, sent):
        """Returns when a server that handles its ready connections in turns must have handled `sent` bytes."""
        for _ in range(4 + sent // 4096):
            self.control.call("PING")

    def set_config(self, name, value):
        self.config_before.setdefault(name, self.control("CONFIG", "GET", name)[1])
        reply = self.control.call("CONFIG", "SET", name, value)
        assert not reply.is_error, f"{self.server.name}: CONFIG SET {name!r} {value!r}: {reply!r}"

    def restore_config(self):
        while self.config_before:
            self.control("CONFIG", "SET", *self.config_before.popitem())

    def close(self):
        self.restore_config()
        self.control.close()
        if self.connection:
            self.connection.close()


def _command(step, oracle, subject):
    data = encode(step.args)
    for side in (oracle, subject):
        side.send(data)
    oracle.connection.socket.settimeout(SILENCE)
    try:
        expected = oracle.read()
    except TimeoutError:
        raise ParseError(f"{oracle.server.name} answers nothing: {step.text} (send it with @raw)") from None
    actual = subject.read()
    for side, reply in ((oracle, expected), (subject, actual)):
        if reply is CLOSED:
            side.connect()
    if (expected is CLOSED) != (actual is CLOSED):
        return expected.raw, actual.raw
    return None if step.rule(expected, actual) else (expected.raw, actual.raw)


def _raw(step, oracle, subject):
    data = step.args[0]
    for side in (oracle, subject):
        side.send(data)
    oracle.settle(len(data))
    expected, closed = oracle.connection.read_available(0.02)
    actual, subject_closed = subject.connection.read_bytes(len(expected), closed)
    if not subject_closed:
        subject.settle(len(data))
        more, subject_closed = subject.connection.read_available(0.02)
        actual += more
    for side, ended in ((oracle, closed), (subject, subject_closed)):
        if ended:
            side.connect()
    if (expected, closed) == (actual, subject_closed):
        return None
    end = {True: b" (closed)", False: b" (stays open)"}
    return expected + end[closed], actual + end[subject_closed]


def run(path, oracle_server, subject_server, resp):
    """Runs a file on both servers; Difference names everything that was not the same."""
    path = pathlib.Path(path)
    steps = parse(path.read_bytes(), path.name)
    found = []
    for server in (oracle_server, subject_server):
        with server.connect() as c:
            c("FLUSHALL")
    sides = oracle, subject = Side(oracle_server, resp), Side(subject_server, resp)
    names = tuple(side.server.name for side in sides)
    try:
        for side in sides:
            side.connect()
        for step in steps:
            different = None
            if step.action == "command":
                different = _command(step, oracle, subject)
            elif step.action == "raw":
                different = _raw(step, oracle, subject)
            elif step.action == "reconnect":
                for side in sides:
                    side.connect()
            elif step.action == "config":
                for side in sides:
                    side.set_config(*step.args)
            if different:
                found.append(
                    f"{path.name}:{step.line}: {step.text}\n"
                    f"  {names[0]}: {show(different[0], 1200)}\n  {names[1]}: {show(different[1], 1200)}"
                )
        for side in sides:
            side.restore_config()
        found += [
            f"{path.name}: at the end, {line}"
            for line in compare.different_contents(*(compare.contents(s.server) for s in sides), names)
        ]
    finally:
        for side in sides:
            side.close()
    if found:
        more = f"\n... and {len(found) - 40} more" if len(found) > 40 else ""
        raise Difference(f"RESP{resp}, {len(found)} differences:\n" + "\n".join(found[:40]) + more)
