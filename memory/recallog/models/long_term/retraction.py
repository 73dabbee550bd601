"""The reactor of retractions: retracts the entries that were made from erased or retracted ones."""

from collections.abc import Sequence
from typing import ClassVar

from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_schemas import Event
from recallog_schemas.models.long_term.triggers import RETRACTION

REASON = "source_erased"
"""The reason of these retractions."""


class Retraction(Reactor):
    """Answers `retraction.due` with one `memory.retracted` for each dependent of the retracted entry.

    The view of entries applies them regardless of the owner, since one of their sources is lost.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({RETRACTION})
    pure: ClassVar[bool] = True

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
        return [
            Event(
                space=trigger.space,
                agent=trigger.agent,
                kind="memory.retracted",
                payload={"entry": entry, "reason": REASON},
            )
            for entry in trigger.entries
        ]
