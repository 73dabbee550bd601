"""The codec: round trips of events, and equal results of the fast decoder and full validation."""

import copy
import inspect
import json
import pickle
import string
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from recallog_schemas import Event, canonical, codec, kinds, limits, repeats
from recallog_schemas.errors import EventTooLarge, FutureSchema, InvalidArgument, InvalidEvent
from support import campaigns
from support.events import MOMENT, event

WIRE = {
    "envelope": 1, "id": "e-1", "space": "village", "agent": "baker", "kind": "agent.spoke", "at": MOMENT,
    "payload": {"text": "Bread!"},
}  # fmt: skip


def wire(**fields: Any) -> bytes:
    return json.dumps(WIRE | fields).encode()


def without(*names: str, **fields: Any) -> bytes:
    return json.dumps({name: value for name, value in (WIRE | fields).items() if name not in names}).encode()


def refusal(data: bytes) -> InvalidEvent:
    with pytest.raises(InvalidEvent) as raised:
        codec.decode(data)
    return raised.value


# Any valid event.

texts = st.text(st.characters(codec="utf-8"), max_size=30)
identifiers = st.text(st.characters(codec="utf-8"), min_size=1, max_size=128)
_LETTERS = string.ascii_letters + string.digits
names = st.tuples(st.sampled_from(_LETTERS), st.text(_LETTERS + "._@/-", max_size=127)).map("".join)
unknown_kinds = st.from_regex(r"\A[a-z][a-z0-9_]{0,8}(\.[a-z][a-z0-9_]{0,8}){1,3}\Z").filter(
    lambda kind: kind not in kinds.CATALOGUE
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=4)
optional_identifiers = st.none() | identifiers


