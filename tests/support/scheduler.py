"""Simulated processes: coroutines that pause at every call of ledger or store, and are stepped in any order.

A process that is killed never runs again, wherever it is: before a write, or after a write that took effect but
whose answer never came. Nothing here uses threads, time or an event loop, so a seed repeats itself exactly.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from typing import Any, TypeVar

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Scan,
    Store,
)
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import Event, Position
from recallog_schemas.errors import Rebuilding, RecallogError, StorageCorrupt, StorageUnavailable, UnknownOutcome
from recallog_streams.ledgers.ledger import Batch, Ledger, Manifest
from support.folding import finish

Result = TypeVar("Result")

Fails = Callable[[], bool]
"""Whether the next call fails; called before and after it takes effect."""

Refuses = Callable[[], RecallogError | None]
"""The error of every write while the storage is full or read-only; None while it is not."""

Damaged = Callable[[], int | None]
"""The offset of the damaged record of the ledger; None if there is none."""


def never() -> None:
    """Nothing is refused, and nothing is damaged."""


class Pause:
    """Lets other processes run first."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Killed(BaseException):
    """Raised inside a process instead of closing it, since closing it inside an async generator is an error."""


class Process:
    """A coroutine that runs step by step. An unhandled exception ends the simulation."""

    def __init__(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self.name = name
        self.alive = True
        self._work = work

    def step(self) -> None:
        try:
            self._work.send(None)
        except StopIteration:
            self.alive = False

    def kill(self) -> None:
        """End it at its present step. Its cleanup code does not reach the ledger or the store."""
        if not self.alive:
            return
        self.alive = False
        try:
            while True:
                self._work.throw(Killed)
        except (Killed, StopIteration):
            pass


class SteppedLedger(Ledger):
    """A ledger that lets other processes run at every call, and whose appends may end in an unknown outcome."""

    def __init__(self, inner: Ledger, fails: Fails, refuses: Refuses = never, damaged: Damaged = never) -> None:
        self.unique_ids = inner.unique_ids  # type: ignore[misc]
        self._inner = inner
        self._fails = fails
        self._refuses = refuses
        self._damaged = damaged

    async def open(self) -> None:
        await self._inner.open()

    async def manifest(self) -> Manifest:
        return await self._inner.manifest()

    async def append(self, events: Sequence[Event], appended: Sequence[int] | None = None) -> list[Position]:
        await Pause()
        if (refused := self._refuses()) is not None:
            raise refused
        if self._fails():
            raise UnknownOutcome("not written")
        positions = await self._inner.append(events, appended)
        if self._fails():
            raise UnknownOutcome("written")
        return positions

    async def ends(self) -> list[int]:
        await Pause()
        return await self._inner.ends()

    def end_here(self, partition: int) -> int | None:
        return finish(self._inner.ends())[partition]

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        async for batch in self._inner.read(partition, start, until, space=space):
            await Pause()
            damaged = self._damaged()
            if damaged not in [offset for offset, _ in batch.records]:
                yield batch
                continue
            before = [record for record in batch.records if record[0] < damaged]
            if before:
                yield msgspec.structs.replace(batch.cut(0, len(before)), next=damaged)
            raise StorageCorrupt(f"the record at 0:{damaged} is damaged", position=f"0:{damaged}", until=damaged + 1)

    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        await Pause()
        return await self._inner.find(space, id)

    def partition_of(self, space: str) -> int:
        return self._inner.partition_of(space)

    async def size_bytes(self) -> int:
        return await self._inner.size_bytes()

    async def close(self) -> None:
        await self._inner.close()


class SteppedStore(Store):
    """A store that lets other processes run before and after every call takes effect, and may fail at both points."""

    def __init__(self, inner: Store, fails: Fails, created: list[Generation], refuses: Refuses = never) -> None:
        self._inner = inner
        self._fails = fails
        self._created = created
        self._refuses = refuses

    async def _write(self, call: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        if (refused := self._refuses()) is not None:
            raise refused
        return await self._touch(call)

    async def _touch(self, call: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        await Pause()
        if self._fails():
            raise StorageUnavailable("before it took effect")
        answer = await call()
        if self._fails():
            raise StorageUnavailable("after it took effect")
        await Pause()
        return answer

    async def clear(self) -> None:
        await self._write(self._inner.clear)

    async def remember_manifest(self, manifest: bytes) -> bytes:
        return await self._touch(lambda: self._inner.remember_manifest(manifest))

    async def pointer(self, partition: int) -> Pointer:
        return await self._touch(lambda: self._inner.pointer(partition))

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        self._created.append(generation)
        return await self._write(lambda: self._inner.create(generation, replaces))

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        return await self._write(lambda: self._inner.activate(building, unless_beyond=unless_beyond))

    async def retire(self, generation: Generation) -> bool:
        return await self._write(lambda: self._inner.retire(generation))

    async def collect_garbage(self, partition: int) -> None:
        await self._write(lambda: self._inner.collect_garbage(partition))

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        return await self._touch(lambda: self._inner.checkpoint(generation))

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        return await self._write(lambda: self._inner.commit(generation, expected, new, changes))

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        return await self._touch(lambda: self._inner.read(partition, rows, logs, generation))

    async def read_current(
        self,
        partition: int,
        rows: Sequence[RowKey],
        logs: Sequence[tuple[LogName, int]],
        is_current: Callable[[Generation, Checkpoint], bool],
    ) -> ReadResult | None:
        try:
            found = await self.read(partition, rows, logs)
        except Rebuilding:
            return None
        return found if is_current(found.generation, found.checkpoint) else None

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        return await self._touch(lambda: self._inner.scan_chunk(generation, scan, damaged))

    async def size_bytes(self) -> int:
        return await self._inner.size_bytes()

    async def close(self) -> None:
        await self._inner.close()
