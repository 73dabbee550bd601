"""Pasts: the views of a space as of a position or a time, folded at query time and kept for the next question.

A fold continues from the nearest past before its moment, and keeps a past at each step: as a snapshot in the file of
the views, or else in memory. Therefore, moving through the past folds one step at a time, and all queries of one moment
share one fold.

A kept past still contains content that is erased now. Each query removes it from its own copy
(`time_travel.fold_onto`). A past that was folded with keys which are destroyed now is dropped.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from recallog.reading.chosen_records import ChosenRecords, with_blocks
from recallog.reading.read_session import ReadSession
from recallog.reading.saved_past import SavedPast
from recallog.reading.time_travel import check_size
from recallog_projections.views import builtin
from recallog_schemas import Position, limits
from recallog_schemas.errors import InvariantViolation
from recallog_streams import positions
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.progress import Progress

if TYPE_CHECKING:
    from recallog.reading.projection_group import ProjectionGroup
    from recallog.reading.time_travel import AsOf
    from recallog_projections.stores.memory import MemoryStore
    from recallog_projections.stores.overlay import OverlayStore
    from recallog_projections.stores.store import Generation
    from recallog_streams.projector import ProcessedBatch


class _Line(NamedTuple):
    """The common properties of pasts that continue each other."""

    views: str
    space: str
    remember_until: datetime | None
    generation: str = ""
    """The generation whose snapshots they begin from; "": none."""
    last_reached: int | None = None
    """That of their chosen records; None: they have all records."""


@dataclass(frozen=True, slots=True)
class _Past:
    """The fold of all records below an offset. It does not change."""

    until: int
    store: "MemoryStore | OverlayStore"
    generation: "Generation"
    records: int
    """The number of records of the space in it; after a snapshot, the number since that."""
    items: int
    """Its weight: the number of its rows and log entries, and a constant."""


class _Way(NamedTuple):
    """The start and the records of a fold."""

    views: "ProjectionGroup"
    line: _Line
    until: int
    saved: SavedPast | None
    chosen: ChosenRecords | None
    """The records that count as of a time; None means all."""


class _Kept(OrderedDict[tuple[_Line, int], _Past]):
    """Pasts by line and `until`. Those that were used least recently are dropped first."""

    def __init__(self, items_max: int) -> None:
        super().__init__()
        self._items_max = items_max

    def keep(self, line: _Line, past: _Past) -> None:
        self[line, past.until] = past
        items = sum(each.items for each in self.values())
        while items > self._items_max:
            items -= self.popitem(last=False)[1].items

    def drop_of_other_keys(self, partition: int, keys: int) -> None:
        """Drop the pasts of a partition that were folded with keys which are now destroyed."""
        for key, past in [*self.items()]:
            if past.generation.partition == partition and past.generation.keys != keys:
                del self[key]

    def drop_of_space(self, space: str) -> None:
        for key in [key for key in self if key[0].space == space]:
            del self[key]

    def nearest(self, line: _Line, until: int) -> _Past | None:
        """The past of a line with the most records below `until`, and no later ones."""
        found = [past for (each, _), past in self.items() if each == line and past.until <= until]
        nearest = max(found, key=lambda past: past.until, default=None)
        if nearest is not None:
            self.move_to_end((line, nearest.until))
        return nearest


class Pasts:
    """The pasts of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._steps = _Kept(limits.PAST_ITEMS_MAX)
        self._asked = _Kept(limits.PAST_ITEMS_MAX)
        """Pasts of moments between two steps. There are many, and few are requested again."""
        self._folding: WeakValueDictionary[_Line, asyncio.Lock] = WeakValueDictionary()

    async def travel(
        self, views: "ProjectionGroup", space: str, as_of: "AsOf | None", progress: Progress | None = None
    ) -> ReadSession:
        """The views of `space` as of `as_of`; None means the present. Do not change them; see `own_past`.

        Raises `OutOfRange` for a position past the end, and for a space that is too large.
        """
        partition, ends = self._ledger.partition_of(space), await self._ledger.ends()
        until, remember_until = ends[partition], None
        if isinstance(as_of, Position):
            positions.check_position(ends, as_of.partition, as_of.offset, "as_of")
            positions.check_same_partition(space, partition, as_of.partition, "as_of")
            until = as_of.offset + 1
        else:
            remember_until = as_of
        return await self.below(views, space, until, remember_until, progress)

    async def below(
        self,
        views: "ProjectionGroup",
        space: str,
        until: int,
        remember_until: datetime | None = None,
        progress: Progress | None = None,
    ) -> ReadSession:
        """The views of `space` with all records below an offset. Events after `remember_until` are not remembered."""
        partition = self._ledger.partition_of(space)
        saved, chosen = await SavedPast.of(views, partition, space), None
        if remember_until is not None:
            if builtin.all_builtin(views.projections):
                whole = await self.below(views, space, until, progress=progress)
                chosen = await ChosenRecords.of(remember_until, whole, space)
            saved = None if chosen is None else saved
        last_reached = None if chosen is None else chosen.last_reached
        line = _Line(views.name, space, remember_until, "" if saved is None else saved.generation.id, last_reached)
        way = _Way(views, line, until, saved, chosen)
        async with self._folding.setdefault(line, asyncio.Lock()):
            past = await self._nearest(way, partition)
            if past is None or past.until < until:
                past = await self._fold(way, past, progress)
        return ReadSession(past.store, partition, past.generation)

    def drop(self, space: str) -> None:
        """Drop the pasts of a space from memory, since they may begin from snapshots that will be deleted."""
        self._steps.drop_of_space(space)
        self._asked.drop_of_space(space)

    async def _fold(self, way: _Way, start: _Past | None, progress: Progress | None) -> _Past:
        """The past that continues from `start`. A past is kept at each step on the way."""
        # few queries read the past, and every command imports this module
        from recallog_projections.stores.memory import MemoryStore
        from recallog_streams.projector import Projector

        line, saved, until = way.line, way.saved, way.until
        records = 0 if start is None else start.records

        def count(batch: "ProcessedBatch") -> None:
            nonlocal records
            records += batch.records
            if saved is None:
                check_size(line.space, records)

        store = MemoryStore() if start is None else start.store.copy()
        projector = Projector(
            self._ledger,
            store,
            with_blocks(way.views.projections),
            space=line.space,
            remember_until=line.remember_until,
            processed=count,
        )
        partition = self._ledger.partition_of(line.space)
        generation = await projector.first_generation(partition, until) if start is None else start.generation
        size = limits.PAST_STEP_RECORDS if saved is None else way.views.snapshot_records
        begin = 0 if start is None else start.until
        if way.chosen is not None:
            await way.chosen.fold(projector, generation, until, progress)
            begin = until
        for step in _steps(begin, until, size):
            await projector.catch_up(generation, step, progress)
            if saved is not None and records < size:
                continue
            if saved is not None and not isinstance(store, MemoryStore) and await saved.save(store):
                records = 0
            else:
                self._steps.keep(line, _Past(step, store.copy(), generation, records, _items_of(store)))
        await projector.catch_up(generation, until, progress)
        past = _Past(until, store, generation, records, _items_of(store))
        self._asked.keep(line, past)
        return past

    async def _nearest(self, way: _Way, partition: int) -> _Past | None:
        """The kept past with the most records that belong to the fold, and no other records. Snapshots begin with an
        empty one."""
        sealing = self._ledger.sealing
        await sealing.refresh()
        for kept in (self._steps, self._asked):
            kept.drop_of_other_keys(partition, sealing.count_destroyed(partition))
        lines = [(way.line, way.until)]
        if way.chosen is not None:  # up to the first later event, the past is that as of a position
            of_positions = way.line._replace(remember_until=None, last_reached=None)
            lines.append((of_positions, way.chosen.first_later(way.until)))
        found = [kept.nearest(line, until) for line, until in lines for kept in (self._steps, self._asked)]
        if way.saved is not None:
            store = await way.saved.start_before(lines[-1][1])
            found.insert(0, _Past(store.start.offset + 1, store, way.saved.generation, 0, limits.PAST_ITEMS_LEAST))
        return max(filter(None, found), key=lambda past: past.until, default=None)


def _items_of(store: "MemoryStore | OverlayStore") -> int:
    return limits.PAST_ITEMS_LEAST + store.count_items()


def _steps(start: int, until: int, size: int) -> Iterable[int]:
    """The offsets between `start` and `until` at which pasts are kept."""
    return range((start // size + 1) * size, until, size)


def own_past(past: ReadSession) -> ReadSession:
    """A copy of a past, which may be changed."""
    from recallog_projections.stores.memory import MemoryStore
    from recallog_projections.stores.overlay import OverlayStore

    if not isinstance(past.store, MemoryStore | OverlayStore):
        raise InvariantViolation("a past is in memory")
    return replace(past, store=past.store.copy())
