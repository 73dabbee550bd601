"""After an ingest memories get their vectors from the newest one back, and recall answers with those that have some."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recallog import Memory
from recallog.index.indexer import Indexer
from recallog_projections.index.embedders.embedder import Embedding, Passage
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.engine import StoredPoint
from recallog_projections.index.unread import unread
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Checkpoint, Generation, Outcome
from recallog_schemas import limits
from support.events import event, run
from support.indexing import catch_up, collection, indexing_of, memory_with, running
from support.toy_embedder import ToyEmbedder
from support.waiting import until

COUNT = 2 * limits.INDEX_BATCH_RECORDS + 88
BELLS = (3, COUNT - 1)
FIRST_DAY = datetime(2024, 3, 1, tzinfo=UTC)
EVENTS = [
    event(
        at=FIRST_DAY + timedelta(hours=number),
        session="dusk",
        payload={"text": f"The {'bishop blessed' if number in BELLS else 'miller ground'} sack {number}."},
    )
    for number in range(COUNT)
]
A = ("village", "baker")


class RecordingToy(ToyEmbedder):
    """Remembers the numbers of the sacks of each call, and waits before the call `stops_at` until it is released."""

    def __init__(self) -> None:
        super().__init__("toy")
        self.calls: list[list[int]] = []
        self.stops_at = -1
        self.stopped, self.released = threading.Event(), threading.Event()

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        if len(self.calls) == self.stops_at:
            self.stopped.set()
            assert self.released.wait(60)
        self.calls.append([int(re.findall(r"sack (\d+)", each.text)[-1]) for each in passages])
        return super().embed(passages)


class CrashingRows(MemoryStore):
    """Rows whose commit number `crashes_at` raises."""

    commits, crashes_at = 0, -1

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        self.commits += 1
        if self.commits == self.crashes_at:
            raise ConnectionError("the process ended")
        return await super().commit(generation, expected, new, changes)


@asynccontextmanager
async def ingested(home: Path, toy: RecordingToy, rows: MemoryStore) -> AsyncIterator[tuple[Memory, Indexer]]:
    """A memory with `EVENTS`, and the indexer of its index, which does not run."""
    found: list[Indexer] = []

    def index(ledger: Any) -> Indexer:
        found.append(indexing_of(ledger, EdgeEngine(home / "engine"), {"toy": toy}, rows))
        found[0].load_for_queries = lambda name: ToyEmbedder("toy")
        return found[0]

    async with memory_with(home, index) as memory:
        await memory.publish_many(EVENTS)
        yield memory, found[0]


async def all_points(indexing: Indexer) -> dict[str, StoredPoint]:
    stored = await indexing.engine.scroll(await collection(indexing), None, 2 * COUNT, vectors=True)
    return {point.id: point for point in stored}


async def unread_events(indexing: Indexer) -> int:
    active = (await indexing.rows.pointer(0)).active
    return COUNT if active is None else len(await unread(indexing.rows, active))


def assert_equal(found: dict[str, StoredPoint], expected: dict[str, StoredPoint]) -> None:
    assert found.keys() == expected.keys()
    for key, point in expected.items():
        assert found[key].payload == point.payload
        np.testing.assert_allclose(found[key].dense, point.dense, atol=1e-3)
        assert found[key].sparse == point.sparse
        assert not found[key].damage


def test_vectors_are_computed_from_the_newest_event_back_and_are_those_of_an_index_built_forwards(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        toy = RecordingToy()
        async with ingested(tmp_path / "back", toy, MemoryStore()) as (memory, indexing):
            async with running(indexing):
                await memory.catch_up_index()
            found = await all_points(indexing)
            assert (await memory.admin.verify()).clean
        newest = [max(numbers) for numbers in toy.calls]
        last_batch = [number for number in newest if number >= COUNT - limits.INDEX_BATCH_RECORDS]
        before = newest[len(last_batch) :]
        assert before == sorted(before, reverse=True)
        assert sorted(number for numbers in toy.calls for number in numbers) == [*range(COUNT)]
        async with ingested(tmp_path / "forwards", RecordingToy(), MemoryStore()) as (_, indexing):
            await catch_up(indexing)
            assert_equal(found, await all_points(indexing))

    run(work())


def test_a_question_meanwhile_is_answered_by_meaning_for_what_is_there_and_by_words_for_the_rest(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        toy = RecordingToy()
        toy.stops_at = 3
        async with ingested(tmp_path, toy, MemoryStore()) as (memory, indexing), running(indexing):
            assert await asyncio.to_thread(toy.stopped.wait, 60)

            async def is_there() -> bool:
                return 0 < await unread_events(indexing) < COUNT

            await until(is_there, "the newest memories have vectors")
            embedded = {number for numbers in toy.calls for number in numbers}
            left = await unread_events(indexing)
            answer = await memory.recall(*A, "What has the bishop blessed?")
            hits = {each.position.offset: each for each in answer.hits}
            for number in BELLS:
                assert hits[number].source == "index"
                assert (hits[number].similarity is not None) == (number in embedded)
            assert answer.index_behind == left
            (status,) = [each for each in (await memory.admin.status()).partitions if each.views == "index"]
            assert status.lag == left
            assert answer.degraded is not None
            assert "of older memories only words were compared" in answer.degraded
            assert "positions behind" in str((await memory.salient(*A, query="sack 3")).relevance_by)
            of_first_day = await memory.recall(*A, "What happened on 1 March 2024?", top_k=5)
            assert [each.event.at.date() for each in of_first_day.hits] == [FIRST_DAY.date()] * 5
            toy.released.set()
            await memory.catch_up_index()
            answer = await memory.recall(*A, "What has the bishop blessed?")
            assert (answer.degraded, answer.index_behind) == (None, 0)

    run(work())


@pytest.mark.parametrize("crashes_at", [2, 4, 5])
def test_a_process_that_ends_before_its_commit_leaves_no_memory_out_and_doubles_none(
    tmp_path: Path, crashes_at: int
) -> None:
    async def work() -> None:
        rows, toy = CrashingRows(), RecordingToy()
        rows.crashes_at = crashes_at
        async with ingested(tmp_path, toy, rows) as (memory, indexing), running(indexing):
            await memory.catch_up_index()
            assert rows.commits > crashes_at
            assert await unread_events(indexing) == 0
            found = await all_points(indexing)
            assert len(found) == COUNT
            assert all(point.dense is not None for point in found.values())
            assert (await memory.admin.verify()).clean
            await memory.admin.rebuild("index")
            assert_equal(await all_points(indexing), found)

    run(work())


def test_a_rebuild_while_vectors_are_missing_computes_them_before_it_answers(tmp_path: Path) -> None:
    async def work() -> None:
        toy = RecordingToy()
        toy.stops_at = 3
        async with ingested(tmp_path, toy, MemoryStore()) as (memory, indexing):
            async with running(indexing):
                assert await asyncio.to_thread(toy.stopped.wait, 60)
                toy.stops_at = -1
                toy.released.set()
            await memory.admin.rebuild("index")
            assert await unread_events(indexing) == 0
            assert all(point.dense is not None for point in (await all_points(indexing)).values())
            assert (await memory.admin.verify()).clean

    run(work())
