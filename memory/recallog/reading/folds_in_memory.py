"""Folds in memory, for queries whose views cannot be read or brought up to date.

The causes are a read-only folder, a full disk, a damaged file, or a stopped process that holds a lock. A fold starts
from the present views, or from the beginning of the ledger if these cannot be read.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from recallog.reading.read_session import ReadSession
from recallog_projections.notices import warn_once
from recallog_projections.projection import Projection
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.overlay import OverlayStore
from recallog_projections.stores.store import Checkpoint, Generation
from recallog_schemas import limits
from recallog_schemas.errors import LedgerMismatch, RecallogError, StorageError, StorageTooNew
from recallog_streams.progress import Progress
from recallog_streams.projector import GenerationGone, ProcessedBatch, Projector


@dataclass(slots=True)
class _Fold:
    projector: Projector
    generation: Generation
    start: int
    """The offset up to which the views were used."""
    advancing: asyncio.Lock = field(default_factory=asyncio.Lock)


class FoldsInMemory:
    """The folds of one group of views. The last few are kept, so that a later query folds only new records."""

    def __init__(self, projector: Projector, projections: Sequence[Projection]) -> None:
        """`projector` folds the views that these folds replace."""
        self._projector = projector
        self._projections = projections
        self._folds: OrderedDict[tuple[int, str | None], _Fold] = OrderedDict()
        self._broken: set[str] = set()
        """Generations of the views that could not be read."""

    async def session(
        self, partition: int, space: str | None, cause: RecallogError, progress: Progress | None
    ) -> ReadSession:
        """A session that sees all records of `space` (None: of all spaces) that the ledger holds now.

        Raises `cause` if more than `limits.AS_OF_RECORDS_MAX` records must be folded.
        """
        until = (await self._projector.ledger.ends())[partition]
        views = await self._views(partition)
        start = -1 if views is None else views[1].offset
        if until - start - 1 <= limits.READ_BATCH_RECORDS:
            space = None  # one fold for all spaces
        elif space is None and until - start - 1 > limits.AS_OF_RECORDS_MAX:
            raise cause
        fold = self._folds.get((partition, space))
        if fold is None or fold.start != start or (views is not None and fold.generation != views[0]):
            fold = await self._new(partition, space, views, until, cause)
        self._keep((partition, space), fold)
        self._warn(cause, start + 1, until)
        try:
            async with fold.advancing:
                await fold.projector.catch_up(fold.generation, until, progress)
        except GenerationGone:  # the views have advanced, or the fold contains erased content
            self._folds.pop((partition, space), None)
            raise
        return ReadSession(fold.projector.store, partition, fold.generation)

    async def _views(self, partition: int) -> tuple[Generation, Checkpoint] | None:
        """The generation of the views that can be read, at its checkpoint; None if there is none."""
        store = self._projector.store
        for fold in self._folds.values():
            if isinstance(fold.projector.store, OverlayStore) and fold.projector.store.broken:
                self._broken.add(fold.generation.id)
        try:
            active = (await store.pointer(partition)).active
            if active is None or active.id in self._broken or not await self._projector.fits(active):
                return None
            checkpoint = await store.checkpoint(active)
            if checkpoint is None:
                return None
            await self._projector.verify_once(active, checkpoint)
        except (LedgerMismatch, StorageTooNew):
            raise
        except StorageError:
            return None
        return active, checkpoint

    async def _new(
        self,
        partition: int,
        space: str | None,
        views: tuple[Generation, Checkpoint] | None,
        until: int,
        cause: RecallogError,
    ) -> _Fold:
        records = 0

        def count(batch: ProcessedBatch) -> None:
            nonlocal records
            records += batch.records
            if records > limits.AS_OF_RECORDS_MAX:
                raise cause

        ledger = self._projector.ledger
        if views is None:
            projector = Projector(ledger, MemoryStore(), self._projections, space=space, processed=count)
            return _Fold(projector, await projector.first_generation(partition, until), -1)
        generation, checkpoint = views
        store = OverlayStore(self._projector.store, generation, checkpoint)
        projector = Projector(ledger, store, self._projections, space=space, processed=count)
        return _Fold(projector, generation, checkpoint.offset)

    def _keep(self, key: tuple[int, str | None], fold: _Fold) -> None:
        self._folds[key] = fold
        self._folds.move_to_end(key)
        while len(self._folds) > limits.FOLDS_IN_MEMORY_MAX:
            self._folds.popitem(last=False)

    def _warn(self, cause: RecallogError, processed: int, until: int) -> None:
        where = self._projector.store.location
        warn_once(
            "storage",
            ("folded in memory", where, type(cause)),
            f"the views have {processed:,} of {until:,} records, and queries fold the others in memory: {cause}",
        )
