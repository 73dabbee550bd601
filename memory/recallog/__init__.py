"""Recallog: event-sourced memory for AI agents.

An agent's memory is not a separate store. It is a set of views computed from one durable ledger.
"""

from recallog.memory import Memory
from recallog.settings import Settings
from recallog_schemas import Event, Position
from recallog_schemas.errors import RecallogError
from recallog_schemas.views import EpisodicView, Remembered, TimelinePage

__all__ = [
    "EpisodicView",
    "Event",
    "Memory",
    "Position",
    "RecallogError",
    "Remembered",
    "Settings",
    "TimelinePage",
]
