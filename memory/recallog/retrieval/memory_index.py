"""The port of an index that the user provides, and its use: relevance for salience.

Events that salience scores are added to the index, then it is searched ("derive, then read"). Other events that it
finds, such as events of another agent, are dropped: the views decide what an agent may see.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Event, codec, limits

FED_EVENTS = 100
"""The most events in one call of `index`."""
FED_EVENTS_KEPT = 100_000
"""The number of added events that are remembered, about 30 MB. Older ones are added again when a query needs them."""
HITS_MAX = 10_000
"""The greatest `k` of a search."""
_MORE = 4
"""The factor by which `k` grows if too few of the hits are candidates."""


@runtime_checkable
class MemoryIndex(Protocol):
    """An index that the user provides. A method that is not `async` is called in a thread. Calls do not overlap."""

    def index(self, events: Sequence[Event], /) -> object:
        """Add events, in ledger order. An event whose space and id were added before must not change anything.

        Delivery is at least once: events are added again after a restart, and after a call that raised.
        """

    def search(self, query: str, k: int, /) -> Sequence[Event] | Awaitable[Sequence[Event]]:
        """Up to `k` of the events that were added, the most relevant first."""


class FedIndex:
    """Adds events to the user's index, and searches it."""

    def __init__(self, index: MemoryIndex) -> None:
        self._index = index
        self._offsets: dict[tuple[str, str], int] = {}
        """The offsets of the events that were added, by space and id, in the order in which they were added."""
        self._fed: set[tuple[str, int]] = set()
        """Their spaces and offsets."""
        self._locks: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recallog-memory-index")
        """Runs methods that are not coroutines. A call continues when its query is cancelled, and the next call waits
        for it."""

    async def rank(self, space: str, memories: Sequence[RememberedEvent], query: str) -> list[int]:
        """The offsets of the memories that are most relevant to a query, best first. `memories` are in ledger order.

        Raises the errors of the index.
        """
        async with self._lock():
            await self._feed(space, memories)
            try:
                return await self._search(space, {memory.offset for memory in memories}, query)
            finally:
                self._forget()

    async def _feed(self, space: str, memories: Sequence[RememberedEvent]) -> None:
        new = (memory for memory in memories if (space, memory.offset) not in self._fed)
        for part in _parts(new):
            events = [codec.decode(memory.data) for memory in part]
            await self._call(self._index.index, events)
            for memory, event in zip(part, events, strict=True):
                self._fed.add((space, memory.offset))
                self._offsets[space, event.id] = memory.offset

    async def _search(self, space: str, candidates: set[int], query: str) -> list[int]:
        wanted = min(limits.RECALL_CANDIDATES, len(candidates))
        k = wanted
        while wanted:
            hits = await self._call(self._index.search, query, k)
            ranked: dict[int, None] = {}
            for hit in hits:
                if not isinstance(hit, Event):
                    raise TypeError(f"search should return events, not {type(hit).__name__}")
                offset = self._offsets.get((hit.space, hit.id))
                if hit.space == space and offset in candidates:
                    ranked[offset] = None
            if len(ranked) >= wanted or len(hits) < k or k >= HITS_MAX:
                return list(ranked)[:wanted]
            k = min(_MORE * k, HITS_MAX)
        return []

    async def _call(self, method: Callable[..., Any], *arguments: object) -> Any:
        """The result of a method of the user's index."""
        if inspect.iscoroutinefunction(method):
            return await method(*arguments)
        answer = await asyncio.get_running_loop().run_in_executor(self._thread, method, *arguments)
        return await answer if inspect.isawaitable(answer) else answer

    def _forget(self) -> None:
        """Forget the events that were added first, beyond `FED_EVENTS_KEPT`."""
        for key in list(islice(self._offsets, max(0, len(self._offsets) - FED_EVENTS_KEPT))):
            self._fed.discard((key[0], self._offsets.pop(key)))

    def _lock(self) -> asyncio.Lock:
        """The lock for the running event loop. A memory may be used in several event loops, one after another."""
        loop = asyncio.get_running_loop()
        if loop not in self._locks:
            self._locks = {loop: asyncio.Lock()}
        return self._locks[loop]


def _parts(memories: Iterable[RememberedEvent]) -> Iterator[list[RememberedEvent]]:
    """Split `memories` into parts of `FED_EVENTS`."""
    remaining = iter(memories)
    while part := list(islice(remaining, FED_EVENTS)):
        yield part
