"""What operators ask: status, verification, dead letters."""

import hashlib

from recallog.reading import Reading, position
from recallog.time_travel import travel
from recallog.wiring import Parts
from recallog_projections import activity
from recallog_projections.projection import Need
from recallog_projections.stores.store import Generation, Pointer
from recallog_schemas import Position, codec
from recallog_schemas.errors import OutOfRange, Rebuilding, RecallogError
from recallog_schemas.views import (
    DeadLetter,
    DeadLetterDetail,
    Difference,
    PartitionStatus,
    Status,
    TableCheck,
    VerifyReport,
)
from recallog_streams import dead_letters, generations
from recallog_streams.dead_letters import Parked
from recallog_streams.ledger import record_at
from recallog_streams.projector import GenerationGone, Progress
from recallog_streams.verify import Compared
from recallog_streams.verify import verify as compare


async def status(parts: Parts) -> Status:
    """The state as it is, without folding anything."""
    manifest = await parts.ledger.manifest()
    totals = activity.Totals(0, 0, 0)
    partitions = []
    for partition, end in enumerate(await parts.ledger.ends()):
        pointer = await parts.store.pointer(partition)
        count = dead_letters.Count()
        checkpoint = -1
        if pointer.active is not None:
            needs = [Need(activity.TOTALS.name, ""), Need(dead_letters.COUNT.name, "")]
            try:
                snapshot = await parts.store.read(partition, needs)
            except Rebuilding:
                pointer = Pointer()
            else:
                checkpoint = snapshot.checkpoint.offset
                totals_row, count_row = snapshot.rows
                totals = _sum(totals, activity.TOTALS.decode(totals_row) if totals_row else None)
                count = dead_letters.COUNT.decode(count_row) if count_row else count
        building = await parts.store.checkpoint(pointer.building) if pointer.building else None
        partitions.append(
            PartitionStatus(
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
        )
    return Status(
        ledger=manifest.ledger,
        records=sum(row.checkpoint + 1 for row in partitions),
        spaces=totals.spaces,
        agents=totals.agents,
        sessions=totals.sessions,
        partitions=tuple(partitions),
        ledger_bytes=await parts.ledger.size_bytes(),
        views_bytes=await parts.store.size_bytes(),
    )


def _sum(totals: activity.Totals, more: activity.Totals | None) -> activity.Totals:
    if more is None:
        return totals
    return activity.Totals(
        totals.spaces + more.spaces,
        totals.agents + more.agents,
        totals.sessions + more.sessions,
    )


async def verify(parts: Parts, progress: Progress | None) -> VerifyReport:
    """Compare every view with a fresh fold of the ledger."""
    checks: list[TableCheck] = []
    records = 0
    generation, checkpoint = "", None
    for partition in range(len(await parts.ledger.ends())):
        active, compared = await _compared(parts, partition, progress)
        checks += [_check(parts, table) for table in compared]
        reached = await parts.store.checkpoint(active)
        offset = reached.offset if reached else -1
        generation, checkpoint = active.id, position(partition, offset)
        records += offset + 1
    whole = hashlib.sha256("\n".join(check.digest for check in checks).encode()).hexdigest()
    return VerifyReport(
        generation=generation, checkpoint=checkpoint, records=records, tables=tuple(checks), digest=whole
    )


async def _compared(parts: Parts, partition: int, progress: Progress | None) -> tuple[Generation, list[Compared]]:
    while True:
        active = await generations.current(parts.projector, partition, progress)
        try:
            return active, await compare(parts.builder, parts.projections, active, progress)
        except GenerationGone:
            continue  # a rebuild cut over meanwhile


def _check(parts: Parts, compared: Compared) -> TableCheck:
    difference = compared.difference
    return TableCheck(
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
            found=_readable(parts, difference.table, difference.found),
            expected=_readable(parts, difference.table, difference.expected),
        ),
    )


def _readable(parts: Parts, name: str, data: bytes | None) -> str | None:
    """A row in words, as far as it can be read at all."""
    if data is None:
        return None
    table = next(table for table in parts.projector.fold.tables if table.name == name)
    try:
        return str(table.decode(data))
    except RecallogError:
        return repr(data)


async def list_dead_letters(parts: Parts, progress: Progress | None) -> list[DeadLetter]:
    """The dead letters of the active generations, brought up to the ledger's end."""
    found: list[DeadLetter] = []
    for partition in range(len(await parts.ledger.ends())):
        active = await generations.current(parts.projector, partition, progress)
        parked = await dead_letters.all_parked(parts.store, active)
        found += [_letter(partition, letter) for letter in parked]
    return found


async def show_dead_letter(parts: Parts, at: Position, progress: Progress | None) -> DeadLetterDetail:
    generations.check_position(await parts.ledger.ends(), at.partition, at.offset)
    active = await generations.current(parts.projector, at.partition, progress)
    reading = Reading(parts.store, at.partition, active)
    (row,) = (await reading.read([Need(dead_letters.TABLE.name, "", "", dead_letters.key_of(at.offset))])).rows
    data = await record_at(parts.ledger, at.partition, at.offset)
    if row is None or data is None:
        raise OutOfRange(f"the record at {at} is no dead letter. List them: recallog dead-letters list")
    letter = _letter(at.partition, dead_letters.TABLE.decode(row))
    return DeadLetterDetail(letter=letter, content=data.decode("utf-8", "backslashreplace"))


async def retry_dead_letters(parts: Parts, progress: Progress | None) -> list[DeadLetter]:
    """Rebuild where that helps. Nothing is ever applied out of order, so a retry is a rebuild from zero.

    Whether it would help is asked first, by folding the spaces of the dead letters in memory.
    """
    before = await list_dead_letters(parts, progress)
    if not before:
        return []
    still = [letter for letter in before if not await _would_fold(parts, letter)]
    if len(still) < len(before):
        for partition in range(len(await parts.ledger.ends())):
            await generations.rebuild(parts.builder, partition, progress)
        still = await list_dead_letters(parts, progress)
    return still


async def _would_fold(parts: Parts, letter: DeadLetter) -> bool:
    data = await record_at(parts.ledger, letter.position.partition, letter.position.offset)
    if data is None:
        return False
    try:
        event = codec.decode(data)
    except RecallogError:
        return False
    reading = await travel(parts.ledger, parts.projections, event.space, letter.position, 0)
    key = dead_letters.key_of(letter.position.offset)
    (row,) = (await reading.read([Need(dead_letters.TABLE.name, "", "", key)])).rows
    return row is None


def _letter(partition: int, parked: Parked) -> DeadLetter:
    return DeadLetter(
        position=Position(partition, parked.offset),
        reason=parked.reason,
        detail=parked.detail,
        space=parked.space,
        id=parked.id,
        kind=parked.kind,
    )
