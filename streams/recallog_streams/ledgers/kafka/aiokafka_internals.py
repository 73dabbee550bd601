"""All uses of aiokafka below its public API, in one place, so that they can be checked with every new version.

* `client.AIOKafkaClient` and `protocol`, for single requests: fetches, offsets, a topic's id, creation and settings,
  and sizes on disk. The consumer fetches without end, and its seek waits for the fetch before it. The admin client
  knows neither topic ids nor sizes, and has a connection of its own.
* `conn.create_conn`, for the reason why no server accepts the connection: `bootstrap` only logs it.
* `record`, for the records of fetched batches. The consumer makes an object of each record, and fails at headers whose
  names are not UTF-8.
* `partitioner.murmur2`, for the partition of a key. `DefaultPartitioner` takes lists of partitions, on every call.
* `AIOKafkaConsumer._fetcher`, to see whether the consumer fetches: one that has stopped returns no records, and no
  error.
* `AIOKafkaProducer._closed`, `_sender` and `client`, and `AIOKafkaClient._maybe_wait_metadata`, to end a producer whose
  cluster is away: `stop` waits without end for the batches of a broker that does not answer.

The requests that aiokafka does not have follow Kafka's message definitions (MetadataRequest/Response 10 and
DescribeLogDirsRequest/Response 1).
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any, ClassVar, Final, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import create_conn
from aiokafka.partitioner import murmur2
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.admin import CreateTopicsRequest, DescribeConfigsRequest
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
)
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

LATEST: Final = -1
"""The next offset that readers see."""
EARLIEST: Final = -2
_READ_COMMITTED: Final = 1
_TOPIC_RESOURCE: Final = 2
_FETCH_WAIT_MS: Final = 100
_END_SECONDS: Final = 1.0
_LENGTH_AT, _HEAD_BYTES = 8, 12


class TopicDescription(NamedTuple):
    """A topic as a broker describes it."""

    error: type[kafka.KafkaError]
    cluster: str
    id: bytes
    leaders: Sequence[int]
    """By partition; negative if it has none."""
    copies: Sequence[int]
    """By partition: the number of its replicas."""


class FetchedPartition(NamedTuple):
    """The answer to a fetch from one partition."""

    error: type[kafka.KafkaError]
    aborted: Sequence[tuple[int, int]]
    """The aborted transactions: producer id and first offset of each."""
    data: bytes


class Client:
    """A connection to the cluster for single requests. Every call may raise a `KafkaError`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._client = AIOKafkaClient(**settings)

    async def bootstrap(self) -> None:
        """Connect to one of the servers."""
        await self._client.bootstrap()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def refresh_metadata(self) -> None:
        """Request the leaders of partitions again, without waiting for the response of a cluster that may be down."""
        self._client.force_metadata_update()

    async def watch(self, topic: str) -> None:
        """Know the leaders of the partitions of `topic` from now on."""
        await self._client.set_topics([topic])

    async def describe(self, topic: str) -> TopicDescription:
        """The topic. One request, which never creates it."""
        response = await self._client.send(self._client.get_random_node(), _TopicRequest(topic))
        ((code, _, id_, _, partitions, *_),) = response.topics
        leaders = [leader for _, _, leader, *_ in partitions]
        copies = [len(replicas) for _, _, _, _, replicas, *_ in partitions]
        return TopicDescription(kafka.for_code(code), response.cluster_id or "", id_, leaders, copies)

    async def create(
        self, topic: str, partitions: int, replication: int, settings: Mapping[str, str], timeout_ms: int
    ) -> tuple[type[kafka.KafkaError], str]:
        """Create a topic; the error (`NoError`) and its message."""
        controller = self._client.cluster.controller
        node = self._client.get_random_node() if controller is None else controller.nodeId
        wanted: Any = (topic, partitions, replication, [], list(settings.items()))
        response = await self._client.send(node, CreateTopicsRequest([wanted], timeout_ms, False))
        ((_, code, message),) = response.topic_errors
        return kafka.for_code(code), message

    async def settings(self, topic: str) -> dict[str, str | None]:
        """The settings of a topic."""
        request = DescribeConfigsRequest([(_TOPIC_RESOURCE, topic, None)])
        response = await self._client.send(self._client.get_random_node(), request)
        ((code, message, _, _, entries),) = response.resources
        if (error := kafka.for_code(code)) is not kafka.NoError:
            raise error(f"reading the settings of {topic}: {message}")
        return {name: value for name, value, *_ in entries}

    async def offsets(self, topic: str, partitions: Sequence[int], moment: int) -> list[int]:
        """The offset of each partition at `moment` (`EARLIEST` or `LATEST`): one request to each leader."""
        by_node: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for partition in partitions:
            by_node[self._leader(topic, partition)].append((partition, moment))
        responses = await asyncio.gather(
            *(
                self._client.send(node, OffsetRequest(-1, _READ_COMMITTED, [(topic, asked)]))
                for node, asked in by_node.items()
            )
        )
        found = {}
        for response in responses:
            for partition, code, _, offset in response.topics[0][1]:
                if (error := kafka.for_code(code)) is not kafka.NoError:
                    raise error(f"{topic}-{partition}")
                found[partition] = offset
        return [found[partition] for partition in partitions]

    async def fetch(self, topic: str, partition: int, offset: int, bytes_max: int) -> FetchedPartition:
        """The batches of one partition from the one that holds `offset`, under read_committed."""
        topics = [(topic, [(partition, offset, bytes_max)])]
        request = FetchRequest(_FETCH_WAIT_MS, 1, bytes_max, _READ_COMMITTED, topics)
        response = await self._client.send(self._leader(topic, partition), request)
        if (error := kafka.for_code(response.error_code)) is not kafka.NoError:
            raise error(f"{topic}-{partition}")
        # Version 11, which every broker since 2.3 and this aiokafka (0.14) have in common.
        _, code, _, _, _, aborted, _, data = response.topics[0][1][0]
        return FetchedPartition(kafka.for_code(code), aborted or (), data or b"")

    async def sizes_bytes(self, topic: str, partitions: Collection[int]) -> dict[int, int]:
        """What the largest replica of each partition takes on the disks of its broker."""
        largest: dict[int, int] = {}
        for broker in self._client.cluster.brokers():
            response = await self._client.send(broker.nodeId, _LogDirsRequest(topic, list(partitions)))
            for code, _, topics in response.folders:
                if (error := kafka.for_code(code)) is not kafka.NoError:
                    raise error("asking for sizes")
                for partition, size_bytes, _, _ in (found for _, each in topics for found in each):
                    largest[partition] = max(size_bytes, largest.get(partition, 0))
        return largest

    def _leader(self, topic: str, partition: int) -> int:
        leader = self._client.cluster.leader_for_partition(TopicPartition(topic, partition))
        if leader is None or leader < 0:
            raise kafka.LeaderNotAvailableError(f"{topic}-{partition}")
        return int(leader)


