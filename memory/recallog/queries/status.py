"""The status query: the state of the ledger, the views and the index. Read-only."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from functools import partial, reduce
from itertools import chain
from typing import ClassVar, TypeVar

from recallog.components import Components
from recallog.index.semantic_index import SemanticIndex
from recallog.queries import due
from recallog.reading.projection_group import INDEX, ProjectionGroup
from recallog.reading.read_session import ReadSession
from recallog_projections.concurrency import gather_limited
from recallog_projections.index.unread import unread
from recallog_projections.stores.store import Pointer, Store
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, clock
from recallog_schemas import Position, limits, sealing
from recallog_schemas.errors import (
    IndexUnavailable,
    Rebuilding,
    RecallogError,
    StorageError,
    StorageUnavailable,
    ViewsTooNew,
)
from recallog_schemas.views import (
    IndexStatus,
    LedgerFault,
    PartitionStatus,
    PendingTrigger,
    Status,
    Unreflected,
    count_noun,
)
from recallog_streams import dead_letters
from recallog_streams.ledgers.ledger import Ledger

Result = TypeVar("Result")


async def status(components: Components) -> Status:
    """The present state, without folding."""
    manifest = await components.ledger.manifest()
    ends = await components.ledger.ends()
    partitions, totals = [], activity.Totals(0, 0, 0)
    pending: list[PendingTrigger] = []
    unreflected: list[Unreflected] = []
    faults = [LedgerFault(**fault._asdict()) for fault in await components.ledger.faults()]
    faults += await _of_keys(components.ledger, ends)
    for views in components.groups():
        if views is components.views:
            of_views, waiting, silent, ahead = await _of_built_in(views, ends)
            totals = reduce(_sum, (counted for _, counted in of_views if counted is not None), totals)
            pending += waiting
            unreflected += silent
            faults += ahead[: limits.STATUS_ITEMS]
        else:
            of_views = await _of_partitions(views.name, views.store, ends)
            if views in components.due_groups():
                pending += await _of_own(views, [row for row, _ in of_views])
        partitions += [row for row, _ in of_views]
    of_index, index_bytes, index = await _of_index(components.index, ends)
    partitions = await _compared_with_end(components.ledger, [*partitions, *of_index])
    pending.sort(key=lambda trigger: (trigger.space, trigger.agent))
    unreflected.sort(key=lambda agent: (agent.space, agent.agent))
    return Status(
        ledger=manifest.ledger,
        folded_by_workers=components.ledger.folded_by_workers,
        records=sum(ends),
        spaces=totals.spaces,
        agents=totals.agents,
        sessions=totals.sessions,
        partitions=tuple(partitions),
        pending=tuple(pending[: limits.STATUS_ITEMS]),
        pending_total=len(pending),
        oldest_pending=min((each for each in pending if each.since is not None), key=_since, default=None),
        unreflected=tuple(unreflected[: limits.STATUS_ITEMS]),
        unreflected_total=len(unreflected),
        ledger_bytes=await components.ledger.size_bytes(),
        views_bytes=sum([await views.store.size_bytes() for views in components.groups()]),
        index_bytes=index_bytes,
        index=index,
        faults=tuple(faults),
    )


class NotReady(RecallogError):
    """The memory cannot answer all queries now. The text says why, without names of hosts and folders."""

    retryable: ClassVar[bool] = True
    exit_code: ClassVar[int] = StorageUnavailable.exit_code


async def _of_keys(ledger: Ledger, ends: Sequence[int]) -> list[LedgerFault]:
    """Problems with the keys of sealed records: with their store, or with the keys of the newest records."""
    await ledger.sealing.refresh()
    newest = [
        offset
        for partition, end in enumerate(ends if not ledger.folded_by_workers else ())
        async for batch in ledger.read(partition, max(0, end - limits.READ_BATCH_RECORDS), end)
        for offset, data in batch.records
        if sealing.is_sealed(data)
    ]
    problem = ledger.sealing.problem
    if newest and not problem:
        problem = f"{ledger.sealing.location} lacks keys of sealed events, the newest at 0:{newest[-1]}"
    remedy = "These events are dead letters until the keys are there again; then: recallog dead-letters retry"
    return [LedgerFault(problem=problem.rstrip("."), remedy=remedy, severe=False)] if problem else []


async def check_ready(components: Components) -> None:
    """Raise an error if the ledger cannot be read or loses events, or if views that workers maintain cannot be read.

    Raises `NotReady`, which names the partitions, if only some of them are concerned.
    """
    ledger = components.ledger
    faults = [fault.problem for fault in await ledger.faults() if fault.severe]
    if faults:
        raise NotReady("; ".join(faults))
    partitions = range(len(await ledger.ends()))
    if not ledger.folded_by_workers:
        return
    for views in components.groups():
        refused = await gather_limited(partial(_refusal, views), partitions)
        reasons = [f"{partition} ({error})" for partition, error in enumerate(refused) if error]
        if reasons:
            some = ", ".join(reasons[: limits.FAULT_PARTITIONS]) + (", …" if reasons[limits.FAULT_PARTITIONS :] else "")
            raise NotReady(
                f"the {views.name} views of {len(reasons)} of {len(partitions)} partitions cannot be read: {some}"
            )


async def _refusal(views: ProjectionGroup, partition: int) -> str:
    """Why the views of a partition cannot be read now, by the name of the error; "" if they can be read."""
    try:
        await (await views.access.reading(partition, None, None)).read()
    except (Rebuilding, ViewsTooNew) as error:
        return type(error).__name__
    return ""


async def _of_index(
    index: SemanticIndex | None, ends: Sequence[int]
) -> tuple[list[PartitionStatus], int, IndexStatus | None]:
    """The progress of the index in each partition, its size and its state. Faults of the index are not raised."""
    if index is None:
        return [], 0, None
    rows: list[PartitionStatus] = []
    size, problem = 0, ""
    try:
        health = await index.health()
        problem = (health.problem or health.repair) if health is not None else ""
        if index.exists():
            size = await index.size_bytes()
    except (IndexUnavailable, StorageError) as error:
        problem = str(error)
    if index.exists():
        rows = [row for row, _ in await _of_partitions(INDEX, index.rows, ends)]
    problem = problem or next((row.problem for row in rows if row.problem), "")
    if problem:
        state = "unavailable" if not rows or any(row.generation is None for row in rows) else "failing"
    elif any(row.generation is None for row in rows) or not rows:
        state = "building" if any(row.building for row in rows) else "none"
    else:
        state = "behind" if any(row.lag for row in rows) else "current"
    return rows, size, IndexStatus(state=state, problem=problem)


async def _compared_with_end(ledger: Ledger, rows: Sequence[PartitionStatus]) -> list[PartitionStatus]:
    """`rows`, with a problem if the views have processed records that the ledger does not have."""
    if all(row.checkpoint < row.end for row in rows):
        return list(rows)
    ends = await ledger.ends()  # read after the checkpoints, since others may have advanced these
    return [_missing(row, ledger) if row.checkpoint >= ends[row.partition] else row for row in rows]


def _missing(row: PartitionStatus, ledger: Ledger) -> PartitionStatus:
    last = f"{row.partition}:{row.checkpoint}"
    problem = (
        f"the ledger {ledger.location} ends before the record {last}, which was processed; recallog verify says more"
    )
    return row.model_copy(update={"problem": problem})


async def _of_built_in(
    views: ProjectionGroup, ends: Sequence[int]
) -> tuple[
    list[tuple[PartitionStatus, activity.Totals | None]], list[PendingTrigger], list[Unreflected], list[LedgerFault]
]:
    """The progress of the built-in views with their totals, and in the same generations the due work and the events
    that are dated ahead."""

    async def of_all(query: Callable[[ReadSession], AsyncIterator[Result]]) -> list[Result]:
        found = await gather_limited(
            lambda row: _items(views, row, query), [row for row, counted in of_views if counted]
        )
        return [*chain.from_iterable(found)]

    while True:
        of_views = await _of_partitions(views.name, views.store, ends)
        try:
            return of_views, await of_all(due.pending), await of_all(due.find_unreflected), await of_all(_ahead)
        except Rebuilding:
            continue  # a generation was replaced, or lost by damage that this call has found: its totals do not count


async def _ahead(reading: ReadSession) -> AsyncIterator[LedgerFault]:
    """The events of a partition with dates ahead of the clock, by space."""
    async for item, _ in reading.scan(clock.AHEAD.name):
        row = clock.AHEAD.decode(item.data)
        newest = Position(reading.partition, row.offsets[-1])
        many = count_noun(row.events, "event has a date", "events have dates")
        problem = f"in {item.space} {many} more than a day ahead, the newest at {newest}"
        yield LedgerFault(problem=problem, remedy="They set no clock. Correct that of their writer", severe=False)


async def _of_own(views: ProjectionGroup, rows: Sequence[PartitionStatus]) -> list[PendingTrigger]:
    """The triggers of a user's projection, without partitions whose views are being replaced."""

    async def of_partition(row: PartitionStatus) -> list[PendingTrigger]:
        try:
            return await _items(views, row, due.pending_work)
        except Rebuilding:
            return []

    found = await gather_limited(of_partition, [row for row in rows if row.generation is not None])
    return [trigger for triggers in found for trigger in triggers]


