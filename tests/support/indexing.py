"""An index in this process: the real loop, store and engine, and an embedder without a model."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from recallog import Memory
from recallog.composition import compose
from recallog.index.indexer import Indexer
from recallog.index.semantic_index import IndexInProcess
from recallog.settings import Settings
from recallog_projections.index.engines.engine import Engine
from recallog_projections.index.store import collection_of
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation, Store
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.stop_signal import StopSignal
from support.toy_embedder import ToyEmbedder


def toys(*names: str) -> dict[str, ToyEmbedder]:
    """Toy embedders by their names in settings."""
    return {name: ToyEmbedder(name) for name in names or ("toy",)}


def indexing_of(
    ledger: Ledger, engine: Engine, embedders: Mapping[str, ToyEmbedder] | None = None, rows: Store | None = None
) -> Indexer:
    """An indexer of `ledger`, whose first generation uses the first of `embedders`."""
    known = embedders or toys()
    return Indexer(ledger, rows or MemoryStore(), engine, known.__getitem__, next(iter(known)))


async def catch_up(indexing: Indexer, partition: int = 0) -> Generation:
    """The active generation at the ledger's end; it is built if there is none."""
    return await (await indexing.views(partition)).access.active(partition, None)


async def indexed(memory: Memory) -> None:
    """Index all events of a memory, if it has an index in this process."""
    index = memory._components.index
    if isinstance(index, IndexInProcess):
        await catch_up(index.indexer)


async def collection(indexing: Indexer) -> str:
    """The collection of the active generation."""
    active = (await indexing.rows.pointer(0)).active
    assert active is not None
    return collection_of(active)


@asynccontextmanager
async def running(indexing: Indexer) -> AsyncIterator[None]:
    """Runs the indexer in the background."""
    stopping = StopSignal()
    work = asyncio.create_task(indexing.run(stopping))
    try:
        yield
    finally:
        stopping.set()
        await work


def memory_with(home: Path, index: Callable[[Ledger], Indexer]) -> Memory:
    """A memory in `home` with an index in this process."""
    components = compose(Settings(home=home, index="off"))
    indexer = index(components.ledger)
    return Memory(replace(components, index=IndexInProcess(lambda: indexer)))
