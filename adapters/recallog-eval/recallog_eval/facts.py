"""Facts of the conversations of a file. An agent that is set to `extract_facts` extracts them while the file is
published.

The agent ends a turn after each of its utterances, and at the end of a session in which another one spoke last. After
each session its turns are answered by the reactor, so facts are drawn in the order in which things were said.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from recallog import Event, Memory
from recallog_service.formats import derived_id

_SPOKEN = "agent.spoke"
_SESSION_ENDED = "session.ended"
_TURN_ENDED = "turn.ended"
_CONFIGURED = "agent.configured"


async def draw(
    memory: Memory,
    events: Sequence[Event],
    agents: Mapping[str, str],
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Publish `events`, and extract facts for one agent of each space in `agents`. Returns the number of facts.

    A repetition adds nothing. `progress` is called with events (published, total). Raises `ModelMisconfigured`.
    """
    done = 0
    for session in by_session(events, agents):
        await memory.publish_many(session)
        await memory.catch_up_index()  # near-duplicates must not depend on the progress of the index
        await memory.react(session[0].space)
        done += sum(event.kind not in (_TURN_ENDED, _CONFIGURED) for event in session)
        if progress is not None:
            progress(done, len(events))
    return sum([(await memory.long_term.stats(space, agent)).fact_count for space, agent in agents.items()])


def by_session(events: Iterable[Event], agents: Mapping[str, str]) -> Iterator[list[Event]]:
    """The events of each session in sequence, with the ends of the turns of the space's agent.

    The setting of the agent comes before the first event of its space.
    """
    configured: set[str] = set()
    for (space, _), together in groupby(events, lambda event: (event.space, event.session)):
        session, agent = list(together), agents.get(space)
        if agent is None:
            yield session
            continue
        if space not in configured:
            configured.add(space)
            yield [_event(session[0], agent, _CONFIGURED, {"extract_facts": True, "daily": {"enabled": False}})]
        yield list(_with_turns(session, agent))


def _with_turns(session: Sequence[Event], agent: str) -> Iterator[Event]:
    heard = False
    for event in session:
        if event.kind == _SESSION_ENDED and heard:
            yield _event(event, agent, _TURN_ENDED, {})
        yield event
        if event.kind == _SPOKEN:
            heard = event.agent != agent
            if not heard:
                yield _event(event, agent, _TURN_ENDED, {})


def _event(beside: Event, agent: str, kind: str, payload: Mapping[str, object]) -> Event:
    """An event of the agent at the time of another one, in its session."""
    session = None if kind == _CONFIGURED else beside.session
    return Event(
        id=derived_id(beside.space, session, f"{kind} {beside.id}"),
        space=beside.space,
        agent=agent,
        kind=kind,
        session=session,
        turn=beside.turn,
        at=beside.at,
        payload=dict(payload),
    )
