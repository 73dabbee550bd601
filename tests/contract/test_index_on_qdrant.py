"""An index on a stand-in of a Qdrant server: rebuilds, other models, and indexes of earlier versions."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import models

from recallog import Memory
from recallog.index.indexer import Indexer
from recallog_projections.index.embedders.embedder import Embedding, Passage
from recallog_projections.index.engines.server import ServerEngine
from recallog_projections.stores.memory import MemoryStore
from recallog_streams.ledgers.ledger import Ledger
from support import qdrant_stand_in
from support.events import event, run
from support.indexing import catch_up, collection, indexing_of, memory_with
from support.qdrant_stand_in import StandIn
from support.toy_embedder import DIMENSION, ToyEmbedder

TEXTS = ["Who burned the mill?", "The smith did.", "Bread!", "I saw him by the river."]
SHARED = f"recallog.points.{DIMENSION}.turbo8"
WIDE = f"recallog.points.{2 * DIMENSION}.turbo8"


class WideEmbedder(ToyEmbedder):
    """A model whose vectors are longer."""

    def __init__(self) -> None:
        super().__init__("wide")
        self.dimension = 2 * DIMENSION

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        return [
            Embedding(
                np.pad(each.vector, (0, DIMENSION)),
                each.token_spans,
                np.pad(each.token_vectors, ((0, 0), (0, DIMENSION))),
                readable=each.readable,
            )
            for each in super().embed(passages)
        ]


Work = Callable[[StandIn, Memory, Indexer, ToyEmbedder], Awaitable[None]]


def on_server(home: Path, *works: Work) -> None:
    """Run each of `works` with a newly opened memory whose events are indexed on the same stand-in."""
    toy, rows = ToyEmbedder(), MemoryStore()

    async def scenario(server: StandIn) -> None:
        for work in works:
            indexing: list[Indexer] = []

            def index(ledger: Ledger, made: list[Indexer] = indexing) -> Indexer:
                known = {"toy": toy, "wide": WideEmbedder()}
                made.append(indexing_of(ledger, ServerEngine(server.url, deadline_seconds=60), known, rows))
                return made[0]

            async with memory_with(home, index) as memory:
                if work is works[0]:
                    await memory.publish_many([event(payload={"text": text}) for text in TEXTS])
                await catch_up(indexing[0])
                await work(server, memory, indexing[0], toy)

    with qdrant_stand_in.serve() as server:
        run(scenario(server))


async def recalled(memory: Memory) -> list[str]:
    """The hits of a question, all from the index."""
    answer = await memory.recall("village", "baker", "who burned the mill?")
    assert answer.degraded is None
    assert {hit.source for hit in answer.hits} == {"index"}
    return [hit.text for hit in answer.hits]


def test_a_rebuild_leaves_one_generation_in_the_same_collection(tmp_path: Path) -> None:
    async def work(server: StandIn, memory: Memory, indexing: Indexer, toy: ToyEmbedder) -> None:
        before, old = await recalled(memory), await collection(indexing)
        await memory.admin.rebuild(what="index")
        assert await recalled(memory) == before
        now = await collection(indexing)
        assert now != old
        assert server.local.aliases == {f"recallog.generation.{now}": SHARED}
        stored = server.local.scroll(SHARED, limit=100)[0]
        assert {(each.payload or {})["generation"] for each in stored} == {now}
        assert toy.embedded - 1 == len(TEXTS)  # and the question

    on_server(tmp_path, work)


def test_another_model_gets_another_collection_and_the_first_is_deleted_after_the_cutover(tmp_path: Path) -> None:
    async def work(server: StandIn, memory: Memory, indexing: Indexer, toy: ToyEmbedder) -> None:
        before = await recalled(memory)
        assert list(server.local.collections) == [SHARED]
        await memory.admin.reindex(model="wide")
        assert sorted(await recalled(memory)) == sorted(before)
        assert list(server.local.collections) == [WIDE]
        assert list(server.local.aliases.values()) == [WIDE]

    on_server(tmp_path, work)


def test_an_index_of_an_earlier_version_answers_until_a_rebuild_moves_it_with_its_vectors(tmp_path: Path) -> None:
    before: list[str] = []

    async def earlier(server: StandIn, memory: Memory, indexing: Indexer, toy: ToyEmbedder) -> None:
        before.extend(await recalled(memory))
        old = await collection(indexing)
        server.separate(old)
        assert list(server.local.collections) == [f"recallog.{old}"]

    async def upgraded(server: StandIn, memory: Memory, indexing: Indexer, toy: ToyEmbedder) -> None:
        assert await recalled(memory) == before
        await memory.publish(event(payload={"text": "The miller wept."}))
        await catch_up(indexing)
        embedded = toy.embedded
        await memory.admin.rebuild(what="index")
        assert toy.embedded == embedded
        assert list(server.local.collections) == [SHARED]
        assert sorted(await recalled(memory)) == sorted([*before, "The miller wept."])
        report = await memory.admin.verify()
        assert [check.difference for check in report.tables if check.difference is not None] == []

    on_server(tmp_path, earlier, upgraded)


def test_an_index_that_is_built_again_from_nothing_leaves_one_collection(tmp_path: Path) -> None:
    async def work(server: StandIn, memory: Memory, indexing: Indexer, toy: ToyEmbedder) -> None:
        before = await recalled(memory)
        await memory.admin.rebuild(what="index", drop=True)
        assert await recalled(memory) == before
        assert list(server.local.collections) == [SHARED]
        assert list(server.local.aliases) == [f"recallog.generation.{await collection(indexing)}"]
        stored = server.local.scroll(SHARED, limit=100)[0]
        assert len({(each.payload or {})["generation"] for each in stored}) == 1

    on_server(tmp_path, work)


@pytest.mark.parametrize("allows_exact", [True, False])
def test_the_limits_of_the_page_are_enough_for_a_question_and_exact_searches_are_needed(
    allows_exact: bool, tmp_path: Path
) -> None:
    async def ask(server: StandIn, memory: Memory, indexer: Indexer, toy: ToyEmbedder) -> None:
        server.strict = models.StrictModeConfig(
            enabled=True,
            max_query_limit=5_001,
            upsert_max_batchsize=3_000,
            condition_max_size=100_000,
            filter_max_conditions=30,
            unindexed_filtering_retrieve=False,
            unindexed_filtering_update=False,
            search_allow_exact=allows_exact,
        )
        answer = await memory.recall("village", "baker", "who burned the mill?")
        assert answer.hits
        assert (answer.degraded is None) is allows_exact
        assert allows_exact or "Exact search disabled" in str(answer.degraded)

    on_server(tmp_path, ask)


def test_the_indexes_of_two_ledgers_with_different_prefixes_are_apart(tmp_path: Path) -> None:
    """Each ledger takes the generations under its prefix that it does not know for garbage."""

    async def scenario(url: str) -> None:
        made: list[Indexer] = []

        def index(ledger: Ledger) -> Indexer:
            made.append(indexing_of(ledger, ServerEngine(f"{url}?prefix=ledger-{len(made)}", deadline_seconds=60)))
            return made[-1]

        async with memory_with(tmp_path / "old", index) as old, memory_with(tmp_path / "new", index) as new:
            for memory in (old, new):
                await memory.publish_many([event(payload={"text": text}) for text in TEXTS])
                await catch_up(made[-1] if memory is new else made[0])
            before = await recalled(old)
            await new.admin.rebuild(what="index")
            assert await recalled(old) == await recalled(new) == before

    with qdrant_stand_in.serve() as server:
        run(scenario(server.url))
