"""Answers to published events."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ListView


class Published(ListView[Position]):
    """The positions of published events, in the order of the events."""
