"""Verdicts on commands: events by which an agent asks for a change.

A projection decides in the order of the ledger, and never by an exception. A change that it refuses alters nothing, and
is noted in a log by the agent of the event; a change without a note was made. So a command that succeeds adds no row,
and there are at most as many notes as a log retains.
"""

import msgspec

from recallog_projections.tables import Log
from recallog_schemas import limits


class Refusal(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A change that was refused, or a part of it."""

    event: str
    """The id of the event that asks for it."""
    why: str | dict[str, str]
    """The reason, in the words of the projection; for a change of several things, the reason by the id of each that
    was not changed."""


def log_of_refusals(name: str) -> Log[Refusal]:
    """A log of refusals, by (space, agent of the event)."""
    return Log(name, Refusal, limits.LOG_EVENTS_KEPT)
