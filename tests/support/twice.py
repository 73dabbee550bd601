"""A memory whose ledger delivers every event twice, beside one that does not, and the events of a ledger, each once."""

from collections.abc import Sequence

from recallog import Event, Memory
from recallog.composition import assemble
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Position, codec
from recallog_streams.ledgers.memory import MemoryLedger


class TwiceLedger(MemoryLedger):
    """A ledger to which each event is delivered twice, as by a producer that did not hear of its success."""

    def __init__(self) -> None:
        super().__init__(unique_ids=False)

    async def append(self, events: Sequence[Event]) -> list[Position]:
        positions = await super().append(events)
        await super().append(events)
        return positions


def once() -> Memory:
    return Memory.in_memory()


def twice() -> Memory:
    return Memory(assemble(TwiceLedger(), lambda _: MemoryStore()))


async def events_of(memory: Memory) -> list[Event]:
    """The events of the ledger, each once."""
    found = [codec.decode(data) async for batch in memory.admin.records() for _, data in batch.records]
    return list({each.id: each for each in found}.values())
