#!/usr/bin/python3
"""A database server with replicas, for the tests: a PostgreSQL primary with streaming standbys, a MariaDB primary with
GTID replicas, both with one interface.

Every replica follows the primary through a proxy of its own (`links`), so that what was acknowledged can be kept from it;
Larder reaches any node directly, or through a proxy of its own (`way`), which can be cut alone. The nodes are real servers
(databases.py). A replica is named by its number in `replicas`, which it keeps when it becomes the primary.

As a program it runs a command beside them: LARDER_TEST_STORE, LARDER_TEST_URL, and LARDER_TEST_REPLICAS (URLs, with
blanks between them).

    replicas.py postgres|mariadb COUNT COMMAND...
"""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import databases, processes, store, wait  # noqa: E402
from harness.proxy import Proxy  # noqa: E402

FOLLOW_LIMIT = 30.0


class Cluster:
    """A primary and its replicas. Subclasses say what a replica is."""

    kind = None
    user = None  # may write where the server lets everybody write, and may not where it is read-only

    def __init__(self, replicas=1, *, durable=False, settings=None):
        """`settings` are more of those that the configuration of all nodes has."""
        self.nodes = [databases.KINDS[self.kind](durable, {**self.common, **(settings or {})}) for _ in range(replicas + 1)]
        self.first, *self.replicas = self.nodes
        self.primary = self.first
        self.links, self.ways, self.frozen = {}, {}, {}

    def start(self):
        self.begin()
        for i, replica in enumerate(self.replicas):
            self.links[replica] = Proxy(self.primary.port)
            self.copy(replica)
            self._follow(i)
        self.follow()
        return self

    def remove(self):
        for node in list(self.frozen):
            self.thaw(node)
        for proxy in [*self.links.values(), *self.ways.values()]:
            proxy.close()
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

    # --- where they are

    def data(self, **options):
        """A new database on the primary; the replicas have it, too."""
        data = store.KINDS[self.kind](on=self.primary)
        data.url = self.url(data.name, **options)
        self.follow()
        return data

    def url(self, name, *nodes, through=False, **options):
        """The nodes' URL for a store: all of them unless some are given, so that a failover is followed. `through`: on the
        ways that can be cut."""
        return self.url_at(name, *((self.way(n) if through else n).port for n in nodes or self.nodes), **options)

    def url_at(self, name, *ports, **options):
        """The same on these ports, which lead to nodes."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        one = self.first.url(name, user=self.user, tcp=True, **options)
        return one.replace(f"127.0.0.1:{self.first.port}", hosts)

    def replica_options(self, name, through=False):
        """What a Larder is started with to read from every replica."""
        return [word for r in self.replicas for word in ("--replica", self.url(name, r, through=through))]

    def way(self, node):
        """The proxy between Larders and this node."""
        node = self._node(node)
        if node not in self.ways:
            self.ways[node] = Proxy(node.port)
        return self.ways[node]

    def link(self, i):
        """The proxy between this replica and its primary: "refuse" keeps what is written from it, "pass" ends that."""
        return self.links[self._node(i)]

    def _node(self, which):
        return self.replicas[which] if isinstance(which, int) else which

    # --- what happens to them

    def follow(self, *which, limit=FOLLOW_LIMIT):
        """Waits until replicas (all, unless some are given) have everything that the primary has acknowledged."""
        target = self.position(self.primary)
        for i in which or [i for i, r in enumerate(self.replicas) if r is not self.primary]:
            try:
                wait.until(lambda: self.reached(i, target), f"replica {i} of {self.kind} follows", limit)
            except AssertionError as e:
                raise AssertionError(f"{e}\n{self._node(i).log_path.read_text(errors='replace')[-3000:]}") from None

    def kill(self, i):
        """kill -9, as a crash; start() of the node brings it back as it was."""
        self._node(i).kill()

    def restart(self, i):
        self._node(i).start()

    def freeze(self, i):
        """SIGSTOP of all its processes: it hangs, and its connections stay open."""
        node = self._node(i)
        self.frozen[node] = processes.family(node.process.pid)
        processes.stop(self.frozen[node])

    def thaw(self, i):
        processes.go_on(self.frozen.pop(self._node(i)))

    def rebuild(self, i):
        """Throws a node's data away and makes a replica of the primary out of it: a former primary, too."""
        node = self._node(i)
        node.kill()
        shutil.rmtree(node.home)
        if node not in self.replicas:
            self.replicas.append(node)
        if node not in self.links:
            self.links[node] = Proxy(self.primary.port)
        self.copy(node)
        self._follow(self.replicas.index(node))

    def promote(self, i):
        """This replica is the primary from now on, whatever has become of the last one; the others follow it, as far as
        they can: one that has more than it is to be rebuilt."""
        node = self._node(i)
        former, self.primary = self.primary, node
        self.take_over(node)
        for replica in self.replicas:
            if replica is not node:
                self.links[replica].tell(f"to {node.port}")
        return former


