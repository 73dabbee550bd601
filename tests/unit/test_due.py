"""Due work: what each model makes due, and that users' projections make triggers due as those of the models do."""

import lzma
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from golden.record import RECORDED, TOPIC
from recallog.extending import Due, Record, Rows
from recallog_projections.models.facts.due import Turns
from recallog_projections.projection import Projection
from recallog_projections.views import builtin, due
from recallog_projections.views.due import DueProjection, Work
from recallog_projections.views.settings import SettingsProjection
from recallog_schemas import Event, models, triggers
from recallog_schemas.triggers import caused_by
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, run
from support.folding import dead_letter_offsets, folded, rows_of

pytestmark = pytest.mark.models("all")

SPACE, AGENT = "village", "baker"


def made_due(*events: Event, projections: Sequence[Projection] | None = None) -> list[Work]:
    """What is due after `events`, in the order of the rows."""
    ledger = MemoryLedger()
    run(ledger.append(events))
    projector, generation = folded(ledger, projections)
    assert dead_letter_offsets(projector.store, generation) == []
    rows = rows_of(projector.store, generation, due.NOW.name)
    return [due.NOW.decode(rows[key]) for key in sorted(rows)]


def set_to(**settings: Any) -> Event:
    return event("agent.configured", payload=settings)


def retained(id_: str, *sources: str, **payload: Any) -> Event:
    given = {"text": f"What {id_} says.", "sources": list(sources), **payload}
    return event("memory.retained", id=id_, payload=given)


def ended(id_: str = "end", **fields: Any) -> Event:
    return event("turn.ended", id=id_, **{"session": "x1", "payload": {}, **fields})


# What each model makes due.


def test_a_session_that_ends_makes_the_notes_of_its_agents_due_to_migrate() -> None:
    def note(agent: str, text: str, key: str = "k") -> Event:
        return event("item.put", agent=agent, payload={"namespace": ["working"], "key": key, "value": text})

    long = [note(AGENT, f"NOTE: {'flour ' * 8_000}{number}", f"k{number}") for number in range(3)]
    ending = event("session.ended", id="end", session="x1", audience=("miller",), payload={})
    found = made_due(*long, note("miller", "NOTE: rye"), note("smith", "NOTE: iron"), ending)
    assert [(work.agent, len(work.texts), work.entries) for work in found] == [
        (AGENT, 2, ()), (AGENT, 1, ()), ("miller", 1, ()),
    ]  # fmt: skip
    assert [work.trigger for work in found] == [
        caused_by("migration.due", SPACE, agent, part, "end").id
        for agent, part in ((AGENT, "0"), (AGENT, "1"), ("miller", "0"))
    ]


def test_an_erasure_makes_the_dependents_of_what_it_has_retracted_due_to_be_retracted() -> None:
    first = retained("a")
    derived = [retained(f"b{number}", "a") for number in range(2)]
    last = [retained(f"c{number}", f"b{number}") for number in range(2)]
    erased = event("memory.erased", payload={"entries": ["a"]})
    found = made_due(first, *derived, *last, erased)
    expected = {caused_by("retraction.due", SPACE, AGENT, f"b{number}").id: (f"c{number}",) for number in range(2)}
    assert {work.trigger: work.entries for work in found} == expected


def test_a_turn_that_ends_makes_the_facts_since_the_turn_before_due() -> None:
    first, second = made_due(set_to(extract_facts=True), ended("t1"), event(), ended("t2"))
    assert (first.kind, first.since, second.since) == ("extraction.due", -1, 1)
    assert [first.trigger, second.trigger] == [
        caused_by("extraction.due", SPACE, AGENT, id_).id for id_ in ("t1", "t2")
    ]


def test_a_turn_that_ends_after_enough_messages_makes_the_daily_log_due() -> None:
    document = {"namespace": ["workspace"], "key": "MEMORY.md", "value": "Flour is low."}
    talk = [event(session="x1", payload={"text": f"Answer {number}."}) for number in range(16)]
    first, second = made_due(
        set_to(daily={"enabled": True}),
        event("item.put", payload=document),
        *talk[:8],
        ended("t1"),
        *talk[8:],
        ended("t2"),
    )
    assert (first.kind, first.since, first.entries) == ("daily.due", -1, ("MEMORY.md",))
    assert (second.since, second.offset) == (10, 19)
    assert first.trigger == caused_by("daily.due", SPACE, AGENT, "t1").id


def test_a_message_that_makes_a_conversation_too_long_makes_it_due_to_be_compacted() -> None:
    talk = [
        event(
            id=f"m{number}", session="x1", payload={"text": "Yes.", "message": {"role": "assistant", "content": "Yes."}}
        )
        for number in range(22)
    ]
    (work,) = made_due(*talk)
    assert (work.kind, work.cause, work.session) == ("compaction.due", "m20", "x1")
    assert work.trigger == caused_by("compaction.due", SPACE, AGENT, "m20").id


def plan(*archived: str) -> Event:
    entries = [{"id": id_, "changes": 1, "reason": "expired"} for id_ in archived]
    payload = {"now": "2026-03-01T12:00:00Z", "ordinal": 0, "archived": entries}
    return event("memory.consolidated", id="plan", payload=payload)


def test_a_plan_makes_what_it_has_archived_due_to_be_summarised() -> None:
    entries = [retained(f"e{number:03d}", tier="slow") for number in range(101)]
    ids = [each.id for each in entries]
    found = made_due(*entries, plan(*ids))
    assert [id_ for work in found for id_ in work.entries] == ids
    assert [work.trigger for work in found] == [
        caused_by("summary.due", SPACE, AGENT, str(part), "plan").id for part in range(len(found))
    ]
    assert len(found) > 1


