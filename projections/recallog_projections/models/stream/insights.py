"""Insights view: the sentences that agents mark as insights in their reflections.

An insight is a line of the reflection that begins with INSIGHT and a colon, in any case, or an element of `insights`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from recallog_projections.models.beliefs.beliefs import KIND
from recallog_projections.rows import Rows
from recallog_projections.tables import Log
from recallog_schemas import Event, Record
from recallog_schemas.models.stream import limits as stream_limits

_MARKED = re.compile(r"\s*INSIGHT:\s*(\S.*)", re.ASCII | re.IGNORECASE)


class InsightRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One insight, and the event of the reflection."""

    offset: int
    event: str
    """The id of the event."""
    at: int
    """Microseconds since 1970."""
    turn: int
    text: str


INSIGHTS = Log("insights", InsightRow, stream_limits.INSIGHTS_KEPT)
"""By (space, agent)."""


class Insights:
    """Fold of `agent.reflected` into one log per agent."""

    name: ClassVar[str] = "insights"
    version: ClassVar[int] = 1
    kinds = frozenset({KIND})
    ends_runs: ClassVar[Sequence[str]] = ()
    tables = (INSIGHTS,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            if record.memorable:
                for text in insights_of(event):
                    row = InsightRow(record.offset, event.id, record.time, event.turn, text)
                    rows.append(INSIGHTS, row, event.space, event.agent)


def insights_of(event: Event) -> Iterable[str]:
    """The insights of a reflection: its marked lines, then those that it lists, each once."""
    marked = [found[1].rstrip() for line in event.text.splitlines() if (found := _MARKED.fullmatch(line))]
    listed = [text.strip() for text in event.payload.get("insights") or ()]
    return dict.fromkeys(text for text in (*marked, *listed) if text)
