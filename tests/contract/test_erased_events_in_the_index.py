"""Erased events in the semantic index: their vectors are gone, and no other event is embedded again without need."""

from pathlib import Path

from recallog.index.indexer import Indexer
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas import Event
from recallog_streams.ledgers.ledger import Ledger
from support.events import event, run
from support.indexing import collection, indexing_of, memory_with, running, toys

SPACE, ALICE = "village", "alice"
MARKER = "xylophone"


def said(number: int, text: str, subject: str | None = None) -> Event:
    spoke = event("agent.spoke", id=f"e-{number}", agent=ALICE, payload={"text": text}, session="s-1")
    return spoke.model_copy(update={"space": SPACE, "subject": subject})


def conversation(length: int) -> list[Event]:
    """Alice says something about herself once, in the middle."""
    return [
        said(number, f"I play the {MARKER}.", ALICE) if number == length // 2 else said(number, f"Loaf {number}.")
        for number in range(length)
    ]


def files_with(folder: Path, word: str) -> list[str]:
    return sorted(each.name for each in folder.rglob("*") if each.is_file() and word.encode() in each.read_bytes())


def test_the_vector_of_an_erased_event_is_gone_and_those_of_others_are_used_again(tmp_path: Path) -> None:
    embedders = toys("toy")
    engine = EdgeEngine(tmp_path / "engine")
    indexings: list[Indexer] = []

    def index(ledger: Ledger) -> Indexer:
        indexings.append(indexing_of(ledger, engine, embedders))
        return indexings[0]

    async def work() -> None:
        async with memory_with(tmp_path, index) as memory:
            await memory.publish_many(conversation(20))
            async with running(indexings[0]):
                await memory.catch_up_index()
                embedded = embedders["toy"].embedded
                assert (await memory.erase(SPACE, subject=ALICE)).erased == 1
                points = await engine.scroll(await collection(indexings[0]), None, 100)
                assert len(points) == 19
                # The event after it, whose vector has heard it.
                assert embedders["toy"].embedded - embedded == 1
        assert files_with(tmp_path, MARKER) == []

    run(work())
