"""The index of a memory that was opened with a custom embedder: this process maintains and searches it."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from recallog.index.ownership import Ownership
from recallog.index.semantic_index import IndexInProcess
from recallog_projections.concurrency import cancel_all
from recallog_projections.index.embedders.embedder import Embedder
from recallog_projections.index.embedders.own_thread import in_own_thread
from recallog_projections.index.embedders.registry import GIVEN
from recallog_projections.threads import run_in_own_thread
from recallog_schemas.errors import IndexUnavailable, SettingsError
from recallog_streams.stop_signal import StopSignal

if TYPE_CHECKING:
    from recallog.index.indexer import Indexer, IndexSnapshot
    from recallog.index.messages import HealthReport


class FollowedIndex(IndexInProcess):
    """The index in the process that has its embedder. It follows the ledger from its first use until it is closed.

    Other processes cannot maintain it, because they do not have the embedder.
    """

    def __init__(
        self,
        indexer: "Callable[[Callable[[str], Embedder], str], Indexer]",
        embedder: Embedder,
        ownership: Ownership | None = None,
    ) -> None:
        """`indexer` makes the indexer with a function that loads embedders by name, and the name of the first one.
        `ownership` is that of an engine in a folder, which one process can open; None if the engine is a server."""
        super().__init__(lambda: indexer(self._load, GIVEN))
        self._embedder = in_own_thread(embedder)
        self._ownership = ownership
        self._following: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self, partition: int) -> "IndexSnapshot":
        await self.begin()
        return await super().open(partition)

    async def begin(self) -> bool:
        self._check_open()
        if self._ownership is not None and not self._follows():
            await asyncio.to_thread(self._ownership.take)
        self._check_open()
        if not self._follows():  # another call may have begun meanwhile
            self._following = asyncio.create_task(self.indexer.run(StopSignal()))
        return True

    async def start(self) -> "HealthReport":
        await self.begin()
        return await super().start()

    async def health(self) -> "HealthReport | None":
        return await super().health() if self._follows() else None

    def exists(self) -> bool:
        return self._ownership is None or self._ownership.has_index()

    async def close(self) -> None:
        self._closed = True
        async with AsyncExitStack() as closing:  # all parts, even if one of them fails or the caller is cancelled
            if self._ownership is not None:
                closing.callback(self._ownership.release)
            closing.push_async_callback(run_in_own_thread, self._embedder.close)
            closing.push_async_callback(super().close)
            if self._following is not None and self._follows():
                await cancel_all(self._following)

    def _check_open(self) -> None:
        if self._closed:
            raise IndexUnavailable("the memory is closed, and with it the index; open it again")

    def _follows(self) -> bool:
        """Whether the ledger is being followed. It is not if the event loop in which this began has ended."""
        task = self._following
        return task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()

    def _load(self, name: str) -> Embedder:
        if name != GIVEN:
            raise SettingsError(
                f"this memory was opened with an embedder of its own, {self._embedder.model}, and the index was built "
                f"with {name!r}. Build it again: memory.admin.reindex(model={GIVEN!r}); or open the memory without an "
                "embedder"
            )
        return self._embedder
