"""Outline view: of each space, the agents that have taken part in it and its first and newest sessions.

Recall reads it to know who "you" of a question is, which agents its words name, and which session "our first
conversation" was.
"""

from collections.abc import Collection, Sequence
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
    """Whether an event of a kind with the role `visitor` is by it: a person, such as a user."""


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
        newest, known = _state(before)
        for record in run:
            event = record.event
            session, visitor = event.session or "", plans[event.kind].is_visitor
            if not record.memorable or (session == newest and (event.agent, visitor) in known):
                continue
            if after is None:
                after = Outline((Participant(event.agent, visitor),), session, session, None)
            else:
                after = _with_participant(after, event.agent, visitor=visitor)
                if session != after.newest:
                    after = msgspec.structs.replace(after, newest=session, previous=after.newest)
            newest, known = _state(after)
        if after is not None and after is not before:
            rows.put(OUTLINES, after, space)


def _state(outline: Outline | None) -> tuple[str | None, Collection[tuple[str, bool]]]:
    """The newest session, and the agents (and whether as a visitor) by whom an event of it changes nothing."""
    if outline is None:
        return None, ()
    return outline.newest, {(each.name, as_) for each in outline.participants for as_ in (False, each.visitor)}


def _with_participant(outline: Outline, agent: str, *, visitor: bool) -> Outline:
    known = outline.participants
    for number, each in enumerate(known):
        if each.name == agent:
            if not visitor or each.visitor:
                return outline
            known = (*known[:number], Participant(agent, visitor=True), *known[number + 1 :])
            return msgspec.structs.replace(outline, participants=known)
    if len(known) >= limits.OUTLINE_PARTICIPANTS:
        return outline
    return msgspec.structs.replace(outline, participants=(*known, Participant(agent, visitor)))
