"""Verification: every table of every view compared with a fresh fold of the ledger."""

import hashlib
from collections.abc import Sequence

from recallog.components import Components
from recallog.queries.rebuilds import groups
from recallog.reading.projection_group import ProjectionGroup
from recallog.reading.read_session import position
from recallog_projections.stores.store import Generation
from recallog_schemas.errors import Rebuilding, RecallogError
from recallog_schemas.views import Difference, TableCheck, VerifyReport
from recallog_streams.progress import CombinedProgress, Progress
from recallog_streams.verify import TableComparison
from recallog_streams.verify import verify as compare


async def verify(components: Components, what: str, progress: Progress | None) -> VerifyReport:
    """Compare the views, or the index, with a fresh fold of the ledger."""
    checks: list[TableCheck] = []
    ends = await components.ledger.ends()
    for views in await groups(components, what):
        overall = CombinedProgress(progress, dict(enumerate(ends)))
        for partition in range(len(ends)):  # one at a time: the fresh fold of a partition is held in memory
            active, compared = await _compared(views, partition, overall.of(partition))
            checks += [_check(views, active, table) for table in compared]
    return _report(sum(ends), checks)


def combined(reports: Sequence[VerifyReport]) -> VerifyReport:
    """One report of several, in their order."""
    records = max(report.records for report in reports)
    return _report(records, [check for report in reports for check in report.tables])


def _report(records: int, checks: Sequence[TableCheck]) -> VerifyReport:
    whole = hashlib.sha256("\n".join(check.digest for check in checks).encode()).hexdigest()
    return VerifyReport(records=records, tables=tuple(checks), digest=whole)


async def _compared(
    views: ProjectionGroup, partition: int, progress: Progress | None
) -> tuple[Generation, list[TableComparison]]:
    while True:
        active = await views.access.active(partition, progress)
        try:
            return active, await compare(views.builder, views.projections, active, progress)
        except Rebuilding:
            continue  # a rebuild cut over meanwhile


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
