"""Events that were changed after they were made: the ledger has only valid ones, which read back as they were given."""

import enum
import inspect
import json
import math
import threading
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Memory
from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import EventTooLarge, FutureSchema, InvalidEvent, InvalidInput
from support.events import event, numbered, run
from unit.test_codec import events


class Text(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Colour(enum.IntEnum):
    RED = 1


class Mood(enum.StrEnum):
    CALM = "calm"


class Clock(datetime):
    """As test clocks and data frames have their times."""


def itself() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["x"] = circle
    return circle


def nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels - 1):
        found = [found]
    return found


NO_JSON = {
    "NaN": math.nan, "infinity": math.inf, "2**70": 2**70, "2**63": 2**63, "10**5000": 10**5000,
    "-2**63-1": -(2**63) - 1, "object": object(), "bytes": b"x", "set": {1}, "Decimal": Decimal("1.5"),
    "time": datetime(2026, 1, 1, tzinfo=UTC),
    "class": Event, "key 1": {1: 2}, "key None": {None: 1}, "key True": {True: 1}, "surrogate": "\ud800",
    "surrogate key": {"\ud800": 1}, "too deep": nested(65), "itself": itself(), "in a list": [1, [math.nan]],
    "in a tuple": (1, (math.nan,)), "an event": event(),
}  # fmt: skip

ONE_OF_MANY = [{"text": "x"}, {"text": "x", "n": [1, {"k": 2}]}]


@pytest.mark.parametrize("value", NO_JSON.values(), ids=NO_JSON)
@pytest.mark.parametrize("payload", ONE_OF_MANY, ids=["text", "nested"])
def test_a_payload_that_became_no_json_is_refused_by_its_field(payload: dict[str, Any], value: Any) -> None:
    changed = event(payload=json.loads(json.dumps(payload)))
    changed.payload["v"] = value
    with pytest.raises(InvalidEvent) as raised:
        codec.encode(changed)
    assert raised.value.path.split(".")[:2] == ["payload", "v"] or value is NO_JSON["itself"]
    assert str(raised.value).startswith(raised.value.path)


@pytest.mark.parametrize("key", [1, None, True, 1.5, (1, 2), b"k", "\ud800"], ids=repr)
def test_a_key_that_is_no_text_is_refused(key: Any) -> None:
    changed = event(kind="shop.opened", payload={"at": 1})
    changed.payload[key] = 1
    with pytest.raises(InvalidEvent) as raised:
        codec.encode(changed)
    assert raised.value.path.startswith("payload")


def test_a_list_inside_a_payload_is_judged_again() -> None:
    changed = event(payload={"text": "x", "shelves": [[1], [2]]})
    changed.payload["shelves"][1].append(math.nan)
    with pytest.raises(InvalidEvent, match=r"^payload\.shelves\.1\.1: NaN"):
        codec.encode(changed)


@pytest.mark.parametrize(
    "payload", [{}, {"text": 7}, {"text": None}, {"words": "x"}, {"text": "x", "importance": "much"}]
)
def test_a_payload_that_no_longer_fits_its_kind_is_refused(payload: dict[str, Any]) -> None:
    changed = event()
    changed.payload.clear()
    changed.payload.update(payload)
    try:
        event(payload=payload)
    except ValueError:
        with pytest.raises(InvalidEvent, match=r"^payload\."):
            codec.encode(changed)
    else:
        assert codec.decode(codec.encode(changed)) == changed


def test_an_event_that_became_too_large_is_refused() -> None:
    changed = event()
    changed.payload["text"] = "x" * limits.EVENT_BYTES_MAX
    with pytest.raises(EventTooLarge):
        codec.encode(changed)


def changed_by(way: str, name: str, value: Any) -> Event:
    original = event(id="e-1")
    match way:
        case "__dict__":
            vars(original)[name] = value
            return original
        case "model_copy":
            return original.model_copy(update={name: value})
        case _:
            return Event.model_construct(**{**vars(original), name: value})


EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
"""Before the year 1 in UTC."""
WRONG_FIELDS: list[tuple[str, Any]] = [
    ("space", "no name "), ("space", 7), ("agent", ""), ("agent", None), ("kind", "Spoke"), ("id", ""),
    ("id", "x" * 129), ("id", "\ud800"), ("turn", -1), ("turn", None), ("turn", 2**60), ("turn", True), ("turn", 1.0),
    ("payload", None), ("payload", [("text", "x")]), ("payload", "text"), ("at", None), ("at", "2026"), ("at", 3),
    ("at", datetime.fromisoformat("2026-03-01T12:00:00")), ("at", EARLY),
    ("session", ""), ("session", 5), ("audience", ["no name "]), ("audience", "baker"), ("audience", ("x",) * 65),
    ("audience", (1,)), ("envelope", 3), ("envelope", 0), ("envelope", None), ("schema_version", 2),
    ("schema_version", None), ("subject", b"x"), ("causation_id", 0), ("correlation_id", ["x"]),
]  # fmt: skip


@pytest.mark.parametrize("way", ["__dict__", "model_copy", "model_construct"])
@pytest.mark.parametrize(("name", "value"), WRONG_FIELDS, ids=lambda value: repr(value)[:30])
def test_a_field_of_the_envelope_that_was_changed_around_the_model_is_judged(way: str, name: str, value: Any) -> None:
    with pytest.raises(InvalidEvent) as raised:
        codec.encode(changed_by(way, name, value))
    assert raised.value.path.split(".")[0] == name
    assert isinstance(raised.value, FutureSchema) == (name == "schema_version" and value == 2)


