"""When the next plan of an agent is due: its row of `due.at`, and its changes by the parts of a plan."""

from collections.abc import Mapping
from typing import Any

import msgspec

from recallog_projections.models.tiers import tables
from recallog_projections.models.tiers.tables import AgentTiers
from recallog_projections.rows import Rows
from recallog_projections.views import due
from recallog_projections.views.due import Scheduled
from recallog_schemas import limits
from recallog_schemas.kinds import TierSettings
from recallog_schemas.models.tiers.triggers import consolidation_of

_MICROS = 1_000_000
_AHEAD = 86_400 * _MICROS
"""An interval between plans begins at most this long after an event of the agent: a fast clock must not stop its plans,
and a clock in another time zone must not make more of them."""


def agent_of(rows: Rows, space: str, agent: str) -> AgentTiers:
    return rows.get(tables.AGENTS, space, agent) or AgentTiers()


def put(rows: Rows, space: str, agent: str, state: AgentTiers, settings: TierSettings) -> None:
    """Write the row of an agent, and when its next plan is due.

    That is an interval after the newest plan, or after the first entry; at once if a tier has too many entries. If
    these times turn out to be those of a fast clock, it is an interval and a day after the event that shows it
    (`note_event`). An agent without entries that carry a tier has nothing to plan.
    """
    trigger = consolidation_of(space, agent, state.plans)
    at = due_at(state, settings)
    key = None if at is None else due.at_key(at, space, trigger, agent)
    if key != state.due:
        if state.due is not None:
            rows.delete(due.AT, "", "", state.due)
        if key is not None and at is not None:
            rows.put(due.AT, Scheduled(trigger.kind, space, agent, trigger.id, at), "", "", key)
        state = msgspec.structs.replace(state, due=key)
    rows.put(tables.AGENTS, state, space, agent)


def due_at(state: AgentTiers, settings: TierSettings) -> int | None:
    """When the next plan of an agent is due, in microseconds since 1970; None: it has nothing to plan."""
    if not state.entries:
        return None
    at = int(min(state.since + settings.consolidate_every * _MICROS, limits.INTEGER_MAX))
    return at if state.full_at is None else min(at, state.full_at)


def note_event(state: AgentTiers, at: int, until: int) -> AgentTiers:
    """The row of an agent after an event of its own at this time. `until` is the latest time at which it may have been
    written: an entry may be about the past."""
    return state if state.since <= until + _AHEAD else msgspec.structs.replace(state, since=at + _AHEAD)


def note_plan(state: AgentTiers, payload: Mapping[str, Any], at: int) -> AgentTiers:
    """The row of an agent when a part of a plan is folded, before its moves.

    A plan is finished with its last part. Only the plan that is next counts: a late part of another one still moves
    what it may, and changes nothing here.
    """
    if payload["ordinal"] != state.plans:
        return state
    if not state.unfinished:
        state = msgspec.structs.replace(state, planned_at=at, since=at, full_at=None)
    if payload.get("part", 1) < payload.get("parts", 1):
        return msgspec.structs.replace(state, unfinished=True)
    return msgspec.structs.replace(state, plans=state.plans + 1, unfinished=False)


def close_plan(state: AgentTiers, ordinal: int, at: int, settings: TierSettings) -> AgentTiers:
    """The row of an agent when the trigger of a plan is closed. If its last part is missing, the next plan is due
    an interval later, so that a failing reactor is not called again at once."""
    if ordinal != state.plans:
        return state
    since = state.since if state.unfinished else max(at, due_at(state, settings) or 0)
    return msgspec.structs.replace(state, plans=state.plans + 1, unfinished=False, since=since, full_at=None)
