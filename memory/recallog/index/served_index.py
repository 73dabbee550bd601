"""The embedded index of a folder, as the processes of the folder use it.

One process can open the engine: the service of the folder (`recallog.index_service`). It executes the operations that
need the index, and the others send them there. What it cannot answer is answered without the index where it was asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from recallog import layout
from recallog.index import messages, remote
from recallog.index.building import not_built
from recallog.index.remote import ServiceAbsent, ServiceProcess
from recallog.index.semantic_index import SemanticIndex
from recallog.settings import Settings
from recallog_projections.stores.store import Store
from recallog_schemas.errors import IndexUnavailable
from recallog_streams.ledgers.ledger import Ledger

if TYPE_CHECKING:
    from recallog.index.indexer import IndexSnapshot

_TRIES = 2
"""How often an operation is sent: a service that ends meanwhile is started again once."""

Answer = TypeVar("Answer")

_unavailable: ContextVar[IndexUnavailable | None] = ContextVar("unavailable", default=None)
"""Why the query that is being executed here cannot use the index."""


class ServiceStarted(Exception):
    """The service answers now, and this process cannot: it is to execute the operation."""


class ServedIndex(SemanticIndex):
    """The embedded index of a folder. A process of its own executes the operations that need it; `open` starts it."""

    def __init__(self, settings: Settings, ledger: Ledger, rows: Callable[[], Store]) -> None:
        self._settings = settings
        self._ledger = ledger
        self._make_rows = rows
        self._built: set[int] = set()
        """The partitions that had an active generation when they were opened."""

    @cached_property
    def rows(self) -> Store:
        return self._make_rows()

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @cached_property
    def _service(self) -> ServiceProcess:
        return ServiceProcess(self._settings)

    async def perform(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        log_events: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> bytes:
        """The answer of the service to an operation with validated arguments, as JSON.

        `progress` is called with (done, total) while the service works. Raises the error of the operation,
        `ServiceAbsent` if no service answers, and `IndexUnavailable` if the index cannot answer now.
        """
        message = messages.Perform(operation, msgspec.json.encode(arguments), log_events)
        return await remote.call(self._settings.home, message, progress)

    async def answer(self, served: Callable[[], Awaitable[Answer]], here: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of the service, from `served`; that of `here`, without the index, if the index cannot answer.

        If no service answers, `here` is executed, and starts one if it opens the index.
        """
        for _ in range(_TRIES):
            try:
                return await served()
            except ServiceAbsent as error:
                reason: IndexUnavailable = error
            except IndexUnavailable as error:
                reason = error
                break
            try:
                return await here()
            except ServiceStarted:
                continue
        before = _unavailable.set(reason)
        try:
            return await here()
        finally:
            _unavailable.reset(before)

    async def open(self, partition: int, *, start: bool = True) -> "IndexSnapshot":
        if (reason := _unavailable.get()) is not None:
            raise reason
        if not start:
            raise IndexUnavailable("the index is not being served; recall starts it")
        if not await self._is_built(partition):
            if await self._service.begin() and (problem := (await self.health()).problem):
                raise IndexUnavailable(f"the index cannot be built: {problem}")
            raise await not_built(self._ledger, self.rows, partition)
        await self.start()
        raise ServiceStarted

    async def _is_built(self, partition: int) -> bool:
        """Whether a partition has a generation that can answer. Generations are replaced, never taken away."""
        if partition in self._built:
            return True
        if not self.exists() or (await self.rows.pointer(partition)).active is None:
            return False
        self._built.add(partition)
        return True

    def exists(self) -> bool:
        return (self._settings.home / layout.INDEX_ROWS).exists()

    async def size_bytes(self) -> int:
        from recallog_projections.index.engines import folder

        engine = self._settings.home / layout.INDEX_ENGINE
        return await self.rows.size_bytes() + await asyncio.to_thread(folder.disk_bytes, engine)

    async def begin(self) -> bool:
        await self._service.begin()
        return True

    async def start(self) -> None:
        await self._service.start()

    async def health(self) -> messages.HealthReport:
        try:
            return await self._service.health()
        except IndexUnavailable as error:
            return messages.HealthReport(str(error))

    async def close(self) -> None:
        async with AsyncExitStack() as closing:  # all parts, also if one of them fails or the caller is cancelled
            if "_service" in self.__dict__:
                closing.push_async_callback(self._service.close)
            if "rows" in self.__dict__:
                closing.push_async_callback(self.rows.close)
