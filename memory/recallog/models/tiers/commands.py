"""Changes of tiers: by the owner of an entry, by reported outcomes, and by a plan, whose summaries are made at once."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from recallog import queries
from recallog.access import MemoryAccess
from recallog.commands.answers import AnsweredMemory
from recallog.commands.command import Judge
from recallog.commands.making import make_event
from recallog.models import tiers
from recallog.models.long_term import commands as entry_changes
from recallog.models.long_term.entry_lookup import entries_by_id
from recallog.models.tiers import reactor as consolidation
from recallog.models.tiers.entries import ADDITION
from recallog.models.tiers.parameters import OutcomeOptions
from recallog.models.tiers.queries import PlannedConsolidation
from recallog.operations.parameters import At
from recallog.reactors.answering import Answers, of_work
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading, SpaceReading
from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.tiers import projection, rules, tables
from recallog_projections.views import due
from recallog_projections.views.due import Work
from recallog_schemas import Event, Position, limits, triggers
from recallog_schemas.errors import InvariantViolation, Refused
from recallog_schemas.models.long_term.views import EntriesChange
from recallog_schemas.models.tiers.triggers import SUMMARY
from recallog_schemas.models.tiers.views import ArchivedEntry, Consolidation, TierMove

JUDGE = Judge(projection.TiersProjection, tables.MOVES)
"""Judges plans. It does not predict verdicts: its fold depends on the folds of other models."""

_NO_TIER, _SAME_TIER = "no_tier", "same_tier"
_WHY = {
    entries.UNKNOWN: "{agent} may read no live entry {id}. List its entries: recallog long-term list",
    _NO_TIER: "{id} has no tier, and does not age. Give it one first: recallog tiers change",
}


async def change(
    access: MemoryAccess, space: str, agent: str, payload: Mapping[str, Any], event_id: str | None
) -> EntriesChange:
    """Move an entry to another tier, or give it one, or restore it there. Raises `Refused`."""
    id_ = payload["entry"]
    if event_id is None:
        now = await access.of_agent(space, agent, At(), _tiers_of, [id_], owned=True)
        if now[id_] == payload["to"]:
            return EntriesChange(changed=False, ids=(), refused={id_: _SAME_TIER}, position=None)
    return await entry_changes.change_one(access, space, agent, "tier_changed", payload, event_id)


async def report_outcome(
    access: MemoryAccess, space: str, agent: str, ids: Sequence[str], event_id: str | None, options: OutcomeOptions
) -> EntriesChange:
    """Publish the outcome of using entries, and return the entries for which it counts. Raises `Refused` if it counts
    for none of them."""
    given = {name: value for name, value in options.items() if value is not None}
    event = make_event(
        space, agent, "memory.outcome_reported", {"entries": list(dict.fromkeys(ids)), **given}, event_id
    )
    if event_id is None:
        unknown = await _explain_uncounted(access, event, At())
        if len(unknown) == len(event.payload["entries"]):
            id_, reason = next(iter(unknown.items()))
            raise Refused(_WHY[reason].format(agent=agent, id=id_), reason=reason)
    (position,) = await access.append([event])
    unknown = await _explain_uncounted(access, event, At(after=position))
    counted = tuple(id_ for id_ in event.payload["entries"] if id_ not in unknown)
    return EntriesChange(changed=bool(counted), ids=counted, refused=unknown, position=position)


async def _explain_uncounted(access: MemoryAccess, event: Event, at: At) -> Mapping[str, str]:
    """Why a report does not count for some of its entries, by id: they have no tier, or they are unknown."""
    ids = event.payload["entries"]
    found = await access.of_agent(event.space, event.agent, at, _tiers_of, ids)
    return {id_: entries.UNKNOWN if tier is None else _NO_TIER for id_, tier in found.items() if not tier}


async def _tiers_of(reading: AgentReading, ids: Sequence[str], *, owned: bool = False) -> Mapping[str, str | None]:
    """The tiers of live entries, by id: "" for an entry without a tier, None for an entry that the agent may not read
    or, with `owned`, does not own."""
    space, agent = reading.space, reading.agent

    async def read(session: ReadSession) -> Mapping[str, str | None]:
        found = await entries_by_id(session, space, ids)
        live = {id_: each.readable_by(agent) for id_, each in found.items() if each.ref.status == entries.LIVE}
        rows = {id_: row for id_, row in live.items() if row is not None and (row.owner == agent or not owned)}
        tier_of = await ADDITION.tiers_of(session, rows.values())
        return {id_: tier_of.get(rows[id_].offset, "") if id_ in rows else None for id_ in ids}

    return await reading.steady(read)


async def consolidate(access: MemoryAccess, space: str, agent: str, now: datetime | None) -> Consolidation:
    """Move and archive the entries of an agent by a plan at the time `now`, and summarise what was archived.

    If another plan was interrupted, its remaining parts are written first. A plan that would change nothing is not
    written. All parts are written at once.
    """
    wanted = now or datetime.now(UTC)
    made: list[Consolidation] = []
    await access.publish_reads()  # otherwise they would follow the plan, and prevent its moves
    while True:
        planned = await access.of_agent(space, agent, At(), tiers.queries.plan_consolidation, wanted)
        if planned is None:
            break
        if planned.unfinished or planned.plan.moves or planned.plan.archived:
            made.append(await _publish(access, space, agent, planned))
        if not planned.unfinished or planned.now == wanted:
            break
    return Consolidation(
        promoted=sum(each.promoted for each in made),
        demoted=sum(each.demoted for each in made),
        moves=tuple(move for each in made for move in each.moves),
        archived=tuple(entry for each in made for entry in each.archived),
        summaries=tuple(id_ for each in made for id_ in each.summaries),
        now=wanted,
        position=made[-1].position if made else None,
    )


async def _publish(access: MemoryAccess, space: str, agent: str, planned: PlannedConsolidation) -> Consolidation:
    """Write the parts of a plan, and return its effects in the views: others may have changed entries meanwhile."""
    events = consolidation.events_of(space, agent, planned)
    verdict = await JUDGE.publish(access, events)
    positions = verdict.positions
    rejected = {id_ for reasons in verdict.reasons for id_ in reasons}
    moves = [move for move in planned.plan.moves if move.id not in rejected]
    archived = [entry for entry in planned.plan.archived if entry.id not in rejected]
    summaries, position = await _summarise(access, space, agent, positions)
    promoted = sum(rules.is_faster(move.to, move.origin) for move in moves)
    return Consolidation(
        promoted=promoted,
        demoted=len(moves) - promoted,
        moves=tuple(TierMove.model_validate(move._asdict()) for move in moves),
        archived=tuple(ArchivedEntry.model_validate(entry._asdict()) for entry in archived),
        summaries=tuple(summaries),
        now=planned.now,
        position=position or positions[-1],
    )


async def _summarise(
    access: MemoryAccess, space: str, agent: str, positions: Sequence[Position]
) -> tuple[list[str], Position | None]:
    """Answer the summary triggers of a plan's parts, as the reactor would. The first answer counts.

    Returns the ids of the summaries, and the position of the last event.
    """
    memory, found, position = AnsweredMemory(access), [], None
    answers = Answers(memory, access.components.ledger, [consolidation.SummaryReactor(access)])
    for work in await _summaries_due(access, space, agent, positions):
        reaction = await answers.answer(of_work(work, skip_loops=False))
        position = position if reaction is None else reaction.position
        found += await _parts_of(access, work, position)
    return found, position


async def _parts_of(access: MemoryAccess, work: Work, after: Position | None) -> list[str]:
    """The ids of the events in the answer that counts, without the closing one."""
    trigger = triggers.parse(work.trigger)
    answer = await access.of_space(work.space, At(after=after), queries.due.begun, work.space, work.trigger)
    if trigger is None or answer is None:
        raise InvariantViolation(f"{work.trigger!r} has no answer")
    return [trigger.part_id(answer.digest, number) for number in range(1, answer.parts + 1)]


async def _summaries_due(access: MemoryAccess, space: str, agent: str, positions: Sequence[Position]) -> Sequence[Work]:
    async def read(session: SpaceReading) -> list[Work]:
        found = []
        for position in positions:
            prefix = due.now_prefix(position.offset, space, SUMMARY, agent)
            page = await session.page(due.NOW, "", prefix=prefix, limit=limits.EVENT_IDS_MAX)
            found += [work for _, work in page.items]
        return found

    return await access.of_space(space, At(after=positions[-1]), read)
