"""Consensuses as grounds of other texts: which of them were superseded."""

from collections.abc import Collection, Mapping

from recallog.models.consensus.queries import rows_of
from recallog.queries.grounds import GroundLoss
from recallog.reading.readings import AgentReading
from recallog_projections.models.consensus.projection import may_read


async def find_losses(reading: AgentReading, ids: Collection[str]) -> Mapping[str, GroundLoss]:
    """The losses among consensuses that the agent may see, by id. Readers of a consensus also see its successor."""
    rows = await rows_of(reading, reading.space, ids)
    by = {id_: row.superseded_by for id_, row in rows.items() if may_read(reading.agent, row.readers)}
    later = await rows_of(reading, reading.space, {each for each in by.values() if each is not None})
    return {id_: GroundLoss("superseded", later[each].offset) for id_, each in by.items() if each in later}
