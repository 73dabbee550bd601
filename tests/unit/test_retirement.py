"""Which topic a retired topic names, whatever else other programs leave at its end."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors as kafka
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from recallog_streams.ledgers.kafka import markers
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import FetchedPartition
from recallog_streams.ledgers.kafka.reading import Reader
from recallog_streams.ledgers.kafka.retirement import Retirement
from support.events import run

_CONTROL = 0x30
"""The attributes of a batch with the end of a transaction."""
EVENT, BEING_MOVED, NAMED = (b"village", b"{}"), (None, markers.marker()), (None, markers.marker("recallog.64"))
LARGE = (None, markers.marker(" " * 128))
ABORTED = (b"\0\0\0\0", b"\0\0\0\0\0\0")
"""The control record at the end of an aborted transaction."""

Written = tuple[bytes | None, bytes]


class Log:
    """A partition of a cluster: batches of one record, as a broker returns them."""

    address = KafkaAddress.parse("kafka://host/recallog.events")

    def __init__(self, *written: Written) -> None:
        self._batches = [self._batch(offset, *each) for offset, each in enumerate(written)]

    @staticmethod
    def _batch(offset: int, key: bytes | None, value: bytes) -> bytes:
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 4096)
        builder.append(0, 1_700_000_000_000, key, value, [])
        batch = builder.build()
        batch[:8] = offset.to_bytes(8, "big")
        if (key, value) == ABORTED:
            batch[21:23] = _CONTROL.to_bytes(2, "big")
            batch[17:21] = calc_crc32c(batch[21:]).to_bytes(4, "big")
        return bytes(batch)

    async def ask(self, doing: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
        return await work(self)

    async def open(self) -> Any:
        return SimpleNamespace(id_bytes=b"", partitions=1)

    async def offsets(self, topic: str, partitions: Sequence[int], moment: int) -> list[int]:
        return [len(self._batches)]

    def leader(self, topic: str, partition: int) -> int:
        return 0

    async def fetch(self, node: int, topic_id: bytes, starts: Mapping[int, int], **_: Any) -> Any:
        assert starts[0] >= 0
        return {0: FetchedPartition(kafka.NoError, (), b"".join(self._batches[starts[0] :]))}


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ([], ""),
        ([EVENT], ""),
        ([EVENT, LARGE, BEING_MOVED], ""),
        ([EVENT, BEING_MOVED, NAMED], "recallog.64"),
        ([BEING_MOVED, NAMED, *[ABORTED] * 250], "recallog.64"),
        ([EVENT, BEING_MOVED, NAMED, ABORTED, LARGE, BEING_MOVED], "recallog.64"),
        ([EVENT, BEING_MOVED, EVENT, ABORTED], ""),
        ([EVENT, ABORTED, BEING_MOVED, ABORTED], ""),
    ],
    ids=["empty", "event", "retired", "named", "aborted later", "retired again", "taken back", "not named yet"],
)
def test_a_retired_topic_names_its_successor(written: Sequence[Written], named: str) -> None:
    """A partition without records was once read at offset -1, and an aborted transaction once hid the name."""
    log: Any = Log(*written)
    assert run(Retirement(log, Reader(log, log, 10)).successor()) == named
