#!/usr/bin/python3
"""Kills servers and databases under load, and compares what is there afterwards with what clients were told.

    run.py [--kills 1000] [--seconds 3600] [--only postgres/exclusive]... [--seed N] [--keep-going] ...

A case is one way to run Larder on a fresh database: its store, mode and options. It has rounds: clients write, something
is killed once or several times, the clients stop, and everything is compared; then the server is ended and started
again, and everything is compared again. Each round prints a line, and each case its seed: `--seed` with `--only` runs
the case of that name with the same choices. (Which instruction a kill meets is chance, so a finding may take a few runs.)
"""

import argparse
import dataclasses
import functools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import databases, servers, store, wait  # noqa: E402
from torture.clients import Crowd  # noqa: E402
from torture.record import Finding  # noqa: E402

START_LIMIT = 60.0
CLIENTS = 5
SMALL_CACHE = ("--cache-memory", "64kb")
SMALL_JOURNAL = ("--journal-max", "256kb", "--apply-lag", "20ms")
SHORT = ("--store-timeout", "500ms")


@dataclasses.dataclass(frozen=True)
class Setup:
    """One way to run Larder."""

    kind: str
    mode: str
    label: str
    options: tuple = ()

    @property
    def name(self):
        return "/".join(part for part in (self.kind, self.mode, self.label) if part)


SETUPS = [
    *(Setup(kind, "exclusive", "default") for kind in ("postgres", "mariadb")),
    Setup("sqlite", "", "default"),
    *(Setup(kind, "exclusive", "64kb", SMALL_CACHE) for kind in ("postgres", "mariadb")),
    *(Setup(kind, "shared", "default") for kind in ("postgres", "mariadb")),
    Setup("sqlite", "", "64kb", SMALL_CACHE),
    *(Setup(kind, "exclusive", "64kb-small-journal", SMALL_CACHE + SMALL_JOURNAL) for kind in ("postgres", "mariadb")),
    *(Setup(kind, "shared", "64kb", SMALL_CACHE) for kind in ("postgres", "mariadb")),
    Setup("sqlite", "", "64kb-small-journal", SMALL_CACHE + SMALL_JOURNAL),
    *(Setup(kind, "exclusive", "impatient", SMALL_CACHE + SHORT) for kind in ("postgres", "mariadb")),
    *(Setup(kind, "exclusive", "no-journal", ("--journal-max", "0")) for kind in ("postgres", "mariadb")),
    Setup("sqlite", "", "no-journal", ("--journal-max", "0")),
]


