"""Reads of entries: which ones count, and when the process publishes them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, InvalidArgument, Memory
from recallog.composition import assemble
from recallog.models.long_term.accesses import AccessCounter
from recallog.retrieval.reranker import Reranker
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Position
from recallog_schemas.errors import StorageReadOnly, StorageUnavailable
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_streams.ledgers.memory import MemoryLedger
from support.cli import recallog
from support.events import MOMENT, event, recorded, run
from support.read_only import read_only
from support.virtual_time import run_in_virtual_time
from support.waiting import until

pytestmark = pytest.mark.models("long_term")

A = ("village", "baker")
NOON = datetime.fromisoformat(MOMENT)


def lesson(id_: str, text: str, agent: str = "baker", **payload: Any) -> Event:
    return event("memory.retained", id=id_, agent=agent, payload={"text": text, "type": "lesson", **payload}, at=MOMENT)


LESSONS = [lesson("sift", "Sift the flour first."), lesson("rest", "Let the dough rest."), event(at=MOMENT)]


async def accessed(memory: Memory) -> list[tuple[str, dict[str, Any]]]:
    """The agent and the payload of each event that counts reads."""
    return [(each.agent, each.payload) for each in await recorded(memory) if each.kind == "memory.accessed"]


def in_memory(work: Callable[[Memory], Awaitable[None]], events: Sequence[Event] = LESSONS) -> None:
    async def whole() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(list(events))
            await work(memory)

    run_in_virtual_time(whole())


def test_a_lookup_is_counted_after_a_second_at_the_time_of_the_space() -> None:
    async def work(memory: Memory) -> None:
        await memory.long_term.lessons(*A, "flour")
        await asyncio.sleep(0.99)
        assert await accessed(memory) == []
        await asyncio.sleep(0.02)
        assert await accessed(memory) == [("baker", {"counts": {"sift": 1}, "hits": 1})]
        assert (await recorded(memory))[-1].at == NOON

    in_memory(work)


def test_lookups_within_a_second_are_one_event_for_each_agent() -> None:
    async def work(memory: Memory) -> None:
        for query in ("flour", "flour", "dough", "harbour"):
            await memory.long_term.lessons(*A, query)
        await memory.long_term.lessons("village", "miller", "grain")
        await asyncio.sleep(1.01)
        assert await accessed(memory) == [
            ("baker", {"counts": {"sift": 2, "rest": 1}, "hits": 3, "misses": 1}),
            ("miller", {"counts": {"grain": 1}, "hits": 1}),
        ]
        await asyncio.sleep(5)
        assert len(await accessed(memory)) == 2

    in_memory(work, [*LESSONS, lesson("grain", "Dry the grain.", "miller")])


def test_reads_are_published_before_the_next_event_of_the_process() -> None:
    async def work(memory: Memory) -> None:
        await memory.long_term.lessons(*A, "flour")
        await memory.publish(event(payload={"text": "Done."}))
        assert [each.kind for each in (await recorded(memory))[-2:]] == ["memory.accessed", "agent.spoke"]
        await asyncio.sleep(5)
        assert len(await accessed(memory)) == 1

    in_memory(work)


def test_many_entries_are_published_at_once() -> None:
    async def work(memory: Memory) -> None:
        (accesses,) = memory._access.observers
        assert isinstance(accesses, AccessCounter)
        accesses.count_lookup("village", "baker", [f"e-{n}" for n in range(long_term_limits.ACCESSED_IDS_MAX - 1)])
        await asyncio.sleep(0)
        assert await accessed(memory) == []
        accesses.count_lookup("village", "baker", ["a", "b"])
        await asyncio.sleep(0.01)
        (first, second) = await accessed(memory)
        assert [len(payload["counts"]) for _, payload in (first, second)] == [long_term_limits.ACCESSED_IDS_MAX, 1]
        assert (first[1]["hits"], "hits" in second[1]) == (2, False)

    in_memory(work)


def test_a_query_counts_at_its_own_time() -> None:
    async def work(memory: Memory) -> None:
        (accesses,) = memory._access.observers
        assert isinstance(accesses, AccessCounter)
        then = datetime(2020, 1, 1, tzinfo=UTC)
        accesses.count_lookup("village", "baker", ["sift"], then)
        await asyncio.sleep(1.01)
        assert (await recorded(memory))[-1].at == then

    in_memory(work)


@pytest.mark.models("prompt")
def test_the_entries_under_recalled_are_counted() -> None:
    async def work(memory: Memory) -> None:
        shown = await memory.context(*A, query="How do I sift flour?")
        assert shown.entries == ("sift",)
        without = await memory.context(*A, query="harbours of Genoa")
        assert without.entries == ()
        await asyncio.sleep(1.01)
        assert await accessed(memory) == [("baker", {"counts": {"sift": 1}, "hits": 1})]

    in_memory(work)


class _Backwards(Reranker):
    """Reverses the order."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [float(place) for place in range(len(texts))]


