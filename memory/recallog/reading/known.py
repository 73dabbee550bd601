"""Whether a space or an agent is known: whether any event is about it."""

from recallog.reading.read_session import ReadSession, Snapshot
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, episodic


async def knows(reading: ReadSession, snapshot: Snapshot, space: str, agent: str) -> bool:
    """Whether any event of `space` is by `agent` or addressed to it. `snapshot` has the agent's own log.

    Most agents have events of their own there; only of others, such as narrators, one more row is read.
    """
    if snapshot.tail(episodic.OWN, space, agent).total:
        return True
    row = RowKey(activity.AGENTS.name, space, agent)
    return (await reading.snapshot([row])).row(activity.AGENTS, space, agent) is not None