class Site:
    """A Larder, and the database it uses, if that is a process of its own."""

    def __init__(self, setup, folder, database):
        self.setup = setup
        self.database = database
        self.old_sessions = set()
        data = None
        if database is None:
            data = store.SqliteStore(folder)
        else:
            mode = {"mode": "exclusive"} if setup.mode == "exclusive" else {}
            data = store.KINDS[setup.kind](on=database, **mode)
        self.larder = servers.Larder(folder, setup.options, data=data)

    # --- Larder

    def start(self):
        try:
            self.larder.start()
        except servers.StartError as e:
            self.larder.process = None
            raise Finding(f"the server does not start: {last_line(e.log)}") from None

    def start_somehow(self):
        """Starts it though the database may be away at first."""

        def started():
            try:
                return self.larder.start()
            except servers.StartError as e:
                self.larder.process = None
                started.log = e.log
                return None

        try:
            wait.until(started, "", START_LIMIT, 0.1)
        except AssertionError:
            raise Finding(f"the server does not start within {START_LIMIT:g} s: {last_line(started.log)}") from None

    def kill_larder(self):
        self.must_run()
        self.larder.kill()
        self.old_sessions |= self.sessions()

    def save(self):
        """Everything is in the tables. A database that has just come back may not have been found yet."""

        def saved():
            with self.larder.connect() as connection:
                reply = connection.call("SAVE")
            saved.reply = reply
            return not reply.is_error

        try:
            wait.until(saved, "", START_LIMIT, 0.1)
        except AssertionError:
            raise Finding(f"SAVE answers an error for {START_LIMIT:g} s: {saved.reply!r}") from None

    def stop(self):
        try:
            self.larder.stop()
        except AssertionError as e:
            raise Finding(f"the server does not end well: {last_line(str(e))}") from None

    def must_run(self):
        if not self.larder.alive:
            raise Finding(f"the server ended by itself: {last_line(self.larder.log_text())}")

    def check(self):
        done = servers.run(["check", "--store", self.larder.store.url], binary=self.larder.binary, timeout=300)
        if done.returncode != 0:
            wrong = [line for line in done.stdout.splitlines() if not line.endswith("s)")][:6]
            raise Finding(f"larder check ends with {done.returncode}: {'; '.join(wrong)} {done.stderr.strip()[:500]}")

    def tables(self):
        """For whoever looks into a finding: whether the tables are wrong, or only what the server said."""
        self.larder.kill()
        try:
            if self.database is not None and self.database.process is None:
                self.database.start()
            self.wait_for_old_sessions()
            self.check()
            return "larder check is content"
        except Exception as e:
            return str(e)

    # --- the database

    def sessions(self):
        """Numbers of the sessions that use this database: a server that was killed may have left some that go on."""
        if self.database is None or self.database.process is None:
            return set()
        name = self.larder.store.name
        if self.setup.kind == "postgres":
            sql = f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        else:
            sql = f"SELECT id FROM information_schema.processlist WHERE db = '{name}' AND id <> connection_id()"
        return {row[0] for row in self.database.query(sql)}

    def wait_for_old_sessions(self):
        """What a killed server had sent before its end is done now, or never."""
        if self.old_sessions:
            wait.until(lambda: not (self.old_sessions & self.sessions()), "sessions of a killed server end", 60)
            self.old_sessions = set()

    def crash_database(self, r):
        """Returns what was done. All of its processes are gone."""
        ways = ["SIGKILL", "SIGKILL to all"] if self.setup.kind == "mariadb" else ["SIGQUIT", "SIGKILL", "SIGKILL to all"]
        how = r.choice(ways)
        processes = family(self.database.process.pid)
        os.kill(processes[0], signal.SIGQUIT if how == "SIGQUIT" else signal.SIGKILL)
        if how == "SIGKILL to all":
            for pid in processes[1:]:
                end(pid)
        self.database.process.wait(60)
        self.database.process = None
        self.old_sessions = set()
        wait.until(lambda: not any(map(alive, processes)), "the database's processes end", 60)
        return how

    def remove(self):
        if self.larder.process is not None:
            self.larder.kill()
        if self.database is not None and self.database.process is not None:
            self.wait_for_old_sessions()
            self.database.drop_database(self.larder.store.name)


