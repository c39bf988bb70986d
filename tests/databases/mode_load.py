"""Clients that read in every mode, over both protocols, through several servers, and write down what they did and saw
(consistency.py judges it).

Each client writes keys of its own, so that the order of their values is certain, keys that all fight for, pairs that are
written in one transaction, and keys that nobody has asked for before; it reads everybody's. In session mode it also moves
to another server and takes its token along, hands tokens on and takes others'.
"""

import collections
import contextlib
import http.client
import itertools
import json
import random
import threading
import time

from harness.http import Http
from harness.resp import Closed, ServerError

from .consistency import Op, problems
from .linear import INFINITY
from .load import NOT_DONE

TIMEOUT = 60.0  # a command that is not answered for so long is a failure of the test
ERRORS = (*NOT_DONE, b"STALE ", b"UNCERTAIN ", b"LOSTWRITES ")
SHARED = [f"shared:{i}" for i in range(3)]
# What is always written together: its names in the history, the commands that write and the one that reads it.
Pair = collections.namedtuple("Pair", "keys write read")
PAIRS = [
    Pair(("pair:a", "pair:b"), lambda v: [("MULTI",), ("SET", "pair:a", v), ("SET", "pair:b", v), ("EXEC",)], ("MGET", "pair:a", "pair:b")),
    Pair(("hash:a", "hash:b"), lambda v: [("HSET", "hash", "a", v, "b", v)], ("HMGET", "hash", "a", "b")),
    Pair(("list:a", "list:b"), lambda v: [("MULTI",), ("DEL", "list"), ("RPUSH", "list", v, v), ("EXEC",)], ("LRANGE", "list", 0, -1)),
]
HTTP_ERRORS = {"too_stale": b"STALE ", "lost_writes": b"LOSTWRITES "}
HUGE = 1500  # commands


class Refused(Exception):
    """The server said no: an error's first word."""


class Lost(Exception):
    """The connection is gone: what was sent was done, or not."""


def classify(error):
    """An error that may be answered while things fail."""
    text = error.text
    assert text.startswith(ERRORS), f"answered {text!r}"
    return text.split(b" ", 1)[0].decode()


class RespWay:
    """A connection in a mode. `each`: the mode goes with every command rather than with the connection."""

    def __init__(self, server, mode, bound, token=None, each=False):
        try:
            self.connection = server.connect(timeout=TIMEOUT)
        except OSError as e:
            raise Lost(str(e)) from None
        words = [mode.upper(), *([bound] if mode == "bounded" else [])]
        self.prefix = ["LARDER.READ", *words] if each else []
        if mode == "eventual" and not each:
            self.must("READONLY")
        elif not each:
            self.must("LARDER.CONSISTENCY", *words)
        if token:
            self.must("LARDER.TOKEN", token)

    def must(self, *words):
        (value,) = self.all([words])
        if isinstance(value, ServerError):
            raise Refused(classify(value))
        return value

    def all(self, commands):
        """Values of all replies; errors among them."""
        try:
            return [reply.plain() for reply in self.connection.pipeline(commands)]
        except (Closed, OSError) as e:
            raise Lost(str(e)) from None

    def reading(self, *words):
        return [*self.prefix, *words]

    def token(self):
        return self.must("LARDER.TOKEN")

    def close(self):
        self.connection.close()


class HttpWay:
    """Requests that carry the mode in a header, and a token from each to the next."""

    def __init__(self, server, mode, bound, token=None):
        self.http = Http(server.http_port, timeout=TIMEOUT)
        self.mode = f"bounded={bound}" if mode == "bounded" else mode
        self.session = mode == "session"
        self.last = token

    def all(self, commands):
        return [self.one(words) for words in commands]

    def one(self, words):
        headers = {"Larder-Consistency": self.mode}
        if self.last and self.session:
            headers["Larder-Token"] = self.last
        try:
            answer = self.http("POST", "/", [w.decode() if isinstance(w, bytes) else str(w) for w in words], headers)
        except (OSError, http.client.HTTPException) as e:
            raise Lost(str(e)) from None
        document = json.loads(answer.body)
        if answer.status >= 400:
            name = HTTP_ERRORS.get(document["error"])
            return ServerError(name + b"(HTTP)" if name else document["error"].encode())
        self.last = answer.headers.get("Larder-Token") or self.last
        return plain(document["result"])

    def reading(self, *words):
        return words

    def token(self):
        return self.last

    def close(self):
        self.http.close()


