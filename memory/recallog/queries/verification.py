"""Verification: compares the ledger with its hash chain and with kept digests, and every view with a fresh fold of
it."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recallog.components import Components
from recallog.queries.rebuilds import groups
from recallog.reading.projection_group import INDEX, ProjectionGroup
from recallog.reading.query_router import VIEWS_UNUSABLE
from recallog.reading.read_session import position
from recallog_projections.concurrency import gather_limited
from recallog_projections.stores.store import CHAIN_START, Generation
from recallog_schemas import Position
from recallog_schemas.errors import (
    LedgerMismatch,
    OutOfRange,
    Rebuilding,
    RecallogError,
    StorageCorrupt,
    StorageError,
    StorageFull,
)
from recallog_schemas.views import (
    Difference,
    DigestCheck,
    FileFinding,
    LedgerDigest,
    LedgerDigests,
    LedgerFinding,
    NotCompared,
    RepairReport,
    RowAddress,
    TableCheck,
    VerifyReport,
)
from recallog_streams import chain, ledger_check, positions
from recallog_streams.ledger_check import RecordsProblem
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.progress import CombinedProgress, Progress
from recallog_streams.verify import TableComparison, Verification

if TYPE_CHECKING:
    from recallog_streams.parallel.catching_up import ParallelCatchUp


@dataclass(frozen=True, slots=True)
class _Kept:
    """A digest that was kept elsewhere."""

    position: Position
    digest: str

    @classmethod
    def parse(cls, text: str) -> "_Kept":
        """Read "0:41:9f86…", or "41:9f86…" for partition 0."""
        at, _, digest = text.rpartition(":")
        return cls(Position.parse(at), digest.lower())


async def verify(
    components: Components,
    what: str,
    digests: Sequence[str],
    progress: Progress | None,
    workers: int | None = None,
    throttle: float = 0.0,
) -> VerifyReport:
    """Compare the ledger with its chain and with `digests`, and the views, or the index, with a fresh fold.

    See `ProjectionGroup.catching_up` for `workers` and `throttle`.

    Raises `OutOfRange` if the ledger ends before a digest's position.
    """
    ends = await components.ledger.ends()
    kept = _check_kept(digests, ends)
    checks: list[TableCheck] = []
    findings: list[LedgerFinding] = []
    not_compared: list[NotCompared] = []
    files = [] if what == INDEX else await _of_ledger(components.ledger)
    for views in await groups(components, what):
        async with views.catching_up(workers, throttle) as catch_up:
            found = await _of_partitions(views, CombinedProgress(progress, dict(enumerate(ends))), catch_up)
        for partition, (active, compared) in enumerate(found):
            if active is not None:
                checks += [_check(views, active, table) for table in compared.tables]
            findings += [_finding(views, partition, records) for records in compared.records]
            if compared.not_compared:
                not_compared.append(NotCompared(views=views.name, partition=partition, reason=compared.not_compared))
        files += await _of_store(views)
    compared_digests = await _compared_digests(components, kept, findings)
    return _report(sum(ends), checks, findings, compared_digests, not_compared, files)


def combine_reports(reports: Sequence[VerifyReport]) -> VerifyReport:
    """One report from several, in their order."""
    return _report(
        max(report.records for report in reports),
        [check for report in reports for check in report.tables],
        [finding for report in reports for finding in report.ledger],
        reports[0].digests,
        [views for report in reports for views in report.not_compared],
        [file for report in reports for file in report.files],
    )


def _report(
    records: int,
    checks: Sequence[TableCheck],
    findings: Iterable[LedgerFinding],
    digests: Sequence[DigestCheck],
    not_compared: Sequence[NotCompared],
    files: Sequence[FileFinding],
) -> VerifyReport:
    whole = hashlib.sha256("\n".join(check.digest for check in checks).encode()).hexdigest()
    # Each group of views reads the ledger, so unreadable parts are reported once.
    once = {(each.problem, each.first, each.views if each.problem == "changed" else ""): each for each in findings}
    return VerifyReport(
        records=records,
        tables=tuple(checks),
        digest=whole,
        ledger=tuple(sorted(once.values(), key=lambda each: (each.first, each.last))),
        digests=tuple(digests),
        not_compared=tuple(not_compared),
        files=tuple(files),
    )


async def repair(components: Components, progress: Progress | None) -> RepairReport:
    """Compute derived data of the ledger and of files of views again, then verify both."""
    repaired, problem = list[FileFinding](), ""
    before = await _of_ledger(components.ledger)
    if any(each.repairable for each in before):
        try:
            await components.ledger.repair()
        except StorageCorrupt as error:
            problem = str(error)
        left = {each.part for each in await _of_ledger(components.ledger)}
        repaired += [each for each in before if each.part not in left]
    for views in components.groups():
        for found in (await views.store.find_problems())[:1]:
            await views.store.clear()
            repaired.append(_of_views(views, found))
    return RepairReport(
        repaired=tuple(repaired), problem=problem, verified=await verify(components, "views", (), progress)
    )


async def _of_store(views: ProjectionGroup) -> list[FileFinding]:
    """The first problem of the file of some views; empty if the file cannot be opened, which their comparison
    reports."""
    try:
        problems = await views.store.find_problems()
    except StorageError:
        return []
    return [_of_views(views, problem) for problem in problems[:1]]


async def _of_ledger(ledger: Ledger) -> list[FileFinding]:
    return [
        FileFinding(
            views="",
            file=f"the ledger {ledger.location}",
            part=each.part.value,
            reason=each.reason,
            repairable=each.repairable,
        )
        for each in await ledger.find_problems()
    ]


def _of_views(views: ProjectionGroup, reason: str) -> FileFinding:
    return FileFinding(
        views=views.name, file=views.store.location, part="a page or a tree", reason=reason, repairable=True
    )


async def _of_partitions(
    views: ProjectionGroup, progress: CombinedProgress, catch_up: "ParallelCatchUp"
) -> list[tuple[Generation | None, Verification]]:
    """Verifies as many partitions at a time as there are processes, since the fresh fold of each is held in memory."""

    async def compare_partition(partition: int) -> tuple[Generation | None, Verification]:
        return await _compare_views(views, partition, progress.of(partition), catch_up)

    return await gather_limited(compare_partition, range(await views.builder.ledger.partitions()), catch_up.workers)


async def _compare_views(
    views: ProjectionGroup, partition: int, progress: Progress | None, catch_up: "ParallelCatchUp"
) -> tuple[Generation | None, Verification]:
    while True:
        active, reason = await _generation(views, partition, progress)
        if active is None:
            records = await ledger_check.check(views.builder.ledger, partition, [])
            return None, Verification(records, not_compared=reason)
        try:
            return active, await catch_up.verify(views.builder, views.projections, active, progress)
        except Rebuilding:
            continue  # a rebuild cut over meanwhile


async def _generation(
    views: ProjectionGroup, partition: int, progress: Progress | None
) -> tuple[Generation | None, str]:
    """The active generation, or None with the reason if there is none to compare.

    Views that cannot be caught up, for example because the ledger is damaged or the folder is read-only, are compared
    as they are.
    """
    try:
        return await views.access.active(partition, progress), ""
    except StorageError as error:
        if isinstance(error, LedgerMismatch) and not error.position:
            raise  # another ledger
        reason = str(error)
    try:
        active = (await views.store.pointer(partition)).active
        if active is None or await views.store.checkpoint(active) is None or not await views.builder.fits(active):
            return None, reason
    except StorageError as error:
        if error.retryable and not isinstance(error, StorageFull):
            raise
        return None, str(error)
    return active, reason


def _check(views: ProjectionGroup, active: Generation, compared: TableComparison) -> TableCheck:
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
        differences=compared.differences,
        damaged=tuple(RowAddress(space=space, owner=owner, key=key) for space, owner, key in compared.damaged),
    )


def _readable(views: ProjectionGroup, name: str, data: bytes | None) -> str | None:
    """A row as text; its bytes if it cannot be decoded."""
    if data is None:
        return None
    table = next(table for table in views.builder.fold.tables if table.name == name)
    try:
        return str(table.decode(data))
    except RecallogError:
        return repr(data)


def _finding(views: ProjectionGroup, partition: int, records: RecordsProblem) -> LedgerFinding:
    return LedgerFinding(
        problem=records.problem.value,
        first=Position(partition, records.first),
        last=Position(partition, records.last),
        views=views.name,
        reason=records.reason,
    )


def _check_range(ends: Sequence[int], at: Position, path: str) -> None:
    positions.check_partition(len(ends), at.partition, path)
    if at.offset >= ends[at.partition]:
        last = f"ends at {at.partition}:{ends[at.partition] - 1}" if ends[at.partition] else "is empty"
        raise OutOfRange(
            f"the digest is of the records up to {at}, and the ledger {last}: records are missing, or the digest is of "
            "another ledger. recallog verify without --digest says what else is known",
            path=path,
        )


def _check_kept(digests: Sequence[str], ends: Sequence[int]) -> list[_Kept]:
    """The digests that were kept elsewhere. Raises `OutOfRange` if the ledger ends before one of them."""
    kept = [_Kept.parse(text) for text in digests]
    for index, each in enumerate(kept):
        _check_range(ends, each.position, f"digests.{index}")
    return kept


async def compared_digests(components: Components, digests: Sequence[str]) -> list[DigestCheck]:
    """Digests that were kept elsewhere, compared with the ledger. Raises `OutOfRange` as `verify` does."""
    return await _compared_digests(components, _check_kept(digests, await components.ledger.ends()), ())


async def _compared_digests(
    components: Components, kept: Sequence[_Kept], findings: Sequence[LedgerFinding]
) -> list[DigestCheck]:
    """The digests by position, each compared with the present ledger."""
    found: dict[Position, str] = {}
    for partition in {each.position.partition for each in kept}:
        offsets = {each.position.offset for each in kept if each.position.partition == partition}
        values = await ledger_check.values_at(components.ledger, partition, offsets)
        found |= {Position(partition, offset): value.hex() for offset, value in values.items()}
    checks: list[DigestCheck] = []
    for each in sorted(kept, key=lambda each: each.position):
        value = found.get(each.position)
        first = last = None
        if value != each.digest:
            first, last = _suspect(each.position, checks, findings)
        checks.append(DigestCheck(position=each.position, expected=each.digest, found=value, first=first, last=last))
    return checks


def _suspect(
    at: Position, before: Sequence[DigestCheck], findings: Sequence[LedgerFinding]
) -> tuple[Position, Position]:
    """The range that contains the first change before `at`. It begins after the last digest that matches. If the views
    were computed from other records, it is limited to the ranges in which they differ."""
    matching = [each.position for each in before if each.matches and each.position.partition == at.partition]
    first = Position(at.partition, matching[-1].offset + 1 if matching else 0)
    known = [each for each in findings if first <= each.last and each.first <= at]  # positions of one partition
    if not known:
        return first, at
    return max(first, known[0].first), min(at, known[-1].last)


async def digests(components: Components) -> LedgerDigests:
    """The digest of each partition at its last record.

    Records that the views have processed are not read again: their checkpoint has the value of the chain.
    """
    found = []
    for partition, end in enumerate(await components.ledger.ends()):
        last, value = await _read_processed(components, partition)
        if last + 1 < end:
            async for batch in components.ledger.read(partition, last + 1, end):
                value = chain.link_records(value, batch.stored)
                last = batch.records[-1][0] if batch.records else last
        if last >= 0:
            found.append(LedgerDigest(position=Position(partition, last), digest=value.hex()))
    return LedgerDigests(items=tuple(found))


async def _read_processed(components: Components, partition: int) -> tuple[int, bytes]:
    """The last record that the built-in views have processed, and the value of the chain after it.

    Views that cannot be read count as empty. Raises `LedgerMismatch` if the ledger does not have that record.
    """
    views = components.views
    with suppress(*VIEWS_UNUSABLE):
        active = (await views.store.pointer(partition)).active
        if active is not None and active.code == views.builder.fold.code:
            checkpoint = await views.store.checkpoint(active)
            if checkpoint is not None:
                await views.builder.verify_ledger_identity(partition, checkpoint)
                return checkpoint.record, checkpoint.chain
    return -1, CHAIN_START