def family(pid):
    """A process and its children."""
    return [pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def last_line(log):
    lines = [line for line in log.splitlines() if "level=error" in line] or log.splitlines() or ["(no log)"]
    return lines[-1][:600]


# --- what is killed. Each returns how many kills it was, and a word for it.


def kill_server(site, r):
    site.kill_larder()
    site.start()
    return 1, "server"


def kill_recovery(site, r):
    """The start that follows a kill is killed too."""
    site.kill_larder()
    site.larder._spawn()
    time.sleep(r.choice([0, r.uniform(0, 0.05), r.uniform(0, 0.5)]))
    site.larder.kill()
    site.old_sessions |= site.sessions()
    site.start()
    return 2, "server, recovery"


def kill_check(site, r):
    """`larder check` applies the journal within a transaction, and is killed in it."""
    site.kill_larder()
    check = subprocess.Popen(
        [str(site.larder.binary), "check", "--store", site.larder.store.url],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=servers.clean_environment(),
    )  # fmt: skip
    time.sleep(r.uniform(0, 0.3))
    check.kill()
    check.wait()
    site.old_sessions |= site.sessions()
    site.start()
    return 2, "server, check"


def crash_database(site, r):
    how = site.crash_database(r)
    time.sleep(r.choice([0, r.uniform(0, 0.5), r.uniform(0, 1.5)]))
    site.database.start()
    return 1, f"database {how}"


def crash_database_twice(site, r):
    first = site.crash_database(r)
    site.database.start()
    time.sleep(r.uniform(0, 0.3))
    second = site.crash_database(r)
    site.database.start()
    return 2, f"database {first}, {second}"


def crash_both(site, r):
    if r.random() < 0.5:
        site.kill_larder()
        how = site.crash_database(r)
    else:
        how = site.crash_database(r)
        time.sleep(r.uniform(0, 0.2))
        site.kill_larder()
    site.database.start()
    site.start()
    return 2, f"both {how}"


def crash_database_in_recovery(site, r):
    site.kill_larder()
    site.larder._spawn()
    time.sleep(r.uniform(0, 0.4))
    how = site.crash_database(r)
    site.database.start()
    if not site.larder.alive:  # it may have given up
        if site.larder.process is not None:
            site.larder.kill()
        site.start_somehow()
    return 2, f"server, database {how} in recovery"


def end_sessions(site, r):
    site.database.end_sessions()
    return 0, "sessions"


SERVER_FAULTS = [kill_server, kill_server, kill_recovery, kill_check]
DATABASE_FAULTS = [
    crash_database, crash_database, crash_database, crash_database_twice, crash_both, crash_database_in_recovery,
    end_sessions,
]  # fmt: skip


class Case:
    """Rounds on one fresh database."""

    def __init__(self, setup, seed, database, out, *, clients, without=(), faults=(), base=None):
        self.setup, self.seed, self.out = setup, seed, out
        self.random = random.Random(f"{seed} {setup.name}")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="larder-torture-", dir=base))
        self.site = Site(setup, self.folder, database)
        self.load = (clients, seed, without)
        self.faults = SERVER_FAULTS + (DATABASE_FAULTS if database else [])
        if faults:
            self.faults = [fault for fault in self.faults if fault.__name__ in faults]
        self.fault_first = [fault for fault in self.faults if fault in (crash_database, crash_database_twice)]
        self.crowd = None
        self.kills = 0

    def run(self, kills, deadline):
        self.site.start()
        self.crowd = Crowd(self.site.larder.address, *self.load)
        try:
            self.crowd.prepare()
            while self.kills < kills and time.monotonic() < deadline:
                self.round()
            self.site.stop()
            self.site.check()
            self.site.remove()
        finally:
            self.crowd.stopping.set()
        shutil.rmtree(self.folder, ignore_errors=True)

    def round(self):
        r, crowd, begun = self.random, self.crowd, time.monotonic()
        acknowledged, unanswered = crowd.acknowledged, crowd.unanswered
        done = []
        crowd.start()
        try:
            for _ in range(r.choice([1, 1, 1, 2, 3])):
                self.moment()
                done.append(self.fault(r))
                self.site.must_run()
            if r.random() < 0.6:
                self.moment()
            if r.random() < 0.4:
                self.crash_and_compare(done)
            else:
                self.stop_and_compare(done)
        finally:
            crowd.stopping.set()
            self.out(
                f"{self.setup.name} seed {self.seed} kills {self.kills}: {'; '.join(done)}"
                f" ({crowd.acknowledged - acknowledged} acknowledged, {crowd.unanswered - unanswered} unknown,"
                f" {time.monotonic() - begun:.1f} s)"
            )

    def moment(self):
        """Some time, of which something has been acknowledged."""
        self.crowd.progress(self.random.choice([1, 300, 3000]))
        time.sleep(self.random.choice([0, self.random.uniform(0, 0.1), self.random.uniform(0, 0.6)]))

    def fault(self, r):
        # A short case has a crash of the database at least.
        fault = r.choice(self.fault_first if self.fault_first and self.kills == 0 else self.faults)
        count, word = fault(self.site, r)
        self.kills += count
        return word

    def crash_and_compare(self, done):
        """The server is killed under load, perhaps its database, too."""
        site, r = self.site, self.random
        if site.database is not None and r.random() < 0.3:
            how = site.crash_database(r)
            self.kills += 1
            site.kill_larder()
            site.database.start()
            done.append(f"end: both {how}")
        else:
            site.kill_larder()
            done.append("end: server")
        self.kills += 1
        self.crowd.stop()
        site.wait_for_old_sessions()
        if r.random() < 0.7:
            site.check()
        site.start()
        self.crowd.settle(self.crowd.read())

    def stop_and_compare(self, done):
        """The clients stop; what the server says then is what another finds that is started on the same tables."""
        site, r = self.site, self.random
        self.crowd.stop()
        site.must_run()
        site.wait_for_old_sessions()
        before = self.crowd.read()
        self.crowd.settle(before)
        if r.random() < 0.3:
            site.check()  # beside the server
        idle = r.random() < 0.5
        if r.random() < 0.3 or (not idle and site.database is not None):  # without its database it could not end well
            site.save()
        if idle:
            self.kills += 1
            site.kill_larder()
            site.wait_for_old_sessions()
            done.append("end: server idle")
        else:
            site.stop()
            done.append("end: stopped")
        site.check()
        site.start()
        after = self.crowd.read()
        self.crowd.same(before, after)
        self.crowd.settle(after)


