"""Clocks: an agent has the time of what it sees, and what is dated ahead of its record sets none."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Memory
from recallog.composition import assemble
from recallog.operations import pipeline
from recallog.operations.facade import all_operations
from recallog_projections import notices
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Event, codec, kinds
from recallog_schemas.timestamps import micros
from recallog_service.formats.jsonl import read, with_time, without_time
from recallog_service.ingest import ingest
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, run

pytestmark = pytest.mark.models("all")

T0 = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
AHEAD = datetime(2099, 1, 1, tzinfo=UTC)
A = {"space": "s", "agent": "a"}


def at(hours: float, agent: str, kind: str, payload: Mapping[str, Any], **fields: Any) -> Event:
    return event(kind, space="s", agent=agent, at=T0 + hours * HOUR, payload=dict(payload), **fields)


def of_ledger(ledger: MemoryLedger) -> Memory:
    return Memory(assemble(ledger, lambda _: MemoryStore()), count_accesses=False)


def milliseconds(moment: datetime) -> int:
    return micros(moment) // 1_000


async def appended_at(moment: datetime, *events: Event) -> Memory:
    """A memory whose ledger got the events at that moment."""
    ledger = MemoryLedger()
    await ledger.append(events, [milliseconds(moment)] * len(events))
    return of_ledger(ledger)


# What is ahead.


async def time_of(memory: Memory, agent: str = "a") -> datetime | None:
    return (await memory.tiers.stats("s", agent)).now


@pytest.mark.parametrize(("hours", "moves"), [(1, True), (24, True), (24.001, False), (24 * 365 * 50, False)])
def test_a_time_that_is_more_than_a_day_ahead_sets_no_clock(hours: float, moves: bool) -> None:
    async def work() -> None:
        said = [at(0, "a", "agent.spoke", {"text": "one"}), at(hours, "a", "agent.spoke", {"text": "two"})]
        async with await appended_at(T0, *said) as memory:
            assert await time_of(memory) == (T0 + hours * HOUR if moves else T0)

    run(work())


def test_an_old_record_is_never_ahead() -> None:
    async def work() -> None:
        ledger = MemoryLedger()
        ledger.append_bytes(codec.encode(event("agent.spoke", space="s", agent="a", at=AHEAD)), "s")
        async with of_ledger(ledger) as memory:
            assert await time_of(memory) == AHEAD
            assert (await memory.admin.status()).faults == ()

    run(work())


def test_an_entry_that_is_ahead_ages_from_when_it_was_appended() -> None:
    async def work() -> None:
        kept = at(0, "a", "memory.retained", {"text": "Rye is short.", "tier": "fast", "importance": 0.8}, id="e")
        async with await appended_at(T0, kept.model_copy(update={"at": AHEAD})) as memory:
            found = await memory.tiers.entry("s", "a", "e", now=T0 + HOUR)
            assert found.found is not None
            assert found.found.importance == 0.4

    run(work())


def test_yesterday_is_not_that_of_an_event_that_is_ahead() -> None:
    async def work() -> None:
        said = [
            at(0, "a", "agent.spoke", {"text": "The mill broke."}),
            at(24, "a", "agent.spoke", {"text": "The mill was mended."}),
        ]
        foreign = event("agent.spoke", space="s", agent="b", at=AHEAD, audience=("a",), payload={"text": "The mill!"})
        async with await appended_at(T0 + DAY, *said, foreign) as memory:
            found = await memory.recall("s", "a", "What happened to the mill yesterday?")
            assert (found.now, found.hits[0].event.id) == (T0 + DAY, said[0].id)

    run(work())


def test_what_is_ahead_is_told_to_who_publishes_it_and_by_status() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            with notices.collect_notices() as told:
                await memory.publish(event("agent.spoke", space="s", agent="a", id="e-1", at=AHEAD))
                await memory.publish(event("agent.spoke", space="s", agent="a", id="e-2"))
            await memory.timeline("s", "a")
            status = await memory.admin.status()
        (message,) = told
        assert "the event e-1 is dated more than a day ahead (2099-01-01T00:00:00+00:00)" in message
        assert "in s 1 event has a date more than a day ahead, the newest at 0:0" in status.format()

    run(work())


# What is about the past.


def test_an_entry_about_the_past_does_not_take_its_owner_there() -> None:
    async def work() -> None:
        async with await appended_at(T0, at(0, "a", "agent.spoke", {"text": "The mill was mended."})) as memory:
            past = T0.replace(year=2020)
            kept = await memory.long_term.retain("s", "a", "Ann lived in Rome.", at=past, audience=["b"])
            assert await time_of(memory) == T0
            assert (await memory.recall("s", "a", "What happened yesterday?")).now == T0
            assert kept.id is not None
            entry = await memory.long_term.get("s", "a", kept.id)
            assert entry.entry is not None
            assert entry.entry.at == past
            assert await time_of(memory, "b") == past  # its first event
            await memory.long_term.retain("s", "a", "Ann lives in Oslo.", at=T0 + HOUR)
            assert await time_of(memory) == T0 + HOUR

    run(work())


_CLOCK_KINDS = st.sampled_from(
    ["memory.retained", "experience.recorded", "agent.spoke", "world.observed", "clock.ticked"]
)
_READERS = ("a", "b")
_PAYLOADS: Mapping[str, Mapping[str, Any]] = {
    "memory.retained": {"text": "Rye is sown in autumn."},
    "experience.recorded": {"action_type": "sow", "summary": "Sowed rye."},
}


def oracle(events: Sequence[Event]) -> dict[str, datetime | None]:
    """The times of the readers after these events, as the docs say."""
    shown: dict[str, datetime | None] = dict.fromkeys(_READERS)
    for each in events:
        is_entry = each.kind in ("memory.retained", "experience.recorded")
        is_shared = each.kind in ("world.observed", "clock.ticked")
        for reader in _READERS:
            before = shown[reader]
            if is_shared or reader == each.agent or reader in (each.audience or ()):
                shown[reader] = each.at if before is None or not is_entry else max(before, each.at)
    return shown


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(_CLOCK_KINDS, st.sampled_from(_READERS), st.booleans(), st.integers(-9, 9)), min_size=1, max_size=12
    ),
    st.sampled_from([1, 3, 12]),
)
def test_entries_never_set_the_time_of_an_agent_back(history: Sequence[tuple[str, str, bool, int]], batch: int) -> None:
    events = [
        at(
            hours,
            agent,
            kind,
            _PAYLOADS.get(kind, {"text": "It rains."} if kind != "clock.ticked" else {}),
            id=f"e-{number}",
            audience=_READERS if kind == "memory.retained" and to_all else None,
        )
        for number, (kind, agent, to_all, hours) in enumerate(history)
    ]

    async def work() -> None:
        async with await appended_at(T0 + DAY) as memory:
            for first in range(0, len(events), batch):
                await memory.publish_many(events[first : first + batch])
                expected = oracle(events[: first + batch])
                assert {reader: await time_of(memory, reader) for reader in _READERS} == expected
            await memory.admin.rebuild()
            assert {reader: await time_of(memory, reader) for reader in _READERS} == oracle(events)

    run(work())


def test_an_entry_that_all_may_read_moves_the_time_of_its_owner_alone() -> None:
    async def work() -> None:
        shared = at(0, "a", "space.configured", {"shared_kinds": ["memory.retained"]})
        spoken = [at(hours, agent, "agent.spoke", {"text": "Rain."}) for agent, hours in (("a", 1), ("b", 5))]
        async with await appended_at(T0, shared, *spoken) as memory:
            await memory.long_term.retain("s", "a", "Rye is sown in autumn.", at=T0 + 3 * HOUR)
            assert (await time_of(memory, "a"), await time_of(memory, "b")) == (T0 + 3 * HOUR, T0 + 5 * HOUR)

    run(work())


# The time of a record.


async def times(memory: Memory) -> dict[str, int]:
    """By the id of its event: when each record was first appended."""
    batches: AsyncIterator[Any] = memory.admin.records()
    return {
        codec.decode(data).id: time
        async for batch in batches
        for (_, data), time in zip(batch.records, batch.appended, strict=True)
    }


def test_a_copy_keeps_the_times_of_records(tmp_path: Path) -> None:
    async def work() -> None:
        async with await appended_at(T0, event(id="e-1"), event(id="e-2")) as memory:
            await memory.admin.copy(str(tmp_path / "copied"))
            before = await times(memory)
        async with Memory.open(tmp_path / "copied") as copied:
            assert await times(copied) == before == dict.fromkeys(("e-1", "e-2"), milliseconds(T0))

    run(work())


def test_a_time_that_is_given_is_at_most_now(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.admin.restore_events([event(id="e-1"), event(id="e-2")], [milliseconds(AHEAD), 0])
            found = await times(memory)
            assert 0 < found["e-1"] < milliseconds(AHEAD)
            assert found["e-2"] == 0

    run(work())


def test_an_export_keeps_the_times_of_records(tmp_path: Path) -> None:
    data = codec.encode(event(id="e-1", at=T0))
    line = with_time(data, milliseconds(T0))
    assert without_time(line + b"\n") == (data, milliseconds(T0))

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            plain = codec.encode(event(id="e-2", at=AHEAD))
            report = await ingest(memory, read([line, plain]), batch=10)
            assert (report.added, report.ahead) == (2, 1)
            found = await times(memory)
            assert found["e-1"] == milliseconds(T0)
            assert milliseconds(T0) < found["e-2"] < milliseconds(AHEAD)

    run(work())


# Events that an agent cannot see.

_OF_AGENTS = [
    ("agent.spoke", {"text": "The miller owes me nine sacks of rye."}),
    ("agent.thought", {"text": "Rye was short yesterday."}),
    ("memory.retained", {"text": "Rye is sown in autumn.", "tier": "fast", "importance": 0.9}),
    ("memory.retained", {"text": "The oven needs an hour.", "tier": "glacial", "importance": 0.4, "type": "lesson"}),
    ("tool.used", {"tool": "weigh", "ok": True}),
    ("turn.ended", {}),
    ("agent.reflected", {"belief": "Bakers are honest."}),
]
_SHARED = [("world.observed", {"text": "The mill burned down on Monday."})]
_TIMES = st.floats(-1_000, 24 * 365 * 200, allow_nan=False).map(lambda hours: round(hours, 2))
_SEEN = st.tuples(
    st.just("a"), st.sampled_from([*_OF_AGENTS, *_SHARED]), st.floats(0, 200).map(lambda one: round(one, 1))
)
_PRIVATE = [each for each in _OF_AGENTS if not kinds.kind_of(each[0]).shared]
_HIDDEN = st.tuples(st.just("b"), st.sampled_from(_PRIVATE), _TIMES)
_QUESTIONS: Sequence[tuple[str, Mapping[str, Any]]] = [
    ("timeline", A),
    ("episodic", A),
    ("salient", A | {"query": "rye"}),
    ("recall", A | {"query": "What about rye yesterday?"}),
    ("recall", A | {"query": "rye", "preset": "four_channel"}),
    ("context", A | {"query": "rye", "budget_tokens": 600}),
    ("beliefs", A),
    ("tiers.stats", A),
    ("tiers.pressure", A),
    ("tiers.retrieve", A | {"query": "rye", "min_similarity": 0.0}),
    ("long_term.list", A),
    ("long_term.stats", A),
    ("long_term.lessons", A | {"query": "oven"}),
    ("long_term.audit", A),
    ("stream.recall", A | {"query": "rye"}),
    ("stream.insights", A),
    ("working.render", A),
    ("conversation.messages", A | {"session": "m"}),
    ("reflection", A),
]
_OPERATIONS = all_operations(Memory)


async def answers(events: Sequence[Event]) -> list[object]:
    """What agent a is answered, and what a reactor does to its entries; events are appended at T0 + 30 days."""
    ledger = MemoryLedger()
    await ledger.append(events, [milliseconds(T0 + 30 * DAY)] * len(events))
    ids = [each.id for each in events if each.kind == "memory.retained" and each.agent == "a"]
    asked = [*_QUESTIONS, *(("tiers.entry", A | {"entry_id": id_}) for id_ in ids)]
    async with of_ledger(ledger) as memory:
        found: list[object] = []
        for _ in range(2):
            for name, arguments in asked:
                operation = _OPERATIONS[name]
                answer = operation.to_json(await pipeline.call(memory, operation, arguments))
                found.append(without_places(json.loads(answer)))
            pending = (await memory.pending("s")).items
            found.append([each.model_dump(exclude={"events"}) for each in pending if each.agent == "a"])
            await memory.react()
        return found


def without_places(answer: Any) -> Any:
    """An answer without positions and generations: a plan of the other agent takes a place in the ledger."""
    if isinstance(answer, dict):
        return {
            name: without_places(value)
            for name, value in answer.items()
            if name not in ("position", "checkpoint", "generation", "at_event") and "position" not in name
        }
    return [without_places(each) for each in answer] if isinstance(answer, list | tuple) else answer


@settings(max_examples=30)
@given(st.lists(st.one_of(_SEEN, _HIDDEN), min_size=2, max_size=12), st.lists(_TIMES, min_size=12, max_size=12))
def test_events_that_an_agent_cannot_see_change_no_answer_whatever_their_time(
    history: Sequence[tuple[str, tuple[str, Mapping[str, Any]], float]], others: Sequence[float]
) -> None:
    numbers = count()
    events = [
        at(hours, agent, kind, payload, id=f"e-{next(numbers)}", session="m")
        for agent, (kind, payload), hours in history
    ]
    moved = [
        each if each.agent == "a" else each.model_copy(update={"at": T0 + hours * HOUR})
        for each, hours in zip(events, others, strict=False)
    ]
    assert run(answers(moved)) == run(answers(events))
