"""What one client knows of the data it wrote, from the replies that it got and nothing else.

Every command has one of three outcomes: acknowledged; refused, which promises that nothing was done; or unknown (the
connection ended, or UNCERTAIN). Of each value the client keeps the set of those that are possible now. An acknowledged
write leaves one, an unknown one adds one, a refused one changes nothing. Whatever is read later must be possible.
"""

from harness.resp import Closed, encode

ACKED, REFUSED, UNKNOWN = "acknowledged", "refused", "unknown"

# Errors that say that nothing was done. Any other error is a finding: nothing that the clients do may fail otherwise.
HARMLESS = (b"IOERR ", b"TRYAGAIN ", b"MISCONF ", b"READONLY ", b"EXECABORT ", b"LOADING ", b"BUSY ")


class Finding(AssertionError):
    """The server did what it must not do."""


def outcome(reply):
    if not reply.is_error:
        return ACKED
    if reply.value.startswith(b"UNCERTAIN "):
        return UNKNOWN
    if reply.value.startswith(HARMLESS):
        return REFUSED
    raise Finding(f"an error that nothing explains: {reply!r}")


class Value:
    """Something that is replaced as a whole. None: it is not there."""

    def __init__(self, name, value=None):
        self.name = name
        self.possible = {value}

    def written(self, value, how):
        if how == ACKED:
            self.possible = {value}
        elif how == UNKNOWN:
            self.possible.add(value)

    def seen(self, value):
        if value not in self.possible:
            raise Finding(f"{self.name} is {short(value)}, possible are {short(sorted(self.possible, key=repr))}")

    def settle(self, value):
        """From now on nothing else is possible: what was lost may not come back."""
        self.seen(value)
        self.possible = {value}


class Count(Value):
    """A number that grows by one at a time, and whose new value is the reply: a counter, or the length of a list."""

    def __init__(self, name):
        super().__init__(name, 0)

    def added(self, how, now=None):
        if how == ACKED:
            if now - 1 not in self.possible:
                before = short(sorted(self.possible))
                raise Finding(f"{self.name} became {now} by one step, possible before were {before}")
            self.possible = {now}
        elif how == UNKNOWN:
            self.possible |= {n + 1 for n in self.possible}


class List:
    """A list that one client pushes items to, each with a number greater than the one before, and deletes as a whole."""

    def __init__(self, name):
        self.name = name
        self.length = Count(f"length of {name}")
        self.before = ()  # what was there when all was settled
        self.events = []  # since then: (item, or None for a deletion; acknowledged or not)

    def pushed(self, item, how, now=None):
        self.length.added(how, now)
        if how != REFUSED:
            self.events.append((item, how == ACKED))

    def deleted(self, how):
        self.length.written(0, how)
        if how == ACKED:
            self.before, self.events = (), []
        elif how == UNKNOWN:
            self.events.append((None, False))

    def seen(self, items):
        self.length.seen(len(items))
        if self._fits(self.before, self.events, items):
            return
        for at, (item, _) in enumerate(self.events):
            if item is None and self._fits((), self.events[at + 1 :], items):
                return
        raise Finding(f"{self.name} is not what was pushed: {self._difference(items)}")

    @staticmethod
    def _fits(before, events, items):
        """Whether these items are the old ones and then all acknowledged ones, in order, and none that was not sent."""
        if items[: len(before)] != before:
            return False
        at = len(before)
        for item, acked in events:
            if at < len(items) and items[at] == item:
                at += 1
            elif acked:
                return False
        return at == len(items)

    def _difference(self, items):
        expected = [*self.before, *(item for item, acked in self.events if acked and item is not None)]
        missing = [i for i in expected if i not in set(items)]
        return f"{len(items)} items, {len(missing)} acknowledged ones are missing: {short(missing)}; there: {short(items)}"

    def settle(self, items):
        self.seen(items)
        self.length.settle(len(items))
        self.before, self.events = items, []


class Fields:
    """A hash or a sorted set: values by name, all of them removed together or one by one."""

    def __init__(self, name):
        self.name = name
        self.values = {}

    def written(self, field, value, how):
        if field not in self.values:
            self.values[field] = Value(f"{self.name} {field.decode()}")
        self.values[field].written(value, how)

    def deleted(self, how):
        for value in self.values.values():
            value.written(None, how)

    def seen_one(self, field, value):
        self.values.get(field, Value(f"{self.name} {field.decode()}")).seen(value)

    def seen(self, found):
        strange = found.keys() - self.values.keys()
        if strange:
            raise Finding(f"{self.name} has what nobody put there: {short(sorted(strange))}")
        wrong = []
        for field, value in self.values.items():
            try:
                value.seen(found.get(field))
            except Finding as finding:
                wrong.append(str(finding))
        if wrong:
            raise Finding(f"{len(wrong)} of {len(self.values)} are wrong: {wrong[0]}")

    def settle(self, found):
        self.seen(found)
        self.values = {field: Value(f"{self.name} {field.decode()}", value) for field, value in found.items()}


def short(what, limit=300):
    text = repr(what)
    return text if len(text) <= limit else f"{text[:limit]} ..."


class Step:
    """What is sent together (one command, or a transaction), and who is told how it ended: learn(outcome, reply)."""

    def __init__(self, *args, learn, frames=None):
        self.frames = frames or [args]
        self.learn = learn


def run(connection, steps):
    """Sends steps at once and takes their replies. Returns how many were acknowledged and how many were not; when
    the connection ends all that had no reply are unknown, and Closed is raised."""
    counts = {ACKED: 0, REFUSED: 0, UNKNOWN: 0}
    left = iter(steps)
    step = None
    try:
        with connection.sending(b"".join(encode(args) for step in steps for args in step.frames)):
            for step in left:
                replies = [connection.read() for _ in step.frames]
                how = learn(step, replies)
                counts[how] += 1
                step = None
    except TimeoutError:
        raise Finding(f"no reply within {connection.socket.gettimeout():g} s") from None
    except (Closed, OSError) as e:
        for step in [step, *left]:
            if step is not None:
                step.learn(UNKNOWN, None)
        raise Closed(f"{type(e).__name__}: {e}") from None
    return counts


def learn(step, replies):
    try:
        how = transaction_outcome(replies) if len(replies) > 1 else outcome(replies[0])
        step.learn(how, replies[-1])
        return how
    except Finding as finding:
        asked = b" ".join(part if isinstance(part, bytes) else b"%d" % part for part in step.frames[-1 if len(replies) == 1 else -2])
        raise Finding(f"{finding} (in reply to {short(asked, 80)})") from None


def transaction_outcome(replies):
    """MULTI, what was queued, and EXEC. An error among EXEC's replies is a transaction that was done by halves."""
    *queued, last = replies
    how = outcome(last)
    if how == ACKED:
        for reply in [*queued, *(last.value or [])]:
            if reply.is_error:
                raise Finding(f"a transaction was done by halves: {short(replies)}")
        if last.value is None:
            raise Finding("EXEC answers nil, and nothing was watched")
    return how
