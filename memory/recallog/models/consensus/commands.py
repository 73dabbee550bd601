"""Recording of consensus, dissent and succession."""

from collections.abc import Mapping, Sequence
from typing import Any

from recallog.access import MemoryAccess
from recallog.commands.command import Judge
from recallog.commands.making import make_event
from recallog.models.consensus import queries
from recallog.operations.parameters import At
from recallog.reading.read_session import ReadSession
from recallog_projections.models.consensus import projection as consensus
from recallog_projections.models.consensus.projection import ConsensusRow
from recallog_projections.views import settings
from recallog_schemas import Event, Position
from recallog_schemas.errors import InvalidArgument, InvariantViolation, Refused
from recallog_schemas.models.consensus import limits as consensus_limits
from recallog_schemas.models.consensus.views import ConsensusView, DissentView

JUDGE = Judge(consensus.ConsensusProjection, consensus.REFUSALS, [settings.SPACES])
"""The verdicts on succession."""
_ENVELOPE = ("session", "audience")
_WHY = {
    consensus.UNKNOWN: "{agent} sees no consensus {unseen}. Find the ids that it sees with: recallog consensus "
    "find-similar",
    consensus.OWN: "the consensus {id} cannot supersede itself",
    consensus.ENDED: "the consensus {ended} is already superseded, and only current ones can be linked. Find the "
    "current one: recallog consensus find-similar",
    consensus.HIDDEN: "not all agents that see {id} see {by}, and a successor needs at least these readers. Record it "
    "for the same audience, or for all agents of the space",
    consensus.FULL: f"{{by}} supersedes {consensus_limits.CONSENSUS_SUPERSEDED_MAX} already, the maximum",
}


async def record(
    access: MemoryAccess, space: str, agent: str, given: Mapping[str, Any], event_id: str | None
) -> ConsensusView:
    """Publish a consensus. Raises `Refused` if it may not supersede the one that it names; nothing is changed then."""
    event = _event(space, agent, consensus.RECORDED, given, event_id)
    superseded = event.payload.get("supersedes")
    if superseded is not None and not await _rows(access, space, event.id):
        await _check(access, event, superseded, event.id)
    verdict = await JUDGE.publish(access, [event])
    return await _find_consensus(access, space, agent, event.id, verdict.position)


async def supersede(access: MemoryAccess, space: str, agent: str, id_: str, by: str) -> ConsensusView:
    """Let a consensus supersede another one, and return the superseded one. If it already does, nothing is written.

    Raises `Refused`; nothing is changed then.
    """
    rows = await _rows(access, space, id_, by)
    if id_ in rows and rows[id_].superseded_by == by and not _unseen(agent, rows, id_, by):
        return await _find_consensus(access, space, agent, id_, None)
    event = _event(space, agent, consensus.SUPERSEDED, {"consensus": id_, "by": by}, None)
    await _check(access, event, id_, by)
    verdict = await JUDGE.publish(access, [event])
    found = await _find_consensus(access, space, agent, id_, verdict.position)
    if verdict.reasons[0] and found.superseded_by != by:  # another call may have linked the same two
        raise await _make_refusal(access, event, id_, by, verdict.reasons[0][""])
    return found


async def dissent(
    access: MemoryAccess, space: str, agent: str, given: Mapping[str, Any], event_id: str | None
) -> DissentView:
    """Publish a dissent. Raises `Refused` if the agent does not see such a consensus; nothing is changed then."""
    named = given.get("consensus")
    if named is None and given.get("topic") is None:
        message = "consensus_id: give the id of a consensus, or a topic"
        raise InvalidArgument(message, path="consensus_id", rule="one_of")
    event = _event(space, agent, consensus.DISSENTED, given, event_id)
    if named is not None:
        unseen = _unseen(agent, await _rows(access, space, named), named)
        if unseen:
            raise Refused(_WHY[consensus.UNKNOWN].format(agent=agent, unseen=unseen), reason=consensus.UNKNOWN)
    (position,) = await access.append([event])
    return await access.of_agent(space, agent, At(after=position), queries.dissent, event, position)


def _event(space: str, agent: str, kind: str, given: Mapping[str, Any], event_id: str | None) -> Event:
    stated = {
        name: value if isinstance(value, str) or not isinstance(value, Sequence) else list(value)
        for name, value in given.items()
        if value is not None
    }
    envelope = {name: stated.pop(name) for name in _ENVELOPE if name in stated}
    return make_event(space, agent, kind, stated, event_id, **envelope)


async def _rows(access: MemoryAccess, space: str, *ids: str) -> Mapping[str, ConsensusRow]:
    async def read(reading: ReadSession) -> Mapping[str, ConsensusRow]:
        return await queries.rows_of(reading, space, ids)

    return await access.of_space(space, At(), read)


async def _check(access: MemoryAccess, event: Event, id_: str, by: str) -> None:
    """Raise `Refused` if the views would not accept that one consensus supersedes the other now."""
    (reasons,) = await JUDGE.foresee(access, [event])
    if reasons:
        raise await _make_refusal(access, event, id_, by, reasons[""])


async def _make_refusal(access: MemoryAccess, event: Event, id_: str, by: str, reason: str) -> Refused:
    """The error of a consensus that may not supersede another one."""
    agent, rows = event.agent, await _rows(access, event.space, id_, by)
    unseen = _unseen(agent, rows, *(each for each in (id_, by) if each != event.id))
    ended = ", ".join(each for each in (id_, by) if each in rows and rows[each].superseded_by is not None)
    return Refused(_WHY[reason].format(agent=agent, id=id_, by=by, unseen=unseen, ended=ended), reason=reason)


def _unseen(agent: str, rows: Mapping[str, ConsensusRow], *ids: str) -> str:
    """The ids among the given ones that do not name a consensus which the agent sees."""
    seen = {id_ for id_, row in rows.items() if consensus.may_read(agent, row.readers)}
    return ", ".join(id_ for id_ in dict.fromkeys(ids) if id_ not in seen)


async def _find_consensus(
    access: MemoryAccess, space: str, agent: str, id_: str, after: Position | None
) -> ConsensusView:
    at = At() if after is None else At(after=after)
    found = await access.of_agent(space, agent, at, queries.by_id, id_)
    if found is None:
        raise InvariantViolation(f"the view of consensus has no row for {id_}")
    return found
