"""Lineage: the sources of an event or entry, and the texts that were made from it, over all steps.

The events that the views retain are read once. An index of the ids that they name replaces a scan for each node. An
event that the agent may not see, or a text of a model that it may not read, is not a node, and paths do not lead
through it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from recallog.queries.previews import VisibleEvents
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Event, codec, kinds, limits, models, triggers
from recallog_schemas.views import Lineage, LineageEdge, LineageLink, LineageNode
from recallog_schemas.views.lineage import Relation
from recallog_streams import answers

Named = Mapping[str, Relation]
"""The ids that an event names, or the ids of the events that name an id."""


class LineageSource:
    """The lineage that a memory model knows: the class `LINEAGE` in its module `lineage`, made for each answer."""

    async def find_sources(self, reading: AgentReading, events: Sequence[Event]) -> Mapping[str, Sequence[str]]:
        """By the id of an event or entry, the ids of the sources that it does not name itself."""
        return {}

    async def find_products(self, reading: AgentReading, events: Sequence[Event]) -> Mapping[str, Sequence[str]]:
        """By the id of an event or entry, the ids of the texts of the model that were made from it. The agent may not
        be able to see all of them."""
        return {}


async def lineage(reading: AgentReading, event_id: str, further: Sequence[str], depth: int | None) -> Lineage:
    """The lineage of an event or entry, as far as the agent may see it.

    The graph also begins with the ids `further`, and has up to `depth` steps in each direction (None: all).
    """

    async def read(session: AgentReading) -> Lineage:
        visible = await VisibleEvents.by(session)
        graph = _Graph(session, visible, _index_named(visible.all))
        await graph.begin([event_id, *further])
        await graph.walk(limits.LINEAGE_NODES if depth is None else depth)
        return await _make_answer(session, graph, event_id)

    return await reading.steady(read)


async def _make_answer(reading: AgentReading, graph: "_Graph", event_id: str) -> Lineage:
    visible = graph.visible
    memory = graph.seen.get(event_id)
    sources = await graph.sources_of([event_id])
    products = await graph.products_of([event_id])
    named, made = sources.get(event_id, {}), products.get(event_id, {})
    shown = [*named][: limits.LINEAGE_ITEMS], [*made][-limits.LINEAGE_ITEMS :]
    await graph.look([*shown[0], *shown[1]])
    found = {id_: visible.preview(each) for id_, each in graph.seen.items() if each is not None}
    return Lineage(
        **await of_agent(reading, visible.snapshot),
        event_id=event_id,
        memory=None if memory is None else visible.preview(memory, limits.PREVIEW_ANCHOR_CHARS),
        sources=tuple(LineageLink(id=id_, relation=named[id_], memory=found.get(id_)) for id_ in shown[0]),
        products=tuple(LineageLink(id=id_, relation=made[id_], memory=found[id_]) for id_ in shown[1] if id_ in found),
        left_out=sum(map(len, (named, made))) - sum(map(len, shown)),
        nodes=tuple(LineageNode(steps=steps, memory=found[id_]) for id_, steps in graph.nodes.items()),
        edges=tuple(await graph.edges()),
        nodes_left_out=graph.left_out,
    )


@dataclass(slots=True)
class _Graph:
    """The nodes of a lineage, and the intermediate results of the search."""

    reading: AgentReading
    visible: VisibleEvents
    named_by: Mapping[str, Named]
    """By id, the retained events that name it."""
    nodes: dict[str, int] = field(default_factory=dict)
    """The number of steps to each node, nearest first."""
    seen: dict[str, RememberedEvent | None] = field(default_factory=dict)
    """By id: the event or entry as the agent may see it."""
    left_out: int = 0
    _of_models: Sequence[LineageSource] = field(
        default_factory=lambda: [part.LINEAGE() for part in models.import_parts("recallog", "lineage")]
    )
    _sources: dict[str, Named] = field(default_factory=dict)
    _products: dict[str, Named] = field(default_factory=dict)

    async def begin(self, ids: Sequence[str]) -> None:
        """Add the ids that were requested. A trigger is not an event: the parts of its answer are added instead."""
        await self.look(ids)
        answered = {id_: await self._parts_of(id_) for id_ in ids if self.seen[id_] is None}
        await self.look([part for parts in answered.values() for part in parts])
        self._add([part for id_ in ids for part in answered.get(id_, [id_])], 0)

    async def walk(self, depth: int) -> None:
        """Add the nodes up to `depth` steps away, nearest first, until there is no room for more."""
        back = forth = list(self.nodes)
        reached = set(back), set(back)
        for steps in range(1, depth + 1):
            if not (back or forth) or self.left_out:
                return
            before = _flatten(await self.sources_of(back))[: limits.LINEAGE_IDS]
            after = _flatten(await self.products_of(forth))[: limits.LINEAGE_IDS]
            await self.look([*before, *after])
            back, forth = (
                [id_ for id_ in ids if self.seen[id_] is not None and id_ not in known]
                for ids, known in zip((before, after), reached, strict=True)
            )
            reached[0].update(back)
            reached[1].update(forth)
            self._add(back, -steps)
            self._add(forth, steps)

    async def edges(self) -> Sequence[LineageEdge]:
        """All steps between two nodes."""
        sources = await self.sources_of(list(self.nodes))
        return [
            LineageEdge(source=source, product=id_, relation=relation, step=self._step_of(id_, relation))
            for id_, named in sources.items()
            for source, relation in named.items()
            if source in self.nodes
        ]

    async def look(self, ids: Iterable[str]) -> None:
        """Note the events and entries with these ids as the agent may see them."""
        new = [id_ for id_ in dict.fromkeys(ids) if id_ not in self.seen]
        if new:
            found = await self.visible.find(self.reading, new)
            self.seen |= {id_: found.get(id_) for id_ in new}

    async def sources_of(self, ids: Sequence[str]) -> Mapping[str, Named]:
        """By id, the sources that an event or entry names, in its own order, and then the sources that models know."""
        new = [id_ for id_ in ids if id_ not in self._sources]
        events = self._events(new)
        self._sources |= {each.id: _named_by(each) for each in events}
        for source in self._of_models if events else ():
            for id_, others in (await source.find_sources(self.reading, events)).items():
                own = self._sources[id_]
                self._sources[id_] = {**own, **dict.fromkeys(others, _SOURCE), **own}
        return {id_: self._sources[id_] for id_ in ids if id_ in self._sources}

    async def products_of(self, ids: Sequence[str]) -> Mapping[str, Named]:
        """By id, the products of an event or entry: retained events that name it, oldest first, then texts of models
        that the agent may see. Neither an answer nor a count reveals other products."""
        new = [id_ for id_ in ids if id_ not in self._products]
        events = self._events(new)
        found = {each.id: dict(self.named_by.get(each.id, {})) for each in events}
        for source in self._of_models if events else ():
            made = await source.find_products(self.reading, events)
            await self.look(_flatten(made))
            for id_, others in made.items():
                found[id_] |= {each: _SOURCE for each in others if self.seen[each] is not None}
        self._products |= found
        return {id_: self._products[id_] for id_ in ids if id_ in self._products}

    def _events(self, ids: Sequence[str]) -> list[Event]:
        memories = (self.seen.get(id_) for id_ in ids)
        return [codec.decode(each.data) for each in memories if each is not None]

    def _add(self, ids: Iterable[str], steps: int) -> None:
        new = [id_ for id_ in dict.fromkeys(ids) if self.seen[id_] is not None and id_ not in self.nodes]
        room = limits.LINEAGE_NODES - len(self.nodes)
        self.nodes |= dict.fromkeys(new[:room], steps)
        self.left_out += len(new[room:])

    async def _parts_of(self, id_: str) -> Sequence[str]:
        """The ids of the events in the answer to a trigger, by the id of the trigger or of the event that closes it."""
        trigger = triggers.parse(id_.removesuffix("/answer"))
        if trigger is None:
            return ()
        key = answers.key_of(self.reading.space, trigger.id)
        row = (await self.reading.snapshot([key])).row(answers.TABLE, *key[1:])
        parts = [] if row is None else [trigger.part_id(row.digest, number) for number in range(1, row.parts + 1)]
        return [*parts, trigger.answer_id]

    def _step_of(self, id_: str, relation: Relation) -> str:
        memory = self.seen[id_]
        kind = None if memory is None else codec.decode(memory.data).kind
        return relation if kind is None or relation != _SOURCE else triggers.step_of(id_, kind) or relation


_SOURCE: Relation = "source"


def _named_by(event: Event) -> dict[str, Relation]:
    """The ids that an event names as its cause and as its sources."""
    name = kinds.kind_of(event.kind).sources
    named = event.payload.get(name) if name else None
    ids = [each for each in named if isinstance(each, str)] if isinstance(named, list | tuple) else []
    found: dict[str, Relation] = {} if event.causation_id is None else {event.causation_id: "cause"}
    return {**found, **dict.fromkeys(ids, _SOURCE)}


def _index_named(memories: Iterable[RememberedEvent]) -> Mapping[str, dict[str, Relation]]:
    """By id, the events that name it, oldest first. An event whose bytes contain none of the fields is not decoded."""
    fields = {"causation_id", *(kinds.kind_of(kind).sources for kind in kinds.kinds_with_sources())}
    marks = [f'"{name}"'.encode() for name in sorted(fields)]
    found: dict[str, dict[str, Relation]] = {}
    for each in memories:
        if any(mark in each.data for mark in marks):
            event = codec.decode(each.data)
            for id_, relation in _named_by(event).items():
                found.setdefault(id_, {})[event.id] = relation
    return found


def _flatten(found: Mapping[str, Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(id_ for ids in found.values() for id_ in ids))
