"""The JSONL format: an export is read as equal events; omitted fields are filled in reproducibly."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import EventTooLarge, FutureSchema, InvalidEvent
from recallog_service.formats import DEFAULT_START, Item, jsonl

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def line(**fields: Any) -> bytes:
    original = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}
    return json.dumps(original | fields).encode() + b"\n"


def whole(**fields: Any) -> bytes:
    return line(**{"envelope": 1, "id": "e-1", "at": "2026-03-01T12:00:00Z"} | fields)


def old(**fields: Any) -> bytes:
    original = {"run_id": "village", "actor": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}
    return json.dumps(original | fields).encode() + b"\n"


def read(*lines: bytes, start: datetime = START) -> list[Item]:
    return list(jsonl.read(lines, start))


def events(*lines: bytes, start: datetime = START) -> list[Event]:
    return [event_of(item) for item in read(*lines, start=start)]


def event_of(item: Item) -> Event:
    assert item.event is not None, item.error
    return item.event


def error_of(item: Item) -> InvalidEvent:
    assert item.error is not None, item.event
    assert item.event is None
    return item.error


texts = st.text(st.characters(codec="utf-8"), max_size=40)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(
        st.builds(
            Event,
            space=st.just("village"),
            agent=st.sampled_from(["baker", "miller"]),
            kind=st.just("shop.opened"),
            session=st.none() | st.just("day-1"),
            turn=st.integers(0, 2**53 - 1),
            at=st.datetimes(timezones=st.just(UTC)),
            payload=st.dictionaries(texts, json_values, max_size=3),
            audience=st.none() | st.just(("miller",)),
        ),
        max_size=5,
    )
)
def test_an_export_is_read_as_equal_events(original: list[Event]) -> None:
    assert events(*(codec.encode(event) + b"\n" for event in original)) == original


def test_a_long_exported_event_is_read_as_an_equal_event() -> None:
    original = Event(space="village", agent="baker", kind="agent.spoke", payload={"text": "ä" * 100_000})
    assert events(codec.encode(original)) == [original]


def test_a_line_is_numbered_as_an_editor_does_and_blank_lines_count() -> None:
    items = read(b"\n", whole(id="a"), b"   \r\n", whole(id="b"), b"")
    assert [(item.number, event_of(item).id) for item in items] == [(2, "a"), (4, "b")]


def test_an_empty_file_has_no_events() -> None:
    assert read() == []
    assert read(b"\n", b"\n") == []


def test_a_last_line_without_a_line_feed_counts() -> None:
    assert events(whole().rstrip(b"\n"))[0].id == "e-1"


def test_a_byte_order_mark_is_no_part_of_the_first_event() -> None:
    assert events(b"\xef\xbb\xbf" + whole())[0].id == "e-1"


def test_an_event_without_id_gets_the_same_one_in_every_run() -> None:
    lines = [line(), line(session="s"), line(), line(space="town")]
    first, second = events(*lines), events(*lines)
    assert first == second
    assert len({event.id for event in first}) == 4


def test_a_derived_id_depends_on_nothing_but_space_session_and_ordinal() -> None:
    alone = events(line(session="s"), line(session="s"))
    mixed = events(line(), line(session="s"), whole(session="s"), line(space="town"), line(session="s"))
    assert [mixed[1].id, mixed[4].id] == [event.id for event in alone]


def test_derived_ids_never_change() -> None:
    assert [event.id for event in events(line(), line(session="s"))] == [
        "6039ce3e-1fad-54e3-80f8-fda1371eac32",
        "765c10ac-0bc1-5bd6-b5c4-27f27b0afbf6",
    ]


def test_missing_times_count_up_from_the_start_by_a_second_each() -> None:
    at = [event.at for event in events(line(), whole(), line(), line(space="town"))]
    assert at == [START, START, START + timedelta(seconds=1), START + timedelta(seconds=2)]


def test_without_a_start_missing_times_count_up_from_a_fixed_day() -> None:
    assert [event_of(item).at for item in jsonl.read([line()])] == [DEFAULT_START]
    assert datetime(2000, 1, 1, tzinfo=UTC) == DEFAULT_START


def test_a_given_id_or_time_is_not_replaced() -> None:
    only_id, only_at = events(line(id="mine"), line(at="2020-01-01T00:00:00Z"))
    assert (only_id.id, only_id.at) == ("mine", START)
    assert only_at.at == datetime(2020, 1, 1, tzinfo=UTC)


def test_envelope_0_is_read_with_and_without_id_and_time() -> None:
    given_both, given_none = events(old(id="o-1", created_at="2020-01-01T00:00:00Z"), old(session_id="day-1"))
    assert (given_both.space, given_both.agent, given_both.id) == ("village", "baker", "o-1")
    assert (given_none.session, given_none.at) == ("day-1", START)
    assert given_none.id == events(line(session="day-1"))[0].id


def test_correcting_a_line_does_not_change_the_ids_and_times_after_it() -> None:
    broken = read(line(), line(payload={}, turn=-1), line())
    mended = events(line(), line(), line())
    assert broken[1].error is not None
    assert [event_of(broken[0]), event_of(broken[2])] == [mended[0], mended[2]]


def test_a_refused_line_names_its_number_and_field_and_the_next_is_read() -> None:
    items = read(whole(), whole(payload={"text": 5}), whole(id="e-2"))
    assert str(error_of(items[1])) == "line 2: payload.text: should be a valid string"
    assert error_of(items[1]).path == "payload.text"
    assert event_of(items[2]).id == "e-2"


@pytest.mark.parametrize(
    "broken",
    [
        b'{"space": "village"\n',
        b"plain words\n",
        b"17\n",
        b"null\n",
        b'"kind"\n',
        b"{}\n",
        b"\xff\xfe\x00\n",
        whole(payload={"x": float("nan")}),
        line(payload={"text": "", "x": float("nan")}),
        line(payload={"text": "", "x": float("-inf")}),
        line(payload={"text": "", "x": 2**63}),
        line().replace(b'"Bread!"', b'"Bread!", "x": 1e999'),
        whole().replace(b'"Bread!"', b'"Bread!", "x": 1e999'),
        line(payload={"text": "\ud800"}),
        line(space="no name "),
        line(space=["village"]),
        line(session={}),
        line(id=None),
        line(at="2026-03-01T12:00:00"),
        line(colour="red"),
        old(agent="baker"),
        b'{"kind": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b"[]\n",
    ],
)
def test_a_line_that_is_no_event_is_an_error_and_the_next_is_read(broken: bytes) -> None:
    items = read(whole(), broken, whole(id="e-2"))
    assert str(error_of(items[1])).startswith("line 2: ")
    assert event_of(items[2]).id == "e-2"


def test_an_event_over_the_limit_is_refused_as_such() -> None:
    long = "x" * limits.EVENT_BYTES_MAX
    for item in read(whole(payload={"text": long}), line(payload={"text": long})):
        assert isinstance(error_of(item), EventTooLarge)


def test_the_size_limit_applies_to_the_canonical_form_of_a_line() -> None:
    escaped = whole(payload={"text": "é" * 60_000})
    grows = whole(kind="x.y", payload={"x": [10.0**15] * 40_000}).replace(b"1000000000000000.0", b"1e15")
    assert len(escaped) > limits.EVENT_BYTES_MAX > len(grows)
    items = read(escaped, grows)
    assert event_of(items[0]).text == "é" * 60_000
    assert isinstance(error_of(items[1]), EventTooLarge)


@pytest.mark.parametrize("newer", [whole(envelope=3), line(schema_version=2), old(schema_version=2)])
def test_an_event_of_a_newer_recallog_is_refused_as_such(newer: bytes) -> None:
    error = error_of(read(newer)[0])
    assert isinstance(error, FutureSchema)
    assert error.rule == "future_schema"


@pytest.mark.parametrize(
    ("first", "advice"),
    [
        (b"[\n", "recallog ingest recognises the format"),
        (b"{\n", "recallog ingest recognises the format"),
        (b'[{"role": "user", "content": "hello"}]', "try --format chat"),
        (b'{"messages": [{"role": "user", "content": "hello"}]}\n', "try --format chat"),
        (b'[{"traj": [{"role": "user", "content": "hello"}]}]', "try --format chat"),
        (b'[{"sample_id": "conv-1", "conversation": {}}]', "try --format locomo"),
        (b"[" + whole().rstrip() + b"]", "try --format jsonl"),
    ],
)
def test_a_file_of_another_format_is_refused_with_the_format_to_try(first: bytes, advice: str) -> None:
    with pytest.raises(InvalidEvent, match=r"^expected ") as refused:
        read(first, b"...")
    assert advice in str(refused.value)


def test_lines_are_read_one_by_one_from_an_open_pipe() -> None:
    asked: list[int] = []

    def pipe() -> Iterable[bytes]:
        for number in range(3):
            asked.append(number)
            yield whole(id=str(number))

    items = jsonl.read(pipe())
    assert event_of(next(items)).id == "0"
    assert asked == [0]
