"""The ledger port: an ordered, durable, append-only log of events in partitions."""

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import msgspec

from recallog_schemas import Event, Position, codec, limits, repeats
from recallog_schemas.errors import IdConflict, InvalidArgument, InvalidEvent, RecallogError
from recallog_streams.sealing import UNSEALED, Opener, Sealing

if TYPE_CHECKING:
    from recallog_streams.ledgers.trigger_queue import TriggerQueue

_GAP_RECORDS = 64
"""The largest gap between two wanted records that one read covers; beyond it the ledger is read twice."""


class LedgerGuard(Protocol):
    """Checks a ledger before events are appended to it."""

    async def check(self, partitions: Collection[int], opening: object) -> None:
        """Raise `LedgerMismatch` if nothing may be appended to one of `partitions` of the present `opening`."""


class Manifest(msgspec.Struct, frozen=True):
    """The identity of a ledger."""

    ledger: str
    """The kind of adapter, and a name or id that never changes."""
    partitions: int
    partitioner: str
    """The rule that assigns spaces to partitions. Under another rule, the events of a space would lose their order."""


class LedgerPart(Enum):
    """A part of the storage of a ledger."""

    RECORDS = "the tree of the records"
    IDS = "the index of ids"
    SPACE_INDEX = "the index of spaces"
    SPACES = "the table of spaces"
    NAMES = "the index of the names of spaces"
    FREE_PAGES = "the list of free pages"
    SCHEMA = "the schema"


@dataclass(frozen=True, slots=True)
class PartProblem:
    """What is wrong with a part of the storage."""

    part: LedgerPart
    reason: str

    @property
    def repairable(self) -> bool:
        """Whether the part follows from the records, so that it can be computed again."""
        return self.part is not LedgerPart.RECORDS


class Batch(msgspec.Struct, frozen=True):
    """Consecutive records of one partition. Offsets between `start` and `next` without a record are holes."""

    partition: int
    start: int
    next: int
    records: Sequence[tuple[int, bytes]]
    """Offset and value of each record; the value of a record without one is empty."""
    keys: Sequence[bytes | None] | None = None
    """The key of each record, which must be the event's space, for ledgers that other programs can write; None for
    ledgers that ensure this themselves."""
    traceparents: Sequence[str] | None = None
    """The header `traceparent` of each record, which names the span that has published it; "" for one without. None if
    telemetry is off, or if records have no headers."""
    spaces: Sequence[int] | None = None
    """A number for each record, the same for all records of a space; None if the ledger does not number spaces, or if
    the batch is of one space."""
    appended: Sequence[int] | None = None
    """When each record was first appended, in milliseconds since 1970; 0, or None for all, if that is not known."""
    sealed: Sequence[tuple[int, bytes]] | None = None
    """The records as they are stored, if some of them are sealed: `records` has them opened. None: as `records`."""

    @property
    def stored(self) -> Sequence[tuple[int, bytes]]:
        """The records as they are stored, which never change."""
        return self.records if self.sealed is None else self.sealed

    def cut(self, begin: int, end: int) -> "Batch":
        """The batch of some consecutive records, which are named by their indices, with the gaps after them."""
        if begin == 0 and end == len(self.records):
            return self
        return Batch(
            self.partition,
            self.start if begin == 0 else self.records[begin - 1][0] + 1,
            self.next if end == len(self.records) else self.records[end - 1][0] + 1,
            self.records[begin:end],
            None if self.keys is None else self.keys[begin:end],
            None if self.traceparents is None else self.traceparents[begin:end],
            None if self.spaces is None else self.spaces[begin:end],
            None if self.appended is None else self.appended[begin:end],
            None if self.sealed is None else self.sealed[begin:end],
        )

    def time_of(self, number: int) -> int:
        """When the record with that index was first appended."""
        return self.appended[number] if self.appended else 0

    def only(self, numbers: Sequence[int]) -> "Batch":
        """The batch with some of the records, which are named by their indices, without their spaces and headers."""
        records, appended = [self.records[number] for number in numbers], [self.time_of(number) for number in numbers]
        return Batch(self.partition, self.start, self.next, records, appended=appended)


class StorageFault(NamedTuple):
    """Something that is wrong with a ledger although it answers, such as a setting by which events get lost."""

    problem: str
    """What is wrong and what follows, in one sentence without a full stop. It names no host."""
    remedy: str
    """What to do, in one sentence."""
    severe: bool
    """Whether a guarantee is broken. If not, it is a warning."""

    def __str__(self) -> str:
        return f"{self.problem}. {self.remedy}"


Times = Sequence[int] | None
"""When events of another ledger were first appended there, in milliseconds since 1970; None: they are new.

0 says that it is not known. A time later than now counts as now, so that an `at` in the future
cannot pass as a past time.
"""


