"""Lineage: what an event or entry was made from, and what was made from it."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from recallog.queries.previews import VisibleEvents
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Event, codec, kinds, limits
from recallog_schemas.views import Lineage, LineageLink
from recallog_schemas.views.lineage import Relation


async def lineage(reading: AgentReading, event_id: str) -> Lineage:
    """The lineage of an event or entry, as far as the agent may see it."""
    visible = await VisibleEvents.by(reading)
    memory = (await visible.find(reading, [event_id])).get(event_id)
    sources = {} if memory is None else _sources(codec.decode(memory.data))
    products = {} if memory is None else await _products(reading, visible, event_id)
    shown = [*sources][: limits.LINEAGE_ITEMS], [*products][-limits.LINEAGE_ITEMS :]
    found = await visible.find(reading, [id_ for ids in shown for id_ in ids])
    by_id = {id_: visible.preview(each) for id_, each in found.items()}
    return Lineage(
        **await of_agent(reading, visible.snapshot),
        event_id=event_id,
        memory=None if memory is None else visible.preview(memory, limits.PREVIEW_ANCHOR_CHARS),
        sources=tuple(LineageLink(id=id_, relation=sources[id_], memory=by_id.get(id_)) for id_ in shown[0]),
        products=tuple(
            LineageLink(id=id_, relation=products[id_], memory=by_id[id_]) for id_ in shown[1] if id_ in by_id
        ),
        left_out=sum(map(len, (sources, products))) - sum(map(len, shown)),
    )


def _sources(event: Event) -> Mapping[str, Relation]:
    """The ids that an event names as its cause and as its sources."""
    field = kinds.kind_of(event.kind).sources
    named = event.payload.get(field) if field else None
    ids = [each for each in named if isinstance(each, str)] if isinstance(named, list | tuple) else []
    found: dict[str, Relation] = {} if event.causation_id is None else {event.causation_id: "cause"}
    return {**found, **dict.fromkeys(ids, "source")}


async def _products(reading: AgentReading, visible: VisibleEvents, id_: str) -> Mapping[str, Relation]:
    """The ids of what was made from an event: retained events, oldest first, then texts that models keep."""
    quoted = msgspec.json.encode(id_)
    found: dict[str, Relation] = {}
    for each in _naming(visible.all, quoted):
        if relation := _sources(each).get(id_):
            found[each.id] = relation
    dependents = await visible.dependents(reading, id_)
    seen = await visible.find(reading, dependents)  # neither an answer nor a count reveals the others
    return {**found, **dict.fromkeys([each for each in dependents if each in seen], "source")}


def _naming(memories: Iterable[RememberedEvent], quoted: bytes) -> Iterator[Event]:
    """The events whose bytes contain an id. Most events are not decoded."""
    return (codec.decode(each.data) for each in memories if quoted in each.data)
