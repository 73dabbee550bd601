"""What the daily log of an agent is written from: the messages of a session, its settings, and its MEMORY.md."""

from collections.abc import Sequence
from typing import NamedTuple

from recallog.queries import turns
from recallog.queries.turns import Turn
from recallog.reading.read_session import ReadSession
from recallog_projections.tables import RowKey
from recallog_projections.views import daily, items, settings, workspace
from recallog_schemas import limits
from recallog_schemas.kinds.settings import CueLanguage
from recallog_schemas.views import Remembered
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.progress import Progress

MESSAGES = daily.KINDS
"""The kinds of messages."""


class Session(NamedTuple):
    """See `recallog.reactors.daily.LoggedSession`."""

    messages: Sequence[Remembered]
    language: CueLanguage
    takes_memory: bool


async def session_of(
    reading: ReadSession, ledger: Ledger, turn: Turn, log_events: int, progress: Progress | None
) -> Session:
    """What a daily log is written from when `turn`, which begins where the log was last written, has ended."""
    messages = await turns.events_of(reading, ledger, turn, log_events, progress)
    configured = RowKey(settings.AGENTS.name, turn.space, turn.agent)
    memory = RowKey(items.ROWS.name, turn.space, turn.agent, items.path_of(workspace.NAMESPACE, workspace.MEMORY))
    snapshot = await reading.snapshot([configured, memory])
    row = snapshot.row(items.ROWS, *memory[1:])
    text = None if row is None else items.value_of(row)
    return Session(
        messages,
        daily.settings_of(snapshot.row(settings.AGENTS, *configured[1:])).language,
        isinstance(text, str) and len(text) < limits.MEMORY_DOCUMENT_CHARS,
    )
