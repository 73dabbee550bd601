"""Requests of Kafka's protocol that aiokafka does not know: topic ids, and what partitions take on disk.

Schemas are those of Kafka's message definitions (MetadataRequest/Response 10, DescribeLogDirsRequest/Response 1).
"""

from io import BytesIO
from typing import Any, ClassVar

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
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


class Uuid(AbstractType[bytes]):
    """Sixteen bytes."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(16)


class MetadataResponse10(Response):
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
                ("topic_id", Uuid),
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


class MetadataRequest10(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = MetadataResponse10
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", Uuid), ("name", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicRequest(Request[MetadataRequest10]):
    """Asks for one topic, and never creates it: aiokafka's own metadata requests may."""

    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[MetadataRequest10]) -> MetadataRequest10:
        return request_struct_class([(bytes(16), self._topic, {})], False, False, False, {})


class LogDirsResponse1(Response):
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


class LogDirsRequest1(RequestStruct):
    API_KEY = 35
    API_VERSION = 1
    RESPONSE_TYPE = LogDirsResponse1
    SCHEMA = Schema(("topics", Array(("name", String()), ("partitions", Array(Int32)))))


class LogDirsRequest(Request[LogDirsRequest1]):
    """Asks a broker what partitions take on its disks."""

    API_KEY = 35

    def __init__(self, topic: str, partitions: list[int]) -> None:
        self._topics: list[Any] = [(topic, partitions)]

    def build(self, request_struct_class: type[LogDirsRequest1]) -> LogDirsRequest1:
        return request_struct_class(self._topics)
