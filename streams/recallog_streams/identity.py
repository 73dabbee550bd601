"""The ids of events that a generation has processed, for ledgers without unique ids: the views count a repeat once.

Each space has a table of buckets, which grows by linear hashing (Litwin, 1980): a space of n events has about n /
`BUCKET_EVENTS` buckets, and each new event beyond that splits one. An entry has 30 bytes: 16 of the id's digest, 8 of
the content's digest, 6 of the offset. The table is exact except for collisions of 128-bit digests. It is the only part
of the views that grows with the ledger.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_schemas import Event, Record, limits, repeats
from recallog_schemas.event import ERASED_VERSION

VERSION = 4
"""Part of the code of a generation that has these tables. Raised whenever their entries change, also by another rule
for what is a repeat (`repeats.content_of`); the views are then rebuilt."""

ID_BYTES, CONTENT_BYTES, OFFSET_BYTES = 16, 8, 6
ENTRY_BYTES = ID_BYTES + CONTENT_BYTES + OFFSET_BYTES
_ERASED = bytes(CONTENT_BYTES)
"""Stands for the digest of an erased event: every event with its id is a repeat of it."""
BUCKET_EVENTS = 16
_CACHED_DIGESTS = 2 * limits.CLUSTER_BATCH_RECORDS


class Size(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The number of known ids of a space, and of buckets that hold them."""

    events: int
    buckets: int


class Bucket(msgspec.Struct, frozen=True, array_like=True, gc=False):
    entries: bytes


SIZES = Table("identity.size", Size)
BUCKETS = Table("identity.bucket", Bucket)


class IdTaken(Exception):
    """The id belongs to a record with other content, at the offset `first`."""

    def __init__(self, first: int) -> None:
        super().__init__(first)
        self.first = first


class NewIds:
    """The ids of a space that a batch adds."""

    def __init__(self, rows: Rows, space: str) -> None:
        self._rows, self._space = rows, space
        self._size = rows.get(SIZES, space) or Size(0, 1)
        self._new: dict[bytes, bytes] = {}
        """The entries by the digest of the id, in their order."""
        self._stored: dict[int, bytes] = {}
        """The entries of the buckets that were read."""

    def add(self, event: Event, offset: int) -> bool:
        """Add the id of `event`. Returns whether it is new. Raises `IdTaken` if it belongs to another event."""
        id_ = _id_digest(event.id)
        content = _ERASED
        if event.envelope != ERASED_VERSION:
            content = blake2b(repeats.content_of(event), digest_size=CONTENT_BYTES).digest()
        known = self._new.get(id_) or _entry_in(self._entries(_bucket_of(id_, self._size.buckets)), id_)
        if known is None:
            self._new[id_] = id_ + content + offset.to_bytes(OFFSET_BYTES, "big")
        elif known[ID_BYTES : ID_BYTES + CONTENT_BYTES] not in (content, _ERASED) and content != _ERASED:
            raise IdTaken(_offset_of(known))
        return known is None

    def _entries(self, number: int) -> bytes:
        entries = self._stored.get(number)
        if entries is None:
            bucket = self._rows.get(BUCKETS, self._space, "", str(number))
            entries = self._stored[number] = bucket.entries if bucket else b""
        return entries

    def write(self) -> None:
        """Write the ids that are new. If a bucket becomes too large, buckets are split.

        A split keeps the order of entries, so each bucket has the same bytes as if the ids were added one by one.
        """
        if not self._new:
            return
        events, before = self._size.events + len(self._new), self._size.buckets
        after = max(before, -(-events // BUCKET_EVENTS))
        changed: dict[int, list[bytes]] = {number: [] for number in range(before, after)}
        changed |= {_split_by(number): [] for number in range(before, after) if _split_by(number) < before}
        for number in [number for number in changed if number < before]:
            entries = self._entries(number)
            for start in range(0, len(entries), ENTRY_BYTES):
                entry = entries[start : start + ENTRY_BYTES]
                changed[_bucket_of(entry, after)].append(entry)
        for entry in self._new.values():
            number = _bucket_of(entry, after)
            if number not in changed:
                changed[number] = [self._entries(number)]
            changed[number].append(entry)
        for number, parts in changed.items():
            self._rows.put(BUCKETS, Bucket(b"".join(parts)), self._space, "", str(number))
        self._rows.put(SIZES, Size(events, after), self._space)


class Identity:
    """The known ids as tables of the fold. The first record of an id counts."""

    tables: ClassVar = (SIZES, BUCKETS)

    def read_rows(self, rows: Rows, records: Sequence[Record]) -> Iterator[None]:
        """Read the rows that a batch needs, in two steps: the sizes determine the buckets. After each step, load
        `rows`. Nearly every event of a large space belongs to another bucket."""
        ids: dict[str, list[str]] = {}
        for record in records:
            ids.setdefault(record.event.space, []).append(record.event.id)
        for space in ids:
            rows.get(SIZES, space)
        yield
        for space, of_space in ids.items():
            for number in _buckets_touched(rows.get(SIZES, space) or Size(0, 1), of_space):
                rows.get(BUCKETS, space, "", str(number))
        yield

    def first_seen(self, rows: Rows, event: Event, offset: int) -> bool:
        """Add the id of `event`. Returns whether it is new. Raises `IdTaken` if it belongs to another event."""
        ids = NewIds(rows, event.space)
        is_new = ids.add(event, offset)
        ids.write()
        return is_new


def bucket_of(space: str, id_: str, size: Size) -> RowKey:
    """The bucket that holds the id if it is known."""
    return RowKey(BUCKETS.name, space, "", str(_bucket_of(_id_digest(id_), size.buckets)))


def offset_in(bucket: Bucket | None, id_: str) -> int | None:
    """The offset of the first record of the id; None if it is not in the bucket."""
    entry = None if bucket is None else _entry_in(bucket.entries, _id_digest(id_))
    return None if entry is None else _offset_of(entry)


def _offset_of(entry: bytes) -> int:
    return int.from_bytes(entry[ID_BYTES + CONTENT_BYTES :], "big")


def _buckets_touched(size: Size, ids: Sequence[str]) -> set[int]:
    """The buckets that hold `ids`, and those that are split if all ids are new."""
    touched = {_bucket_of(_id_digest(id_), size.buckets) for id_ in ids}
    for new in range(size.buckets, max(size.buckets, -(-(size.events + len(ids)) // BUCKET_EVENTS))):
        touched |= {new, _split_by(new)}
    return touched


# Cached, since a batch uses each digest twice: to find the bucket, and to look the id up in it.
@lru_cache(_CACHED_DIGESTS)
def _id_digest(id_: str) -> bytes:
    return blake2b(id_.encode(), digest_size=ID_BYTES).digest()


def _entry_in(entries: bytes, id_: bytes) -> bytes | None:
    start = entries.find(id_)
    while start > 0 and start % ENTRY_BYTES:  # the same bytes occur by chance across entries
        start = entries.find(id_, start + 1)
    return None if start < 0 else entries[start : start + ENTRY_BYTES]


def _bucket_of(id_: bytes, buckets: int) -> int:
    """The bucket of the digest of an id, or of an entry, which begins with it."""
    level = 1 << (buckets.bit_length() - 1)
    hashed = int.from_bytes(id_[:8], "big")
    number = hashed & (2 * level - 1)
    return number if number < buckets else hashed & (level - 1)


def _split_by(new: int) -> int:
    """The bucket that is split when the bucket `new` is added."""
    return new - (1 << (new.bit_length() - 1))
