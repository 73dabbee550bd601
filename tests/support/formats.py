"""Reads bytes as a format, as `recallog ingest` does it for a file."""

from collections.abc import Iterable
from typing import Any

from recallog_schemas import Event
from recallog_service.formats import Format, Item, Options, Reading, Source


def read(format: Format, data: bytes, **options: Any) -> Reading:  # noqa: A002
    return format.read(Source(data.splitlines(keepends=True)), Options(**options))


def items(format: Format, data: bytes, **options: Any) -> list[Item]:  # noqa: A002
    return list(read(format, data, **options))


def events(found: Iterable[Item]) -> list[Event]:
    """The events; no item may be an error."""
    every = list(found)
    assert [item.error for item in every if item.error is not None] == []
    return [item.event for item in every if item.event is not None]
