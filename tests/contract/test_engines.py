"""Engines: the contract for the embedded and the server engine, crash safety, and errors with remedies."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from uuid import UUID, uuid4

import pytest

from recallog_projections.index.engines import edge
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.engine import Search, Sparse
from recallog_projections.index.engines.folder import collections_in
from recallog_projections.index.engines.server import ServerEngine
from recallog_schemas.errors import IndexLost, IndexUnavailable, InvariantViolation
from recallog_testing.contracts.engine import DIMENSION, EngineContract, everything, ids, pages, point, unit
from support.cli import environment_of
from support.events import one_loop, run


class TestEdgeEngine(EngineContract):
    @classmethod
    def make(cls, folder: Path) -> EdgeEngine:
        return EdgeEngine(folder / "index")


class TestServerEngine(EngineContract):
    url: ClassVar[str]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def server(cls, qdrant_url: str) -> None:
        cls.url = qdrant_url

    @classmethod
    def make(cls, folder: Path) -> ServerEngine:
        return ServerEngine(cls.url, f"recallog-test-{uuid4().hex[:8]}", deadline_seconds=60)


# The embedded engine.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def engine(folder: Path) -> Iterator[EdgeEngine]:
    with one_loop():
        engine = EdgeEngine(folder)
        yield engine
        run(engine.close())


def test_a_missing_folder_has_no_collections(engine: EdgeEngine, folder: Path) -> None:
    assert run(engine.collections()) == set()
    assert run(engine.size_bytes()) == 0
    assert not folder.exists()


def test_a_reopened_collection_answers_the_same(engine: EdgeEngine, folder: Path) -> None:
    run(engine.create("memories", DIMENSION))
    run(engine.upsert("memories", [point("village", n) for n in range(60)]))
    searches = [
        Search(everything("village"), 60, dense=unit(3)),
        Search(everything("village"), 60, sparse=Sparse([2**32 - 1], [1.0])),
    ]
    before = run(engine.search("memories", searches)), pages(engine, "memories", 20)
    run(engine.close())
    again = EdgeEngine(folder)
    assert (run(again.search("memories", searches)), pages(again, "memories", 20)) == before
    run(again.close())


def test_deleted_points_stay_deleted_in_a_reopened_collection(engine: EdgeEngine, folder: Path) -> None:
    written = [point("village", n) for n in range(60)]
    run(engine.create("memories", DIMENSION))
    run(engine.upsert("memories", written))
    run(engine.delete("memories", ids(written[:20])))
    run(engine.close())
    again = EdgeEngine(folder)
    assert set(ids(pages(again, "memories", 20))) == set(ids(written[20:]))
    assert run(again.count("memories")) == 40
    run(again.close())


def test_a_collection_that_another_process_has_open_is_unavailable_and_not_lost(
    engine: EdgeEngine, folder: Path
) -> None:
    run(engine.create("memories", DIMENSION))
    run(engine.upsert("memories", [point("village")]))
    other = EdgeEngine(folder)
    assert run(other.collections()) == {"memories"} == collections_in(folder)
    with pytest.raises(IndexUnavailable, match="only one can use it") as raised:
        run(other.count("memories"))
    assert not isinstance(raised.value, IndexLost)
    run(engine.close())
    assert run(other.count("memories")) == 1
    run(other.close())


def test_a_collection_that_is_deleted_while_open_is_lost_until_it_is_created(engine: EdgeEngine, folder: Path) -> None:
    run(engine.create("memories", DIMENSION))
    run(engine.upsert("memories", [point("village")]))
    shutil.rmtree(folder / "memories")
    with pytest.raises(IndexLost):
        run(engine.upsert("memories", [point("village")]))
    run(engine.create("memories", DIMENSION))
    assert run(engine.count("memories")) == 0


def test_a_collection_that_cannot_be_opened_is_set_aside_and_lost(engine: EdgeEngine, folder: Path) -> None:
    run(engine.create("memories", DIMENSION))
    (folder / "memories" / "edge_config.json").write_text("{")
    for _ in range(2):
        with pytest.raises(IndexLost, match=r"files of the index in .* are damaged: .*edge_config.json"):
            run(engine.count("memories"))
    assert (folder / "memories.damaged" / "edge_config.json").read_text() == "{"
    assert run(engine.collections()) == set()
    run(engine.create("memories", DIMENSION))
    assert run(engine.count("memories")) == 0


def test_leftovers_of_a_crash_while_creating_or_dropping_are_removed(engine: EdgeEngine, folder: Path) -> None:
    run(engine.create("memories", DIMENSION))
    shutil.copytree(folder / "memories", folder / "half.new")
    (folder / "half.new" / "edge_config.json").unlink()
    shutil.copytree(folder / "memories", folder / "gone.dropped")
    assert run(engine.collections()) == {"memories"}
    run(engine.create("half", DIMENSION))
    run(engine.upsert("half", [point("village")]))
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["half", "memories"]


def test_a_full_disk_is_detected_before_it_kills_the_process(
    engine: EdgeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(engine.create("memories", DIMENSION))
    monkeypatch.setattr(edge, "FREE_BYTES_MIN", 2**62)
    with pytest.raises(IndexUnavailable, match="Free some space"):
        run(engine.upsert("memories", [point("village")]))
    assert run(engine.count("memories")) == 0


def test_a_search_is_answered_while_many_points_are_written(engine: EdgeEngine) -> None:
    async def both() -> tuple[int, bool]:
        writing = asyncio.create_task(engine.upsert("memories", [point("village", n) for n in range(400)]))
        await asyncio.sleep(0)
        found = await engine.count("memories")
        was_writing = not writing.done()
        await writing
        return found, was_writing

    run(engine.create("memories", DIMENSION))
    found, was_writing = run(both())
    assert was_writing
    assert found < 400
    assert run(engine.count("memories")) == 400


def test_the_log_stays_bounded_while_many_points_are_written(engine: EdgeEngine, folder: Path) -> None:
    """Without flushes the log would keep every point."""
    run(engine.create("memories", DIMENSION))
    for n in range(0, 2_000, 100):
        run(engine.upsert("memories", [point("village", n + i, text="x" * 50_000) for i in range(100)]))
    log = sum(path.stat().st_blocks * 512 for path in (folder / "memories" / "wal").iterdir())
    assert log < 4 * edge.FLUSH_BYTES


def test_filters_find_the_fields_of_more_points_than_the_first_files_can_hold(engine: EdgeEngine, folder: Path) -> None:
    """The library enlarges the files that were created smaller than it would have."""
    many = 2 * edge.FIELD_TRACKER_BYTES // 16 + 50
    run(engine.create("memories", DIMENSION))
    run(engine.upsert("memories", [point("village", n, session=f"day {n}" * 20) for n in range(many)]))
    trackers = {path.stat().st_size for path in folder.glob("memories/segments/*/payload_index/*/tracker.dat")}
    assert min(trackers) == edge.FIELD_TRACKER_BYTES  # of the fields that no point has
    assert edge.FIELD_TRACKER_BYTES < max(trackers) < 16 * edge.FIELD_TRACKER_BYTES

    def found(engine: EdgeEngine) -> list[int]:
        filters = [replace(everything("village"), session=f"day {n}" * 20) for n in range(0, many, 50)]
        return [run(engine.count("memories", each)) for each in (everything("village"), *filters)]

    before = found(engine)
    assert before == [many, *[1] * len(range(0, many, 50))]
    run(engine.close())
    again = EdgeEngine(folder)
    assert found(again) == before
    run(again.close())


def test_a_closed_engine_raises_an_error(folder: Path) -> None:
    engine = EdgeEngine(folder)
    run(engine.close())
    run(engine.close())
    with pytest.raises(IndexUnavailable, match="closed"):
        run(engine.collections())


@pytest.mark.parametrize("name", ["", "..", "a/b", "a.new"])
def test_a_collection_name_outside_the_folder_violates_an_invariant(engine: EdgeEngine, name: str) -> None:
    with pytest.raises(InvariantViolation):
        run(engine.create(name, DIMENSION))


# Crashes.

_WRITE = """
import asyncio, sys
from pathlib import Path
from uuid import UUID
from recallog_testing.contracts.engine import point
from recallog_projections.index.engines import edge

