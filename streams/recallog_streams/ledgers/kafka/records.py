"""Records of Kafka's batches, also of those whose headers have names that are no UTF-8: aiokafka cannot read these."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

_LENGTH_AT, _HEAD_BYTES = 8, 12


class Fields(NamedTuple):
    """What is needed of a record."""

    offset: int
    key: bytes | None
    value: bytes | None


class FetchedBatch(NamedTuple):
    """A batch as aiokafka reads it, and its bytes."""

    batch: Any
    data: bytes

    def records(self) -> Sequence[Any]:
        """Records with at least `Fields`."""
        try:
            return list(self.batch)
        except UnicodeDecodeError:
            return list(_without_headers(self.data))


def batches_of(data: bytes) -> Iterator[FetchedBatch]:
    """The batches that are there as a whole."""
    memory, at = MemoryRecords(data), 0
    while memory.has_next():
        end = at + _HEAD_BYTES + int.from_bytes(data[at + _LENGTH_AT : at + _HEAD_BYTES], "big")
        yield FetchedBatch(memory.next_batch(), data[at:end])
        at = end


def _without_headers(data: bytes) -> Iterator[Fields]:
    batch = _DefaultRecordBatchPy(data)
    batch._maybe_uncompress()
    buffer, position = batch._buffer, batch._pos
    for _ in range(batch._num_records):
        length, position = decode_varint(buffer, position)
        end = position + length
        position += 1  # attributes, of which there are none
        _, position = decode_varint(buffer, position)  # of its time
        delta, position = decode_varint(buffer, position)
        key, position = _bytes(buffer, position)
        value, _ = _bytes(buffer, position)
        yield Fields(batch.base_offset + delta, key, value)
        position = end


def _bytes(buffer: Any, position: int) -> tuple[bytes | None, int]:
    length, position = decode_varint(buffer, position)
    return (None, position) if length < 0 else (bytes(buffer[position : position + length]), position + length)
