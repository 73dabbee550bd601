"""Recallog: event-sourced memory for AI agents.

An agent's memory is not a separate store. It is a set of views computed from one durable ledger.
"""

from recallog.memory import Memory
from recallog.queries.context import Context
from recallog.settings import Settings
from recallog_schemas import Event, Position
from recallog_schemas.errors import RecallogError
from recallog_schemas.views import (
    AroundView,
    BeliefsView,
    EntriesView,
    EpisodicView,
    Explanation,
    Reaction,
    RecallHit,
    RecallView,
    ReflectionView,
    Remembered,
    SalientView,
    SceneView,
    SearchPage,
    TimelinePage,
)

__all__ = [
    "AroundView",
    "BeliefsView",
    "Context",
    "EntriesView",
    "EpisodicView",
    "Event",
    "Explanation",
    "Memory",
    "Position",
    "Reaction",
    "RecallHit",
    "RecallView",
    "RecallogError",
    "ReflectionView",
    "Remembered",
    "SalientView",
    "SceneView",
    "SearchPage",
    "Settings",
    "TimelinePage",
]
