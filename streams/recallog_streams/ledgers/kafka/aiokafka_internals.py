"""All uses of aiokafka's internals, in one place, so that they can be checked with every new version.

* `client.AIOKafkaClient` and `protocol`, for single requests: fetches, offsets, a topic's id, creation and settings,
  and sizes on disk. The consumer fetches continuously, and its seek waits for the previous fetch. The admin client
  knows neither topic ids nor sizes, and has a connection of its own.
* `conn.AIOKafkaConnection` and its `_protocol`, `AIOKafkaClient.bootstrap`, `_get_conn` and `_conns`, to leave no
  connection open (see `_ClosingClient`), and for the reason why no server accepts the connection: aiokafka's
  `bootstrap` only logs it.
* `record`, for the records of fetched batches. The consumer makes an object of each record, and fails at headers whose
  names are not UTF-8.
* `partitioner.murmur2`, for the partition of a key. `DefaultPartitioner` takes lists of partitions, on every call.
* `AIOKafkaProducer._closed`, `_sender` and `client`, and `AIOKafkaClient._maybe_wait_metadata`, to end a producer whose
  cluster is unreachable: `stop` waits without a limit for the batches of a broker that does not answer.
* `AIOKafkaConsumer._client`, `_coordinator`, `_fetcher` and their tasks, to end one whose cluster is unreachable.
* `AIOKafkaConsumer._subscription` and `_coordinator`, for the time of the last fetch of each partition.

The requests that aiokafka does not have follow Kafka's message definitions (MetadataRequest/Response 10,
FetchRequest/Response 13, DescribeLogDirsRequest/Response 2 and IncrementalAlterConfigsRequest/Response 1).
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import chain
from ssl import SSLError
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection
from aiokafka.partitioner import murmur2
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.admin import CreateTopicsRequest, DescribeConfigsRequest
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactBytes,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

from recallog_projections.concurrency import cancel_all

Client = TypeVar("Client")

LATEST: Final = -1
"""The next offset that readers see."""
EARLIEST: Final = -2
_READ_COMMITTED: Final = 1
_TOPIC_RESOURCE: Final = 2
_SET: Final = 0
_UNKNOWN_TOPIC_IDS: Final = (100, 103)
_NO_EPOCH: Final = -1
_END_SECONDS: Final = 1.0
_LENGTH_AT, _HEAD_BYTES = 8, 12


class TopicDescription(NamedTuple):
    """A topic as a broker describes it."""

    error: type[kafka.KafkaError]
    cluster: str
    id: bytes
    leaders: Sequence[int]
    """By partition; negative if it has none."""
    copies: int
    """The number of replicas of the partition that has the fewest."""
    nodes: Collection[int]
    """The brokers that have replicas."""


class FetchedPartition(NamedTuple):
    """The answer to a fetch from one partition."""

    error: type[kafka.KafkaError]
    aborted: Sequence[tuple[int, int]]
    """The aborted transactions: producer id and first offset of each."""
    data: bytes


class UnknownTopicId(kafka.KafkaError):
    """The leader has no topic with this id: it was deleted, or this leader does not know it yet."""

    retriable = True


class _ClosingClient(AIOKafkaClient):
    """A client that leaves no connection open: aiokafka's does if it is cancelled while it connects for the first time,
    and if a request connects while it is closed, or later."""

    settings: Mapping[str, Any]
    _is_closed = False

    async def bootstrap(self) -> None:
        options = {name: value for name, value in self.settings.items() if name != "bootstrap_servers"}
        reason: Exception = kafka.KafkaConnectionError()
        for host, port, _ in self.hosts:
            connection = AIOKafkaConnection(host, port, **options)
            try:
                await connection.connect()
                self.cluster.update_metadata(await connection.send(MetadataRequest([])))
            except BaseException as error:
                await _close(connection)
                if not isinstance(error, OSError | kafka.KafkaError):
                    raise
                if getattr(reason, "retriable", not isinstance(reason, SSLError)):  # otherwise it was a refusal
                    reason = error
            else:
                if self.cluster.brokers():
                    await _close(connection)
                else:  # the cluster starts: this broker is asked again
                    self._conns["bootstrap", ConnectionGroup.DEFAULT] = connection
                self._sync_task = asyncio.create_task(self._md_synchronizer())  # type: ignore[no-untyped-call]
                return
        raise reason

    async def close(self) -> None:
        self._is_closed = True
        for connection in self._conns.values():
            _abort(connection)
        await super().close()  # type: ignore[no-untyped-call]

    async def _get_conn(self, *args: Any, **options: Any) -> Any:
        connection = await super()._get_conn(*args, **options)  # type: ignore[no-untyped-call]
        if connection is not None and self._is_closed:
            await _close(connection)
            return None
        return connection


def make_client(kind: Callable[..., Client], settings: Mapping[str, Any], **options: Any) -> Client:
    """A client, producer or consumer of aiokafka that leaves no connection open, with the `settings` of every client.

    When it starts, it raises the reason why no server can be used, perhaps an `OSError`.
    """
    made = kind(**settings, **options)
    client: Any = getattr(made, "client", getattr(made, "_client", made))
    client.__class__, client.settings = _ClosingClient, settings
    return made


class KafkaClient:
    """A connection to the cluster for single requests. Every call may raise a `KafkaError`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._client: Any = make_client(AIOKafkaClient, settings)

    async def bootstrap(self) -> None:
        """Connect to one of the servers. Raises the reason why none of them can be used, perhaps an `OSError`."""
        await self._client.bootstrap()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def refresh_metadata(self) -> None:
        """Request the leaders of partitions again, without waiting for the response of a cluster that may be down."""
        self._client.force_metadata_update()

    async def watch(self, topic: str) -> None:
        """Keep track of the leaders of the partitions of `topic` from now on."""
        await self._client.set_topics([topic])

    async def describe(self, topic: str) -> TopicDescription:
        """The topic. One request."""
        # It never creates the topic, as aiokafka's own requests may.
        request = _MetadataRequest10([(bytes(16), topic, {})], False, False, False, {})
        response = await self._send(self._client.get_random_node(), request)
        ((code, _, id_, _, partitions, *_),) = response.topics
        leaders = [leader for _, _, leader, *_ in partitions]
        replicas = [nodes for _, _, _, _, nodes, *_ in partitions]
        copies, nodes = min(map(len, replicas), default=0), {*chain(*replicas)}
        return TopicDescription(kafka.for_code(code), response.cluster_id or "", id_, leaders, copies, nodes)

    async def create(
        self, topic: str, partitions: int, replication: int, settings: Mapping[str, str], patience_seconds: float
    ) -> None:
        """Create a topic, unless another process has just created it. An attempt may take a third of the patience."""
        controller = self._client.cluster.controller
        node = self._client.get_random_node() if controller is None else controller.nodeId
        wanted: Any = (topic, partitions, replication, [], list(settings.items()))
        request = CreateTopicsRequest([wanted], round(patience_seconds * 1000 / 3), False)
        response = await self._client.send(node, request)
        ((_, code, message),) = response.topic_errors
        if code != kafka.TopicAlreadyExistsError.errno:
            _check(code, f"creating the topic {topic}: {message}")

    async def settings(self, topic: str, node: int | None = None) -> dict[str, str | None]:
        """The settings of a topic as one node knows them, by default any."""
        request = DescribeConfigsRequest([(_TOPIC_RESOURCE, topic, None)])
        response = await self._client.send(self._client.get_random_node() if node is None else node, request)
        ((code, message, _, _, entries),) = response.resources
        _check(code, f"reading the settings of {topic}: {message}")
        return {name: value for name, value, *_ in entries}

    async def change_setting(self, topic: str, name: str, value: str) -> None:
        """Set one setting of a topic. The leaders of its partitions apply it a moment later."""
        changes: Any = [(_TOPIC_RESOURCE, topic, [(name, _SET, value, {})], {})]
        response = await self._send(self._client.get_random_node(), _AlterConfigsRequest1(changes, False, {}))
        ((code, message, *_),) = response.resources
        _check(code, f"setting {name}={value} on {topic}: {message}")

    async def offsets(self, topic: str, partitions: Sequence[int], moment: int) -> list[int]:
        """The offset of each partition at `moment` (`EARLIEST` or `LATEST`): one request to each leader."""
        by_node: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for partition in partitions:
            by_node[self.leader(topic, partition)].append((partition, moment))
        requests = [(node, OffsetRequest(-1, _READ_COMMITTED, [(topic, asked)])) for node, asked in by_node.items()]
        responses = await asyncio.gather(*(self._client.send(node, request) for node, request in requests))
        found = {}
        for response in responses:
            for partition, code, _, offset in response.topics[0][1]:
                _check(code, f"{topic}-{partition}")
                found[partition] = offset
        return [found[partition] for partition in partitions]

    async def fetch(
        self, node: int, topic_id: bytes, starts: Mapping[int, int], *, bytes_max: int, wait_seconds: float
    ) -> dict[int, FetchedPartition]:
        """By partition: batches from the one that holds the offset in `starts`, under read_committed.

        `node` leads the partitions. Returns after `wait_seconds` if there are none. A topic that was created again has
        another id, so that its records are never returned.
        """
        asked: list[Any] = [
            (partition, _NO_EPOCH, start, _NO_EPOCH, _NO_EPOCH, bytes_max, {}) for partition, start in starts.items()
        ]
        topics: list[Any] = [(topic_id, asked, {})]
        wait_ms = round(wait_seconds * 1000)
        request = _FetchRequest13(-1, wait_ms, 1, bytes_max, _READ_COMMITTED, 0, _NO_EPOCH, topics, [], "", {})
        response = await self._send(node, request)
        _check(response.error_code, f"a fetch from node {node}")
        return {
            partition: FetchedPartition(
                _error_of(code), [(producer, first) for producer, first, _ in aborted or ()], data or b""
            )
            for partition, code, _, _, _, aborted, _, data, _ in (each for _, of, _ in response.topics for each in of)
        }

    async def sizes_bytes(self, topic: str, partitions: Collection[int]) -> dict[int, int]:
        """What the largest replica of each partition takes on the disks of its broker."""
        largest: dict[int, int] = {}
        for broker in self._client.cluster.brokers():
            request = _LogDirsRequest2([(topic, list(partitions), {})], {})
            response = await self._send(broker.nodeId, request)
            for code, _, topics, _ in response.folders:
                _check(code, "asking for sizes")
                for partition, size_bytes, *_ in (found for _, each, _ in topics for found in each):
                    largest[partition] = max(size_bytes, largest.get(partition, 0))
        return largest

    async def _send(self, node: int, request: RequestStruct) -> Any:
        return await self._client.send(node, _InOneVersion(request))

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition of a topic that is watched."""
        leader = self._client.cluster.leader_for_partition(TopicPartition(topic, partition))
        if leader is None or leader < 0:
            raise kafka.LeaderNotAvailableError(f"{topic}-{partition}")
        return int(leader)


def _error_of(code: int) -> type[kafka.KafkaError]:
    return UnknownTopicId if code in _UNKNOWN_TOPIC_IDS else kafka.for_code(code)


def _check(code: int, doing: str) -> None:
    """Raise the error of a code, if it is one."""
    if (error := _error_of(code)) is not kafka.NoError:
        raise error(doing)


async def _close(connection: AIOKafkaConnection) -> None:
    """Close a connection, and return when it is closed."""
    _abort(connection)
    closed = connection.close()
    if connection._protocol is not None:  # otherwise it has never been open
        await asyncio.wait([closed])  # if it is cancelled, `closed` is not: others may wait for it


def _abort(connection: AIOKafkaConnection) -> None:
    """Drop what is not sent. A connection that is being closed waits for a broker that does not read, too."""
    if connection._protocol is not None and (transport := connection._protocol._transport) is not None:
        transport.abort()


def fetch_times(consumer: AIOKafkaConsumer) -> dict[tuple[str, int], int | None]:
    """The time of the last fetch of each assigned partition, in milliseconds since 1970; `None` before the first.

    The keys are topics and partitions. Empty while the coordinator of the group is unknown.
    """
    subscription = consumer._subscription.subscription
    assignment = None if subscription is None else subscription.assignment
    coordinator = consumer._coordinator
    if assignment is None or coordinator is None or coordinator.coordinator_id is None:
        return {}
    return {partition: assignment.state_value(partition).timestamp for partition in assignment.tps}


def key_hash(key: bytes) -> int:
    """The hash by which Java's default partitioner picks the partition of a key."""
    return int(murmur2(key)) & 0x7FFFFFFF


