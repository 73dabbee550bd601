"""The store port: rows and logs of generations, with one atomic commit per batch.

Order of a commit's checks, which is what fences stale writers:
1. retired: the partition's pointer names the generation neither active nor building;
2. lost: there is no checkpoint row (it is created with its generation, so absent never means empty);
3. applied: the stored checkpoint is the expected one;
4. already there: it is the new one (this very commit was made before);
5. ahead: it is further (another writer of the same generation was faster);
6. mismatch: it is behind the expected one (the store was restored from an older copy).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.tables import LogName, RowKey, Tail
from recallog_schemas.errors import InvariantViolation


class Outcome(Enum):
    RETIRED = "retired"
    LOST = "lost"
    APPLIED = "applied"
    ALREADY_THERE = "already there"
    AHEAD = "ahead"
    MISMATCH = "mismatch"


class Checkpoint(msgspec.Struct, frozen=True):
    """How far a generation is. It is also the resume offset: there is no other."""

    offset: int = -1
    """The last offset decided: applied, skipped or parked."""
    record: int = -1
    """The last offset up to there that held a record; offsets may have holes."""
    digest: bytes = b""
    """16 bytes (blake2b) of that record, by which another ledger is noticed."""


class Generation(msgspec.Struct, frozen=True):
    """One copy of all tables of one projector for one partition."""

    id: str
    """Random, never used again."""
    partition: int
    code: str
    """Names, versions and catalogue that write it, as JSON; other code never does."""
    until: int
    """The ledger's end when it was created: a first generation serves readers from there on."""


class Pointer(msgspec.Struct, frozen=True):
    """Which generations a partition has."""

    active: Generation | None = None
    building: Generation | None = None


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What one atomic read returned, in the order asked for."""

    generation: Generation
    checkpoint: Checkpoint
    rows: Sequence[bytes | None]
    logs: Sequence[Tail]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One row, or one log entry (its key is its ordinal, 20 digits), as a scan returns it."""

    space: str
    owner: str
    key: str
    data: bytes

    @property
    def row_key(self) -> tuple[str, str, str]:
        return (self.space, self.owner, self.key)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive items of one table in order of (space, owner, key), with the checkpoint they were read at."""

    checkpoint: Checkpoint
    items: Sequence[StoredRow]
    last: bool
    """Nothing follows."""


class Store(ABC):
    """Keeps generations of rows and logs, atomically per partition."""

    remote: ClassVar[bool] = False
    """Whether a read crosses a network: then it is worth more to ask for many rows at once."""

    @abstractmethod
    async def remember_manifest(self, manifest: bytes) -> bytes:
        """Remember which ledger the views belong to; the first one stays and is returned."""

    @abstractmethod
    async def pointer(self, partition: int) -> Pointer:
        """The partition's generations."""

    @abstractmethod
    async def create(self, generation: Generation) -> Pointer:
        """Make `generation` the building one, at checkpoint -1, unless there is one; answer the pointer after that."""

    @abstractmethod
    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        """Cut over: if `building` still is the building one and not behind the active one, make it active.

        The replaced one is retired by the same write. False where either does not hold, and where the active one has
        decided an offset beyond `unless_beyond`: the caller has compared the two only up to there. While `building`
        is the building one no other can become active, so that the offset says enough.
        """

    @abstractmethod
    async def retire(self, generation: Generation) -> bool:
        """Give up the building generation. False where it is not building (any more)."""

    @abstractmethod
    async def collect_garbage(self, partition: int) -> None:
        """Delete what belongs to no generation of the pointer, checkpoint rows first.

        Until then a retired one can still be read, and its checkpoint too; it cannot be written.
        """

    @abstractmethod
    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        """The generation's checkpoint; None where there is none: never created, lost, or swept after it was retired."""

    @abstractmethod
    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        """Write `changes` and `new` in one atomic step if the checkpoint is `expected`; see the module's text.

        How much of a log is kept does not change within a generation.
        """

    @abstractmethod
    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        """Rows, and the newest n entries of logs, of `generation` or else the active one, in one atomic call.

        Raises `Rebuilding` where there is none.
        """

    @abstractmethod
    async def scan(
        self,
        generation: Generation,
        table: str,
        *,
        space: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int,
    ) -> Chunk:
        """Up to `limit` items of `table` (a table or a log) behind `after`, of one space or of all.

        Raises `Rebuilding` where the generation is gone.
        """

    @abstractmethod
    async def size_bytes(self) -> int:
        """What the store takes on its medium."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of files and connections."""


def ordinal_key(ordinal: int) -> str:
    """A log entry's ordinal as a key that sorts like the number."""
    return f"{ordinal:020d}"


def is_beyond(active: Checkpoint, building: int, judged: int | None) -> bool:
    """Whether the active generation has gone beyond the building one, or beyond what was compared: no cutover then."""
    return active.offset > (building if judged is None else min(building, judged))


def judge(pointer: Pointer, generation: Generation, stored: Checkpoint | None, expected: int, new: int) -> Outcome:
    """The commit's outcome by the rules of this module, for stores that decide in Python."""
    if generation.id not in {known.id for known in (pointer.active, pointer.building) if known is not None}:
        return Outcome.RETIRED
    if stored is None:
        return Outcome.LOST
    if expected > new:
        raise InvariantViolation(f"a commit from offset {expected} back to {new}")
    if stored.offset == expected:
        return Outcome.APPLIED
    if stored.offset == new:
        return Outcome.ALREADY_THERE
    return Outcome.AHEAD if stored.offset > expected else Outcome.MISMATCH
