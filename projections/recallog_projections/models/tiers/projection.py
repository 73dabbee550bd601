"""The projection of tiers: the tier of each entry, and its moves.

An entry that was retained with a tier has a row while it lives, and so has one that its owner has given a tier. A
restored entry has its tier again, and its age begins again. The fold decides nothing that depends on the time: a plan
that has read the clock states the moves in `memory.consolidated`, and the fold moves the entries that have not changed
since.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from recallog_projections.models.long_term import capturing, linking, retaining, uses
from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.long_term.kinds import CAPTURING, CHANGING, MOVED, PLAN, RESTORED, RETAINING
from recallog_projections.models.long_term.projection import EntriesProjection
from recallog_projections.models.long_term.reading import may_read
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.tiers import judging, rules, scheduling, tables
from recallog_projections.models.tiers.tables import AgentTiers, Moves, TierRow
from recallog_projections.rows import Rows
from recallog_projections.views import clock, due, settings
from recallog_schemas import Event, Record, timestamps, triggers, validation
from recallog_schemas.kinds import TierSettings
from recallog_schemas.models.tiers.triggers import CONSOLIDATION

_OUTCOME = "memory.outcome_reported"
_CONFIGURED = "agent.configured"


class TiersProjection:
    """Fold of the tiers of entries. It follows the projections of entries and uses, whose rows it reads."""

    name: ClassVar[str] = "tiers"
    version: ClassVar[int] = 5
    kinds = EntriesProjection.kinds | triggers.CLOSINGS | {_OUTCOME, _CONFIGURED}
    tables = (tables.ROWS, tables.ENDED, tables.AGENTS, tables.MOVES, due.AT)

    def ignores(self, rows: Rows, record: Record) -> bool:
        return capturing.ignores(rows, record)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if not record.reached:
                continue
            event = record.event
            if clock.sets_time(event) and _loads_agent(rows, event):
                _bound(rows, record)
            if event.kind == PLAN:
                _plan(rows, record)
            elif event.kind == _OUTCOME:
                _learn(rows, record)
            elif event.kind in (MOVED, RESTORED):
                _move_by_owner(rows, record)
            elif event.kind == _CONFIGURED:
                _reschedule(rows, event)
            elif event.kind in triggers.CLOSINGS:
                _close(rows, event, record.time)
            else:
                _follow(rows, record)


def _list_named(event: Event) -> Sequence[str]:
    """The ids of the entries that an event plans, changes, moves or reports on, each once."""
    payload = event.payload
    if event.kind == PLAN:
        return list(dict.fromkeys(each["id"] for each in (*payload.get("moves", ()), *payload.get("archived", ()))))
    if event.kind not in CHANGING and event.kind not in (_OUTCOME, MOVED):
        return ()
    return list(dict.fromkeys(payload["entries"])) if "entries" in payload else [payload["entry"]]


def _loads_agent(rows: Rows, event: Event) -> bool:
    """Whether the row of the agent is always needed: entries without a tier and calls of tools do not need it."""
    if event.kind not in RETAINING:
        return event.kind != CAPTURING
    given = event.payload.get("tier")
    return given is not None or retaining.default_tier(event, rows.get(settings.SPACES, event.space)) is not None


# Changes of entries: they appear, change, get another owner, and end.


def _follow(rows: Rows, record: Record) -> None:
    """Follow the entries that the record has written."""
    written = rows.list_written(entries.ROWS)
    before = {row.offset: row for row, _ in written if row is not None}
    after = {row.offset: row for _, row in written if row is not None}
    for offset, row in before.items():
        known = rows.get(tables.ROWS, row.space, row.owner, entries.key_of(offset))
        if known is None:
            continue
        now = after.get(offset)
        _replace(rows, record, known, _follow_entry(known, row, now))
        if now is None and linking.verdict(rows, row.space, row.id).status == entries.ARCHIVED:
            rows.put(tables.ENDED, known, row.space, row.owner, entries.key_of(offset))
    for offset, row in after.items():
        if offset not in before and row.tier is not None:
            _replace(rows, record, None, _row(row, row.tier, 0))
    for ended, now in rows.list_written(entries.ENDED):
        if ended is not None and now is None:  # it is erased
            rows.delete(tables.ENDED, ended.space, ended.owner, entries.key_of(ended.offset))


def _follow_entry(known: TierRow, before: EntryRow, after: EntryRow | None) -> TierRow | None:
    """The row of an entry that has changed; None if it has ended."""
    if after is None:
        return None
    return msgspec.structs.replace(
        known,
        owner=after.owner,
        importance=known.importance if after.importance == before.importance else after.importance,
        exempt=_is_exempt(after),
    )


def _row(entry: EntryRow, tier: str, accesses: int) -> TierRow:
    """The row of an entry that has been given a tier."""
    return TierRow(
        space=entry.space,
        owner=entry.owner,
        id=entry.id,
        offset=entry.offset,
        at=entry.at,
        tier=tier,
        importance=entry.importance,
        exempt=_is_exempt(entry),
        surprise=0.0,
        successes=0,
        reports=0,
        accesses=accesses,
        promoted_at=None,
        plan=None,
        touched=entry.offset,  # `_replace` notes this and every later change
        changes=0,
    )


def _is_exempt(entry: EntryRow) -> bool:
    return entry.red_line or entry.priority == linking.PINNED


def _replace(rows: Rows, record: Record, before: TierRow | None, after: TierRow | None) -> None:
    """Write or delete the row of an entry, and count it for its owner, or for the former and the new one."""
    if before is not None and (after is None or after.owner != before.owner):
        rows.delete(tables.ROWS, before.space, before.owner, entries.key_of(before.offset))
    if after is not None:
        after = msgspec.structs.replace(after, touched=record.offset, changes=after.changes + 1)
        rows.put(tables.ROWS, after, after.space, after.owner, entries.key_of(after.offset))
    space = record.event.space
    for owner in dict.fromkeys(row.owner for row in (before, after) if row is not None):
        known, limits = scheduling.agent_of(rows, space, owner), _settings(rows, space, owner)
        counted = known
        if before is not None and before.owner == owner:
            counted = _count_entry(counted, before, -1)
        if after is not None and after.owner == owner:
            counted = _count_entry(counted, after, 1)
            if before is None or (before.owner, before.tier) != (owner, after.tier):
                counted = _note_arrival(known, counted, after.tier, record.time, limits)
        scheduling.put(rows, space, owner, counted, limits)


def _count_entry(agent: AgentTiers, row: TierRow, more: int) -> AgentTiers:
    """The row of an agent with one entry more (1) or less (-1)."""
    counted = msgspec.structs.replace(
        agent,
        surprise=agent.surprise + more * row.surprise,
        **{row.tier: getattr(agent, row.tier) + more},
    )
    # Without entries the sum is 0, without an error of rounding.
    return counted if counted.entries else msgspec.structs.replace(counted, surprise=0.0)


def _note_arrival(before: AgentTiers, after: AgentTiers, tier: str, at: int, limits: TierSettings) -> AgentTiers:
    """The row of an agent when an entry has entered a tier: if it has too many now, a plan is due."""
    if not before.entries and before.planned_at is None:
        after = msgspec.structs.replace(after, since=at)
    if getattr(after, tier) > getattr(limits.max, tier):
        return msgspec.structs.replace(after, full_at=at if after.full_at is None else min(after.full_at, at))
    return after


def _settings(rows: Rows, space: str, agent: str) -> TierSettings:
    return rules.settings_of(rows.get(settings.AGENTS, space, agent))


# Moves, by a plan and by the owner.


def _plan(rows: Rows, record: Record) -> None:
    event = record.event
    payload, space, agent = event.payload, event.space, event.agent
    at = timestamps.micros(validation.time_of(payload["now"]))
    limits = _settings(rows, space, agent)
    scheduling.put(
        rows, space, agent, scheduling.note_plan(scheduling.agent_of(rows, space, agent), payload, at), limits
    )
    promoted, demoted, rejected = 0, 0, []
    for move in payload.get("moves", ()):
        row = judging.find_untouched(rows, event, move)
        origin, to = move["from"], move["to"]
        if row is None or row.tier != origin or origin == to or (row.exempt and not rules.is_faster(to, origin)):
            rejected.append(move["id"])
            continue
        _replace(rows, record, row, _move_entry(rows, row, to, at, payload["ordinal"]))
        promoted += rules.is_faster(to, origin)
        demoted += rules.is_faster(origin, to)
    ended = {row.id for row, now in rows.list_written(entries.ROWS) if row is not None and now is None}
    _follow(rows, record)
    archived = {each["id"]: each["reason"] for each in payload.get("archived", ())}
    reasons = [reason for id_, reason in archived.items() if id_ in ended]
    rejected += [id_ for id_ in archived if id_ not in ended]
    _note(rows, event, Moves(event.id, at, promoted, demoted, len(reasons), tuple(rejected)))
    state = scheduling.agent_of(rows, space, agent)
    state = msgspec.structs.replace(
        state,
        expired=state.expired + reasons.count(rules.EXPIRED),
        evicted=state.evicted + reasons.count(rules.TIER_LIMIT),
    )
    scheduling.put(rows, space, agent, state, limits)


def _move_entry(rows: Rows, row: TierRow, to: str, at: int, plan: int | None) -> TierRow:
    """The row of an entry in another tier: what is counted since the last move begins again."""
    use = rows.get(uses.ROWS, row.space, row.owner, entries.key_of(row.offset))
    return msgspec.structs.replace(
        row,
        tier=to,
        successes=0,
        reports=0,
        accesses=0 if use is None else use.accesses,
        promoted_at=at if rules.is_faster(to, row.tier) else row.promoted_at,
        plan=plan,
    )


def _move_by_owner(rows: Rows, record: Record) -> None:
    """Move an entry to another tier, give it one, or follow its restoration; only its owner may."""
    event = record.event
    to, at = event.payload.get("to"), record.time
    ref = rows.get(entries.IDS, event.space, "", event.payload["entry"])
    if ref is None or ref.status != entries.LIVE or ref.owner != event.agent:
        return
    key = entries.key_of(ref.offset)
    row = rows.get(tables.ROWS, event.space, ref.owner, key)
    if row is None:
        _begin(rows, record, linking.live(rows, event.space, ref), to)
    elif to is not None and row.tier != to:
        _replace(rows, record, row, _move_entry(rows, row, to, at, None))
        faster = rules.is_faster(to, row.tier)
        _note(rows, event, Moves(event.id, at, int(faster), int(not faster), 0, ()))


def _begin(rows: Rows, record: Record, entry: EntryRow, to: str | None) -> None:
    """Give an entry the tier `to`. One that is restored has the tier that it had when it was archived, if `to` is None,
    and its age begins again, since it would be archived again otherwise."""
    address, at = (entry.space, entry.owner, entries.key_of(entry.offset)), record.time
    ended = rows.get(tables.ENDED, *address)
    if ended is not None:
        rows.delete(tables.ENDED, *address)
        after = _move_entry(rows, ended, to or ended.tier, at, None)
    elif (tier := to or entry.tier) is not None:
        use = rows.get(uses.ROWS, *address)
        after = _row(entry, tier, 0 if use is None else use.accesses)
    else:
        return
    is_restored = bool(rows.list_written(entries.ROWS))
    _replace(rows, record, None, msgspec.structs.replace(after, at=at) if is_restored else after)


def _note(rows: Rows, event: Event, moves: Moves) -> None:
    rows.append(tables.MOVES, moves, event.space, event.agent)


# Outcomes.


def _learn(rows: Rows, record: Record) -> None:
    """Count outcomes of entries that the reporting agent may read."""
    event, payload = record.event, record.event.payload
    confidence = payload.get("confidence")
    if confidence is not None and confidence < rules.CONFIDENCE_MIN:
        return
    for id_ in _list_named(event):
        ref = rows.get(entries.IDS, event.space, "", id_)
        if ref is None or ref.status != entries.LIVE:
            continue
        row = rows.get(tables.ROWS, event.space, ref.owner, entries.key_of(ref.offset))
        if row is not None and may_read(event.agent, linking.live(rows, event.space, ref)):
            _replace(rows, record, row, _learn_outcome(row, event))


def _learn_outcome(row: TierRow, event: Event) -> TierRow:
    payload = event.payload
    predicted, actual = float(payload.get("predicted", 0.5)), float(payload.get("actual", 0.5))
    success, importance = payload.get("success"), row.importance
    if success is not None:
        importance += rules.SUCCESS_IMPORTANCE if success else rules.FAILURE_IMPORTANCE
    return msgspec.structs.replace(
        row,
        surprise=rules.average_surprise(row.surprise, predicted, actual),
        importance=max(0.0, min(importance, 1.0)),
        successes=row.successes + bool(success),
        reports=row.reports + (success is not None),
    )


# The next plan.


def _bound(rows: Rows, record: Record) -> None:
    event = record.event
    known = rows.get(tables.AGENTS, event.space, event.agent)
    until = max(record.time, 1_000 * record.appended) if event.kind in RETAINING else record.time
    bounded = None if known is None else scheduling.note_event(known, record.time, until)
    if bounded is not None and bounded != known:
        scheduling.put(rows, event.space, event.agent, bounded, _settings(rows, event.space, event.agent))


def _reschedule(rows: Rows, event: Event) -> None:
    """The interval between plans has another length. Settings are folded last: the row has the former ones."""
    state = rows.get(tables.AGENTS, event.space, event.agent) if "tiers" in event.payload else None
    if state is not None:
        scheduling.put(rows, event.space, event.agent, state, rules.of_raw(event.payload["tiers"]))


def _close(rows: Rows, event: Event, at: int) -> None:
    trigger = triggers.named_by(event)
    if trigger is not None and trigger.kind == CONSOLIDATION:
        limits = _settings(rows, event.space, event.agent)
        state = scheduling.agent_of(rows, event.space, event.agent)
        now = scheduling.close_plan(state, trigger.ordinal, at, limits)
        if now != state:
            scheduling.put(rows, event.space, event.agent, now, limits)
