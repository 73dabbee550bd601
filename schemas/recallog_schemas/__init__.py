"""What is said: the event envelope, the catalogue of kinds, the codec, the views' shapes, errors and limits."""

from recallog_schemas.event import Event, Position, Record

__all__ = ["Event", "Position", "Record"]
