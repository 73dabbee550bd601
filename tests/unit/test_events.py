"""The rules of the envelope by example. Each refusal names the field."""

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import EventTooLarge, InvalidEvent, OutOfRange
from support.events import event

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def refusal(**fields: Any) -> InvalidEvent:
    """The error of a valid event changed by `fields`."""
    valid = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}
    with pytest.raises(InvalidEvent) as raised:
        codec.make(valid | fields)
    return raised.value


# Names and kinds.


@pytest.mark.parametrize("kind", ["clue.found", "image.generated", "a.b", "a_1.b_2.c", "memory.accessed"])
def test_a_dotted_lower_case_kind_is_accepted_whether_known_or_not(kind: str) -> None:
    assert event(kind).kind == kind


@pytest.mark.parametrize(
    "kind",
    [
        "nodot", "Bad.Kind", "bad kind", "trailing.", ".leading", "two..dots", "", "1.a", "a.1", "_a.b", "a-b.c",
        "a.b\n", "ä.b", "a." + "b" * 128,
    ],
)  # fmt: skip
def test_any_other_kind_is_refused_and_the_error_names_it(kind: str) -> None:
    error = refusal(kind=kind)
    assert error.path == "kind"
    assert len(kind) > 128 or "is not a kind" in str(error)


@pytest.mark.parametrize("field", ["space", "agent"])
@pytest.mark.parametrize(
    "name", ["a", "Village", "a" * 256, "tenant/village", "mia@example.org", "0", "a.b_c-d", "a b", "ä"]
)
def test_a_name_is_what_people_have(field: str, name: str) -> None:
    assert getattr(event(**{field: name}), field) == name


@pytest.mark.parametrize("field", ["space", "agent"])
@pytest.mark.parametrize("name", ["", "a" * 257, " a", "a\n", "*", "..", None, 7])
def test_any_other_name_is_refused_and_the_error_names_the_field(field: str, name: object) -> None:
    assert refusal(**{field: name}).path == field


@pytest.mark.parametrize("field", ["id", "session", "subject", "causation_id", "correlation_id"])
def test_an_identifier_is_any_text_of_1_to_128_characters(field: str) -> None:
    assert getattr(event(**{field: "ü" * 128}), field) == "ü" * 128
    assert refusal(**{field: ""}).path == field
    assert refusal(**{field: "x" * 129}).path == field
    assert refusal(**{field: 7}).path == field


def test_an_audience_is_up_to_64_names_and_the_error_names_the_bad_one() -> None:
    assert len(event(audience=[f"agent-{n}" for n in range(64)]).audience or ()) == 64
    assert refusal(audience=[f"agent-{n}" for n in range(65)]).path == "audience"
    assert refusal(audience=["baker", "the miller "]).path == "audience.1"
    assert refusal(audience="baker").path == "audience"


# Numbers and times.


def test_a_turn_is_a_whole_number_from_0_to_2_53_minus_1() -> None:
    assert event(turn=0).turn == 0
    assert event(turn=2**53 - 1).turn == 2**53 - 1


@pytest.mark.parametrize("turn", [-1, 2**53, True, 1.0, "1", None])
def test_any_other_turn_is_refused(turn: object) -> None:
    assert refusal(turn=turn).path == "turn"


def test_a_time_is_stored_in_utc() -> None:
    at = datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))
    assert event(at=at).at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert event(at=at).at.tzinfo is UTC


@pytest.mark.parametrize(
    "at",
    [NOON.replace(tzinfo=None), "2026-03-01T12:00:00", "2026-03-01", 123, 1.5, "123", "1772366400", "", "noon", True],
)
def test_a_time_without_zone_or_as_a_number_is_refused(at: object) -> None:
    assert refusal(at=at).path == "at"


# The envelope.


@pytest.mark.parametrize("field", ["foo", "run_id", "actor", "created_at", "text", "Agent"])
def test_an_unknown_field_is_refused_with_the_advice_to_use_the_payload(field: str) -> None:
    error = refusal(**{field: "x"})
    assert error.path == field
    assert "payload" in str(error)


@pytest.mark.parametrize("field", ["space", "agent", "kind"])
def test_space_agent_and_kind_have_no_default(field: str) -> None:
    valid = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}
    del valid[field]
    with pytest.raises(InvalidEvent) as raised:
        codec.make(valid)
    assert raised.value.path == field


