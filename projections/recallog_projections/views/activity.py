"""Activity view: counts of events by space, agent, session and kind."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_schemas import Record

_TICK = "clock.ticked"
"""Its author is a clock, which is not an agent of the space."""


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


def _sum(one: Totals, other: Totals) -> Totals:
    return Totals(one.spaces + other.spaces, one.agents + other.agents, one.sessions + other.sessions)


TOTALS = Table("activity.totals", Totals, add=_sum)
SPACES = Table("activity.spaces", SpaceSpan)
AGENTS = Table("activity.agents", AgentSpan)
SESSIONS = Table("activity.sessions", SessionSpan)
KINDS = Table("activity.kinds", Span)


class ActivityProjection:
    """Fold of every record, including bookkeeping, into counts. The owner of a row is an agent, session or kind.

    `clock.ticked` counts for no agent. Events that time travel has not reached are not counted.
    """

    name: ClassVar[str] = "activity"
    version: ClassVar[int] = 4
    ends_runs: ClassVar[Sequence[str]] = ()
    independent = True
    tables = (TOTALS, SPACES, AGENTS, SESSIONS, KINDS)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        of_space, by_agent, by_session, by_kind = _Counted(), _Tally(), _Tally(), _Tally()
        for record in run:
            if not record.reached:
                continue
            event, offset, turn = record.event, record.offset, record.event.turn
            memorable_turn = turn if record.memorable else -1
            of_space.add(offset, memorable_turn)
            by_kind[event.kind].add(offset, turn)
            if event.kind != _TICK:
                by_agent[event.agent].add(offset, turn)
            if event.session is not None:
                by_session[event.session].add(offset, memorable_turn)
        if of_space.events:
            for kind, counted in by_kind.items():
                _put_kind(rows, space, kind, counted)
            agents = sum([_put_agent(rows, space, agent, counted) for agent, counted in by_agent.items()])
            sessions = sum([_put_session(rows, space, session, counted) for session, counted in by_session.items()])
            _put_space(rows, space, of_space, agents, sessions)


class _Counted:
    """What a run adds to a span."""

    __slots__ = ("events", "first", "last", "turn")

    def __init__(self) -> None:
        self.events, self.first, self.last, self.turn = 0, 0, 0, -1

    def add(self, offset: int, turn: int) -> None:
        if not self.events:
            self.first = offset
        self.events += 1
        self.last = offset
        if turn > self.turn:
            self.turn = turn

    def highest_turn(self, before: int | None) -> int | None:
        """The highest turn, after the one `before` this run."""
        return before if self.turn < 0 else max(self.turn, before or 0)


class _Tally(dict[str, _Counted]):
    def __missing__(self, name: str) -> _Counted:
        self[name] = counted = _Counted()
        return counted


def _put_kind(rows: Rows, space: str, kind: str, counted: _Counted) -> None:
    known = rows.get(KINDS, space, kind)
    events, first = (0, counted.first) if known is None else (known.events, known.first)
    rows.put(KINDS, Span(events + counted.events, first, counted.last), space, kind)


def _put_agent(rows: Rows, space: str, agent: str, counted: _Counted) -> bool:
    """Count events for their agent. Returns whether they are its first."""
    known = rows.get(AGENTS, space, agent)
    events, first, turn = (0, counted.first, 0) if known is None else (known.events, known.first, known.turn)
    after = AgentSpan(events + counted.events, first, counted.last, max(turn, counted.turn))
    rows.put(AGENTS, after, space, agent)
    return known is None


def _put_session(rows: Rows, space: str, session: str, counted: _Counted) -> bool:
    """Count events of a session. Returns whether they are its first."""
    known = rows.get(SESSIONS, space, session)
    events, first, turn = (0, counted.first, None) if known is None else (known.events, known.first, known.turn)
    after = SessionSpan(events + counted.events, first, counted.last, counted.highest_turn(turn))
    rows.put(SESSIONS, after, space, session)
    return known is None


def _put_space(rows: Rows, space: str, counted: _Counted, new_agents: int, new_sessions: int) -> None:
    old = rows.get(SPACES, space)
    known = old or SpaceSpan(0, counted.first, 0, 0, 0, None)
    agents, sessions = known.agents + new_agents, known.sessions + new_sessions
    events, turn = known.events + counted.events, counted.highest_turn(known.turn)
    rows.put(SPACES, SpaceSpan(events, known.first, counted.last, agents, sessions, turn), space)
    if old is None or new_agents or new_sessions:
        totals = rows.get(TOTALS, "") or Totals(0, 0, 0)
        totals = Totals(totals.spaces + (old is None), totals.agents + new_agents, totals.sessions + new_sessions)
        rows.put(TOTALS, totals, "")
