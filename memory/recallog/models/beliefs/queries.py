"""Queries about reflections (which are due, since when and on which events) and about the beliefs of agents."""

from collections.abc import Sequence
from operator import attrgetter

from recallog.queries.salient import clock
from recallog.reading.read_session import Snapshot, position
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, own_log
from recallog_projections.models.beliefs import beliefs, reflection
from recallog_projections.models.beliefs.beliefs import BeliefRow
from recallog_projections.models.beliefs.reflection import Agent
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import episodic, salience, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import codec
from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.models.beliefs import triggers
from recallog_schemas.models.beliefs.views import Belief, BeliefsView, Counted, ReflectionView


def rows(space: str, agent: str) -> list[RowKey]:
    """The rows that `view` needs besides the logs of `episodic`."""
    return [
        RowKey(reflection.AGENTS.name, space, agent),
        RowKey(salience.CLOCK.name, space),
        RowKey(settings.AGENTS.name, space, agent),
        RowKey(settings.SPACES.name, space),
    ]


def events_needed(snapshot: Snapshot, space: str, agent: str, log_events: int) -> int:
    """How many of the newest events `view` needs to determine since when a reflection is due, and on which events.

    An event that made it due is not searched for if it is older than the `log_events` events that the logs retain.
    """
    row = snapshot.row(reflection.AGENTS, space, agent) or Agent()
    own_and_shared = totals(snapshot, space, agent)
    back = _back(row, *own_and_shared)
    to_since = 0 if back is None else row.passed + back + 1
    least = beliefs_limits.REFLECTION_EVENTS
    if row.is_due(*own_and_shared) and row.count(*own_and_shared) > least:
        counted = _count_memories(snapshot.memories(space, agent), row, agent)
        if len(_find_evidence(snapshot, space, counted)) < least:
            least = beliefs_limits.EVIDENCE_SCANNED
    return min(max(row.passed + least, to_since if to_since <= log_events else 0), log_events)


async def view(reading: AgentReading, snapshot: Snapshot) -> ReflectionView:
    """Whether a reflection of the agent is due, since when, and on which events."""
    space, agent = reading.space, reading.agent
    row = snapshot.row(reflection.AGENTS, space, agent) or Agent()
    own_and_shared = totals(snapshot, space, agent)
    due = row.is_due(*own_and_shared)
    counted = _count_memories(snapshot.memories(space, agent), row, agent)
    back, since = _back(row, *own_and_shared), row.since if due else None
    if back is not None and back < len(counted):
        since = counted[-1 - back].offset
    return ReflectionView(
        **await of_agent(reading, snapshot),
        due=due,
        threshold=row.threshold,
        events=row.count(*own_and_shared),
        since=None if since is None else position(snapshot.partition, since),
        last=position(snapshot.partition, row.answered),
        turn=clock(snapshot, space),
        trigger=triggers.reflection_of(space, agent, row.ordinal).id if due else None,
        on=_find_evidence(snapshot, space, counted if due else counted[-beliefs_limits.REFLECTION_EVENTS :]),
    )


def _find_evidence(snapshot: Snapshot, space: str, counted: Sequence[RememberedEvent]) -> tuple[Counted, ...]:
    """The events that the space makes beliefs from, oldest first: the newest `beliefs_limits.REFLECTION_EVENTS` among
    the newest `beliefs_limits.EVIDENCE_SCANNED`."""
    found: list[Counted] = []
    sources = SourceClasses(snapshot.row(settings.SPACES, space))
    for memory in reversed(counted[-beliefs_limits.EVIDENCE_SCANNED :]):
        if len(found) == beliefs_limits.REFLECTION_EVENTS:
            break
        shown = snapshot.make_remembered(memory.offset, memory.data, memory.text)
        if sources.allows("beliefs", shown.event):
            found.append(
                Counted.model_construct(
                    position=shown.position,
                    event=shown.event,
                    text=shown.text,
                    importance=memory.importance,
                    trust=sources.class_of(shown.event),
                )
            )
    return tuple(found[::-1])


