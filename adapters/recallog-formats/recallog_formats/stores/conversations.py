"""Conversations in stores: the events that `recallog ingest` makes of the same messages."""

import json
from collections.abc import Iterator, Mapping, Sequence

from recallog import InvalidArgument, InvalidEvent
from recallog_formats.stores.store import Destination, StoreRow
from recallog_service.formats import Options, Source, chat


def conversation_rows(
    session: str, messages: Sequence[object], into: Destination, more: Mapping[str, object] | None = None
) -> Iterator[StoreRow]:
    """The events of a session. `more` has other fields of the conversation, such as its system prompt."""
    place = f"session {session}"
    document = json.dumps({**(more or {}), "id": session, "messages": list(messages)}, default=str).encode()
    try:
        for item in chat.FORMAT.read(Source([document]), Options(into.space, agent=into.agent)):
            left_out = item.left_out and f"{item.left_out} in messages"
            yield StoreRow(
                place,
                item.event,
                item.error,
                left_out,
                opens=item.opens,
                in_sequence=item.in_sequence,
                is_copied=item.is_copied,
                cut=item.cut,
            )
    except (InvalidEvent, InvalidArgument) as error:  # the latter for the name of an agent
        yield StoreRow(place, error=InvalidEvent(str(error), path=error.path, rule=error.rule))
