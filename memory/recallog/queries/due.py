"""Queries about due work: the triggers that no answer has closed yet."""

from collections.abc import AsyncIterator, Collection, Sequence

from recallog.queries import reflections
from recallog.reading.read_session import ReadSession
from recallog_projections.views import due
from recallog_projections.views.due import Work
from recallog_schemas.views import PendingTrigger

_ROWS_FIRST = 10
"""Rows of `due.now` that the first call reads. Small, since mostly nothing is due."""


async def work(reading: ReadSession, spaces: Collection[str] | None = None) -> list[Work]:
    """The triggers of a partition that one event each made due, in the order of these events; or of some spaces."""
    found = [due.NOW.decode(item.data) async for item, _ in reading.scan(due.NOW.name, "", first_items=_ROWS_FIRST)]
    # A row that was written between two calls may lie before the first one's last key, but no row is read twice.
    return [each for each in found if spaces is None or each.space in spaces]


async def pending(reading: ReadSession, spaces: Sequence[str] | None = None) -> AsyncIterator[PendingTrigger]:
    """The pending triggers of some spaces, or of all of a partition: reflections by space and agent, then all others in
    the order of their causes."""
    async for reflection in reflections.pending(reading, spaces):
        yield reflection
    for each in await work(reading, spaces):
        yield PendingTrigger(
            space=each.space,
            agent=each.agent,
            kind=each.kind,
            trigger=each.trigger,
            events=len(each.texts) + len(each.entries),
            threshold=None,
        )


async def pending_triggers(reading: ReadSession, spaces: Sequence[str] | None = None) -> list[PendingTrigger]:
    """The pending triggers of some spaces, or of all of a partition."""
    return [trigger async for trigger in pending(reading, spaces)]


async def due_work(reading: ReadSession, spaces: Sequence[str] | None) -> tuple[list[PendingTrigger], list[Work]]:
    """The due reflections, and all other triggers, of some spaces or of all of a partition."""
    return [each async for each in reflections.pending(reading, spaces)], await work(reading, spaces)
