"""Queues across SIGKILL: clients wait in BLPOP and BLMOVE while others push, and nothing acknowledged is lost or doubled."""

import collections
import os
import random
import threading
import time

import pytest

from harness import wait
from harness.resp import Closed, encode

PUSHERS = 3
MOVERS = 3
POPPERS = 3


class Client:
    """A thread with one connection that works until the server is gone."""

    def __init__(self, number, seed):
        self.number = number
        self.random = random.Random(seed)
        self.problem = None

    def start(self, server):
        self.thread = threading.Thread(target=self._run, args=(server,), daemon=True)
        self.thread.start()

    def join(self):
        self.thread.join(120)
        assert not self.thread.is_alive(), "a client hangs"
        assert self.problem is None, self.problem

    def _run(self, server):
        try:
            with server.connect() as connection:
                while True:
                    self.step(connection)
        except (Closed, ConnectionError):
            pass
        except Exception as e:  # shown by join() in the test's own thread
            self.problem = repr(e)


class Pusher(Client):
    """Pushes numbered items, each its own, at the end of a queue; several at once, in pipelines, in transactions."""

    def __init__(self, number, seed, queue):
        super().__init__(number, seed)
        self.queue = queue
        self.serial = 0
        self.sent = []
        self.acknowledged = []

    def step(self, connection):
        r = self.random
        groups = []
        for _ in range(r.choice([1, 1, 2, 10])):
            items = []
            for _ in range(r.choice([1, 1, 1, 3])):
                self.serial += 1
                items.append(b"%d:%d" % (self.number, self.serial))
            groups.append(items)
        pushes = [[b"RPUSH", self.queue, *items] for items in groups]
        whole = r.random() < 0.3
        frames = [[b"MULTI"], *pushes, [b"EXEC"]] if whole else pushes
        self.sent += [item for items in groups for item in items]
        connection.send(b"".join(encode(args) for args in frames))
        replies = []
        for _ in frames:
            reply = connection.read()
            assert not reply.is_error, reply
            replies.append(reply)
            if not whole:
                self.acknowledged += groups[len(replies) - 1]
        if whole:
            self.acknowledged += [item for items in groups for item in items]
        if r.random() < 0.5:
            time.sleep(r.uniform(0, 0.005))


class Mover(Client):
    """Takes an item over to a list of its own, waiting for it if it must, then to the list of what is done."""

    def __init__(self, number, seed):
        super().__init__(number, seed)
        self.work = b"work:%d" % number
        self.taken = set()
        self.done = set()

    def step(self, connection):
        item = connection("BLMOVE", "queue", self.work, "LEFT", "RIGHT", 0)
        self.taken.add(item)
        # What an earlier life left there is done first.
        while True:
            moved = connection("LMOVE", self.work, "done", "LEFT", "RIGHT")
            if moved is None:
                break
            self.done.add(moved)


class Popper(Client):
    """Waits on two queues. What it is given is in nobody else's hands."""

    def __init__(self, number, seed):
        super().__init__(number, seed)
        self.taken = []

    def step(self, connection):
        _, item = connection("BLPOP", "none", "pops", 0)
        self.taken.append(item)


def sorted_by_pusher(items):
    serials = collections.defaultdict(list)
    for item in items:
        pusher, serial = item.split(b":")
        serials[pusher].append(int(serial))
    return all(numbers == sorted(numbers) for numbers in serials.values())


def verify_moved(c, pushers, movers):
    """Items that only ever move are all somewhere, once."""
    queue, done = c("LRANGE", "queue", 0, -1), c("LRANGE", "done", 0, -1)
    work = [item for mover in movers for item in c("LRANGE", mover.work, 0, -1)]
    there = collections.Counter(queue + work + done)
    doubled = [item for item, times in there.items() if times > 1]
    assert not doubled, f"doubled: {doubled[:10]}"
    lost = [item for pusher in pushers for item in pusher.acknowledged if item not in there]
    assert not lost, f"acknowledged and lost: {lost[:10]}"
    sent = {item for pusher in pushers for item in pusher.sent}
    assert there.keys() <= sent
    assert sorted_by_pusher(queue), "the queue is not in the order of its pushes"
    taken, finished = set().union(*(m.taken for m in movers)), set().union(*(m.done for m in movers))
    assert not taken & set(queue), "a move that was acknowledged is undone"
    assert finished <= set(done), "a move that was acknowledged is undone"


