"""Sealed records: they are opened to the same bytes, a changed record is not opened, and an erased one is empty."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_schemas import Event, codec, kinds, limits, sealing
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.sealing import Unit
from support.events import event
from support.random_events import random_event

KEYS = {"key-one": b"1" * 32, "key-two": b"2" * 32}
CIPHER = sealing.cipher_of(KEYS, KEYS.values())
MARKS = ('"payload":{', '"],"data":"', '"}', '"schema_version":1,"sealed":{"keys":["', ',"subject":"x"', "é🥖\\", "")
"""Texts that are marks of records, if they were found in texts."""


def sealed(given: Event) -> bytes:
    return CIPHER.seal(given, codec.encode(given))


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Canonical events with all combinations of the fields after the payload, and marks of records in their texts."""
    drawn = random_event(random.Random(draw(st.integers(0, 2**32))))
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(MARKS)
    nested = {"subject": draw(text), "audience": [{"causation_id": draw(text)}], draw(text): draw(text)}
    return codec.decode(
        codec.encode(
            Event(
                space=drawn.space,
                agent=drawn.agent,
                id=draw(text) or "x",
                kind="shop.opened",
                payload={"text": draw(text), "correlation_id": nested},
                subject=draw(st.none() | text.filter(bool)),
                audience=draw(st.sampled_from([None, (), ("subject", "payload")])),
                causation_id=draw(st.none() | text.filter(bool)),
                correlation_id=draw(st.none() | text.filter(bool)),
                session=draw(st.none() | text.filter(bool)),
            )
        )
    )


@given(events())
def test_a_sealed_record_is_opened_to_the_bytes_that_the_event_had(sent: Event) -> None:
    assert CIPHER.open(sealed(sent)) == codec.encode(sent)
    assert sealing.key_ids(sealed(sent)) == tuple(KEYS)


@given(events())
def test_a_repeated_event_gives_the_same_record(sent: Event) -> None:
    assert sealed(sent) == sealed(codec.decode(codec.encode(sent)))


@given(events())
def test_an_erased_record_is_the_event_without_its_payload(sent: Event) -> None:
    left = codec.decode(sealing.erase_record(sealed(sent)))
    assert left.is_erased
    assert left == sent.model_copy(update={"envelope": 2, "payload": {}})
    assert codec.encode(left) == sealing.erase_record(sealed(sent))


@given(events(), st.data())
def test_a_record_with_another_byte_is_not_opened(sent: Event, data: st.DataObject) -> None:
    record = sealed(sent)
    at = data.draw(st.integers(14, len(record) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != record[at]))
    changed = record[:at] + bytes([other]) + record[at + 1 :]
    assert CIPHER.open(changed) == sealing.CHANGED


@given(events(), st.data())
def test_a_record_with_a_byte_more_or_less_is_not_opened(sent: Event, data: st.DataObject) -> None:
    record = sealed(sent)
    at = data.draw(st.integers(14, len(record) - 1))
    more = data.draw(st.sampled_from([b"", b"!", b"=", b"A", b" ", b"\n"]))
    assert CIPHER.open(record[:at] + more + record[at + (not more) :]) == sealing.CHANGED


def test_the_ciphertext_of_one_record_is_not_opened_in_another() -> None:
    one, other = (sealed(event(id=id_, payload={"text": "Bread!"}, subject="ann")) for id_ in ("e-1", "e-2"))
    start = one.index(b'"data":"')
    moved = other[:start] + one[start:]
    assert CIPHER.open(moved) == sealing.CHANGED


def test_a_record_is_not_opened_with_a_part_of_its_keys() -> None:
    alone = sealing.cipher_of(["key-one"], [KEYS["key-one"]])
    assert alone.open(sealed(event(subject="ann"))) == sealing.CHANGED


def test_the_payload_is_not_in_a_sealed_record() -> None:
    record = sealed(event(payload={"text": "Fresh bread!"}, subject="ann"))
    assert b"Fresh" not in record
    assert b'"subject":"ann"' in record


@pytest.mark.parametrize(
    ("record", "rule"),
    [(sealed(event(subject="ann")), "key_missing"), (sealing.CHANGED, "not_authentic")],
    ids=["sealed", "changed"],
)
def test_what_is_not_opened_is_no_event(record: bytes, rule: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        codec.decode(record)
    assert refused.value.rule == rule


def test_an_erased_event_has_no_payload() -> None:
    with pytest.raises(InvalidEvent, match="whose payload is empty"):
        codec.make(
            {"envelope": 2, "space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "!"}}
        )


def test_the_text_of_an_erased_event_says_so() -> None:
    assert event().model_copy(update={"envelope": 2, "payload": {}}).text == "[erased]"


# Units.


def test_an_event_belongs_to_its_subject() -> None:
    assert sealing.units_of(event(space="village", subject="ann")) == [Unit("village", "subject", "ann")]


def test_an_event_of_nobody_belongs_to_no_unit_unless_all_are_sealed() -> None:
    assert sealing.units_of(event()) == []
    assert sealing.units_of(event(space="village"), "all") == [Unit("village", "space", "")]


def test_the_event_of_an_erasure_belongs_to_no_unit() -> None:
    erased = {"unit": "subject", "names": ["ann"], "keys": []}
    assert sealing.units_of(event(kind=sealing.ERASURE, payload=erased, subject="ann"), "all") == []


@pytest.mark.models("long_term")
def test_events_of_an_entry_belong_to_it() -> None:
    kept = event(kind="memory.retained", payload={"text": "Bread at six.", "type": "fact"}, id="e-1", subject="ann")
    changed = event(kind="memory.updated", payload={"entry": "e-1", "text": "Bread at seven."})
    assert sealing.units_of(kept)[1:] == sealing.units_of(changed) == [Unit("village", "entry", "e-1")]


@pytest.mark.models("all")
def test_the_field_of_an_entry_is_one_of_its_payload() -> None:
    for kind in (kinds.kind_of(name) for name in kinds.entry_kinds()):
        assert kind.entry == "id" or kind.payload.model_fields[kind.entry].is_required()


def test_an_event_of_a_later_version_of_its_kind_is_sealed() -> None:
    nested = {"a": 1, "payload": {"sealed": {"keys": ["x"]}}, "subject": "y"}
    sent = event(kind="shop.opened", schema_version=2, payload=nested, subject="ann")
    assert CIPHER.open(sealed(sent)) == codec.encode(sent)


def test_a_sealed_record_without_its_key_is_named_also_if_it_is_longer_than_an_event_may_be() -> None:
    record = sealed(event(payload={"text": "x" * (limits.EVENT_BYTES_MAX - 1000)}, subject="ann"))
    assert len(record) > limits.EVENT_BYTES_MAX
    with pytest.raises(InvalidEvent) as refused:
        codec.decode(record)
    assert refused.value.rule == "key_missing"
