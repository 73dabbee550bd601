"""Counts of the reads of entries: collected in the querying process, and published as `memory.accessed` in batches.

A read counts if the query is about entries: `long_term.lessons`, `tiers.retrieve`, `recall` and `search` for entries,
and the section RECALLED of `context`. Queries of the past do not count, nor do queries for an agent that has never
acted, or with a memory that cannot be written. A process that ends without closing its memory loses only the counts of
its last second.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recallog.operations.parameters import At
from recallog.retrieval.channels import EVENT
from recallog_projections.tables import RowKey
from recallog_schemas import Event
from recallog_schemas.errors import RecallogError, StorageReadOnly
from recallog_schemas.models.long_term import limits as long_term_limits

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.reading.read_session import ReadSession

_log = logging.getLogger("recallog.accesses")


@dataclass(slots=True)
class _Reads:
    """The reads of one agent in a space."""

    counts: dict[str, int] = field(default_factory=dict)
    hits: int = 0
    misses: int = 0
    now: datetime | None = None
    """The time that its newest query gave; None means the time of the space."""


class AccessCounter:
    """Collects the reads of one memory, and publishes them.

    It publishes after `limits.ACCESSED_SECONDS`, after `limits.ACCESSED_IDS_MAX` ids, before the memory's next publish,
    and when the memory is closed. Its errors are never raised to a caller; the counts are then lost.
    """

    def __init__(self, access: "MemoryAccess") -> None:
        self._access = access
        self._reads: dict[tuple[str, str], _Reads] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_loop: asyncio.AbstractEventLoop | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        self._is_read_only = False
        """Whether the ledger cannot be written. Reads are not counted then."""

    def observe(self, operation: str, arguments: Mapping[str, Any], answer: Any) -> None:
        """Count the reads of the answer to a query. `operation` is its qualified name."""
        shown = _SHOWN.get(operation)
        ids = None if shown is None or arguments.get("as_of") is not None else shown(arguments, answer)
        if ids is not None and not self._is_read_only:
            self.count_lookup(arguments["space"], arguments["agent"], ids, getattr(answer, "now", None))

    def count_lookup(self, space: str, agent: str, ids: Sequence[str], now: datetime | None = None) -> None:
        """Count one lookup of an agent that found the entries `ids`. Without `ids` it is a miss.

        `now` is the time of the query; None means the time of the space. Call it in a running event loop.
        """
        reads = self._reads.setdefault((space, agent), _Reads())
        for id_ in ids:
            reads.counts[id_] = reads.counts.get(id_, 0) + 1
        reads.hits += bool(ids)
        reads.misses += not ids
        reads.now = now
        if sum(len(each.counts) for each in self._reads.values()) >= long_term_limits.ACCESSED_IDS_MAX:
            self._start()
        else:
            self._set_timer()

    async def flush(self) -> None:
        """Publish the counts so far."""
        self._stop_timer()
        collected, self._reads = self._reads, {}
        if not collected:
            return
        try:
            spaces = dict.fromkeys(space for space, _ in collected)
            events = [event for space in spaces for event in await self._events(space, collected)]
            if events:
                await self._access.append_silently(events)
        except RecallogError as error:
            self._is_read_only = isinstance(error, StorageReadOnly)
            _log.debug("reads of entries were not counted: %s", error)

    async def close(self) -> None:
        """Publish the counts, and stop. It waits only for a limited time."""
        this = asyncio.get_running_loop()
        under_way = [task for task in self._flushes if task.get_loop() is this]
        try:
            async with asyncio.timeout(long_term_limits.ACCESSED_CLOSE_SECONDS):
                await asyncio.gather(*under_way)
                await self.flush()
        except TimeoutError:
            _log.debug("reads of entries were not counted: the memory could not be written in time")

    async def _events(self, space: str, collected: Mapping[tuple[str, str], _Reads]) -> list[Event]:
        """The events of one space. Agents that have never acted there are left out: reading does not make an agent
        known."""
        from recallog_projections.views import activity, clock  # processes that only delegate do not need these

        agents = [agent for each, agent in collected if each == space]

        async def times_of_known(reading: "ReadSession") -> Mapping[str, datetime | None]:
            rows = {agent: RowKey(activity.AGENTS.name, space, agent) for agent in agents}
            times = (row for agent in agents for row in clock.keys(space, agent))
            snapshot = await reading.snapshot([*times, *rows.values()])
            known = (agent for agent in agents if snapshot.row(activity.AGENTS, space, agent) is not None)
            return {agent: snapshot.time_of(space, agent) for agent in known}

        known = await self._access.of_space(space, At(), times_of_known)
        return [each for agent, now in known.items() for each in _events_of(space, agent, collected[space, agent], now)]

    def _start(self) -> None:
        """Start a task that publishes the counts."""
        self._stop_timer()
        task = asyncio.get_running_loop().create_task(self.flush(), name="recallog-accesses")
        self._flushes.add(task)
        task.add_done_callback(self._flushes.discard)

    def _set_timer(self) -> None:
        """Set a timer of the running loop that publishes the counts. A timer of a loop that has ended never fires."""
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer_loop is not loop:
            self._timer, self._timer_loop = loop.call_later(long_term_limits.ACCESSED_SECONDS, self._start), loop

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _events_of(space: str, agent: str, reads: _Reads, now: datetime | None) -> list[Event]:
    """One event, or several if it has more ids than fit. Without events if the space has no time and `now` is None."""
    at = reads.now or now
    if at is None:
        return []
    ids = list(reads.counts.items())
    parts = [
        dict(ids[first : first + long_term_limits.ACCESSED_IDS_MAX])
        for first in range(0, len(ids), long_term_limits.ACCESSED_IDS_MAX)
    ]
    lookups = {name: count for name, count in (("hits", reads.hits), ("misses", reads.misses)) if count}
    return [
        Event(
            space=space,
            agent=agent,
            kind="memory.accessed",
            at=at,
            payload={"counts": part} | (lookups if number == 0 else {}),
        )
        for number, part in enumerate(parts or [{}])
    ]


def _of_recall(arguments: Mapping[str, Any], answer: Any) -> Sequence[str] | None:
    return [hit.event.id for hit in answer.hits if hit.is_entry] if _asks_for_entries(arguments) else None


def _of_search(arguments: Mapping[str, Any], answer: Any) -> Sequence[str] | None:
    return [hit.id for hit in answer.hits if hit.is_entry] if _asks_for_entries(arguments) else None


def _asks_for_entries(arguments: Mapping[str, Any]) -> bool:
    """Whether a query is for entries, and not for events or for everything."""
    if arguments.get("preset") is not None or arguments.get("tiers") is not None:
        return True
    return not {EVENT}.issuperset(arguments.get("types") or ())


def _of_context(arguments: Mapping[str, Any], answer: Any) -> Sequence[str] | None:
    """The entries that the prompt shows; None if there are none. Such a prompt does not count as a lookup."""
    return answer.entries or None


def _of_lessons(arguments: Mapping[str, Any], answer: Any) -> Sequence[str]:
    return [lesson.entry.id for lesson in answer.lessons]


def _of_tiers(arguments: Mapping[str, Any], answer: Any) -> Sequence[str]:
    return [hit.entry.id for hit in answer.hits]


_SHOWN: Mapping[str, Callable[[Mapping[str, Any], Any], Sequence[str] | None]] = {
    "recall": _of_recall,
    "search": _of_search,
    "context": _of_context,
    "long_term.lessons": _of_lessons,
    "tiers.retrieve": _of_tiers,
}
"""By the qualified name of a query: a function that returns the ids of the entries that an answer shows, or None if the
answer does not count."""