def _since(trigger: PendingTrigger) -> datetime:
    return trigger.since or datetime.max.replace(tzinfo=UTC)


async def _items(
    views: ProjectionGroup, row: PartitionStatus, query: Callable[[ReadSession], AsyncIterator[Result]]
) -> list[Result]:
    """The items of the generation of `row`; empty if they cannot be read. Raises `Rebuilding` if it is replaced."""
    try:
        active = (await views.store.pointer(row.partition)).active
        if active is None or active.id != row.generation:
            raise Rebuilding("the generation has been replaced")
        return [item async for item in query(ReadSession(views.store, row.partition, active))]
    except StorageError:
        if views.store.remote:
            raise
        return []


async def _of_partitions(
    name: str, store: Store, ends: Sequence[int]
) -> list[tuple[PartitionStatus, activity.Totals | None]]:
    return await gather_limited(
        lambda partition: _partition_status(name, store, partition, ends[partition]), range(len(ends))
    )


async def _partition_status(
    name: str, store: Store, partition: int, end: int
) -> tuple[PartitionStatus, activity.Totals | None]:
    """The progress of the views, and their totals if they are built.

    Views in a folder may not be readable. Either all files of a group are read, or none.
    """
    row = PartitionStatus(
        views=name,
        partition=partition,
        end=end,
        checkpoint=-1,
        lag=end,
        generation=None,
        building=None,
        building_checkpoint=None,
        dead_letters=0,
        incomplete=False,
    )
    try:
        return await _progress_of(row, store)
    except StorageError as error:
        if store.remote:
            raise
        return row.model_copy(update={"problem": str(error)}), None


