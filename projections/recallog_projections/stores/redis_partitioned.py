"""Views spread over several Redis servers by partition: their memory and their threads add up.

Partition n is on the server n modulo their number. What a store guarantees, it guarantees per partition, so no call
needs two servers, and a server that does not answer stops its own partitions only.

Each server keeps its place among them together with the manifest of the ledger. With the servers in another order, or
with more or fewer of them, workers would build partitions a second time elsewhere, and readers with the former settings
would find views that nobody maintains. So other places are refused.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from recallog_projections.rows import Changes
from recallog_projections.stores.redis import COMMIT_CHANGES_MAX, IN_PART, RedisStore
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Scan,
    Store,
)
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import LedgerMismatch, StorageUnavailable

Result = TypeVar("Result")


class PartitionedRedis(Store):
    """One namespace on several servers: `stores` has its part on each of them, in their order. Raises as they do."""

    remote: ClassVar[bool] = True
    commit_changes_max: ClassVar[int] = COMMIT_CHANGES_MAX

    def __init__(self, stores: Sequence[RedisStore]) -> None:
        self._stores = stores
        self._manifest = b""
        """The manifest that was compared last."""
        self._unknown: set[RedisStore] = set()
        """The stores whose server did not answer then: they are compared before they are used."""

    async def _of(self, partition: int) -> RedisStore:
        store = self._stores[partition % len(self._stores)]
        if store in self._unknown:
            if self._compare(store, await store.manifest(), self._manifest) != self._manifest:
                raise LedgerMismatch(f"the Redis at {store.address} holds views of another ledger: see recallog status")
            self._unknown.discard(store)
        return store

    async def _all(self, ask: Callable[[RedisStore], Awaitable[Result]]) -> list[Result]:
        return await asyncio.gather(*map(ask, self._stores))

    async def remember_manifest(self, manifest: bytes) -> bytes:
        """As in `Store`. Raises `LedgerMismatch` if a server has another place.

        Servers that do not answer are left out, unless none answers.
        """
        answers = await asyncio.gather(*(store.manifest() for store in self._stores), return_exceptions=True)
        known: dict[RedisStore, bytes | None] = {}
        errors = []
        for store, answer in zip(self._stores, answers, strict=True):
            if isinstance(answer, BaseException):
                errors.append(answer)
            else:
                known[store] = answer
        if errors and (not known or not all(isinstance(error, StorageUnavailable) for error in errors)):
            raise errors[0]
        self._manifest, self._unknown = manifest, {*self._stores} - {*known}
        for store, stored in known.items():
            if (remembered := self._compare(store, stored, manifest)) != manifest:
                return remembered
        # Only now: a server that was flushed must not take the manifest of a ledger that the others refuse.
        for store in [store for store, stored in known.items() if stored is None]:
            stored = await store.remember_manifest(self._add_place(store, manifest))
            if (remembered := self._compare(store, stored, manifest)) != manifest:
                return remembered
        return manifest

    def _compare(self, store: RedisStore, stored: bytes | None, manifest: bytes) -> bytes:
        """What a server has instead of `manifest`, or `manifest`."""
        mine = self._add_place(store, b"")
        if stored is None or stored == manifest + mine:
            return manifest
        of_ledger, separator, place = stored.rpartition(IN_PART)
        if separator + place == mine:
            return of_ledger
        raise store.wrong_part(stored, mine.decode().removeprefix(" in "))

    def _add_place(self, store: RedisStore, manifest: bytes) -> bytes:
        return manifest + IN_PART + b"%d of %d" % (self._stores.index(store) + 1, len(self._stores))

    async def clear(self) -> None:
        await self._all(lambda store: store.clear())

    async def pointer(self, partition: int) -> Pointer:
        return await (await self._of(partition)).pointer(partition)

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        return await (await self._of(generation.partition)).create(generation, replaces)

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        return await (await self._of(building.partition)).activate(building, unless_beyond=unless_beyond)

    async def retire(self, generation: Generation) -> bool:
        return await (await self._of(generation.partition)).retire(generation)

    async def collect_garbage(self, partition: int) -> None:
        await (await self._of(partition)).collect_garbage(partition)

    async def has_garbage(self, partition: int) -> bool:
        return await (await self._of(partition)).has_garbage(partition)

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        return await (await self._of(generation.partition)).checkpoint(generation)

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        return await (await self._of(generation.partition)).commit(generation, expected, new, changes)

    async def wait_for(self, generation: Generation, offset: int, seconds: float) -> None:
        await (await self._of(generation.partition)).wait_for(generation, offset, seconds)

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        return await (await self._of(partition)).read(partition, rows, logs, generation)

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        return await (await self._of(generation.partition)).scan_chunk(generation, scan, damaged)

    async def contents(self) -> AsyncIterator[tuple[str, bytes]]:
        for store in self._stores:
            async for place, data in store.contents():
                yield f"{store.address} {place}", data

    async def files(self) -> Sequence[Path]:
        return [path for found in await self._all(lambda store: store.files()) for path in found]

    async def size_bytes(self) -> int:
        return sum(await self._all(lambda store: store.size_bytes()))

    async def close(self) -> None:
        await self._all(lambda store: store.close())
