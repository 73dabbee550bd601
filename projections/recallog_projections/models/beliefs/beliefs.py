"""Beliefs view: the reflections of each agent, and which of them other agents may read."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Log
from recallog_projections.views import settings, visibility
from recallog_schemas import Event, Record
from recallog_schemas.models.beliefs import limits as beliefs_limits

KIND = "agent.reflected"


class BeliefRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One reflection: its offset, and its bytes in the ledger."""

    offset: int
    shared: bool
    """Whether every agent of the space may see it, by the settings when it was folded."""
    data: bytes


BELIEFS = Log("beliefs", BeliefRow, beliefs_limits.BELIEFS_KEPT)


class BeliefsProjection:
    """Fold of `agent.reflected` into one log per agent."""

    name: ClassVar[str] = "beliefs"
    version: ClassVar[int] = 1
    kinds = frozenset({KIND})
    ends_runs: ClassVar[Sequence[str]] = ()
    tables = (BELIEFS,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            if record.memorable:
                shared = visibility.is_shared(event, rows.get(settings.SPACES, event.space))
                rows.append(BELIEFS, BeliefRow(record.offset, shared, record.data), event.space, event.agent)


def may_read(reader: str, belief: BeliefRow, event: Event) -> bool:
    """Whether `reader` may see the belief; `event` is its event."""
    return belief.shared or reader in visibility.readers(event)
