"""The ledger port: an ordered, durable, append-only log of events in partitions."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

import msgspec

from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import InvalidEvent, RecallogError


class Manifest(msgspec.Struct, frozen=True):
    """What tells one ledger from another."""

    ledger: str
    """Kind of adapter and a name or id that never changes."""
    partitions: int
    partitioner: str
    """The rule from space to partition; another rule would put a space's events out of order."""


class Batch(msgspec.Struct, frozen=True):
    """Consecutive records of one partition. Offsets between `start` and `next` that are not there do not exist."""

    partition: int
    start: int
    next: int
    records: Sequence[tuple[int, bytes]]
    """Offset and value (empty where there is none)."""
    keys: Sequence[bytes | None] | None = None
    """The key of each record, where others may write the ledger too: it must be the space of the event. None where the
    ledger itself sees to that."""


class Ledger(ABC):
    """Appends events durably and reads them back in order.

    Offsets start at 0, `read(start)` is inclusive, an end is the next offset.
    """

    unique_ids: ClassVar[bool]
    """Whether an id can be there only once in its space. Where not, the views count it once."""
    folded_by_workers: ClassVar[bool] = False
    """Whether worker processes keep its views; else each query first folds what is new."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, so that `partition_of` can answer; all else does so by itself."""

    @abstractmethod
    async def manifest(self) -> Manifest:
        """Which ledger this is."""

    @abstractmethod
    async def append(self, events: Sequence[Event]) -> list[Position]:
        """Write `events` in order; return when they are durable.

        With unique ids, an id that is there already answers its first position, and the whole call is refused with
        `IdConflict` where the content differs. Raises `UnknownOutcome` where the events may or may not be there:
        sending them again is safe.
        """

    @abstractmethod
    async def ends(self) -> list[int]:
        """The next offset of each partition."""

    @abstractmethod
    def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        """Batches from `start` up to but not including `until`; of one space only, where `space` is given.

        A batch holds at most `limits.READ_BATCH_RECORDS` records and `limits.READ_BATCH_BYTES` bytes, or one record
        that is larger. The last batch's `next` is `until`, also where it ends in holes. `until` must not lie past the
        end.
        """

    @abstractmethod
    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        """Where the event `id` of `space` lies first; None where there is none."""

    @abstractmethod
    def partition_of(self, space: str) -> int:
        """Where the events of `space` lie."""

    @abstractmethod
    async def size_bytes(self) -> int:
        """What the ledger takes on its medium."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of files and connections."""


def check_append(events: Sequence[Event]) -> None:
    """Raise where one call asks for more than `limits.APPEND_EVENTS_MAX` events."""
    if len(events) > limits.APPEND_EVENTS_MAX:
        raise RecallogError(
            f"{len(events):,} events in one call, the limit is {limits.APPEND_EVENTS_MAX:,}; publish them in parts"
        )


def parts_of(batch: Batch, records: int | None) -> list[Batch]:
    """`batch` in consecutive parts of at most so many records; None: in one."""
    if records is None or len(batch.records) <= records:
        return [batch]
    parts, start = [], batch.start
    for first in range(0, len(batch.records), records):
        held = batch.records[first : first + records]
        last = first + records >= len(batch.records)
        keys = None if batch.keys is None else batch.keys[first : first + records]
        parts.append(Batch(batch.partition, start, batch.next if last else held[-1][0] + 1, held, keys))
        start = parts[-1].next
    return parts


def is_repeat(first: bytes, event: Event, data: bytes) -> bool:
    """Whether `event`, written as `data`, says what the record `first` of the same id says."""
    if first == data:
        return True
    try:
        return codec.comparable_content(codec.decode(first), first) == codec.comparable_content(event, data)
    except InvalidEvent:
        return False  # some other program wrote the first one


async def record_at(ledger: Ledger, partition: int, offset: int) -> bytes | None:
    """The bytes of one record, None where there is none at that offset."""
    if not 0 <= offset < (await ledger.ends())[partition]:
        return None
    async for batch in ledger.read(partition, offset, offset + 1):
        for _, data in batch.records:
            return data
    return None
