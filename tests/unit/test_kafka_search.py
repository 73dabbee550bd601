"""The id of a record, as a search in a topic reads it."""

import pytest

from recallog_schemas import codec
from recallog_streams.ledgers.kafka.ledger import _id_of
from support.events import event

RECORD = codec.encode(event(id="e-1"))


@pytest.mark.parametrize(
    "damage",
    [b"", b"[]", b"7", b"{}", b'{"id": "\xff"}', b'{"id": ' + b"[" * 5_000],
    ids=["empty", "a list", "a number", "no id", "an id that is not UTF-8", "deep"],
)
def test_a_record_that_cannot_be_read_has_no_id(damage: bytes) -> None:
    # Other programs write to the topic. The search once ended with a UnicodeDecodeError.
    assert _id_of(damage) is None


def test_an_event_has_its_id_whatever_the_fold_accepts() -> None:
    assert _id_of(RECORD) == "e-1"
    odd = b'{"agent": Infinity, ' + RECORD[1:]
    assert codec.decode(odd).id == _id_of(odd) == "e-1"
