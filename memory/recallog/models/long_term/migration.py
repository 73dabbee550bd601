"""The reactor of migrations: what an agent wants to keep of its working memory becomes entries when a session ends."""

from collections.abc import Sequence
from typing import ClassVar

from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.models.long_term import migration
from recallog_schemas import Event
from recallog_schemas.models.long_term.triggers import MIGRATION


class Migration(Reactor):
    """Answers `migration.due` with one `memory.retained` for each text, at no cost: nobody asked for it.

    A text that the agent keeps already is a duplicate, which the view of entries skips.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({MIGRATION})
    pure: ClassVar[bool] = True

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
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