def verify_popped(c, pushers, poppers, kills):
    """Items that are handed out are there or were handed out, once. The server may have died with a reply for each
    client that waited."""
    left = c("LRANGE", "pops", 0, -1)
    handed = collections.Counter(item for popper in poppers for item in popper.taken)
    there = handed + collections.Counter(left)
    doubled = [item for item, times in there.items() if times > 1]
    assert not doubled, f"doubled: {doubled[:10]}"
    assert sorted_by_pusher(left), "the queue is not in the order of its pushes"
    lost = [item for pusher in pushers for item in pusher.acknowledged if item not in there]
    assert len(lost) <= kills * len(poppers), f"{kills} kills, {len(poppers)} clients waited, lost: {lost[:20]}"
    for popper in poppers:
        assert sorted_by_pusher(popper.taken)


class Clients:
    """All of them, and what they know."""

    def __init__(self, seed):
        self.pushers = [Pusher(i, seed + i, b"queue") for i in range(PUSHERS)]
        self.pop_pushers = [Pusher(i, seed + 10 + i, b"pops") for i in range(PUSHERS)]
        self.movers = [Mover(i, seed + 20 + i) for i in range(MOVERS)]
        self.poppers = [Popper(i, seed + 30 + i) for i in range(POPPERS)]
        self.all = [*self.pushers, *self.pop_pushers, *self.movers, *self.poppers]
        self.saved = {}

    def save(self, server):
        """What was acknowledged until now stays, whatever the durability."""
        known = {client: set(client.acknowledged) for client in (*self.pushers, *self.pop_pushers)}
        known |= {mover: (mover.taken.copy(), mover.done.copy()) for mover in self.movers}
        known |= {popper: set(popper.taken) for popper in self.poppers}
        with server.connect() as c:
            assert c("SAVE") == b"OK"
        self.saved = known

    def forget(self, c):
        """Where the server may lose what it acknowledged in the last moments: that is taken out of what the clients know,
        so that the rest can be verified. It is what each of them did last, and nothing of it was saved."""
        queue, done = c("LRANGE", "queue", 0, -1), set(c("LRANGE", "done", 0, -1))
        work = {item for mover in self.movers for item in c("LRANGE", mover.work, 0, -1)}
        there = done.union(work, queue)
        for pusher in self.pushers:
            self._forget_pushes(pusher, sum(item in there for item in pusher.sent), self.saved.get(pusher, set()))
            assert set(pusher.sent) <= there, "a push in the middle is lost"
        for mover in self.movers:
            taken, finished = self.saved.get(mover, (set(), set()))
            assert taken <= work | done and finished <= done, "a move that was saved is undone"
            mover.taken &= work | done
            mover.done &= done

        left = set(c("LRANGE", "pops", 0, -1))
        handed = set().union(*(popper.taken for popper in self.poppers))
        undone = handed & left
        for pusher in self.pop_pushers:
            still = [i for i, item in enumerate(pusher.sent) if item in left]
            assert not still or still == list(range(still[0], still[-1] + 1)), "a push in the middle is lost"
            saved = self.saved.get(pusher, set())
            if still:
                undone |= handed.intersection(pusher.sent[still[-1] + 1 :])
            else:  # whether what nobody was given had been pushed, nobody can tell
                still = [i for i, item in enumerate(pusher.sent) if item in handed or item in saved] or [-1]
            self._forget_pushes(pusher, still[-1] + 1, saved)
        for popper in self.poppers:
            assert not undone & self.saved.get(popper, set()), "a pop that was saved is undone"
            popper.taken = [item for item in popper.taken if item not in undone]
        self.saved = {}

    @staticmethod
    def _forget_pushes(pusher, kept, saved):
        assert saved <= set(pusher.sent[:kept]), "a push that was saved is lost"
        pusher.sent = pusher.sent[:kept]
        pusher.acknowledged = [item for item in pusher.acknowledged if item in set(pusher.sent)]


@pytest.mark.parametrize("options", [[], ["--cache-memory", "0"], ["--durability", "everysec"], ["--durability", "off"]], ids=["default", "uncached", "everysec", "off"])
def test_queues_with_waiting_clients(fleet, options):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    r = random.Random(seed)
    larder = fleet.larder("--sweep-interval", "50ms", *options)
    lossy = "--durability" in options
    clients = Clients(seed)
    pushers, movers, poppers = clients.pushers, clients.movers, clients.poppers
    kills = 4 * int(os.environ.get("LARDER_CRASH_FACTOR", 1))
    for kill in range(1, kills + 1):
        for client in clients.all:
            client.start(larder)
        target = sum(len(p.acknowledged) for p in pushers) + r.randint(1, 150)
        wait.until(lambda: sum(len(p.acknowledged) for p in pushers) >= target or any(x.problem for x in clients.all), "items are pushed")
        if lossy and r.random() < 0.7:
            clients.save(larder)
        time.sleep(r.uniform(0, 0.2))
        larder.kill()
        for client in clients.all:
            client.join()
        larder.check()
        larder.start()
        with larder.connect() as c:
            if lossy:
                clients.forget(c)
            verify_moved(c, pushers, movers)
            verify_popped(c, clients.pop_pushers, poppers, kill)
    assert sum(len(m.done) for m in movers) > 10 and sum(len(p.taken) for p in poppers) > 10
    larder.check_log()


