"""Markers: records of a topic that are not part of the ledger. Readers skip them, as they skip Kafka's control records.

`retirement` writes them. A marker has no key, which every event has, and its value names the topic to which the events
were moved.
"""

from typing import Final, TypeGuard

TOPIC_CHARS_MAX: Final = 50
"""The longest name of a topic for which a marker takes less than `topic_settings.RETIRED_BYTES`."""

_BEGIN: Final = b"moved:"


def marker(topic: str = "") -> bytes:
    """The value of a marker that names `topic`; "" while its last events are being moved."""
    return _BEGIN + topic.encode()


def is_marker(value: bytes | None) -> TypeGuard[bytes]:
    """Whether a record without a key that has this value is a marker."""
    return value is not None and value.startswith(_BEGIN)


def topic_of(value: bytes) -> str:
    """The topic that a marker names; "" if it names none yet."""
    return value.removeprefix(_BEGIN).decode().strip()
