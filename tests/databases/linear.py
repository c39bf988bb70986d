"""Whether a history of reads and writes of one register is linearizable, when no value is written twice.

An operation is (start, end, kind, value), kind "r" or "w". The register begins with None. An operation whose outcome is
unknown has no end (infinity): a write may have happened at any time after its start, or never.

After Gibbons and Korach: all operations on one value form a zone between the earliest end and the latest start among
them. Where the earliest end comes first, the register must have had the value throughout (a forward zone); else there
is a moment somewhere between the two (a backward zone). The history is linearizable exactly when no two forward zones
overlap, no backward zone lies within a forward one, and no read comes before its write.
"""

import bisect

INFINITY = float("inf")
BEGINNING = (float("-inf"), float("-inf"), "w", None)


def problem(history):
    """What is wrong with a history, or None."""
    writes, operations = {None: BEGINNING}, {None: [BEGINNING]}
    for op in history:
        if op[2] == "w":
            assert op[3] not in writes, "a value is written once"
            writes[op[3]] = op
            operations.setdefault(op[3], []).append(op)
    for op in history:
        if op[2] == "r":
            if op[3] not in writes:
                return f"{op} read what nobody wrote"
            if op[1] < writes[op[3]][0]:
                return f"{op} ended before {writes[op[3]]} began"
            operations[op[3]].append(op)
    forward, backward = [], []
    for value, ops in operations.items():
        if len(ops) == 1 and ops[0][1] == INFINITY:
            continue  # nobody has seen it: it may never have happened
        first_end, last_start = min(o[1] for o in ops), max(o[0] for o in ops)
        (forward if first_end < last_start else backward).append(
            (min(first_end, last_start), max(first_end, last_start), value)
        )
    forward.sort(key=lambda zone: zone[:2])
    for one, other in zip(forward, forward[1:]):
        if other[0] < one[1]:
            return f"{one[2]!r} and {other[2]!r} would have had to be there at the same time"
    starts = [zone[0] for zone in forward]
    for zone in backward:
        before = bisect.bisect_left(starts, zone[0]) - 1  # the last that starts earlier: the others have ended
        if before >= 0 and zone[1] < forward[before][1]:
            return f"{zone[2]!r} would have had to be there while {forward[before][2]!r} was"
    return None
