"""The records that a past as of a time is folded from: those that happened until then, and later ones that still count."""

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Self

from recallog.reading.read_session import ReadSession
from recallog_projections.stores.store import Generation
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, time_blocks
from recallog_projections.views.time_blocks import Stretch, TimeBlock
from recallog_streams.ledgers.ledger import Batch, spans_of
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector


@dataclass(frozen=True, slots=True)
class ChosenRecords:
    """The records of one space that count as of one time."""

    space: str
    moment: datetime
    blocks: list[TimeBlock]

    @classmethod
    async def of(cls, moment: datetime, whole: ReadSession, space: str) -> Self | None:
        """`whole` has all records of the space. None if its blocks do not have all events."""
        found = await whole.every(time_blocks.BLOCKS, space, "")
        blocks = sorted((block for _, block in found), key=attrgetter("first"))
        row = (await whole.snapshot([RowKey(activity.SPACES.name, space)])).row(activity.SPACES, space)
        events = 0 if row is None else row.events
        return cls(space, moment, blocks) if sum(block.events for block in blocks) == events else None

    def first_later(self, until: int) -> int:
        """An offset, at most `until`, before which no event is later."""
        return min(until, time_blocks.first_later(self.blocks, self.moment, until))

    async def fold(
        self, projector: Projector, generation: Generation, until: int, progress: Progress | None = None
    ) -> None:
        """Process those below `until` from the checkpoint of the generation on."""
        done = (await projector.resume(generation)).offset + 1
        for stretch in time_blocks.choose_records(self.blocks, self.moment, until):
            if stretch.end > done:
                if stretch.only is None:
                    await projector.catch_up(generation, stretch.end, progress)
                else:
                    await projector.process(generation, await self._read(projector, generation.partition, done, stretch))
                done = stretch.end

    async def _read(self, projector: Projector, partition: int, start: int, stretch: Stretch) -> Batch:
        """The records of a stretch, as one batch."""
        found: list[Batch] = []
        for first, end in spans_of(offset for offset in stretch.only or () if offset >= start):
            async for batch in projector.ledger.read(partition, first, end, space=self.space):
                wanted = [n for n, (offset, _) in enumerate(batch.records) if offset in (stretch.only or ())]
                found += [batch.cut(number, number + 1) for number in wanted]
        return Batch(
            partition,
            start,
            stretch.end,
            [record for batch in found for record in batch.records],
            appended=[batch.time_of(0) for batch in found],
            sealed=[record for batch in found for record in batch.stored],
        )
