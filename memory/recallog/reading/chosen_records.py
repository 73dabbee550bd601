"""The records from which a past as of a time is folded: those of events until that time, and later ones that still
count."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Self

from recallog.reading.read_session import ReadSession
from recallog_projections.projection import Projection
from recallog_projections.stores.store import Generation
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, builtin, time_blocks
from recallog_projections.views.time_blocks import Stretch, TimeBlock, TimeBlocks
from recallog_schemas import Event, codec
from recallog_schemas.errors import InvalidEvent
from recallog_streams import identity
from recallog_streams.ledgers.ledger import Batch, spans_of
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector


def with_blocks(projections: Sequence[Projection]) -> Sequence[Projection]:
    """The projections that fold pasts. Built-in ones are folded with the blocks by which records are chosen.

    A user's projection may also fold events that are later than the moment of a query.
    """
    return [*projections, TimeBlocks()] if builtin.all_builtin(projections) else projections


@dataclass(frozen=True, slots=True)
class ChosenRecords:
    """The records of one space that count as of one time."""

    space: str
    moment: datetime
    blocks: Sequence[TimeBlock]
    whole: ReadSession
    """The past with all records."""

    @classmethod
    async def of(cls, moment: datetime, whole: ReadSession, space: str) -> Self | None:
        """The records that count as of `moment`; None if `whole` does not have all events in its blocks."""
        found = await whole.every(time_blocks.BLOCKS, space, "")
        row = (await whole.snapshot([RowKey(activity.SPACES.name, space)])).row(activity.SPACES, space)
        blocks = sorted((block for _, block in found), key=attrgetter("first"))
        is_complete = row is not None and row.events == sum(block.events for block in blocks)
        return cls(space, moment, blocks, whole) if is_complete else None

    def first_later(self, until: int) -> int:
        """An offset, at most `until`, below which no event is later than the moment."""
        return min(until, time_blocks.first_later(self.blocks, self.moment, until))

    @property
    def last_reached(self) -> int:
        """Pasts continue each other only while it is the same: they lack answers from later blocks."""
        return time_blocks.last_reached(self.blocks, self.moment)

    async def fold(
        self, projector: Projector, generation: Generation, until: int, progress: Progress | None = None
    ) -> None:
        """Process the records below `until` that count, starting at the checkpoint of the generation."""
        done = (await projector.resume(generation)).offset + 1
        for stretch in time_blocks.choose_records(self.blocks, self.moment, until):
            if stretch.end <= done:
                continue
            if stretch.only is not None:
                await projector.process(generation, await self._read(projector, generation.partition, done, stretch))
            elif projector.ledger.unique_ids:
                await projector.catch_up(generation, stretch.end, progress)
            else:
                async for batch in projector.ledger.read(generation.partition, done, stretch.end, space=self.space):
                    await projector.process(generation, await self._without_repeats(batch))
            done = stretch.end

    async def _read(self, projector: Projector, partition: int, start: int, stretch: Stretch) -> Batch:
        """The records of a stretch, as one batch."""
        wanted = stretch.only or frozenset()
        found: list[Batch] = []
        for first, end in spans_of(offset for offset in wanted if offset >= start):
            batches = projector.ledger.read(partition, first, end, space=self.space)
            found += [_pick(batch, wanted) async for batch in batches]
        return Batch(
            partition,
            start,
            stretch.end,
            [record for batch in found for record in batch.records],
            appended=[time for batch in found for time in batch.appended or ()],
            sealed=[record for batch in found for record in batch.stored],
        )

    async def _without_repeats(self, batch: Batch) -> Batch:
        """The events of a batch that are the first with their ids. Records that were left out may have the ids of the
        others."""
        events = _decode(batch)
        sizes = RowKey(identity.SIZES.name, self.space)
        size = (await self.whole.snapshot([sizes])).row(identity.SIZES, self.space) or identity.Size(0, 1)
        buckets = {offset: identity.bucket_of(self.space, event.id, size) for offset, event in events.items()}
        rows = await self.whole.snapshot(buckets.values())
        return _pick(
            batch,
            {
                offset
                for offset, key in buckets.items()
                if identity.offset_in(rows.row(identity.BUCKETS, *key[1:]), events[offset].id) == offset
            },
        )


def _pick(batch: Batch, offsets: Collection[int]) -> Batch:
    """A batch with only the records at these offsets, without keys and headers."""
    wanted = [number for number, (offset, _) in enumerate(batch.records) if offset in offsets]
    return Batch(
        batch.partition,
        batch.start,
        batch.next,
        [batch.records[number] for number in wanted],
        appended=[batch.time_of(number) for number in wanted],
        sealed=[batch.stored[number] for number in wanted],
    )


def _decode(batch: Batch) -> Mapping[int, Event]:
    """The valid events of a batch by their offsets."""
    found: dict[int, Event] = {}
    for offset, data in batch.records:
        with suppress(InvalidEvent):
            found[offset] = codec.decode(data)
    return found
