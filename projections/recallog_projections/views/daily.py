"""The messages of sessions that the daily logs of their agents have not looked at yet.

A message is a `user.injected` or an `agent.spoke` of a session that the agent can see: calls of tools, thoughts and
what the world did are none. Events without a session count as one session.

Messages are counted where they are written: in a row of each agent that sees one, or, if all agents of the space see
it, in one row for all of them. So a shared message costs the same however many agents there are.
"""

from collections.abc import Iterable

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings, visibility
from recallog_schemas import Event, Record, limits
from recallog_schemas.kinds import DailySettings

KINDS = frozenset({"user.injected", "agent.spoke"})
"""The kinds of messages."""


class Messages(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The messages of one session that one agent sees, or all agents."""

    count: int
    """How many there are."""
    first: int
    """The offset of the first one."""
    logged: int = 0
    """Of an agent's: how many of these and of those for all there were when its turn last ended with enough of them."""
    logged_at: int = -1
    """The offset of that end of a turn; -1 if there was none."""


MESSAGES = Table("due.messages", Messages)
"""At (space, agent, session), with the agent "" for messages that all agents see, and the session "" for none."""


def needs(event: Event) -> Iterable[RowKey]:
    """The rows that a message, or the end of a turn, may change."""
    if event.kind in KINDS and event.audience is not None:
        return [_key(event, reader) for reader in visibility.readers(event)]
    return (_key(event, event.agent), _key(event, ""), RowKey(settings.SPACES.name, event.space))


def count(rows: Rows, record: Record) -> None:
    """Count a message."""
    event = record.event
    shared = event.audience is None and visibility.is_shared(event, rows.get(settings.SPACES, event.space))
    for reader in ("",) if shared else visibility.readers(event):
        row = _row(rows, event, reader) or Messages(0, record.offset)
        _put(rows, event, reader, msgspec.structs.replace(row, count=row.count + 1))


def since(rows: Rows, event: Event) -> int | None:
    """The offset behind which the messages are that the daily log has not looked at; None: the turn ends too early."""
    own, shared = _row(rows, event, event.agent), _row(rows, event, "")
    if _total(own, shared) - (own.logged if own is not None else 0) < limits.DAILY_MESSAGES:
        return None
    if own is not None and own.logged_at >= 0:
        return own.logged_at
    return min(row.first for row in (own, shared) if row is not None) - 1


def log(rows: Rows, record: Record) -> None:
    """Note that the daily log looks at all messages so far."""
    event = record.event
    own, shared = _row(rows, event, event.agent), _row(rows, event, "")
    row = own or Messages(0, record.offset)
    row = msgspec.structs.replace(row, logged=_total(own, shared), logged_at=record.offset)
    _put(rows, event, event.agent, row)


def is_logged(agent: settings.AgentSettings | None) -> bool:
    """Whether an agent with these settings has a daily log."""
    return settings_of(agent).enabled


def settings_of(agent: settings.AgentSettings | None) -> DailySettings:
    """The settings of the daily log of an agent."""
    return DailySettings.model_validate((agent.daily if agent is not None else None) or {})


def _total(*rows: Messages | None) -> int:
    return sum(row.count for row in rows if row is not None)


def _key(event: Event, reader: str) -> RowKey:
    return RowKey(MESSAGES.name, event.space, reader, event.session or "")


def _row(rows: Rows, event: Event, reader: str) -> Messages | None:
    return rows.get(MESSAGES, *_key(event, reader)[1:])


def _put(rows: Rows, event: Event, reader: str, row: Messages) -> None:
    rows.put(MESSAGES, row, *_key(event, reader)[1:])