async def reflection_of(reading: AgentReading) -> ReflectionView:
    """Whether a reflection of the agent is due, if the logs retain `log_events` events."""
    space, agent, log_events = reading.space, reading.agent, reading.log_events
    newest = beliefs_limits.REFLECTION_EVENTS
    while True:
        snapshot = await reading.snapshot(rows(space, agent), episodic.logs(space, agent, newest))
        needed = events_needed(snapshot, space, agent, log_events)
        if needed <= newest:
            return await view(reading, snapshot)
        newest = needed


def belief_logs(space: str, agent: str, newest: int) -> list[tuple[LogName, int]]:
    """The logs of the reflections of `agent`, each with the number of newest entries to read."""
    return [(LogName(log.name, space, agent), newest) for log in (beliefs.BELIEFS, beliefs.UNTRUSTED)]


def read_logs(snapshot: Snapshot, space: str, agent: str) -> list[BeliefRow]:
    """The rows of `belief_logs`, oldest first."""
    tails = [snapshot.tail(log, space, agent) for log in (beliefs.BELIEFS, beliefs.UNTRUSTED)]
    rows = beliefs.BELIEFS.decode_all([data for tail in tails for data in tail.entries])
    return sorted(rows, key=attrgetter("offset"))


def find_beliefs(
    snapshot: Snapshot, space: str, agent: str, reader: str | None = None, *, newest: int = beliefs_limits.BELIEFS_KEPT
) -> list[Belief]:
    """The newest reflections of `agent` in `snapshot`, oldest first; with a `reader`, only those that it may see.

    A reflection from a source from which the space does not make beliefs, such as an imported one, is not a belief.
    """
    found, sources = [], SourceClasses(snapshot.row(settings.SPACES, space))
    for entry in read_logs(snapshot, space, agent):
        shown = snapshot.make_remembered(entry.offset, entry.data, None)
        may_read = reader is None or beliefs.may_read(reader, entry, shown.event)
        if may_read and sources.allows("beliefs", shown.event):
            based_on = tuple(shown.event.payload.get("based_on", ()))
            found.append(
                Belief.model_construct(position=shown.position, event=shown.event, text=shown.text, based_on=based_on)
            )
    return found[-newest:]


async def beliefs_of(reading: AgentReading, reader: str | None) -> BeliefsView:
    """The newest reflections of `agent` that `reader` may see."""
    space, agent = reading.space, reading.agent
    shown_to = agent if reader is None else reader
    snapshot = await reading.snapshot(
        [RowKey(settings.AGENTS.name, space, shown_to), RowKey(settings.SPACES.name, space)],
        [*belief_logs(space, agent, beliefs_limits.BELIEFS_KEPT), own_log(space, agent)],
    )
    return BeliefsView(
        **await of_agent(reading, snapshot, reader),
        reader=reader,
        beliefs=tuple(find_beliefs(snapshot, space, agent, reader)),
    )


def totals(snapshot: Snapshot, space: str, agent: str) -> tuple[int, int]:
    """The number of entries that were ever in the agent's own log, and in the log of the space."""
    return snapshot.tail(episodic.OWN, space, agent).total, snapshot.tail(episodic.SHARED, space).total


def _back(row: Agent, own: int, shared: int) -> int | None:
    """The number of counted events after the event that made the reflection due; None if no event did."""
    if row.crossing is None or not row.is_due(own, shared):
        return None
    return row.count(own, shared) - row.crossing


def _count_memories(memories: Sequence[RememberedEvent], row: Agent, agent: str) -> list[RememberedEvent]:
    """The events that count: those since the last answer, without the agent's own reflections that do not answer a
    trigger."""
    since = [memory for memory in memories if memory.offset > row.answered]
    if not row.passed:
        return since
    return [memory for memory in since if not _is_reflection_of(agent, memory)]


def _is_reflection_of(agent: str, memory: RememberedEvent) -> bool:
    event = codec.decode(memory.data)
    return event.agent == agent and event.kind == beliefs.KIND
