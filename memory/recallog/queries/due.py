"""Queries about due work: triggers without a complete answer."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from types import ModuleType

from recallog.components import Components
from recallog.reading.query_router import QueryRouter
from recallog.reading.read_session import ReadSession, RowPage
from recallog_projections.concurrency import gather_limited
from recallog_projections.tables import RowKey
from recallog_projections.views import clock, due
from recallog_projections.views.due import Scheduled, Work
from recallog_schemas import Position, codec, limits, models, timestamps, triggers
from recallog_schemas.views import PendingTrigger, Unreflected
from recallog_streams import answers
from recallog_streams.answers import Answer
from recallog_streams.ledgers.ledger import Ledger, record_at

WORK_AT_ONCE = 64
"""Rows of `due.now` in one read. A row may have 128 KiB of texts."""


def import_counted() -> Sequence[ModuleType]:
    """The modules `due` of the models, about triggers that fall due by a count of events.

    `KIND` is the kind of these triggers; `pending` finds them, `since` finds the record that made one due, and
    `find_unreflected` finds the agents without a threshold that have seen more events than can be shown to them.
    """
    return models.import_parts("recallog", "due")


async def work(reading: ReadSession, after: str | None = None) -> RowPage[Work]:
    """The triggers of a partition that were each made due by one event, in the order of these events, after a key."""
    return await reading.page(due.NOW, "", after=after, limit=WORK_AT_ONCE)


async def standing(reading: ReadSession, space: str, trigger: str) -> Work | None:
    """The row of `due.now` of a trigger; None if it is not, or no longer, due."""
    snapshot = await reading.snapshot([RowKey(due.STANDING.name, space, "", trigger)])
    row = snapshot.row(due.STANDING, space, "", trigger)
    if row is None:
        return None
    snapshot = await reading.snapshot([RowKey(due.NOW.name, "", "", row.key)])
    return snapshot.row(due.NOW, "", "", row.key)


async def begun(reading: ReadSession, space: str, trigger: str) -> Answer | None:
    """The answer to a trigger that the views have, even if it is incomplete; None without one."""
    snapshot = await reading.snapshot([answers.key_of(space, trigger)])
    return snapshot.row(answers.TABLE, space, "", trigger)


async def still_due(reading: ReadSession, asked: Sequence[tuple[str, str]]) -> set[str]:
    """The ids of the given triggers that are still due. Each trigger is given with its space."""
    recurring: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for space, id_ in asked:
        parsed = triggers.parse(id_)
        if parsed is not None:
            (recurring if parsed.recurs else others).append((space, id_))
    keys = [RowKey(due.STANDING.name, space, "", id_) for space, id_ in others]
    snapshot = await reading.snapshot(keys)
    found = {id_ for space, id_ in others if snapshot.row(due.STANDING, space, "", id_) is not None}
    spaces = sorted({space for space, _ in recurring})
    if spaces:
        found |= {row.trigger for row in await find_scheduled(reading, spaces)}
        found |= {row.trigger for row in await due_by_count(reading, spaces)}
    return found & {id_ for _, id_ in asked}


async def silent(reading: ReadSession, since: int, until: int) -> list[Scheduled]:
    """The triggers of a partition that fall due from `since` to `until`, at times later than that of their agent."""
    found: list[Scheduled] = []
    after, last = due.before(since), False
    while not last:
        page = await reading.page(due.AT, "", after=after, limit=limits.SCAN_ITEMS)
        rows = [row for _, row in page.items if row.at <= until]
        last = page.last or len(rows) < len(page.items)
        after = page.items[-1][0] if page.items else after
        times_of = await _times(reading, rows)
        found += [row for row in rows if times_of.get((row.space, row.agent), row.at) < row.at]
    return found


async def find_scheduled(reading: ReadSession, spaces: Sequence[str] | None = None) -> list[Scheduled]:
    """The triggers of some spaces, or of all of a partition, that are due by the time of their agent.

    With `spaces`, triggers that fall due more than an hour after all events of these spaces are not read.
    """
    beyond = None
    if spaces is not None:
        snapshot = await reading.snapshot(RowKey(clock.NOW.name, space) for space in spaces)
        rows_of = [row for space in spaces if (row := snapshot.row(clock.NOW, space)) is not None]
        beyond = due.before(max((row.bound for row in rows_of), default=-1) + 1)
    found: list[Scheduled] = []
    after, last = None, False
    while not last:
        page = await reading.page(due.AT, "", after=after, limit=limits.SCAN_ITEMS)
        rows = [row for key, row in page.items if beyond is None or key < beyond]
        last = page.last or len(rows) < len(page.items)
        after = page.items[-1][0] if page.items else None
        rows = [row for row in rows if spaces is None or row.space in spaces]
        times_of = await _times(reading, rows)
        found += [row for row in rows if row.at <= times_of.get((row.space, row.agent), -1)]
    return found


async def _times(reading: ReadSession, rows: Sequence[Scheduled]) -> dict[tuple[str, str], int]:
    """The times of the agents of some triggers, in microseconds since 1970, for agents that have a time."""
    agents = dict.fromkeys((row.space, row.agent) for row in rows)
    snapshot = await reading.snapshot(key for agent in agents for key in clock.keys(*agent))
    times = {agent: snapshot.time_of(*agent) for agent in agents}
    return {agent: timestamps.micros(time) for agent, time in times.items() if time is not None}


async def pending(reading: ReadSession, spaces: Sequence[str] | None = None) -> AsyncIterator[PendingTrigger]:
    """The pending triggers of some spaces, or of all of a partition: first, by space and agent, those that are due by a
    count, then those of `due.at` in the order of their times, then all others in the order of their causes."""
    for trigger in await due_by_count(reading, spaces):
        yield trigger
    for row in await find_scheduled(reading, spaces):
        yield PendingTrigger(
            space=row.space,
            agent=row.agent,
            kind=row.kind,
            trigger=row.trigger,
            events=1,
            threshold=None,
            since=timestamps.moment_of(row.at),
        )
    async for trigger in pending_work(reading, spaces):
        yield trigger


async def pending_work(reading: ReadSession, spaces: Sequence[str] | None = None) -> AsyncIterator[PendingTrigger]:
    """The pending triggers that were each made due by one event, in the order of these events."""
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
                    since=timestamps.moment_of(each.at),
                )
        after = page.next
        if after is None:
            return


async def pending_triggers(reading: ReadSession, spaces: Sequence[str] | None = None) -> list[PendingTrigger]:
    """The pending triggers of some spaces, or of all of a partition."""
    return [trigger async for trigger in pending(reading, spaces)]


async def own_triggers(reading: ReadSession, spaces: Sequence[str] | None = None) -> list[PendingTrigger]:
    """The pending triggers of a user's projection whose views are read."""
    return [trigger async for trigger in pending_work(reading, spaces)]