async def try_connecting(host: str, port: int, settings: Mapping[str, Any]) -> None:
    """Connect to one server and disconnect. Raises the reason why it cannot be done."""
    connection = await create_conn(host, port, **settings)
    await connection.close()


def key_hash(key: bytes) -> int:
    """The hash by which Java's default partitioner picks the partition of a key."""
    return int(murmur2(key)) & 0x7FFFFFFF


def has_stopped_fetching(consumer: AIOKafkaConsumer) -> bool:
    """Whether a started consumer has stopped fetching: it then returns neither records nor errors."""
    return consumer._fetcher is None or bool(consumer._fetcher.error_future.done())


async def end_without_flushing(producer: AIOKafkaProducer) -> None:
    """End a producer and abandon its batches. Takes `_END_SECONDS` at most, also if no broker answers."""

    async def no_wait() -> None:
        pass

    producer._closed = True
    # After a failed request the sender waits for new metadata, which nobody requests any more.
    producer.client._maybe_wait_metadata = no_wait  # type: ignore[method-assign]
    await producer.client.close()  # first: requests in flight fail, and the sender waits for their end
    with suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            await producer._sender.close()
    await producer.client.close()


class RecordFields(NamedTuple):
    """The fields of a record that are used."""

    offset: int
    key: bytes | None
    value: bytes | None


