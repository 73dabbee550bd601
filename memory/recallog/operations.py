"""What operators ask: status, verification, dead letters."""

import hashlib
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from recallog import rebuilding, reflections
from recallog.index.indexing import INDEX
from recallog.overall import Overall
from recallog.reading import Reading, position
from recallog.time_travel import travel
from recallog.views import Views
from recallog.wiring import Parts
from recallog_projections import activity
from recallog_projections.projection import Need
from recallog_projections.stores.store import Generation, Pointer, Store
from recallog_schemas import Position, codec, limits
from recallog_schemas.errors import OutOfRange, Rebuilding, RecallogError, SettingsError
from recallog_schemas.views import (
    DeadLetter,
    DeadLetterDetail,
    Difference,
    PartitionStatus,
    RebuildPlan,
    RebuildReport,
    StandingTrigger,
    Status,
    TableCheck,
    Unreflected,
    VerifyReport,
)
from recallog_streams import dead_letters, generations
from recallog_streams.dead_letters import Parked
from recallog_streams.ledger import record_at
from recallog_streams.projector import Progress
from recallog_streams.verify import Compared
from recallog_streams.verify import verify as compare

Answer = TypeVar("Answer")


async def status(parts: Parts) -> Status:
    """The state as it is, without folding anything."""
    manifest = await parts.ledger.manifest()
    ends = await parts.ledger.ends()
    partitions, totals, index_bytes = [], activity.Totals(0, 0, 0), 0
    standing: list[StandingTrigger] = []
    unreflected: list[Unreflected] = []
    for views in parts.all_views():
        for partition, end in enumerate(ends):
            row, counted = await _partition_status(views.name, views.store, partition, end)
            partitions.append(row)
            if views is parts.views and counted is not None:
                totals = _sum(totals, counted)
                standing += await _as_it_is(views, partition, reflections.standing)
                unreflected += await _as_it_is(views, partition, reflections.unreflected)
    if parts.index is not None and parts.index.exists():
        rows = parts.index.indexing.rows
        partitions += [(await _partition_status(INDEX, rows, number, end))[0] for number, end in enumerate(ends)]
        index_bytes = await parts.index.size_bytes()
    standing.sort(key=lambda trigger: (trigger.space, trigger.agent))
    unreflected.sort(key=lambda agent: (agent.space, agent.agent))
    return Status(
        ledger=manifest.ledger,
        records=sum(ends),
        spaces=totals.spaces,
        agents=totals.agents,
        sessions=totals.sessions,
        partitions=tuple(partitions),
        standing=tuple(standing[: limits.STATUS_ITEMS]),
        standing_total=len(standing),
        unreflected=tuple(unreflected[: limits.STATUS_ITEMS]),
        unreflected_total=len(unreflected),
        ledger_bytes=await parts.ledger.size_bytes(),
        views_bytes=sum([await views.store.size_bytes() for views in parts.all_views()]),
        index_bytes=index_bytes,
    )


async def _as_it_is(views: Views, partition: int, query: Callable[[Reading], AsyncIterator[Answer]]) -> list[Answer]:
    """The answer of the active generation as far as it is; nothing where there is none."""
    active = (await views.store.pointer(partition)).active
    try:
        return [item async for item in query(Reading(views.store, partition, active))] if active is not None else []
    except Rebuilding:
        return []