class RecordSource(ABC):
    """Provides batches of the partitions that this worker is assigned. Can be stopped and started again."""

    @abstractmethod
    async def start(self) -> None:
        """Join the group of workers. Raises `StorageUnavailable`."""

    @abstractmethod
    async def stop(self) -> None:
        """Leave the group, so that other workers take over at once. Does nothing if not started."""

    @abstractmethod
    def list_assigned(self) -> frozenset[int]:
        """The partitions that are currently assigned to this worker."""

    @abstractmethod
    def seek(self, partition: int, offset: int) -> bool:
        """Continue at `offset`. False if the partition is no longer assigned."""

    @abstractmethod
    async def poll(self, partitions: Collection[int], wait_seconds: float) -> Sequence[Batch]:
        """At most one batch of each of `partitions`; it begins where the previous batch of its partition ended.

        They are of the ledger that was there at `start`. If another ledger replaces it, no more records are returned.

        `seek` must have been called for all `partitions`. Returns after about `wait_seconds` if there are no records or
        no partitions. Raises `StorageUnavailable` if the source must be stopped and started again.
        """

    @abstractmethod
    def take_lost(self) -> Collection[int]:
        """Partitions that could not continue at the expected offset since the last call.

        The ledger has changed, or the source cannot return a record. Call `seek` with the offset to continue at.
        """


class Ledger(ABC):
    """Appends events durably and reads them back in order.

    Offsets start at 0, `read(start)` is inclusive, and the end is the next offset.
    """

    unique_ids: ClassVar[bool]
    """Whether the ledger stores an id only once per space. If not, the views count a repeated event once."""
    numbers_spaces: ClassVar[bool] = False
    """Whether its batches have the numbers of spaces."""
    folded_by_workers: ClassVar[bool] = False
    """Whether worker processes fold its views; if not, each query first folds new records."""
    sealing: Sealing = UNSEALED
    """Seals the events that are appended, and opens the records that are read."""

    @property
    def location(self) -> str:
        """Its file or address without passwords, for messages; "" if it has none."""
        return ""

    @property
    def opening(self) -> object:
        """A value that changes whenever other storage may have replaced the one that was read before.

        Constant for a ledger that does not notice a replacement, or that refuses the other storage itself.
        """
        return None

    async def exists(self) -> bool:
        """Whether its storage exists. A ledger that does not exist is created by the first call that needs it."""
        return True

    @abstractmethod
    async def open(self) -> None:
        """Connect. `partition_of` needs it; the other methods connect by themselves."""

    @abstractmethod
    async def manifest(self) -> Manifest:
        """The identity of this ledger."""

    @abstractmethod
    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        """Write `events` in order; return their positions when they are durable.

        With unique ids, a repeated event gets the position of its first record, and an event whose id belongs to other
        content raises `IdConflict` before anything is written. Raises `UnknownOutcome` if the events may or may not be
        written: sending them again is safe.
        """

    async def append_guarded(
        self, events: Sequence[Event], guard: LedgerGuard, appended: Times = None
    ) -> list[Position]:
        """`append`, once `guard` has accepted the partitions of `events`.

        An adapter whose storage can be replaced while it is open overrides it: what was accepted and what is written
        must be the same storage.
        """
        await self.open()
        await guard.check({self.partition_of(space) for space in {event.space for event in events}}, self.opening)
        return await self.append(events, appended)

    @abstractmethod
    async def ends(self) -> list[int]:
        """The next offset of each partition."""

    async def faults(self) -> Sequence[StorageFault]:
        """What is wrong with its storage although it answers; empty for a ledger without settings of its own."""
        return ()

    async def partitions(self) -> int:
        """How many partitions it has, which never changes."""
        return len(await self.ends())

    def end_here(self, partition: int) -> int | None:
        """The next offset of a partition, read in the calling thread, which may be any; None: use `ends`.

        For `Store.read_current`. A ledger that would have to wait, for example for a server, returns None.
        """
        return None

    def read_here(self, partition: int, start: int, until: int) -> Batch | None:
        """The first batch of `read`, read in the calling thread as by `end_here`; None: use `read`."""
        return None

    @abstractmethod
    def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        """Batches from `start` up to but not including `until`; with a `space`, only the records of that space.

        A batch holds at most `limits.READ_BATCH_RECORDS` records and `limits.READ_BATCH_BYTES` bytes, or one record
        that is larger. The `next` of the last batch is `until`, even if the range ends in holes. `until` must not be
        past the end.
        """

    async def encode(self, events: Sequence[Event], appended: Times = None) -> list[tuple[bytes, int]]:
        """What `append` stores for the events of one call: their bytes, sealed where the policy says so, and when each
        was first appended, in milliseconds since 1970.

        Raises `InvalidEvent`, whose path begins with the index of the event if there are several, `RecallogError` for
        more than `limits.APPEND_EVENTS_MAX` events, or `SourcesErased`.
        """
        if len(events) > limits.APPEND_EVENTS_MAX:
            raise RecallogError(
                f"{len(events):,} events in one call, the limit is {limits.APPEND_EVENTS_MAX:,}; publish them in parts"
            )
        values = []
        for index, event in enumerate(events):
            try:
                values.append(codec.encode(event))
            except InvalidEvent as error:
                raise error if len(events) == 1 else error.under(str(index)) from None
        stored = await self.sealing.seal(events, values)
        now = time.time_ns() // 1_000_000
        times = [now] * len(values) if appended is None else [min(each, now) for each in appended]
        return [*zip(stored, times, strict=True)]

    async def unseal(self, batch: Batch) -> Batch:
        """The batch with the clear bytes of its sealed records. `read` yields no batch without it."""
        stored = batch.records
        records = await self.sealing.unseal(stored)
        return batch if records is stored else msgspec.structs.replace(batch, records=records, sealed=stored)

    async def find_problems(self) -> list[PartProblem]:
        """What is wrong with its storage, apart from damaged values of records, which reads find."""
        return []

    async def repair(self) -> None:  # noqa: B027 - most ledgers have nothing that follows from their records
        """Compute again what follows from the records. Changes no record.

        After an interruption the storage is as it was before the call, or as after it; a later call continues. Raises
        `StorageCorrupt` if the records do not allow it.
        """

    def record_source(self, group: str) -> RecordSource | None:
        """The newest records, shared among the workers of a group; None: one worker at a time polls `ends` and `read`,
        the one that holds a lock of the database of the views.

        The batches of a source have their records as they are stored.
        """
        return None

    def trigger_queue(self) -> "TriggerQueue | None":
        """The queue of triggers beside this ledger; None: one worker at a time looks for what is due, under a lock."""
        return None

    async def check_successor(self, target: "Ledger") -> None:
        """Raise `InvalidArgument` if this ledger cannot be retired in favour of `target`, and `LedgerMoved` if it names
        another successor."""
        raise InvalidArgument(
            "only a topic can refuse the events of producers, in favour of a topic whose name has at most 50 "
            "characters. Otherwise stop all programs that write to the source, and copy without --switch",
            path="--switch",
        )

    async def retire(self) -> list[int]:
        """Refuse all further events, of any producer. Returns the ends, after which no event can be.

        Can be called again. `check_successor` says whether it is possible.
        """
        raise NotImplementedError

    async def name_successor(self, target: "Ledger") -> None:
        """Name the ledger that has all events of this retired one: `append` raises `LedgerMoved` with its name.

        Raises `LedgerMoved` if this one names another ledger already.
        """
        raise NotImplementedError

    @abstractmethod
    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        """The first position of the event `id` of `space`; None if there is none."""

    @abstractmethod
    def partition_of(self, space: str) -> int:
        """The partition of the events of `space`."""

    @abstractmethod
    async def size_bytes(self) -> int:
        """The storage that the ledger uses."""

    @abstractmethod
    async def close(self) -> None:
        """Close files and connections."""


