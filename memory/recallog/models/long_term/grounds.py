"""Entries as grounds of other texts: which of them were erased, retracted, corrected or superseded."""

from collections.abc import Collection, Mapping

from recallog.models.long_term import entry_presence, standing
from recallog.models.long_term.entry_lookup import FoundEntry, entries_by_id
from recallog.queries.grounds import GroundLoss
from recallog.reading.readings import AgentReading
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term import tables


async def find_losses(reading: AgentReading, ids: Collection[str]) -> Mapping[str, GroundLoss]:
    """The losses among entries that the agent may read, or could read until they were retracted, by id.

    An erased entry no longer has readers. Only its owner learns of the erasure.
    """
    if not entry_presence.has_entries(await reading.snapshot(entry_presence.rows(reading.space)), reading.space):
        return {}
    found = await entries_by_id(reading, reading.space, ids)
    read = {id_: each for id_, each in found.items() if _could_read(reading.agent, each)}
    live = [each.row for each in read.values() if each.row is not None and each.ref.status == tables.LIVE]
    places = await standing.places_of(reading, live)
    losses: dict[str, GroundLoss] = {}
    for id_, (ref, row) in read.items():
        if ref.status in (tables.ERASED, tables.RETRACTED):
            losses[id_] = GroundLoss("erased" if ref.status == tables.ERASED else "retracted")
        elif row is not None and row.offset in places and (later := places[row.offset].followed_by) is not None:
            losses[id_] = GroundLoss("superseded", later.offset)
        elif row is not None and row.version > 1:
            losses[id_] = GroundLoss("corrected", row.since)
    return losses


def _could_read(agent: str, entry: FoundEntry) -> bool:
    row = entry.row
    return entry.ref.owner == agent if row is None else entry_reading.may_read(agent, row)