def test_an_erasure_makes_a_summary_due_again_of_what_is_left_of_its_sources() -> None:
    entries = [retained(f"e{number}", tier="slow") for number in range(3)]
    summary = retained("sum", *(each.id for each in entries), type="summary")
    trigger = caused_by("summary.due", SPACE, AGENT, "0", "plan")
    done = event(
        "reaction.done", id=trigger.answer_id, causation_id=trigger.id, payload={"trigger": trigger.id, "events": 1}
    )
    erased = event("memory.erased", payload={"entries": ["e1"]})
    (work,) = made_due(*entries, plan("e0", "e1", "e2"), summary, done, erased)
    assert (work.trigger, work.entries) == (caused_by("summary.due", SPACE, AGENT, "sum").id, ("e0", "e2"))


# One class keeps what is due.


class Twin:
    """A user's projection that makes due what `Turns` does."""

    name: ClassVar[str] = "twin"
    version: ClassVar[int] = 1
    kinds: ClassVar[frozenset[str]] = Turns.kinds
    tables = ()

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """Keeps no rows."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        yield Due("extraction.due", record.event.agent, cause=record.event.id)


def test_a_projection_of_a_user_and_a_built_in_one_give_equal_triggers() -> None:
    story = [set_to(extract_facts=True), ended(), ended("another", agent="miller", session=None)]
    own = made_due(*story, projections=[Twin(), DueProjection([Twin()]), SettingsProjection()])
    assert made_due(*story, projections=builtin.projections()) == own[:1]
    assert [type(each) for each in builtin.projections()].count(DueProjection) == 1
    assert [type(each) for each in builtin.with_settings(Twin())].count(DueProjection) == 1


class Greetings(Twin):
    """Greets the agent that speaks once, until it is answered, and everyone whom it addresses by a part each."""

    name: ClassVar[str] = "greetings"
    kinds: ClassVar[frozenset[str]] = frozenset({"agent.spoke"})

    def __init__(self) -> None:
        self.asked: list[str] = []

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        self.asked.append(record.event.kind)
        yield Due("greeting.due", record.event.agent, cause=record.event.agent, since=record.offset)
        for name in record.event.audience or ():
            yield Due("greeting.due", record.event.agent, part=name)


def test_a_cause_makes_one_trigger_due_until_it_is_closed() -> None:
    trigger = caused_by("greeting.due", SPACE, AGENT, AGENT)
    done = event(
        "reaction.done", id=trigger.answer_id, causation_id=trigger.id, payload={"trigger": trigger.id, "events": 0}
    )
    own = builtin.with_settings(Greetings())
    assert [(work.trigger, work.since) for work in made_due(event(), event(), projections=own)] == [(trigger.id, 0)]
    assert made_due(event(), event(), done, projections=own) == []


def test_parts_of_one_event_are_in_the_order_in_which_they_are_named() -> None:
    greeted = tuple(f"agent-{number}" for number in range(12))
    found = made_due(event(id="e", audience=greeted), projections=builtin.with_settings(Greetings()))
    expected = {caused_by("greeting.due", SPACE, AGENT, name, "e").id: number for number, name in enumerate(greeted)}
    assert [expected[work.trigger] for work in found if work.trigger in expected] == list(range(12))


def test_an_event_of_another_kind_asks_no_projection_what_is_due() -> None:
    greetings = Greetings()
    projections = builtin.with_settings(greetings)
    made_due(event("world.observed"), event(), ended(), projections=projections)
    assert set(greetings.asked) == {"agent.spoke"}
    (keeps,) = [each for each in projections if isinstance(each, DueProjection)]
    assert keeps.kinds == {"agent.spoke"} | triggers.CLOSINGS


def test_only_built_in_projections_are_trusted_to_write_valid_rows() -> None:
    class Derived(Turns):
        pass

    ours = builtin.projections()
    assert builtin.all_builtin(ours)
    assert not builtin.all_builtin([*ours, Twin()])
    assert not builtin.all_builtin([*ours, Derived()])
    assert not builtin.all_builtin(builtin.with_settings(Twin()))


# Without a model.

BUILT_ON: Mapping[str, Sequence[str]] = {
    "beliefs": ["stream"],
    "items": ["conversations", "long_term", "facts", "workspace", "tiers"],
    "conversations": ["workspace"],
    "long_term": ["facts", "tiers"],
}
"""By model: those that read its rows."""


@pytest.fixture(scope="module")
def partition() -> MemoryLedger:
    """A recorded ledger with events of every kind."""
    ledger = MemoryLedger(unique_ids=False)
    for line in lzma.decompress((RECORDED / "0.1.0" / TOPIC).read_bytes()).split(b"\n"):
        ledger.append_bytes(b64decode(line))
    return ledger


@pytest.fixture(params=models.BUILT_IN)
def without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    gone = {request.param, *BUILT_ON.get(request.param, ())}
    monkeypatch.setattr(models, "BUILT_IN", tuple(name for name in models.BUILT_IN if name not in gone))
    models.import_parts.cache_clear()
    yield request.param
    models.import_parts.cache_clear()


def test_the_list_without_a_model_folds_every_event(partition: MemoryLedger, without: str) -> None:
    projections = builtin.projections()
    assert not any(f".models.{without}." in type(each).__module__ for each in projections)
    projector, generation = folded(partition, projections)
    everything = folded(partition, [SettingsProjection()])
    assert dead_letter_offsets(projector.store, generation) == dead_letter_offsets(everything[0].store, everything[1])
