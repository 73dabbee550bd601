"""Checks of positions that a caller names. Each error names the argument in `path`."""

from collections.abc import Sequence

from recallog_schemas.errors import OutOfRange


def check_partition(partitions: int, partition: int, path: str) -> None:
    """Raise `OutOfRange` if the ledger, of `partitions` partitions, does not have this one."""
    if not 0 <= partition < partitions:
        raise OutOfRange(
            f"there is no partition {partition}: the ledger has {partitions}, and the first one is 0", path=path
        )


def check_position(ends: Sequence[int], partition: int, offset: int, path: str) -> None:
    """Raise `OutOfRange` if the ledger has no record at that position."""
    check_partition(len(ends), partition, path)
    end = ends[partition]
    if not 0 <= offset < end:
        where = "the ledger" if len(ends) == 1 else f"partition {partition}"
        last = f"the last position is {partition}:{end - 1}" if end else f"{where} is empty"
        raise OutOfRange(f"there is no position {partition}:{offset}; {last}", path=path)


def check_same_partition(space: str, partition: int, given: int, path: str) -> None:
    """Raise `OutOfRange` if a position is in partition `given`, and not in `partition`, which holds the space."""
    if given != partition:
        raise OutOfRange(f"the space {space!r} lies in partition {partition}, not in {given}", path=path)
