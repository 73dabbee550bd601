"""The headers of a record: CloudEvents 1.0 in its binary mode for Kafka. Readers of ours need none of them."""

from typing import Final

from recallog_schemas import Event

_SAME_FOR_ALL: Final = (("content-type", b"application/json"), ("ce_specversion", b"1.0"))


def headers_of(event: Event) -> list[tuple[str, bytes]]:
    """The attributes of `event`.

    Source and id together name one event in the world, as CloudEvents asks: an id is unique in its space.
    """
    headers = [
        *_SAME_FOR_ALL,
        ("ce_id", event.id.encode()),
        ("ce_source", b"recallog:" + event.space.encode()),
        ("ce_type", event.kind.encode()),
        ("ce_time", event.at.isoformat().encode()),
    ]
    if event.subject is not None:
        headers.append(("ce_subject", event.subject.encode()))
    return headers
