"""Checks of positions that a caller names."""

import pytest

from recallog_schemas.errors import OutOfRange
from recallog_streams import positions


@pytest.mark.parametrize(
    ("position", "says"),
    [
        ((0, 10), "there is no position 0:10; the last position is 0:9"),
        ((0, -1), "there is no position 0:-1; the last position is 0:9"),
        ((1, 0), "there is no position 1:0; partition 1 is empty"),
        ((2, 0), "there is no partition 2: the ledger has 2, and the first one is 0"),
        ((-1, 0), "there is no partition -1: the ledger has 2, and the first one is 0"),
    ],
)
def test_a_position_that_the_ledger_does_not_hold_is_out_of_range(position: tuple[int, int], says: str) -> None:
    with pytest.raises(OutOfRange) as raised:
        positions.check_position([10, 0], *position, "after")
    assert (str(raised.value), raised.value.path) == (says, "after")


def test_a_position_of_another_partition_than_that_of_the_space_is_out_of_range() -> None:
    positions.check_same_partition("village", 3, 3, "as_of")
    with pytest.raises(OutOfRange, match="the space 'village' lies in partition 3, not in 5") as raised:
        positions.check_same_partition("village", 3, 5, "as_of")
    assert raised.value.path == "as_of"
