"""The fold of a plan's archivals: of entries that were not read for too long, or exceeded the limit of their tier."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from recallog_projections.models.long_term import linking, tables
from recallog_projections.rows import Rows
from recallog_schemas import Event, Record


class KnownPlans(Protocol):
    """What the view of tiers decides about plans. It is folded after the view of entries, which therefore cannot import
    it."""

    def may_archive(self, rows: Rows, event: Event, planned: Mapping[str, Any]) -> bool:
        """Whether the plan in `event` may archive an entry; `planned` is its archival there."""


def apply(rows: Rows, record: Record, plans: KnownPlans) -> None:
    """Archive the entries that the plan may still archive. Others stay, which is neither a refusal nor an error."""
    event = record.event
    for id_, planned in _archivals(record).items():
        if plans.may_archive(rows, event, planned):
            ref = linking.verdict(rows, event.space, id_)
            ended = msgspec.structs.replace(ref, status=tables.ARCHIVED, reason=planned["reason"])
            linking.end(rows, record, linking.live(rows, event.space, ref), ended)


def _archivals(record: Record) -> Mapping[str, Mapping[str, Any]]:
    """The archivals in a part of a plan, by the id of the entry."""
    return {each["id"]: each for each in record.event.payload.get("archived", ())}