async def stop_consumer(consumer: AIOKafkaConsumer, seconds: float) -> None:
    """Leave the group, or end the consumer if that takes longer than `seconds`."""
    try:
        with suppress(kafka.KafkaError, TimeoutError):
            async with asyncio.timeout(seconds):
                await consumer.stop()
    finally:
        await consumer._client.close()
        fetcher, group = consumer._fetcher, consumer._coordinator
        if fetcher is not None and group is not None:  # their tasks would wait, or repeat requests, without a limit
            tasks = fetcher._fetch_task, group._coordination_task, group._heartbeat_task
            await cancel_all(*filter(None, tasks))


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


class RecordFields(NamedTuple):
    """The fields of a record that are used."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[tuple[str, bytes]] = ()


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
        later, position = decode_varint(buffer, position)
        delta, position = decode_varint(buffer, position)
        key, position = _bytes(buffer, position)
        value, _ = _bytes(buffer, position)
        yield RecordFields(batch.base_offset + delta, key, value, batch.first_timestamp + later)
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


def _each(**fields: Any) -> CompactArray:
    """An array of structs with these fields, which are of a flexible version."""
    return CompactArray(*fields.items(), ("tags", TaggedFields))


def _schema(**fields: Any) -> Schema:
    """The fields of a request or an answer of a flexible version."""
    return Schema(*fields.items(), ("tags", TaggedFields))


class _MetadataResponse10(Response):
    API_KEY = 3
    API_VERSION = 10
    SCHEMA: ClassVar[Schema] = _schema(
        throttle_time_ms=Int32,
        brokers=_each(node_id=Int32, host=CompactString(), port=Int32, rack=CompactString()),
        cluster_id=CompactString(),
        controller_id=Int32,
        topics=_each(
            error_code=Int16,
            name=CompactString(),
            topic_id=_Uuid,
            is_internal=Boolean,
            partitions=_each(
                error_code=Int16,
                partition=Int32,
                leader=Int32,
                leader_epoch=Int32,
                replicas=CompactArray(Int32),
                isr=CompactArray(Int32),
                offline_replicas=CompactArray(Int32),
            ),
            authorized_operations=Int32,
        ),
        authorized_operations=Int32,
    )


class _MetadataRequest10(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = _MetadataResponse10
    SCHEMA = _schema(
        topics=_each(topic_id=_Uuid, name=CompactString()),
        allow_auto_topic_creation=Boolean,
        include_cluster_authorized_operations=Boolean,
        include_topic_authorized_operations=Boolean,
    )


class _FetchResponse13(Response):
    API_KEY = 1
    API_VERSION = 13
    SCHEMA: ClassVar[Schema] = _schema(
        throttle_time_ms=Int32,
        error_code=Int16,
        session_id=Int32,
        topics=_each(
            topic_id=_Uuid,
            partitions=_each(
                partition=Int32,
                error_code=Int16,
                high_watermark=Int64,
                last_stable_offset=Int64,
                log_start_offset=Int64,
                aborted=_each(producer_id=Int64, first_offset=Int64),
                preferred_read_replica=Int32,
                records=CompactBytes,
            ),
        ),
    )


class _FetchRequest13(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 1
    API_VERSION = 13
    RESPONSE_TYPE = _FetchResponse13
    SCHEMA = _schema(
        replica_id=Int32,
        max_wait_ms=Int32,
        min_bytes=Int32,
        max_bytes=Int32,
        isolation_level=Int8,
        session_id=Int32,
        session_epoch=Int32,
        topics=_each(
            topic_id=_Uuid,
            partitions=_each(
                partition=Int32,
                current_leader_epoch=Int32,
                offset=Int64,
                last_fetched_epoch=Int32,
                log_start_offset=Int64,
                max_bytes=Int32,
            ),
        ),
        forgotten_topics=_each(topic_id=_Uuid, partitions=CompactArray(Int32)),
        rack_id=CompactString(),
    )


class _LogDirsResponse2(Response):
    API_KEY = 35
    API_VERSION = 2
    SCHEMA: ClassVar[Schema] = _schema(
        throttle_time_ms=Int32,
        folders=_each(
            error_code=Int16,
            path=CompactString(),
            topics=_each(
                name=CompactString(),
                partitions=_each(partition=Int32, size_bytes=Int64, lag=Int64, is_future=Boolean),
            ),
        ),
    )


class _LogDirsRequest2(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 35
    API_VERSION = 2
    RESPONSE_TYPE = _LogDirsResponse2
    SCHEMA = _schema(topics=_each(topic=CompactString(), partitions=CompactArray(Int32)))


class _AlterConfigsResponse1(Response):
    API_KEY = 44
    API_VERSION = 1
    SCHEMA: ClassVar[Schema] = _schema(
        throttle_time_ms=Int32,
        resources=_each(error_code=Int16, message=CompactString(), resource_type=Int8, resource_name=CompactString()),
    )


class _AlterConfigsRequest1(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 44
    API_VERSION = 1
    RESPONSE_TYPE = _AlterConfigsResponse1
    SCHEMA = _schema(
        resources=_each(
            resource_type=Int8,
            resource_name=CompactString(),
            settings=_each(name=CompactString(), operation=Int8, value=CompactString()),
        ),
        validate_only=Boolean,
    )


class _InOneVersion(Request[RequestStruct]):
    """A request that is sent in the version that it has."""

    API_KEY = -1

    def __init__(self, request: RequestStruct) -> None:
        self._request = request

    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        return self._request

    def prepare(self, versions: dict[int, tuple[int, int]]) -> RequestStruct:
        first, last = versions[self._request.API_KEY]
        if not first <= self._request.API_VERSION <= last:
            raise NotImplementedError(f"{type(self._request).__name__}: it has versions {first} to {last}")
        return self._request