def test_killed_while_all_wait(fleet):
    """Clients that wait for a key when the server dies leave nothing behind: what is pushed next is there for the next."""
    larder = fleet.larder()
    for cycle in range(3):
        waiting = [larder.connect() for _ in range(10)]
        for i, c in enumerate(waiting):
            c.send(encode([b"BLPOP", b"q", b"0"] if i % 2 else [b"BLMOVE", b"q", b"moved", b"LEFT", b"LEFT", b"0"]))
        with larder.connect() as c:
            wait.until(lambda: b"blocked_clients:10" in c("INFO", "clients"), "ten clients wait")
        larder.kill()
        for c in waiting:
            with pytest.raises((Closed, ConnectionError)):
                c.read()
            c.close()
        larder.check()
        larder.start()
        with larder.connect() as c:
            assert c("RPUSH", "q", "a", "b") == 2
            assert c("LRANGE", "q", 0, -1) == [b"a", b"b"] and c("EXISTS", "moved") == 0
            assert b"blocked_clients:0" in c("INFO", "clients")
            assert c("BLPOP", "q", 0) == [b"q", b"a"]
            c("DEL", "q")


def test_a_push_is_acknowledged_after_what_it_served(fleet):
    """When a push is acknowledged, the item is in the hands of the client that waited: durable there, not in both. So it
    is within a worker; between two of them as between two servers, the one that waits comes for it."""
    larder = fleet.larder("--workers", "1")
    for cycle in range(10):
        with larder.connect() as pusher, larder.connect() as mover:
            mover.send(encode([b"BLMOVE", b"q", b"moved", b"LEFT", b"RIGHT", b"0"]))
            wait.until(lambda: b"blocked_clients:1" in pusher("INFO", "clients"), "one client waits")
            assert pusher("RPUSH", "q", cycle) == 1
            larder.kill()
        larder.start()
        with larder.connect() as c:
            assert c("EXISTS", "q") == 0
            assert c("LRANGE", "moved", 0, -1) == [b"%d" % i for i in range(cycle + 1)]
    larder.kill()
    larder.check()


class Taker(Client):
    """Takes from an end of a sorted set, adds to it, and says what was acknowledged."""

    def __init__(self, number, seed, end):
        super().__init__(number, seed)
        self.end = end
        self.serial = 0
        self.added, self.sent, self.taken = set(), set(), []

    def step(self, connection):
        pops = self.random.choice([1, 5])
        self.serial += 1
        member = b"%d:%d" % (self.number, self.serial)
        self.sent.add(member)
        score = b"%d" % self.random.choice([-self.serial, self.serial, 10_000 + self.serial])
        connection.send(encode([b"ZADD", b"z", score, member]) + encode([self.end, b"z"]) * pops)
        assert connection.read().plain() == 1
        self.added.add(member)
        for _ in range(pops):
            self.taken += connection.read().plain()[::2]


@pytest.mark.parametrize("options", [[], ["--journal-max", "0"]], ids=["default", "without a journal"])
def test_both_ends_of_a_sorted_set(fleet, options):
    """What was popped does not come back, and what nobody was given is there. A server may have died with the replies to the
    five pops of each client."""
    r = random.Random(len(options))
    larder = fleet.larder(*options)
    first = {b"m%d" % i for i in range(5000)}
    with larder.connect() as c:
        c("ZADD", "z", *[word for i, member in enumerate(sorted(first)) for word in (i, member)])
    clients = [Taker(i, i, end) for i, end in enumerate([b"ZPOPMIN", b"ZPOPMAX", b"ZPOPMIN"])]
    for kill in range(1, 3):
        for client in clients:
            client.start(larder)
        target = sum(len(client.taken) for client in clients) + r.randint(20, 300)
        wait.until(lambda: sum(len(x.taken) for x in clients) >= target or any(x.problem for x in clients), "members are popped")
        larder.kill()
        for client in clients:
            client.join()
        larder.check()
        larder.start()
        with larder.connect() as c:
            left = c("ZRANGE", "z", 0, -1)
        taken = [member for client in clients for member in client.taken]
        assert len(taken) == len(set(taken)), "popped twice"
        assert not set(taken) & set(left), "a pop that was acknowledged is undone"
        lost = first.union(*(client.added for client in clients)) - set(taken) - set(left)
        assert len(lost) <= kill * 5 * len(clients), f"lost: {sorted(lost)[:20]}"
        assert set(left) <= first.union(*(client.sent for client in clients))
