"""Queries about due work: the triggers that no answer has closed yet."""

from collections.abc import AsyncIterator, Sequence

from recallog.queries import reflections
from recallog.reading.read_session import Page, ReadSession
from recallog_projections.views import due
from recallog_projections.views.due import Work
from recallog_schemas.views import PendingTrigger

WORK_AT_ONCE = 64
"""Rows of `due.now` that one read returns: a row may have 128 KiB of texts."""


async def work(reading: ReadSession, after: str | None = None) -> Page[Work]:
    """The triggers of a partition that one event each made due, in the order of these events, behind a key."""
    return await reading.page(due.NOW, "", after=after, limit=WORK_AT_ONCE)


async def pending(reading: ReadSession, spaces: Sequence[str] | None = None) -> AsyncIterator[PendingTrigger]:
    """The pending triggers of some spaces, or of all of a partition: reflections by space and agent, then all others in
    the order of their causes."""
    async for reflection in reflections.pending(reading, spaces):
        yield reflection
    after = None
    while True:
        page = await work(reading, after)
        for _, each in page.items:
            if spaces is None or each.space in spaces:
                yield PendingTrigger(
                    space=each.space,
                    agent=each.agent,
                    kind=each.kind,
                    trigger=each.trigger,
                    events=len(each.texts) + len(each.entries) or 1,
                    threshold=None,
                )
        after = page.next
        if after is None:
            return


async def pending_triggers(reading: ReadSession, spaces: Sequence[str] | None = None) -> list[PendingTrigger]:
    """The pending triggers of some spaces, or of all of a partition."""
    return [trigger async for trigger in pending(reading, spaces)]


async def due_reflections(reading: ReadSession, spaces: Sequence[str] | None = None) -> list[PendingTrigger]:
    """The reflections that are due in some spaces, or in all of a partition."""
    return [trigger async for trigger in reflections.pending(reading, spaces)]
