"""`Memory.open(embedder=…)`: the index of a folder is built and asked by the process that has the embedder."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from filelock import FileLock

from recallog import Memory, layout
from recallog.index.ownership import IndexOwner, Ownership, owner_of
from recallog.settings import Settings
from recallog_projections import plugins
from recallog_projections.index.embedders.embedder import Embedding, Passage
from recallog_projections.index.embedders.registry import GIVEN
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.store import made_with
from recallog_schemas import Event
from recallog_schemas.errors import EmbedderUnavailable, IndexUnavailable, InvalidArgument, SettingsError, ViewsBehind
from support.cli import spawn
from support.embedding_endpoint import EmbeddingEndpoint, embedding_endpoint
from support.events import event, run
from support.index_process import DEADLINE_SECONDS
from support.toy_embedder import ToyEmbedder
from support.waiting import until

A = ("village", "baker")
ANSWER = "The smith burned the mill."
TEXTS = ["Bread!", "It was dark.", ANSWER, "I saw the river."]
QUESTION = "Who burned the mill?"


class Own(ToyEmbedder):
    """An embedder that counts how often it is closed, and fails if two calls overlap."""

    def __init__(self, model: str = "own") -> None:
        super().__init__(model, token_vectors=False)
        self.closed = 0
        self._inside = threading.Lock()

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        assert not self.closed
        assert self._inside.acquire(blocking=False), "calls overlap"
        try:
            time.sleep(0.001)
            return super().embed(passages)
        finally:
            self._inside.release()

    def close(self) -> None:
        self.closed += 1


def events(texts: Sequence[str] = TEXTS) -> list[Event]:
    return [event(payload={"text": text}) for text in texts]


def settings_of(home: Path, endpoint: EmbeddingEndpoint) -> Settings:
    """Settings whose embedder is an endpoint."""
    return Settings(
        home=home,
        index="embedded",
        embedder=endpoint.name,
        index_idle_seconds=0,
        deadline_seconds=DEADLINE_SECONDS,
    )


def opened(home: Path, embedder: ToyEmbedder, **more: Any) -> Memory:
    return Memory.open(
        Settings(home=home, index="embedded", deadline_seconds=DEADLINE_SECONDS, **more), embedder=embedder
    )


@asynccontextmanager
async def indexed(memory: Memory) -> AsyncIterator[Memory]:
    async with memory:
        if not (await memory.spaces()).items:
            await memory.publish_many(events())
        await memory.catch_up_index()
        yield memory


async def model_of(home: Path) -> tuple[str, str]:
    """The name and the model of the embedder of a folder's index."""
    async with Memory.open(Settings(home=home, index="embedded", deadline_seconds=DEADLINE_SECONDS)) as memory:
        index = memory._components.index
        assert index is not None
        active = (await index.rows.pointer(0)).active
        assert active is not None
        made = made_with(active.code)
        return made.embedder, made.model


def asked_elsewhere(home: Path, **environment: str) -> Any:
    """The answer of another process, whose settings name an embedder."""
    said = spawn("recall", *A, QUESTION, "--home", home, "--json", RECALLOG_INDEX_IDLE_SECONDS="0", **environment)
    assert said.code == 0, said.err
    return said.json


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running:
        yield running


# Building, asking and closing.


@pytest.mark.models("prompt")
def test_the_index_is_built_and_asked_in_this_process(tmp_path: Path) -> None:
    async def work() -> None:
        embedder = Own()
        async with indexed(opened(tmp_path, embedder)) as memory:
            answer = await memory.recall(*A, QUESTION)
            assert answer.degraded is None
            assert (answer.hits[0].text, answer.hits[0].source) == (ANSWER, "index")
            assert answer.hits[0].similarity is not None
            assert (await memory.salient(*A, QUESTION)).relevance_by == "meaning"
            assert (await memory.context(*A, query=QUESTION)).degraded is None
            assert not (tmp_path / layout.INDEX_ADDRESS).exists()
            assert (await memory.admin.verify()).clean
            assert (await memory.admin.status()).index is not None
        assert embedder.closed == 1
        assert not (tmp_path / layout.INDEX_OWNER).exists()
        assert await model_of(tmp_path) == (GIVEN, "own model")

    run(work())


