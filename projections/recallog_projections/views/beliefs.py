"""What an agent has come to believe: its own reflections, and which of them others may read."""

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, RowKey
from recallog_projections.views import settings, visibility
from recallog_schemas import Event, Record, limits

KIND = "agent.reflected"


class BeliefRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One reflection: where it lies, and its bytes as they stand in the ledger."""

    offset: int
    shared: bool
    """Every agent of the space could see it when it was said."""
    data: bytes


BELIEFS = Log("beliefs", BeliefRow, limits.BELIEFS_KEPT)


class Beliefs:
    """Fold of `agent.reflected` into one log per agent."""

    name: ClassVar[str] = "beliefs"
    version: ClassVar[int] = 1
    kinds = frozenset({KIND})
    tables = (BELIEFS,)

    def needs(self, record: Record) -> Iterable[RowKey]:
        return (RowKey(settings.SPACES.name, record.event.space),)

    def apply(self, rows: Rows, record: Record) -> None:
        event = record.event
        if record.memorable:
            shared = visibility.is_shared(event, rows.get(settings.SPACES, event.space))
            rows.append(BELIEFS, BeliefRow(record.offset, shared, record.data), event.space, event.agent)


def may_read(reader: str, belief: BeliefRow, event: Event) -> bool:
    """Whether `reader` may see the belief that `event` is."""
    return belief.shared or reader in visibility.readers(event)
