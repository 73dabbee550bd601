"""The history of a space: pages of all its events, from the ledger."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from recallog.queries.timeline import EventFilter
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import SpaceReading
from recallog.reading.source_classes import make_sourced
from recallog.reading.subject import of_space
from recallog_projections.tables import RowKey
from recallog_projections.views import activity
from recallog_projections.views.settings import SPACES, FoldPlans
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import Position, codec, limits
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.event import ERASED_TEXT, ERASED_VERSION
from recallog_schemas.views import HistoryPage, Remembered
from recallog_schemas.views.base import Room
from recallog_streams import positions

_MORE = 4
"""The factor between the records of successive steps, since few of them may match."""


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """The events to find."""

    events: EventFilter
    author: str | None
    containing: str | None
    """Part of the text, ignoring case."""

    def passes(self, shown: Remembered) -> bool:
        return (
            self.events.passes(shown.event)
            and self.author in (None, shown.event.agent)
            and (self.containing is None or self.containing.casefold() in shown.text.casefold())
        )


async def page(
    reading: SpaceReading, wanted: HistoryFilter, limit: int, start: Position | None, before: Position | None
) -> HistoryPage:
    """The newest `limit` matching events from `start` up to `before`, or fewer: see `Memory.history`.

    Records are read in steps from the newest to the oldest; each step is read forwards, as ledgers require.
    """
    space = reading.space
    snapshot = await reading.snapshot([RowKey(activity.SPACES.name, space), RowKey(SPACES.name, space)])
    for path, given in (("start", start), ("before", before)):
        if given is not None:
            positions.check_same_partition(space, snapshot.partition, given.partition, path)
    row = snapshot.row(activity.SPACES, space)
    first, end = (0, 0) if row is None else (row.first, row.last + 1)
    first = first if start is None else max(first, start.offset)
    end = end if before is None else min(end, before.offset)
    plans, found, room = FoldPlans(snapshot.row(SPACES, space)), list[Remembered](), Room()
    step, oldest = 2 * limit, max(first, end - limits.HISTORY_RECORDS)
    while end > oldest:
        begin = max(oldest, end - step)
        events = _events(reading, snapshot, plans, begin, end)
        passing = [(shown, size) async for shown, size in events if wanted.passes(shown)]
        for shown, size in reversed(passing):
            if len(found) == limit or not room.takes(size):
                return _page(snapshot, space, found, found[-1].position)
            found.append(shown)
        end, step = begin, _MORE * step
    return _page(snapshot, space, found, Position(snapshot.partition, oldest) if oldest > first else None)


def _page(snapshot: Snapshot, space: str, newest_first: list[Remembered], older: Position | None) -> HistoryPage:
    sources = SourceClasses(snapshot.row(SPACES, space))
    items = tuple(make_sourced(sources, shown) for shown in reversed(newest_first))
    return HistoryPage(**of_space(snapshot, space), items=items, older=older)


async def _events(
    reading: SpaceReading, snapshot: Snapshot, plans: FoldPlans, begin: int, end: int
) -> AsyncIterator[tuple[Remembered, int]]:
    """The events of the space in a part of the ledger, each with its size in an answer in bytes."""
    records = reading.ledger.read(snapshot.partition, begin, end, space=reading.space)
    async for batch in records:
        for offset, data in batch.records:
            try:
                event = codec.decode(data)
            except InvalidEvent:  # `dead_letters` shows it
                continue
            if event.space == reading.space:
                erased = event.envelope == ERASED_VERSION
                text = ERASED_TEXT if erased else plans[event.kind].kind.text(event.payload)
                position = Position(snapshot.partition, offset)
                yield Remembered.model_construct(position=position, event=event, text=text), 2 * len(data)
