"""The index under the loop of a cluster's workers: it follows, moves to another model, and heals after losses."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from recallog.index.indexer import Indexer
from recallog.index.live_index import LiveIndex
from recallog_projections.concurrency import cancel_all
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas.errors import IndexUnavailable
from recallog_streams import generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.live import LiveProjector
from recallog_streams.partition_task import TaskState
from support.events import event, run
from support.group_in_memory import InMemoryGroup
from support.indexing import collection, toys
from support.toy_embedder import ToyEmbedder
from support.waiting import until


class World:
    """A worker in the role of the index, on a ledger in memory and an engine in a folder."""

    def __init__(self, folder: Path) -> None:
        self.ledger = MemoryLedger()
        self.engine = EdgeEngine(folder)
        self.toys = toys("toy", "other")
        self.indexing = Indexer(self.ledger, MemoryStore(), self.engine, self.toys.__getitem__, "toy")
        self.live = LiveProjector(LiveIndex(self.indexing), InMemoryGroup(self.ledger), building_at_once=1)

    async def publish(self, *texts: str) -> None:
        await self.ledger.append([event(payload={"text": text}) for text in texts])

    async def texts(self) -> int:
        """How many points the active generation has."""
        return len(await self.engine.scroll(await collection(self.indexing), None, 1_000))

    async def until_indexed(self, points: int) -> None:
        async def all_there() -> bool:
            (end,) = await self.ledger.ends()
            try:
                has_all = self.state is TaskState.LIVE and await self.texts() == points
            except (AssertionError, IndexUnavailable):
                return False
            # The engine has the points of a batch before the task has its checkpoint.
            checkpoint = self.live.tasks[0].checkpoint if has_all else None
            return checkpoint is not None and checkpoint.offset == end - 1

        await until(all_there, f"{points} points are indexed")

    @property
    def state(self) -> TaskState | None:
        return self.live.tasks[0].state if self.live.tasks else None


@asynccontextmanager
async def working(folder: Path) -> AsyncIterator[World]:
    world = World(folder)
    task = asyncio.create_task(world.live.run())
    try:
        yield world
        if task.done():
            task.result()
    finally:
        await cancel_all(task)
        await world.engine.close()


def in_world(folder: Path, work: Callable[[World], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with working(folder) as world:
            await world.publish("Bread!", "Flour!", "Water!")
            await world.until_indexed(3)
            await work(world)

    run(inside())


def test_it_follows_the_ledger_with_lag_and_checkpoint_like_views(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        await world.publish("Rye!", "Wheat!")
        await world.until_indexed(5)
        (task,) = world.live.tasks
        assert (task.lag, task.checkpoint and task.checkpoint.offset) == (0, 4)
        assert world.live.problems == []

    in_world(tmp_path, work)


def test_a_cutover_to_another_model_is_followed(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        group = await world.indexing.group_for_move("other")
        await generations.rebuild(group.builder, 0)
        await world.publish("Rye!")
        await world.until_indexed(4)
        embedded = world.toys["toy"].embedded
        await world.publish("Wheat!")
        await world.until_indexed(5)
        assert world.toys["toy"].embedded == embedded
        assert (await world.indexing.open(0)).embedder is world.toys["other"]

    in_world(tmp_path, work)


def test_a_collection_that_the_engine_has_lost_is_built_again(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        await world.engine.drop(await collection(world.indexing))
        await world.until_indexed(3)
        await world.publish("Rye!")
        await world.until_indexed(4)

    in_world(tmp_path, work)


@pytest.mark.parametrize("error", [IndexUnavailable("the model is away"), ValueError("a defect of the model")])
def test_a_model_that_fails_is_named_and_tried_again(tmp_path: Path, error: Exception) -> None:
    async def work(world: World) -> None:
        toy: ToyEmbedder = world.toys["toy"]
        toy.failure = error
        await world.publish("Rye!")

        async def failed() -> bool:
            return world.state is TaskState.FAILED and str(error) in " ".join(world.live.problems)

        await until(failed, "the failure is named")
        toy.failure = None
        await world.until_indexed(4)
        assert world.live.problems == []

    in_world(tmp_path, work)
