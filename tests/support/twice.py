"""A memory whose ledger delivers every event twice, beside one that does not, and what a rebuild must not change."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest

from recallog import Event, Memory
from recallog.composition import assemble
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Position
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import one_loop, recorded, run

Check = Callable[[Memory], Awaitable[object]]
"""What a test asks a memory; it may assert about the answer."""


class TwiceLedger(MemoryLedger):
    """A ledger to which each event is delivered twice, as by a producer that did not hear of its success."""

    def __init__(self) -> None:
        super().__init__(unique_ids=False)

    async def append(self, events: Sequence[Event], appended: Sequence[int] | None = None) -> list[Position]:
        positions = await super().append(events, appended)
        await super().append(events, appended)
        return positions


def once() -> Memory:
    return Memory.in_memory()


def twice() -> Memory:
    return Memory(assemble(TwiceLedger(), lambda _: MemoryStore()))


async def events_of(memory: Memory) -> list[Event]:
    """The events of the ledger, each once."""
    return list({each.id: each for each in await recorded(memory)}.values())


@pytest.fixture(params=[once, twice], ids=["once", "delivered twice"])
def memory(request: pytest.FixtureRequest, checks: Sequence[Check]) -> Iterator[Memory]:
    """An open memory for a test that is a coroutine. After the test, each of `checks` is called before and after a
    rebuild, and must return the same. A module that uses it has a fixture `checks`; a test may add to them."""
    memory: Memory = request.param()
    with one_loop():
        run(memory.__aenter__())
        try:
            yield memory
            run(check_rebuild(memory, checks))
        finally:
            run(memory.__aexit__(None, None, None))


async def check_rebuild(memory: Memory, checks: Sequence[Check]) -> None:
    """Check that a rebuild changes no answer, and that views and ledger are as they should be."""
    events = await events_of(memory)
    answers = [await check(memory) for check in checks]
    assert (await memory.admin.rebuild("views")).ok
    assert [await check(memory) for check in checks] == answers
    assert (await memory.admin.verify("views")).ok
    assert (await memory.admin.dead_letters()).items == ()
    assert await events_of(memory) == events
