"""Progressive disclosure: previews of what answers a question, then what was said around one, then whole events.

So a model pays for the few memories that it reads in full, and not for all that were found.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from recallog.queries import event_lookup
from recallog.queries.context import tokens
from recallog.queries.event_lookup import Past
from recallog.reading import time_travel
from recallog.reading.read_session import ReadSession, Snapshot
from recallog.reading.time_travel import AsOf
from recallog_projections.projection import RowKey
from recallog_projections.views import activity, episodic
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import InvalidEvent, OutOfRange
from recallog_schemas.views import AroundView, EntriesView, Preview, RecallView, Remembered, SearchHit, SearchPage
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.projector import Progress


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose memory is asked for, and what a fold of the past needs."""

    ledger: Ledger
    space: str
    agent: str
    log_events: int
    """How many events each log of the views keeps."""
    as_of: AsOf | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """An event, and how many before and after it are asked for."""

    id: str
    before: int
    after: int
    wanted: Callable[[Event], bool]
    """Which of its neighbours."""


def check_query(query: str) -> None:
    """Raise `InvalidEvent` where there is nothing to search for, or too much."""
    if not query.strip():
        raise InvalidEvent("query: say what the memories are to be about", path="query")
    if len(query) > limits.SEARCH_QUERY_CHARS_MAX:
        most = limits.SEARCH_QUERY_CHARS_MAX
        raise InvalidEvent(f"query: at most {most} characters, not {len(query):,}", path="query")


def check_ids(ids: Sequence[str]) -> None:
    """Raise `InvalidEvent` for more ids than one call may name."""
    if isinstance(ids, str):
        raise InvalidEvent("ids: a list of ids, not one text", path="ids")
    if len(ids) > limits.ENTRIES_IDS_MAX:
        raise InvalidEvent(f"ids: at most {limits.ENTRIES_IDS_MAX} in one call, not {len(ids):,}", path="ids")


def clamped(number: int, least: int, most: int) -> int:
    """The nearest number from `least` to `most`."""
    return max(least, min(number, most))


def shortened(text: str, chars: int = limits.PREVIEW_CHARS) -> str:
    """The first `chars` characters of `text`, and "..." where it goes on."""
    return text if len(text) <= chars else text[:chars] + "..."


def page(found: RecallView, limit: int) -> SearchPage:
    """The answer to a question, in short."""
    shared = {name: getattr(found, name) for name in SearchPage.model_fields if name not in ("limit", "hits")}
    hits = tuple(SearchHit(**_short(hit, limits.PREVIEW_CHARS), score=round(hit.score, 4)) for hit in found.hits)
    return SearchPage(**shared, limit=limit, hits=hits)


async def around(reading: ReadSession, asker: Asker, asked: Around) -> AroundView:
    """What the agent may see around an event. Raises `OutOfRange` where it may not see that event, or there is none."""
    seen = await _Seen.by(reading, asker)
    offset = (await event_lookup.offsets_of(reading, asker.ledger, asker.space, [asked.id])).get(asked.id)
    shown = (
        await _around(seen, asker, asked, offset) if offset is not None and offset <= seen.snapshot.processed else None
    )
    if shown is None:
        raise OutOfRange(
            f"{asker.agent} may see no event {asked.id!r} in {asker.space}. Search for the ids that it may see"
        )
    before, anchor, after = shown
    return AroundView(
        **seen.snapshot.computed_at,
        space=asker.space,
        agent=asker.agent,
        before=tuple(seen.preview(memory) for memory in before),
        anchor=seen.preview(anchor, limits.PREVIEW_ANCHOR_CHARS),
        after=tuple(seen.preview(memory) for memory in after),
    )


