"""Previews: short hits of a search, the neighbours of one event, and whole events by id (progressive disclosure).

Many previews cost a model as many tokens as a few whole events.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import Any

from recallog.queries import event_lookup
from recallog.queries.event_lookup import PastMemory
from recallog.queries.timeline import bytes_of
from recallog.reading import time_travel
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.reading.source_classes import make_sourced
from recallog.reading.subject import of_agent
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, episodic, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import Event, codec, limits, models
from recallog_schemas.errors import OutOfRange
from recallog_schemas.shortening import shorten, tokens
from recallog_schemas.views import (
    AroundView,
    EntriesView,
    Preview,
    Recalled,
    RecallView,
    Remembered,
    SearchHit,
    SearchPage,
    Sourced,
    SourcedEvent,
)
from recallog_schemas.views.base import Standing, fitting


@dataclass(frozen=True, slots=True)
class AroundRequest:
    """An event, and the number of its neighbours to show."""

    id: str
    before: int
    after: int
    wanted: Callable[[Event], bool]
    """Filter of the neighbours."""


def page(found: RecallView, limit: int) -> SearchPage:
    """The hits of recall as previews."""
    shared = {name: getattr(found, name) for name in Recalled.model_fields}
    hits = tuple(
        SearchHit(
            **{**_short(hit, limits.PREVIEW_CHARS), "preview": shorten(hit.quote)},
            score=round(hit.score, 4),
            also=hit.also,
            near=hit.near,
            **{name: getattr(hit, name) for name in (*Standing.model_fields, *Sourced.model_fields)},
            weak=hit.weak,
        )
        for hit in found.hits
    )
    return SearchPage(**shared, limit=limit, hits=hits)


async def around(reading: AgentReading, request: AroundRequest) -> AroundView:
    """The events around an event that the agent may see, or around an entry, which is shown in its present form.

    Raises `OutOfRange` if it may not see that event or entry.
    """
    visible = await VisibleEvents.by(reading)
    offset = (await event_lookup.offsets_of(reading, reading.ledger, reading.space, [request.id])).get(request.id)
    forms = await visible.present_forms(reading, [request.id])
    if request.id in forms:
        form = forms[request.id]
        shown = None if form is None else await _around(visible, reading, request, form.offset, form)
    elif offset is not None and offset <= visible.snapshot.processed:
        shown = await _around(visible, reading, request, offset)
    else:
        shown = None
    if shown is None:
        raise OutOfRange(
            f"{reading.agent} may see no event {request.id!r} in {reading.space}. Search for the ids that it may see",
            path="event_id",
        )
    before, anchor, after = shown
    return AroundView(
        **await of_agent(reading, visible.snapshot),
        before=tuple(visible.preview(memory) for memory in before),
        anchor=visible.preview(anchor, limits.PREVIEW_ANCHOR_CHARS),
        after=tuple(visible.preview(memory) for memory in after),
    )


async def entries(reading: AgentReading, ids: Sequence[str]) -> EntriesView:
    """The events with these ids that the agent may see, and its entries in their present form, each once."""
    visible = await VisibleEvents.by(reading)
    by_id = await visible.find(reading, ids)
    found = [by_id[each] for each in dict.fromkeys(ids) if each in by_id]
    missing = [each for each in dict.fromkeys(ids) if each not in by_id]
    count = fitting(bytes_of(memory) for memory in found)
    return EntriesView(
        **await of_agent(reading, visible.snapshot),
        entries=tuple(map(visible.open, found[:count])),
        missing=tuple(missing),
        left_out=len(found) - count,
    )


@dataclass(frozen=True, slots=True)
class VisibleEvents:
    """The events that an agent may see and the views retain."""

    snapshot: Snapshot
    all: Sequence[RememberedEvent]
    """In ledger order."""
    kept_from: int
    """The offset from which the logs are complete."""
    events: int
    """Number of events of the space."""
    sources: SourceClasses

    @classmethod
    async def by(cls, reading: AgentReading) -> "VisibleEvents":
        rows = [RowKey(activity.SPACES.name, reading.space), RowKey(settings.AGENTS.name, reading.space, reading.agent)]
        rows.append(RowKey(settings.SPACES.name, reading.space))
        rows += [row for module in _presenting() for row in module.rows(reading.space)]
        snapshot = await reading.snapshot(rows, episodic.logs(reading.space, reading.agent, reading.log_events))
        tails = snapshot.tail(episodic.OWN, reading.space, reading.agent), snapshot.tail(episodic.SHARED, reading.space)
        row = snapshot.row(activity.SPACES, reading.space)
        sources = SourceClasses(snapshot.row(settings.SPACES, reading.space))
        return cls(snapshot, episodic.merge(*tails), episodic.kept_from(*tails) or 0, row.events if row else 0, sources)

    async def present_forms(self, reading: AgentReading, ids: Sequence[str]) -> Mapping[str, RememberedEvent | None]:
        """By id, for hits that refer to a text of a model: the present text; None if the agent may not read it."""
        found: dict[str, RememberedEvent | None] = {}
        for module in _presenting():
            found |= await module.find(reading, self.snapshot, ids)
        return found

    async def find(self, reading: AgentReading, ids: Sequence[str]) -> Mapping[str, RememberedEvent]:
        """The events and entries with these ids that the agent may see, by id; entries in their present form."""
        forms = await self.present_forms(reading, ids)
        events = [id_ for id_ in ids if id_ not in forms]
        offsets = await event_lookup.offsets_of(reading, reading.ledger, reading.space, events)
        memories = {memory.offset: memory for memory in self.all}
        for offset in sorted(set(offsets.values()) - memories.keys()):
            if offset < self.kept_from:
                newest = await self.past(reading).until(offset, newest=1)
                memories |= {memory.offset: memory for memory in newest if memory.offset == offset}
        by_id = {id_: memories[offset] for id_, offset in offsets.items() if offset in memories}
        return by_id | {id_: form for id_, form in forms.items() if form is not None}

    def past(self, reading: AgentReading) -> PastMemory:
        """Access to older events. Raises `OutOfRange` if the space is too large to be folded for one query."""
        time_travel.check_size(reading.space, self.events)
        return PastMemory(reading)

    def open(self, memory: RememberedEvent) -> SourcedEvent:
        shown = self.snapshot.make_remembered(memory.offset, memory.data, memory.text)
        return make_sourced(self.sources, shown)

    def preview(self, memory: RememberedEvent, chars: int = limits.PREVIEW_CHARS) -> Preview:
        shown = self.open(memory)
        return Preview(**_short(shown, chars), trust=shown.trust)


def _presenting() -> Sequence[ModuleType]:
    """The modules of models that have present forms of texts."""
    return models.import_parts("recallog", "present_forms")


_Shown = tuple[list[RememberedEvent], RememberedEvent, list[RememberedEvent]]


async def _around(
    visible: VisibleEvents,
    reading: AgentReading,
    request: AroundRequest,
    offset: int,
    entry: RememberedEvent | None = None,
) -> _Shown | None:
    """The events before, the event or `entry` itself, and the events after; None if the agent may not see the event."""
    shown = None
    if offset >= visible.kept_from:
        shown = _cut([memory for memory in visible.all if memory.offset >= visible.kept_from], request, offset, entry)
    if not visible.kept_from or (offset >= visible.kept_from and (shown is None or len(shown[0]) == request.before)):
        return shown
    past = visible.past(reading)
    then = _cut(await past.until(offset), request, offset, entry)
    if then is None:
        return None
    before, anchor, after = then
    if shown is not None:
        return before, anchor, shown[2]
    end = offset
    while len(after) < request.after and end < visible.snapshot.processed:
        last, end = (
            end,
            min(end + limits.LOG_EVENTS_KEPT, visible.snapshot.processed),
        )  # at most as many as the logs retain, so that no event is missed
        newer = [memory for memory in await past.until(end) if memory.offset > last]
        after += _filter_memories(newer, request, request.after - len(after))
    return before, anchor, after


def _cut(
    memories: Sequence[RememberedEvent], request: AroundRequest, offset: int, entry: RememberedEvent | None
) -> _Shown | None:
    """The memory at `offset`, or the `entry` with that offset, and its neighbours among `memories`; None if it is
    missing."""
    list_index = bisect_left(memories, offset, key=lambda memory: memory.offset)
    older, newer = memories[:list_index], memories[list_index:]
    anchor = entry
    if anchor is None:
        if not newer or newer[0].offset != offset:
            return None
        anchor, newer = newer[0], newer[1:]
    before = _filter_memories(reversed(older), request, request.before)
    return before[::-1], anchor, _filter_memories(newer, request, request.after)


def _filter_memories(memories: Iterable[RememberedEvent], request: AroundRequest, count: int) -> list[RememberedEvent]:
    """The first `count` of `memories` that pass the filter."""
    return list(islice((memory for memory in memories if request.wanted(codec.decode(memory.data))), count))


def _short(shown: Remembered, chars: int) -> dict[str, Any]:
    """The fields of a preview."""
    event = shown.event
    return {
        "id": event.id,
        "position": shown.position,
        "at": event.at,
        "agent": event.agent,
        "kind": event.kind,
        "session": event.session,
        "turn": event.turn,
        "preview": shorten(shown.text, chars),
        "tokens": tokens(shown.text),
    }
