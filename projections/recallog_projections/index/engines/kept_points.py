"""Fields and terms of points, kept in memory and bounded in bytes: queries compare many of the same points."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import count
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from recallog_projections.index.engines.engine import Sparse

StoredFields = tuple[str, Mapping[str, Any], Sparse]
"""The id of a point, its payload, and its terms."""


class KeptBytes:
    """The bound on the bytes that several `KeptPoints` keep together, also in several threads."""

    def __init__(self, bytes_max: int) -> None:
        self.lock = RLock()
        """Held while points are found or removed."""
        self._bytes_max = bytes_max
        self._users: WeakKeyDictionary[KeptPoints, int] = WeakKeyDictionary()
        """The collections, each with the number of its last read."""
        self._reads = count()

    def make_room(self, user: "KeptPoints") -> None:
        """Remove points until the bound holds: those of the least recently used collection first."""
        self._users[user] = next(self._reads)
        while sum(each.size_bytes for each in self._users) > self._bytes_max:
            min((each for each in self._users if each.size_bytes), key=self._users.__getitem__).remove_oldest()


class KeptPoints:
    """Points of one collection by id. Above the bound, the least recently used are removed."""

    def __init__(self, bound: KeptBytes) -> None:
        self._bound = bound
        self._points: OrderedDict[str, tuple[StoredFields, int]] = OrderedDict()
        """By id, the fields of a point and the bytes that it takes."""
        self.size_bytes = 0

    def find(self, ids: Iterable[str]) -> dict[str, StoredFields]:
        """The kept points with these ids."""
        found = {}
        with self._bound.lock:
            for id_ in ids:
                if (known := self._points.get(id_)) is not None:
                    found[id_] = known[0]
                    self._points.move_to_end(id_)
        return found

    def keep(self, points: Iterable[tuple[StoredFields, int]]) -> None:
        """Add points that are not kept, each with the bytes that it takes."""
        with self._bound.lock:
            for each in points:
                self._points[each[0][0]] = each
                self.size_bytes += each[1]
            self._bound.make_room(self)

    def forget(self, ids: Iterable[str]) -> None:
        """Remove points that are written or deleted."""
        with self._bound.lock:
            for id_ in ids:
                if (point := self._points.pop(id_, None)) is not None:
                    self.size_bytes -= point[1]

    def remove_oldest(self) -> None:
        """Remove the least recently used point."""
        self.size_bytes -= self._points.popitem(last=False)[1][1]