def plain(result):
    """JSON as RESP has it."""
    if isinstance(result, list):
        return [plain(v) for v in result]
    return result.encode() if isinstance(result, str) else result


class Client:
    """One client: a thread that does one thing after the other."""

    def __init__(self, crowd, number, mode, bound, protocol):
        self.crowd = crowd
        self.number = number
        self.mode, self.bound, self.protocol = mode, bound, protocol
        self.random = random.Random(crowd.random.random())
        self.at = number
        self.values = itertools.count(1)
        self.ops, self.done = [], collections.Counter()
        self.way = self.token = None
        self.session = next(crowd.sessions)

    # --- connections and sessions

    def ready(self):
        if self.way is not None:
            return
        server = self.crowd.servers[self.at % len(self.crowd.servers)]
        if self.token is None:
            self.session = next(self.crowd.sessions)
        mode = "eventual" if self.crowd.careless else self.mode
        if self.protocol == "http":
            self.way = HttpWay(server, mode, self.bound, self.token and self.token[1])
        else:
            self.way = RespWay(server, mode, self.bound, self.token and self.token[1], self.protocol == "each")
        if self.token:
            self.join(self.token[0])

    def join(self, name):
        self.note("j", None, name, time.monotonic())

    def leave(self, remember=True):
        """After a failure the next command goes to another server; the session goes on from its last token."""
        if self.way is not None:
            self.way.close()
        self.way = None
        self.at += 1
        self.session = next(self.crowd.sessions)
        if not remember:
            self.token = None

    def take_token(self):
        """This client's token; others may get it, too."""
        token, name = self.way.token(), next(self.crowd.names)
        if token:
            self.note("t", None, name, time.monotonic())
            self.token = (name, token)
            self.crowd.tokens.append(self.token)

    def move(self):
        self.take_token()
        self.leave()

    def borrow(self):
        """Somebody else's token, on a connection that has seen things of its own, or a new one."""
        if not self.crowd.tokens:
            return
        token = self.random.choice(list(self.crowd.tokens))
        if self.protocol == "http":
            self.leave()
            self.token = token
        else:
            self.way.must("LARDER.TOKEN", token[1])
            self.join(token[0])

    # --- work

    def note(self, kind, key, value, start, end=None):
        self.ops.append(Op(start, end or time.monotonic(), kind, key, value, self.session, self.mode, self.bound))

    def new_value(self):
        return b"%d.%d" % (self.number, next(self.values))

    def some_key(self):
        others = [f"own:{i}" for i in range(len(self.crowd.clients))]
        return self.random.choice([*SHARED, *others, self.crowd.fresh_key(), self.crowd.fresh_key()])

    def a_write(self):
        key = self.random.choice([f"own:{self.number}", f"own:{self.number}", self.random.choice(SHARED), self.crowd.fresh_key()])
        return "w", key, self.new_value()

    def a_read(self):
        return "r", self.some_key(), None

    def do(self, plans):
        """Several commands at once, some ("w", key, value), some ("r", key, None)."""
        commands = [("SET", key, value) if kind == "w" else self.way.reading("GET", key) for kind, key, value in plans]
        start = time.monotonic()
        try:
            values = self.way.all(commands)
        except Lost:
            self.unknown(plans, start)
            raise
        end, failed = time.monotonic(), None
        for (kind, key, value), reply in zip(plans, values):
            if isinstance(reply, ServerError):
                failed = classify(reply)
                self.refused(kind, key, value, start, failed)
            else:
                self.done[kind] += 1
                self.note(kind, key, value if kind == "w" else reply, start, end)
        if failed:
            raise Refused(failed)

    def unknown(self, plans, start):
        for kind, key, value in plans:
            if kind == "w":
                self.note("w", key, value, start, INFINITY)

    def refused(self, kind, key, value, start, why):
        self.done[why] += 1
        if kind == "w":
            self.note("w" if why == "UNCERTAIN" else "f", key, value, start, INFINITY)

    def write_pair(self):
        pair, value, start = self.random.choice(PAIRS), self.new_value(), time.monotonic()
        plans = [("w", key, value) for key in pair.keys]
        try:
            last = self.way.all(pair.write(value))[-1]
        except Lost:
            self.unknown(plans, start)
            raise
        end = time.monotonic()
        error = next((v for v in (last if isinstance(last, list) else [last]) if isinstance(v, ServerError)), None)
        for kind, key, value in plans:
            if error is None:
                self.note(kind, key, value, start, end)
            else:
                self.refused(kind, key, value, start, classify(error))
        if error is not None:
            raise Refused(classify(error))

    def read_pair(self):
        pair, start = self.random.choice(PAIRS), time.monotonic()
        (reply,) = self.way.all([self.way.reading(*pair.read)])
        if isinstance(reply, ServerError):
            raise Refused(classify(reply))
        self.done["r"] += 1
        self.note("r", pair.keys, tuple(reply or (None, None)), start)

    def step(self):
        r = self.random.random()
        self.ready()
        if r < 0.25:
            self.do([self.a_write()])
        elif r < 0.70:
            self.do([self.a_read()])
        elif r < 0.80:
            self.do([self.a_write() if self.random.random() < 0.3 else self.a_read() for _ in range(self.random.randint(2, 30))])
        elif r < 0.83 and self.protocol != "http":
            self.write_pair()
        elif r < 0.92:
            self.read_pair()
        elif r < 0.921 and self.protocol != "http":
            self.do([self.a_read() for _ in range(HUGE)])
        elif self.mode == "session":
            (self.take_token if r < 0.94 else self.move if r < 0.97 else self.borrow)()

    def run(self):
        while not self.crowd.stopping:
            try:
                self.step()
            except Lost:
                self.done["lost"] += 1
                self.leave()
                time.sleep(0.01)
            except Refused as e:
                self.done[f"refused {e}"] += 1
                self.leave(remember=str(e) != "LOSTWRITES")
                time.sleep(0.01)
        if self.way is not None:
            self.way.close()


