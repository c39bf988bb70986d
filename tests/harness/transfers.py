"""Clients that move amounts from key to key, each transfer by one MULTI/EXEC: whatever state of the data one looks at,
the amounts add up to nothing."""

import contextlib
import random
import threading

from harness import resp

PREFIX = "amount:"
SUM = "SELECT sum(CAST(value AS DECIMAL(20))) FROM larder_strings WHERE {} LIKE 'amount:%'"  # the name of the key goes in


class Transfers:
    """Runs from __enter__ to __exit__. keys: there are so many; at_once: transfers in one go of a client."""

    def __init__(self, server, *, clients=3, keys=2000, at_once=40, seed=1):
        self.server, self.keys, self.at_once = server, keys, at_once
        self.random = [random.Random(seed + i) for i in range(clients)]
        self.done = 0  # that were acknowledged
        self.problems = []
        self.ending = threading.Event()
        self.lock = threading.Lock()

    def _transfer(self, r):
        a, b = r.sample(range(self.keys), 2)
        amount = r.randrange(1, 1000)
        return [("MULTI",), ("INCRBY", f"{PREFIX}{a}", -amount), ("INCRBY", f"{PREFIX}{b}", amount), ("EXEC",)]

    def _client(self, r):
        with contextlib.suppress(OSError, resp.Closed):  # the server may be killed
            with self.server.connect() as c:
                while not self.ending.is_set():
                    replies = c.pipeline([command for _ in range(self.at_once) for command in self._transfer(r)])
                    failed = [reply for reply in replies if reply.is_error]
                    with self.lock:
                        self.done += sum(not reply.is_error for reply in replies[3::4])
                        self.problems += failed[:1]

    def __enter__(self):
        self.threads = [threading.Thread(target=self._client, args=(r,)) for r in self.random]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()