class Torture:
    """Cases one after the other, and the database servers that they share."""

    def __init__(self, seed, out=print, **load):
        self.random = random.Random(seed)
        self.out, self.load = out, {"clients": CLIENTS, **load}
        self.databases = {}
        self.findings = []
        self.kills = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The databases that have findings stay."""
        for database in self.databases.values():
            if self.findings:
                database.stop()
                self.out(f"kept: {database.folder}")
            else:
                database.remove()

    def database(self, kind):
        if kind == "sqlite":
            return None
        if kind not in self.databases:
            self.databases[kind] = databases.KINDS[kind](durable=True).start()
        if self.databases[kind].process is None:
            self.databases[kind].start()
        return self.databases[kind]

    def case(self, setup, kills, deadline, seed=None):
        """Returns whether nothing was found."""
        seed = self.random.randrange(1 << 32) if seed is None else seed
        case = Case(setup, seed, self.database(setup.kind), self.out, **self.load)
        try:
            case.run(kills, deadline)
        except Exception as e:
            text = f"{setup.name} --seed {seed}: {e}\n    afterwards: {case.site.tables()}"
            text += f"\n    kept: {case.folder}, {case.site.larder.store.url}"
            self.findings.append(text)
            self.out(f"FINDING {text}")
            if not isinstance(e, AssertionError):
                raise
            return False
        finally:
            self.kills += case.kills
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="of all cases together")
    parser.add_argument("--seconds", type=float, default=6 * 3600, help="begin no round after so long")
    parser.add_argument("--only", action="append", default=[], help="setups whose name has this in it; --list shows all")
    parser.add_argument("--seed", type=int, help="of the first case; the others' come from it")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--without", action="append", default=[], help="what clients do not do: transfer, turn, fleet, ...")
    parser.add_argument("--fault", action="append", default=[], help="nothing else happens: kill_server, crash_database, ...")
    parser.add_argument("--case-kills", type=int, default=20, help="kills before a case begins anew on an empty database")
    parser.add_argument("--keep-going", action="store_true", help="after a finding, too")
    parser.add_argument("--list", action="store_true", help="print the names of the setups")
    options = parser.parse_args()
    setups = [s for s in SETUPS if not options.only or any(part in s.name for part in options.only)]
    if options.list or not setups:
        print("\n".join(setup.name for setup in SETUPS))
        return 0 if options.list else 2
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    deadline = time.monotonic() + options.seconds
    out = functools.partial(print, flush=True)
    with Torture(seed, out, clients=options.clients, without=options.without, faults=options.fault) as torture:
        at, first = 0, seed
        while torture.kills < options.kills and time.monotonic() < deadline:
            wanted = min(options.case_kills, options.kills - torture.kills)
            fine = torture.case(setups[at % len(setups)], wanted, deadline, first)
            at, first = at + 1, None
            if not fine and not options.keep_going:
                break
    print(f"{torture.kills} kills in {at} cases, {len(torture.findings)} findings")
    for finding in torture.findings:
        print(f"  {finding}")
    return 1 if torture.findings else 0


if __name__ == "__main__":
    sys.exit(main())
