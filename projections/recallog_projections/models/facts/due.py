"""Work that the end of a turn makes due: the extraction of facts from what the agent could see in it."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings
from recallog_projections.views.due import Due
from recallog_schemas import Event, Record
from recallog_schemas.models.facts.triggers import EXTRACTION


class TurnEnd(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The newest end of a turn."""

    offset: int


TURNS = Table("due.turns", TurnEnd)
"""At (space, agent, session); the session is "" for turns without one."""


class Turns:
    """Fold of the ends of turns. If the agent's settings say so, the extraction of facts from the turn is due. A turn
    is everything after the one before it in the session."""

    name: ClassVar[str] = "turns"
    version: ClassVar[int] = 1
    kinds = frozenset({"turn.ended"})
    tables = (TURNS,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if record.reached:
                rows.put(TURNS, TurnEnd(record.offset), *_turn_key(record.event)[1:])

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        event = record.event
        configured = rows.get(settings.AGENTS, event.space, event.agent)
        if configured is None or configured.extract_facts is not True:
            return ()
        before = rows.before(TURNS, *_turn_key(event)[1:])
        return (Due(EXTRACTION, event.agent, since=-1 if before is None else before.offset, cause=event.id),)


def _turn_key(event: Event) -> RowKey:
    return RowKey(TURNS.name, event.space, event.agent, event.session or "")
