"""The store of the index over the embedded engine: points and rows stay consistent through crashes and rebuilds."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recallog import Event, Memory
from recallog.index import indexer as following
from recallog.index.indexer import Indexer
from recallog.index.semantic_index import SemanticIndex
from recallog_projections.index import points
from recallog_projections.index.embedders.embedder import Embedding, Passage
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.engine import Point, Sparse, StoredPoint
from recallog_projections.index.store import IndexStore
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Checkpoint, Chunk, Generation, Outcome, Scan
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.views import Difference
from support.events import event, run
from support.faulty_engine import FaultyEngine
from support.indexing import catch_up, collection, indexing_of, memory_with, running, toys
from support.toy_embedder import ToyEmbedder
from support.waiting import until

TEXTS = ["Who burned the mill?", "The smith did.", "Bread!", "The mill burns.", "", "I saw him by the river."]
EVENTS = [
    event(agent=agent, session=session, payload={"text": text})
    for session in ("dusk", None)
    for text in TEXTS
    for agent in ("baker", "miller")
]
DOCUMENTS = 20


class Crash(Exception):
    """A simulated crash of the process."""


class CrashingRows(MemoryStore):
    """Rows whose commits raise while `crashes`, and of which a scan finds nothing once if they were `damaged`."""

    crashes = False
    damaged = False

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: Any) -> Chunk:
        if self.damaged:
            MemoryStore.__init__(self)
            self.damaged = False
        return await super().scan_chunk(generation, scan, damaged)

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        if self.crashes:
            raise Crash
        return await super().commit(generation, expected, new, changes)


class GatedEmbedder(ToyEmbedder):
    """An embedder that waits until a test releases it."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.called, self.gate = threading.Event(), threading.Event()

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        self.called.set()
        assert self.gate.wait(60)
        return super().embed(passages)


class CountedEmbedder(ToyEmbedder):
    """An embedder that remembers each call: the characters, and the number of passages embedded before it."""

    def __init__(self, model: str = "toy") -> None:
        super().__init__(model)
        self.calls: list[tuple[int, int]] = []

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        self.calls.append((sum(len(passage.text) for passage in passages), self.embedded))
        return super().embed(passages)


@dataclass
class Village:
    memory: Memory
    indexing: Indexer
    engine: FaultyEngine
    embedders: dict[str, ToyEmbedder]
    rows: CrashingRows

    @property
    def asking(self) -> SemanticIndex:
        assert self.memory._components.index is not None
        return self.memory._components.index

    async def store(self) -> IndexStore:
        store = (await self.indexing.views()).store
        assert isinstance(store, IndexStore)
        return store

    async def points(self) -> dict[str, StoredPoint]:
        """All points of the active generation."""
        stored = await self.engine.scroll(await collection(self.indexing), None, 1000, vectors=True)
        return {point.id: point for point in stored}

    async def differences(self) -> list[Difference]:
        report = await self.memory.admin.verify()
        assert [check.table for check in report.tables if check.views == "index"].count("index.document") == 1
        return [check.difference for check in report.tables if check.difference is not None]


@asynccontextmanager
async def village(
    home: Path, *, events: Sequence[Event] = EVENTS, more: dict[str, ToyEmbedder] | None = None, indexed: bool = True
) -> AsyncIterator[Village]:
    """A memory whose index is at the ledger's end."""
    engine, rows, embedders = FaultyEngine(EdgeEngine(home / "engine")), CrashingRows(), toys() | (more or {})
    async with memory_with(home, lambda ledger: indexing_of(ledger, engine, embedders, rows)) as memory:
        await memory.publish_many(list(events))
        assert memory._components.index is not None
        found = Village(memory, memory._components.index.indexer, engine, embedders, rows)
        if indexed:
            await catch_up(found.indexing)
        yield found


def in_a_village(home: Path, work: Callable[[Village], Awaitable[None]], **how: Any) -> None:
    async def whole() -> None:
        async with village(home, **how) as found:
            await work(found)

    run(whole())


def assert_same(found: dict[str, StoredPoint], expected: dict[str, StoredPoint]) -> None:
    assert found.keys() == expected.keys()
    for key, point in expected.items():
        assert found[key].payload == point.payload
        assert found[key].sparse == point.sparse
        np.testing.assert_allclose(found[key].dense, point.dense, atol=1e-3)


# The commit.


