"""Keeping the index: following the ledger, each partition in the generation that readers are served from.

Which model makes the vectors is a property of the index, not of the process: the active generation says it, and the
settings say it for the first one only. So another model takes over for all processes at once, when its generation does.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from recallog.serving import Folding
from recallog.views import Views
from recallog_projections.index import points
from recallog_projections.index.documents import Index
from recallog_projections.index.embedder import Embedder
from recallog_projections.index.engine import Engine
from recallog_projections.index.store import IndexStore
from recallog_projections.projection import Projection
from recallog_projections.settings import Settings
from recallog_projections.stores.store import Generation, Pointer, Store
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable, RecallogError
from recallog_streams import generations
from recallog_streams.kept import backoff
from recallog_streams.ledger import Ledger
from recallog_streams.projector import GenerationGone, Progress, Projector
from recallog_streams.stopping import Stopping

INDEX = "index"
POLL_SECONDS = 0.2
"""How often the ledger's end is looked at while there is nothing to index."""

_log = logging.getLogger("recallog.index")


class MadeWith(msgspec.Struct, frozen=True):
    """What makes the points of an index."""

    embedder: str
    """As the settings name it: "minilm"."""
    model: str
    """What it is: with other weights the vectors would be others."""
    pieces: bool
    """Whether points carry a vector for each content word-piece."""
    points: int = points.VERSION


def made_with(code: str) -> MadeWith:
    """What a generation's points are made with, by its code."""
    return msgspec.convert(json.loads(code)["made_with"][Index.name], MadeWith)


@dataclass
class Indexing:
    """The index of one ledger, as one process sees it."""

    ledger: Ledger
    rows: Store
    """Where the checkpoint stands, and what the projection needs."""
    engine: Engine
    load: Callable[[str], Embedder]
    """The embedder of a name; the same one for the same name. It need not be quick."""
    name: str
    """The embedder of the first generation."""
    pieces: bool = True

    def __post_init__(self) -> None:
        self._views: dict[MadeWith, Views] = {}
        self.trouble = ""
        """Why the index does not follow, in a sentence; "" where it does."""

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
                rested = True
                for partition in range(len(await self.ledger.ends())):
                    if stopping:
                        return
                    rested = not await self.step(partition, progress) and rested
            except RecallogError as error:
                failures += 1
                self.trouble = str(error)
                _log.warning("%s: %s", type(error).__name__, error)
                await stopping.pause(backoff(failures))
            else:
                failures, self.trouble = 0, ""
                if rested:
                    await stopping.pause(POLL_SECONDS)

    async def step(self, partition: int, progress: Progress | None = None) -> bool:
        """Bring one partition to the ledger's end as it is now; whether there was anything to do."""
        pointer = await self.rows.pointer(partition)
        views = await self._views_of(await self._wanted(pointer))
        active, projector = pointer.active, views.builder
        if active is None or active.code != projector.fold.code or await projector.store.checkpoint(active) is None:
            await generations.current(projector, partition, progress)
            return True
        until = (await self.ledger.ends())[partition]
        before = await projector.resume(active)
        try:
            done = await projector.catch_up(active, until, progress)
        except GenerationGone:
            return True  # a cutover: its generation is gone on with
        return done != before

    async def _wanted(self, pointer: Pointer) -> MadeWith:
        if pointer.active is not None:
            before = made_with(pointer.active.code)
            return msgspec.structs.replace(before, points=points.VERSION)
        return await self._made_with(self.name, self.pieces)

    async def _made_with(self, name: str, pieces: bool) -> MadeWith:
        embedder = await asyncio.to_thread(self.load, name)
        return MadeWith(name, embedder.model, pieces and embedder.pieces)

    async def _views_of(self, made: MadeWith) -> Views:
        if made not in self._views:
            embedder = await asyncio.to_thread(self.load, made.embedder)
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


def describe(generation: Generation) -> dict[str, Any]:
    """What a generation's points are made with, for people."""
    return msgspec.structs.asdict(made_with(generation.code))
