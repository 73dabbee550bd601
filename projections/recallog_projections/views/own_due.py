"""Triggers of a user's projection: due work that it names, in tables of its own, closed when it is answered.

A projection that has a method `due(rows, record)` is folded together with one that keeps `due.now` for it.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import msgspec

from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_projections.views import due
from recallog_schemas import Record, triggers
from recallog_schemas.errors import ProjectionError


class Due(NamedTuple):
    """A trigger that an event makes due. One event makes a trigger of the same kind, agent and part due once."""

    kind: str
    """A name of your own that ends in `.due`, such as `greeting.due`."""
    agent: str
    """The agent that is to answer."""
    part: str = ""
    """What tells several triggers of one kind apart that one event makes due for one agent."""
    texts: tuple[tuple[str, str], ...] = ()
    """Texts for the reactor, each with a name."""
    entries: tuple[str, ...] = ()
    """Ids of entries or events for the reactor."""


class NamesDue(Protocol):
    """A projection that makes triggers due."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        """The triggers that the record makes due. It is called after `apply`, for the same kinds, and may read rows."""


class OwnDue:
    """Folds what another projection names into `due.now`, and closes what was answered."""

    tables = (due.NOW, due.STANDING)

    def __init__(self, projection: Projection, names: NamesDue) -> None:
        self.name = f"{projection.name}_due"
        self.version = projection.version  # what is due follows from its code
        self._names = names
        self._causes = getattr(projection, "kinds", None)
        if self._causes is not None:
            self.kinds = frozenset(self._causes) | triggers.CLOSINGS

    def needs(self, record: Record) -> Iterable[RowKey]:
        return due.closing_needs(record)

    def further_needs(self, rows: Rows, record: Record) -> Iterable[RowKey]:
        return due.closed_needs(rows, record)

    def apply(self, rows: Rows, record: Record) -> None:
        if not record.reached:
            return
        if record.event.kind in triggers.CLOSINGS:
            due.close(rows, record)
        if self._causes is not None and record.event.kind not in self._causes:
            return
        found = [(each, _trigger(each, record)) for each in self._names.due(rows, record)]
        space = record.event.space
        rows.require(RowKey(due.STANDING.name, space, "", trigger.id) for _, trigger in found)
        rows.require(
            RowKey(due.NOW.name, "", "", due.now_key(record.offset, space, trigger, each.agent, number))
            for number, (each, trigger) in enumerate(found)
        )
        for number, (each, trigger) in enumerate(found):
            work = due.work_of(record, trigger, each.agent)
            due.put(rows, msgspec.structs.replace(work, texts=each.texts, entries=each.entries), trigger, number)


def _trigger(each: Due, record: Record) -> triggers.Trigger:
    """Raises `ProjectionError` for a kind that is not a user's."""
    trigger = triggers.caused_by(each.kind, record.event.space, each.agent, each.part, record.event.id)
    if each.kind in triggers.KINDS or triggers.parse(trigger.id) is None:
        raise ProjectionError(
            f"{each.kind!r} cannot name a trigger of your own: use up to 32 lower case letters and _ before .due, and "
            f"none of {', '.join(sorted(triggers.KINDS))}"
        )
    return trigger
