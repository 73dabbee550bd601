"""View access: finds the generation that a query reads, and catches it up (embedded) or waits for workers (cluster).

Embedded, a query whose views cannot be read or brought up to date reads a fold in memory.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from recallog.reading.folds_in_memory import FoldsInMemory
from recallog.reading.read_session import ReadSession
from recallog_projections.projection import Projection
from recallog_projections.stores.store import Checkpoint, Generation, ReadResult
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import Position
from recallog_schemas.errors import LockTimeout, Rebuilding, RecallogError, StorageError, ViewsBehind
from recallog_streams import generations, positions
from recallog_streams.progress import Progress
from recallog_streams.projector import Backlog, Projector

_POLL_SECONDS = 0.01
"""How often a query checks whether there are views."""
_HELD_SECONDS = 2.0
"""How long queries do not wait for a lock after one of them has waited without success."""
VERIFIED_SECONDS = 5.0
"""How long a reader of a cluster does not notice that the views belong to another ledger, or are on other servers."""


class ViewAccess(ABC):
    """Finds the generation to read from."""

    @abstractmethod
    async def reading(
        self, partition: int, after: Position | None, progress: Progress | None, end: int | None = None
    ) -> ReadSession:
        """A session whose reads show at least the records up to `after`.

        Embedded, they show the records that the ledger has now or, if a query is repeated, those below `end`: the
        ledger's end at the first try. This call and the first read raise `Rebuilding`, `ViewsTooNew`, `ViewsBehind`,
        `LedgerMismatch`.
        """

    @abstractmethod
    async def in_memory(
        self, partition: int, space: str | None, cause: RecallogError, progress: Progress | None
    ) -> ReadSession:
        """A session that does not need the views, for a query of one space, or of all, that failed with `cause`.

        Raises `cause` if that is not possible.
        """

    @abstractmethod
    async def catch_up(self, partition: int, to: Position, progress: Progress | None) -> None:
        """Return once the views have processed `to`. Raises the errors of `reading`."""

    @abstractmethod
    async def active(self, partition: int, progress: Progress | None) -> Generation:
        """The active generation. Raises the errors of `reading`."""

    @abstractmethod
    async def progress_of_others(self, partition: int) -> tuple[Generation, int] | None:
        """The active generation and the last offset that it has processed, if other processes advance it while a query
        fails to read it; None otherwise, and if the views cannot be read."""

    @abstractmethod
    async def unavailable(self, partition: int, error: Rebuilding) -> Rebuilding:
        """The error to raise for a query that found no views: `error`, or one that names what the query waits for."""


class CatchUpOnRead(ViewAccess):
    """Embedded: the first read of a query shows all records that the ledger held when the query began.

    It reads optimistically, together with the ledger's end. If the views are behind, they are caught up and the rows
    are read again.
    """

    def __init__(self, projector: Projector, in_memory: Sequence[Projection] = ()) -> None:
        """`in_memory` are the projections of a fold in memory; without them, errors of the views are raised."""
        self._projector = projector
        self._folds = FoldsInMemory(projector, in_memory) if in_memory else None
        self._held: LockTimeout | None = None
        self._held_until = 0.0

    async def reading(
        self, partition: int, after: Position | None, progress: Progress | None, end: int | None = None
    ) -> ReadSession:
        projector, store = self._projector, self._projector.store
        backlog: Backlog | None = None

        def is_current(generation: Generation, checkpoint: Checkpoint) -> bool:
            nonlocal backlog
            start, ledger = checkpoint.offset + 1, projector.ledger
            until = ledger.end_here(partition) if end is None else end
            batch = None if until is None or start >= until else ledger.read_here(partition, start, until)
            backlog = None if until is None or batch is None else Backlog(generation, checkpoint, batch, until)
            return until is not None and start >= until

        async def first_read(rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]) -> ReadResult:
            found = await store.read_current(partition, rows, logs, is_current)
            if found is not None and await projector.fits(found.generation):
                await projector.verify_once(found.generation, found.checkpoint)
                return found
            return await store.read(partition, rows, logs, await self._caught_up(partition, progress, backlog))

        return ReadSession(store, partition, first_read)

    async def _caught_up(self, partition: int, progress: Progress | None, backlog: Backlog | None) -> Generation:
        """The active generation after it has processed `backlog`.

        If another process holds a lock and makes no progress, only few queries wait for it.
        """
        if self._held is not None and time.monotonic() < self._held_until:
            raise self._held
        try:
            generation = await generations.current(self._projector, partition, progress, backlog)
        except LockTimeout as error:
            self._held, self._held_until = error, time.monotonic() + _HELD_SECONDS
            raise
        self._held = None
        return generation

    async def in_memory(
        self, partition: int, space: str | None, cause: RecallogError, progress: Progress | None
    ) -> ReadSession:
        if self._folds is None:
            raise cause
        return await self._folds.session(partition, space, cause, progress)

    async def catch_up(self, partition: int, to: Position, progress: Progress | None) -> None:
        await self.active(partition, progress)

    async def active(self, partition: int, progress: Progress | None) -> Generation:
        return await generations.current(self._projector, partition, progress)

    async def progress_of_others(self, partition: int) -> tuple[Generation, int] | None:
        try:
            active = (await self._projector.store.pointer(partition)).active
            checkpoint = await self._projector.store.checkpoint(active) if active is not None else None
        except StorageError:
            return None
        return None if active is None or checkpoint is None else (active, checkpoint.offset)

    async def unavailable(self, partition: int, error: Rebuilding) -> Rebuilding:
        return error


class WaitForWorkers(ViewAccess):
    """Cluster: workers fold, and queries read the views that they have written. With `after`, a query waits for the
    workers."""

    def __init__(self, projector: Projector, wait_seconds: float) -> None:
        self._projector = projector
        self._store = projector.store
        self._code = projector.fold.code
        self._wait_seconds = wait_seconds
        self._manifest = b""
        """That of the ledger to which the views were found to belong; b"" before."""
        self._verify_at = 0.0

    async def reading(
        self, partition: int, after: Position | None, progress: Progress | None, end: int | None = None
    ) -> ReadSession:
        if time.monotonic() >= self._verify_at and (await self._store.pointer(partition)).active is not None:
            # An empty store is left to the workers, since the first verification binds a store to its ledger. Later
            # ones do not need the ledger, unless the views belong to another one.
            if not self._manifest or await self._store.remember_manifest(self._manifest) != self._manifest:
                self._manifest = await self._projector.verify_ledger_identity(partition, Checkpoint())
            self._verify_at = time.monotonic() + VERIFIED_SECONDS
        if after is not None:
            await self._wait(partition, after)

        async def first_read(rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]) -> ReadResult:
            found = await self._store.read(partition, rows, logs)
            generations.check_readable(found.generation.code, self._code)
            return found

        return ReadSession(self._store, partition, first_read)

    async def in_memory(
        self, partition: int, space: str | None, cause: RecallogError, progress: Progress | None
    ) -> ReadSession:
        raise cause

    async def catch_up(self, partition: int, to: Position, progress: Progress | None) -> None:
        await self.reading(partition, to, progress)

    async def active(self, partition: int, progress: Progress | None) -> Generation:
        active = (await self._store.pointer(partition)).active
        if active is None:
            raise await self.unavailable(partition, Rebuilding("no views yet"))
        generations.check_readable(active.code, self._code)
        return active

    async def progress_of_others(self, partition: int) -> tuple[Generation, int] | None:
        return None

    async def unavailable(self, partition: int, error: Rebuilding) -> Rebuilding:
        pointer = await self._store.pointer(partition)
        if pointer.building is None:
            if pointer.active is not None:
                return error
            return Rebuilding(
                f"partition {partition} has no views, and no worker is building them. Start one: recallog worker"
            )
        checkpoint = await self._store.checkpoint(pointer.building)
        end = max(1, (await self._projector.ledger.ends())[partition])
        done = 0 if checkpoint is None else checkpoint.offset + 1
        return Rebuilding(
            f"the views of partition {partition} are being built, {min(100, 100 * done // end)} % done; try again"
        )

    async def _wait(self, partition: int, after: Position) -> None:
        """Wait until the views have processed `after`. Raises `OutOfRange` if the ledger has no record there."""
        give_up, is_known = time.monotonic() + self._wait_seconds, False
        while True:
            found: ReadResult | None = None
            processed = -1
            try:
                found = await self._store.read(partition)
                processed = found.checkpoint.offset
            except Rebuilding as error:
                missing = error
            if processed >= after.offset:
                return
            if not is_known:
                ends = await self._projector.ledger.ends()
                positions.check_position(ends, partition, after.offset, "after")
                is_known = True
            left = give_up - time.monotonic()
            if left < 0:
                if found is None:
                    raise await self.unavailable(partition, missing)
                raise ViewsBehind(
                    f"after {self._wait_seconds:g} s the views of partition {partition} have processed {processed:,}, "
                    f"but the query waits for {after}. Are enough workers running? See the lag: recallog status"
                )
            if found is None:
                await asyncio.sleep(_POLL_SECONDS)
            else:
                await self._store.wait_for(found.generation, after.offset, left)
