"""The port of an index of the user's own, and its use: relevance for salience.

The index is fed with the events that salience scores, then searched ("derive, then read"). Whatever else it finds, such
as events that another agent was shown, is left out here: an agent sees what the views say that it may see.
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
"""Events of one call of `index`, at most."""
FED_EVENTS_KEPT = 100_000
"""How many events are known to have been fed, about 30 MB. Older ones are fed again when a query needs them."""
HITS_MAX = 10_000
"""The greatest `k` of a search."""
_MORE = 4
"""How many times as many hits are requested where too few are of the agent that asks."""


@runtime_checkable
class MemoryIndex(Protocol):
    """An index of the user's own. Both methods may be `async`; others are called in a thread. Calls do not overlap."""

    def index(self, events: Sequence[Event], /) -> object:
        """Add events, in the order of the ledger. An event that is there already, by its space and id, changes nothing.

        Events come at least once: after a restart, and after a call that raised, they come again.
        """

    def search(self, query: str, k: int, /) -> Sequence[Event] | Awaitable[Sequence[Event]]:
        """Up to `k` of the events that were added, the most relevant first."""


class FedIndex:
    """Feeds an index of the user's own, and asks it."""

    def __init__(self, index: MemoryIndex) -> None:
        self._index = index
        self._offsets: dict[tuple[str, str], int] = {}
        """By space and id: the events that were fed, oldest feeding first."""
        self._fed: set[tuple[str, int]] = set()
        """Their spaces and offsets."""
        self._locks: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recallog-memory-index")
        """For methods that are not coroutines: a call continues when its query is cancelled, and the next
        one waits for it."""

    async def rank(self, space: str, memories: Sequence[RememberedEvent], query: str) -> list[int]:
        """The offsets of the best of `memories`, which are in ledger order, for a query, the best first.

        Raises what the index raises.
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
        """What a method of the user's index returns."""
        if inspect.iscoroutinefunction(method):
            return await method(*arguments)
        answer = await asyncio.get_running_loop().run_in_executor(self._thread, method, *arguments)
        return await answer if inspect.isawaitable(answer) else answer

    def _forget(self) -> None:
        """Forget the events that were fed first, beyond `FED_EVENTS_KEPT`."""
        for key in list(islice(self._offsets, max(0, len(self._offsets) - FED_EVENTS_KEPT))):
            self._fed.discard((key[0], self._offsets.pop(key)))

    def _lock(self) -> asyncio.Lock:
        """A lock of the running event loop: a memory may be used in one after another."""
        loop = asyncio.get_running_loop()
        if loop not in self._locks:
            self._locks = {loop: asyncio.Lock()}
        return self._locks[loop]


def _parts(memories: Iterable[RememberedEvent]) -> Iterator[list[RememberedEvent]]:
    """`memories` in parts of `FED_EVENTS`."""
    remaining = iter(memories)
    while part := list(islice(remaining, FED_EVENTS)):
        yield part
