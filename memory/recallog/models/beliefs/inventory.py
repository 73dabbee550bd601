"""The inventory of an agent's beliefs, for the difference of its memory between two moments."""

from collections.abc import Collection, Mapping

from recallog.models.beliefs import queries
from recallog.queries.difference import KnownItem
from recallog.reading.readings import AgentReading
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas.models.beliefs import limits as beliefs_limits


class BeliefsInventory:
    """The newest beliefs of the agent."""

    section = "beliefs"

    async def take(self, reading: AgentReading) -> Mapping[str, KnownItem]:
        logs = queries.belief_logs(reading.space, reading.agent, beliefs_limits.BELIEFS_KEPT)
        snapshot = await reading.snapshot([RowKey(settings.SPACES.name, reading.space)], logs)
        believed = queries.find_beliefs(snapshot, reading.space, reading.agent)
        return {each.event.id: KnownItem(each.text) for each in believed}

    async def explain_left(self, reading: AgentReading, ids: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(ids, f"older than the newest {beliefs_limits.BELIEFS_KEPT}")
