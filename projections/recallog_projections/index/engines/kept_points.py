"""Rows of points, kept in memory and bounded in bytes: queries compare many of the same points."""

from collections import OrderedDict
from collections.abc import Iterable
from itertools import count
from threading import RLock
from weakref import WeakKeyDictionary

KeptRow = tuple[bytes, bytes]
"""The terms of a point and its payload without texts, as they are stored: decoded, they take twice the memory."""

_ROW_BYTES = 320
"""What a kept row takes besides its bytes."""


class KeptBytes:
    """The bound on the bytes that several `KeptRows` keep together, also in several threads."""

    def __init__(self, bytes_max: int) -> None:
        self.lock = RLock()
        """Held while rows are found or removed."""
        self._bytes_max = bytes_max
        self._users: WeakKeyDictionary[KeptRows, int] = WeakKeyDictionary()
        """With the number of their last read."""
        self._reads = count()

    def make_room(self, user: "KeptRows") -> None:
        """Remove rows until the bound holds: those of the least recently used collection first."""
        self._users[user] = next(self._reads)
        while sum(each.size_bytes for each in self._users) > self._bytes_max:
            min((each for each in self._users if each.size_bytes), key=self._users.__getitem__).remove_oldest()


class KeptRows:
    """Rows of one collection by the ids of their points. Above the bound, the least recently used are removed."""

    def __init__(self, bound: KeptBytes) -> None:
        self._bound = bound
        self._rows: OrderedDict[str, KeptRow] = OrderedDict()
        self.size_bytes = 0

    def find(self, ids: Iterable[str]) -> dict[str, KeptRow]:
        """The kept rows of these points."""
        with self._bound.lock:
            found = {id_: row for id_ in ids if (row := self._rows.get(id_)) is not None}
            for id_ in found:
                self._rows.move_to_end(id_)
            return found

    def keep(self, rows: dict[str, KeptRow]) -> None:
        """Add rows that are not kept."""
        with self._bound.lock:
            self._rows |= rows
            self.size_bytes += sum(map(_size, rows.values()))
            self._bound.make_room(self)

    def forget(self, ids: Iterable[str]) -> None:
        """Remove the rows of points that are written or deleted."""
        with self._bound.lock:
            for id_ in ids:
                if (row := self._rows.pop(id_, None)) is not None:
                    self.size_bytes -= _size(row)

    def remove_oldest(self) -> None:
        """Remove the least recently used row."""
        self.size_bytes -= _size(self._rows.popitem(last=False)[1])


def _size(row: KeptRow) -> int:
    return _ROW_BYTES + len(row[0]) + len(row[1])
