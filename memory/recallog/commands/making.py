"""Making the events of commands from the arguments of a call."""

from collections.abc import Mapping
from typing import Any

import uuid_utils

from recallog_schemas import Event, codec
from recallog_schemas.errors import EventTooLarge, InvalidArgument, InvalidEvent


def make_event(
    space: str, agent: str, kind: str, payload: Mapping[str, Any], event_id: str | None = None, **envelope: Any
) -> Event:
    """A new event. Without an id, it gets a new one.

    Raises `InvalidArgument`, which names the field of the payload, and `EventTooLarge`.
    """
    fields = {"id": event_id or str(uuid_utils.uuid7()), "space": space, "agent": agent, "kind": kind}
    try:
        return codec.make({**fields, **envelope, "payload": dict(payload)})
    except EventTooLarge:
        raise
    except InvalidEvent as error:
        path = error.path.removeprefix("payload.")
        message = str(error).removeprefix(error.path).removeprefix(": ")
        raise InvalidArgument(f"{path}: {message}", path=path, rule=error.rule) from None
