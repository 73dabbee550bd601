"""Keeping the index: following the ledger, each partition in the generation that readers are served from.

Which model makes the vectors is a property of the index, not of the process: the active generation says it, and the
settings say it for the first one only. So another model takes over for all processes at once, when its generation does.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec

from recallog.serving import Folding
from recallog.views import Views
from recallog_projections.index import points
from recallog_projections.index.documents import Index
from recallog_projections.index.embedder import Embedder
from recallog_projections.index.engine import Engine
from recallog_projections.index.store import IndexStore, MadeWith, made_with
from recallog_projections.projection import Projection
from recallog_projections.settings import Settings
from recallog_projections.stores.store import Generation, Pointer, Store
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable, LockTimeout, RecallogError
from recallog_streams import generations
from recallog_streams.kept import backoff
from recallog_streams.ledger import Ledger
from recallog_streams.projector import GenerationGone, Progress, Projector
from recallog_streams.stopping import Stopping

INDEX = "index"
POLL_SECONDS = 0.2
"""How often the ledger's end is looked at while there is nothing to index."""
LOOK_SECONDS = 5.0
"""How often the engine is asked whether it still has what it had."""
ROUND_RECORDS = 8 * limits.INDEX_BATCH_RECORDS
"""How many records of one partition are indexed before the others have their turn."""

_log = logging.getLogger("recallog.index")


@dataclass
class Indexing:
    """The index of one ledger, as one process sees it."""

    ledger: Ledger
    rows: Store
    """Where the checkpoint stands, and what the projection needs."""
    engine: Engine
    load: Callable[[str], Embedder]
    """The embedder of a name, loaded. It need not be quick; it is asked once."""
    name: str
    """The embedder of the first generation."""
    pieces: bool = True
    lock: Callable[[int], AbstractAsyncContextManager[Any]] = lambda partition: nullcontext()
    """Held while a partition is worked on, so that processes which share an index do not make each vector twice."""

    def __post_init__(self) -> None:
        self._views: dict[MadeWith, Views] = {}
        self._embedders: dict[str, Embedder] = {}
        self._loading = Lock()
        self._looked_at = -LOOK_SECONDS
        self.trouble = ""
        """Why the index does not follow, in a sentence; "" where it does."""

    async def embedder(self, name: str) -> Embedder:
        """The embedder `name`, loaded with the first use. Raises `IndexUnavailable`, or `SettingsError`."""
        known = self._embedders.get(name)
        return known if known is not None else await asyncio.to_thread(self._loaded, name)

    def _loaded(self, name: str) -> Embedder:
        with self._loading:
            if name not in self._embedders:
                self._embedders[name] = self.load(name)
            return self._embedders[name]

    def close(self) -> None:
        """Let go of the models."""
        while self._embedders:
            self._embedders.popitem()[1].close()

    async def views(self, partition: int = 0) -> Views:
        """The index as views: what `rebuild` and `verify` work on. Raises `IndexUnavailable`."""
        pointer = await self.rows.pointer(partition)
        return await self._views_of(await self._wanted(pointer))

    async def moved(self, name: str, *, pieces: bool | None = None) -> Views:
        """The views of an index made with another embedder: a rebuild of them moves the index to it."""
        return await self._views_of(await self._made_with(name, self.pieces if pieces is None else pieces))

    async def run(self, stopping: Stopping, progress: Progress | None = None) -> None:
        """Keep all partitions at the ledger's end until told to stop."""
        failures = 0
        while not stopping:
            try:
                moved = await stopping.unless(self._round(progress))
            except Exception as error:  # noqa: BLE001 - an engine or embedder of somebody else's may raise anything
                failures += 1
                named = f"{type(error).__name__}: {error}"
                self.trouble = str(error) if isinstance(error, RecallogError) else named
                _log.warning("%s", named, exc_info=not isinstance(error, RecallogError))
                await stopping.pause(backoff(failures))
            else:
                failures, self.trouble = 0, ""
                if not moved:
                    await stopping.pause(POLL_SECONDS)

    async def _round(self, progress: Progress | None) -> bool:
        look = time.monotonic() - self._looked_at >= LOOK_SECONDS
        if look:
            self._looked_at = time.monotonic()
        ends = await self.ledger.ends()
        moved = [await self._step(partition, end, look, progress) for partition, end in enumerate(ends)]
        return any(moved)

    async def _step(self, partition: int, end: int, look: bool, progress: Progress | None) -> bool:
        """Bring one partition on; whether there was anything to do. With `look` the engine is asked what it has."""
        pointer = await self.rows.pointer(partition)
        views = await self._views_of(await self._wanted(pointer))
        active, projector = pointer.active, views.builder
        if active is not None and active.code == projector.fold.code:
            store = projector.store if look else self.rows
            done = await store.checkpoint(active)
            if done is not None and done.offset + 1 >= end:
                return False
        try:
            async with self.lock(partition):
                await self._go_on(projector, partition, active, end, progress)
        except LockTimeout:
            return False  # another process is at it
        except GenerationGone:
            pass  # a cutover: its generation is gone on with
        return True

    async def _go_on(
        self, projector: Projector, partition: int, active: Generation | None, end: int, progress: Progress | None
    ) -> None:
        done = await projector.store.checkpoint(active) if active is not None else None
        if active is None or done is None or active.code != projector.fold.code:
            await generations.current(projector, partition, progress)
        else:
            # Not all at once: the other partitions wait.
            await projector.catch_up(active, min(end, done.offset + 1 + ROUND_RECORDS), progress)

    async def _wanted(self, pointer: Pointer) -> MadeWith:
        if pointer.active is not None:
            before = made_with(pointer.active.code)
            return msgspec.structs.replace(before, points=points.VERSION)
        return await self._made_with(self.name, self.pieces)

    async def _made_with(self, name: str, pieces: bool) -> MadeWith:
        embedder = await self.embedder(name)
        return MadeWith(name, embedder.model, pieces and embedder.pieces)

    async def _views_of(self, made: MadeWith) -> Views:
        if made not in self._views:
            embedder = await self.embedder(made.embedder)
            check_model(embedder, made)
            store = IndexStore(self.rows, self.engine, embedder, pieces=made.pieces)
            projections: list[Projection] = [Index(msgspec.structs.asdict(made)), Settings()]
            projector = Projector(self.ledger, store, projections, batch_records=limits.INDEX_BATCH_RECORDS)
            self._views[made] = Views(INDEX, store, projections, builder=projector, serving=Folding(projector))
        return self._views[made]


def check_model(embedder: Embedder, made: MadeWith) -> None:
    """Raise where `embedder` would give other vectors than those of the index."""
    if embedder.model != made.model:
        raise IndexUnavailable(
            f"the index was made with {made.model}, and {made.embedder!r} is {embedder.model} here. Move it: recallog "
            f"reindex --model {made.embedder}"
        )