@st.composite
def contents(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A kind with a valid payload."""
    payload = draw(objects)
    if draw(st.booleans()):
        return draw(unknown_kinds), payload
    kind = draw(st.sampled_from(["agent.spoke", "judge.verdict", "tool.used", "agent.reflected", "clock.ticked"]))
    fields = {"text": texts, "tool": texts, "belief": texts, "based_on": st.lists(identifiers, max_size=3)}
    known = {"winner": st.none(), "ok": st.booleans()}
    payload |= {name: draw(values) for name, values in (fields | known).items()}
    return kind, payload


@st.composite
def events(draw: st.DrawFn) -> Event:
    kind, payload = draw(contents())
    return Event(
        id=draw(identifiers),
        space=draw(names),
        agent=draw(names),
        kind=kind,
        payload=payload,
        session=draw(optional_identifiers),
        turn=draw(st.integers(0, limits.TURN_MAX)),
        at=draw(st.datetimes(timezones=st.just(UTC))),
        subject=draw(optional_identifiers),
        audience=draw(st.none() | st.lists(names, max_size=4).map(tuple)),
        causation_id=draw(optional_identifiers),
        correlation_id=draw(optional_identifiers),
    )


@given(events())
def test_an_event_is_decoded_as_it_was_encoded(original: Event) -> None:
    data = codec.encode(original)
    assert codec.decode(data) == original
    assert codec.encode(codec.decode(data)) == data


@given(events())
def test_a_complete_event_is_parsed_like_a_record_of_the_ledger(original: Event) -> None:
    assert codec.parse(codec.encode(original)) == original


# The fast decoder and full validation.


def the_slow_way(data: bytes) -> Event | None:
    """The result of `Event`'s own validation, with the rules of the wire: a time in UTC, no defaults, nothing of
    the future."""
    try:
        found = Event.model_validate_json(data)
    except ValidationError:
        return None
    try:
        found.at.astimezone(UTC)
    except OverflowError:
        return None
    known = kinds.CATALOGUE.get(found.kind)
    if not found.model_fields_set >= {"id", "at", "envelope"} or (known and found.schema_version > 1):
        return None
    return found


def the_codec_s(data: bytes) -> Event | None:
    try:
        return codec.decode(data)
    except InvalidEvent:
        return None


FRAGMENTS = [
    "null", "true", "false", "0", "-0", "1", "-1", "1.0", "1e0", "1e999", "-1e999", "1E400", "0.1", "NaN", "Infinity",
    "-Infinity", "nan", "2", "9007199254740991", "9007199254740992", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "9" * 400, "9" * 5000, "01", "1.", ".5", "+1", '""', '"x"', '"a b"', '"a.b"', '"A.b"',
    '"agent.thought"', '"agent.configured"', '"session.ended"', '"image.generated"', '"123"', '"2026-03-01"',
    '"2026-03-01T12:00:00"', '"2026-03-01T12:00:00+01:00"', '"2026-03-01 12:00:00Z"', '"2026-03-01t12:00:00z"',
    '"2026-03-01T12:00Z"', '"2026-03-01T12:00:00.123456789Z"', '"2026-13-01T12:00:00Z"', '"0000-01-01T00:00:00Z"',
    '"0001-01-01T00:00:00+23:59"', '"9999-12-31T23:59:59-23:59"', '"2026-03-01T24:00:00Z"', '"2026-02-29T12:00:00Z"',
    '"2026-03-01T12:00:60Z"', '" 2026-03-01T12:00:00Z"', '"2026-03-01T12:00:00Z "', '"2026-03-01T12:00:00 Z"',
    '"\u0662\u0660\u0662\u0666-03-01T12:00:00Z"', '"2026-03-01T12:00:00-00:00"', '"-2026-03-01T12:00:00Z"',
    "[]", "[1]", '["a"]', '["a", "a"]', '["a b"]', "[null]", '[["a"]]', "{}", '{"text": "x"}', '{"text": 7}',
    '{"text": "x", "text": 7}', '{"text": 7, "text": "x"}', '{"a": NaN}', '{"a": {"b": [1e999]}}',
    '{"a": 9223372036854775808}', '{"window": 3}', '{"window": 0}', '{"reward": 1}', '{"reward": "1"}',
    '{"text": "\\ud800"}', '{"text": "\\ud83d\\ude00"}', '{"\\udfff": 1}', '"\\ud800"', '{"text": "\\u0000"}',
    '{"text": "\t"}', '{"text": "\\x"}', "[" * 63 + "]" * 63, "[" * 64 + "]" * 64, "[" * 300 + "]" * 300,
    '{"a":' + "[" * 64 + "]" * 64 + "}", '{"a":' + "[" * 65 + "]" * 65 + "}", '{"a":' * 300 + "1" + "}" * 300,
    '"' + "x" * 128 + '"', '"' + "x" * 129 + '"', "", "x", "'x'", "/* */ 1", "1,", "{", "}", "[", '"',
]  # fmt: skip

FIELDS = [*Event.model_fields, "run_id", "actor", "created_at", "session_id", "foo", "", "ID", "self", "__dict__"]


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """The wire form of an event with a few changes, most of which make it invalid."""
    base = json.loads(codec.encode(draw(events()))) if draw(st.booleans()) else dict(WIRE)
    parts = [(name, json.dumps(value, ensure_ascii=draw(st.booleans()))) for name, value in base.items()]
    for _ in range(draw(st.integers(0, 2))):
        index = draw(st.integers(0, len(parts)))
        match draw(st.sampled_from(["set", "set", "set", "add", "repeat", "drop"])):
            case "set" if index < len(parts):
                parts[index] = (parts[index][0], draw(st.sampled_from(FRAGMENTS)))
            case "add":
                parts.insert(index, (draw(st.sampled_from(FIELDS)), draw(st.sampled_from(FRAGMENTS))))
            case "repeat" if parts:
                parts.insert(index, (draw(st.sampled_from(parts))[0], draw(st.sampled_from(FRAGMENTS))))
            case "drop" if index < len(parts):
                del parts[index]
    data = ("{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in parts) + "}").encode()
    if draw(st.integers(0, 3)) == 0:
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 3)))
        data = data[:start] + draw(st.binary(max_size=3)) + data[end:]
    return data


@settings(max_examples=campaigns.examples(1200))
@given(broken())
@example(b"")
@example(b"{}")
def test_the_fast_decoder_accepts_exactly_what_full_validation_accepts(data: bytes) -> None:
    expected = the_slow_way(data) if len(data) <= limits.EVENT_BYTES_MAX else None
    found = the_codec_s(data)
    assert found == expected
    assert found is None or expected is None or codec.encode(found) == codec.encode(expected)


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_decoder_and_full_validation_agree_on_every_fragment_in_every_field(name: str) -> None:
    kinds_of_payload = ["agent.spoke", "agent.configured", "session.ended", "image.generated"]
    for kind in kinds_of_payload if name in ("payload", "schema_version", "kind") else kinds_of_payload[:1]:
        for fragment in FRAGMENTS:
            rest = {field: value for field, value in (WIRE | {"kind": kind}).items() if field != name}
            inside = json.dumps(rest)[1:-1]
            data = ("{" + f"{json.dumps(name)}: {fragment}, {inside}" + "}").encode()
            assert the_codec_s(data) == the_slow_way(data), data


# The canonical form.


def test_the_canonical_form_has_the_fields_of_an_event_in_their_order() -> None:
    assert list(canonical.Fields.__struct_fields__) == list(Event.model_fields)


@given(events())
def test_what_the_codec_writes_is_canonical(original: Event) -> None:
    data = codec.encode(original)
    assert canonical.read(data) is not None
    assert canonical.write(original) == data


@st.composite
def nearly_canonical(draw: st.DrawFn) -> bytes:
    """The canonical form of an event with a value, a key or a few bytes changed: some results are canonical again."""
    fields = json.loads(codec.encode(draw(events())))
    parts = [(name, json.dumps(value, ensure_ascii=False, separators=(",", ":"))) for name, value in fields.items()]
    for _ in range(draw(st.integers(0, 2))):
        index = draw(st.integers(0, len(parts) - 1))
        match draw(st.sampled_from(["value", "value", "value", "name", "repeat", "move"])):
            case "value":
                parts[index] = (parts[index][0], draw(st.sampled_from(FRAGMENTS)))
            case "name":
                parts[index] = (draw(st.sampled_from(FIELDS)), parts[index][1])
            case "repeat":
                parts.insert(index, parts[draw(st.integers(0, len(parts) - 1))])
            case "move":
                parts.append(parts.pop(index))
    data = ("{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in parts) + "}").encode("utf-8", "replace")
    if draw(st.booleans()):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 3)))
        data = data[:start] + draw(st.binary(max_size=2) | st.sampled_from([b" ", b"\\u0041", b"0", b"-"])) + data[end:]
    return data


@settings(max_examples=campaigns.examples(1500))
@given(nearly_canonical())
def test_bytes_near_the_canonical_form_are_judged_as_full_validation_judges_them(data: bytes) -> None:
    expected = the_slow_way(data)
    found = the_codec_s(data)
    assert found == expected
    assert found is None or expected is None or codec.encode(found) == codec.encode(expected)


@pytest.mark.parametrize("name", list(Event.model_fields))
def test_every_fragment_in_a_canonical_event_is_judged_as_full_validation_judges_it(name: str) -> None:
    fields = json.loads(canonical.write(event(session="s", subject="p", audience=("a",), causation_id="c")) or b"")
    parts = {field: json.dumps(value) for field, value in fields.items()}
    for fragment in FRAGMENTS:
        data = (
            "{" + ",".join(f'"{field}":{value}' for field, value in (parts | {name: fragment}).items()) + "}"
        ).encode()
        assert the_codec_s(data) == the_slow_way(data), data


@pytest.mark.parametrize(
    "data",
    [
        wire(),  # white space
        codec.encode(event())[:-1] + b',"foo":1}',
        codec.encode(event()).replace(b'{"text"', b'{"text":"x","text"'),
        codec.encode(event()).replace(b'"turn":', b'"turn":0,"turn":'),
        codec.encode(event()).replace(b'"kind"', b'"session":null,"kind"'),
        codec.encode(event()).replace(b'"kind"', b'"\\u006bind"'),
        codec.encode(event(payload={"text": "A"})).replace(b"A", b"\\u0041"),
        codec.encode(event(kind="image.made", payload={"n": 10.0})).replace(b"10.0", b"1e1"),
        codec.encode(event(at=MOMENT)).replace(b"Z", b"+00:00"),
        codec.encode(event(at=MOMENT)).replace(b"Z", b""),
        codec.encode(event(at=MOMENT)).replace(b"Z", b"+01:00"),
    ],
)  # fmt: skip
def test_another_spelling_is_not_canonical(data: bytes) -> None:
    assert canonical.read(data) is None


odd_numbers = st.sampled_from([float("nan"), float("inf"), 2**63, 2**64, -(2**63) - 1, 10**400, -0.0, 1e300, True])
odd_texts = st.sampled_from(["\ud800", "\x00", "", "a\n", "ä", "x" * 129, "a.b", "A B"])


class _Text(str):
    pass


class _Number(float):
    pass


odd_values = (
    odd_numbers | odd_texts | st.sampled_from([(1, 2), [(1,)], {1: 2}, {"a": {2: 3}}, _Text("x"), _Number(2.5), None])
)
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
odd_times = st.sampled_from(
    [MOMENT, 7, None, _NOON.replace(tzinfo=None), _NOON.astimezone(timezone(timedelta(hours=1)))]
)


@st.composite
def changed_events(draw: st.DrawFn) -> Event:
    """An event that was changed past its validation."""
    fields = dict(draw(events()).__dict__)
    name = draw(st.sampled_from(list(fields)))
    match name:
        case "at":
            fields["at"] = draw(odd_times)
        case "payload":
            fields["payload"] = fields["payload"] | {draw(texts): draw(odd_values)}
        case "audience":
            fields["audience"] = draw(st.sampled_from([["a"], ("a b",), (_Text("a"),), "a", ("a",) * 65, {"a"}]))
        case _:
            fields[name] = draw(odd_values)
    if draw(st.integers(0, 9)) == 0:
        del fields[draw(st.sampled_from(list(fields)))]
    return Event.model_construct(None, **fields)


def written(encode: Callable[[Event], bytes | None], original: Event) -> bytes | None:
    try:
        return encode(original)
    except InvalidEvent:
        return None


@settings(max_examples=campaigns.examples(1000))
@given(changed_events())
def test_an_event_that_was_changed_is_written_as_full_validation_writes_it_or_not_at_all(original: Event) -> None:
    assert canonical.write(original) in (None, written(codec._encode_slowly, original))


def test_a_field_that_was_added_to_an_event_is_refused() -> None:
    changed = event()
    changed.__dict__["foo"] = 1
    with pytest.raises(InvalidEvent, match="foo"):
        codec.encode(changed)


@given(events())
def test_a_decoded_event_is_like_one_that_pydantic_has_made(original: Event) -> None:
    data = codec.encode(original)
    found, expected = codec.decode(data), Event.model_validate_json(data)
    assert type(found) is Event
    assert found == expected
    assert (found.model_fields_set, found.model_extra) == (expected.model_fields_set, expected.model_extra)
    assert found.model_dump() == expected.model_dump()
    assert found.model_dump_json(exclude_unset=True) == expected.model_dump_json(exclude_unset=True)
    assert list(found) == list(expected)
    assert copy.deepcopy(found) == pickle.loads(pickle.dumps(found)) == expected
    assert Event.model_validate(found) is found


def test_a_changed_copy_of_a_decoded_event_changes_no_other_event() -> None:
    first, second = (codec.decode(codec.encode(event())) for _ in range(2))
    changed = first.model_copy(update={"session": "s"})
    assert (changed.session, changed.model_fields_set - second.model_fields_set) == ("s", {"session"})
    assert first.session is second.session is None


def test_a_decoded_event_is_frozen() -> None:
    with pytest.raises(ValidationError):
        codec.decode(codec.encode(event())).turn = 7  # type: ignore[misc]


def test_names_are_checked_also_after_a_name_was_found_valid() -> None:
    assert codec.decode(codec.encode(event(agent="baker"))).agent == "baker"
    assert refusal(codec.encode(event(agent="baker")).replace(b'"baker"', b'"baker "')).path == "agent"


def test_a_name_stays_valid_when_many_others_were_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "_KNOWN_MAX", 3)
    for number in range(10):
        assert canonical.read(codec.encode(event(agent=f"a-{number}"))) is not None


# Requirements of the wire.


@pytest.mark.parametrize("name", ["id", "at"])
def test_a_record_of_the_ledger_gets_no_defaults(name: str) -> None:
    error = refusal(without(name))
    assert (error.path, error.rule) == (name, "missing")


@pytest.mark.parametrize("names", [["id"], ["at"], ["envelope"], ["id", "at", "envelope"]])
def test_producers_may_omit_id_time_and_envelope(names: list[str]) -> None:
    assert codec.parse(without(*names)).payload == WIRE["payload"]


def test_an_optional_field_that_is_unset_is_not_written() -> None:
    assert set(json.loads(codec.encode(event()))) == {
        "envelope", "id", "space", "agent", "kind", "turn", "at", "schema_version", "payload",
    }  # fmt: skip


# Golden bytes: envelope 1.


def test_the_bytes_of_an_event_never_change() -> None:
    original = Event(
        id="e-1", space="village", session="day-1", agent="baker", kind="agent.spoke", turn=3, at=MOMENT,
        payload={"text": "Brot für 3 €"}, subject="miller", audience=["miller"], causation_id="c", correlation_id="k",
    )  # fmt: skip
    assert (
        codec.encode(original)
        == (
            '{"envelope":1,"id":"e-1","space":"village","session":"day-1","agent":"baker","kind":"agent.spoke","turn":3,'
            '"at":"2026-03-01T12:00:00Z","schema_version":1,"payload":{"text":"Brot für 3 €"},"subject":"miller",'
            '"audience":["miller"],"causation_id":"c","correlation_id":"k"}'
        ).encode()
    )


# Golden bytes: envelope 0, that of the ledger-view memory document.

OLD = (
    b'{"id":"evt-1","run_id":"run-7","turn":3,"kind":"agent.spoke","actor":"baker","payload":{"text":"Bread!"},'
    b'"created_at":"2025-11-02T08:30:00+00:00","schema_version":1,"session_id":"chat.1_a-B","model_profile":"fast",'
    b'"model_id":"m-1"}'
)


def old(**fields: Any) -> bytes:
    return json.dumps(json.loads(OLD) | fields).encode()


def test_an_event_of_envelope_0_is_read_as_a_current_event() -> None:
    assert codec.decode(OLD) == Event(
        id="evt-1",
        space="run-7",
        turn=3,
        kind="agent.spoke",
        agent="baker",
        payload={"text": "Bread!", "model_id": "m-1", "model_profile": "fast"},
        at=datetime(2025, 11, 2, 8, 30, tzinfo=UTC),
        session="chat.1_a-B",
    )


def test_an_event_of_envelope_0_is_written_in_the_current_envelope() -> None:
    assert codec.encode(codec.decode(OLD)) == (
        b'{"envelope":1,"id":"evt-1","space":"run-7","session":"chat.1_a-B","agent":"baker","kind":"agent.spoke",'
        b'"turn":3,"at":"2025-11-02T08:30:00Z","schema_version":1,'
        b'"payload":{"model_id":"m-1","model_profile":"fast","text":"Bread!"}}'
    )


@pytest.mark.parametrize("session", ["a", "A.b_c-9", "x" * 64])
def test_an_old_session_id_of_the_documented_form_is_kept(session: str) -> None:
    assert codec.decode(old(session_id=session)).session == session


@pytest.mark.parametrize("session", ["", "a b", "x" * 65, "ä", "a/b", "a\n", None, 7, ["a"], {}])
def test_any_other_old_session_id_becomes_none(session: object) -> None:
    assert codec.decode(old(session_id=session)).session is None


def test_an_old_model_that_is_null_is_dropped() -> None:
    assert codec.decode(old(model_id=None, model_profile=None)).payload == {"text": "Bread!"}


def test_an_old_payload_s_own_model_id_wins() -> None:
    payload = {"text": "Bread!", "model_id": "its own"}
    assert codec.decode(old(payload=payload)).payload["model_id"] == "its own"


@pytest.mark.parametrize("name", ["space", "agent", "at", "session", "audience", "foo"])
def test_an_unknown_field_of_an_old_event_is_refused(name: str) -> None:
    error = refusal(old(**{name: "x"}))
    assert (error.path, error.rule) == (name, "extra_forbidden")


@pytest.mark.parametrize(
    ("fields", "path"),
    [({"turn": -1}, "turn"), ({"created_at": "2025-11-02T08:30:00"}, "at"), ({"run_id": "a "}, "space"),
     ({"actor": ""}, "agent"), ({"payload": {}}, "payload.text"), ({"payload": None}, "payload"), ({"id": None}, "id")],
)  # fmt: skip
def test_an_old_event_is_validated_by_the_current_rules(fields: dict[str, Any], path: str) -> None:
    assert refusal(old(**fields)).path == path


def test_a_producer_s_event_without_envelope_is_a_current_event() -> None:
    assert codec.parse(without("envelope")).space == "village"


# A future schema is checked first.


@pytest.mark.parametrize("damage", [{}, {"turn": -1}, {"foo": 1}, {"kind": "nodot"}, {"payload": 7}, {"at": 1}])
def test_a_future_envelope_is_unsupported_and_not_invalid(damage: dict[str, Any]) -> None:
    for data in (wire(envelope=3, **damage), wire(envelope=10**30, **damage)):
        error = refusal(data)
        assert type(error) is FutureSchema
        assert error.path == "envelope"


@pytest.mark.parametrize("damage", [{}, {"turn": -1}, {"foo": 1}, {"payload": {}}, {"payload": 7}, {"at": 1}])
def test_a_future_schema_version_of_a_known_kind_is_unsupported_and_not_invalid(damage: dict[str, Any]) -> None:
    error = refusal(wire(schema_version=2, **damage))
    assert type(error) is FutureSchema
    assert error.path == "schema_version"


def test_a_future_schema_version_is_detected_in_an_old_event() -> None:
    assert type(refusal(old(schema_version=2))) is FutureSchema


def test_an_unknown_kind_may_have_any_schema_version() -> None:
    assert codec.decode(wire(kind="image.generated", schema_version=7)).schema_version == 7


def test_events_of_producers_with_a_future_version_are_refused() -> None:
    with pytest.raises(FutureSchema):
        codec.parse(wire(envelope=3))


@pytest.mark.parametrize("envelope", [0, -1, True, 1.0, "1", None, [1]])
def test_an_envelope_that_is_no_version_is_invalid(envelope: object) -> None:
    error = refusal(wire(envelope=envelope))
    assert type(error) is InvalidEvent
    assert error.path == "envelope"


# Bytes that are not JSON.


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"nonsense", b"null", b"[]", b"7", b'"text"', b"\xff\xfe", b"\x00",
        wire().decode().encode("utf-16"), wire().decode().encode("utf-16-le"), wire().decode().encode("utf-32"),
        b"\xef\xbb\xbf" + wire(), wire() + wire(), wire() + b"x",
        wire().replace(b"Bread", b"\xff"), wire().replace(b"Bread", b"\xc0\xaf"),
        wire().replace(b"Bread", b"\xed\xa0\x80"),
        wire().replace(b"Bread", b"\\ud800"), wire().replace(b"Bread", b"\\uDFFF\\uD800"),
        wire().replace(b'"Bread!"', b"NaN"), wire().replace(b'"Bread!"', b"-Infinity"),
        wire().replace(b'"Bread!"', b"9" * 5000), wire().replace(b'"Bread!"', b"[" * 100_000),
        wire().replace(b'"Bread!"', b"[" * 100_000 + b"]" * 100_000),
    ],
)  # fmt: skip
def test_bytes_that_are_no_utf_8_json_are_unparsable(data: bytes) -> None:
    assert refusal(data).rule == "unparsable"


def test_a_whole_surrogate_pair_is_text() -> None:
    assert codec.decode(wire().replace(b"Bread!", b"\\ud83c\\udf5e")).text == "🍞"


def test_white_space_around_an_event_is_ignored() -> None:
    assert codec.decode(b" \r\n\t" + wire() + b"\n") == codec.decode(wire())


def test_the_last_of_two_values_of_a_field_wins() -> None:
    assert codec.decode(b'{"turn": 1, ' + wire(turn=2)[1:]).turn == 2


def test_too_many_bytes_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(EventTooLarge):
        codec.decode(b"x" * (limits.EVENT_BYTES_MAX + 1))


def test_a_text_that_utf_8_cannot_encode_is_refused() -> None:
    with pytest.raises(InvalidEvent):
        codec.parse('{"space": "\ud800"}')


# Names in queries.


@pytest.mark.parametrize("name", ["", " a", "-", "a\n", "a" * 257])
def test_a_query_with_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a name") as raised:
        codec.checked_name(name, "agent")
    assert (raised.value.path, raised.value.rule) == ("agent", "string_pattern_mismatch")


# Deep JSON, and readers deep in the call stack.

STACKS = [100, 300, 700, 950]  # of 1,000; the first hundred are pytest's


def verdict(work: Callable[[bytes], object], data: bytes, *, stack: int) -> object:
    """The result of `work` on `data` below `stack` callers: its value, or the field and rule of the error."""

    def from_below(callers: int) -> object:
        if callers > 0:
            return from_below(callers - 1)
        try:
            return work(data)
        except InvalidEvent as error:
            return error.path, error.rule, str(error)

    return from_below(stack - len(inspect.stack(0)))


@pytest.mark.parametrize("levels", [60, 150, 199, 250, 500, 940, 1100, 100_000])
@pytest.mark.parametrize("name", ["session", "payload", "audience", "at", "envelope", "foo", "text"])
def test_deep_json_is_judged_independently_of_the_stack_depth(name: str, levels: int) -> None:
    deep = b"[" * levels + b"]" * levels
    data = wire(**{name: "@"} if name != "text" else {"payload": {"text": "@"}}).replace(b'"@"', deep)
    for work in (codec.decode, codec.parse):
        assert len({verdict(work, data, stack=stack) for stack in STACKS}) == 1


def test_an_event_is_accepted_at_any_stack_depth() -> None:
    nested = json.loads('{"a":' * limits.PAYLOAD_DEPTH_MAX + "1" + "}" * limits.PAYLOAD_DEPTH_MAX)
    original = event(payload={"text": "x", "nested": nested})
    for work in (codec.decode, codec.parse):
        assert [verdict(work, codec.encode(original), stack=stack) for stack in STACKS] == [original] * len(STACKS)


def test_an_event_with_a_deep_old_session_id_has_one_content_at_any_stack_depth() -> None:
    # The upcast drops it, so the event is accepted; sorting its keys once overflowed the stack.
    data = OLD.replace(b'"chat.1_a-B"', b"[" * 199 + b"]" * 199)
    assert codec.decode(data).session is None
    assert (
        len({verdict(lambda data: repeats.content_of(codec.decode(data)), data, stack=stack) for stack in STACKS}) == 1
    )


def test_a_too_deep_event_is_refused_at_any_stack_depth() -> None:
    # The limit depends on the interpreter: Python 3.13 allows such depths. No version accepts such an event.
    data = b"[" * 5000 + b"]" * 5000
    assert len({verdict(codec.decode, data, stack=stack) for stack in STACKS}) == 1


def test_a_time_outside_the_range_of_utc_is_refused() -> None:
    # One such record once stopped the projector.
    assert refusal(wire(at="0001-01-01T00:00:00+23:59")).path == "at"
    assert refusal(wire(at="9999-12-31T23:59:59-23:59")).path == "at"


def test_the_decoder_of_other_spellings_calls_no_validator_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pydantic once used `Event`'s own validator in the schema meant to avoid it; only the run time showed it."""
    called: list[str] = []
    monkeypatch.setattr("recallog_schemas.event.check_payload", lambda *_: called.append("payload"))
    assert codec.decode(wire()).kind == "agent.spoke"
    assert called == []
