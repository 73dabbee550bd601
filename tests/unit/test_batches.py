"""Batches of the ledger, cut into the parts of commits."""

import pytest

from recallog_streams.ledgers.ledger import Batch, parts_of

SIZES = (10, 10, 10, 90, 10, 10)


def batch(*, keys: bool = True) -> Batch:
    """Records of `SIZES` at even offsets, before a hole."""
    records = [(100 + 2 * number, b"x" * size) for number, size in enumerate(SIZES)]
    return Batch(3, 98, 120, records, [b"%d" % number for number in range(len(records))] if keys else None)


@pytest.mark.parametrize(
    ("records", "size_bytes", "lengths"),
    [
        (None, None, [6]),
        (6, None, [6]),
        (4, None, [4, 2]),
        (1, 1000, [1] * 6),
        (None, 140, [6]),
        (None, 30, [3, 1, 2]),
        (None, 25, [2, 1, 1, 2]),
        (None, 1, [1] * 6),
        (2, 30, [2, 1, 1, 2]),
    ],
)
def test_parts_have_at_most_so_many_records_and_bytes(
    records: int | None, size_bytes: int | None, lengths: list[int]
) -> None:
    parts = parts_of(batch(), records, size_bytes)
    assert [len(part.records) for part in parts] == lengths
    assert [record for part in parts for record in part.records] == batch().records
    assert [key for part in parts for key in part.keys or ()] == batch().keys
    assert [part.start for part in parts] == [98, *(part.next for part in parts[:-1])]
    assert parts[-1].next == 120
    assert {part.partition for part in parts} == {3}


def test_a_batch_without_records_or_keys_is_one_part() -> None:
    empty = Batch(0, 5, 9, [], None)
    assert parts_of(empty, 1, 1) == [empty]
    assert [part.keys for part in parts_of(batch(keys=False), 3)] == [None, None]
