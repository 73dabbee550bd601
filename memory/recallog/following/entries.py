"""Records of the ledger as entries, each an event or the reason why the record is not an event; and the positions from
which to follow."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from recallog.memory import Memory
from recallog_schemas import Event, Position, codec
from recallog_schemas.errors import InvalidEvent
from recallog_streams import positions
from recallog_streams.ledgers.ledger import Batch

POLL_SECONDS = 0.1
"""How often a follower reads the end of the ledger."""

_NO_TIME = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One record of the ledger. `event` is None if the record is not an event; `problem` then says why."""

    position: Position
    event: Event | None
    problem: str = ""

    @property
    def agent(self) -> str:
        return "" if self.event is None else self.event.agent


def entries_of(batch: Batch) -> list[LedgerEntry]:
    return [entry_of(Position(batch.partition, offset), data) for offset, data in batch.records]


def entry_of(position: Position, data: bytes) -> LedgerEntry:
    try:
        event = codec.decode(data)
        codec.encode(event)  # an event of an older envelope can be too long for the present one
    except InvalidEvent as error:
        return LedgerEntry(position, None, str(error))
    return LedgerEntry(position, event)


async def follow(
    memory: Memory, begins: Mapping[int, int], space: str | None, *, once: bool = False
) -> AsyncGenerator[Batch]:
    """Batches of the ledger from the offsets in `begins`, which are by partition, of one space or of all.

    Ends at the present end of the ledger with `once`; otherwise it waits for new records until it is cancelled.
    """
    following = dict(begins)
    while True:
        for partition, begin in following.copy().items():
            async for batch in memory.admin.records(Position(partition, begin), space):
                yield batch
                following[partition] = batch.next
        if once:
            return
        await asyncio.sleep(POLL_SECONDS)


async def newest(memory: Memory, count: int) -> dict[int, int]:
    """By partition: the offset at which the newest `count` records of the ledger begin. Events are ordered by time."""
    ends = await memory.admin.ledger_ends()
    begins = [Position(partition, max(0, end - count)) for partition, end in enumerate(ends)]
    candidates = [
        (entry.event.at if entry.event is not None else _NO_TIME, entry.position)
        for begin in begins
        async for batch in memory.admin.records(begin)
        for entry in entries_of(batch)
    ]
    chosen = [position for _, position in sorted(candidates)[-count:]]
    return {
        partition: min([position.offset for position in chosen if position.partition == partition], default=end)
        for partition, end in enumerate(ends)
    }


async def newest_in_space(memory: Memory, space: str, count: int) -> Position:
    """The position of the first of the newest `count` records of `space`; the partition's start if there are fewer."""
    first = Position(await memory.admin.partition_of(space), 0)
    positions = deque([first], maxlen=count)
    async for batch in memory.admin.records(first, space):
        positions.extend(Position(batch.partition, offset) for offset, _ in batch.records)
    return positions[0]


async def check_partition(memory: Memory, position: Position) -> Position:
    """`position`, if the ledger has its partition. Raises `OutOfRange` if it does not."""
    positions.check_partition(len(await memory.admin.ledger_ends()), position.partition, "--from")
    return position
