"""The inventory of the entries that an agent may read, for the difference of its memory between two moments."""

from collections.abc import Collection, Mapping

from recallog.models.long_term import additions, live_entries, standing
from recallog.models.long_term.entry_lookup import FoundEntry, entries_by_id
from recallog.queries.difference import KnownItem
from recallog.reading.readings import AgentReading
from recallog_projections.models.long_term.tables import LIVE


class EntriesInventory:
    """The live entries that an agent may read."""

    section = "entries"

    async def take(self, reading: AgentReading) -> Mapping[str, KnownItem]:
        rows = await live_entries.readable(reading, reading.space, reading.agent)
        tiers, places = await additions.tiers_of(reading, rows), await standing.places_of(reading, rows)
        found = {}
        for row in rows:
            now = places[row.offset].now
            parts = (tiers.get(row.offset), row.priority, now and f"superseded by {now}")
            found[row.id] = KnownItem(row.text, ", ".join(part for part in parts if part))
        return found

    async def explain_left(self, reading: AgentReading, ids: Collection[str]) -> Mapping[str, str]:
        found = await entries_by_id(reading, reading.space, ids)
        return {id_: _reason(entry, reading.agent) for id_, entry in found.items()}


def _reason(entry: FoundEntry, agent: str) -> str:
    """Why an entry is gone. Only its owner may read the reason."""
    ref = entry.ref
    if ref.status == LIVE or entry.readable_by(agent) is None:
        return "not readable any more"
    return ref.status if ref.reason is None else f"{ref.status}: {ref.reason}"
