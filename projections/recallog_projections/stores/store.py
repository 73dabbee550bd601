"""The store port: rows and logs of generations, with one atomic commit per batch.

A commit makes these checks in order. They fence stale writers:
1. retired: the partition's pointer names the generation neither as active nor as building;
2. lost: the generation has no checkpoint row (it is created with one, so that a missing row means data loss);
3. applied: the stored checkpoint is the expected one;
4. already there: the stored checkpoint is the new one (the same commit was applied before);
5. ahead: the stored checkpoint is further (another writer of the same generation has committed);
6. mismatch: the stored checkpoint is before the expected one (the store was restored from an older copy).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

import msgspec

from recallog_projections.rows import Changes, FetchHere
from recallog_projections.tables import LogName, RowKey, Tail
from recallog_schemas.errors import InvariantViolation


class Outcome(Enum):
    """The outcome of a commit, see the module docstring."""

    RETIRED = "retired"
    LOST = "lost"
    APPLIED = "applied"
    ALREADY_THERE = "already there"
    AHEAD = "ahead"
    MISMATCH = "mismatch"


WAIT_SECONDS = 0.005
"""The interval at which a store that cannot wait for a commit is polled."""
CHAIN_START = bytes(16)
"""The value of a ledger's hash chain before its first record."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The last offset that a generation has processed. It is the only resume offset."""

    offset: int = -1
    """The last processed offset: applied, skipped, or a dead letter. -1 before the first."""
    record: int = -1
    """The last offset up to `offset` that has a record. Not every offset has one."""
    digest: bytes = b""
    """The 16-byte blake2b digest of that record. If it differs from the ledger's, the ledger is another one."""
    chain: bytes = CHAIN_START
    """The value of the ledger's hash chain (16 bytes) after that record: it stands for all records processed."""


class Generation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One complete copy of the tables of a group of projections for one partition."""

    id: str
    """Random and unique."""
    partition: int
    code: str
    """The names and versions of its projections and of the catalogue, as JSON. Only the same code writes to it."""
    until: int
    """The ledger's end when it was created. It becomes active when it has reached at least this offset."""
    keys: int = 0
    """What was destroyed of the keys of sealed records when it was begun, see `KeysState.destroyed`."""


