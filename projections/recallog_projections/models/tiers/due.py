"""Work that plans make due: summaries of archived entries."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from recallog_projections.models.long_term import linking
from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.long_term.due import Retractions
from recallog_projections.models.long_term.kinds import PLAN
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.tiers.rules import in_equal_parts
from recallog_projections.rows import Rows
from recallog_projections.views.due import Due
from recallog_schemas import Record
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.tiers.triggers import SUMMARY

_SUMMARY = "summary"


class SummariesDue:
    """A summary is due for the entries that a plan has archived, if there are several. When one of these is erased,
    which retracts the summary, a new summary of the others is due. The entries of the trigger are those to summarise,
    in the order of the plan."""

    name: ClassVar[str] = "summaries"
    version: ClassVar[int] = 1
    kinds = Retractions.kinds | {PLAN}
    tables = ()

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """Keeps no rows."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        ended = linking.ended_now(rows)
        if record.event.kind == PLAN:
            return _of_plan(record, ended)
        again = (_again(rows, row) for row in ended if row.type == _SUMMARY)
        return [due for due in again if due is not None]


def _of_plan(record: Record, ended: Iterable[EntryRow]) -> Iterable[Due]:
    """The summaries that the part of a plan makes due: each of entries that this record has archived."""
    ids = {row.id for row in ended}
    planned = dict.fromkeys(each["id"] for each in record.event.payload.get("archived", ()))
    archived = [id_ for id_ in planned if id_ in ids]
    for number, part in enumerate(in_equal_parts(archived, long_term_limits.ENTRY_SOURCES_MAX)):
        if len(part) > 1:
            yield Due(SUMMARY, record.event.agent, str(number), entries=tuple(part))


def _again(rows: Rows, summary: EntryRow) -> Due | None:
    """The new summary of the remaining archived entries, for a summary that an erasure has retracted."""
    space, left = summary.space, []
    for id_ in summary.sources:
        ref = rows.get(entries.IDS, space, "", id_)
        if ref is not None and ref.status == entries.ARCHIVED and ref.owner == summary.owner:
            left.append(id_)
    ref = rows.get(entries.IDS, space, "", summary.id)
    if len(left) < 2 or ref is None or ref.status != entries.RETRACTED or ref.of is None:
        return None
    return Due(SUMMARY, summary.owner, entries=tuple(left), cause=summary.id)