def test_defaults_are_filled_when_an_event_is_made() -> None:
    before = datetime.now(UTC)
    made = Event(space="village", agent="baker", kind="clock.ticked")
    assert made.schema_version == 1
    assert made.envelope == 1
    assert made.turn == 0
    assert made.payload == {}
    assert made.audience is made.session is made.subject is None
    assert before <= made.at <= datetime.now(UTC)


def test_ids_are_new_each_time_and_sort_by_time() -> None:
    ids = [event().id for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert ids == sorted(ids)


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        event().turn = 3  # type: ignore[misc]


# The payload.


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("payload", "path"),
    [
        (lambda x: {"score": x}, "payload.score"),
        (lambda x: {"a": {"b": [1, x]}}, "payload.a.b.1"),
        (lambda x: {"a": [[[x]]]}, "payload.a.0.0.0"),
    ],
    ids=["top", "in a list", "deep"],
)
def test_nan_and_infinity_are_refused_anywhere_with_their_path(number: float, payload: Any, path: str) -> None:
    error = refusal(kind="image.generated", payload=payload(number))
    assert error.path == path
    assert str(error).startswith(f"{path}: ")
    assert error.rule == "finite_number"


def test_nan_is_refused_in_a_known_kind_s_number_too() -> None:
    assert refusal(kind="session.ended", payload={"reward": math.nan}).path == "payload.reward"


def test_an_integer_beyond_64_bits_is_refused() -> None:
    assert event("image.generated", payload={"seed": 2**63 - 1}).payload == {"seed": 2**63 - 1}
    assert event("image.generated", payload={"seed": -(2**63)}).payload == {"seed": -(2**63)}
    assert refusal(kind="image.generated", payload={"seed": 2**63}).path == "payload.seed"
    assert refusal(kind="image.generated", payload={"seed": -(2**63) - 1}).path == "payload.seed"


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_payload_is_nested_64_levels_at_most() -> None:
    assert event("image.generated", payload={"a": nested(limits.PAYLOAD_DEPTH_MAX)})
    error = refusal(kind="image.generated", payload={"a": nested(limits.PAYLOAD_DEPTH_MAX + 1)})
    assert error.path.startswith("payload.a.0.0")
    assert error.rule == "depth"


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), 1j, datetime(2026, 3, 1, tzinfo=UTC)])
def test_values_that_are_no_json_are_refused(value: object) -> None:
    assert refusal(kind="image.generated", payload={"a": value}).path == "payload.a"


def test_a_key_that_is_no_string_is_refused() -> None:
    assert refusal(kind="image.generated", payload={"a": {1: "x"}}).path == "payload.a"


def test_an_event_of_256_kib_is_written_and_one_byte_more_is_refused() -> None:
    room = limits.EVENT_BYTES_MAX - len(codec.encode(event(id="x", payload={"text": ""})))
    assert len(codec.encode(event(id="x", payload={"text": "b" * room}))) == 256 * 1024
    with pytest.raises(EventTooLarge, match="262,145 bytes"):
        codec.encode(event(id="x", payload={"text": "b" * (room + 1)}))


def test_the_limit_counts_bytes_and_not_characters() -> None:
    with pytest.raises(EventTooLarge):
        codec.encode(event(payload={"text": "ü" * (limits.EVENT_BYTES_MAX // 2)}))


def test_half_of_a_surrogate_pair_is_refused() -> None:
    assert refusal(payload={"text": "\ud800"}).rule == "unicode"
    assert refusal(kind="image.generated", payload={"\udfff": 1}).rule == "unicode"
    assert refusal(id="\ud800").path == "id"


# Positions.


@pytest.mark.parametrize(
    ("text", "expected"), [("0:41", Position(0, 41)), ("41", Position(0, 41)), ("3:0", Position(3, 0))]
)
def test_a_position_is_read_as_it_is_written(text: str, expected: Position) -> None:
    assert Position.parse(text) == expected
    assert Position.parse(str(expected)) == expected


@pytest.mark.parametrize("text", ["", "x", "0:", ":", "-1", "0:-1", "1:2:3", "0.5", "0x1", "0: 1", "²"])
def test_an_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(OutOfRange):
        Position.parse(text)