def test_it_follows_the_ledger_also_for_events_of_other_processes(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(opened(tmp_path, Own())) as memory:
            published = spawn("publish", *A, "agent.spoke", "A heron stands in the river.", "--home", tmp_path)
            assert published.code == 0, published.err

            async def found() -> bool:
                return (await memory.recall(*A, "heron")).hits[0].source == "index"

            await until(found, "the index has the event")

    run(work())


def test_a_later_memory_uses_the_vectors_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(opened(tmp_path, Own())):
            pass
        again = Own()
        async with indexed(opened(tmp_path, again)) as memory:
            assert again.embedded == 0
            assert (await memory.recall(*A, QUESTION)).hits[0].text == ANSWER
            assert again.embedded == 1

    run(work())


def test_calls_of_the_embedder_do_not_overlap(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(opened(tmp_path, Own())) as memory:
            for number in range(5):
                await memory.publish_many(events([f"{text} {number}" for text in TEXTS]))
                answers = await asyncio.gather(*(memory.recall(*A, f"{QUESTION} {n}") for n in range(8)))
                assert {each.degraded for each in answers} == {None}
            await memory.catch_up_index()

    run(work())


def test_a_memory_that_was_never_used_closes_its_embedder(tmp_path: Path) -> None:
    async def work() -> None:
        embedder = Own()
        await opened(tmp_path, embedder).close()
        assert embedder.closed == 1
        assert not (tmp_path / layout.INDEX).exists()

    run(work())


def test_closing_while_the_index_is_being_built(tmp_path: Path) -> None:
    async def work() -> None:
        embedder = Own()
        async with opened(tmp_path, embedder) as memory:
            await memory.publish_many(events([f"{text} {n}" for text in TEXTS for n in range(200)]))
            await memory.start_index()
        assert embedder.closed == 1
        async with indexed(opened(tmp_path, Own())) as memory:
            assert (await memory.recall(*A, QUESTION)).degraded is None

    run(work())


def test_a_memory_that_is_used_in_one_event_loop_after_another(tmp_path: Path) -> None:
    memory = opened(tmp_path, Own())

    async def work() -> None:
        await memory.publish_many(events())
        await memory.catch_up_index()
        assert (await memory.recall(*A, QUESTION)).degraded is None

    run(work())
    run(work())
    run(memory.close())


def test_an_embedder_that_fails_is_named_and_the_index_goes_on_when_it_works_again(tmp_path: Path) -> None:
    async def work() -> None:
        embedder = Own()
        async with indexed(opened(tmp_path, embedder)) as memory:
            embedder.failure = EmbedderUnavailable("the model is gone")
            answer = await memory.recall(*A, QUESTION)
            assert answer.degraded == "only words were compared: the model is gone"
            await memory.publish(event(payload={"text": "A heron."}))
            with pytest.raises(ViewsBehind, match="the model is gone"):
                await memory.catch_up_index()
            embedder.failure = None
            await memory.catch_up_index()
            assert (await memory.recall(*A, QUESTION)).degraded is None

    run(work())


# Other processes.


def test_another_process_says_who_has_the_index_and_compares_words(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(opened(tmp_path, Own())):
            answer = await asyncio.to_thread(asked_elsewhere, tmp_path)
            assert answer["hits"][0]["text"] == ANSWER
            held = "with an embedder of its own, own model; only that process can use it until it closes the memory"
            assert held in answer["degraded"]
            refused = await asyncio.to_thread(
                spawn, "reindex", "--model", "minilm", "--home", tmp_path, RECALLOG_INDEX_IDLE_SECONDS="0"
            )
            assert refused.code != 0
            assert held in " ".join(refused.err.split())

    run(work())


def test_another_process_says_that_the_embedder_is_not_there(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(opened(tmp_path, Own())):
            pass

    run(work())
    answer = asked_elsewhere(tmp_path)
    assert "was built by a program with an embedder of its own, own model, which is not running" in answer["degraded"]
    assert not (tmp_path / layout.INDEX_ADDRESS).exists()


def test_two_memories_with_embedders(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(opened(tmp_path, Own())):
            async with opened(tmp_path, Own("other")) as second:
                degraded = (await second.recall(*A, QUESTION)).degraded
                assert degraded is not None
                assert "with an embedder of its own, own model" in degraded
                with pytest.raises(IndexUnavailable, match="own model"):
                    await second.catch_up_index()

    run(work())


def test_a_service_that_has_the_index_is_named(tmp_path: Path) -> None:
    async def work() -> None:
        (tmp_path / layout.INDEX).mkdir()
        async with opened(tmp_path, Own()) as memory:
            await memory.publish_many(events())
            with FileLock(tmp_path / layout.INDEX_LOCK):
                degraded = (await memory.recall(*A, QUESTION)).degraded
                assert degraded is not None
                assert "another process serves the index of" in degraded
            await memory.catch_up_index()
            assert (await memory.recall(*A, QUESTION)).degraded is None

    run(work())


def test_a_process_that_was_killed_leaves_no_owner_behind(tmp_path: Path, endpoint: EmbeddingEndpoint) -> None:
    async def work() -> None:
        (tmp_path / layout.INDEX).mkdir()
        (tmp_path / layout.INDEX_OWNER).write_bytes(msgspec.json.encode(IndexOwner(1, "gone model")))
        async with indexed(Memory.open(settings_of(tmp_path, endpoint))) as memory:
            assert (await memory.recall(*A, QUESTION)).degraded is None
        assert not (tmp_path / layout.INDEX_OWNER).exists()

    run(work())


# Other models.


def test_another_model_is_refused_until_the_index_is_built_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(opened(tmp_path, Own())):
            pass
        async with opened(tmp_path, Own("other")) as memory:
            degraded = (await memory.recall(*A, QUESTION)).degraded
            assert degraded == (
                "only words were compared: the index was built with own model, but 'given' is other model here. "
                "Rebuild it: memory.admin.reindex(model='given')"
            )
            await memory.admin.reindex(model=GIVEN)
            assert (await memory.recall(*A, QUESTION)).degraded is None
        assert await model_of(tmp_path) == (GIVEN, "other model")

    run(work())


def test_from_an_embedder_of_the_settings_to_a_given_one_and_back(tmp_path: Path, endpoint: EmbeddingEndpoint) -> None:
    async def work() -> None:
        by_settings = settings_of(tmp_path, endpoint)
        async with indexed(Memory.open(by_settings)):
            pass
        async with opened(tmp_path, Own()) as memory:
            degraded = (await memory.recall(*A, QUESTION)).degraded
            assert degraded is not None
            assert f"the index was built with {endpoint.name!r}. Build it again: memory.admin.reindex(" in degraded
            await memory.admin.reindex(model=GIVEN)
            assert (await memory.recall(*A, QUESTION)).degraded is None
        async with Memory.open(by_settings) as memory:
            degraded = (await memory.recall(*A, QUESTION)).degraded
            assert degraded is not None
            assert "built by a program with an embedder of its own, own model" in degraded
            await memory.admin.reindex(model=endpoint.name)
            assert (await memory.recall(*A, QUESTION)).degraded is None

    run(work())


def test_a_name_is_no_given_embedder(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(
            Settings(home=tmp_path, index="embedded", embedder=GIVEN, deadline_seconds=DEADLINE_SECONDS)
        ) as memory:
            await memory.publish_many(events())
            with pytest.raises(ViewsBehind, match="built by a program with an embedder of its own"):
                await memory.catch_up_index()

    run(work())


def test_an_engine_that_several_processes_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a server: no process owns the folder, and this one follows the ledger."""
    engines = {plugins.ENGINES: lambda url, settings: EdgeEngine(tmp_path / "engine")}
    monkeypatch.setattr(plugins, "load", lambda group, scheme: engines[group])

    async def work() -> None:
        embedder = Own()
        settings = Settings(home=tmp_path / "home", index="several://here")
        async with indexed(Memory.open(settings, embedder=embedder)) as memory:
            assert (await memory.recall(*A, QUESTION)).hits[0].source == "index"
        assert embedder.closed == 1
        assert not (tmp_path / "home" / layout.INDEX_OWNER).exists()

    run(work())


def test_an_index_that_is_taken_while_its_memory_closes_is_released(tmp_path: Path) -> None:
    """It is taken in a thread, whose end a caller that was cancelled did not see: the index was held for good."""
    ownership = Ownership(tmp_path, "own model")
    ownership.release()
    ownership.take()
    assert owner_of(tmp_path) is None
    assert not (tmp_path / layout.INDEX_OWNER).exists()


# What is refused at once.


def test_an_embedder_needs_an_index(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="an embedder is given, and the index is off"):
        Memory.open(Settings(home=tmp_path, index="off"), embedder=Own())


@pytest.mark.parametrize("given", [object(), Own, "minilm"], ids=["object", "class", "name"])
def test_what_is_no_embedder_is_refused(given: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="embedder: should be an object"):
        Memory.open(tmp_path, embedder=given)


def test_waiting_for_the_index_reports_what_is_new_and_no_more(tmp_path: Path) -> None:
    class Slow(Own):
        def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
            time.sleep(0.5)
            return super().embed(passages)

    async def work() -> None:
        told: list[tuple[int, int]] = []
        async with opened(tmp_path, Slow()) as memory:
            await memory.publish_many(events())
            await memory.catch_up_index(lambda *each: told.append(each))
        assert told[-1] == (4, 4)
        assert told[:-1] == sorted(set(told[:-1]))

    run(work())
