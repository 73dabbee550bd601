"""The memories that are asked: in a folder with the index in this process, served by another process, or in memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from flip.story import Topics
from recallog import Memory, Settings, layout
from recallog.composition import compose
from recallog.index.indexer import Indexer
from recallog.index.semantic_index import IndexInProcess
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.stores.sqlite import SqliteStore
from recallog_schemas import Event
from recallog_schemas.errors import IndexUnavailable
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_streams.stop_signal import StopSignal
from support.toy_embedder import ToyEmbedder

LOCK_WAIT_SECONDS = 3.0
"""Less than a call may take, so that a lock that is never released shows as its error."""
TOY = "toy"


def indexer_of(home: Path, embedder: ToyEmbedder | None = None) -> Indexer:
    """The parts of the process that serves the index of a folder, with an embedder that needs no model."""
    return Indexer(
        SqliteLedger(home / layout.LEDGER, LOCK_WAIT_SECONDS),
        SqliteStore(home / layout.INDEX_ROWS, LOCK_WAIT_SECONDS),
        EdgeEngine(home / layout.INDEX_ENGINE),
        ToyEmbedder if embedder is None else lambda _: embedder,
        TOY,
    )


@asynccontextmanager
async def in_process(home: Path, *, follow: bool = True, embedder: ToyEmbedder | None = None) -> AsyncIterator[Memory]:
    """A memory in a folder whose index follows the ledger in this process, unless `follow` is false."""
    components = compose(Settings(home=home, index="off", seal="off", lock_wait_seconds=LOCK_WAIT_SECONDS), [Topics()])
    indexer, stopping = indexer_of(home, embedder), StopSignal()
    memory = Memory(replace(components, index=IndexInProcess(lambda: indexer)), count_accesses=False)
    following = asyncio.create_task(indexer.run(stopping)) if follow else None
    try:
        yield memory
    finally:
        stopping.set()
        if following is not None:
            await following
        await memory.close()
        await indexer.ledger.close()


@asynccontextmanager
async def served(home: Path, model: Path) -> AsyncIterator[Memory]:
    """A memory in a folder whose index a process of its own serves, with the model in the folder `model`."""
    settings = Settings(
        home=home,
        index="embedded",
        seal="off",  # the bytes of sealed records, and so the digests, are others in each folder
        embedder=f"onnx:{model}",
        index_idle_seconds=0,
        lock_wait_seconds=LOCK_WAIT_SECONDS,
        count_accesses=False,
    )
    async with Memory.open(settings, projections=[Topics()]) as memory:
        yield memory


class AbsentIndex(IndexInProcess):
    """An index that cannot be used: what is asked of it is answered by words."""

    def __init__(self) -> None:
        super().__init__(_unusable)

    def exists(self) -> bool:
        return False


def _unusable() -> Indexer:
    raise IndexUnavailable("there is none")


@asynccontextmanager
async def without_folder(events: Sequence[Event]) -> AsyncIterator[Memory]:
    """A memory in this process that has the events: nothing of it was ever in a file. Its index cannot be used."""
    settings = Settings(ledger="memory://", views="memory://", index="off", seal="off")
    components = replace(compose(settings, [Topics()]), index=AbsentIndex())
    async with Memory(components, count_accesses=False) as memory:
        if events:
            await memory.publish_many(events)
        yield memory
