"""Activity view: counts of events by space, agent, session and kind."""

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_schemas import Record

_TICK = "clock.ticked"
"""Its author is a clock, which is no agent of the space."""


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The number of events, and the offsets of the first and the last."""

    events: int
    first: int
    last: int


class AgentSpan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The events of an agent in a space."""

    events: int
    first: int
    last: int
    turn: int
    """The highest turn of its events."""


class SessionSpan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The events of a session in a space."""

    events: int
    first: int
    last: int
    turn: int | None
    """The highest turn of its memorable events; None if it has none."""


class SpaceSpan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The events of a space, and the number of its agents and sessions."""

    events: int
    first: int
    last: int
    agents: int
    sessions: int
    turn: int | None
    """The highest turn of its memorable events; None if it has none."""


class Totals(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The number of spaces, agents and sessions of the partition."""

    spaces: int
    agents: int
    sessions: int


TOTALS = Table("activity.totals", Totals)
SPACES = Table("activity.spaces", SpaceSpan)
AGENTS = Table("activity.agents", AgentSpan)
SESSIONS = Table("activity.sessions", SessionSpan)
KINDS = Table("activity.kinds", Span)


class Activity:
    """Fold of every record, including bookkeeping, into counts. The owner of a row is an agent, session or kind.

    `clock.ticked` counts for no agent. Events that time travel has not reached are not counted.
    """

    name: ClassVar[str] = "activity"
    version: ClassVar[int] = 4
    tables = (TOTALS, SPACES, AGENTS, SESSIONS, KINDS)

    def needs(self, record: Record) -> Iterable[RowKey]:
        event = record.event
        yield RowKey(TOTALS.name, "")
        yield RowKey(SPACES.name, event.space)
        yield RowKey(AGENTS.name, event.space, event.agent)
        yield RowKey(KINDS.name, event.space, event.kind)
        if event.session is not None:
            yield RowKey(SESSIONS.name, event.space, event.session)

    def apply(self, rows: Rows, record: Record) -> None:
        if not record.reached:
            return
        event, offset = record.event, record.offset
        new_agent = event.kind != _TICK and _count_for_agent(rows, record)
        new_session = event.session is not None and _count_in_session(rows, record, event.session)
        kind = rows.get(KINDS, event.space, event.kind) or Span(0, offset, offset)
        rows.put(KINDS, Span(kind.events + 1, kind.first, offset), event.space, event.kind)
        old = rows.get(SPACES, event.space)
        space = old or SpaceSpan(0, offset, offset, 0, 0, None)
        agents, sessions = space.agents + new_agent, space.sessions + new_session
        turn = _turn(space.turn, record)
        rows.put(SPACES, SpaceSpan(space.events + 1, space.first, offset, agents, sessions, turn), event.space)
        if old is None or new_agent or new_session:
            totals = rows.get(TOTALS, "") or Totals(0, 0, 0)
            totals = Totals(totals.spaces + (old is None), totals.agents + new_agent, totals.sessions + new_session)
            rows.put(TOTALS, totals, "")


def _count_for_agent(rows: Rows, record: Record) -> bool:
    """Count one event for its agent; whether it is its first."""
    event, offset = record.event, record.offset
    known = rows.get(AGENTS, event.space, event.agent)
    before = known or AgentSpan(0, offset, offset, event.turn)
    after = AgentSpan(before.events + 1, before.first, offset, max(before.turn, event.turn))
    rows.put(AGENTS, after, event.space, event.agent)
    return known is None


def _count_in_session(rows: Rows, record: Record, session: str) -> bool:
    """Count an event of a session; whether it is the first one."""
    event, offset = record.event, record.offset
    old = rows.get(SESSIONS, event.space, session)
    span = old or SessionSpan(0, offset, offset, None)
    turn = _turn(span.turn, record)
    rows.put(SESSIONS, SessionSpan(span.events + 1, span.first, offset, turn), event.space, session)
    return old is None


def _turn(highest: int | None, record: Record) -> int | None:
    """The highest turn of memorable events, after an event."""
    return max(record.event.turn, highest or 0) if record.memorable else highest