async def _partition_status(
    name: str, store: Store, partition: int, end: int
) -> tuple[PartitionStatus, activity.Totals | None]:
    pointer = await store.pointer(partition)
    count, checkpoint, totals = dead_letters.Count(), -1, None
    if pointer.active is not None:
        needs = [Need(dead_letters.COUNT.name, ""), Need(activity.TOTALS.name, "")]
        try:
            snapshot = await store.read(partition, needs)
        except Rebuilding:
            pointer = Pointer()
        else:
            checkpoint = snapshot.checkpoint.offset
            count_row, totals_row = snapshot.rows
            count = dead_letters.COUNT.decode(count_row) if count_row else count
            totals = activity.TOTALS.decode(totals_row) if totals_row else None
    building = await store.checkpoint(pointer.building) if pointer.building else None
    row = PartitionStatus(
        views=name,
        partition=partition,
        end=end,
        checkpoint=checkpoint,
        lag=end - checkpoint - 1,
        generation=pointer.active.id if pointer.active else None,
        building=pointer.building.id if pointer.building else None,
        building_checkpoint=building.offset if building else None,
        dead_letters=count.parked,
        incomplete=count.future > 0,
    )
    return row, totals


def _sum(totals: activity.Totals, more: activity.Totals) -> activity.Totals:
    return activity.Totals(totals.spaces + more.spaces, totals.agents + more.agents, totals.sessions + more.sessions)


async def verify(parts: Parts, progress: Progress | None) -> VerifyReport:
    """Compare every view with a fresh fold of the ledger."""
    checks: list[TableCheck] = []
    ends = await parts.ledger.ends()
    for views in [*parts.all_views(), *await _index(parts, of_itself=True)]:
        overall = Overall(progress, dict(enumerate(ends)))
        for partition in range(len(ends)):
            active, compared = await _compared(views, partition, overall.of(partition))
            checks += [_check(views, active, table) for table in compared]
    whole = hashlib.sha256("\n".join(check.digest for check in checks).encode()).hexdigest()
    return VerifyReport(records=sum(ends), tables=tuple(checks), digest=whole)


async def _compared(views: Views, partition: int, progress: Progress | None) -> tuple[Generation, list[Compared]]:
    while True:
        active = await views.serving.active(partition, progress)
        try:
            return active, await compare(views.builder, views.projections, active, progress)
        except Rebuilding:
            continue  # a rebuild cut over meanwhile


def _check(views: Views, active: Generation, compared: Compared) -> TableCheck:
    difference = compared.difference
    return TableCheck(
        generation=active.id,
        checkpoint=position(active.partition, compared.checkpoint),
        views=views.name,
        table=compared.table,
        rows=compared.items,
        digest=compared.digest,
        expected_digest=compared.expected_digest,
        difference=None
        if difference is None
        else Difference(
            table=difference.table,
            space=difference.space,
            owner=difference.owner,
            key=difference.key,
            found=_readable(views, difference.table, difference.found),
            expected=_readable(views, difference.table, difference.expected),
        ),
    )


def _readable(views: Views, name: str, data: bytes | None) -> str | None:
    """A row in words, as far as it can be read at all."""
    if data is None:
        return None
    table = next(table for table in views.builder.fold.tables if table.name == name)
    try:
        return str(table.decode(data))
    except RecallogError:
        return repr(data)


async def _index(parts: Parts, *, of_itself: bool = False) -> list[Views]:
    """The index as views, served. Raises `SettingsError` where it is off, and `IndexUnavailable`.

    `of_itself`: nothing instead where it is off, or was never asked for.
    """
    if of_itself and (parts.index is None or not parts.index.exists()):
        return []
    if parts.index is None:
        raise SettingsError("the index is off. Leave RECALLOG_INDEX unset, or name a Qdrant server: http://host:6333")
    await parts.index.start()
    return [await parts.index.indexing.views()]


async def _concerned(parts: Parts, what: str) -> list[Views]:
    return await _index(parts) if what == INDEX else parts.all_views()


async def plan_rebuild(parts: Parts, what: str) -> list[RebuildPlan]:
    """What a rebuild would do now, without doing it."""
    ends = await parts.ledger.ends()
    plans = []
    for views in await _concerned(parts, what):
        concerned = await rebuilding.concerned(views.builder, range(len(ends)))
        plans += [
            RebuildPlan(
                views=views.name,
                partition=partition,
                records=ends[partition],
                replaces=pointer.active.id if pointer.active else None,
                joins=pointer.building.id
                if pointer.building and rebuilding.is_joined(views.builder, pointer)
                else None,
            )
            for partition, pointer in concerned.items()
        ]
    return plans


