"""The records of the shim, in the order in which the calls returned."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct("=IIQQQII")


@dataclass(frozen=True, slots=True)
class Entry:
    """One record: its fields have the meaning that `op` gives them."""

    op: str
    """w: `first` was written at `offset`. t: a file was cut or extended to `size`. f: extended to `size`. o: opened to
    create, and emptied if `size`. d: a folder was made. u: a name was removed. r, l: renamed, linked. b, e: a sync
    `size` begins and ends. a: `first` was printed."""
    inode: int
    offset: int
    size: int
    first: bytes
    second: bytes


def read(path: Path) -> Iterator[Entry]:
    """All records of a trace."""
    data = memoryview(path.read_bytes())
    at = 0
    while at < len(data):
        length, op, inode, offset, size, first, second = _HEADER.unpack_from(data, at)
        middle = at + _HEADER.size + first
        texts = bytes(data[at + _HEADER.size : middle]), bytes(data[middle : middle + second])
        yield Entry(chr(op), inode, offset, size, *texts)
        at += length