@pytest.mark.parametrize(("operation", "number"), [("recall", "top_k"), ("search", "limit")])
def test_with_a_reranker_an_entry_is_counted_once_and_only_if_it_is_shown(operation: str, number: str) -> None:
    async def work() -> None:
        async with Memory.in_memory(reranker=_Backwards()) as memory:
            await memory.publish_many(LESSONS)
            shown = await getattr(memory, operation)(*A, "flour or dough", types=["lesson"], **{number: 1})
            [id_] = [hit.event.id if operation == "recall" else hit.id for hit in shown.hits]
            await memory.publish(event())
            assert await accessed(memory) == [("baker", {"counts": {id_: 1}, "hits": 1})]

    run(work())


@pytest.mark.models("prompt")
def test_an_entry_that_the_budget_removes_is_not_counted() -> None:
    async def work(memory: Memory) -> None:
        with pytest.raises(InvalidArgument) as refused:
            await memory.context(*A, query="flour", budget_tokens=1)
        least = int(str(refused.value).split("at least ")[1].split(",")[0])
        shown = await memory.context(*A, query="flour", budget_tokens=least)
        assert "Sift the flour" not in shown.text
        assert shown.entries == ()

    in_memory(work)


@pytest.mark.models("prompt")
@pytest.mark.parametrize(
    "ask",
    [
        lambda memory: memory.long_term.lessons(*A, "flour", as_of="0:2"),
        lambda memory: memory.long_term.lessons(*A, "flour", as_of=NOON),
        lambda memory: memory.context(*A, query="flour", as_of="0:2"),
        lambda memory: memory.recall(*A, "flour"),
        lambda memory: memory.search(*A, "flour"),
        lambda memory: memory.explain(*A, "sift", query="flour"),
        lambda memory: memory.entries(*A, ["sift"]),
        lambda memory: memory.long_term.get(*A, "sift"),
        lambda memory: memory.long_term.list(*A),
        lambda memory: memory.admin.verify("views"),
        lambda memory: memory.admin.rebuild("views"),
    ],
)  # fmt: skip
def test_what_is_no_lookup_of_present_entries_counts_nothing(ask: Callable[[Memory], Awaitable[Any]]) -> None:
    async def work(memory: Memory) -> None:
        await ask(memory)
        await asyncio.sleep(1.01)
        assert await accessed(memory) == []

    in_memory(work)


@pytest.mark.parametrize(("space", "agent"), [("village", "stranger"), ("nowhere", "baker")])
def test_a_lookup_makes_no_space_or_agent_known(space: str, agent: str) -> None:
    async def work(memory: Memory) -> None:
        await memory.long_term.lessons(space, agent, "flour")
        await asyncio.sleep(1.01)
        assert await accessed(memory) == []

    in_memory(work)


def test_a_lookup_does_not_change_the_time_of_the_space_or_what_is_remembered() -> None:
    async def work(memory: Memory) -> None:
        before = await memory.episodic(*A)
        await memory.long_term.lessons(*A, "flour")
        await asyncio.sleep(1.01)
        await memory.long_term.lessons(*A, "flour")
        await asyncio.sleep(1.01)
        assert [each.at for each in await recorded(memory)] == [NOON] * 5
        assert (await memory.episodic(*A)).memories == before.memories

    in_memory(work)


def test_counts_are_those_of_a_rebuild() -> None:
    async def work(memory: Memory) -> None:
        await memory.long_term.lessons(*A, "flour")
        await memory.publish(event())
        assert (await memory.admin.verify("views")).ok
        assert (await memory.admin.rebuild("views")).ok
        assert (await memory.admin.verify("views")).ok

    in_memory(work)


class FailingLedger(MemoryLedger):
    """A ledger that cannot be written while it has a failure."""

    failure: Exception | None = None
    hangs = False
    failed = 0

    async def append(self, events: Sequence[Event], appended: Sequence[int] | None = None) -> list[Position]:
        if self.hangs:
            await asyncio.sleep(3_600)
        if self.failure is not None:
            self.failed += 1
            raise self.failure
        return await super().append(events)


