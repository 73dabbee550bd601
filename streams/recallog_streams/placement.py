"""Where the records of a space must be: in its partition, with its name as their key.

A program that writes to the ledger without this library can put them elsewhere. In another partition a record has no
order among the events of its space; under another key, reads of the space miss it. The fold makes such records dead
letters, and a copy leaves them out.
"""

from typing import NamedTuple


class Misplacement(NamedTuple):
    """Why the fold does not apply a record that is a valid event."""

    reason: str
    """The stable word of its dead letter: wrong_partition or wrong_key."""
    detail: str


def misplacement(partition: int, key: bytes | None, space: str, expected: int) -> Misplacement | None:
    """What is wrong with the place of a record of `space`, whose partition is `expected`; None if nothing."""
    if partition != expected:
        return Misplacement("wrong_partition", f"its space {space!r} lies in partition {expected}")
    if key != space.encode():
        return Misplacement("wrong_key", f"its key is {key!r}, not its space {space!r}")
    return None
