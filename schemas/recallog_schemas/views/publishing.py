"""Answers to published events."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ListView, View


class Published(ListView[Position]):
    """The positions of published events, in the order of the events."""


class Recorded(View):
    """An event that was written and that the views contain."""

    id: str
    """The id of the event."""
    position: Position
    """Its position."""
