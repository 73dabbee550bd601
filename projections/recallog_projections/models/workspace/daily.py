"""Up to where the daily log of an agent has looked at the messages of a session.

It looks at what users and agents say: calls of tools and instructions are messages of a conversation too, and count for
nothing here.
"""

from collections.abc import Sequence

import msgspec

from recallog_projections.models.conversations.projection import SHARED
from recallog_projections.models.conversations.tables import SAID
from recallog_projections.models.items import projection as items
from recallog_projections.models.workspace import documents as workspace
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings
from recallog_schemas import Event, Record, limits
from recallog_schemas.kinds import DailySettings


class Logged(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The last end of a turn after which the daily log looked at a session."""

    said: int
    """How much had been said in the session by then."""
    offset: int
    """The offset of that end of a turn."""


LOGGED = Table("due.logged", Logged)
"""At (space, agent, session)."""

_MEMORY = items.path_of(workspace.NAMESPACE, workspace.MEMORY)


def needs(event: Event) -> Sequence[RowKey]:
    """The rows that say whether enough was said when the turn of `event` ended."""
    if event.session is None:
        return ()
    return (
        RowKey(LOGGED.name, event.space, event.agent, event.session),
        RowKey(SAID.name, event.space, event.agent, event.session),
        RowKey(SAID.name, event.space, SHARED, event.session),
        RowKey(items.ROWS.name, event.space, event.agent, _MEMORY),
    )


def log(rows: Rows, record: Record) -> int | None:
    """The offset behind which the messages are that the daily log looks at now, -1 for all of the session; None if its
    agent has none, or too little was said since the last time."""
    event = record.event
    if event.session is None or not settings_of(rows.get(settings.AGENTS, event.space, event.agent)).enabled:
        return None
    counts = (rows.get(SAID, event.space, owner, event.session) for owner in (event.agent, SHARED))
    said = sum(row.count for row in counts if row is not None)
    before = rows.get(LOGGED, event.space, event.agent, event.session) or Logged(0, -1)
    if said - before.said < limits.DAILY_MESSAGES:
        return None
    rows.put(LOGGED, Logged(said, record.offset), event.space, event.agent, event.session)
    return before.offset


def documents(rows: Rows, event: Event) -> tuple[str, ...]:
    """The documents that get lines besides that of the day: MEMORY.md, if the agent has one with room."""
    row = rows.get(items.ROWS, event.space, event.agent, _MEMORY)
    text = None if row is None else items.value_of(row)
    has_room = isinstance(text, str) and len(text) < limits.MEMORY_DOCUMENT_CHARS
    return (workspace.MEMORY,) if has_room else ()


def settings_of(agent: settings.AgentSettings | None) -> DailySettings:
    """The settings of the daily log of an agent."""
    return DailySettings.model_validate((agent.daily if agent is not None else None) or {})
