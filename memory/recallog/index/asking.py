"""Asking the index: which generation answers, how far it is, and the model that its vectors were made with."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from recallog.index.client import START_SECONDS, Served
from recallog.index.indexing import Indexing, check_model
from recallog_projections.index.embedder import Embedder
from recallog_projections.index.engine import Engine
from recallog_projections.index.store import collection_of, made_with
from recallog_schemas.errors import IndexUnavailable, ViewsBehind

TROUBLE_SECONDS = 5.0
"""How long an index that says why it stands still is waited for."""
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Opened:
    """One generation of the index, as it answers one question."""

    engine: Engine
    collection: str
    embedder: Embedder
    pieces: bool
    generation: str
    checkpoint: int
    """The last offset decided."""


class Asking:
    """The index as readers see it. Embedded, it is served by a process that the first question starts."""

    def __init__(self, indexing: Indexing, served: Served | None) -> None:
        self.indexing = indexing
        self._served = served

    async def open(self, partition: int, *, start: bool = True) -> Opened:
        """The generation that answers now. Raises `IndexUnavailable`, unless `start` also where nobody serves it."""
        if start:
            await self.start()
        elif self._served is not None and not await asyncio.to_thread(lambda served: served.is_up, self._served):
            raise IndexUnavailable("the index is not being served; recall starts it")
        pointer = await self.indexing.rows.pointer(partition)
        active = pointer.active
        if active is None:
            done = await self.indexing.rows.checkpoint(pointer.building) if pointer.building is not None else None
            end = (await self.indexing.ledger.ends())[partition]
            share = 100 * ((done.offset if done else -1) + 1) // max(1, end)
            raise IndexUnavailable(f"the index is being built, {share} % are done; ask again")
        checkpoint = await self.indexing.rows.checkpoint(active)
        if checkpoint is None:
            raise IndexUnavailable("the index is lost, and will be built again; ask again")
        made = made_with(active.code)
        embedder = await self.indexing.embedder(made.embedder)
        check_model(embedder, made)
        return Opened(self.indexing.engine, collection_of(active), embedder, made.pieces, active.id, checkpoint.offset)

    def exists(self) -> bool:
        """Whether there is an index, or may be: embedded, none is made before the first question."""
        return self._served is None or self._served.exists()

    async def size_bytes(self) -> int:
        """What it takes on its medium, as far as that can be known without starting anything."""
        return await self.indexing.rows.size_bytes() + (await self.indexing.engine.size_bytes() or 0)

    async def start(self) -> None:
        """See to it that the index is served. Raises `IndexUnavailable` where it is not after a while."""
        if self._served is not None:
            await self._served.start(START_SECONDS)

    async def wait(
        self, partition: int, offset: int, seconds: float, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Until the index has decided `offset`.

        Raises `ViewsBehind` where it stands still for so many seconds, or for five and says why, and
        `IndexUnavailable`.
        """
        before, since = -1, time.monotonic()
        while True:
            await self.start()
            decided, of_all = await self._decided(partition)
            if progress is not None:
                progress(min(decided, offset) + 1, offset + 1)
            if decided >= offset and (await self.indexing.rows.pointer(partition)).active is not None:
                return
            if of_all != before:
                before, since = of_all, time.monotonic()
            still = time.monotonic() - since
            why = self.trouble() if still > TROUBLE_SECONDS else ""
            if still > seconds or why:
                raise ViewsBehind(
                    f"the index of partition {partition} stands still at {decided:,}, and {offset:,} is asked for"
                    + (f": {why}" if why else ". Is an indexer running? Start one: recallog indexer")
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _decided(self, partition: int) -> tuple[int, int]:
        """The last offset decided in one partition, and how many in all: an indexer takes one after the other."""
        rows, found = self.indexing.rows, []
        for number in range(len(await self.indexing.ledger.ends())):
            pointer = await rows.pointer(number)
            shown = pointer.active or pointer.building
            checkpoint = await rows.checkpoint(shown) if shown is not None else None
            found.append(checkpoint.offset if checkpoint is not None else -1)
        return found[partition], sum(found)

    def trouble(self) -> str:
        """Why the index does not follow, as far as this process can know; "" where it does."""
        try:
            return self._served.trouble() if self._served is not None else ""
        except IndexUnavailable as error:
            return str(error)

    async def close(self) -> None:
        """Let go of the engine and of the process that serves it."""
        self.indexing.close()
        await self.indexing.engine.close()
        await self.indexing.rows.close()
        if self._served is not None:
            await asyncio.to_thread(self._served.close)
