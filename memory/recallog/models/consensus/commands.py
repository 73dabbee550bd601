"""Recording of consensus, dissent, and what supersedes what.

The views decide in the order of the ledger which consensus supersedes another. What they would refuse now is refused
before anything is written.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from recallog.access import MemoryAccess
from recallog.commands.making import made
from recallog.models.consensus import queries
from recallog.operations.parameters import At
from recallog.reading.read_session import ReadSession
from recallog_projections.models.consensus import projection as consensus
from recallog_projections.models.consensus.projection import ConsensusRow
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas import Event, Position, limits
from recallog_schemas.errors import InvalidArgument, InvariantViolation, Refused
from recallog_schemas.models.consensus import limits as consensus_limits
from recallog_schemas.models.consensus.views import ConsensusView, DissentView

_ENVELOPE = ("session", "audience")
_WHY = {
    consensus.UNKNOWN: "{agent} sees no consensus {unseen}. Find the ids of those that it sees: recallog consensus "
    "find-similar",
    consensus.OWN: "the consensus {id} cannot supersede itself",
    consensus.ENDED: "the consensus {ended} is superseded already, and only two that hold can be linked. Find the one "
    "that holds: recallog consensus find-similar",
    consensus.HIDDEN: "not all agents that see {id} see {by}: a successor is seen by all of them. Record it for the "
    "same audience, or for all agents of the space",
    consensus.FULL: f"{{by}} supersedes {consensus_limits.CONSENSUS_SUPERSEDED_MAX} already, the most that one may "
    "supersede",
}


async def record(
    access: MemoryAccess, space: str, agent: str, given: Mapping[str, Any], event_id: str | None
) -> ConsensusView:
    """Publish a consensus. Raises `Refused` if it may not supersede the one that it names; nothing has changed then."""
    event = _event(space, agent, consensus.RECORDED, given, event_id)
    superseded = event.payload.get("supersedes")
    if superseded is not None:
        rows, readers = await _rows(access, space, superseded, event.id), await _readers(access, event)
        if event.id not in rows:
            as_recorded = ConsensusRow(limits.INTEGER_MAX, readers, "", b"")
            _check(agent, superseded, event.id, {event.id: as_recorded, **rows})
    (position,) = await access.append([event])
    return await _found(access, space, agent, event.id, position)


async def supersede(access: MemoryAccess, space: str, agent: str, id_: str, by: str) -> ConsensusView:
    """Let a consensus supersede another one, and answer that one. If it does already, nothing is written.

    Raises `Refused`; nothing has changed then.
    """
    rows = await _rows(access, space, id_, by)
    before, position = rows.get(id_), None
    if before is None or before.superseded_by != by or _unseen(agent, rows, id_, by):
        _check(agent, id_, by, rows)
        event = _event(space, agent, consensus.SUPERSEDED, {"consensus": id_, "by": by}, None)
        (position,) = await access.append([event])
    found = await _found(access, space, agent, id_, position)
    if found.superseded_by != by:
        raise Refused(_WHY[consensus.ENDED].format(ended=id_), reason=consensus.ENDED)
    return found


async def dissent(
    access: MemoryAccess, space: str, agent: str, given: Mapping[str, Any], event_id: str | None
) -> DissentView:
    """Publish a dissent. Raises `Refused` if the agent sees no such consensus; nothing has changed then."""
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
    return await access.of_space(
        space, lambda reading: queries.dissent(reading, agent, event, position), At(after=position)
    )


def _event(space: str, agent: str, kind: str, given: Mapping[str, Any], event_id: str | None) -> Event:
    stated = {
        name: value if isinstance(value, str) or not isinstance(value, Sequence) else list(value)
        for name, value in given.items()
        if value is not None
    }
    envelope = {name: stated.pop(name) for name in _ENVELOPE if name in stated}
    return made(space, agent, kind, stated, event_id, **envelope)


async def _rows(access: MemoryAccess, space: str, *ids: str) -> Mapping[str, ConsensusRow]:
    async def read(reading: ReadSession) -> Mapping[str, ConsensusRow]:
        return await queries.rows_of(reading, space, ids)

    return await access.of_space(space, read, At())


async def _readers(access: MemoryAccess, event: Event) -> tuple[str, ...]:
    """The agents that would see the consensus in `event` now."""
    row = RowKey(settings.SPACES.name, event.space)
    snapshot = await access.of_space(event.space, lambda reading: reading.snapshot([row]), At())
    return consensus.readers_of(event, snapshot.row(settings.SPACES, event.space))


def _check(agent: str, id_: str, by: str, rows: Mapping[str, ConsensusRow]) -> None:
    """Raise `Refused` if the views would not let one consensus supersede the other."""
    reason = consensus.refusal(agent, rows.get(id_), rows.get(by))
    if reason is not None:
        unseen = _unseen(agent, rows, id_, by)
        ended = ", ".join(each for each in (id_, by) if each in rows and rows[each].superseded_by is not None)
        raise Refused(_WHY[reason].format(agent=agent, id=id_, by=by, unseen=unseen, ended=ended), reason=reason)


def _unseen(agent: str, rows: Mapping[str, ConsensusRow], *ids: str) -> str:
    """Those of some ids that name no consensus which the agent sees."""
    seen = {id_ for id_, row in rows.items() if consensus.may_read(agent, row.readers)}
    return ", ".join(id_ for id_ in dict.fromkeys(ids) if id_ not in seen)


async def _found(access: MemoryAccess, space: str, agent: str, id_: str, after: Position | None) -> ConsensusView:
    at = At() if after is None else At(after=after)
    found = await access.of_space(space, lambda reading: queries.by_id(reading, space, agent, id_), at)
    if found is None:
        raise InvariantViolation(f"the view of consensus has no row for {id_}")
    return found
