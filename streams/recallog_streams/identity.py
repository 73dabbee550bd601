"""The ids of events that a generation has processed, for ledgers without unique ids: the views count a repeat once.

Each space has a table of buckets, which grows by linear hashing (Litwin, 1980): a space of n events has about n /
`BUCKET_EVENTS` buckets, and each new event beyond that splits one. An entry has 30 bytes: 16 of the id's digest, 8 of
the content's digest, 6 of the offset. The table is exact except for collisions of 128-bit digests. It is the only part
of the views that grows with the ledger.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_schemas import Event, Record, limits, repeats

VERSION = 3
"""Part of the code of a generation that has these tables. Raised whenever their entries change, also by another rule
for what is a repeat (`repeats.content_of`); the views are then rebuilt."""

ID_BYTES, CONTENT_BYTES, OFFSET_BYTES = 16, 8, 6
ENTRY_BYTES = ID_BYTES + CONTENT_BYTES + OFFSET_BYTES
BUCKET_EVENTS = 16
_CACHED_DIGESTS = 2 * limits.PARTITIONS_AT_ONCE * limits.CLUSTER_BATCH_RECORDS


class Size(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The number of known ids of a space, and of buckets that hold them."""

    events: int
    buckets: int


class Bucket(msgspec.Struct, frozen=True, array_like=True, gc=False):
    entries: bytes


SIZES = Table("identity.size", Size)
BUCKETS = Table("identity.bucket", Bucket)


class Conflict(Exception):
    """The id belongs to a record with other content, at the offset `first`."""

    def __init__(self, first: int) -> None:
        super().__init__(first)
        self.first = first


class Identity:
    """The known ids as tables of the fold. The first record of an id counts."""

    tables: ClassVar = (SIZES, BUCKETS)

    def batches_of_needs(self, rows: Rows, records: Sequence[Record]) -> Iterator[list[RowKey]]:
        """The rows that a batch will read or write, in two steps: the sizes determine the buckets.

        Fetched together, because nearly every event of a large space belongs to another bucket.
        """
        ids: dict[str, list[str]] = {}
        for record in records:
            ids.setdefault(record.event.space, []).append(record.event.id)
        yield [RowKey(SIZES.name, space) for space in ids]
        yield [
            RowKey(BUCKETS.name, space, "", str(number))
            for space, of_space in ids.items()
            for number in _buckets_touched(rows.get(SIZES, space) or Size(0, 1), of_space)
        ]

    def first_seen(self, rows: Rows, event: Event, offset: int) -> bool:
        """Add the id of `event`; whether it is new. Raises `Conflict` if it belongs to another event."""
        space = event.space
        size = rows.get(SIZES, space) or Size(0, 1)
        id_ = _id_digest(event.id)
        content = hashlib.blake2b(repeats.content_of(event), digest_size=CONTENT_BYTES).digest()
        key = str(_bucket_of(id_, size.buckets))
        entries = _entries(rows, space, key)
        if (start := _start_of(id_, entries)) >= 0:
            end = start + ID_BYTES + CONTENT_BYTES
            if entries[start + ID_BYTES : end] != content:
                raise Conflict(int.from_bytes(entries[end : start + ENTRY_BYTES], "big"))
            return False
        entries += id_ + content + offset.to_bytes(OFFSET_BYTES, "big")
        rows.put(BUCKETS, Bucket(entries), space, "", key)
        size = Size(size.events + 1, size.buckets)
        if size.events > size.buckets * BUCKET_EVENTS:
            size = _split(rows, space, size)
        rows.put(SIZES, size, space)
        return True


def bucket_of(space: str, id_: str, size: Size) -> RowKey:
    """The bucket that holds the id if it is known."""
    return RowKey(BUCKETS.name, space, "", str(_bucket_of(_id_digest(id_), size.buckets)))


def offset_in(bucket: Bucket | None, id_: str) -> int | None:
    """The offset of the first record of the id; None if it is not in the bucket."""
    entries = bucket.entries if bucket else b""
    start = _start_of(_id_digest(id_), entries)
    if start < 0:
        return None
    return int.from_bytes(entries[start + ID_BYTES + CONTENT_BYTES : start + ENTRY_BYTES], "big")


def _buckets_touched(size: Size, ids: Sequence[str]) -> set[int]:
    """The buckets that hold `ids`, and those that are split if all ids are new."""
    touched = {_bucket_of(_id_digest(id_), size.buckets) for id_ in ids}
    for new in range(size.buckets, max(size.buckets, -(-(size.events + len(ids)) // BUCKET_EVENTS))):
        touched |= {new, _split_by(new)}
    return touched


# Cached, since a batch uses each digest twice: to find the bucket, and to look the id up in it.
@lru_cache(_CACHED_DIGESTS)
def _id_digest(id_: str) -> bytes:
    return hashlib.blake2b(id_.encode(), digest_size=ID_BYTES).digest()


def _entries(rows: Rows, space: str, key: str) -> bytes:
    bucket = rows.get(BUCKETS, space, "", key)
    return bucket.entries if bucket else b""


def _start_of(id_: bytes, entries: bytes) -> int:
    """The start of the entry of `id_`; -1 if there is none."""
    start = entries.find(id_)
    while start > 0 and start % ENTRY_BYTES:  # the same bytes occur by chance across entries
        start = entries.find(id_, start + 1)
    return start


def _bucket_of(id_: bytes, buckets: int) -> int:
    level = 1 << (buckets.bit_length() - 1)
    hashed = int.from_bytes(id_[:8], "big")
    number = hashed & (2 * level - 1)
    return number if number < buckets else hashed & (level - 1)


def _split_by(new: int) -> int:
    """The bucket that is split when the bucket `new` is added."""
    return new - (1 << (new.bit_length() - 1))


def _split(rows: Rows, space: str, size: Size) -> Size:
    """Add one bucket, and move to it the entries of the split bucket that belong there."""
    new = size.buckets
    old = _split_by(new)
    grown = Size(size.events, new + 1)
    stay, move = b"", b""
    entries = _entries(rows, space, str(old))
    # One bit of the hash determines which of the two buckets an entry belongs to.
    bit = new - old
    for start in range(0, len(entries), ENTRY_BYTES):
        entry = entries[start : start + ENTRY_BYTES]
        if int.from_bytes(entry[:8], "big") & bit:
            move += entry
        else:
            stay += entry
    rows.get(BUCKETS, space, key=str(new))
    rows.put(BUCKETS, Bucket(stay), space, key=str(old))
    rows.put(BUCKETS, Bucket(move), space, key=str(new))
    return grown
