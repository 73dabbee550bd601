"""The fold of `tool.used`: which calls of tools become entries of the type `tool_usage`, by the agent's settings then.

`tools` and `skip` of the setting `capture` decide, and how many calls were captured within 60 seconds before or after
the call, by the times of the events: no span of 60 seconds has more than `max_per_minute`, in whatever order they
arrive. The entry has the id, the offset, the readers and the person of its event, and costs nothing.

A minute is forgotten when the agent captures a call in another one that takes its row: a multiple of
`limits.CAPTURED_MINUTES` earlier or later. So an agent has at most as many rows. Only a call that arrives after that,
with a time in the former minute, is not counted together with those before.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from recallog_projections.models.long_term import linking, retaining, tables
from recallog_projections.models.long_term.kinds import CAPTURING
from recallog_projections.models.long_term.tables import CapturedCalls, EntryRef, EntryRow
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_projections.views import settings, visibility
from recallog_schemas import Event, Record, limits, rules
from recallog_schemas.kinds import CaptureSettings
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.text_rules import tool_details

TYPE = "tool_usage"
_WITHIN = 60_000_000
"""Microseconds."""


def apply(rows: Rows, record: Record) -> None:
    capture = _settings(rows, record)
    event = record.event
    if capture is None or not _names(capture, event.payload["tool"]) or not _count(rows, record, capture):
        return
    shared = visibility.is_shared(event, rows.get(settings.SPACES, event.space))
    row = _entry(record, capture, shared=shared)
    linking.add(rows, row, rules.FIRST)  # no rule compares calls of tools
    linking.audit(rows, row, "retained", record)
    ref = EntryRef(row.owner, row.offset, tables.LIVE, captured=True)
    rows.put(tables.IDS, ref, event.space, "", event.id)


def ignores(rows: Rows, record: Record) -> bool:
    """Whether the record is a call of a tool by an agent whose calls do not become entries."""
    return record.event.kind == CAPTURING and _read_setting(rows, record.event) is None


def _read_setting(rows: Rows, event: Event) -> Mapping[str, Any] | None:
    """The setting `capture` of the event's agent as it is stored; None unless it is enabled."""
    agent = rows.get(settings.AGENTS, event.space, event.agent)
    return agent.capture if agent is not None and agent.capture and agent.capture.get("enabled") else None


def _settings(rows: Rows, record: Record) -> CaptureSettings | None:
    """The setting `capture` of the agent, if it is enabled."""
    enabled = _read_setting(rows, record.event)
    return None if enabled is None else CaptureSettings.model_validate(enabled)


def _names(capture: CaptureSettings, tool: str) -> bool:
    """Whether the settings name a tool as one whose calls are captured."""

    def are_among(names: Sequence[str]) -> bool:
        return tool in names if capture.case_sensitive else tool.casefold() in {name.casefold() for name in names}

    return are_among(capture.tools) if capture.tools is not None else not are_among(capture.skip or ())


def _count(rows: Rows, record: Record, capture: CaptureSettings) -> bool:
    """Count the call, unless as many as may be captured are within a minute of it."""
    at, keys = record.time, _minutes(record)
    minute = at // _WITHIN
    rows_of = {each: rows.get(tables.CAPTURED, *key[1:]) for each, key in keys.items()}
    times = {each: row.times for each, row in rows_of.items() if row is not None and row.minute == each}
    near = sum(abs(time - at) < _WITHIN for of_minute in times.values() for time in of_minute)
    if near >= min(capture.max_per_minute, long_term_limits.CAPTURED_PER_MINUTE_MAX):
        return False
    rows.put(tables.CAPTURED, CapturedCalls(minute, (*times.get(minute, ()), at)), *keys[minute][1:])
    return True


def _minutes(record: Record) -> Mapping[int, RowKey]:
    """The rows of the minute before the call, of its own, and of the one after it."""
    event = record.event
    minute = record.time // _WITHIN
    return {
        each: RowKey(tables.CAPTURED.name, event.space, event.agent, str(each % long_term_limits.CAPTURED_MINUTES))
        for each in (minute - 1, minute, minute + 1)
    }


def _entry(record: Record, capture: CaptureSettings, *, shared: bool) -> EntryRow:
    event = record.event
    text = tool_details(event.payload)
    if len(text) > capture.max_detail_chars:
        text = text[: capture.max_detail_chars] + "..."
    fields = {
        "type": TYPE,
        "importance": capture.importance,
        "tier": capture.tier,
        "metadata": {"tool": event.payload["tool"][: limits.NAME_CHARS_MAX]},
    }
    return msgspec.structs.replace(retaining.entry_of(record, text, fields, shared=shared), captured=True)
