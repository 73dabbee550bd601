"""The inventory of an agent's blocks, for the difference of its memory between two moments."""

from collections.abc import Collection, Mapping

from recallog.models.working.blocks import WORKING, content_of, rows_of
from recallog.queries.difference import KnownItem
from recallog.reading.readings import AgentReading


class BlocksInventory:
    """The blocks of the agent's working memory, by label."""

    section = "blocks"

    async def take(self, reading: AgentReading) -> Mapping[str, KnownItem]:
        _, rows = await rows_of(reading, reading.space, reading.agent, WORKING, None)
        return {label: KnownItem(content_of(row)) for label, row in rows.items()}

    async def explain_left(self, reading: AgentReading, ids: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(ids, "deleted")
