"""Fields and terms of points, kept in memory and bounded in bytes: queries compare many of the same points.

The library finds and scores points fast, but parses the whole payload of each point that it returns: that took half of
the time of a recall.
"""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from recallog_projections.index.engines.engine import TEXT_FIELDS, Sparse
from recallog_schemas import limits

ReadPoint = tuple[str, Mapping[str, Any], Sparse | None]
"""The id of a point, its payload, and its terms."""

_POINT_BYTES = 1_300
"""The size of a kept point besides its strings and terms."""
_SHARED_TEXTS = 10_000
"""Short texts that points share. `sys.intern` keeps texts until the process ends in Python 3.12, also erased ones."""


class KeptPoint(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a point."""

    payload: Mapping[str, Any]
    sparse: Sparse | None
    size_bytes: int = 0


class KeptBytes:
    """The bound on the bytes that several `KeptPoints` keep together, also in several threads."""

    def __init__(self, bytes_max: int) -> None:
        self.lock = RLock()
        """Held while points are found or removed."""
        self._bytes_max = bytes_max
        self._users: WeakKeyDictionary[KeptPoints, int] = WeakKeyDictionary()
        """With the number of their last read."""
        self._reads = count()

    def make_room(self, user: "KeptPoints") -> None:
        """Remove points until the bound holds: those of the least recently used collection first."""
        self._users[user] = next(self._reads)
        while sum(each.size_bytes for each in self._users) > self._bytes_max:
            min((each for each in self._users if each.size_bytes), key=self._users.__getitem__).remove_oldest()


class KeptPoints:
    """Points by id, which `read` reads where they are not kept. Above the bound, the least recently used are removed.

    The caller that writes or deletes points calls `forget` first. All kept points have the fields that were wanted of
    any point.
    """

    def __init__(self, read: Callable[[list[str], list[str]], Iterable[ReadPoint]], bound: KeptBytes) -> None:
        """`read` returns the existing points with some ids, with some fields and their terms."""
        self._read = read
        self._bound = bound
        self._fields: frozenset[str] = frozenset()
        self._points: OrderedDict[str, KeptPoint] = OrderedDict()
        self._texts: dict[str, str] = {}
        self.size_bytes = 0

    def find(self, ids: Iterable[str], fields: Collection[str]) -> dict[str, KeptPoint]:
        """The existing points with these ids, with `fields` at least. Those with texts are read, and not kept."""
        with self._bound.lock:
            return self._find(ids, fields)

    def _find(self, ids: Iterable[str], fields: Collection[str]) -> dict[str, KeptPoint]:
        if not TEXT_FIELDS.isdisjoint(fields):
            read = self._read(list(dict.fromkeys(ids)), list(fields))
            return {id_: KeptPoint(payload, sparse) for id_, payload, sparse in read}
        if not self._fields.issuperset(fields):
            self.forget(list(self._points))
            self._fields = self._fields.union(fields)
        found: dict[str, KeptPoint] = {}
        missing: dict[str, None] = {}
        for id_ in ids:
            known = self._points.get(id_)
            if known is None:
                missing[id_] = None
            else:
                found[id_] = known
                self._points.move_to_end(id_)
        if missing:
            for id_, payload, sparse in self._read(list(missing), sorted(self._fields)):
                found[id_] = self._points[id_] = kept = self._keep_point(payload, sparse)
                self.size_bytes += kept.size_bytes
            self._bound.make_room(self)
        return found

    def remove_oldest(self) -> None:
        """Remove the least recently used point."""
        self.size_bytes -= self._points.popitem(last=False)[1].size_bytes

    def forget(self, ids: Iterable[str]) -> None:
        """Remove points that are written or deleted."""
        with self._bound.lock:
            self._texts.clear()
            for id_ in ids:
                if (point := self._points.pop(id_, None)) is not None:
                    self.size_bytes -= point.size_bytes

    def _keep_point(self, payload: Mapping[str, Any], sparse: Sparse | None) -> KeptPoint:
        """A point in a form that takes little memory: short texts, most of which many points share, exist once."""
        if len(self._texts) >= _SHARED_TEXTS:
            self._texts.clear()
        size_bytes, fields = _POINT_BYTES, dict(payload)
        for name, value in payload.items():
            if type(value) is str:
                size_bytes += len(value)
                if len(value) <= limits.NAME_CHARS_MAX:
                    fields[name] = self._texts.setdefault(value, value)
        if sparse is None:
            return KeptPoint(fields, None, size_bytes)
        indices, values = array("I", sparse.indices), array("f", sparse.values)
        return KeptPoint(fields, Sparse(indices, values), size_bytes + indices.itemsize * 2 * len(indices))
