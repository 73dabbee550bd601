"""Payloads are in a file beside the shard: interrupted writes, lost rows, and collections of older versions."""

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest
import qdrant_edge as qdrant

from recallog_projections.index.engines.edge import FIELD_PAGE_BYTES, EdgeEngine
from recallog_projections.index.engines.engine import EVERYBODY, Filter, Point, Search
from recallog_schemas.errors import IndexLost
from recallog_testing.contracts.engine import point
from support.events import run

NAME = "0-made"
TOKENS = "tokens"
FILTER = Filter("village", (EVERYBODY,))


async def written(folder: Path, points: Iterable[Point]) -> EdgeEngine:
    engine = EdgeEngine(folder)
    await engine.create(NAME, len(next(iter(points)).dense[0]))
    await engine.upsert(NAME, list(points))
    return engine


def village(number: int) -> list[Point]:
    return [point("village", seed, text=f"text {seed}", tokens="t" * seed) for seed in range(number)]


async def found(engine: EdgeEngine, asked: Point) -> dict[str, str]:
    search = Search(FILTER, 100, dense=asked.dense[0], payload=(TOKENS,), with_sparse=True)
    (hits,) = await engine.search(NAME, [search])
    return {hit.id: hit.payload[TOKENS] for hit in hits}


def statement(folder: Path, sql: str) -> None:
    with closing(sqlite3.connect(folder / NAME / "points.db")) as connection, connection:
        connection.execute(sql)


def test_a_collection_of_an_older_version_has_its_payloads_moved(tmp_path: Path) -> None:
    points = village(30)

    async def work() -> None:
        engine = await written(tmp_path, points)
        before = await engine.scroll(NAME, None, 100, vectors=True)
        await engine.close()
        shard = qdrant.EdgeShard.load(str(tmp_path / NAME))
        for each in points:
            shard.update(qdrant.UpdateOperation.set_payload([each.id], dict(each.payload)))
        shard.close()
        (tmp_path / NAME / "points.db").unlink()
        engine = EdgeEngine(tmp_path)
        assert await found(engine, points[0]) == {each.id: each.payload[TOKENS] for each in points}
        after = await engine.scroll(NAME, None, 100, vectors=True)
        assert [(each.id, each.payload, each.damage) for each in after] == [
            (each.id, each.payload, "") for each in before
        ]
        await engine.close()

    run(work())


def test_a_point_whose_writing_was_interrupted_is_not_found_until_it_is_written_again(tmp_path: Path) -> None:
    first, *others = village(3)

    async def work() -> None:
        engine = await written(tmp_path, others)
        await engine._run(engine._upsert, NAME, [first])  # a crash follows
        await engine.close()
        engine = EdgeEngine(tmp_path)
        assert (await found(engine, first)).keys() == {each.id for each in others}
        assert [each.id for each in await engine.scroll(NAME, None, 1)] == [min(each.id for each in others)]
        assert len(await engine.scroll(NAME, None, 100)) == 2
        assert await engine.retrieve(NAME, [first.id], vectors=True) == {}
        await engine.upsert(NAME, [first])
        assert (await found(engine, first))[first.id] == first.payload[TOKENS]
        await engine.close()

    run(work())


def test_a_point_whose_replacement_was_interrupted_has_its_former_payload(tmp_path: Path) -> None:
    former, other = village(2)

    async def work() -> None:
        engine = await written(tmp_path, [former])
        new = Point(former.id, other.dense, other.sparse, {**other.payload, TOKENS: "new"})
        await engine._run(engine._upsert, NAME, [new])
        assert await found(engine, other) == {former.id: former.payload[TOKENS]}
        (stored,) = (await engine.retrieve(NAME, [former.id], vectors=True)).values()
        assert (stored.payload, stored.damage) == (former.payload, "")
        await engine.close()

    run(work())


@pytest.mark.parametrize(
    "damaged",
    [
        lambda folder: statement(folder, "DELETE FROM points"),
        lambda folder: statement(folder, "UPDATE points SET terms = X'0000000000000000'"),
    ],
    ids=["lost", "other terms"],
)
def test_a_row_that_is_lost_or_differs_from_the_shard_is_noticed(
    tmp_path: Path, damaged: Callable[[Path], None]
) -> None:
    points = village(2)

    async def work() -> None:
        engine = await written(tmp_path, points)
        damaged(tmp_path)
        stored = await engine.retrieve(NAME, [each.id for each in points], vectors=True)
        assert all(each.damage for each in stored.values())
        assert len(stored) == 2
        await engine.close()

    run(work())


def test_a_collection_whose_file_was_deleted_is_not_taken_for_one_of_an_older_version(tmp_path: Path) -> None:
    points = village(2)

    async def work() -> None:
        engine = await written(tmp_path, points)
        await engine.close()
        (tmp_path / NAME / "points.db").unlink()
        engine = EdgeEngine(tmp_path)
        with pytest.raises(IndexLost, match=r"points\.db"):
            await found(engine, points[0])
        assert await engine.collections() == set()
        await engine.close()

    run(work())


def test_what_was_set_aside_is_deleted_with_the_next_collection(tmp_path: Path) -> None:
    """It may have texts that an erasure, which drops a collection, erases."""
    folder = tmp_path / "engine"

    async def work() -> None:
        await (await written(folder, village(2))).close()
        os.truncate(folder / NAME / "points.db", 0)
        engine = EdgeEngine(folder)
        with pytest.raises(IndexLost):
            await engine.count(NAME)
        (tmp_path / "engine.damaged").mkdir()
        assert [*folder.glob("*.damaged")]
        await engine.create(NAME, 4)
        assert [*folder.glob("*.damaged")]
        await engine.drop(NAME)
        await engine.close()

    run(work())
    assert not [*tmp_path.rglob("*.damaged")]


def test_a_point_keeps_its_row_until_its_deletion_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut, the shard may still have a point whose deletion was not synced."""
    first, second = village(2)
    rows, fsync = list[int](), os.fsync

    def count_rows(file: int) -> None:
        with closing(sqlite3.connect(tmp_path / NAME / "points.db")) as connection:
            rows.extend(connection.execute("SELECT count(*) FROM points").fetchone())
        fsync(file)

    async def work() -> None:
        engine = await written(tmp_path, [first, second])
        monkeypatch.setattr(os, "fsync", count_rows)
        await engine.delete(NAME, [first.id])
        await engine.close()

    run(work())
    assert set(rows) == {2}


def test_a_deleted_point_leaves_no_row(tmp_path: Path) -> None:
    first, second = village(2)

    async def work() -> None:
        engine = await written(tmp_path, [first, second])
        await engine.delete(NAME, [first.id])
        await engine.close()

    run(work())
    with closing(sqlite3.connect(tmp_path / NAME / "points.db")) as connection:
        assert connection.execute("SELECT hex(id) FROM points").fetchall() == [(second.id.replace("-", "").upper(),)]


def test_the_indexes_of_fields_have_small_pages_and_grow(tmp_path: Path) -> None:
    """The library ignores changed options without an error."""
    points = [point("village", seed % 50, session=f"session {seed}") for seed in range(40)]

    async def work() -> None:
        engine = await written(tmp_path, points)
        await engine.close()
        engine = EdgeEngine(tmp_path)
        assert await engine.count(NAME, Filter("village", (EVERYBODY,), session="session 7")) == 1
        await engine.close()

    run(work())
    pages = [*(tmp_path / NAME).glob("segments/*/payload_index/*/page_0.dat")]
    assert {page.stat().st_size for page in pages} == {FIELD_PAGE_BYTES}
    assert len(pages) == 14