def parts_of(batch: Batch, records: int | None, size_bytes: int | None = None) -> list[Batch]:
    """`batch` in consecutive parts of at most `records` records and `size_bytes` bytes, or one larger record.

    None means no limit.
    """
    if records is None and size_bytes is None:
        return [batch]
    ends: list[int] = []
    first = held_bytes = 0
    for index, (_, data) in enumerate(batch.records):
        held_bytes += len(data)
        many = records is not None and index - first >= records
        large = size_bytes is not None and index > first and held_bytes > size_bytes
        if many or large:
            ends.append(index)
            first, held_bytes = index, len(data)
    return [batch.cut(begin, end) for begin, end in pairwise([0, *ends, len(batch.records)])]


def check_repeat(event: Event, data: bytes, first: bytes, position: Position | None, opened: Opener = bytes) -> None:
    """Raise `IdConflict` unless `event`, stored as `data`, repeats the record `first` with the same id.

    `position` is the position of the first record; None if it is in the same call. `unseal` opens both if they are
    sealed. An event always repeats one that was erased or whose key is missing.
    """
    if first == data:
        return
    data, first = opened(data), opened(first)
    what = f"the id {event.id!r} of space {event.space!r}"
    try:
        known = codec.decode(first)
    except InvalidEvent as error:  # another program wrote it
        if error.rule == "key_missing":
            return
        path = ""
        message = f"{what} already names the record at {position}, which is not a valid event"
    else:
        path = "" if known.is_erased else repeats.first_difference(known, codec.decode(data))
        if not path:
            return
        if position is None:
            message = f"{what} names two events of this call, which differ in {path}"
        else:
            message = (
                f"{what} already names the event at {position}, and this one ({event.kind} by {event.agent}) differs "
                f"in {path}"
            )
    raise IdConflict(
        f"{message}; nothing was written. Give this event another id", path=path, position=str(position or "")
    )


def spans_of(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The ranges to read for records at some offsets, each as its first offset and its end.

    Records that are close to each other are read together with those between them.
    """
    wanted = sorted({*offsets})
    breaks = [index + 1 for index, (one, other) in enumerate(pairwise(wanted)) if other - one > _GAP_RECORDS]
    for first, end in pairwise([0, *breaks, len(wanted)]):
        if first < end:
            yield wanted[first], wanted[end - 1] + 1


async def record_at(ledger: Ledger, partition: int, offset: int, *, stored: bool = False) -> bytes | None:
    """The bytes of one record, or those that are `stored`; None if there is none at that offset."""
    if not 0 <= offset < (await ledger.ends())[partition]:
        return None
    async for batch in ledger.read(partition, offset, offset + 1):
        for _, data in batch.stored if stored else batch.records:
            return data
    return None