async def main(folder, first):
    edge.FLUSH_BYTES = 300 * 100  # so that kills hit flushes too
    engine = edge.EdgeEngine(Path(folder))
    for start in range(int(first), 100_000, 20):
        await engine.upsert("memories", [point("village", n, id=str(UUID(int=n))) for n in range(start, start + 20)])
        await engine.delete("memories", [str(UUID(int=n)) for n in range(start, start + 5)])
        print(start + 20, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""

_CHURN = """
import asyncio, sys
from pathlib import Path
from recallog_testing.contracts.engine import DIMENSION
from recallog_projections.index.engines.edge import EdgeEngine

async def main(folder):
    engine = EdgeEngine(Path(folder))
    while True:
        await engine.drop("memories")
        print("dropped", flush=True)
        await engine.create("memories", DIMENSION)
        print("created", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment_of(PYTHONPATH=os.pathsep.join(sys.path)),
    )


def kill(process: "subprocess.Popen[str]", after_lines: int, after_seconds: float) -> list[str]:
    """Kill the process some time after its first `after_lines` lines of output; returns all of its output."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(after_lines)]
    time.sleep(after_seconds)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, "it ended by itself"
    return [line.strip() for line in [*lines, *rest.splitlines()]]


def test_every_acknowledged_write_and_deletion_survives_a_kill(engine: EdgeEngine, folder: Path) -> None:
    run(engine.create("memories", DIMENSION))
    run(engine.close())
    chance = random.Random(7)
    acknowledged = 0
    for _ in range(3):
        process = start(_WRITE, folder, acknowledged)
        acknowledged = int(kill(process, chance.randrange(1, 25), chance.random() / 5)[-1])
        again = EdgeEngine(folder)
        found = {stored.id: stored for stored in pages(again, "memories", 1_000)}
        for n in range(acknowledged):
            if n % 20 < 5:
                assert str(UUID(int=n)) not in found
            else:
                assert found[str(UUID(int=n))].payload["offset"] == n
        last = point("village", acknowledged - 1)
        hits = run(
            again.search(
                "memories",
                [
                    Search(everything("village"), 1, dense=last.dense[0]),
                    Search(everything("village"), 1, sparse=last.sparse),
                ],
            )
        )
        assert [ids(found) for found in hits] == [[str(UUID(int=acknowledged - 1))]] * 2
        run(again.close())
    assert acknowledged > 20


def test_collections_can_be_created_and_dropped_after_a_kill_while_creating_and_dropping(folder: Path) -> None:
    chance = random.Random(8)
    for _ in range(3):
        kill(start(_CHURN, folder), chance.randrange(1, 3), chance.random() / 3)
        with one_loop():
            engine = EdgeEngine(folder)
            run(engine.create("memories", DIMENSION))
            written = point("village")
            run(engine.upsert("memories", [written]))
            assert ids(pages(engine, "memories", 10)) == [written.id]
            run(engine.drop("memories"))
            assert [path.name for path in folder.iterdir() if path.is_dir()] == []
            run(engine.close())
