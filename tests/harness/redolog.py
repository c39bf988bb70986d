"""The log beside a SQLite database, as src/redo/redo.h describes its files: to look into it, and to damage it."""

import contextlib
import dataclasses
import pathlib
import re
import struct

BLOCK = 4096
HEADER = 64  # in front of a payload


@dataclasses.dataclass
class Record:
    file: pathlib.Path
    at: int  # of its first byte
    seq: int
    tables: int
    kind: int
    payload: bytes

    def flip(self, byte=HEADER):
        """Damages one bit of it; by default of the payload's first byte."""
        with self.file.open("r+b") as f:
            f.seek(self.at + byte)
            (old,) = f.read(1)
            f.seek(self.at + byte)
            f.write(bytes([old ^ 1]))


def segments(path):
    """The segments beside the database, in order."""
    path = pathlib.Path(path)
    found = [(int(m[1]), f) for f in path.parent.iterdir() if (m := re.fullmatch(re.escape(path.name) + r"-redo\.(\d+)", f.name))]
    return [f for _, f in sorted(found)]


def files(path):
    """All files of the database: itself, and those beside it."""
    path = pathlib.Path(path)
    return sorted(f.name for f in path.parent.iterdir() if f.name.startswith(path.name))


def records(path):
    """What the segments hold, checksums not looked at."""
    found = []
    for file in segments(path):
        data = file.read_bytes()
        (number,) = struct.unpack_from("<Q", data, 48)
        at = BLOCK
        while at + HEADER <= len(data) and data[at : at + 4] == b"LRec":
            length, _, _, _, of, seq, _, tables, kind = struct.unpack_from("<IIIQQQQQI", data, at + 4)
            if of != number:
                break
            found.append(Record(file, at, seq, tables, kind, data[at + HEADER : at + HEADER + length]))
            at += -(-(HEADER + length) // BLOCK) * BLOCK
    return found


def last_seq(path):
    """The seq of the last record that counts, 0: there is none. Reads heads alone, while the server may write."""
    last = 0
    for file in segments(path):
        with contextlib.suppress(FileNotFoundError, struct.error), file.open("rb") as f:
            number, _, first = struct.unpack_from("<QQQ", f.read(BLOCK), 48)
            last = min(last, first - 1)  # what an older epoch has from there on is void
            at = BLOCK
            while f.seek(at) == at and (head := f.read(HEADER))[:4] == b"LRec":
                length, _, _, _, of, seq = struct.unpack_from("<IIIQQQ", head, 4)
                if of != number:
                    break
                last = seq
                at += -(-(HEADER + length) // BLOCK) * BLOCK
    return last