class Pointer(msgspec.Struct, frozen=True):
    """The generations of a partition."""

    active: Generation | None = None
    building: Generation | None = None


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The result of one atomic read, in the order requested."""

    generation: Generation
    checkpoint: Checkpoint
    rows: Sequence[bytes | None]
    logs: Sequence[Tail]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One row, or one log entry, as a scan returns it. The key of a log entry is its ordinal in 20 digits."""

    space: str
    owner: str
    key: str
    data: bytes

    @property
    def row_key(self) -> tuple[str, str, str]:
        return (self.space, self.owner, self.key)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive items of one table in the order of the scan, with the checkpoint at the time of reading."""

    checkpoint: Checkpoint
    items: Sequence[StoredRow]
    last: bool
    """Whether it is the last chunk."""


Result = TypeVar("Result")


class Readable(ABC):
    """What can be read: a store, or a snapshot in it."""

    @property
    def location(self) -> str:
        """Its file or address, for messages; "" if it has none."""
        return ""

    @abstractmethod
    async def remember_manifest(self, manifest: bytes) -> bytes:
        """Store the manifest of the ledger that the views belong to, unless one is stored. Returns the stored one."""

    @abstractmethod
    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        """Rows, and the newest n entries of logs, of `generation` (default: the active one), in one atomic read.

        Raises `Rebuilding` if that generation does not exist.
        """

    def read_here(
        self, generation: Generation, checkpoint: Checkpoint, work: Callable[[FetchHere], Result]
    ) -> Result | None:
        """The result of `work`, which fetches rows of the generation and totals of logs, in the calling thread: all of
        them in one atomic read, at `checkpoint`.

        An optimisation for stores on this machine: a store may always answer None. It does while another thread uses
        it, if the generation has moved on or is gone, and if it cannot be read: `read` then tells why. `work` may be
        called again.
        """
        return None

    @abstractmethod
    async def scan_chunk(
        self, generation: Generation, scan: "Scan", damaged: list[tuple[str, str, str]] | None
    ) -> Chunk:
        """The chunk that `scan` describes."""


class Snapshots(ABC):
    """The rows and logs of one space in a generation at earlier offsets.

    A query of the past writes them, since it folds the records up to there anyway. They are deleted with their
    generation, and with its bytes.
    """

    @abstractmethod
    async def spaces(self, generation: Generation) -> Sequence[str]:
        """The spaces that have snapshots."""

    @abstractmethod
    async def checkpoints(self, generation: Generation, space: str) -> Sequence[Checkpoint]:
        """The checkpoints of the snapshots of a space, in their order."""

    @abstractmethod
    async def last_before(self, generation: Generation, space: str, until: int) -> Checkpoint | None:
        """The checkpoint of the last snapshot of a space that has only offsets below `until`."""

    @abstractmethod
    async def find_changes(
        self, generation: Generation, space: str, checkpoint: Checkpoint
    ) -> tuple[Sequence[RowKey], Sequence[LogName]]:
        """The rows and logs in which a snapshot differs from the one before."""

    @abstractmethod
    async def write(
        self, generation: Generation, space: str, after: Checkpoint, new: Checkpoint, changes: Changes
    ) -> bool:
        """Write the snapshot at `new` as its difference from the last one, in one atomic step.

        `after` is the checkpoint of the last snapshot, or that of an empty generation. False, and nothing is written,
        if another process has written one or the generation is gone.
        """

    @abstractmethod
    def open(self, generation: Generation, space: str, checkpoint: Checkpoint) -> Readable:
        """A snapshot, for reading. Its reads raise `Rebuilding` once it is deleted; logs are not scanned."""

    @abstractmethod
    async def delete(self, generation: Generation, space: str) -> None:
        """Delete the snapshots of a space."""


class Store(Readable):
    """Stores generations of rows and logs. Each method is atomic per partition."""

    remote: ClassVar[bool] = False
    """Whether a read crosses a network."""
    commit_changes_max: ClassVar[int] = 100_000
    """The most rows and log entries of a commit; one record alone may have more. 16,000 events that retain entries
    write 96,000; a plan or an erasure of all entries of an agent has no other bound."""

    @property
    def snapshots(self) -> Snapshots | None:
        """The snapshots of its generations; None: it has no place for them."""
        return None

    async def exists(self) -> bool:
        """Whether anything was stored. A store that does not exist is created by the first call of another method."""
        return True

    @abstractmethod
    async def clear(self) -> None:
        """Drop all generations, and the manifest: the store then is a new one, and belongs to no ledger.

        After an interruption, a later call continues.
        """

    @abstractmethod
    async def pointer(self, partition: int) -> Pointer:
        """The generations of `partition`."""

    @abstractmethod
    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        """Make `generation` the building one, with checkpoint -1, and return the new pointer.

        Changes nothing if there is a building generation, or if the active one is not `replaces` (None: there is no
        active one): a process that read the pointer too early must not build again what another one has just built.
        """

    @abstractmethod
    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        """Cut over: make `building` active, and retire the active generation, in one write.

        False, and no change, if `building` is not the building generation, if it is behind the active one, or if the
        active one has processed an offset beyond `unless_beyond`, up to which the caller has compared the two.
        """

    @abstractmethod
    async def retire(self, generation: Generation) -> bool:
        """Give up the building generation. False if `generation` is not the building one."""

    @abstractmethod
    async def collect_garbage(self, partition: int) -> None:
        """Delete all generations that the pointer does not name, checkpoint rows first.

        Until then retired generations, and their checkpoints, can be read but not written. After an interruption, a
        later call continues.
        """

    async def has_garbage(self, partition: int) -> bool:
        """Whether anything of generations that the pointer does not name is left, even if only in bytes of a file."""
        return False

    @abstractmethod
    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        """The generation's checkpoint; None if it was never created, is lost, or was garbage-collected."""

    @abstractmethod
    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        """Write `changes` and `new` in one atomic step if the checkpoint is `expected`; see the module docstring.

        `changes.keep` of a log is the same in all commits of a generation.
        """

    async def wait_for(self, generation: Generation, offset: int, seconds: float) -> None:
        """Return once `generation` has processed `offset`, or earlier, and after `seconds` at the latest."""
        await asyncio.sleep(min(seconds, WAIT_SECONDS))

    async def read_current(
        self,
        partition: int,
        rows: Sequence[RowKey],
        logs: Sequence[tuple[LogName, int]],
        is_current: Callable[[Generation, Checkpoint], bool],
    ) -> ReadResult | None:
        """`read` of the active generation if `is_current` accepts its checkpoint, else None.

        An optimisation for stores that read in a thread: one call to that thread reads the rows and, by `is_current`,
        the ledger. A store may always answer None.
        """
        return None

    async def scan(
        self,
        generation: Generation,
        table: str,
        *,
        space: str | None = None,
        owner: str | None = None,
        prefix: str = "",
        newest_first: bool = False,
        after: tuple[str, str, str] | None = None,
        limit: int,
        damaged: list[tuple[str, str, str]] | None = None,
    ) -> Chunk:
        """Up to `limit` items of `table` (a table or a log) in order of (space, owner, key), of one space or of all.

        With `owner`, only the rows of this owner of `space`; with `prefix` too, only those whose key begins with it.
        With `newest_first` the order is reversed: keys of fixed-width offsets then give the newest first. These three
        are for tables: logs are not scanned. The cost is that of the rows returned, however many the table has.

        The scan begins after `after`, a (space, owner, key) in its order; it need not exist.

        With a list `damaged`, items that are damaged are left out of the chunk, and their (space, owner, key) is added
        to the list; of a damaged part of a log, that of its first entry. A scan after the last key of either continues
        after both. Nothing is repaired then.

        Raises `Rebuilding` if the generation does not exist.
        """
        return await self.scan_chunk(generation, Scan(table, limit, space, owner, prefix, newest_first, after), damaged)

    async def contents(self) -> AsyncIterator[tuple[str, bytes]]:
        """Everything that it stores outside of the memory's folder, even what no pointer names: places and bytes."""
        nothing: Sequence[tuple[str, bytes]] = ()
        for each in nothing:
            yield each

    async def files(self) -> Sequence[Path]:
        """The files and folders outside of the memory's folder, on this machine, in which its server keeps a copy."""
        return ()

    async def find_problems(self) -> list[str]:
        """What is wrong with its storage, apart from damaged values of rows, which reads find. Repairs nothing."""
        return []

    @abstractmethod
    async def size_bytes(self) -> int:
        """The size of the store on disk or in memory."""

    @abstractmethod
    async def close(self) -> None:
        """Close files and connections."""


