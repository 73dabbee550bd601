"""The semantic index of a cluster: it follows a Kafka topic with its checkpoint in Redis, and counts an id once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace

import pytest

from live.support import Cluster
from recallog import Event, Memory
from recallog.composition import compose
from recallog.index.indexer import INDEX, Indexer
from recallog.index.live_index import LiveIndex
from recallog.index.semantic_index import IndexInProcess
from recallog_projections.index.engines.server import ServerEngine
from recallog_projections.plugins import EngineSettings
from recallog_projections.stores.redis import RedisStore
from recallog_schemas import codec
from recallog_schemas.errors import IndexLost
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.group import ConsumerGroupSource
from recallog_streams.live import LiveProjector
from support import qdrant_stand_in
from support.events import event, one_loop, run
from support.qdrant_stand_in import StandIn
from support.toy_embedder import ToyEmbedder
from support.waiting import until

SPACES = ("village", "castle", "harbour", "abbey")


@pytest.fixture(scope="module")
def cluster(cluster: Cluster) -> Cluster:
    cluster.publish([spoke(space, n) for n in range(40) for space in SPACES])
    return cluster


@pytest.fixture
def server() -> Iterator[StandIn]:
    with qdrant_stand_in.serve() as stand_in:
        yield stand_in


def spoke(space: str, n: int) -> Event:
    """An event of the baker of `space`; its text contains the space and the number."""
    text = f"In the {space} the {('oven', 'miller', 'flour', 'river')[n % 4]} has number n{n}."
    return event(space=space, id=f"{space}-{n}", turn=n, session=f"s{n // 10}", payload={"text": text})


@contextmanager
def memory_of(cluster: Cluster, toy: ToyEmbedder, server: StandIn) -> Iterator[Memory]:
    """A memory on the cluster, and an index whose points are on `server` and whose rows are in the cluster's Redis."""
    url = cluster.redis_url
    with one_loop():
        components = compose(cluster.settings)
        indexer = Indexer(
            components.ledger,
            RedisStore(url, namespace="recallog:index"),
            ServerEngine(server.url, deadline_seconds=60, settings=EngineSettings(grpc_port=server.grpc_port)),
            lambda name: toy,
            "toy",
        )
        memory = Memory(replace(components, index=IndexInProcess(lambda: indexer)))
        try:
            yield memory
        finally:
            run(memory.close())


@asynccontextmanager
async def working(cluster: Cluster, memory: Memory) -> AsyncIterator[None]:
    """A worker in the role of the index, with the index of `memory`."""
    address = KafkaAddress.parse(str(cluster.settings.ledger))
    source = ConsumerGroupSource(address, f"index-{cluster.topic}")
    live = LiveProjector(LiveIndex(memory._components.index.indexer), source, building_at_once=1)
    task = asyncio.create_task(live.run())
    try:
        yield
    finally:
        live.stop()
        await task


def test_the_index_follows_the_topic_counts_ids_once_and_is_resumed(cluster: Cluster, server: StandIn) -> None:
    toy = ToyEmbedder()

    async def first(memory: Memory) -> None:
        async with working(cluster, memory):
            await memory.catch_up_index()
            assert toy.embedded == 40 * len(SPACES)
            # The topic contains a repeated event twice, the index once.
            await memory.publish_many([spoke("village", 7), spoke("village", 41)])
            await memory.catch_up_index()
        assert len(await points(memory)) == 40 * len(SPACES) + 1

    async def second(memory: Memory) -> None:
        before = toy.embedded
        await memory.publish(spoke("castle", 42))
        async with working(cluster, memory):
            await memory.catch_up_index()
        assert toy.embedded == before + 1
        assert len(await points(memory)) == 40 * len(SPACES) + 2
        view = await memory.recall("castle", "baker", "the castle's number n42")
        assert (view.degraded, view.index_behind, view.hits[0].event.id) == (None, 0, "castle-42")
        assert {hit.event.space for hit in view.hits} == {"castle"}
        report = await memory.admin.verify()
        assert [check.difference for check in report.tables if check.difference is not None] == []
        assert {check.views for check in report.tables} >= {INDEX}

    for work in (first, second):
        with memory_of(cluster, toy, server) as memory:
            run(work(memory))


def test_two_indexers_restore_an_engine_that_lost_everything(cluster: Cluster, server: StandIn) -> None:
    with memory_of(cluster, ToyEmbedder(), server) as memory:

        async def work() -> None:
            assert "only words" in ((await memory.recall("abbey", "baker", "abbey n39")).degraded or "")
            async with working(cluster, memory), working(cluster, memory):

                async def is_back() -> bool:
                    with suppress(IndexLost):
                        await points(memory)  # of all partitions
                        return (await memory.recall("abbey", "baker", "abbey n39")).degraded is None
                    return False

                await until(is_back, "the index is back")
                await memory.publish_many([spoke("abbey", n) for n in range(100, 140)])
                await memory.catch_up_index()
            found = await points(memory)
            assert len(found) == len(set(found)) == await everything(memory)
            reports = await memory.admin.rebuild("index")
            assert {report.views for report in reports} == {INDEX}
            assert sorted(await points(memory)) == sorted(found)

        run(work())


async def everything(memory: Memory) -> int:
    """Distinct ids in the topic."""
    known = set()
    async for batch in memory.admin.records():
        known |= {codec.decode(data).id for _, data in batch.records}
    return len(known)


async def points(memory: Memory) -> list[str]:
    """Ids of all points of all active generations."""
    indexing = memory._components.index.indexer
    found: list[str] = []
    for partition in range(len(await memory.admin.ledger_ends())):
        active = (await indexing.rows.pointer(partition)).active
        if active is not None:
            found += [point.id for point in await indexing.engine.scroll(f"{partition}-{active.id}", None, 10_000)]
    return found