@pytest.mark.parametrize("failure", [StorageReadOnly("read-only"), StorageUnavailable("down")])
def test_a_ledger_that_cannot_be_written_fails_no_query_and_no_close(failure: Exception) -> None:
    async def whole() -> None:
        ledger = FailingLedger()
        async with Memory(assemble(ledger, lambda _: MemoryStore())) as memory:
            await memory.publish_many(LESSONS)
            ledger.failure = failure
            assert (await memory.long_term.lessons(*A, "flour")).lessons
            await asyncio.sleep(1.01)
            assert (await memory.long_term.lessons(*A, "dough")).lessons
        assert len(ledger.values()) == len(LESSONS)
        assert ledger.failed == (1 if isinstance(failure, StorageReadOnly) else 2)

    run_in_virtual_time(whole())


def test_closing_waits_a_limited_time_for_a_ledger() -> None:
    async def whole() -> None:
        ledger = FailingLedger()
        memory = Memory(assemble(ledger, lambda _: MemoryStore()))
        await memory.publish_many(LESSONS)
        await memory.long_term.lessons(*A, "flour")
        ledger.hangs = True
        before = asyncio.get_running_loop().time()
        await memory.close()
        assert asyncio.get_running_loop().time() - before == pytest.approx(long_term_limits.ACCESSED_CLOSE_SECONDS)

    run_in_virtual_time(whole())


def test_a_memory_that_counts_no_reads_publishes_none() -> None:
    async def whole() -> None:
        ledger = MemoryLedger()
        async with Memory(assemble(ledger, lambda _: MemoryStore()), count_accesses=False) as memory:
            await memory.publish_many(LESSONS)
            await memory.long_term.lessons(*A, "flour")
        assert len(ledger.values()) == len(LESSONS)

    run(whole())


# In a folder.


def kinds_in(home: Path) -> list[str]:
    async def work() -> list[str]:
        async with Memory.open(home) as memory:
            return [each.kind for each in await recorded(memory)]

    return run(work())


def given(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish_many(LESSONS)

    run(work())


def test_reads_are_published_when_the_memory_is_closed(tmp_path: Path) -> None:
    given(tmp_path)

    async def asked() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.long_term.lessons(*A, "flour")

    run(asked())
    assert kinds_in(tmp_path).count("memory.accessed") == 1


def test_reads_are_published_without_a_context_manager_and_in_several_loops(tmp_path: Path) -> None:
    given(tmp_path)
    memory = Memory.open(tmp_path)
    asyncio.run(memory.long_term.lessons(*A, "flour"))  # the timer ends with its loop
    asyncio.run(memory.long_term.lessons(*A, "dough"))
    assert asyncio.run(_counted_by_the_timer(memory)) == 1
    asyncio.run(memory.long_term.lessons(*A, "flour"))
    asyncio.run(memory.close())
    asyncio.run(memory.close())
    assert kinds_in(tmp_path).count("memory.accessed") == 2


async def _counted_by_the_timer(memory: Memory) -> int:
    await memory.long_term.lessons(*A, "flour")

    async def published() -> bool:
        return bool(await accessed(memory))

    await until(published, "the timer publishes the reads")
    return len(await accessed(memory))


def test_a_command_counts_what_it_shows(tmp_path: Path) -> None:
    given(tmp_path)
    assert "Sift" in recallog("long-term", "lessons", *A, "flour", "--home", tmp_path).out
    assert kinds_in(tmp_path).count("memory.accessed") == 1
    recallog("long-term", "lessons", *A, "flour", "--as-of", "0:2", "--home", tmp_path)
    recallog("long-term", "list", *A, "--home", tmp_path)
    assert kinds_in(tmp_path).count("memory.accessed") == 1


def test_a_read_only_folder_counts_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    given(home)
    with read_only(home) as place:
        result = recallog("long-term", "lessons", *A, "flour", "--home", place)
        assert ("Sift" in result.out, result.code, result.err) == (True, 0, "")

        async def asked() -> None:
            async with Memory.open(place) as memory:
                await memory.long_term.lessons(*A, "flour")
                await asyncio.sleep(long_term_limits.ACCESSED_SECONDS + 0.2)

        run(asked())
    assert "counted" not in caplog.text
    assert "memory.accessed" not in kinds_in(home)


def test_a_process_that_ends_without_closing_loses_counts_and_no_entry(tmp_path: Path) -> None:
    given(tmp_path)

    async def asked() -> None:
        memory = Memory.open(tmp_path)
        await memory.long_term.retain(*A, "Salt comes last.", entry_id="salt")
        await memory.long_term.lessons(*A, "flour")

    run(asked())
    kinds = kinds_in(tmp_path)
    assert (kinds.count("memory.accessed"), kinds.count("memory.retained")) == (0, 3)
