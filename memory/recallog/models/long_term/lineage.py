"""The lineage of entries: by the id of a source, the entries that were made from it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from recallog.models.long_term import entry_presence
from recallog.queries.lineage import LineageSource
from recallog.reading.readings import AgentReading
from recallog_projections.models.long_term import tables
from recallog_projections.tables import RowKey
from recallog_schemas import Event, limits


class EntryLineage(LineageSource):
    """Live entries by their sources, and the newest entries of the agent that are archived or retracted."""

    def __init__(self) -> None:
        self._ended: Mapping[str, Sequence[str]] | None = None

    async def find_products(self, reading: AgentReading, events: Sequence[Event]) -> Mapping[str, Sequence[str]]:
        space = reading.space
        keys = {each.id: RowKey(tables.SOURCES.name, space, "", each.id) for each in events}
        snapshot = await reading.snapshot([*keys.values(), *entry_presence.rows(space)])
        if not entry_presence.has_entries(snapshot, space):
            return {}
        live = {id_: snapshot.row(tables.SOURCES, *key[1:]) for id_, key in keys.items()}
        if self._ended is None:
            self._ended = await self._find_ended(reading)
        return {id_: [*(() if row is None else row.ids), *self._ended.get(id_, ())] for id_, row in live.items()}

    async def _find_ended(self, reading: AgentReading) -> Mapping[str, Sequence[str]]:
        """Entries that have ended are readable only to their owners, so entries of other agents are not searched."""
        page = await reading.page(
            tables.ENDED, reading.space, reading.agent, newest_first=True, limit=limits.LOG_EVENTS_KEPT
        )
        found = defaultdict[str, list[str]](list)
        for _, row in reversed(page.items):
            for source in row.sources:
                found[source].append(row.id)
        return found


LINEAGE = EntryLineage
