"""The vocabulary of Recallog: events, kinds of events, the codec, the shapes of views, errors and limits."""

from recallog_schemas.event import Event, Position, Record

__all__ = ["Event", "Position", "Record"]
