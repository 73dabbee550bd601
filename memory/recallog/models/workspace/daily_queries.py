"""The input of the daily log of an agent: what was said in a session, and its settings."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recallog.access import MemoryAccess
from recallog.models.conversations import reading as stored
from recallog.operations.parameters import At
from recallog.reactors.reactor import DueTrigger
from recallog.reading.readings import AgentReading
from recallog_projections.models.conversations import rendering
from recallog_projections.models.conversations.tables import ConversationKey, MessageRow
from recallog_projections.models.workspace import daily
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import Event
from recallog_schemas.kinds.settings import CueLanguage
from recallog_schemas.models.workspace import limits as workspace_limits
from recallog_schemas.roles import ASSISTANT, USER

_SAID = frozenset({rendering.USER_SAID, rendering.AGENT_SAID})
_SPEAKERS = frozenset({USER, ASSISTANT})


class DailySession(NamedTuple):
    """The input of a daily log."""

    said: Mapping[int, Event]
    """The newest statements in the session that are from a source from which the space makes facts, and that the log
    has not read yet, by offset, oldest first."""
    language: CueLanguage
    """The language of the lines."""


async def session_of(reading: AgentReading, conversation: ConversationKey, since: int, until: int) -> DailySession:
    """The input of a daily log: what was said in a conversation between two offsets.

    Messages that were removed from the conversation are left out.
    """

    async def read(session: AgentReading) -> DailySession:
        configured = RowKey(settings.AGENTS.name, conversation.space, conversation.agent)
        snapshot = await session.snapshot([configured, RowKey(settings.SPACES.name, conversation.space)])
        language = daily.settings_of(snapshot.row(settings.AGENTS, *configured[1:])).language
        sources = SourceClasses(snapshot.row(settings.SPACES, conversation.space))
        said = await _newest_said(session, conversation, since, until)
        trusted = {offset: event for offset, event in said.items() if sources.allows("facts", event)}
        return DailySession(trusted, language)

    return await reading.steady(read)


async def of_trigger(access: MemoryAccess, trigger: DueTrigger, session: str) -> DailySession:
    """The input of the daily log of a trigger's agent."""
    of = ConversationKey(trigger.space, trigger.agent, session)
    return await access.of_agent(trigger.space, trigger.agent, At(), session_of, of, trigger.since, trigger.offset)


async def _newest_said(
    reading: AgentReading, conversation: ConversationKey, since: int, until: int
) -> Mapping[int, Event]:
    """The newest `workspace_limits.DAILY_SCANNED` statements between the offsets, oldest first."""
    most = workspace_limits.DAILY_SCANNED
    found: list[tuple[int, Event]] = []
    rows: list[MessageRow] = []
    async for row in stored.rows_of(reading, conversation, newest_first=True, page=2 * most):
        if row.offset <= since:
            break
        if row.offset < until and row.role in _SPEAKERS:
            rows.append(row)
        if len(rows) == most:
            found += await _find_spoken(reading, conversation, rows)
            rows = []
            if len(found) >= most:
                break
    found += await _find_spoken(reading, conversation, rows)
    return dict(found[:most][::-1])


async def _find_spoken(
    reading: AgentReading, conversation: ConversationKey, rows: Sequence[MessageRow]
) -> list[tuple[int, Event]]:
    """The events of `rows` in which somebody says something, without those that only call tools."""
    events = await stored.events_of(reading, conversation, rows)
    return [(row.offset, each) for row, each in zip(rows, events, strict=True) if each.kind in _SAID]