class FetchedBatch:
    """One batch of a fetch."""

    def __init__(self, batch: Any, data: bytes) -> None:
        self._batch = batch
        self._data = data
        self.base_offset = int(batch.base_offset)
        self.next_offset = int(batch.next_offset)
        self.producer_id = int(batch.producer_id)
        self.is_control: bool = batch.is_control_batch
        """Whether it has a transaction's marker instead of records."""
        self.is_transactional: bool = batch.is_transactional

    def is_whole(self) -> bool:
        """Whether its checksum is right."""
        return bool(self._batch.validate_crc())

    def is_abort_marker(self) -> bool:
        """Whether the transaction that this control batch ends was aborted."""
        return bool(ControlRecord.parse(next(self._batch).key) == ABORT_MARKER)

    def records(self) -> Sequence[Any]:
        """Objects with at least the attributes of `RecordFields`."""
        try:
            return list(self._batch)
        except UnicodeDecodeError:
            return list(_without_headers(self._data))


def batches_of(data: bytes) -> Iterator[FetchedBatch]:
    """The complete batches of fetched `data`."""
    memory, at = MemoryRecords(data), 0
    while memory.has_next():
        end = at + _HEAD_BYTES + int.from_bytes(data[at + _LENGTH_AT : at + _HEAD_BYTES], "big")
        yield FetchedBatch(memory.next_batch(), data[at:end])
        at = end


def _without_headers(data: bytes) -> Iterator[RecordFields]:
    batch = _DefaultRecordBatchPy(data)
    batch._maybe_uncompress()
    buffer, position = batch._buffer, batch._pos
    for _ in range(batch._num_records):
        length, position = decode_varint(buffer, position)
        end = position + length
        position += 1  # attributes, which are unused
        _, position = decode_varint(buffer, position)  # of its time
        delta, position = decode_varint(buffer, position)
        key, position = _bytes(buffer, position)
        value, _ = _bytes(buffer, position)
        yield RecordFields(batch.base_offset + delta, key, value)
        position = end


def _bytes(buffer: Any, position: int) -> tuple[bytes | None, int]:
    length, position = decode_varint(buffer, position)
    return (None, position) if length < 0 else (bytes(buffer[position : position + length]), position + length)


class _Uuid(AbstractType[bytes]):
    """Sixteen bytes."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(16)


class _MetadataResponse10(Response):
    API_KEY = 3
    API_VERSION = 10
    SCHEMA: ClassVar[Schema] = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString()),
                ("port", Int32),
                ("rack", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString()),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _MetadataRequest10(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = _MetadataResponse10
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("name", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _TopicRequest(Request[_MetadataRequest10]):
    """Requests the metadata of one topic without creating it, which aiokafka's own metadata requests may do."""

    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[_MetadataRequest10]) -> _MetadataRequest10:
        return request_struct_class([(bytes(16), self._topic, {})], False, False, False, {})


class _LogDirsResponse1(Response):
    API_KEY = 35
    API_VERSION = 1
    SCHEMA: ClassVar[Schema] = Schema(
        ("throttle_time_ms", Int32),
        (
            "folders",
            Array(
                ("error_code", Int16),
                ("path", String()),
                (
                    "topics",
                    Array(
                        ("name", String()),
                        (
                            "partitions",
                            Array(("partition", Int32), ("size_bytes", Int64), ("lag", Int64), ("is_future", Boolean)),
                        ),
                    ),
                ),
            ),
        ),
    )


class _LogDirsRequest1(RequestStruct):
    API_KEY = 35
    API_VERSION = 1
    RESPONSE_TYPE = _LogDirsResponse1
    SCHEMA = Schema(("topics", Array(("name", String()), ("partitions", Array(Int32)))))


class _LogDirsRequest(Request[_LogDirsRequest1]):
    """Requests the sizes of partitions on a broker's disks."""

    API_KEY = 35

    def __init__(self, topic: str, partitions: list[int]) -> None:
        self._topics: list[Any] = [(topic, partitions)]

    def build(self, request_struct_class: type[_LogDirsRequest1]) -> _LogDirsRequest1:
        return request_struct_class(self._topics)
