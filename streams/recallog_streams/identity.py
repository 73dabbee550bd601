"""Which ids a generation has seen: for ledgers that store a repeated event again, so that the views count it once.

One table of buckets per space, grown by linear hashing (Litwin, 1980): a space of n events has about n /
`BUCKET_EVENTS` buckets, and each new event beyond that splits one. An entry is 30 bytes: 16 of the id's digest, 8 of
the content's, 6 of the offset. It is exact but for a collision of 128-bit digests, and it is the one thing in the
views that grows with the ledger.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import ClassVar

import msgspec

from recallog_projections.projection import RowKey, Table
from recallog_projections.rows import Rows
from recallog_schemas import Event, Record, codec, limits
from recallog_schemas.errors import InvalidEvent

ID_BYTES, CONTENT_BYTES, OFFSET_BYTES = 16, 8, 6
ENTRY_BYTES = ID_BYTES + CONTENT_BYTES + OFFSET_BYTES
BUCKET_EVENTS = 16
_DIGESTS_KEPT = 2 * limits.PARTITIONS_AT_ONCE * limits.CLUSTER_BATCH_RECORDS


class Size(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How many ids of a space are known, in how many buckets."""

    events: int
    buckets: int


class Bucket(msgspec.Struct, frozen=True, array_like=True, gc=False):
    entries: bytes


SIZES = Table("identity.size", Size)
BUCKETS = Table("identity.bucket", Bucket)


class Conflict(Exception):
    """The id is taken by a record with other content."""

    def __init__(self, first: int) -> None:
        super().__init__(first)
        self.first = first


class Identity:
    """The first record of an id wins."""

    tables: ClassVar = (SIZES, BUCKETS)

    def batches_of_needs(self, rows: Rows, records: Sequence[Record]) -> Iterator[list[RowKey]]:
        """What a batch will touch, in two rounds: which buckets it is follows from the sizes, once they are fetched.

        Without it nearly every event of a large space would fetch a bucket of its own.
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

    def first_seen(self, rows: Rows, event: Event, offset: int, data: bytes) -> bool:
        """Remember the id of `event`; whether it is new. Raises `Conflict` where it names something else."""
        space = event.space
        size = rows.get(SIZES, space) or Size(0, 1)
        id_ = _id_digest(event.id)
        content = _content_digest(event, data)
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
    """The bucket that holds the id, where it is known."""
    return RowKey(BUCKETS.name, space, "", str(_bucket_of(_id_digest(id_), size.buckets)))


def offset_in(bucket: Bucket | None, id_: str) -> int | None:
    """Where the first record of the id lies; None where it is not in the bucket."""
    entries = bucket.entries if bucket else b""
    start = _start_of(_id_digest(id_), entries)
    if start < 0:
        return None
    return int.from_bytes(entries[start + ID_BYTES + CONTENT_BYTES : start + ENTRY_BYTES], "big")


def _buckets_touched(size: Size, ids: Sequence[str]) -> set[int]:
    """Those that hold `ids`, and those that are split where all of them are new."""
    touched = {_bucket_of(_id_digest(id_), size.buckets) for id_ in ids}
    for new in range(size.buckets, max(size.buckets, -(-(size.events + len(ids)) // BUCKET_EVENTS))):
        touched |= {new, _split_by(new)}
    return touched


# A batch asks for each twice: which bucket is it in, and is it there?
@lru_cache(_DIGESTS_KEPT)
def _id_digest(id_: str) -> bytes:
    return hashlib.blake2b(id_.encode(), digest_size=ID_BYTES).digest()


def _content_digest(event: Event, data: bytes) -> bytes:
    try:
        said = codec.comparable_content(event, data)
    except (InvalidEvent, msgspec.MsgspecError, UnicodeDecodeError):
        # The codec takes some JSON that has no canonical form (a byte order mark, a field given twice, 1e400 in a field
        # that the old envelope drops). It must not stop the stream; it says the same as its own bytes and no others.
        said = data
    return hashlib.blake2b(said, digest_size=CONTENT_BYTES).digest()


def _entries(rows: Rows, space: str, key: str) -> bytes:
    bucket = rows.get(BUCKETS, space, "", key)
    return bucket.entries if bucket else b""


def _start_of(id_: bytes, entries: bytes) -> int:
    """Where the entry of `id_` starts; -1 where there is none."""
    start = entries.find(id_)
    while start > 0 and start % ENTRY_BYTES:  # the same bytes by chance, in other entries
        start = entries.find(id_, start + 1)
    return start


def _bucket_of(id_: bytes, buckets: int) -> int:
    level = 1 << (buckets.bit_length() - 1)
    hashed = int.from_bytes(id_[:8], "big")
    number = hashed & (2 * level - 1)
    return number if number < buckets else hashed & (level - 1)


def _split_by(new: int) -> int:
    """The bucket that hands over entries to the bucket `new`."""
    return new - (1 << (new.bit_length() - 1))


def _split(rows: Rows, space: str, size: Size) -> Size:
    """One bucket more: the next in turn hands over those of its entries that belong there."""
    new = size.buckets
    old = _split_by(new)
    grown = Size(size.events, new + 1)
    stay, move = b"", b""
    entries = _entries(rows, space, str(old))
    # An entry of the bucket belongs into one of these two, which one bit of its hash tells apart.
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
