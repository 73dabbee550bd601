"""Readings, the first argument of handlers: the views of one space, or of one agent in it, and other inputs of a query.

A handler is a function of a `SpaceReading` or an `AgentReading`, and of the caller's arguments. `MemoryAccess.of_space`
and `of_agent` call it. Live and past views look the same to it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from recallog.reading.read_session import ReadSession
from recallog.reading.time_travel import AsOf
from recallog_schemas import limits
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.progress import Progress


@dataclass(slots=True, kw_only=True)
class SpaceReading(ReadSession):
    """Consistent reads about one space, as its views are at one moment."""

    space: str
    ledger: Ledger
    """The ledger that the views were folded from."""
    log_events: int = limits.LOG_EVENTS_KEPT
    """How many events each log of the views retains."""
    as_of: AsOf | None = None
    """The moment that is read, if it is in the past."""
    progress: Progress | None = None
    """Called with (done, total) while records are folded for the query."""
    past_at: Callable[[int], Awaitable[ReadSession]]
    """The views right after the record at an offset, for events that the views have dropped since."""
    make_searcher: Callable[[], Any]
    """Makes `searcher`."""
    _searcher: Any = field(default=None, init=False)

    def without_index(self) -> Self:
        """The same reading with a searcher that compares only words."""
        return replace(self, make_searcher=partial(replace, self.searcher, index=None))

    @property
    def searcher(self) -> Any:
        """The `recallog.retrieval.searcher.Searcher` of the query, made on first use."""
        if self._searcher is None:
            self._searcher = self.make_searcher()
        return self._searcher


@dataclass(slots=True, kw_only=True)
class AgentReading(SpaceReading):
    """Consistent reads of the memory of one agent, as the views of its space are at one moment."""

    agent: str
