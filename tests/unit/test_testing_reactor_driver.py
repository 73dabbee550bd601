"""`recallog_testing.ReactorDriver`: testing a custom reactor, with crashes and repeats."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog.extending import Due, DueTrigger, Reactor, Record, Rows
from recallog_schemas import Event, Position
from recallog_schemas.errors import ModelFailed, ProjectionError
from recallog_testing import ReactorDriver
from support.events import event


class Orders:
    name: ClassVar[str] = "orders"
    version: ClassVar[int] = 1
    kinds: ClassVar[frozenset[str]] = frozenset({"agent.spoke"})
    tables = ()

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """Keeps no rows."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        yield Due("order.due", record.event.agent, texts=tuple(("what", word) for word in record.event.text.split()))


class Baking(Reactor):
    """One thought for each thing that was ordered."""

    kinds: ClassVar[frozenset[str]] = frozenset({"order.due"})

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        return [self.thought(trigger, f"Bake {what}.") for _, what in trigger.texts]

    def thought(self, trigger: DueTrigger, text: str, **fields: Any) -> Event:
        return event("agent.thought", space=trigger.space, agent=trigger.agent, payload={"text": text}, **fields)


class PureBaking(Baking):
    pure: ClassVar[bool] = True


def ordered(*things: str, **fields: Any) -> Event:
    return event(payload={"text": " ".join(things)}, **fields)


@pytest.mark.parametrize("unique_ids", [True, False])
@pytest.mark.parametrize("reactor", [Baking(), PureBaking()])
def test_triggers_are_shown_answered_and_interrupted(reactor: Baking, unique_ids: bool) -> None:
    driver = ReactorDriver(reactor, projections=[Orders()], unique_ids=unique_ids)
    assert driver.given(ordered("bread", "cake", session="x1")) == [Position(0, 0)]
    (trigger,) = driver.triggers()
    assert (trigger.kind, trigger.agent, trigger.session) == ("order.due", "baker", "x1")
    assert trigger.texts == (("what", "bread"), ("what", "cake"))
    assert [due.trigger for due in driver.pending()] == [trigger.id]
    assert [each.text for each in driver.answer(crash_after=1)] == ["Bake bread."]
    assert driver.triggers() == [trigger]
    rest = driver.answer()
    expected = ["agent.thought", "reaction.done"] if reactor.pure else ["reaction.done"]
    assert [each.kind for each in rest] == expected
    assert not driver.pending()
    assert driver.answer() == []
    driver.given(ordered("rolls"))
    assert [each.text or each.kind for each in driver.answer()] == ["Bake rolls.", "reaction.done"]
    driver.given(ordered("pie", "tart"), ordered("buns", agent="miller"))
    driver.check()
    assert not driver.pending()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["baker", "miller"]), st.integers(0, 3)), max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_each_trigger_is_closed_once_with_its_whole_answer_wherever_a_process_ends(
    orders: list[tuple[str, int]], pure: bool, unique_ids: bool
) -> None:
    driver = ReactorDriver(PureBaking() if pure else Baking(), projections=[Orders()], unique_ids=unique_ids)
    driver.given(*(ordered(*["bread"] * count, agent=agent) for agent, count in orders))
    assert len(driver.triggers()) == len(orders)
    driver.check()
    events = driver.events()
    closings = [each for each in events if each.kind == "reaction.done"]
    assert len(closings) == len({each.causation_id for each in closings}) == len(orders)
    written = Counter(each.causation_id for each in events if each.kind == "agent.thought")
    assert {each.causation_id: each.payload["events"] for each in closings} == {
        each.causation_id: written[each.causation_id] for each in closings
    }
    if pure:
        assert sorted(written.values()) == sorted(count for _, count in orders if count)


@pytest.mark.models("long_term")
def test_a_reactor_of_a_built_in_kind_needs_no_projection() -> None:
    class Dropping(Baking):
        kinds: ClassVar[frozenset[str]] = frozenset({"migration.due"})

        async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
            return []

    driver = ReactorDriver(Dropping())
    note = {"namespace": ["session", "x1"], "key": "k", "value": "NOTE: flour is low"}
    driver.given(event("item.put", payload=note), event("session.ended", session="x1", payload={}))
    assert [trigger.texts for trigger in driver.triggers()] == [(("k", "NOTE: flour is low"),)]
    assert [each.kind for each in driver.answer()] == ["reaction.done"]


def test_a_failure_closes_the_trigger() -> None:
    class Failing(Baking):
        async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
            raise ModelFailed("no oven", retryable=False)

    driver = ReactorDriver(Failing(), projections=[Orders()])
    driver.given(ordered("bread"))
    (closing,) = driver.answer()
    assert (closing.kind, closing.payload["reason"]) == ("reaction.failed", "no oven")


def test_check_finds_a_pure_reactor_that_is_not() -> None:
    class Counting(PureBaking):
        numbers: ClassVar[Any] = itertools.count()

        async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
            return [self.thought(trigger, f"Number {next(self.numbers)}.") for _ in trigger.texts]

    driver = ReactorDriver(Counting(), projections=[Orders()])
    driver.given(ordered("bread", "cake"))
    with pytest.raises(ProjectionError, match="the answers differ, but the reactor is pure"):
        driver.check()


def test_check_finds_answers_without_end() -> None:
    class Endless(Baking):
        async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
            return [ordered("more")]

    driver = ReactorDriver(Endless(), projections=[Orders()])
    driver.given(ordered("bread"))
    with pytest.raises(ProjectionError, match="the answers still make something due"):
        driver.check()
