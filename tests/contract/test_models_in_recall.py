"""A memory model that adds its texts to the index and to recall."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from recallog import Memory
from recallog.index.indexer import Indexer
from recallog.operations.parameters import At
from recallog.reading.readings import AgentReading
from recallog.retrieval import recall
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.query import RecallQuery
from recallog.retrieval.searcher import Searcher
from recallog.retrieval.sources import CandidateSource, ShownText, SourceQuery
from recallog_projections.index.documents import (
    DOCUMENTS,
    Document,
    DocumentMaker,
    Index,
    text_key,
    uuid_of,
)
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.store import added_documents
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.tables import Table
from recallog_schemas import Event, Record, codec, timestamps
from recallog_schemas.errors import ViewsTooNew
from recallog_schemas.views import RecallView
from recallog_streams import generations
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, run
from support.indexing import catch_up, indexed, memory_with, toys

PROMISE = "I promise: "


class Promise(msgspec.Struct, frozen=True):
    """What an agent has promised last."""

    space: str
    owner: str
    offset: int
    at: int
    text: str
    session: None = None
    turn: int = 0
    kind: str = "toy.promised"
    type: str = "promise"
    importance: float = 0.5
    version: int = 1

    @property
    def point(self) -> str:
        return uuid_of(f"{self.space}\0{self.owner}\0{self.offset}", b"promise")

    @property
    def event(self) -> Event:
        return event("agent.thought", agent=self.owner, id=f"promise-{self.offset}", payload={"text": self.text})


PROMISES = Table("promises", Promise)


class Promises:
    name: ClassVar[str] = "promises"
    version: ClassVar[int] = 1
    kinds = frozenset({"agent.spoke"})
    tables = (PROMISES,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            spoken = record.event
            if spoken.text.startswith(PROMISE):
                at, text = timestamps.micros(spoken.at), spoken.text.removeprefix(PROMISE)
                rows.put(
                    PROMISES, Promise(spoken.space, spoken.agent, record.offset, at, text), spoken.space, spoken.agent
                )


class PromiseDocuments(DocumentMaker):
    version = 1
    kinds = Promises.kinds

    def projections(self) -> Sequence[Projection]:
        return [Promises()]

    def apply(self, rows: Rows, record: Record) -> int:
        more = 0
        for before, now in rows.list_written(PROMISES):
            if before is not None:
                rows.delete(DOCUMENTS, "", key=before.point)
                more -= 1
            if now is not None:
                rows.put(DOCUMENTS, document_of(now), "", key=now.point)
                more += 1
        return more


def document_of(promise: Promise) -> Document:
    return Document(
        space=promise.space,
        agent=promise.owner,
        kind=promise.kind,
        readers=(promise.owner,),
        length=len(promise.text),
        at=promise.at,
        offset=promise.offset,
        event=codec.encode(promise.event).decode(),
        text_key=text_key(promise.text),
        entry=f"promise-{promise.offset}",
        type=promise.type,
        since=promise.offset,
        written=promise.offset,
    )


class PromiseCandidates(CandidateSource):
    """Finds the promises that `present` has, by their offsets."""

    kind = "toy.promised"

    def __init__(self, present: Mapping[int, Promise]) -> None:
        self.present = present

    async def read(self, asked: SourceQuery, found: Sequence[Candidate]) -> Mapping[int, Promise]:
        return {each.offset: self.present[each.offset] for each in found if each.offset in self.present}

    def point_of(self, text: Promise) -> str:
        return text.point

    async def newer(self, asked: SourceQuery, known: Collection[int]) -> Sequence[Promise]:
        return [promise for offset, promise in self.present.items() if offset not in known]

    def show(self, text: Promise) -> ShownText:
        return ShownText(text.event, text.text, text.offset)


def indexer_of(ledger: Ledger, folder: Path) -> Indexer:
    added = {"promises": PromiseDocuments()}
    return Indexer(ledger, MemoryStore(), EdgeEngine(folder / "engine"), toys().__getitem__, "toy", documents=added)


async def ask(memory: Memory, *present: Promise, agent: str = "baker", **how: Any) -> RecallView:
    query = RecallQuery.create("village", agent, "Who mends the mill?", None, **how)
    added = {"promises": lambda: PromiseCandidates({each.offset: each for each in present})}
    searcher = Searcher(memory._components.index, added=added)

    async def asked(reading: AgentReading) -> RecallView:
        return await recall.recall(replace(reading, make_searcher=lambda: searcher), query, 100)

    return await memory._access.of_agent("village", agent, At(), asked)


def spoke(text: str) -> Event:
    return event(payload={"text": f"{PROMISE}{text}"})


def promise(offset: int, text: str) -> Promise:
    return Promise("village", "baker", offset, 0, text)


MILL, ROOF = "I mend the mill.", "I mend the roof of the mill."


def answers(tmp_path: Path, work: Callable[[Memory], Awaitable[list[RecallView]]]) -> list[list[tuple[str, str]]]:
    """The texts and sources of the promises among the hits of some answers, after one promise has taken the place of
    another and both are indexed."""

    async def asked() -> list[RecallView]:
        async with memory_with(tmp_path, lambda ledger: indexer_of(ledger, tmp_path)) as memory:
            await memory.publish_many([spoke(MILL), spoke(ROOF)])
            await indexed(memory)
            return await work(memory)

    return [
        [(hit.text, hit.source) for hit in view.hits if hit.event.id.startswith("promise")] for view in run(asked())
    ]


def test_a_text_of_a_model_is_found_by_the_index_as_it_is_now(tmp_path: Path) -> None:
    async def work(memory: Memory) -> list[RecallView]:
        return [await ask(memory, promise(1, ROOF)), await ask(memory, promise(1, ROOF), types=["promise"])]

    assert answers(tmp_path, work) == [[(ROOF, "index")]] * 2


def test_a_text_that_the_index_does_not_have_is_found_by_its_words(tmp_path: Path) -> None:
    async def work(memory: Memory) -> list[RecallView]:
        return [await ask(memory, promise(7, "I mend the wheel of the mill."))]

    assert answers(tmp_path, work) == [[("I mend the wheel of the mill.", "views")]]


def test_a_text_that_its_model_does_not_name_is_not_found(tmp_path: Path) -> None:
    async def work(memory: Memory) -> list[RecallView]:
        return [await ask(memory)]

    assert answers(tmp_path, work) == [[]]


def test_another_version_of_a_maker_builds_the_index_again() -> None:
    class Newer(PromiseDocuments):
        version = 2

    assert (
        Index({}, added={"promises": Newer()}).made_with != Index({}, added={"promises": PromiseDocuments()}).made_with
    )


def test_a_process_that_lacks_a_model_leaves_its_documents_in_the_index_until_it_is_told_to_rebuild(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        ledger = MemoryLedger()
        await ledger.append([spoke(MILL)])
        having = indexer_of(ledger, tmp_path)
        lacking = replace(having, documents={})
        built = await catch_up(having)
        await ledger.append([spoke(ROOF)])
        with pytest.raises(ViewsTooNew, match="the memory model promises, version 1"):
            await catch_up(lacking)
        assert (await having.rows.pointer(0)).active == built
        await generations.rebuild((await lacking.views()).builder, 0)
        without = (await having.rows.pointer(0)).active
        assert without is not None
        assert added_documents(without.code) == {}
        again = await catch_up(having)
        assert added_documents(again.code) == {"promises": 1}

    run(work())


def test_an_index_without_further_models_has_the_code_that_it_always_had() -> None:
    assert Index({"model": "toy"}).made_with == {"model": "toy"}
