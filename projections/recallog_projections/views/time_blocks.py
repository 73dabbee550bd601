"""Time blocks: the times of the events of a space, by blocks of consecutive records, as a block range index has them.

Only saved pasts have them. They tell a query as of a time which records it need not fold (`choose_records`).
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import ClassVar, NamedTuple

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_projections.views.settings import SettingsProjection
from recallog_schemas import Record, timestamps, triggers

BLOCK_EVENTS = 250
"""A query folds at most the block around its moment in vain; one of 1,000,000 events reads 4,000 blocks."""


class TimeBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Consecutive events of a space."""

    first: int
    """The offset of the first one."""
    last: int = -1
    events: int = 0
    earliest: int = 0
    """The earliest `at`, in microseconds since 1970."""
    latest: int = 0
    configuring: tuple[int, ...] = ()
    """The offsets of the events that change settings."""
    answering: tuple[int, ...] = ()
    """The offsets of the events that a trigger has caused, such as the parts of its answer."""


BLOCKS = Table("past.blocks", TimeBlock)
"""At (space, "", the first offset of the block in 20 digits); the block that is not full yet at (space)."""


class TimeBlocks:
    """Fold of every event of a space into blocks."""

    name: ClassVar[str] = "time blocks"
    version: ClassVar[int] = 1
    ends_runs: ClassVar[Sequence[str]] = ()
    independent = True
    tables = (BLOCKS,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        block = rows.get(BLOCKS, space)
        begin = 0
        while begin < len(run):
            end = begin + BLOCK_EVENTS - (0 if block is None else block.events)
            block, begin = _extend(block, run[begin:end]), end
            if block.events == BLOCK_EVENTS:
                rows.put(BLOCKS, block, space, "", f"{block.first:020d}")
                block = None
        if block is None:
            rows.delete(BLOCKS, space)
        else:
            rows.put(BLOCKS, block, space)


class Stretch(NamedTuple):
    """Consecutive offsets, which end where the next stretch begins."""

    end: int
    only: frozenset[int] | None
    """The offsets of the records to fold; None: all."""


def first_later(blocks: Sequence[TimeBlock], moment: datetime, end: int) -> int:
    """An offset before which no event is later than `moment`; `end` if no event is."""
    until = timestamps.micros(moment)
    return next((block.first for block in blocks if block.latest > until), end)


def choose_records(blocks: Sequence[TimeBlock], moment: datetime, end: int) -> Iterator[Stretch]:
    """The records below `end` to fold for a past as of `moment`.

    From a block with later events only, these are the events that change settings. If a block with an event of the past
    follows, the events of answers are folded too, since they decide which later parts of an answer count.
    """
    until = timestamps.micros(moment)
    last = max((block.first for block in blocks if block.earliest <= until), default=-1)
    ends = [*(block.first for block in blocks[1:]), end]
    for is_later, pairs in groupby(zip(blocks, ends, strict=False), lambda pair: pair[0].earliest > until):
        *_, (_, stretch_end) = found = [*pairs]
        only = {offset for block, _ in found for offset in block.configuring}
        if found[0][0].first < last:
            only.update(offset for block, _ in found for offset in block.answering)
        yield Stretch(stretch_end, frozenset(only) if is_later else None)


def _extend(block: TimeBlock | None, run: Sequence[Record]) -> TimeBlock:
    """A block with the events of a run after its own."""
    before = block or TimeBlock(run[0].offset)
    times = [record.event.at for record in run]
    earliest, latest = timestamps.micros(min(times)), timestamps.micros(max(times))
    return TimeBlock(
        before.first,
        run[-1].offset,
        before.events + len(run),
        min(before.earliest, earliest) if before.events else earliest,
        max(before.latest, latest) if before.events else latest,
        (*before.configuring, *(each.offset for each in run if each.event.kind in SettingsProjection.kinds)),
        (*before.answering, *(each.offset for each in run if triggers.parse(each.event.causation_id) is not None)),
    )
