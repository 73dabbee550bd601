"""Streams of a remote memory: the events of a space, and the events that one agent may see, as they come."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from recallog.remote.frames import Frame
from recallog_schemas import Event, Position, codec
from recallog_schemas.errors import StorageError
from recallog_schemas.views import Remembered

if TYPE_CHECKING:
    from recallog.remote.connection import Query, ServerConnection

LAST_EVENT_ID = "Last-Event-ID"


@dataclass(frozen=True)
class Tailed:
    """An event of a space, as the ledger has it."""

    position: Position
    event: Event


@dataclass(frozen=True)
class Gap:
    """Takes the place of events that the views have dropped before they were read. They are in the ledger."""

    kept_from: Position
    """The first position from which the views retain all events."""


class StreamPlace:
    """The place in a stream from which it continues when it is opened again."""

    def __init__(self, start: Position | None) -> None:
        self._start = start
        self._last = ""

    def __call__(self) -> "tuple[Query, Mapping[str, str]]":
        """The query and the headers that say where to begin."""
        if self._last:
            return {}, {LAST_EVENT_ID: self._last}
        return ({} if self._start is None else {"start": str(self._start)}), {}

    def note_frame(self, frame: Frame) -> None:
        """Remember the place of a frame."""
        if frame.event == "begin":
            self._start = Position.parse(_fields(frame)["start"])
        elif frame.last_id:
            self._last = frame.last_id


async def tail(connection: "ServerConnection", path: str, start: Position | None) -> AsyncGenerator[Tailed]:
    """The events of a space, without gaps and repeats."""
    place = StreamPlace(start)
    async with aclosing(connection.stream(path, place)) as frames:
        async for frame in frames:
            place.note_frame(frame)
            if not frame.event:
                yield Tailed(Position.parse(frame.last_id), codec.decode(frame.data))


async def follow_seen(
    connection: "ServerConnection", path: str, start: Position | None
) -> AsyncGenerator[Remembered | Gap]:
    """The events that an agent may see, without repeats. A `Gap` stands for events that the views have dropped."""
    place = StreamPlace(start)
    async with aclosing(connection.stream(path, place)) as frames:
        async for frame in frames:
            place.note_frame(frame)
            if frame.event == "gap":
                yield Gap(Position.parse(_fields(frame)["kept_from"]))
            elif not frame.event:
                yield Remembered.model_validate_json(frame.data)


def _fields(frame: Frame) -> dict[str, Any]:
    try:
        return msgspec.json.decode(frame.data, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise StorageError(f"the stream is damaged: {error}") from None
