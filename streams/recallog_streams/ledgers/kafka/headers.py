"""The headers of a record: CloudEvents 1.0 in its binary mode for Kafka, which Recallog does not read, and the span
that has published the event (W3C Trace Context), if telemetry is on."""

from collections.abc import Iterable
from typing import Final

from recallog_schemas import Event
from recallog_streams.tracing import TRACEPARENT

_SAME_FOR_ALL: Final = (("content-type", b"application/json"), ("ce_specversion", b"1.0"))


def headers_of(event: Event, traceparent: str | None = None) -> list[tuple[str, bytes]]:
    """The attributes of `event`, and the span that publishes it.

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
    if traceparent is not None:
        headers.append((TRACEPARENT, traceparent.encode()))
    return headers


def traceparent_of(headers: Iterable[tuple[str, bytes]]) -> str:
    """The header that names the span of the publisher; "" if there is none."""
    return next((value.decode("latin-1") for name, value in headers if name == TRACEPARENT and value), "")
