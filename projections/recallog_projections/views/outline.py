"""Outline view: of each space, the agents that have taken part in it and its first and newest sessions.

Recall reads it to determine who "you" in a question is, which agents its words name, and which session "our first
conversation" was.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_projections.views import settings
from recallog_schemas import Record, limits


class Participant(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An agent with a memorable event."""

    name: str
    visitor: bool
    """Whether it is the author of an event of a kind with the role `visitor`: a person, such as a user."""


class Outline(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One space, by its memorable events. A session is "" for events without one."""

    participants: tuple[Participant, ...]
    """In the order of their first events; at most `limits.OUTLINE_PARTICIPANTS`."""
    first: str
    """The session of the first event."""
    newest: str
    """The session of the newest event."""
    previous: str | None
    """The session of the newest event of another session than the newest; None if there is one session only."""


OUTLINES = Table("outline.space", Outline)


class OutlineProjection:
    """Fold of every memorable event into one row per space, which changes only with a new agent or session."""

    name: ClassVar[str] = "outline"
    version: ClassVar[int] = 2
    ends_runs: ClassVar[Sequence[str]] = ()
    tables = (OUTLINES,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        plans = settings.plans(rows, space)
        before = after = rows.get(OUTLINES, space)
        visitors = {} if before is None else {each.name: each.visitor for each in before.participants}
        for record in run:
            if not record.memorable:
                continue
            event = record.event
            session, visitor = event.session or "", plans[event.kind].is_visitor
            if after is None:
                after = Outline((Participant(event.agent, visitor),), session, session, None)
                visitors[event.agent] = visitor
                continue
            if session != after.newest:
                after = msgspec.structs.replace(after, newest=session, previous=after.newest)
            known = visitors.get(event.agent)
            if (known is None and len(visitors) < limits.OUTLINE_PARTICIPANTS) or (visitor and known is False):
                visitors[event.agent] = visitor
                after = msgspec.structs.replace(after, participants=_participants(visitors))
        if after is not None and after is not before:
            rows.put(OUTLINES, after, space)


def _participants(visitors: Mapping[str, bool]) -> tuple[Participant, ...]:
    return tuple(Participant(name, visitor) for name, visitor in visitors.items())
