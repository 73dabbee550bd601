"""Beliefs view: the reflections of each agent, and which of them other agents may read.

Beliefs with subjects are also in logs by reader, from which queries compute their graph. A belief without a subject
writes nothing there. Reflections from less trusted sources than agents have logs of their own: by default no beliefs
are made from them, and they must not push out beliefs.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Log
from recallog_projections.views import settings, visibility
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import Event, Record
from recallog_schemas.kinds.trust import is_untrusted
from recallog_schemas.models.beliefs import limits as beliefs_limits

KIND = "agent.reflected"


class BeliefRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One reflection: its offset, and its bytes in the ledger."""

    offset: int
    shared: bool
    """Whether every agent of the space may see it, by the settings when it was folded."""
    data: bytes


BELIEFS = Log("beliefs", BeliefRow, beliefs_limits.BELIEFS_KEPT)
ABOUT = Log("beliefs.about", BeliefRow, beliefs_limits.ABOUT_KEPT)
"""Beliefs with subjects, by reader. The reader "" stands for all agents of the space. A log for each reader, so that a
belief that a reader may not see does not push one out that it sees."""
UNTRUSTED = Log("beliefs.untrusted", BeliefRow, beliefs_limits.BELIEFS_KEPT)
"""As `BELIEFS`, for reflections whose source class is below that of agents when they are folded."""
UNTRUSTED_ABOUT = Log("beliefs.untrusted.about", BeliefRow, beliefs_limits.ABOUT_KEPT)
"""As `ABOUT`, for the reflections of `UNTRUSTED`."""


class BeliefsProjection:
    """Fold of `agent.reflected` into one log per agent, and one per reader of beliefs with subjects."""

    name: ClassVar[str] = "beliefs"
    version: ClassVar[int] = 3
    kinds = frozenset({KIND})
    ends_runs: ClassVar[Sequence[str]] = ()
    tables = (BELIEFS, ABOUT, UNTRUSTED, UNTRUSTED_ABOUT)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            if record.memorable:
                space = rows.get(settings.SPACES, event.space)
                shared = visibility.is_shared(event, space)
                row = BeliefRow(record.offset, shared, record.data)
                untrusted = is_untrusted(SourceClasses(space).class_of(event))
                rows.append(UNTRUSTED if untrusted else BELIEFS, row, event.space, event.agent)
                for reader in _log_readers(event, shared) if event.payload.get("about") else ():
                    rows.append(UNTRUSTED_ABOUT if untrusted else ABOUT, row, event.space, reader)


def _log_readers(event: Event, shared: bool) -> tuple[str, ...]:
    return ("",) if shared else visibility.readers(event)


def may_read(reader: str, belief: BeliefRow, event: Event) -> bool:
    """Whether `reader` may see the belief; `event` is its event."""
    return belief.shared or reader in visibility.readers(event)
