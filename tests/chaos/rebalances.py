"""Counts rebalances: Kafka numbers the generations of each consumer group."""

import struct

from confluent_kafka import Consumer, Message, TopicPartition

_TOPIC = "__consumer_offsets"
_SECONDS_MAX = 30.0
_GROUP_METADATA = 2
"""The version of the keys of group metadata; lower versions are committed offsets."""
_PLAIN_STRINGS_MAX = 3
"""Up to this version of a value, the length of a string has two bytes."""


def rebalances(bootstrap: str, prefix: str) -> int:
    """The sum of the last generations of all groups whose names begin with `prefix`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "chaos-rebalances",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    generations: dict[str, int] = {}
    try:
        consumer.assign([TopicPartition(_TOPIC, 0, 0)])
        while (message := consumer.poll(_SECONDS_MAX)) is not None and message.error() is None:
            found = _generation(message)
            if found is not None and found[0].startswith(prefix):
                generations[found[0]] = max(found[1], generations.get(found[0], 0))
    finally:
        consumer.close()
    return sum(generations.values())


def _generation(message: Message) -> tuple[str, int] | None:
    """A group and the number of its generation; None if the record is not group metadata."""
    key, value = message.key(), message.value()
    if not isinstance(key, bytes) or not isinstance(value, bytes):
        return None
    (kind,) = struct.unpack_from(">h", key)
    (version,) = struct.unpack_from(">h", value)
    if kind != _GROUP_METADATA or version > _PLAIN_STRINGS_MAX:
        return None
    (length,) = struct.unpack_from(">h", key, 2)
    group = key[4 : 4 + length].decode()
    (length,) = struct.unpack_from(">h", value, 2)  # the type of protocol
    (generation,) = struct.unpack_from(">i", value, 4 + length)
    return group, generation
