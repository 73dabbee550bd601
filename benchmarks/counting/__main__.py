"""`make counts`: count what an event and a question cost, and write benchmarks/counts.json."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.counting.calls import CallCounter
from benchmarks.counting.parts import CountingEngine, CountingStore, HashingEmbedder
from benchmarks.counting.workloads import WORKLOADS, chats
from benchmarks.workload import batches
from recallog import Event, Memory, Settings, layout
from recallog.composition import compose
from recallog.index.indexer import Indexer
from recallog.index.semantic_index import IndexInProcess
from recallog_projections.stores.sqlite import SqliteStore
from recallog_streams import generations
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_streams.projector import Projector

RECORDED = Path(__file__).parents[1] / "counts.json"
PYTHON = "{}.{}".format(*sys.version_info)
"""Counts of calls are compared under the same version only: another one makes other calls."""

_EVENTS = 2_000
_ALONE = 50
_TOGETHER = 200
_REMEMBERED = 400
_QUESTIONS = 10

Counts = dict[str, float]


def main(into: Annotated[Path, typer.Option(help="The file to write.")] = RECORDED) -> None:
    """Count calls, rows, bytes and fetches of an event and of a question in three workloads; write them as JSON."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # so that sets have the same order in every run
        settings = {name: value for name, value in os.environ.items() if not name.startswith("RECALLOG_")}
        command = [sys.executable, "-m", "benchmarks.counting", "--into", str(into)]
        os.execve(sys.executable, command, settings | {"PYTHONHASHSEED": "0"})
    with tempfile.TemporaryDirectory(prefix="counts-") as folder:
        counts = asyncio.run(_counted(Path(folder)))
    into.write_text(json.dumps({"python": PYTHON, "counts": counts}, indent=1) + "\n")


async def _counted(folder: Path) -> dict[str, Counts]:
    # What is done once in a process is done before: imports, caches, validators.
    await _of_events(folder / "first events", list(WORKLOADS["mixed"](400)))
    await _of_recall(folder / "first recall", list(chats(40)))
    counts = {name: await _of_events(folder / name, list(make(_EVENTS))) for name, make in WORKLOADS.items()}
    counts["chats"] |= await _of_recall(folder / "recall", list(chats(_REMEMBERED)))
    return counts


@dataclass(frozen=True, slots=True)
class _Home:
    ledger: SqliteLedger
    store: CountingStore
    projector: Projector
    calls: CallCounter


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[_Home]:
    """The parts of a memory in `folder`, opened in threads whose calls are counted."""
    folder.mkdir(exist_ok=True)
    made = compose(Settings(home=folder, ledger=None, views=None, index="off"))
    ledger, store, calls = (
        SqliteLedger(folder / layout.LEDGER),
        CountingStore(folder / layout.views_file()),
        CallCounter(),
    )
    try:
        with calls.counting():
            await ledger.ends()
            await store.pointer(0)
            yield _Home(ledger, store, Projector(ledger, store, made.views.projections), calls)
    finally:
        await store.close()
        await ledger.close()
        await made.close()


async def _of_events(folder: Path, events: Sequence[Event]) -> Counts:
    """Counts of appending events, of folding the second half of them, and of folding all of them again."""
    half = len(events) // 2
    first, second = events[:half], events[half:]
    async with _opened(folder) as home:
        counts = await _appended(home, first)
        await generations.current(home.projector, 0)
    counts["append: bytes of the file"] = (folder / layout.LEDGER).stat().st_size / len(first)
    async with _opened(folder) as home:
        for batch in batches(iter(second), _TOGETHER):
            await home.ledger.append(batch)
    async with _opened(folder) as home:  # with an empty cache, as in a process that was just started
        counts |= await _folded(home, "live", len(second))
    async with _opened(folder) as home:
        counts |= await _folded(home, "rebuild", len(events), again=True)
    return {name: round(count, 3) for name, count in counts.items()}


async def _appended(home: _Home, events: Sequence[Event]) -> Counts:
    alone, together = events[:_ALONE], events[_ALONE:]
    began = home.calls.total()
    for event in alone:
        await home.ledger.append([event])
    single = home.calls.total()
    for batch in batches(iter(together), _TOGETHER):
        await home.ledger.append(batch)
    done = home.calls.total()
    return _calls("append of one", began, single, len(alone)) | _calls("append", single, done, len(together))


async def _folded(home: _Home, name: str, events: int, *, again: bool = False) -> Counts:
    began = home.calls.total()
    await (generations.rebuild(home.projector, 0) if again else generations.current(home.projector, 0))
    done, store = home.calls.total(), home.store
    return _calls(name, began, done, events) | {
        f"{name}: rows written": store.rows / events,
        f"{name}: bytes written": store.written_bytes / events,
        f"{name}: fetches of a batch": store.reads / store.commits,
    }


def _calls(name: str, began: tuple[int, int], done: tuple[int, int], times: int) -> Counts:
    python, c = ((after - before) / times for before, after in zip(began, done, strict=True))
    return {f"{name}: calls in Python": python, f"{name}: calls into C": c}


async def _of_recall(folder: Path, events: Sequence[Event]) -> Counts:
    """Counts of the questions that a person of each conversation asks."""
    made = compose(Settings(home=folder, index="off"))
    (folder / layout.INDEX).mkdir(parents=True)
    engine, rows = CountingEngine(folder / layout.INDEX_ENGINE), SqliteStore(folder / layout.INDEX_ROWS)
    indexer = Indexer(made.ledger, rows, engine, lambda name: HashingEmbedder(), "minilm")
    calls = CallCounter()
    with calls.counting():
        async with Memory(replace(made, index=IndexInProcess(lambda: indexer))) as memory:
            await memory.publish_many(events)
            await memory.catch_up()
            await generations.current((await indexer.views()).builder, 0, None)
            asked = events[:: len(events) // (_QUESTIONS + 1)][: _QUESTIONS + 1]
            counts = await _asked(memory, asked, engine, calls)
    await rows.close()
    return counts


async def _asked(memory: Memory, about: Sequence[Event], engine: CountingEngine, calls: CallCounter) -> Counts:
    first, *others = about
    await memory.recall(first.space, first.agent, first.text)  # reads files
    engine.calls = engine.searches = engine.hits = engine.points = engine.payload_bytes = 0
    considered = 0
    began = calls.total()
    for event in others:
        considered += (await memory.recall(event.space, event.agent, " ".join(event.text.split()[:5]))).considered
    counts = _calls("recall", began, calls.total(), len(others))
    counts["recall: calls of the engine"] = engine.calls / len(others)
    counts["recall: searches"] = engine.searches / len(others)
    counts["recall: hits"] = engine.hits / len(others)
    counts["recall: candidates"] = considered / len(others)
    counts["recall: points read"] = engine.points / len(others)
    counts["recall: bytes of payloads"] = engine.payload_bytes / len(others)
    return {name: round(count, 3) for name, count in counts.items()}


if __name__ == "__main__":
    typer.run(main)