Since = Callable[[ModuleType, PendingTrigger], Awaitable[Position | None]]
"""Finds the record that made a trigger due by a count; None if the views have dropped it."""


async def of_memory(
    components: Components, router: QueryRouter, since: Since, space: str | None, partition: int | None
) -> list[PendingTrigger]:
    """The pending triggers of one space, one partition or all, with their times. Triggers of users' projections come
    last."""
    found: list[PendingTrigger] = []
    for views in components.due_groups():
        query = pending_triggers if views is components.views else own_triggers
        found += (
            await router.of_all(query, only=partition, views=views)
            if space is None
            else await router.of_space(space, partial(query, spaces=[space]), views=views)
        )
    for model in import_counted():
        undated = [each for each in found if each.kind == model.KIND][: limits.DATED_TRIGGERS]
        times = await gather_limited(partial(_time_of, components.ledger, since, model), undated)
        time_of = {each.trigger: time for each, time in zip(undated, times, strict=True)}
        found = [each.model_copy(update={"since": time_of.get(each.trigger, each.since)}) for each in found]
    return found


async def _time_of(ledger: Ledger, since: Since, model: ModuleType, trigger: PendingTrigger) -> datetime | None:
    """The time at which a trigger fell due by a count; None if the views have dropped the event that made it due."""
    record = await since(model, trigger)
    data = None if record is None else await record_at(ledger, record.partition, record.offset)
    return None if data is None else codec.decode(data).at


async def find_unreflected(reading: ReadSession) -> AsyncIterator[Unreflected]:
    """The agents of a partition without a threshold that have seen more events than can be shown to them."""
    for model in import_counted():
        async for agent in model.find_unreflected(reading):
            yield agent


async def due_by_count(reading: ReadSession, spaces: Sequence[str] | None = None) -> list[PendingTrigger]:
    """The triggers that are due by a count in some spaces, or in all of a partition."""
    return [trigger for model in import_counted() async for trigger in model.pending(reading, spaces)]