class KeyRange(NamedTuple):
    """The (space, owner, key) from `first` on and before `end`; None: up to the last one."""

    first: tuple[str, str, str]
    end: tuple[str, str, str] | None

    def has(self, row_key: tuple[str, str, str]) -> bool:
        return self.first <= row_key and (self.end is None or row_key < self.end)


@dataclass(frozen=True, slots=True)
class Scan:
    """What one chunk covers: the arguments of `Store.scan`."""

    table: str
    limit: int
    space: str | None = None
    owner: str | None = None
    prefix: str = ""
    newest_first: bool = False
    after: tuple[str, str, str] | None = None

    def key_range(self) -> KeyRange:
        """The keys that it covers. All stores order texts by code points, as UTF-8 is ordered."""
        space, owner, after = self.space, self.owner, self.after
        if (owner is not None and space is None) or (self.prefix and owner is None):
            raise InvariantViolation("a scan by prefix needs an owner, and a scan by owner needs a space")
        first, end = (space or "", owner or "", self.prefix), None
        if space is not None:
            end = (space + "\0", "", "") if owner is None else (space, owner + "\0", "")
            if (beyond := _beyond_prefix(self.prefix)) is not None and owner is not None:
                end = (space, owner, beyond)
        if after is not None and self.newest_first:
            end = after if end is None else min(end, after)
        elif after is not None:
            first = max(first, (*after[:2], after[2] + "\0"))
        return KeyRange(first, end)

    @property
    def includes_logs(self) -> bool:
        """Whether `table` may be a log."""
        return self.owner is None and not self.newest_first


def _beyond_prefix(prefix: str) -> str | None:
    """The first text after all texts that begin with `prefix`; None if there is none."""
    bare = prefix.rstrip("\U0010ffff")
    if not bare:
        return None
    following = ord(bare[-1]) + 1
    return bare[:-1] + chr(0xE000 if following == 0xD800 else following)  # texts contain no surrogates


def ordinal_key(ordinal: int) -> str:
    """The key of a log entry: its ordinal in 20 digits, which sort like the number."""
    return f"{ordinal:020d}"


def is_beyond(active: Checkpoint, building: int, compared: int | None) -> bool:
    """Whether the active generation is beyond offset `building` or `compared`, so that there must be no cutover."""
    return active.offset > (building if compared is None else min(building, compared))


def outcome_of(pointer: Pointer, generation: Generation, stored: Checkpoint | None, expected: int, new: int) -> Outcome:
    """The outcome of a commit by the checks of the module docstring, for stores that make them in Python."""
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