async def rebuild(parts: Parts, what: str, progress: Progress | None, *, accept: bool = False) -> list[RebuildReport]:
    """Rebuild all views, or the index. Processes that do so at once share the partitions."""
    return [
        report
        for views in await _concerned(parts, what)
        for report in await rebuilding.rebuild(views, progress, accept=accept)
    ]


async def reindex(parts: Parts, model: str, progress: Progress | None) -> list[RebuildReport]:
    """Build the index with another embedder, beside the one that goes on answering, then cut over."""
    await _index(parts)
    if parts.index is None:
        return []
    return await rebuilding.rebuild(await parts.index.indexing.moved(model), progress, accept=False)


async def abort_rebuild(parts: Parts, what: str) -> list[str]:
    """Give up all rebuilds under way, of the views or of the index; the generations given up."""
    aborted = [
        await generations.abort(views.builder, partition)
        for views in await _concerned(parts, what)
        for partition in range(len(await parts.ledger.ends()))
    ]
    return [generation.id for generation in aborted if generation is not None]


async def list_dead_letters(parts: Parts, progress: Progress | None) -> list[DeadLetter]:
    """The dead letters of the active generations, brought up to the ledger's end."""
    found: list[DeadLetter] = []
    for views in parts.all_views():
        for partition in range(len(await parts.ledger.ends())):
            found += [_letter(views, partition, parked) for parked in await _parked(views, partition, progress)]
    return found


async def _parked(views: Views, partition: int, progress: Progress | None) -> list[Parked]:
    while True:
        active = await views.serving.active(partition, progress)
        try:
            return await dead_letters.all_parked(views.store, active)
        except Rebuilding:
            continue  # a rebuild cut over meanwhile


async def show_dead_letter(parts: Parts, at: Position, progress: Progress | None) -> DeadLetterDetail:
    """The dead letter at a position, of the first views that have one there. Raises `OutOfRange`."""
    generations.check_position(await parts.ledger.ends(), at.partition, at.offset)
    data = await record_at(parts.ledger, at.partition, at.offset)
    for letter in await list_dead_letters(parts, progress):
        if letter.position == at and data is not None:
            return DeadLetterDetail(letter=letter, content=data.decode("utf-8", "backslashreplace"))
    raise OutOfRange(f"the record at {at} is no dead letter. List them: recallog dead-letters list")


async def retry_dead_letters(parts: Parts, progress: Progress | None) -> list[DeadLetter]:
    """Rebuild the views where that helps. Nothing is ever applied out of order, so a retry is a rebuild from zero.

    Whether it would help is asked first, by folding the spaces of the dead letters in memory.
    """
    before = await list_dead_letters(parts, progress)
    for views in parts.all_views():
        letters = [letter for letter in before if letter.views == views.name]
        if not any([await _would_fold(parts, views, letter) for letter in letters]):
            continue
        await rebuilding.rebuild(views, progress, accept=False)
    return await list_dead_letters(parts, progress)


async def _would_fold(parts: Parts, views: Views, letter: DeadLetter) -> bool:
    data = await record_at(parts.ledger, letter.position.partition, letter.position.offset)
    if data is None:
        return False
    try:
        event = codec.decode(data)
    except RecallogError:
        return False
    reading = await travel(parts.ledger, views.projections, event.space, letter.position)
    key = dead_letters.key_of(letter.position.offset)
    (row,) = (await reading.read([Need(dead_letters.TABLE.name, "", "", key)])).rows
    return row is None


def _letter(views: Views, partition: int, parked: Parked) -> DeadLetter:
    return DeadLetter(
        views=views.name,
        position=Position(partition, parked.offset),
        reason=parked.reason,
        detail=parked.detail,
        space=parked.space,
        id=parked.id,
        kind=parked.kind,
    )