async def entries(reading: ReadSession, asker: Asker, ids: Iterable[str]) -> EntriesView:
    """The events of these ids that the agent may see, each once."""
    seen = await _Seen.by(reading, asker)
    offsets = await event_lookup.offsets_of(reading, asker.ledger, asker.space, list(ids))
    memories = {memory.offset: memory for memory in seen.all}
    past: Past | None = None
    for offset in sorted(set(offsets.values()) - memories.keys()):
        if offset < seen.kept_from:
            past = past or seen.past(asker)
            newest = await past.until(offset, newest=1)
            memories |= {memory.offset: memory for memory in newest if memory.offset == offset}
    found = [memories[offset] for offset in offsets.values() if offset in memories]
    return EntriesView(
        **seen.snapshot.computed_at,
        space=asker.space,
        agent=asker.agent,
        entries=tuple(seen.snapshot.remembered(memory.offset, memory.data, memory.text) for memory in found),
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the views keep of what an agent may see."""

    snapshot: Snapshot
    all: Sequence[RememberedEvent]
    """In ledger order."""
    kept_from: int
    """The offset from which on nothing is missing."""
    events: int
    """Of the space."""

    @classmethod
    async def by(cls, reading: ReadSession, asker: Asker) -> "_Seen":
        space = RowKey(activity.SPACES.name, asker.space)
        snapshot = await reading.snapshot([space], episodic.logs(asker.space, asker.agent, asker.log_events))
        tails = snapshot.tail(episodic.OWN, asker.space, asker.agent), snapshot.tail(episodic.SHARED, asker.space)
        row = snapshot.row(activity.SPACES, asker.space)
        return cls(snapshot, episodic.merge(*tails), episodic.kept_from(*tails) or 0, row.events if row else 0)

    def past(self, asker: Asker) -> Past:
        """What they do not keep. Raises `OutOfRange` where the space is too large to be folded for one question."""
        time_travel.check_size(asker.space, self.events)
        return Past(asker.ledger, self.snapshot.partition, asker.space, asker.agent, asker.as_of, asker.progress)

    def preview(self, memory: RememberedEvent, chars: int = limits.PREVIEW_CHARS) -> Preview:
        return Preview(**_short(self.snapshot.remembered(memory.offset, memory.data, memory.text), chars))


_Shown = tuple[list[RememberedEvent], RememberedEvent, list[RememberedEvent]]


async def _around(seen: _Seen, asker: Asker, asked: Around, offset: int) -> _Shown | None:
    """The events before, the event itself, those after; None where the agent may not see it."""
    shown = _cut([memory for memory in seen.all if memory.offset >= seen.kept_from], asked, offset)
    if not seen.kept_from or (offset >= seen.kept_from and (shown is None or len(shown[0]) == asked.before)):
        return shown
    past = seen.past(asker)
    then = _cut(await past.until(offset), asked, offset)
    if then is None:
        return None
    before, anchor, after = then
    if shown is not None:
        return before, anchor, shown[2]
    end = offset
    while len(after) < asked.after and end < seen.snapshot.processed:
        last, end = (
            end,
            min(end + limits.LOG_EVENTS_KEPT, seen.snapshot.processed),
        )  # so many that none is dropped between
        newer = [memory for memory in await past.until(end) if memory.offset > last]
        after += _wanted(newer, asked, asked.after - len(after))
    return before, anchor, after


def _cut(memories: Sequence[RememberedEvent], asked: Around, offset: int) -> _Shown | None:
    """The memory at `offset` and its wanted neighbours among `memories`; None where it is not one of them."""
    list_index = bisect_left(memories, offset, key=lambda memory: memory.offset)
    if list_index == len(memories) or memories[list_index].offset != offset:
        return None
    before = _wanted(reversed(memories[:list_index]), asked, asked.before)
    return before[::-1], memories[list_index], _wanted(memories[list_index + 1 :], asked, asked.after)


def _wanted(memories: Iterable[RememberedEvent], asked: Around, count: int) -> list[RememberedEvent]:
    """The first `count` of `memories` that are wanted."""
    return list(islice((memory for memory in memories if asked.wanted(codec.decode(memory.data))), count))


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
        "preview": shortened(shown.text, chars),
        "tokens": tokens(shown.text),
    }
