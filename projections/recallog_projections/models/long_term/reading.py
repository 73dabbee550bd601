"""What readers of entries use: who may read an entry, and the event that stands for its current form."""

import json
from collections.abc import Callable
from typing import Any

from recallog_projections.models.long_term.tables import LIVE, EntryRow, Status
from recallog_schemas import Event, timestamps
from recallog_schemas.models.long_term.kinds import RETAINED

KIND = RETAINED
"""The kind of the events that stand for entries."""
CAPTURED = "tool.captured"
"""The kind under which the index has entries that are calls of tools. Searches for events and entries leave it out,
since these calls are found as events."""


def may_read(agent: str, row: EntryRow, status: Status = LIVE) -> bool:
    """Whether `agent` may read the entry. Only its owner may read a retracted or archived entry."""
    if agent == row.owner:
        return True
    return status == LIVE and (row.shared or agent in row.audience)


def event_of(row: EntryRow) -> Event:
    """The `memory.retained` event that would retain the entry as it is now, under its present owner.

    Recall, search and the index show it in place of the event in the ledger, whose text may be old or erased. It names
    no tier: the view of tiers has the present one.
    """
    return Event(**_fields_of(row))


def has_fields(row: EntryRow, passes: Callable[[Event], bool]) -> bool:
    """Whether the event that stands for the entry passes a filter. It is not validated, which takes most of the time
    of making it."""
    return passes(Event.model_construct(**_fields_of(row)))


def _fields_of(row: EntryRow) -> dict[str, Any]:
    """The fields of the event that stands for the entry."""
    fields = {
        "entity": row.entity,
        "category": row.category,
        "source": row.source,
        "topic": row.topic,
        "red_line": row.red_line or None,
        "metadata": json.loads(row.metadata) if row.metadata else None,
        "sources": list(row.sources) or None,
        "preseeded": row.preseeded or None,
    }
    stated = {name: value for name, value in fields.items() if value is not None}
    weights = {"importance": row.importance, "confidence": row.confidence, "priority": row.priority}
    return {
        "id": row.id,
        "space": row.space,
        "session": row.session,
        "agent": row.owner,
        "kind": KIND,
        "turn": row.turn,
        "at": timestamps.moment_of(row.at),
        "payload": {"text": row.text, "type": row.type, **weights, **stated},
        "subject": row.subject,
        "audience": row.audience or None,
    }
