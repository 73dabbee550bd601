"""Access of readers to the semantic index: its active generation, waiting for it, and the process that serves it."""

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

PROBLEM_SECONDS = 5.0
"""How long `wait` waits for an index that makes no progress and reports a problem."""
_POLL_SECONDS = 0.05


class SemanticIndex:
    """The index as readers use it. In the embedded form it is served by a process that the first query starts."""

    def __init__(self, indexer: "Callable[[], Indexer]", service: "Callable[[], RemoteService] | None" = None) -> None:
        """Both are created on first use: a process that never uses the index imports nothing of it.

        `service` is the process that serves an embedded index; None if the engine is a server.
        """
        self._make_indexer = indexer
        self._make_service = service
        self._built: set[int] = set()
        """The partitions that had an active generation when they were opened."""

    @cached_property
    def indexer(self) -> "Indexer":
        """The indexer, which also provides the projection group for rebuilds and verification."""
        return self._make_indexer()

    @cached_property
    def _service(self) -> "RemoteService | None":
        return self._make_service() if self._make_service is not None else None

    async def open(self, partition: int, *, start: bool = True) -> "IndexSnapshot":
        """The active generation. Raises `IndexUnavailable`; without `start` also if no process serves the index.

        While the first generation is being built, it raises at once and says how far it is; the process that builds it
        is started if necessary.
        """
        if start and self._service is not None and not await self._is_built(self._service, partition):
            if await self._service.begin() and (problem := await self.problem()):
                raise IndexUnavailable(f"the index cannot be built: {problem}")
        elif start:
            await self.start()
        elif self._service is not None and not await asyncio.to_thread(lambda service: service.is_up, self._service):
            raise IndexUnavailable("the index is not being served; recall starts it")
        return await self.indexer.open(partition)

    async def _is_built(self, service: "RemoteService", partition: int) -> bool:
        """Whether a partition has a generation that can answer. Generations are replaced, never taken away."""
        if partition in self._built:
            return True
        if not service.exists() or (await self.indexer.rows.pointer(partition)).active is None:
            return False
        self._built.add(partition)
        return True

    def exists(self) -> bool:
        """Whether an index may exist: in the embedded form, the first query creates it."""
        return self._service is None or self._service.exists()

    async def size_bytes(self) -> int:
        """The size of the index on disk, as far as it is known without starting a process."""
        return await self.indexer.rows.size_bytes() + (await self.indexer.engine.size_bytes() or 0)

    async def begin(self) -> bool:
        """Start the process that serves the index, without waiting for it. Returns whether the index has one.

        Raises `IndexUnavailable` if it cannot be started.
        """
        if self._service is None:
            return False
        await self._service.begin()
        return True

    async def start(self) -> None:
        """Make sure that the index is served. Raises `IndexUnavailable` if it is not after `START_SECONDS`."""
        if self._service is not None:
            await self._service.start()

    async def wait(
        self, partition: int, offset: int, seconds: float, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Wait until the index has processed `offset`.

        Raises `ViewsBehind` if it makes no progress for `seconds`, or reports a problem after `PROBLEM_SECONDS` without
        progress, and `IndexUnavailable`.
        """
        before, since = -1, time.monotonic()
        while True:
            await self.start()
            processed, of_all = await self._processed(partition)
            if progress is not None:
                progress(min(processed, offset) + 1, offset + 1)
            if processed >= offset and (await self.indexer.rows.pointer(partition)).active is not None:
                return
            if of_all != before:
                before, since = of_all, time.monotonic()
            idle_seconds = time.monotonic() - since
            problem = await self.problem() if idle_seconds > PROBLEM_SECONDS else ""
            if idle_seconds > seconds or problem:
                raise ViewsBehind(
                    f"the index of partition {partition} has stopped at {processed:,}, before {offset:,}"
                    + (f": {problem}" if problem else ". Is an indexer running? Start one: recallog indexer")
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _processed(self, partition: int) -> tuple[int, int]:
        """The last offset processed in one partition, and the sum over all: an indexer reads partitions in turn."""
        rows = self.indexer.rows

        async def processed(number: int) -> int:
            pointer = await rows.pointer(number)
            shown = pointer.active or pointer.building
            checkpoint = await rows.checkpoint(shown) if shown is not None else None
            return checkpoint.offset if checkpoint is not None else -1

        found = await gathered(processed, range(len(await self.indexer.ledger.ends())))
        return found[partition], sum(found)

    async def problem(self) -> str:
        """Why the index does not follow the ledger, as far as this process knows; "" if it does."""
        try:
            return await asyncio.to_thread(self._service.problem) if self._service is not None else ""
        except IndexUnavailable as error:
            return str(error)

    async def close(self) -> None:
        """Close the engine, and end the service process if this process has started it."""
        async with AsyncExitStack() as closing:  # all parts, also if one of them fails or the caller is cancelled
            if "_service" in self.__dict__ and self._service is not None:
                closing.push_async_callback(self._service.close)
            if "indexer" in self.__dict__:
                closing.push_async_callback(self.indexer.rows.close)
                closing.push_async_callback(self.indexer.engine.close)
                closing.push_async_callback(run_in_own_thread, self.indexer.close)