@pytest.mark.parametrize("name", ["foo", "_text", 7], ids=repr)
def test_a_field_that_no_event_has_is_refused(name: Any) -> None:
    changed = event()
    vars(changed)[name] = 1
    with pytest.raises(InvalidEvent):
        codec.encode(changed)


@pytest.mark.parametrize("name", Event.model_fields)
def test_a_field_that_was_removed_is_refused_or_unset(name: str) -> None:
    removed = event(id="e-1", session="s", turn=3)
    del vars(removed)[name]
    try:
        data = codec.encode(removed)
    except (InvalidEvent, AttributeError):
        return
    assert codec.decode(data)


def test_fields_of_a_subclass_are_refused() -> None:
    class Tagged(Event):
        tag: str = "x"

    with pytest.raises(InvalidEvent, match=r"^tag: unknown field"):
        codec.encode(Tagged(space="village", agent="baker", kind="agent.spoke", payload={"text": "x"}))


ACCEPTED: list[tuple[Any, Any]] = [
    (Text("x"), "x"), (Whole(3), 3), (Real(1.5), 1.5), (Colour.RED, 1), (Mood.CALM, "calm"), (True, True),
    ((1, (2,)), [1, [2]]),
    (OrderedDict(a=1), {"a": 1}), ({Text("k"): Text("v")}, {"k": "v"}), ({Mood.CALM: 1}, {"calm": 1}), (-0.0, -0.0),
    (2**63 - 1, 2**63 - 1), (-(2**63), -(2**63)), (5e-324, 5e-324), (nested(64), nested(64)), ("\0\u2028", "\0\u2028"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "written"), ACCEPTED, ids=lambda value: repr(value)[:30])
def test_values_of_derived_types_are_written_as_plain_ones(value: Any, written: Any) -> None:
    made = event(payload={"text": "x", "v": value})
    changed = event(payload={"text": "x"})
    changed.payload["v"] = value
    for each in (made, changed):
        found = codec.decode(codec.encode(each)).payload["v"]
        assert found == written
        assert type(found) is type(written)


def test_numbers_of_numpy_are_floats_or_refused_by_name() -> None:
    numpy = pytest.importorskip("numpy")
    assert b'"v":1.5' in codec.encode(event(payload={"text": "x", "v": numpy.float64(1.5)}))
    changed = event()
    changed.payload["v"] = numpy.int64(3)
    with pytest.raises(InvalidEvent, match=r"^payload\.v: int64 is not a JSON value"):
        codec.encode(changed)


def test_a_time_of_a_derived_type_is_written() -> None:
    at = Clock(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert codec.decode(codec.encode(event(at=at))).at == at
    assert type(event(at=at).at) is datetime


def test_a_dict_that_two_events_share_is_judged_for_each() -> None:
    shared: dict[str, Any] = {"sacks": 9}
    first, second = (event(payload={"text": "x", "owed": shared}) for _ in range(2))
    shared["sacks"] = math.inf
    for each in (first, second):
        with pytest.raises(InvalidEvent, match=r"^payload\.owed\.sacks"):
            codec.encode(each)


@given(
    events(), st.dictionaries(st.text(max_size=3), st.integers() | st.floats() | st.text() | st.binary(), max_size=3)
)
def test_what_is_encoded_decodes_to_the_event_whatever_was_changed(original: Event, more: dict[str, Any]) -> None:
    original.payload.update(more)
    try:
        data = codec.encode(original)
    except InvalidEvent:
        return
    assert codec.decode(data) == original


def test_a_changed_event_is_judged_at_any_stack_depth() -> None:
    valid = event(payload={"text": "x", "deep": nested(64)})
    deep = event()
    deep.payload["deep"] = nested(500)

    def outcome(of: Event, callers: int) -> object:
        if callers > 0:
            return outcome(of, callers - 1)
        try:
            return codec.encode(of)
        except InvalidEvent as error:
            return error.path.split(".")[:2], error.rule

    for each in (valid, deep):
        assert len({str(outcome(each, depth - len(inspect.stack(0)))) for depth in (100, 700, 950)}) == 1


def test_a_payload_that_another_thread_changes_is_written_as_it_was_at_one_moment() -> None:
    # Each value is valid, or NaN. A NaN that JSON would show as null is never written.
    changing = event(payload={"text": "x", "v": {"list": [1, 2], "pair": (1, 2)}})
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for value in (math.nan, 1.5, (math.nan, 1), [1], "text", {"a": 1}):
                changing.payload["v"] = {"list": [value], "pair": (value, 2)}
                changing.payload["w"] = value
                del changing.payload["w"]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(2_000):
            try:
                data = codec.encode(changing)
            except InvalidEvent:
                continue
            assert b"null" not in data
    finally:
        stop.set()
        thread.join()


def test_a_changed_event_is_not_acknowledged_and_nothing_of_its_call_is_written() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            changed = event()
            changed.payload["v"] = math.nan
            with pytest.raises(InvalidInput) as raised:
                await memory.publish(changed)
            assert raised.value.path == "payload.v"
            with pytest.raises(InvalidEvent, match=r"^2\.payload\.v: NaN") as refused:
                await memory.publish_many([*numbered(2), changed])
            assert refused.value.path == "2.payload.v"
            assert await memory.admin.ledger_ends() == [0]
            del changed.payload["v"]
            await memory.publish(changed)
            assert (await memory.admin.dead_letters()).items == ()

    run(work())