MODES = [
    ("strong", 0, "connection"), ("session", 0, "connection"), ("bounded", 500, "connection"), ("eventual", 0, "connection"),
    ("session", 0, "http"), ("bounded", 1500, "each"), ("session", 0, "each"), ("strong", 0, "http"),
    ("bounded", 700, "http"), ("session", 0, "connection"), ("eventual", 0, "http"), ("session", 0, "http"),
]  # fmt: skip


class ModeCrowd:
    """A client for each mode and way, or several."""

    def __init__(self, servers, times=1, seed=0, modes=MODES, careless=False):
        """`careless`: all read as eventual, whatever they say afterwards."""
        self.servers = servers
        self.careless = careless
        self.random = random.Random(seed)
        self.sessions, self.names = itertools.count(1), itertools.count(1)
        self.tokens = collections.deque(maxlen=20)
        self.began = time.monotonic()
        self.stopping = False
        self.wrong = []
        self.clients = []
        for number, (mode, bound, protocol) in enumerate(list(modes) * times):
            self.clients.append(Client(self, number, mode, bound, protocol))
        self.threads = [threading.Thread(target=self._run, args=(c,), daemon=True) for c in self.clients]

    def fresh_key(self):
        """Another one from time to time: it is asked for before it is written."""
        return f"fresh:{int((time.monotonic() - self.began) / 0.3)}"

    def _run(self, client):
        try:
            client.run()
        except Exception as e:  # noqa: BLE001
            self.wrong.append(e)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        for thread in self.threads:
            thread.join(2 * TIMEOUT)
        assert not any(thread.is_alive() for thread in self.threads), "a client hangs"

    def reads(self, mode=None):
        return sum(c.done["r"] for c in self.clients if mode in (None, c.mode))

    def sums(self):
        total = collections.Counter()
        for c in self.clients:
            total.update(c.done)
        return total

    def check(self, failover=None):
        """Raises what clients stumbled over, and the first promises that were broken."""
        with contextlib.suppress(IndexError):
            raise self.wrong[0]
        found = problems([op for c in self.clients for op in c.ops], failover)
        assert not found, f"{len(found)} broken promises:\n" + "\n".join(found[:10])

    def report(self):
        by_mode = collections.defaultdict(collections.Counter)
        for c in self.clients:
            by_mode[c.mode].update(c.done)
        return "; ".join(f"{mode} {dict(done)}" for mode, done in by_mode.items())
