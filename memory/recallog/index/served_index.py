"""The embedded index of a folder, as the processes of the folder use it.

One process can open the engine: the service of the folder (`recallog.index_service`). It executes the operations that
need the index; other processes send them to it. If it cannot answer, the process that was called answers without the
index.
"""

import asyncio
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from recallog import layout
from recallog.index import messages
from recallog.index.building import ROWS_LOST, not_built
from recallog.index.delegation import check_available
from recallog.index.remote import read_health
from recallog.index.semantic_index import SemanticIndex
from recallog.settings import Settings
from recallog_projections.stores.store import Generation, Store
from recallog_schemas.errors import IndexUnavailable, StorageError
from recallog_streams.ledgers.ledger import Ledger

if TYPE_CHECKING:
    from recallog.index.indexer import IndexSnapshot
    from recallog.index.service_process import ServiceProcess


NOT_SERVED = "the index is not being served; recall starts it"


class ServedIndex(SemanticIndex):
    """The embedded index of a folder. A separate process executes the operations that need it."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        self._settings = settings
        self._ledger = ledger
        self._built: set[int] = set()
        """The partitions that had an active generation when they were opened."""

    @cached_property
    def rows(self) -> Store:
        from recallog_projections.stores.sqlite import SqliteStore

        return SqliteStore(self._settings.home / layout.INDEX_ROWS, self._settings.lock_wait_seconds)

    @property
    def home(self) -> Path:
        """The folder."""
        return self._settings.home

    @property
    def deadline_seconds(self) -> float:
        """How long to wait for a service that does not respond."""
        return self._settings.deadline_seconds

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @cached_property
    def _service(self) -> "ServiceProcess":
        from recallog.index.service_process import ServiceProcess  # most commands find a service

        return ServiceProcess(self._settings)

    async def open(self, partition: int) -> "IndexSnapshot":
        check_available()
        raise IndexUnavailable(NOT_SERVED)

    async def serve(self) -> None:
        """Start the process that serves the index unless it runs, and wait for it if there is an index.

        Raises `IndexUnavailable`. While the first generation is being built, it is raised at once and reports the
        progress.
        """
        partition = 0  # the ledger of a folder has one partition
        try:
            is_built = await self._is_built(partition)
            not_yet = (
                None if is_built else await not_built(self._ledger, self.rows, partition, await self._loss(partition))
            )
        except StorageError as error:  # the service may be able to repair them
            is_built, not_yet = False, IndexUnavailable(f"the rows of the index cannot be read: {error}")
        if not_yet is not None:
            health = await self._service.begin()
            if health is not None and health.problem:
                raise IndexUnavailable(f"the index cannot be built: {health.problem}")
            raise not_yet
        await self._service.start()

    async def _loss(self, partition: int) -> str:
        """Why a partition does not have a generation although the engine has a collection of it; "" if it does not have
        one."""
        if (await self.rows.pointer(partition)).building is not None:
            return ""
        from recallog_projections.index.engines import folder

        collections = folder.collections_in(self._settings.home / layout.INDEX_ENGINE)
        return ROWS_LOST if any(name.startswith(f"{partition}-") for name in collections) else ""

    async def _is_built(self, partition: int) -> bool:
        """Whether a partition has a generation that can answer. Generations are replaced, but never removed."""
        if partition in self._built:
            return True
        active = (await self.rows.pointer(partition)).active if self.exists() else None
        if active is None:
            return False
        await self._check_servable(active)
        self._built.add(partition)
        return True

    async def _check_servable(self, active: Generation) -> None:
        """Raise `IndexUnavailable` if no service can answer with a generation, because a program has its embedder."""
        from recallog.index.ownership import held_by, owner_of
        from recallog_projections.index.embedders.registry import GIVEN
        from recallog_projections.index.store import made_with

        made = made_with(active.code)
        if made.embedder != GIVEN:
            return
        owner = await asyncio.to_thread(owner_of, self._settings.home)
        if owner is not None:
            raise held_by(self._settings.home, owner)
        raise IndexUnavailable(
            f"the index was built by a program with an embedder of its own, {made.model}, which is not running now. "
            "Open the memory with it: Memory.open(embedder=...), or build the index again: recallog reindex --model "
            "minilm"
        )

    def exists(self) -> bool:
        home = self._settings.home
        is_file = (home / layout.INDEX).is_file()  # errors are reported where the index is used
        return is_file or any((home / path).exists() for path in (layout.INDEX_ROWS, layout.INDEX_ENGINE))

    async def size_bytes(self) -> int:
        from recallog_projections.index.engines import folder

        engine = self._settings.home / layout.INDEX_ENGINE
        return await self.rows.size_bytes() + await asyncio.to_thread(folder.disk_bytes, engine)

    async def begin(self) -> bool:
        await self._service.begin()
        return True

    async def start(self) -> messages.HealthReport:
        return await self._service.start(patient=True)

    async def health(self) -> messages.HealthReport | None:
        return await read_health(self.home, self.deadline_seconds)

    def note_damage(self, partition: int, found: str) -> None:
        """Does nothing: the service finds the damage, and repairs it."""

    async def close(self) -> None:
        async with AsyncExitStack() as closing:  # all parts, even if one of them fails or the caller is cancelled
            if "_service" in self.__dict__:
                closing.push_async_callback(self._service.close)
            if "rows" in self.__dict__:
                closing.push_async_callback(self.rows.close)