async def _progress_of(row: PartitionStatus, store: Store) -> tuple[PartitionStatus, activity.Totals | None]:
    pointer = await store.pointer(row.partition)
    count, checkpoint, totals, unread_events = dead_letters.DeadLetterCount(), -1, None, 0
    if pointer.active is not None:
        needs = [RowKey(dead_letters.COUNT.name, ""), RowKey(activity.TOTALS.name, "")]
        try:
            snapshot = await store.read(row.partition, needs)
            if row.views == INDEX:
                unread_events = len(await unread(store, snapshot.generation))
        except Rebuilding:
            pointer = Pointer()
        else:
            checkpoint = snapshot.checkpoint.offset
            count_row, totals_row = snapshot.rows
            count = dead_letters.COUNT.decode(count_row) if count_row else count
            totals = activity.TOTALS.decode(totals_row) if totals_row else None
    building = await store.checkpoint(pointer.building) if pointer.building else None
    known = {
        "checkpoint": checkpoint,
        "lag": max(0, row.end - checkpoint - 1) + unread_events,
        "generation": pointer.active.id if pointer.active else None,
        "building": pointer.building.id if pointer.building else None,
        "building_checkpoint": building.offset if building else None,
        "dead_letters": count.total,
        "incomplete": count.future > 0,
    }
    return row.model_copy(update=known), totals


def _sum(totals: activity.Totals, more: activity.Totals) -> activity.Totals:
    return activity.Totals(totals.spaces + more.spaces, totals.agents + more.agents, totals.sessions + more.sessions)
