"""The timeline of an agent: its newest events, and pages of all events that the views retain."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from recallog.operations import parameters
from recallog.operations.parameters import Filters
from recallog.reading.event_order import in_event_time
from recallog.reading.read_session import Snapshot, position
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent
from recallog_projections.tables import RowKey
from recallog_projections.views import episodic, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Event, Position, limits
from recallog_schemas.views import EpisodicView, Remembered, TimelinePage
from recallog_schemas.views.base import Room, fitting
from recallog_streams import positions

if TYPE_CHECKING:
    from recallog.reading.filters import Passes

_FIRST_READ_EVENTS = 64
_MORE = 8
"""The factor between the events of successive steps: a few large events fill an answer."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The wanted events: of a session, of some kinds, of a span of time, or with some fields. None means no
    restriction."""

    session: str | None
    kinds: Sequence[str] | None
    since: datetime | None
    until: datetime | None
    has_fields: "Passes | None"

    @classmethod
    def of(cls, filters: Filters, has_fields: "Passes | None") -> Self:
        since, until = parameters.moment(filters.get("since")), parameters.moment(filters.get("until"))
        return cls(filters.get("session"), filters.get("kinds"), since, until, has_fields)

    def passes(self, event: Event) -> bool:
        return (
            (self.session is None or event.session == self.session)
            and (self.kinds is None or event.kind in self.kinds)
            and (self.since is None or event.at >= self.since)
            and (self.until is None or event.at < self.until)
            and (self.has_fields is None or self.has_fields(event))
        )


async def window(reading: AgentReading, size: int | None) -> EpisodicView:
    """The newest `size` events that `agent` may see; None means as many as its window holds."""
    space, agent = reading.space, reading.agent
    row = RowKey(settings.AGENTS.name, space, agent)
    wanted = size or limits.WINDOW_EVENTS
    newest = min(wanted, _FIRST_READ_EVENTS)
    while True:
        snapshot = await reading.snapshot([row], episodic.logs(space, agent, newest))
        own = snapshot.row(settings.AGENTS, space, agent)
        wanted = size or (own and own.window) or limits.WINDOW_EVENTS
        memories = episodic.window(snapshot.memories(space, agent), wanted)
        count = fitting(bytes_of(memory) for memory in reversed(memories))
        total = snapshot.tail(episodic.OWN, space, agent).total + snapshot.tail(episodic.SHARED, space).total
        if newest >= min(wanted, total) or count < len(memories):
            break
        newest = min(wanted, _MORE * newest)
    shown = memories[len(memories) - count :]
    return EpisodicView(
        **await of_agent(reading, snapshot),
        window=wanted,
        memories=tuple(snapshot.make_remembered(memory.offset, memory.data, memory.text) for memory in shown),
        left_out=min(wanted, total) - count,
    )


def bytes_of(memory: RememberedEvent) -> int:
    """The approximate size of an event in an answer, in bytes: its JSON, and its text again."""
    return 2 * len(memory.data)


async def page(reading: AgentReading, wanted: EventFilter, limit: int, before: Position | None) -> TimelinePage:
    """The newest `limit` events before `before` that are `wanted`, or fewer if these do not fit into one answer.

    The logs retain `log_events` events.
    """
    from recallog.reading.source_classes import make_sourced  # the commands that use `window` do not need it
    from recallog_projections.views.trust import SourceClasses

    space, agent, log_events = reading.space, reading.agent, reading.log_events
    rows = [RowKey(settings.AGENTS.name, space, agent), RowKey(settings.SPACES.name, space)]
    newest = min(_FIRST_READ_EVENTS, log_events)
    while True:
        snapshot = await reading.snapshot(rows, episodic.logs(space, agent, newest))
        if before is not None:
            positions.check_same_partition(space, snapshot.partition, before.partition, "before")
        tails = snapshot.tail(episodic.OWN, space, agent), snapshot.tail(episodic.SHARED, space)
        kept_from = episodic.kept_from(*tails)
        memories = [memory for memory in episodic.complete(*tails) if before is None or memory.offset < before.offset]
        found, older = _page_of(snapshot, memories, wanted, limit)
        if older is not None or kept_from is None or newest == log_events:
            break
        newest = min(log_events, _MORE * newest)
    sources = SourceClasses(snapshot.row(settings.SPACES, space))
    return TimelinePage(
        **await of_agent(reading, snapshot),
        items=tuple(make_sourced(sources, shown) for shown in in_event_time(found[::-1])),
        older=older,
        kept_from=position(snapshot.partition, kept_from) if older is None and kept_from is not None else None,
    )


def _page_of(
    snapshot: Snapshot, memories: Sequence[RememberedEvent], wanted: EventFilter, limit: int
) -> tuple[list[Remembered], Position | None]:
    """The events of a page, newest first, and the position before which the next page begins."""
    found, room = list[Remembered](), Room()
    for memory in reversed(memories):
        shown = snapshot.make_remembered(memory.offset, memory.data, memory.text)
        if not wanted.passes(shown.event):
            continue
        if len(found) == limit or not room.takes(bytes_of(memory)):
            return found, found[-1].position
        found.append(shown)
    return found, None
