"""Asking the index: which generation answers, how far it is, and the model that its vectors were made with."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from recallog_projections.threads import run_in_own_thread
from recallog_schemas.errors import IndexUnavailable, ViewsBehind
from recallog_streams.concurrency import gathered

if TYPE_CHECKING:
    from recallog.index.indexer import Indexer, IndexSnapshot
    from recallog.index.remote import RemoteService

TROUBLE_SECONDS = 5.0
"""How long an index that says why it stands still is waited for."""
_POLL_SECONDS = 0.05


class SemanticIndex:
    """The index as readers see it. Embedded, it is served by a process that the first question starts."""

    def __init__(self, indexer: "Callable[[], Indexer]", service: "Callable[[], RemoteService] | None" = None) -> None:
        """Both are made with their first use: a process that never uses the index imports nothing of it.

        `service` is the process that serves an embedded index; None where the engine is a server.
        """
        self._make_indexer = indexer
        self._make_service = service

    @cached_property
    def indexer(self) -> "Indexer":
        """What follows the ledger, and what rebuilds and verification work on."""
        return self._make_indexer()

    @cached_property
    def _service(self) -> "RemoteService | None":
        return self._make_service() if self._make_service is not None else None

    async def open(self, partition: int, *, start: bool = True) -> "IndexSnapshot":
        """The generation that answers now. Raises `IndexUnavailable`, unless `start` also where nobody serves it."""
        if start:
            await self.start()
        elif self._service is not None and not await asyncio.to_thread(lambda service: service.is_up, self._service):
            raise IndexUnavailable("the index is not being served; recall starts it")
        return await self.indexer.open(partition)

    def exists(self) -> bool:
        """Whether there is an index, or may be: embedded, none is made before the first question."""
        return self._service is None or self._service.exists()

    async def size_bytes(self) -> int:
        """What it takes on its medium, as far as that can be known without starting anything."""
        return await self.indexer.rows.size_bytes() + (await self.indexer.engine.size_bytes() or 0)

    async def start(self) -> None:
        """See to it that the index is served. Raises `IndexUnavailable` where it is not after a while."""
        if self._service is not None:
            await self._service.start()

    async def wait(
        self, partition: int, offset: int, seconds: float, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Wait until the index has processed `offset`.

        Raises `ViewsBehind` where it stands still for so many seconds, or for five and says why, and
        `IndexUnavailable`.
        """
        before, since = -1, time.monotonic()
        while True:
            await self.start()
            processed, of_all = await self._decided(partition)
            if progress is not None:
                progress(min(processed, offset) + 1, offset + 1)
            if processed >= offset and (await self.indexer.rows.pointer(partition)).active is not None:
                return
            if of_all != before:
                before, since = of_all, time.monotonic()
            still = time.monotonic() - since
            why = await self.trouble() if still > TROUBLE_SECONDS else ""
            if still > seconds or why:
                raise ViewsBehind(
                    f"the index of partition {partition} stands still at {processed:,}, and {offset:,} is asked for"
                    + (f": {why}" if why else ". Is an indexer running? Start one: recallog indexer")
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _decided(self, partition: int) -> tuple[int, int]:
        """The last offset processed in one partition, and their sum over all: an indexer takes one after the other."""
        rows = self.indexer.rows

        async def processed(number: int) -> int:
            pointer = await rows.pointer(number)
            shown = pointer.active or pointer.building
            checkpoint = await rows.checkpoint(shown) if shown is not None else None
            return checkpoint.offset if checkpoint is not None else -1

        found = await gathered(processed, range(len(await self.indexer.ledger.ends())))
        return found[partition], sum(found)

    async def trouble(self) -> str:
        """Why the index does not follow, as far as this process can know; "" where it does."""
        try:
            return await asyncio.to_thread(self._service.trouble) if self._service is not None else ""
        except IndexUnavailable as error:
            return str(error)

    async def close(self) -> None:
        """Let go of the engine and of the process that serves it."""
        async with AsyncExitStack() as closing:  # all of it, also where one part fails or the caller is cancelled
            if "_service" in self.__dict__ and self._service is not None:
                closing.push_async_callback(self._service.close)
            if "indexer" in self.__dict__:
                closing.push_async_callback(self.indexer.rows.close)
                closing.push_async_callback(self.indexer.engine.close)
                closing.push_async_callback(run_in_own_thread, self.indexer.close)
