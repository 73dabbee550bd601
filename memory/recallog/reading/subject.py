"""The first fields of answers about a space or an agent: the state, the subject, and whether it is known."""

from recallog.reading.read_session import ComputedAtFields, Snapshot
from recallog.reading.readings import AgentReading
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import activity, episodic, settings
from recallog_schemas.kinds import Dates


class OfSpaceFields(ComputedAtFields):
    """The fields of `OfSpace`."""

    space: str
    known: bool


class OfAgentFields(ComputedAtFields):
    """The fields of `OfAgent`."""

    space: str
    agent: str
    known: bool
    dates: Dates


def of_space(snapshot: Snapshot, space: str) -> OfSpaceFields:
    """The fields of an answer about `space`, whose row of `activity.SPACES` is in `snapshot`."""
    return {**snapshot.computed_at, "space": space, "known": snapshot.row(activity.SPACES, space) is not None}


def own_log(space: str, agent: str) -> tuple[LogName, int]:
    """The log by which `of_agent` determines whether an agent is known, without its entries."""
    return LogName(episodic.OWN.name, space, agent), 0


async def snapshot_of(reading: AgentReading) -> Snapshot:
    """The rows and logs of the agent that `of_agent` needs."""
    space, agent = reading.space, reading.agent
    return await reading.snapshot([RowKey(settings.AGENTS.name, space, agent)], [own_log(space, agent)])


async def of_agent(reading: AgentReading, snapshot: Snapshot, reader: str | None = None) -> OfAgentFields:
    """The fields of an answer about the agent for `reader` (default: the agent).

    `snapshot` has the agent's own log, and the reader's row of `settings.AGENTS`.
    """
    space, agent = reading.space, reading.agent
    shown_to = agent if reader is None else reader
    return {
        **snapshot.computed_at,
        "space": space,
        "agent": agent,
        "known": await _is_known(reading, snapshot),
        "dates": settings.dates_of(snapshot.row(settings.AGENTS, space, shown_to)),
    }


async def _is_known(reading: AgentReading, snapshot: Snapshot) -> bool:
    """Whether any event of the space is by the agent or addressed to it.

    Most agents have events in their own log. For others, such as narrators, one more row is read.
    """
    space, agent = reading.space, reading.agent
    if snapshot.tail(episodic.OWN, space, agent).total:
        return True
    row = RowKey(activity.AGENTS.name, space, agent)
    return (await reading.snapshot([row])).row(activity.AGENTS, space, agent) is not None