def test_a_document_for_each_event_with_words_is_in_the_engine_and_verify_is_clean(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        stored = await found.points()
        assert len(stored) == DOCUMENTS
        assert all(point.dense is not None and point.sparse is not None for point in stored.values())
        assert (await found.store()).counts.embedded == DOCUMENTS
        assert await found.differences() == []

    in_a_village(tmp_path, work)


def test_a_commit_of_long_texts_is_embedded_in_parts_that_are_counted(tmp_path: Path) -> None:
    toy = CountedEmbedder()
    long = [event(payload={"text": f"{number} loaves. " + "The mill burns. " * 120}) for number in range(40)]

    async def work(found: Village) -> None:
        store = await found.store()
        counted: list[int] = []
        embed = toy.embed

        def noticing(passages: Sequence[Passage]) -> list[Embedding]:
            counted.append(store.counts.embedded)
            return embed(passages)

        toy.embed = noticing  # type: ignore[method-assign]
        await catch_up(found.indexing)
        assert store.counts.embedded == len(long)
        assert len(counted) > 4
        assert counted == sorted(set(counted))
        assert max(chars for chars, _ in toy.calls) <= 16_384
        assert await found.differences() == []

    in_a_village(tmp_path, work, events=long, more={"toy": toy}, indexed=False)


def test_a_commit_is_bounded_by_the_size_of_its_records(tmp_path: Path) -> None:
    long = [event(payload={"text": f"{number} loaves. " + "The mill burns. " * 1_250}) for number in range(20)]

    async def work(found: Village) -> None:
        reached: list[int] = []
        builder = (await found.indexing.views()).builder
        generation = await builder.first_generation(0, len(long))
        await builder.catch_up(generation, len(long), lambda done, _: reached.append(done))
        assert reached == [6, 12, 18, 20]

    in_a_village(tmp_path, work, events=long, indexed=False)


def test_points_are_written_before_the_checkpoint_and_a_crash_in_between_changes_nothing(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        before = await found.points()
        await found.memory.publish_many([event(payload={"text": f"More {n}."}) for n in range(5)])
        found.rows.crashes = True
        with pytest.raises(IndexUnavailable, match="Crash"):
            await catch_up(found.indexing)
        assert len(await found.points()) == DOCUMENTS + 5
        active = (await found.rows.pointer(0)).active
        assert active is not None
        checkpoint = await found.rows.checkpoint(active)
        assert checkpoint is not None
        assert checkpoint.offset == len(EVENTS) - 1
        chunk = await (await found.store()).scan(active, "index.document", limit=1000)
        assert {item.key for item in chunk.items} == before.keys()
        half = await found.points()
        found.rows.crashes = False
        await catch_up(found.indexing)
        assert_same(await found.points(), half)
        assert await found.differences() == []

    in_a_village(tmp_path, work)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["create", "upsert"])
def test_a_first_build_that_failed_in_the_engine_succeeds_on_the_next_try(tmp_path: Path, call: str, when: str) -> None:
    async def work(found: Village) -> None:
        getattr(found.engine, when)[call] = IndexUnavailable("pulled")
        with pytest.raises(IndexUnavailable, match="pulled"):
            await catch_up(found.indexing)
        assert (await found.rows.pointer(0)).active is None
        found.engine.up()
        await catch_up(found.indexing)
        assert len(await found.points()) == DOCUMENTS
        assert await found.differences() == []
        assert len(await found.engine.collections()) == 1

    in_a_village(tmp_path, work, indexed=False)


def test_a_commit_for_a_checkpoint_that_has_moved_writes_no_points(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        views = await found.indexing.views()
        stale = (await found.rows.pointer(0)).active
        assert stale is not None
        changes = Changes(
            {("index.document", "", "", next(iter(await found.points()))): b"not even a document"}, {}, {}
        )
        outcome = await views.store.commit(stale, Checkpoint(), Checkpoint(3), changes)
        assert outcome not in (Outcome.APPLIED, Outcome.LOST)
        assert await found.differences() == []

    in_a_village(tmp_path, work)


# Deleted documents.


async def delete(found: Village, *keys: str) -> Outcome:
    """Commit the deletion of documents, as a fold of the next record would."""
    store = await found.store()
    active = (await found.rows.pointer(0)).active
    assert active is not None
    expected = await found.rows.checkpoint(active)
    assert expected is not None
    changes = Changes({("index.document", "", "", key): None for key in keys}, {}, {})
    return await store.commit(active, expected, one_further(expected), changes)


def one_further(checkpoint: Checkpoint) -> Checkpoint:
    return Checkpoint(checkpoint.offset + 1, checkpoint.record, checkpoint.digest, checkpoint.chain)


async def scanned(found: Village) -> set[str]:
    """The ids of the points that a scan of the documents shows."""
    active = (await found.rows.pointer(0)).active
    assert active is not None
    return {item.key for item in (await (await found.store()).scan(active, "index.document", limit=1000)).items}


def test_the_points_of_deleted_documents_are_deleted_with_their_commit(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        first, second, *others = sorted(await found.points())
        assert await delete(found, first, second) is Outcome.APPLIED
        assert sorted(await found.points()) == others
        assert await scanned(found) == set(others)
        assert await delete(found, first) is Outcome.APPLIED  # again, and a point that is gone
        assert sorted(await found.points()) == others

    in_a_village(tmp_path, work)


def test_a_deletion_that_failed_after_its_commit_shows_nowhere_and_the_next_commit_repeats_it(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        first, second, *others = sorted(await found.points())
        found.engine.before["delete"] = IndexUnavailable("pulled")
        assert await delete(found, first) is Outcome.APPLIED
        found.engine.up()
        assert first in await found.points()
        assert await scanned(found) == {second, *others}
        assert await delete(found, second) is Outcome.APPLIED
        assert sorted(await found.points()) == others == sorted(await scanned(found))

    in_a_village(tmp_path, work)


def test_a_commit_that_fails_deletes_no_points(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        before = await found.points()
        found.rows.crashes = True
        with pytest.raises(Crash):
            await delete(found, min(before))
        found.rows.crashes = False
        assert (await found.points()).keys() == before.keys() == await scanned(found)

    in_a_village(tmp_path, work)


def test_a_commit_behind_the_checkpoint_deletes_no_points(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        before = await found.points()
        active = (await found.rows.pointer(0)).active
        assert active is not None
        changes = Changes({("index.document", "", "", min(before)): None}, {}, {})
        outcome = await (await found.store()).commit(active, Checkpoint(), Checkpoint(3), changes)
        assert outcome is not Outcome.APPLIED
        assert (await found.points()).keys() == before.keys()

    in_a_village(tmp_path, work)


# Lost collections.


def test_a_commit_without_a_collection_is_lost_and_its_generation_has_no_checkpoint(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        views, active = await found.indexing.views(), (await found.rows.pointer(0)).active
        assert active is not None
        chunk = await views.store.scan(active, "index.document", limit=1)
        expected = await found.rows.checkpoint(active)
        assert expected is not None
        await found.engine.drop(await collection(found.indexing))
        assert await views.store.checkpoint(active) is None
        changes = Changes({("index.document", "", "", chunk.items[0].key): chunk.items[0].data}, {}, {})
        new = Checkpoint(expected.offset + 1, expected.record, expected.digest)
        assert await views.store.commit(active, expected, new, changes) is Outcome.LOST
        assert await found.rows.checkpoint(active) == expected

    in_a_village(tmp_path, work)


@pytest.mark.parametrize("busy", [True, False], ids=["with more to index", "at rest"])
def test_an_index_whose_collection_is_deleted_while_it_runs_builds_itself_again(
    tmp_path: Path, busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "CHECK_SECONDS", 0.1)

    async def work(found: Village) -> None:
        async with running(found.indexing):
            gone = await collection(found.indexing)
            await found.engine.drop(gone)
            if busy:
                await found.memory.publish(event(payload={"text": "Again!"}))

            async def is_whole() -> bool:
                now = await collection(found.indexing)
                return now != gone and (await found.engine.count(now)) == DOCUMENTS + busy

            await until(is_whole, "the index is built again")
            answer = await found.memory.recall("village", "baker", "who burned the mill?", wait_index=True)
            assert answer.degraded is None
            assert answer.hits[0].text == TEXTS[0]
        assert await found.differences() == []
        assert await found.engine.collections() == {await collection(found.indexing)}

    in_a_village(tmp_path, work)


def test_a_query_during_a_rebuild_is_answered_by_words_and_marked_degraded(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await found.engine.drop(await collection(found.indexing))
        answer = await found.memory.recall("village", "baker", "who burned the mill?")
        assert TEXTS[0] in [hit.text for hit in answer.hits]
        assert {hit.source for hit in answer.hits} == {"views"}
        assert answer.degraded is not None

    in_a_village(tmp_path, work)


# Rebuilds.


def test_a_rebuild_reuses_all_vectors_and_gives_an_equal_index(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        before, made, old = await found.points(), (await found.store()).counts, await collection(found.indexing)
        digests = [check.digest for check in (await found.memory.admin.verify()).tables]
        (report,) = await found.memory.admin.rebuild(what="index")
        assert (report.views, report.records) == ("index", len(EVENTS))
        assert (made.embedded, made.reused) == (DOCUMENTS, DOCUMENTS)
        assert found.embedders["toy"].embedded == DOCUMENTS
        assert_same(await found.points(), before)
        assert [check.digest for check in (await found.memory.admin.verify()).tables] == digests
        assert await found.engine.collections() == {await collection(found.indexing)} != {old}

    in_a_village(tmp_path, work)


def test_answers_are_the_same_after_a_rebuild(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        before = await found.memory.recall("village", "baker", "who burned the mill?", top_k=20)
        await found.memory.admin.rebuild(what="index")
        again = await found.memory.recall("village", "baker", "who burned the mill?", top_k=20)
        assert [hit.position for hit in again.hits] == [hit.position for hit in before.hits]
        assert [hit.score for hit in again.hits] == pytest.approx([hit.score for hit in before.hits], abs=1e-3)
        assert again.index != before.index

    in_a_village(tmp_path, work)


def test_unreferenced_collections_are_garbage_collected(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        dimension = (await found.store())._embedder.dimension
        await found.engine.create("0-0123456789abcdef", dimension)
        await found.engine.create("1-0123456789abcdef", dimension)
        await found.memory.admin.rebuild(what="index")
        assert await found.engine.collections() == {await collection(found.indexing), "1-0123456789abcdef"}

    in_a_village(tmp_path, work)


def test_the_old_model_answers_until_the_cutover_to_another_model(tmp_path: Path) -> None:
    gated = GatedEmbedder("other")

    async def work(found: Village) -> None:
        moving = asyncio.create_task(found.memory.admin.reindex(model="other"))
        assert await asyncio.to_thread(gated.called.wait, 60)
        async with running(found.indexing):
            during = await found.asking.open(0)
            assert during.embedder is found.embedders["toy"]
            await found.memory.publish(event(payload={"text": "Water!"}))
            answer = await found.memory.recall("village", "baker", "water", wait_index=True)
            assert (answer.hits[0].text, answer.hits[0].source, answer.index) == ("Water!", "index", during.generation)
            gated.gate.set()
            (report,) = await moving
            after = await found.asking.open(0)
            assert after.embedder is gated
            assert after.generation == report.generation != during.generation
            await found.memory.publish(event(payload={"text": "And wine!"}))
            answer = await found.memory.recall("village", "baker", "wine", wait_index=True)
            assert (answer.hits[0].text, answer.hits[0].source) == ("And wine!", "index")
            assert answer.degraded is None
        assert found.embedders["toy"].embedded < gated.embedded
        assert await found.engine.collections() == {await collection(found.indexing)}
        assert await found.differences() == []

    in_a_village(tmp_path, work, more={"other": gated})


def test_an_aborted_change_of_model_leaves_only_the_old_index(tmp_path: Path) -> None:
    gated = GatedEmbedder("other")

    async def work(found: Village) -> None:
        before, old = await found.points(), await collection(found.indexing)
        moving = asyncio.create_task(found.memory.admin.reindex(model="other"))
        assert await asyncio.to_thread(gated.called.wait, 60)
        assert len(await found.engine.collections()) == 2
        (aborted,) = (await found.memory.admin.abort_reindex()).aborted
        gated.gate.set()
        assert len(await moving) == 0
        assert await found.engine.collections() == {old} != {f"0-{aborted}"}
        assert (await found.rows.pointer(0)).building is None
        assert_same(await found.points(), before)
        assert (await found.asking.open(0)).embedder is found.embedders["toy"]
        assert await found.differences() == []

    in_a_village(tmp_path, work, more={"other": gated})


def test_a_change_of_model_that_failed_half_way_is_resumed(tmp_path: Path) -> None:
    other = ToyEmbedder("other")

    async def work(found: Village) -> None:
        other.failure = IndexUnavailable("the model is gone")
        with pytest.raises(IndexUnavailable, match="the model is gone"):
            await found.memory.admin.reindex(model="other")
        assert (await found.asking.open(0)).embedder is found.embedders["toy"]
        other.failure = None
        (report,) = await found.memory.admin.reindex(model="other")
        assert report.joined
        assert (await found.asking.open(0)).embedder is other
        assert await found.differences() == []

    in_a_village(tmp_path, work, more={"other": other})


# Verification.


async def holding(found: Village, kept: Iterable[StoredPoint]) -> None:
    """Replace the points of the engine with `kept`."""
    name = await collection(found.indexing)
    dimension = (await found.store())._embedder.dimension
    await found.engine.drop(name)
    await found.engine.create(name, dimension)
    await found.engine.upsert(name, [as_written(point) for point in kept])


def as_written(point: StoredPoint, **changed: Any) -> Point:
    assert point.dense is not None
    assert point.sparse is not None
    return Point(point.id, point.dense, point.sparse, points.seal_payload(point.id, {**point.payload, **changed}))


@pytest.mark.parametrize("page", [3, limits.SCAN_ITEMS])
def test_verify_names_the_first_point_that_differs_from_the_ledger(
    tmp_path: Path, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SCAN_ITEMS", page)

    async def work(found: Village) -> None:
        name, stored = await collection(found.indexing), await found.points()
        keys = sorted(stored)
        assert await found.differences() == []

        changed = as_written(stored[keys[7]], before="miller: A secret.")
        await found.engine.upsert(name, [changed])
        (difference,) = await found.differences()
        assert (difference.table, difference.key) == ("index.document", keys[7])
        assert "A secret." in str(difference.found)
        assert "A secret." not in str(difference.expected)
        await found.engine.upsert(name, [as_written(stored[keys[7]])])
        assert await found.differences() == []

        added = as_written(replace(stored[keys[0]], id="00000000-0000-0000-0000-000000000001"))
        await found.engine.upsert(name, [added])
        (difference,) = await found.differences()
        assert (difference.key, difference.expected) == (added.id, None)

        await holding(found, [stored[key] for key in keys[:-1]])
        (difference,) = await found.differences()
        assert (difference.key, difference.found) == (keys[-1], None)
        await found.memory.admin.rebuild(what="index")
        assert await found.differences() == []

    in_a_village(tmp_path, work)


@pytest.mark.parametrize("damage", ["payload", "fields"])
def test_verify_names_damaged_points_and_a_rebuild_repairs_them_with_the_vectors_of_the_others(
    tmp_path: Path, damage: str
) -> None:
    async def work(found: Village) -> None:
        name, stored = await collection(found.indexing), await found.points()
        key = min(stored)
        whole = stored[key]
        assert whole.dense is not None
        assert whole.sparse is not None
        damaged = {
            "payload": Point(key, whole.dense, whole.sparse, {**whole.payload, "turn": 77}),
            "fields": Point(key, whole.dense, Sparse([], []), {"space": "village"}),
        }[damage]
        await found.engine.upsert(name, [damaged])
        report = await found.memory.admin.verify()
        assert not report.ok
        (check,) = [check for check in report.tables if check.table == "index.document"]
        assert [each.key for each in check.damaged] == [key]
        assert "recallog rebuild index" in report.format()
        await found.memory.admin.rebuild(what="index")
        assert (await found.memory.admin.verify()).ok
        assert_same(await found.points(), stored)
        assert (await found.store()).counts.reused == DOCUMENTS - 1

    in_a_village(tmp_path, work)


def test_a_failing_index_reports_the_reason_until_it_works_again(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        found.engine.down(IndexUnavailable("the engine is down"))
        async with running(found.indexing):
            await found.memory.publish(event(payload={"text": "Again!"}))

            async def says_why() -> bool:
                return found.indexing.problem == "the engine is down"

            async def follows() -> bool:
                return not found.indexing.problem

            await until(says_why, "the index says why it does not follow")
            found.engine.up()
            await found.memory.catch_up_index()
            await until(follows, "the index no longer complains")
        with suppress(IndexUnavailable):
            assert len(await found.points()) == DOCUMENTS + 1

    in_a_village(tmp_path, work)


def test_a_rebuild_whose_rows_are_lost_begins_again(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        found.rows.damaged = True
        (report,) = (await found.memory.admin.rebuild("index")).items
        assert report.records == len(EVENTS)
        assert not found.rows.damaged
        assert len(await found.points()) == DOCUMENTS
        assert await found.differences() == []

    in_a_village(tmp_path, work)
