"""A Galera cluster for the tests: MariaDB nodes from Debian's packages, each a process of its own on free ports of
127.0.0.1.

All nodes begin with a copy of the same tables and the same place in the cluster's history, so that none needs a state
transfer to join at first. One that was killed finds out where it stood and gets what it missed from another's memory
(IST), or all tables over rsync (SST) when that does not reach back far enough."""

import contextlib
import os
import re
import shutil
import subprocess
import time

from . import databases, wait

SYNCED = "4"
ALONE = 20.0  # seconds after which a cluster does not come back by itself any more
# A node that does not answer leaves the cluster after about four seconds, not after fifteen as by default.
PROVIDER = {
    "gcache.size": "64M",
    "evs.keepalive_period": "PT0.2S",
    "evs.inactive_check_period": "PT0.2S",
    "evs.suspect_timeout": "PT2S",
    "evs.inactive_timeout": "PT4S",
    "evs.install_timeout": "PT4S",
    "gmcast.peer_timeout": "PT1S",
    "pc.announce_timeout": "PT1S",
    "gcs.fc_limit": "64",
}


class Node(databases.MariaDB):
    """One node. `cluster` knows the others."""

    kind = "galera"

    def __init__(self, cluster, number, settings=None):
        super().__init__(settings=settings)
        self.cluster = cluster
        self.number = number
        self.group = databases.free_port()
        self.transfer = databases.free_port()
        self.state = databases.free_port()
        self.bootstrap = False
        self.position = None

    def create(self):
        """The first node makes the tables and the cluster's history; the others get a copy of both."""
        first = self.cluster.nodes[0]
        if self is first:
            super().create()
            return
        shutil.copytree(first.home, self.home)
        if os.getuid() == 0:
            for path in [self.home, *self.home.rglob("*")]:
                shutil.chown(path, self.user)

    def argv(self):
        provider = {
            **PROVIDER,
            "gmcast.listen_addr": f"tcp://127.0.0.1:{self.group}",
            "ist.recv_addr": f"127.0.0.1:{self.transfer}",
            **self.cluster.provider,
        }
        settings = {
            "wsrep-on": "ON", "wsrep-provider": "/usr/lib/galera/libgalera_smm.so", "binlog-format": "ROW",
            "innodb-autoinc-lock-mode": 2, "wsrep-cluster-name": self.cluster.name,
            "wsrep-cluster-address": "gcomm://" + ("" if self.bootstrap else self.cluster.addresses(self)),
            "wsrep-node-address": f"127.0.0.1:{self.group}", "wsrep-node-name": f"node{self.number}",
            "wsrep-sst-method": "rsync", "wsrep-sst-receive-address": f"127.0.0.1:{self.state}",
            "wsrep-provider-options": ";".join(f"{k}={v}" for k, v in provider.items()), "wsrep-slave-threads": 2,
            "innodb-buffer-pool-size": "32M", "innodb-log-file-size": "16M",
        }  # fmt: skip
        more = [f"--{name}={value}" for name, value in settings.items()]
        if self.position:
            more.append(f"--wsrep-start-position={self.position}")
        plain = super().argv()
        own = len(self.settings)  # they come last, and win
        return [*plain[: len(plain) - own], *more, *plain[len(plain) - own :]]

    def spawn(self):
        saved = self.home / "grastate.dat"
        if saved.exists() and "seqno:   -1" in saved.read_text():
            self.position = self.recovered()
        super().spawn()
        self.position = None

    def recovered(self):
        """Where a node that was killed stood."""
        done = subprocess.run(
            [*self.argv(), "--wsrep-recover", f"--log-error={self.folder}/recover.log"],
            cwd=self.folder, capture_output=True, env=self.environment(), timeout=60,
            user=self.user if os.getuid() == 0 else None,
        )  # fmt: skip
        text = (self.folder / "recover.log").read_text(errors="replace")
        found = re.findall(r"Recovered position: (\S+)", text)
        assert done.returncode == 0 and found, text[-3000:]
        return found[-1]

    def answers(self, size=None):
        """It belongs to the cluster, which has so many nodes."""
        with contextlib.suppress(databases.QueryError, subprocess.TimeoutExpired):
            told = dict(self.query("SHOW STATUS LIKE 'wsrep%'", timeout=5))
            well = told["wsrep_local_state"] == SYNCED and told["wsrep_ready"] == "ON"
            alone = told["wsrep_cluster_status"] != "Primary" or (size and told["wsrep_cluster_size"] != str(size))
            return well and not alone
        return False

    def status(self, name):
        return self.query(f"SHOW STATUS LIKE '{name}'")[0][1]

    def isolate(self, on=True):
        """Cuts it off from the others, or ends that; clients still reach it."""
        self.query(f"SET GLOBAL wsrep_provider_options = 'gmcast.isolate={int(on)}'", timeout=30)


class Cluster:
    """Some nodes; the first one begins it."""

    def __init__(self, size=3, provider=None, settings=None):
        self.name = f"larder{os.getpid()}"
        self.provider = provider or {}
        self.nodes = [Node(self, i, settings) for i in range(size)]

    def addresses(self, node):
        return ",".join(f"127.0.0.1:{n.group}" for n in self.nodes if n is not node)

    def start(self):
        first, *others = self.nodes
        first.bootstrap = True
        first.start()
        first.stop()
        for node in others:
            node.create()
        first.start()
        first.bootstrap = False
        for node in others:
            node.port = databases.free_port()
            node.spawn()
        for node in others:
            wait.until(lambda: node.process.poll() is not None or node.answers(), "a node joins", databases.START_LIMIT)
            assert node.process.poll() is None, node.log_path.read_text(errors="replace")[-6000:]
        self.whole()
        return self

    def whole(self):
        """Waits until all nodes have found each other, and have all that the others have. When they have, and none of
        them belongs to a majority that goes on (a machine that is too busy can come to that), does what an administrator
        does then: the one that is ahead begins anew."""
        begun = time.monotonic()

        def is_whole():
            nonlocal begun
            if all(node.answers(len(self.nodes)) for node in self.nodes):
                return True
            if time.monotonic() > begun + ALONE:
                begun = time.monotonic()
                self.begin_anew()
            return False

        wait.until(is_whole, "the cluster is whole", 120, 0.1)

    def begin_anew(self):
        with contextlib.suppress(databases.QueryError, subprocess.TimeoutExpired):
            told = [dict(node.query("SHOW STATUS LIKE 'wsrep%'", timeout=5)) for node in self.nodes]
            if any(t["wsrep_cluster_status"] == "Primary" or t["wsrep_cluster_size"] != str(len(told)) for t in told):
                return
            ahead = max(range(len(told)), key=lambda i: int(told[i]["wsrep_last_committed"]))
            self.nodes[ahead].query("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")

    def new_database(self):
        return self.nodes[0].new_database()

    def url(self, name, first=0, **options):
        """Of all nodes, in this order."""
        nodes = self.nodes[first:] + self.nodes[:first]
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        return nodes[0].url(name, tcp=True, **options).replace(f"127.0.0.1:{nodes[0].port}", hosts)

    def remove(self):
        for node in self.nodes:
            node.kill()
            node.remove()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_):
        self.remove()
