"""Present forms: the newest summary of a conversation, by the id of the event that has compacted it."""

from collections.abc import Collection, Mapping, Sequence

from recallog.queries.event_lookup import offsets_of
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog_projections.models.conversations import rendering, tables
from recallog_projections.tables import RowKey
from recallog_projections.views import activity
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Event, codec
from recallog_schemas.errors import InvalidEvent
from recallog_streams.ledgers.ledger import spans_of

_MARK = f'"{rendering.COMPACTION}"'.encode()


def rows(space: str) -> Sequence[RowKey]:
    """The rows that `find` needs in its snapshot."""
    return [RowKey(activity.KINDS.name, space, rendering.COMPACTION)]


async def find(reading: AgentReading, snapshot: Snapshot, ids: Sequence[str]) -> Mapping[str, RememberedEvent | None]:
    """By id, the summaries of the agent's own conversations that were not replaced by a later compaction."""
    space, agent = reading.space, reading.agent
    if snapshot.row(activity.KINDS, space, rendering.COMPACTION) is None:
        return {}
    remembered = {each.offset for each in snapshot.memories(space, agent)}  # these are episodes
    offsets = (await offsets_of(reading, reading.ledger, space, ids)).values()
    others = {each for each in offsets if each <= snapshot.processed} - remembered
    events = await _read_compactions(reading, others)
    keys = {id_: RowKey(tables.COMPACTIONS.name, space, agent, each.payload["session"]) for id_, each in events.items()}
    summaries = await reading.snapshot(keys.values())
    newest = {id_: summaries.row(tables.COMPACTIONS, *key[1:]) for id_, key in keys.items()}
    return {
        id_: RememberedEvent(row.offset, codec.encode(events[id_]), events[id_].turn, 0.0, row.summary)
        for id_, row in newest.items()
        if row is not None and row.id == id_
    }


async def _read_compactions(reading: AgentReading, offsets: Collection[int]) -> Mapping[str, Event]:
    """The compactions of the agent at some offsets, by id. Other records are not decoded."""
    found: dict[str, Event] = {}
    for first, end in spans_of(offsets):
        async for batch in reading.ledger.read(reading.partition, first, end, space=reading.space):
            for offset, data in batch.records:
                if offset not in offsets or _MARK not in data:
                    continue
                try:
                    event = codec.decode(data)
                except InvalidEvent:  # a dead letter
                    continue
                if (event.kind, event.agent) == (rendering.COMPACTION, reading.agent) and not event.is_erased:
                    found[event.id] = event
    return found
