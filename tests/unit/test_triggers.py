"""The ids of triggers and of their answers: who answers what, and which ids are not triggers."""

from typing import Any

import pytest

from recallog_schemas import Event, repeats, triggers
from recallog_schemas.models.beliefs.triggers import reflection_of
from recallog_schemas.models.long_term import triggers as long_term
from support.events import event

pytestmark = pytest.mark.models("beliefs", "long_term")

REFLECTION = reflection_of("village", "baker", 2)
MIGRATION = triggers.caused_by(long_term.MIGRATION, "village", "baker", "0", "e-1")
PART = MIGRATION.part_id("0123456789", 12)


def answer(trigger: triggers.Trigger, kind: str, id_: str, **fields: Any) -> Event:
    payloads: dict[str, dict[str, Any]] = {
        "agent.reflected": {"belief": "b"},
        "reflection.failed": {"trigger": trigger.id, "reason": "r"},
        "reaction.done": {"trigger": trigger.id, "events": 1},
        "reaction.failed": {"trigger": trigger.id, "reason": "r"},
        "memory.retained": {"text": "t"},
    }
    return event(kind, id=id_, payload=payloads[kind], **{"causation_id": trigger.id, **fields})


@pytest.mark.parametrize("trigger", [REFLECTION, MIGRATION])
def test_a_trigger_is_read_from_its_id(trigger: triggers.Trigger) -> None:
    assert triggers.parse(trigger.id) == trigger


def test_a_reflection_has_the_number_of_earlier_answers() -> None:
    assert REFLECTION.id.endswith("/2")
    assert REFLECTION.ordinal == 2


def test_triggers_differ_by_kind_space_agent_and_cause() -> None:
    different = {
        MIGRATION.id,
        triggers.caused_by(long_term.RETRACTION, "village", "baker", "0", "e-1").id,
        triggers.caused_by(long_term.MIGRATION, "town", "baker", "0", "e-1").id,
        triggers.caused_by(long_term.MIGRATION, "village", "miller", "0", "e-1").id,
        triggers.caused_by(long_term.MIGRATION, "village", "baker", "1", "e-1").id,
        triggers.caused_by(long_term.MIGRATION, "village", "baker", "0", "e-2").id,
    }
    assert len(different) == 6


@pytest.mark.parametrize(
    "id_",
    [
        None,
        "",
        "e-1",
        "reflection.due/0/0",
        f"reflection.due/{REFLECTION.owner}/{MIGRATION.cause}",
        f"migration.due/{MIGRATION.owner}/2",
        f"migration.due/{MIGRATION.owner}/{MIGRATION.cause.upper()}",
        f"{MIGRATION.id}/answer",
        f" {MIGRATION.id}",
        f"{MIGRATION.id}\n",
    ],
)
def test_other_ids_are_none(id_: str | None) -> None:
    assert triggers.parse(id_) is None


@pytest.mark.parametrize(
    ("trigger", "kind"),
    [
        (REFLECTION, "agent.reflected"), (REFLECTION, "reflection.failed"),
        (MIGRATION, "reaction.done"), (MIGRATION, "reaction.failed"),
    ],
)  # fmt: skip
def test_a_closing_event_with_the_answer_s_id_answers_its_trigger(trigger: triggers.Trigger, kind: str) -> None:
    closing = answer(trigger, kind, trigger.answer_id)
    assert triggers.answered_by(closing) == triggers.named_by(closing) == trigger
    elsewhere = answer(trigger, kind, "another id")
    assert (triggers.answered_by(elsewhere), triggers.named_by(elsewhere)) == (None, trigger)


@pytest.mark.parametrize(
    ("trigger", "kind"),
    [(REFLECTION, "reaction.done"), (MIGRATION, "agent.reflected"), (MIGRATION, "memory.retained")],
)
def test_other_kinds_close_nothing(trigger: triggers.Trigger, kind: str) -> None:
    closing = answer(trigger, kind, trigger.answer_id)
    assert (triggers.answered_by(closing), triggers.named_by(closing)) == (None, None)


def test_any_kind_of_event_is_one_of_several_answers_by_its_id() -> None:
    assert triggers.answered_by(answer(MIGRATION, "memory.retained", PART)) == MIGRATION
    assert triggers.part_of(answer(MIGRATION, "memory.retained", PART)) == (MIGRATION, "0123456789")
    others = (f"{MIGRATION.answer_id}/{rest}" for rest in ("1", "0123456789", "012345678/1", "0123456789/0", "x"))
    for id_ in (*others, "e-1"):
        assert triggers.answered_by(answer(MIGRATION, "memory.retained", id_)) is None


@pytest.mark.parametrize("fields", [{"agent": "miller"}, {"space": "town"}, {"causation_id": None}])
def test_an_event_of_another_agent_space_or_cause_answers_nothing(fields: dict[str, Any]) -> None:
    for id_ in (MIGRATION.answer_id, MIGRATION.closing_id(2), PART):
        assert triggers.answered_by(answer(MIGRATION, "reaction.done", id_, **fields)) is None


def test_of_two_different_answers_with_one_id_the_second_is_a_repeat() -> None:
    first = answer(MIGRATION, "reaction.done", MIGRATION.closing_id(1))
    second = first.model_copy(update={"payload": {**first.payload, "events": 7}})
    assert repeats.first_difference(first, second) == ""
    foreign = second.model_copy(update={"causation_id": None})
    assert repeats.first_difference(first, foreign) != ""