class PostgresCluster(Cluster):
    kind = "postgres"
    user = "larder"
    common = {
        "wal_keep_size": "1GB", "wal_retrieve_retry_interval": "100ms", "wal_receiver_status_interval": "1s",
        "hot_standby_feedback": "on", "wal_sender_timeout": "5s", "wal_receiver_timeout": "5s",
    }  # fmt: skip

    def begin(self):
        self.first.start()

    def copy(self, node):
        node.run(
            f"{node.programs}/pg_basebackup", "-h", str(self.primary.folder), "-p", str(self.primary.port), "-U", "larder",
            "-D", str(node.home), "-X", "stream", "-c", "fast", "--no-sync",
        )  # fmt: skip
        (node.home / "standby.signal").touch()
        node.settings["primary_conninfo"] = (
            f"host=127.0.0.1 port={self.links[node].port} user=larder application_name=node{self.nodes.index(node)}"
        )

    def _follow(self, i):
        node = self.replicas[i]
        self.links[node].tell(f"to {self.primary.port}")
        node.start()

    def position(self, i):
        """A number that grows: what a replica has replayed, what the primary has made durable."""
        now = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END"
        return int(self._node(i).query(f"SELECT ({now}) - '0/0'::pg_lsn")[0][0])

    def reached(self, i, position):
        return self.position(i) >= position

    def pause(self, i):
        """Returns when nothing is replayed any more; what the primary writes still arrives."""
        node = self._node(i)
        node.query("SELECT pg_wal_replay_pause()")
        wait.until(lambda: node.query("SELECT pg_get_wal_replay_pause_state()") == [["paused"]], "replay pauses")

    def resume(self, i):
        self._node(i).query("SELECT pg_wal_replay_resume()")

    def delay(self, i, milliseconds):
        """From now on it replays everything so much later; 0: at once."""
        self._node(i).query(f"ALTER SYSTEM SET recovery_min_apply_delay = {milliseconds};\nSELECT pg_reload_conf()")

    def take_over(self, node):
        assert node.query("SELECT pg_promote(true, 60)") == [["t"]]


class MariaCluster(Cluster):
    """A replica begins with what the primary began with, and replays its whole binary log."""

    kind = "mariadb"
    user = "app"
    common = {
        "log-bin": "binlog", "log-slave-updates": 1, "gtid-strict-mode": 1, "relay-log-recovery": 1, "slave-net-timeout": 5,
        "log-bin-trust-function-creators": 1, "innodb-buffer-pool-size": "32M",
    }  # fmt: skip

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.numbers = itertools.count(1)
        self.first.settings["server-id"] = next(self.numbers)
        self.empty = self.first.folder / "empty"

    def begin(self):
        self.first.create()
        self._duplicate(self.first.home, self.empty)
        self.first.start()
        self.first.query(
            "CREATE USER app@'127.0.0.1'; GRANT ALL ON *.* TO app@'127.0.0.1';"
            "REVOKE SUPER, READ_ONLY ADMIN ON *.* FROM app@'127.0.0.1'"
        )

    @staticmethod
    def _duplicate(source, target):
        subprocess.run(["cp", "-a", "--sparse=always", source, target], check=True)

    def copy(self, node):
        """With a number of its own, a former primary too: a replica skips what has its own number in the log."""
        self._duplicate(self.empty, node.home)
        node.settings["server-id"] = next(self.numbers)
        node.settings["read-only"] = 1

    def _follow(self, i):
        node = self.replicas[i]
        self.links[node].tell(f"to {self.primary.port}")
        node.start()
        node.query(
            f"CHANGE MASTER TO master_host = '127.0.0.1', master_port = {self.links[node].port}, master_user = 'root',"
            "master_use_gtid = slave_pos, master_connect_retry = 1, master_heartbeat_period = 1; START SLAVE"
        )

    def position(self, i):
        """A GTID position: what a replica has replayed, what the primary has committed."""
        return self._node(i).query("SELECT @@gtid_current_pos")[0][0] or ""

    def reached(self, i, position):
        return self._node(i).query(f"SELECT master_gtid_wait('{position}', 0)") == [["0"]]

    def pause(self, i):
        self._node(i).query("STOP SLAVE SQL_THREAD")

    def resume(self, i):
        self._node(i).query("START SLAVE SQL_THREAD")

    def delay(self, i, milliseconds):
        """In whole seconds, rounded up."""
        seconds = -(-milliseconds // 1000)
        self._node(i).query(f"STOP SLAVE; CHANGE MASTER TO master_delay = {seconds}; START SLAVE")

    def take_over(self, node):
        """What has arrived is replayed first, as PostgreSQL does."""
        node.query("STOP SLAVE IO_THREAD; START SLAVE SQL_THREAD")
        wait.until(lambda: self._replayed(node), "what has arrived is replayed", FOLLOW_LIMIT)
        node.settings["read-only"] = 0
        node.query("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0")

    @staticmethod
    def _replayed(node):
        state = node.query("SELECT state FROM information_schema.processlist WHERE command = 'Slave_SQL'")
        return [words[0][:30] for words in state] == ["Slave has read all relay log; "]


KINDS = {"postgres": PostgresCluster, "mariadb": MariaCluster}


def main(argv):
    if len(argv) < 3 or argv[0] not in KINDS or not argv[1].isdecimal():
        print(__doc__, file=sys.stderr)
        return 2
    with KINDS[argv[0]](int(argv[1])) as cluster:
        data = cluster.data()
        urls = " ".join(cluster.url(data.name, r) for r in cluster.replicas)
        more = {"LARDER_TEST_STORE": argv[0], "LARDER_TEST_URL": data.url, "LARDER_TEST_REPLICAS": urls}
        return subprocess.run(argv[2:], env={**os.environ, **more}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
