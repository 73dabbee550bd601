"""The daily log of an agent: how far it has read the messages of a session, and when it is due.

It reads what users and agents say. Calls of tools and instructions are messages of a conversation too, but do not count
here.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from recallog_projections.models.conversations.projection import SHARED
from recallog_projections.models.conversations.tables import NEWEST
from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_projections.views import settings
from recallog_projections.views.due import Due
from recallog_schemas import Event, Record
from recallog_schemas.kinds import DailySettings
from recallog_schemas.models.items import limits as items_limits
from recallog_schemas.models.workspace import limits as workspace_limits
from recallog_schemas.models.workspace.triggers import DAILY


class Logged(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The last end of a turn after which the daily log read a session."""

    said: int
    """How much had been said in the session by then."""
    offset: int
    """The offset of that end of a turn."""


_DEFAULTS = DailySettings()
_NEVER = Logged(0, -1)
LOGGED = Table("due.logged", Logged)
"""At (space, agent, session)."""

_MEMORY = items.path_of(fact_blocks.WORKSPACE, fact_blocks.MEMORY)


class DailyLogs:
    """Fold of the ends of turns. If enough was said in the session since the daily log read it, the daily log is due:
    what was asked for and done becomes lines. The entries of the trigger are the documents that get lines besides that
    of the day."""

    name: ClassVar[str] = "daily_logs"
    version: ClassVar[int] = 1
    kinds = frozenset({"turn.ended"})
    tables = (LOGGED,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            if event.session is None or not record.reached:
                continue
            if not settings_of(rows.get(settings.AGENTS, event.space, event.agent)).enabled:
                continue
            counts = (rows.get(NEWEST, event.space, owner, event.session) for owner in (event.agent, SHARED))
            said = sum(row.said for row in counts if row is not None)
            before = rows.get(LOGGED, event.space, event.agent, event.session) or _NEVER
            if said - before.said >= workspace_limits.DAILY_MESSAGES:
                rows.put(LOGGED, Logged(said, record.offset), event.space, event.agent, event.session)

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        event = record.event
        for before, logged in rows.list_written(LOGGED):
            if logged is not None:
                since = (before or _NEVER).offset
                yield Due(DAILY, event.agent, entries=_documents(rows, event), since=since, cause=event.id)


def _documents(rows: Rows, event: Event) -> tuple[str, ...]:
    """The documents that get lines besides that of the day: MEMORY.md, if the agent has one with room."""
    row = rows.get(items.ROWS, event.space, event.agent, _MEMORY)
    text = None if row is None else items.value_of(row)
    has_room = isinstance(text, str) and len(text) < items_limits.MEMORY_DOCUMENT_CHARS
    return (fact_blocks.MEMORY,) if has_room else ()


def settings_of(agent: settings.AgentSettings | None) -> DailySettings:
    """The settings of the daily log of an agent."""
    return DailySettings.model_validate(agent.daily) if agent is not None and agent.daily else _DEFAULTS
