"""Queries about reflections: which are due, since when and on what, and what agents have come to believe."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import TypeVar

from recallog.queries.salient import clock
from recallog.reading.read_session import ReadSession, Snapshot, position
from recallog.reading.subject import of_agent, own_log
from recallog_projections.models.beliefs import beliefs, reflection
from recallog_projections.models.beliefs.reflection import Agent
from recallog_projections.stores.store import StoredRow
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import activity, due, episodic, salience, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import codec, limits, triggers
from recallog_schemas.views import Belief, BeliefsView, Counted, PendingTrigger, ReflectionView, Unreflected

Item = TypeVar("Item")

_DUE_ROWS_FIRST = 10
"""Rows of `due.count` that the first call reads. Small, since they are not used if no agent is due."""


def rows(space: str, agent: str) -> list[RowKey]:
    """The rows that `view` needs besides the logs of `episodic`."""
    return [
        RowKey(reflection.AGENTS.name, space, agent),
        RowKey(salience.CLOCK.name, space),
        RowKey(settings.AGENTS.name, space, agent),
    ]


def events_needed(snapshot: Snapshot, space: str, agent: str, log_events: int) -> int:
    """How many of the newest events `view` needs to determine since when a reflection is due, and on which events.

    If the event that made it due is older than the `log_events` events that the logs retain, it is not searched for.
    """
    row = snapshot.row(reflection.AGENTS, space, agent) or Agent()
    back = _back(row, *_totals(snapshot, space, agent))
    to_since = 0 if back is None else row.passed + back + 1
    return min(max(row.passed + limits.REFLECTION_EVENTS, to_since if to_since <= log_events else 0), log_events)


async def view(reading: ReadSession, snapshot: Snapshot, space: str, agent: str) -> ReflectionView:
    """Whether a reflection of `agent` is due, since when, and on which events."""
    row = snapshot.row(reflection.AGENTS, space, agent) or Agent()
    totals = _totals(snapshot, space, agent)
    due = row.is_due(*totals)
    counted = _counted(snapshot.memories(space, agent), row, agent)
    back, since = _back(row, *totals), row.since if due else None
    if back is not None and back < len(counted):
        since = counted[-1 - back].offset
    return ReflectionView(
        **await of_agent(reading, snapshot, space, agent),
        due=due,
        threshold=row.threshold,
        events=row.count(*totals),
        since=None if since is None else position(snapshot.partition, since),
        last=position(snapshot.partition, row.answered),
        turn=clock(snapshot, space),
        trigger=triggers.reflection_of(space, agent, row.ordinal).id if due else None,
        on=tuple(_shown(snapshot, memory) for memory in counted[-limits.REFLECTION_EVENTS :]),
    )


def _shown(snapshot: Snapshot, memory: RememberedEvent) -> Counted:
    shown = snapshot.remembered(memory.offset, memory.data, memory.text)
    return Counted.model_construct(
        position=shown.position, event=shown.event, text=shown.text, importance=memory.importance
    )


async def reflection_of(reading: ReadSession, space: str, agent: str, log_events: int) -> ReflectionView:
    """Whether a reflection of `agent` is due, if the logs retain `log_events` events."""
    newest = limits.REFLECTION_EVENTS
    while True:
        snapshot = await reading.snapshot(rows(space, agent), episodic.logs(space, agent, newest))
        needed = events_needed(snapshot, space, agent, log_events)
        if needed <= newest:
            return await view(reading, snapshot, space, agent)
        newest = needed


async def pending(reading: ReadSession, spaces: Sequence[str] | None = None) -> AsyncIterator[PendingTrigger]:
    """The due reflections of some spaces, or of all of a partition, by space and agent.

    Costs one row for each space in which agents reflect, and one row and two totals for each agent that is due; agents
    that are not due cost nothing, but for those that are read together with others.
    """
    due = await _due_anywhere(reading) if spaces is None else await _due_in(reading, spaces)
    for agents in _parts(due):
        for trigger in await _pending_of(reading, agents):
            yield trigger


async def _due_anywhere(reading: ReadSession) -> list[tuple[str, str]]:
    """The agents of a partition that fall due with the present number of shared events: space and name of each.

    The spaces are read together, in a few calls: one call for each of them would cost more than its rows.
    """
    beyond = await _beyond(reading, [item.space async for item, _ in reading.scan(reflection.SPACES.name)])

    def is_beyond(item: StoredRow) -> bool:
        return item.space not in beyond or item.owner >= beyond[item.space]

    rows = reading.scan(due.COUNT.name, first_items=_DUE_ROWS_FIRST, ends_space=is_beyond)
    return sorted({(item.space, item.key) async for item, _ in rows})  # a row that moves meanwhile is read twice


async def _due_in(reading: ReadSession, spaces: Sequence[str]) -> list[tuple[str, str]]:
    """As `_due_anywhere`, of some spaces: it reads no other rows than theirs."""
    found = set[tuple[str, str]]()
    for space, beyond in (await _beyond(reading, spaces)).items():
        async with aclosing(reading.scan(due.COUNT.name, space, first_items=_DUE_ROWS_FIRST)) as rows:
            async for item, _ in rows:
                if item.owner >= beyond:
                    break
                found.add((space, item.key))
    return sorted(found)


async def _beyond(reading: ReadSession, spaces: Sequence[str]) -> dict[str, str]:
    """By space: the first owner of `due.count` whose agents are not due."""
    found: dict[str, str] = {}
    for part in _parts(spaces):
        snapshot = await reading.snapshot(logs=[(LogName(episodic.SHARED.name, name), 0) for name in part])
        found |= {name: due.count_key(snapshot.tail(episodic.SHARED, name).total + 1) for name in part}
    return found


async def _pending_of(reading: ReadSession, agents: Sequence[tuple[str, str]]) -> list[PendingTrigger]:
    """The pending triggers of some agents (space and name), from one read: the scan may have returned older rows."""
    snapshot = await reading.snapshot(
        [RowKey(reflection.AGENTS.name, *row_key) for row_key in agents],
        [log for row_key in agents for log in episodic.logs(*row_key, 0)],
    )
    found = []
    for space, agent in agents:
        row, totals = snapshot.row(reflection.AGENTS, space, agent), _totals(snapshot, space, agent)
        if row is not None and row.threshold is not None and row.is_due(*totals):
            found.append(
                PendingTrigger(
                    space=space,
                    agent=agent,
                    kind=triggers.REFLECTION,
                    trigger=triggers.reflection_of(space, agent, row.ordinal).id,
                    events=row.count(*totals),
                    threshold=row.threshold,
                )
            )
    return found


async def unreflected(reading: ReadSession) -> AsyncIterator[Unreflected]:
    """Agents that have acted past turn 30 without a threshold and have never reflected, by space and name.

    Agents whose events were all shared, such as narrators and visitors, are left out: they have no memory of their own.
    """
    spaces = {
        item.space
        async for item, _ in reading.scan(salience.CLOCK.name)
        if salience.CLOCK.decode(item.data).turn > limits.UNREFLECTED_TURNS
    }

    def is_young(item: StoredRow) -> bool:
        return item.space not in spaces

    # All spaces together, in a few calls: one call for each of them would cost more than its rows.
    agents = reading.scan(reflection.AGENTS.name, ends_space=is_young)
    reflecting = {(item.space, item.owner) async for item, _ in agents if reflection.AGENTS.decode(item.data).reflects}
    turns = {
        (item.space, item.owner): turn
        async for item, _ in reading.scan(activity.AGENTS.name, ends_space=is_young)
        if (item.space, item.owner) not in reflecting
        and (turn := activity.AGENTS.decode(item.data).turn) > limits.UNREFLECTED_TURNS
    }
    for part in _parts(list(turns)):
        snapshot = await reading.snapshot(logs=[log for agent in part for log in episodic.logs(*agent, 0)])
        for space, agent in part:
            if snapshot.tail(episodic.OWN, space, agent).total:
                yield Unreflected.model_construct(space=space, agent=agent, turn=turns[space, agent])


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """`items` in parts of at most `limits.SCAN_ITEMS`, the size of one read."""
    for start in range(0, len(items), limits.SCAN_ITEMS):
        yield items[start : start + limits.SCAN_ITEMS]


def belief_log(space: str, agent: str, newest: int) -> tuple[LogName, int]:
    """The log of the reflections of `agent`, and how many of its newest entries to read."""
    return LogName(beliefs.BELIEFS.name, space, agent), newest


def believed(snapshot: Snapshot, space: str, agent: str, reader: str | None = None) -> list[Belief]:
    """The reflections of `agent` in `snapshot`; with a `reader`, only those that it may see."""
    found = []
    for data in snapshot.tail(beliefs.BELIEFS, space, agent).entries:
        entry = beliefs.BELIEFS.decode(data)
        shown = snapshot.remembered(entry.offset, entry.data, None)
        if reader is None or beliefs.may_read(reader, entry, shown.event):
            based_on = tuple(shown.event.payload.get("based_on", ()))
            found.append(
                Belief.model_construct(position=shown.position, event=shown.event, text=shown.text, based_on=based_on)
            )
    return found


async def beliefs_of(reading: ReadSession, space: str, agent: str, reader: str | None) -> BeliefsView:
    """The newest reflections of `agent` that `reader` may see."""
    shown_to = agent if reader is None else reader
    snapshot = await reading.snapshot(
        [RowKey(settings.AGENTS.name, space, shown_to)],
        [belief_log(space, agent, limits.BELIEFS_KEPT), own_log(space, agent)],
    )
    return BeliefsView(
        **await of_agent(reading, snapshot, space, agent, reader),
        reader=reader,
        beliefs=tuple(believed(snapshot, space, agent, reader)),
    )


def _totals(snapshot: Snapshot, space: str, agent: str) -> tuple[int, int]:
    """How many entries the agent's own log and the space's have ever had."""
    return snapshot.tail(episodic.OWN, space, agent).total, snapshot.tail(episodic.SHARED, space).total


def _back(row: Agent, own: int, shared: int) -> int | None:
    """How many counted events follow the one that made the reflection due; None if no event did."""
    if row.crossing is None or not row.is_due(own, shared):
        return None
    return row.count(own, shared) - row.crossing


def _counted(memories: Sequence[RememberedEvent], row: Agent, agent: str) -> list[RememberedEvent]:
    """The events that count: those since the last answer, without the agent's own reflections that answer nothing."""
    since = [memory for memory in memories if memory.offset > row.answered]
    if not row.passed:
        return since
    return [memory for memory in since if not _is_reflection_of(agent, memory)]


def _is_reflection_of(agent: str, memory: RememberedEvent) -> bool:
    event = codec.decode(memory.data)
    return event.agent == agent and event.kind == beliefs.KIND
