"""Due reflections: agents whose count of events has reached their threshold."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import TypeVar

from recallog.models.beliefs import queries
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading
from recallog_projections.models.beliefs import reflection
from recallog_projections.stores.store import StoredRow
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import activity, due, episodic, salience
from recallog_schemas import Position, limits
from recallog_schemas.models.beliefs.triggers import REFLECTION, reflection_of
from recallog_schemas.views import PendingTrigger, Unreflected

Item = TypeVar("Item")

KIND = REFLECTION
_DUE_ROWS_FIRST = 10
"""Rows of `due.count` that the first call reads. It is small, since the rows are not used if no agent is due."""


async def pending(reading: ReadSession, spaces: Sequence[str] | None = None) -> AsyncIterator[PendingTrigger]:
    """The due reflections of some spaces, or of all of a partition, by space and agent.

    Reads one row for each space in which agents reflect, and one row and two totals for each agent that is due. Rows of
    agents that are not due are read only if a page contains them too.
    """
    due = await _due_anywhere(reading) if spaces is None else await _due_in(reading, spaces)
    for agents in _parts(due):
        for trigger in await _pending_of(reading, agents):
            yield trigger


async def _due_anywhere(reading: ReadSession) -> list[tuple[str, str]]:
    """The agents of a partition that are due at the present number of shared events: space and name of each.

    The spaces are read together, in a few calls: one call for each of them would cost more than its rows.
    """
    beyond = await _beyond(reading, [item.space async for item, _ in reading.scan(reflection.SPACES.name)])

    def is_beyond(item: StoredRow) -> bool:
        return item.space not in beyond or item.owner >= beyond[item.space]

    rows = reading.scan(due.COUNT.name, first_items=_DUE_ROWS_FIRST, ends_space=is_beyond)
    return sorted({(item.space, item.key) async for item, _ in rows})  # a row that moves meanwhile is read twice


async def _due_in(reading: ReadSession, spaces: Sequence[str]) -> list[tuple[str, str]]:
    """Like `_due_anywhere`, for some spaces: reads only their rows, in one call for each space that reflects."""
    found = set[tuple[str, str]]()
    for space, beyond in (await _beyond(reading, spaces)).items():
        async with aclosing(reading.scan(due.COUNT.name, space, first_items=_DUE_ROWS_FIRST)) as rows:
            async for item, _ in rows:
                if item.owner >= beyond:
                    break
                found.add((space, item.key))
    return sorted(found)


async def _beyond(reading: ReadSession, spaces: Sequence[str]) -> dict[str, str]:
    """By space in which agents reflect: the first owner of `due.count` whose agents are not due yet."""
    found: dict[str, str] = {}
    for part in _parts(spaces):
        snapshot = await reading.snapshot(
            [RowKey(reflection.SPACES.name, name) for name in part],
            [(LogName(episodic.SHARED.name, name), 0) for name in part],
        )
        found |= {
            name: due.count_key(snapshot.tail(episodic.SHARED, name).total + 1)
            for name in part
            if snapshot.row(reflection.SPACES, name) is not None
        }
    return found


async def _pending_of(reading: ReadSession, agents: Sequence[tuple[str, str]]) -> list[PendingTrigger]:
    """The pending triggers of some agents (space and name), from one read. The scan may have returned outdated rows."""
    snapshot = await reading.snapshot(
        [RowKey(reflection.AGENTS.name, *row_key) for row_key in agents],
        [log for row_key in agents for log in episodic.logs(*row_key, 0)],
    )
    found = []
    for space, agent in agents:
        row, totals = snapshot.row(reflection.AGENTS, space, agent), queries.totals(snapshot, space, agent)
        if row is not None and row.threshold is not None and row.is_due(*totals):
            found.append(
                PendingTrigger(
                    space=space,
                    agent=agent,
                    kind=REFLECTION,
                    trigger=reflection_of(space, agent, row.ordinal).id,
                    events=row.count(*totals),
                    threshold=row.threshold,
                )
            )
    return found


async def since(reading: AgentReading) -> Position | None:
    """The position of the record that made a reflection due; None if the views have dropped it."""
    return (await queries.reflection_of(reading)).since


async def find_unreflected(reading: ReadSession) -> AsyncIterator[Unreflected]:
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

    # All spaces are read together, in a few calls: one call for each of them would cost more than its rows.
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
    """Splits `items` into parts of at most `limits.SCAN_ITEMS`, the size of one read."""
    for start in range(0, len(items), limits.SCAN_ITEMS):
        yield items[start : start + limits.SCAN_ITEMS]
