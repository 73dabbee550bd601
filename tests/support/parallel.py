"""Folding with workers in tests: a ledger that numbers its spaces, and projections as workers make them."""

import random
from collections.abc import AsyncIterator, Sequence

from recallog_projections.projection import Projection
from recallog_projections.views import builtin
from recallog_schemas import codec, kinds, limits
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.kinds import Kind
from recallog_schemas.kinds.payload import Payload
from recallog_schemas.text_rules import first_of
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.ledgers.memory import MemoryLedger

OPENED = Kind("shop.opened", "A shop opened.", Payload, first_of("note", "text"), 0.8, shared=True)
"""A kind that the program of the test registers."""


class NumberedLedger(MemoryLedger):
    """A ledger in memory that numbers its spaces, as SQLite's does."""

    numbers_spaces = True

    def __init__(self, values: Sequence[bytes], *, unique_ids: bool, batch_records: int) -> None:
        super().__init__(unique_ids=unique_ids, batch_records=batch_records)
        self._numbers: dict[str, int] = {}
        for data in values:
            self.append_bytes(data)

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        async for batch in super().read(partition, start, until, space=space):
            spaces = [self._number(offset, data) for offset, data in batch.records]
            yield Batch(partition, batch.start, batch.next, batch.records, spaces=spaces)

    def _number(self, offset: int, data: bytes) -> int:
        """The number of the space of a record; that of any space if the record is not an event."""
        try:
            space = codec.decode(data).space
        except InvalidEvent:
            return offset % 5
        return self._numbers.setdefault(space, len(self._numbers))


def make_projections() -> Sequence[Projection]:
    """In a worker: the kinds that the test registers, and so little room for rows that they are often dropped."""
    kinds.register("shop", [OPENED])
    limits.CACHED_ROWS_MAX = 40
    return builtin.projections()


def spread(rng: random.Random, histories: Sequence[Sequence[bytes]]) -> list[bytes]:
    """Several histories of the same spaces as one history of more spaces: in each the names of spaces are others."""
    renamed = [
        [data.replace(b"village", b"village-%d" % number).replace(b"city", b"city-%d" % number) for data in history]
        for number, history in enumerate(histories)
    ]
    turns = [number for number, history in enumerate(renamed) for _ in history]
    rng.shuffle(turns)
    rest = [iter(history) for history in renamed]
    return [next(rest[number]) for number in turns]
