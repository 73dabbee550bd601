"""What tests do with events; the builders of events and the helpers to run coroutines are those of the contracts."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from recallog import Memory
from recallog_schemas import Event, codec
from recallog_testing.running import one_loop as one_loop
from recallog_testing.running import run as run
from recallog_testing.sample_events import event as event
from recallog_testing.sample_events import numbered as numbered

Result = TypeVar("Result")

MOMENT = "2026-03-01T12:00:00Z"


def after(home: Path, events: Sequence[Event], ask: Callable[[Memory], Awaitable[Result]]) -> Result:
    """The answer of a memory in `home` after `events` are published."""

    async def work() -> Result:
        async with Memory.open(home) as memory:
            await memory.publish_many(events)
            return await ask(memory)

    return run(work())


def publish_in(home: Path, *events: Event) -> None:
    """Publish events in the memory of a folder."""

    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish_many(events)

    run(work())


async def recorded(memory: Memory) -> list[Event]:
    """The events of the ledger, as often as it has them."""
    return [codec.decode(data) async for batch in memory.admin.records() for _, data in batch.records]
