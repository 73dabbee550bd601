"""The reactor of migrations: items of working memory that an agent wants to keep become entries when a session ends."""

from collections.abc import Sequence
from typing import ClassVar

from recallog.access import MemoryAccess
from recallog.operations.parameters import At
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog.reading.readings import AgentReading
from recallog_projections.models.items import projection as items
from recallog_projections.models.long_term import migration
from recallog_schemas import Event
from recallog_schemas.models.long_term.triggers import MIGRATION


class Migration(Reactor):
    """Answers `migration.due` with one `memory.retained` for each text. It costs no units, since nobody requested it.

    A text that the agent already keeps is a duplicate, which the view of entries skips.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({MIGRATION})
    pure: ClassVar[bool] = True

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
        keys = migration.rows_of(trigger.space, trigger.agent, trigger.session, [path for path, _ in trigger.texts])
        found = await self._access.of_agent(trigger.space, trigger.agent, At(), AgentReading.snapshot, keys)
        rows = (found.row(items.ROWS, *key[1:]) for key in keys)
        trigger.read.update(row.offset for row in rows if row is not None)
        return [
            Event(
                space=trigger.space,
                agent=trigger.agent,
                kind="memory.retained",
                payload={
                    "text": text,
                    "type": migration.type_of(text),
                    "metadata": {"migrated_from": f"{trigger.agent}_working_memory", "key": path},
                    "cost": 0,
                },
            )
            for path, text in trigger.texts
        ]
