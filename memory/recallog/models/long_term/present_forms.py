"""Present forms: the id of an event that retained an entry refers to the entry as it is now."""

from collections.abc import Mapping, Sequence

from recallog.models.long_term import entry_presence
from recallog.models.long_term.entry_lookup import FoundEntry, entries_by_id
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.tables import RowKey
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import codec


def rows(space: str) -> Sequence[RowKey]:
    """The rows that `find` needs in its snapshot."""
    return entry_presence.rows(space)


async def find(reading: AgentReading, snapshot: Snapshot, ids: Sequence[str]) -> Mapping[str, RememberedEvent | None]:
    """By id, for hits that refer to entries: the entry as a memory at the offset of the event that retained it; None if
    the agent may not read it."""
    if not entry_presence.has_entries(snapshot, reading.space):
        return {}
    found = await entries_by_id(reading, reading.space, ids)
    agent = reading.agent
    return {id_: _memory_of(entry, agent) for id_, entry in found.items() if entry.is_shown_to(agent)}


def _memory_of(entry: FoundEntry, agent: str) -> RememberedEvent | None:
    row = entry.readable_by(agent)
    if row is None:
        return None
    return RememberedEvent(row.offset, codec.encode(entry_reading.event_of(row)), row.turn, row.importance, None)
