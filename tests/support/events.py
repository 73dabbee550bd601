"""Short builders of events, and helpers to run coroutines."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from recallog import Memory
from recallog_schemas import Event, codec

Result = TypeVar("Result")

MOMENT = "2026-03-01T12:00:00Z"


_runners: list[asyncio.Runner] = []


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine, for tests that are plain functions."""
    return _runners[-1].run(work) if _runners else asyncio.run(work)


@contextmanager
def one_loop() -> Iterator[None]:
    """Calls of `run` within it share one event loop, which connections to a service need."""
    with asyncio.Runner() as runner:
        _runners.append(runner)
        try:
            yield
        finally:
            _runners.pop()


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


def event(kind: str = "agent.spoke", *, space: str = "village", agent: str = "baker", **fields: Any) -> Event:
    """An event; the default payload is a text."""
    fields.setdefault("payload", {"text": "Bread!"})
    return Event(space=space, agent=agent, kind=kind, **fields)


def numbered(count: int, *, space: str = "village", first: int = 0) -> list[Event]:
    """`count` events whose texts and turns are their numbers."""
    return [event(space=space, turn=first + n, payload={"text": f"{space} {first + n}"}) for n in range(count)]
