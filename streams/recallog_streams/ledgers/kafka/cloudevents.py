"""The headers of a record: CloudEvents 1.0 in its binary mode for Kafka. Recallog does not read them."""

from typing import Final

from recallog_schemas import Event

_SAME_FOR_ALL: Final = (("content-type", b"application/json"), ("ce_specversion", b"1.0"))


def headers_of(event: Event) -> list[tuple[str, bytes]]:
    """The attributes of `event`.

    The source is the space: CloudEvents requires that source and id together are unique, and an id is unique in its
    space.
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
