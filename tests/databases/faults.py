"""What happens to servers and databases while they are at work. Each fault is done, held for a while, and undone."""

import os
import random
import threading
import time

from harness import wait
from harness.processes import family, freeze
from harness.proxy import Proxy
from harness.servers import StartError

HELD = (0.2, 1.5)  # seconds
ONLY = os.environ.get("LARDER_HOSTILE_FAULTS", "").split()  # names, in the place of all


class Site:
    """A database server of its own and some Larders on it, each behind a proxy of its own."""

    def __init__(self, fleet, database, data, servers, options=(), **parameters):
        self.database = database
        self.proxies = [Proxy(database.port) for _ in range(servers)]
        self.servers = []
        for proxy in self.proxies:
            url = database.url(data.name, tcp=True, **parameters)
            behind = Behind(data, url.replace(f":{database.port}/", f":{proxy.port}/"))
            self.servers.append(fleet.larder("--store-timeout", "3s", *options, data=behind))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Servers that are left are ended before the way to their database."""
        for server in self.servers:
            server.kill()
        for proxy in self.proxies:
            proxy.close()


class Behind:
    """A store as it is seen through a proxy."""

    def __init__(self, data, url):
        self.kind = data.kind
        self.url = url
        self.query = data.query


def start_again(server):
    """Starts it, however often that takes: its database may be away."""

    def started():
        try:
            return server.start()
        except StartError:
            server.process = None
            return None

    wait.until(started, "a server starts again", 120, 0.1)


def wanted(faults):
    return [fault for fault in faults if not ONLY or fault.__name__ in ONLY]


class Faults:
    """Two threads: one for Larders and their connections, one for the database. They do everything once, in an order of
    their own, and again until the time is over. What they started ends with them, so they stay until close()."""

    def __init__(self, site, seed, seconds):
        self.site = site
        self.seconds = seconds
        self.held, self.between, self.most = HELD, (0.1, 1.0), None  # seconds, faults of each thread in a round
        self.random = random.Random(seed)
        self.problems = []
        self.done = []
        self.ended = threading.Semaphore(0)
        self.closing = threading.Event()
        self.threads = [
            threading.Thread(target=self._run, args=(wanted(faults), random.Random(self.random.random())), daemon=True)
            for faults in (self.SERVER, self.DATABASE)
        ]

    def run(self):
        """Returns when all is well again."""
        self.until = time.monotonic() + self.seconds
        for thread in self.threads:
            thread.start()
        for _ in self.threads:
            assert self.ended.acquire(timeout=self.seconds + 300), "a fault hangs"
        if self.problems:
            raise self.problems[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()

    def _run(self, faults, r):
        try:
            while not self.problems:
                r.shuffle(faults)
                for fault in faults[: self.most]:
                    time.sleep(r.uniform(*self.between))
                    fault(self, r)
                    self.done.append(fault.__name__)
                if time.monotonic() > self.until:
                    break
        except BaseException as e:  # noqa: BLE001
            self.problems.append(e)
        self.ended.release()
        self.closing.wait()

    # --- Larders

    def kill_server(self, r):
        server = r.choice(self.site.servers)
        server.kill()
        time.sleep(r.uniform(0, 0.3))
        start_again(server)

    def freeze_server(self, r):
        freeze([r.choice(self.site.servers).pid], r.uniform(*self.held))

    def cut(self, r):
        for proxy in r.sample(self.site.proxies, r.randint(1, len(self.site.proxies))):
            proxy.tell("cut")

    def stall(self, r):
        self._for_a_while("stall", r)

    def deafen(self, r):
        self._for_a_while("deaf", r)

    def refuse(self, r):
        self._for_a_while("refuse", r)

    def _for_a_while(self, mode, r):
        proxy = r.choice(self.site.proxies)
        proxy.tell(mode)
        time.sleep(r.uniform(*self.held))
        proxy.tell("cut")  # what a deaf one missed is lost, and what stalled goes no further

    def resume(self, r):
        proxy = r.choice(self.site.proxies)
        proxy.tell("stall")
        time.sleep(r.uniform(*self.held))
        proxy.tell("pass")

    # --- the database

    def stop_database(self, r):
        self._restart(self.site.database.stop, r)

    def stop_database_at_once(self, r):
        self._restart(self.site.database.stop_at_once, r)

    def kill_database(self, r):
        self._restart(self.site.database.kill, r)

    def _restart(self, end, r):
        end()
        time.sleep(r.uniform(0, 0.5))
        self.site.database.start()

    def freeze_database(self, r):
        freeze(family(self.site.database.process.pid), r.uniform(*self.held))

    def end_sessions(self, _):
        """As an administrator does, or a pooler that has had enough."""
        self.site.database.end_sessions()

    SERVER = [kill_server, kill_server, freeze_server, cut, stall, resume, deafen, refuse]
    DATABASE = [stop_database, stop_database_at_once, kill_database, freeze_database, end_sessions, end_sessions]
