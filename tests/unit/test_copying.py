"""What a copy of a ledger leaves out: dead letters stay dead."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from recallog_schemas import codec
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.migration import copy
from support.events import event, run


class WrittenByOthers(MemoryLedger):
    """Two partitions, as a topic that any program can write: all records lie in the first one."""

    def __init__(self, key: bytes | None) -> None:
        super().__init__(unique_ids=False)
        self.key = key

    async def ends(self) -> list[int]:
        return [*await super().ends(), 0]

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        async for batch in super().read(partition, start, until, space=space):
            yield msgspec.structs.replace(batch, keys=[self.key] * len(batch.records))

    def partition_of(self, space: str) -> int:
        return 1 if space == "elsewhere" else 0


@pytest.mark.parametrize(
    ("space", "key", "why"),
    [
        ("elsewhere", b"elsewhere", "wrong_partition: its space 'elsewhere' lies in partition 1"),
        ("village", b"town", "wrong_key: its key is b'town', not its space 'village'"),
        ("village", None, "wrong_key: its key is None, not its space 'village'"),
    ],
)
def test_a_record_that_lies_in_the_wrong_place_is_not_revived(space: str, key: bytes | None, why: str) -> None:
    source, target = WrittenByOthers(key), MemoryLedger()
    source.append_bytes(codec.encode(event(space=space)), space)
    report = run(copy(source, target))
    assert target.values() == []
    assert (report.copied, report.left_out, [each.why for each in report.problems]) == (0, 1, [why])


def test_a_record_in_its_place_is_copied() -> None:
    source, target = WrittenByOthers(b"village"), MemoryLedger()
    source.append_bytes(codec.encode(event(space="village")), "village")
    assert run(copy(source, target)).ok
    assert target.values() == source.values()
