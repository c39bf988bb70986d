"""What clients remember allows what may be, and nothing else."""

import pytest

from harness.resp import Reply
from torture.record import ACKED, REFUSED, UNKNOWN, Count, Fields, Finding, List, Value, outcome, transaction_outcome


def refuses(record, *values):
    for value in values:
        with pytest.raises(Finding):
            record.seen(value)


def test_a_value():
    held = Value("k")
    held.written(b"1", ACKED)
    held.written(b"2", REFUSED)
    held.seen(b"1")
    refuses(held, b"2", None)
    held.written(None, UNKNOWN)
    held.seen(None)
    held.settle(b"1")  # so the deletion was not done, and may not happen later
    refuses(held, None)


def test_a_count():
    count = Count("n")
    count.added(ACKED, 1)
    count.added(UNKNOWN)
    count.added(REFUSED)
    count.added(UNKNOWN)
    for value in 1, 2, 3:
        count.seen(value)
    refuses(count, 0, 4)
    count.added(ACKED, 3)
    count.written(0, UNKNOWN)
    count.added(UNKNOWN)
    assert count.possible == {0, 1, 3, 4}
    with pytest.raises(Finding):
        count.added(ACKED, 3)


def test_a_list():
    items = List("l")
    for n in 1, 2:
        items.pushed(b"%d" % n, ACKED, n)
    items.settle((b"1", b"2"))
    items.pushed(b"3", UNKNOWN)
    items.pushed(b"4", REFUSED)
    items.pushed(b"5", ACKED, 4)
    items.seen((b"1", b"2", b"3", b"5"))
    refuses(items, (b"1", b"2", b"5"), (b"2", b"1", b"3", b"5"), (b"1", b"2", b"4", b"5"), ())
    items.deleted(UNKNOWN)
    items.pushed(b"6", UNKNOWN)
    for there in (b"1", b"2", b"3", b"5", b"6"), (b"6",), ():
        items.seen(there)
    refuses(items, (b"5",), (b"1", b"2", b"3", b"6"))
    items.deleted(ACKED)
    items.seen(())
    refuses(items, (b"6",))


def test_fields():
    fields = Fields("h")
    fields.written(b"a", b"1", ACKED)
    fields.written(b"b", b"2", UNKNOWN)
    fields.seen({b"a": b"1"})
    fields.seen({b"a": b"1", b"b": b"2"})
    refuses(fields, {}, {b"a": b"2"}, {b"a": b"1", b"c": b"3"})
    fields.deleted(ACKED)
    refuses(fields, {b"a": b"1"})
    fields.settle({})
    refuses(fields, {b"b": b"2"})


def error(text):
    return Reply(b"-", text, b"-" + text + b"\r\n")


def test_outcomes():
    ok = Reply(b"+", b"OK", b"+OK\r\n")
    assert outcome(ok) == ACKED
    assert outcome(error(b"UNCERTAIN what happened")) == UNKNOWN
    assert outcome(error(b"IOERR the database is away")) == REFUSED
    for text in b"WRONGTYPE of key", b"ERR The database is damaged: x":
        with pytest.raises(Finding):
            outcome(error(text))
    assert transaction_outcome([ok, ok, error(b"EXECABORT of it")]) == REFUSED
    assert transaction_outcome([ok, ok, Reply(b"*", [ok], b"")]) == ACKED
    with pytest.raises(Finding):
        transaction_outcome([ok, ok, Reply(b"*", [error(b"IOERR of a part")], b"")])
