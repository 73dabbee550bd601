"""Several answers to one trigger: one of them counts as a whole, in any order of writers and events, and wherever a
process ends."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.composition import assemble
from recallog.extending import Due, DueTrigger, Reactor
from recallog.reacting import LoopMemory
from recallog.reactors.answering import Answers, answer_of
from recallog_projections.rows import Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.tables import Table
from recallog_schemas import Position, Record, codec, triggers
from recallog_schemas.models.facts.triggers import EXTRACTION
from recallog_schemas.models.long_term.triggers import MIGRATION, RETRACTION
from recallog_schemas.models.tiers.triggers import SUMMARY
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, run

pytestmark = pytest.mark.models("conversations", "facts", "tiers")

SPACE, AGENT = "village", "baker"
SHOP = "shop.due"
KINDS = (SHOP, EXTRACTION, MIGRATION, SUMMARY, RETRACTION)


class Seen(msgspec.Struct, frozen=True):
    """What a projection was given of answers."""

    texts: tuple[str, ...] = ()
    closings: int = 0


SEEN = Table("shop.seen", Seen)


class Shop:
    """A projection of a user's: each order is due, and it notes what it is given of answers."""

    name: ClassVar[str] = "shop"
    version: ClassVar[int] = 1
    tables: ClassVar = (SEEN,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            said, seen = record.event, rows.get(SEEN, record.event.space) or Seen()
            if said.causation_id is None or triggers.parse(said.causation_id) is None:
                continue
            if said.kind in triggers.CLOSINGS:
                rows.put(SEEN, Seen(seen.texts, seen.closings + 1), said.space)
            else:
                rows.put(SEEN, Seen((*seen.texts, said.text), seen.closings), said.space)

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        if record.event.kind == "order.placed":
            yield Due(SHOP, record.event.agent)


def causes_of(kind: str) -> list[Event]:
    """Events that make one trigger of a kind due."""
    if kind == SHOP:
        return [event("order.placed", payload={"text": "Bread."})]
    if kind == EXTRACTION:
        return [event("agent.configured", payload={"extract_facts": True}), event("turn.ended", payload={})]
    if kind == MIGRATION:
        note = {"namespace": ["session", "x1"], "key": "k", "value": "NOTE: flour is low"}
        return [event("item.put", payload=note), event("session.ended", session="x1", payload={})]
    if kind == RETRACTION:
        made = [
            event("memory.retained", id=f"e-{n}", payload={"text": f"{n}.", "sources": [f"e-{n - 1}"] if n else []})
            for n in range(3)
        ]
        return [*made, event("memory.erased", payload={"entries": ["e-0"]})]
    old = [event("memory.retained", id=f"e-{n}", payload={"text": f"{n}.", "tier": "glacial"}) for n in range(3)]
    archived = [{"id": each.id, "reason": "tier_limit", "changes": 1} for each in old]
    plan = {"now": old[0].at.isoformat(), "ordinal": 0, "part": 1, "parts": 1, "moves": []}
    return [*old, event("memory.consolidated", payload={**plan, "archived": archived, "constants": {}})]


class Giving(Reactor):
    """Gives an answer of some thoughts."""

    def __init__(self, kind: str, name: str, count: int, *, pure: bool = False) -> None:
        self.kinds = frozenset({kind})  # type: ignore[misc]
        self.pure = pure  # type: ignore[misc]
        self.texts = [f"{name}{number} of {count}" for number in range(count)]

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        return self.events()

    def events(self) -> list[Event]:
        return [event("agent.thought", payload={"text": text}) for text in self.texts]


def opened(ledger: MemoryLedger, *reactors: Reactor) -> Memory:
    return Memory(assemble(ledger, lambda namespace: MemoryStore(), own=[Shop()]), reactors=list(reactors))


async def due_in(ledger: MemoryLedger, kind: str) -> DueTrigger:
    memory = opened(ledger)
    (trigger,) = [each for each in await memory._own_reactor().due() if each.kind == kind]
    await memory.close()
    return trigger


async def finished(ledger: MemoryLedger, reactor: Reactor) -> Seen:
    """What counts once everything that is due was answered: also after a rebuild, and with all delivered twice."""
    memory = opened(ledger, reactor)
    for _ in range(6):
        await memory.react()
    assert not [each for each in await memory.pending() if each.kind in reactor.kinds]
    seen = await memory.row(SEEN, SPACE)
    assert seen is not None
    assert seen.closings == 1
    thoughts = [each.text for each in (await memory.timeline(SPACE, AGENT, kinds=["agent.thought"])).items]
    assert sorted(thoughts) == sorted(seen.texts)
    await memory.admin.rebuild()
    assert await memory.row(SEEN, SPACE) == seen
    assert (await memory.admin.verify()).ok
    await memory.close()
    twice = MemoryLedger(unique_ids=False)
    for data in ledger.values():
        twice.append_bytes(data)
        twice.append_bytes(data)
    again = opened(twice)
    assert await again.row(SEEN, SPACE) == seen
    await again.close()
    return seen


ANSWERS = st.tuples(st.sampled_from("xxy"), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    pure=st.booleans(),
    unique_ids=st.booleans(),
    second=ANSWERS,
    count=st.integers(0, 3),
    order=st.lists(st.booleans(), min_size=8, max_size=8),
    killed=st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
@example(
    kind=SHOP, pure=False, unique_ids=False, second=("y", 3), count=2, order=[True, False] * 4, killed=(4, 4)
)  # x1 y1 x2 y2 ...
@example(kind=SHOP, pure=False, unique_ids=True, second=("y", 3), count=2, order=[True] * 8, killed=(4, 4))
def test_of_two_answers_in_any_order_the_first_one_counts_as_a_whole(
    kind: str,
    pure: bool,
    unique_ids: bool,
    second: tuple[str, int],
    count: int,
    order: list[bool],
    killed: tuple[int, int],
) -> None:
    async def work() -> None:
        ledger = MemoryLedger(unique_ids=unique_ids)
        await ledger.append(causes_of(kind))
        trigger = await due_in(ledger, kind)
        parsed = triggers.parse(trigger.id)
        assert parsed is not None
        reactors = [Giving(kind, "x", count, pure=pure), Giving(kind, *second, pure=pure)]
        answers = [answer_of(trigger, parsed, each, each.events()) for each in reactors]
        left = [answer[:kill] for answer, kill in zip(answers, killed, strict=True)]
        written: list[tuple[int, Event]] = []
        for of_first in order:
            number = 0 if of_first else 1
            if left[number]:
                written.append((number, left[number].pop(0)))
                await ledger.append([written[-1][1]])
        for number, rest in enumerate(left):
            for each in rest:
                written.append((number, each))
                await ledger.append([each])
        last = Giving(kind, "z", 2, pure=pure) if not (pure and written) else reactors[written[0][0]]
        seen = await finished(ledger, last)
        if not written:
            assert list(seen.texts) == last.texts
            return
        first = written[0][0]
        same = reactors[0].texts == reactors[1].texts
        parts = {each.id: each.text for number, each in written if same or number == first}
        done = [each.text for each in (answers[first])][:-1]
        whole = pure or any(each.kind in triggers.CLOSINGS for number, each in written if same or number == first)
        expected = done if whole else [text for text in parts.values() if text]
        assert list(seen.texts) == expected

    run(work())


class Killed(BaseException):
    """A process ends."""


class ByTurns(MemoryLedger):
    """Writes one event at a time, and lets others write in between, as Kafka does; a process may end in between."""

    def __init__(self, *, unique_ids: bool, pauses: Sequence[int]) -> None:
        super().__init__(unique_ids=unique_ids)
        self.pauses = list(pauses)
        self.lives: dict[asyncio.Task[Any] | None, int] = {}

    async def append(self, events: Sequence[Event], appended: Sequence[int] | None = None) -> list[Position]:
        positions: list[Position] = []
        task = asyncio.current_task()
        for each in events:
            for _ in range(self.pauses.pop() if self.pauses else 0):
                await asyncio.sleep(0)
            if self.lives.setdefault(task, 100) == 0:
                raise Killed
            self.lives[task] -= 1
            positions += await super().append([each])
        return positions


@settings(max_examples=50, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    pure=st.booleans(),
    unique_ids=st.booleans(),
    counts=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    pauses=st.lists(st.integers(0, 4), max_size=10),
    lives=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_two_processes_that_answer_at_once_give_one_answer(
    kind: str, pure: bool, unique_ids: bool, counts: tuple[int, int], pauses: list[int], lives: tuple[int, int]
) -> None:
    async def work() -> None:
        ledger = ByTurns(unique_ids=unique_ids, pauses=pauses)
        await MemoryLedger.append(ledger, [])
        for each in causes_of(kind):
            await MemoryLedger.append(ledger, [each])
        trigger = await due_in(ledger, kind)
        reactors = [Giving(kind, name, count, pure=pure) for name, count in zip("xy", counts, strict=True)]
        memories = [opened(ledger), opened(ledger)]

        async def process(number: int) -> None:
            ledger.lives[asyncio.current_task()] = lives[number]
            memory = memories[number]
            answers = Answers(LoopMemory(memory, memory._access), ledger, [reactors[number]])
            try:
                await answers.answer(trigger)
            except Killed:
                return

        await asyncio.gather(process(0), process(1))
        for memory in memories:
            await memory.close()
        last = Giving(kind, "z", 2)
        seen = await finished(ledger, last)
        whole = [each.texts for each in (*reactors, last)]
        begun = [each.texts[:life] for each, life in zip(reactors, lives, strict=True) if life <= len(each.texts)]
        assert list(seen.texts) in [*whole, *begun]

    run(work())


@pytest.mark.parametrize("unique_ids", [True, False])
def test_a_second_answer_after_the_first_adds_nothing(unique_ids: bool) -> None:
    async def work() -> None:
        ledger = MemoryLedger(unique_ids=unique_ids)
        await ledger.append(causes_of(MIGRATION))
        trigger = await due_in(ledger, MIGRATION)
        parsed = triggers.parse(trigger.id)
        assert parsed is not None
        texts = (["LESSON: one"], ["LESSON: one", "LESSON: two"])
        for each in texts:
            parts = [event("memory.retained", payload={"text": text}) for text in each]
            await ledger.append(answer_of(trigger, parsed, Giving(MIGRATION, "x", 0), parts))
        memory = opened(ledger)
        assert [each.text for each in (await memory.long_term.list(SPACE, AGENT)).entries] == ["LESSON: one"]
        assert not await memory.pending()
        await memory.close()

    run(work())


@pytest.mark.parametrize("unique_ids", [True, False])
def test_a_closing_event_that_names_no_answer_closes_the_trigger_for_any(unique_ids: bool) -> None:
    async def work() -> None:
        ledger = MemoryLedger(unique_ids=unique_ids)
        await ledger.append(causes_of(SHOP))
        trigger = await due_in(ledger, SHOP)
        parsed = triggers.parse(trigger.id)
        assert parsed is not None
        answer = answer_of(trigger, parsed, reactor := Giving(SHOP, "x", 3), reactor.events())
        await ledger.append(answer[:2])
        failed = {"trigger": trigger.id, "reason": "the operator has closed it"}
        await ledger.append([event("reaction.failed", payload=failed, causation_id=trigger.id)])
        await ledger.append(answer[2:])
        seen = await finished(ledger, reactor)
        assert list(seen.texts) == reactor.texts[:2]

    run(work())


def test_equal_answers_have_the_same_ids_and_others_have_none_of_them() -> None:
    async def work() -> None:
        ledger = MemoryLedger()
        await ledger.append(causes_of(SHOP))
        trigger = await due_in(ledger, SHOP)
        parsed = triggers.parse(trigger.id)
        assert parsed is not None

        def ids(name: str, count: int) -> set[str]:
            reactor = Giving(SHOP, name, count)
            return {each.id for each in answer_of(trigger, parsed, reactor, reactor.events())[:-1]}

        assert ids("x", 3) == ids("x", 3)
        assert len(ids("x", 3)) == 3
        assert not ids("x", 3) & ids("y", 3)
        assert not ids("x", 3) & ids("x", 2)
        longest = triggers.caused_by(f"{'k' * 32}.due", SPACE, AGENT, "e-1")
        part = event(id=longest.part_id("0123456789", 9_999_999), causation_id=longest.id)
        assert triggers.part_of(codec.decode(codec.encode(part))) == (longest, "0123456789")

    run(work())
