"""Repeats and conflicts: what the content of an event is, and the first field that differs."""

import inspect
import json
from typing import Any

import pytest

from recallog_schemas import Event, codec, limits, triggers
from recallog_schemas.repeats import content_of, first_difference
from support.events import MOMENT, event

LATER = "2026-03-02T08:00:00Z"
FIRST: dict[str, Any] = {"id": "e-1", "at": MOMENT, "turn": 3, "session": "s", "audience": ["miller"]}
PAYLOAD: dict[str, Any] = {"tool": "scales", "result": {"sacks": [9, 10], "by": None}, "note": "wet"}


def sent(**changed: Any) -> Event:
    return event("scales.read", **{"payload": PAYLOAD} | FIRST | changed)


def test_an_event_at_another_time_has_the_same_content() -> None:
    assert content_of(sent()) == content_of(sent(at=LATER))
    assert first_difference(sent(), sent(at=LATER)) == ""


@pytest.mark.models("long_term")
def test_what_a_writer_measured_about_an_entry_is_no_content() -> None:
    def retained(kind: str = "memory.retained", **payload: Any) -> Event:
        return event(kind, **FIRST | {"payload": {"text": "Rye.", **payload}})

    nearest = {"id": "e-0", "version": 1, "similarity": 0.5, "model": "toy"}
    assert first_difference(retained(), retained(nearest=nearest)) == ""
    assert content_of(retained(nearest=nearest | {"similarity": 0.4})) == content_of(retained(nearest=nearest))
    assert first_difference(retained(nearest=nearest), retained(topic="rye")) == "payload.topic"
    assert first_difference(retained("star.seen"), retained("star.seen", nearest=nearest)) == "payload.nearest"


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"agent": "smith"}, "agent"),
        ({"turn": 4}, "turn"),
        ({"session": None}, "session"),
        ({"audience": None}, "audience"),
        ({"audience": ["miller", "smith"]}, "audience.1"),
        ({"audience": ["judge"]}, "audience.0"),
        ({"causation_id": "e-0"}, "causation_id"),
        ({"turn": 4, "payload": {}}, "turn"),
        ({"payload": PAYLOAD | {"note": "dry"}}, "payload.note"),
        ({"payload": PAYLOAD | {"at": LATER}}, "payload.at"),
        ({"payload": {"tool": "scales", "note": "wet"}}, "payload.result"),
        ({"payload": PAYLOAD | {"result": [9, 10]}}, "payload.result"),
        ({"payload": PAYLOAD | {"result": {"sacks": [9, 10]}}}, "payload.result.by"),
        ({"payload": PAYLOAD | {"result": {"sacks": [9, 11], "by": None}}}, "payload.result.sacks.1"),
        ({"payload": PAYLOAD | {"result": {"sacks": [9], "by": None}}}, "payload.result.sacks.1"),
        ({"payload": PAYLOAD | {"result": {"sacks": [9, 10.0], "by": None}}}, "payload.result.sacks.1"),
        ({"payload": PAYLOAD | {"result": {"sacks": [9, 10], "by": False}}}, "payload.result.by"),
    ],
)
def test_the_first_field_that_differs_is_named_from_both_sides(changed: dict[str, Any], path: str) -> None:
    assert content_of(sent()) != content_of(sent(**changed))
    assert first_difference(sent(), sent(**changed)) == path
    assert first_difference(sent(**changed), sent()) == path


@pytest.mark.parametrize(
    "write",
    [
        lambda fields: json.dumps(fields, indent=2),
        lambda fields: json.dumps(dict(reversed(fields.items()))),
        lambda fields: json.dumps(fields | {"turn": 0, "schema_version": 1, "subject": None}),
        lambda fields: json.dumps(fields | {"at": LATER}),
    ],
    ids=["white space", "other order", "defaults written out", "another time"],
)
def test_the_way_an_event_is_written_is_no_content(write: Any) -> None:
    data = codec.encode(sent(turn=0))
    fields = {name: value for name, value in json.loads(data).items() if name not in ("turn", "schema_version")}
    other = codec.decode(write(fields).encode())
    assert content_of(other) == content_of(codec.decode(data))


def test_an_old_envelope_has_the_content_of_the_event_that_it_becomes() -> None:
    old = {"id": "e-1", "run_id": "village", "actor": "baker", "kind": "agent.spoke", "created_at": MOMENT}
    old |= {"turn": 0, "payload": {"text": "Bread!"}, "schema_version": 1, "session_id": "not a session!"}
    assert content_of(codec.decode(json.dumps(old).encode())) == content_of(event(id="e-1", at=LATER))


@pytest.mark.models("beliefs")
def test_answers_to_one_trigger_are_repeats_whatever_they_contain() -> None:
    trigger = triggers.make_numbered("reflection.due", "village", "baker", 0)
    named = {"id": trigger.answer_id, "causation_id": trigger.id}
    believed = event("agent.reflected", payload={"belief": "It rains."}, **named)
    other = event("agent.reflected", payload={"belief": "It snows."}, **named)
    assert content_of(believed) == content_of(other)
    assert first_difference(believed, other) == ""


def test_the_deepest_event_can_be_compared_at_any_stack_depth() -> None:
    def deepest(value: int) -> Event:
        nested = json.loads('{"a":' * limits.PAYLOAD_DEPTH_MAX + str(value) + "}" * limits.PAYLOAD_DEPTH_MAX)
        return sent(payload={"nested": nested})

    first, second = deepest(1), deepest(2)

    def below(callers: int) -> str:
        return below(callers - 1) if callers > 0 else first_difference(first, second)

    expected = ".".join(["payload", "nested", *"a" * limits.PAYLOAD_DEPTH_MAX])
    assert {below(depth - len(inspect.stack(0))) for depth in (100, 300, 700, 950)} == {expected}
