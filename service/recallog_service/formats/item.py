"""The items that readers yield: an event, or the error at that position of the input."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from recallog_schemas import Event, codec
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.invented_times import INVENTED_FROM
from recallog_schemas.kinds.trust import SourceClass

DEFAULT_START = INVENTED_FROM
"""Missing times are counted from here. It is a constant, because the same file must always give the same events."""

ID_NAMESPACE = UUID("6f1c2a52-93c7-5b0e-8d0a-7d5f5b1e4c11")
"""The namespace of derived ids. If it changed, files that were ingested before would be added again."""


@dataclass(frozen=True, slots=True)
class Item:
    """One parsed piece of input: exactly one of `event`, `error` and `left_out` is set."""

    number: int
    """The line, or the ordinal of the conversation; both from 1."""
    event: Event | None = None
    error: InvalidEvent | None = None
    left_out: str | None = None
    """The type of a part of the input that does not become an event."""
    cut: str | None = None
    """Where a text of the event was cut to the size limit, and how much is missing."""
    opens: bool = False
    """Whether the event belongs to the opening of its conversation. An opening is written completely or not at all."""
    appended: int | None = None
    """When the event was first appended to the exported ledger, in milliseconds since 1970; 0: unknown. None: the event
    does not come from an export."""
    in_sequence: bool = False
    """Whether a refusal of the event also refuses the rest of its conversation."""
    is_copied: bool = False
    """Whether other files may repeat the event: in another session, or with less or more of its text."""
    trust: SourceClass | None = None
    """The source class that the event states, unless the caller names one. None: that of its kind."""


def derived_id(space: str, session: str | None, key: object) -> str:
    """The id for an event without an id in a session. It is the same in every run.

    `key` identifies the event in its session, for example by its ordinal among those without an id.
    """
    return str(uuid5(ID_NAMESPACE, json.dumps([space, session, key])))


def make_item(number: int, location: str, fields: Mapping[str, Any]) -> Item:
    """The event with these fields, or the codec's error, prefixed by `location`."""
    try:
        return Item(number, event=codec.make(dict(fields)))
    except InvalidEvent as error:
        return refuse_item(number, location, error)


def refuse_item(number: int, location: str, error: InvalidEvent) -> Item:
    """`error` prefixed by its location ("line 57: payload.text: ..."), with the same class, path and rule."""
    return Item(number, error=type(error)(f"{location}: {error}", path=error.path, rule=error.rule))
