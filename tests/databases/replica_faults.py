"""What happens to replicas, to their primary and to what is between them and Larders, while clients read in every mode."""

import contextlib
import pathlib
import subprocess
import time

from harness.databases import QueryError
from harness.http import HttpLarder
from harness.proxy import Proxy
from harness.resp import Closed

from .faults import Behind, Faults

HOUR_MS = 3_600_000
FAKETIME = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))  # Debian: faketime


class Stand:
    """Larders on a cluster of databases, each with a proxy of its own to every node. `failover`: their store is all nodes,
    and writes go to whichever is the primary."""

    def __init__(self, fleet, cluster, servers=2, options=((),), failover=False, **parameters):
        """`options`: those of the first server, of the second and so on, from the beginning when there are no more."""
        self.cluster = cluster
        self.data = cluster.data()
        self.ways = [[Proxy(node.port) for node in cluster.nodes] for _ in range(servers)]
        self.servers = []
        for i, ways in enumerate(self.ways):
            ports = [proxy.port for proxy in ways]
            behind = Behind(self.data, cluster.url_at(self.data.name, *(ports if failover else ports[:1]), **parameters))
            replicas = [w for port in ports[1:] for w in ("--replica", cluster.url_at(self.data.name, port, **parameters))]
            more = ["--store-timeout", "3s", *replicas, *options[i % len(options)]]
            self.servers.append(fleet.new(HttpLarder, *more, data=behind).start())

    @property
    def proxies(self):
        """Those to the primary."""
        number = self.cluster.nodes.index(self.cluster.primary)
        return [ways[number] for ways in self.ways]

    @property
    def to_replicas(self):
        number = self.cluster.nodes.index(self.cluster.primary)
        return [way for ways in self.ways for i, way in enumerate(ways) if i != number]

    @property
    def database(self):
        return self.cluster.primary

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()
        for ways in self.ways:
            for proxy in ways:
                proxy.close()


class ReplicaFaults(Faults):
    def be_brief(self):
        """Some of all, one soon after the other."""
        self.held, self.between, self.most = (0.1, 0.6), (0.0, 0.1), 6

    # --- Larders, and the way to their databases

    def cut_replica(self, r):
        r.choice(self.site.to_replicas).tell("cut")

    def _replica_for_a_while(self, mode, r):
        proxy = r.choice(self.site.to_replicas)
        proxy.tell(mode)
        time.sleep(r.uniform(*self.held))
        proxy.tell("cut")

    def stall_replica(self, r):
        self._replica_for_a_while("stall", r)

    def deafen_replica(self, r):
        self._replica_for_a_while("deaf", r)

    def refuse_replica(self, r):
        self._replica_for_a_while("refuse", r)

    def no_replica_at_all(self, r):
        for proxy in self.site.to_replicas:
            proxy.tell("refuse")
        time.sleep(r.uniform(*self.held))
        for proxy in self.site.to_replicas:
            proxy.tell("pass")

    def jump_clock(self, r):
        """A server's clock is an hour ahead for a while."""
        server = r.choice(self.site.servers)
        with contextlib.suppress(Closed, OSError), server.connect() as c:
            c("DEBUG", "CLOCK", f"+{HOUR_MS}")
            time.sleep(r.uniform(*self.held))
            c("DEBUG", "CLOCK", "REAL")

    # --- databases

    def some_replica(self, r):
        return r.choice([i for i, node in enumerate(self.site.cluster.replicas) if node is not self.site.cluster.primary])

    def pause_replay(self, r):
        i = self.some_replica(r)
        self.site.cluster.pause(i)
        time.sleep(r.uniform(*self.held))
        self.site.cluster.resume(i)

    def pause_replay_of_all(self, r):
        cluster = self.site.cluster
        followers = [i for i, node in enumerate(cluster.replicas) if node is not cluster.primary]
        for i in followers:
            cluster.pause(i)
        time.sleep(r.uniform(*self.held))
        for i in followers:
            cluster.resume(i)

    def delay_replay(self, r):
        i = self.some_replica(r)
        self.site.cluster.delay(i, 1000)
        time.sleep(r.uniform(*self.held))
        self.site.cluster.delay(i, 0)

    def cut_link(self, r):
        """It answers, and gets nothing new; nobody tells."""
        link = self.site.cluster.link(self.some_replica(r))
        link.tell(r.choice(["refuse", "stall"]))
        time.sleep(r.uniform(*self.held))
        link.tell("cut")

    def kill_replica(self, r):
        i = self.some_replica(r)
        self.site.cluster.kill(i)
        time.sleep(r.uniform(0, 0.5))
        self.site.cluster.restart(i)

    def rebuild_replica(self, r):
        self.site.cluster.rebuild(self.some_replica(r))

    def freeze_replica(self, r):
        i = self.some_replica(r)
        self.site.cluster.freeze(i)
        time.sleep(r.uniform(*self.held))
        self.site.cluster.thaw(i)

    def wrong_clock(self, r):
        """A replica whose clock is an hour ahead, or behind."""
        i = self.some_replica(r)
        cluster, node = self.site.cluster, self.site.cluster.replicas[i]
        fake = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": r.choice(["+1h", "-1h"]), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        for env in (fake, {}):
            node.env = env
            cluster.kill(i)
            cluster.restart(i)
            time.sleep(r.uniform(*self.held))

    def end_replica_sessions(self, r):
        with contextlib.suppress(QueryError, subprocess.TimeoutExpired):
            self.site.cluster.replicas[self.some_replica(r)].end_sessions()

    SERVER = [
        Faults.kill_server, Faults.freeze_server, Faults.cut, Faults.stall, cut_replica, stall_replica, deafen_replica,
        refuse_replica, no_replica_at_all, jump_clock,
    ]  # fmt: skip
    DATABASE = [
        pause_replay, pause_replay_of_all, delay_replay, cut_link, kill_replica, rebuild_replica, freeze_replica, wrong_clock,
        end_replica_sessions, Faults.freeze_database, Faults.kill_database,
    ]  # fmt: skip

