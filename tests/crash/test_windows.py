"""What `durability everysec` and `off` may lose, as docs/durability.md says it: measured by simulated crashes.

How fast this machine is does not matter: what must be there is found from what the server was recorded to do. If it has
completed a transaction (for a crash of the server) or a sync (for power loss) that began later than a change set was
acknowledged plus the time it has for it, the change set must be in it."""

import bisect
import random

import pytest

from crash import power
from crash.scenario import Load, verifier

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]

POINTS = 30
SYNCS = 3  # in the recording; there is one a second
# Within this time of a reply its change set is being written: 0.1 s, and what a thread may need from deciding to
# write to its first call.
WRITTEN_WITHIN = 500_000_000


@pytest.fixture(scope="module", params=["everysec", "off"])
def lazy(request, tmp_path_factory):
    """A recording in which replies do not wait for syncs."""
    load = Load(tmp_path_factory.mktemp("lazy"), 1, pause=0.01)

    def enough(_):
        if load.acknowledged() < 200:
            return False
        syncs = sum(entry.kind == "synced" and entry.name == power.LOG for entry in load.recording.entries())
        return request.param == "off" or syncs > SYNCS

    load.run_until(enough, "--durability", request.param)
    load.freeze()
    yield request.param, load.recording, load.writers
    load.recording.close()


class Windows:
    """What a crash of a recording may take."""

    def __init__(self, recording, writers):
        self.entries = recording.entries()
        self.writers = writers
        self.times = [entry.time for entry in self.entries]
        self.longest = 0  # nanoseconds

    def acknowledged_before(self, time):
        """A position: what was acknowledged before it, was so before that time."""
        return bisect.bisect_left(self.times, time) - 1

    def written(self, position):
        """Position of the first write of the last transaction that is in the log; 0: there is none."""
        ends = [i for i in range(position - 1) if self.entries[i].commit]  # with the page behind the header
        if not ends:
            return 0
        before = ends[-2] + 2 if len(ends) > 1 else 0
        return next(i for i in range(before, position) if self.entries[i].name == power.LOG and self.entries[i].kind == "written")

    def synced(self, position):
        """Position of the beginning of the last sync of the log that has ended; 0: there is none."""
        ended = (e.offset for e in reversed(self.entries[:position]) if e.kind == "synced" and e.name == power.LOG)
        return next(ended, 0)

    def killed(self, point):
        """Position up to which nothing is lost when the server is killed."""
        return self.acknowledged_before(self.times[self.written(point.position)] - WRITTEN_WITHIN)

    def power_lost(self, point):
        synced = self.written(self.synced(point.position))
        return self.acknowledged_before(self.times[synced] - WRITTEN_WITHIN) if synced else -1

    def measure(self, verify):
        """verify(), and how old the oldest of the lost change sets was."""

        def measured(point, folder):
            now = self.times[min(point.position, len(self.times) - 1)]
            for writer, (_, most) in zip(self.writers, verify(point, folder)):
                if most < writer.acknowledged_at(point.position):
                    self.longest = max(self.longest, now - writer.times[most])

        return measured


def test_a_crash_of_the_server_loses_only_the_last_moment(lazy):
    durability, recording, writers = lazy
    windows = Windows(recording, writers)
    r = random.Random(1)
    points = sorted(power.Point(r.randrange(len(windows.entries)), "all", i) for i in range(POINTS))
    points.append(power.Point(len(windows.entries), "all", POINTS))
    power.simulate(recording, points, windows.measure(verifier(writers, lost_after=windows.killed)))
    print(f"{durability}: the oldest change set that a crash of the server took was {windows.longest / 1e6:.1f} ms old")


def test_power_loss_loses_only_what_was_not_synced(lazy):
    durability, recording, writers = lazy
    windows = Windows(recording, writers)
    limit = windows.power_lost if durability == "everysec" else lambda point: -1
    power.simulate(recording, power.choose(recording, POINTS, 1), windows.measure(verifier(writers, lost_after=limit)))
    print(f"{durability}: the oldest change set that power loss took was {windows.longest / 1e6:.1f} ms old")
    assert windows.longest > 0, "nothing was lost: these crashes prove nothing"


def test_save_and_stricter_durability_make_durable_what_was_there(tmp_path):
    """Replies do not wait for the disk, wait for it, and do not again; SAVE in between. What was acknowledged before the
    reply to SAVE or to CONFIG SET durability always is durable from there on."""
    load = Load(tmp_path, 1, pause=0.002)
    promises = [(0, -1)]  # from that position on, what was acknowledged up to that other position (None: any) is durable

    def switch(connection):
        for _ in range(4):
            position = load.recording.position
            connection("CONFIG", "SET", "durability", "everysec")
            promises.append((position, position - 1))
            load.wait_for(100)
            acknowledged = load.recording.position - 1
            connection("SAVE")
            promises.append((load.recording.position, acknowledged))
            load.wait_for(50)
            connection("CONFIG", "SET", "durability", "always")
            promises.append((load.recording.position, None))
            load.wait_for(50)
        return True

    load.run_until(switch)
    load.freeze()
    starts = [position for position, _ in promises]

    def durable(point):
        return promises[bisect.bisect_right(starts, point.position) - 1][1]

    power.simulate(load.recording, power.choose(load.recording, 2 * POINTS, 1), verifier(load.writers, lost_after=durable))
    load.recording.close()


def test_a_server_that_does_not_sync_is_noticed(lazy):
    """The same crashes, judged as if replies had waited for the disk."""
    _, recording, writers = lazy
    with pytest.raises(AssertionError, match="rather than|larder check"):
        power.simulate(recording, power.choose(recording, POINTS, 1), verifier(writers))
