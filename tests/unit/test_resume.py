"""`resume`: the last session of a space, or of one of its agents, its turn, and the next one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Event, InvalidArgument, Memory
from recallog.views import ResumeView
from support.cli import recallog, without_events
from support.events import event, one_loop, run
from support.twice import once, twice

Stopped = tuple[str | None, int | None, int]


def stopped(view: ResumeView) -> Stopped:
    return view.session, view.turn, view.next_turn


async def resumed(memory: Memory, agent: str | None = None, **at: Any) -> Stopped:
    return stopped(await memory.resume("village", agent=agent, **at))


def check(events: Sequence[Event], expected: Stopped, agent: str | None = None) -> None:
    """The answer, also after a rebuild, and where every event is delivered twice."""

    async def work() -> None:
        for memory in (once(), twice()):
            async with memory:
                await memory.publish_many(events)
                assert await resumed(memory, agent) == expected
                await memory.admin.rebuild()
                assert await resumed(memory, agent) == expected

    run(work())


def test_an_empty_space_has_nothing_to_restore_and_begins_with_turn_0() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            found = await memory.resume("village")
            assert (stopped(found), found.known, found.ok) == ((None, None, 0), False, False)
            assert found.format() == "nothing to restore"
            of_agent = await memory.resume("village", agent="baker")
            assert (stopped(of_agent), of_agent.known, of_agent.agent) == ((None, None, 0), False, "baker")

    run(work())


def test_a_space_with_settings_alone_has_nothing_to_restore() -> None:
    check([event("agent.configured", payload={"persona": "A baker."}, turn=7)], (None, None, 0))


def test_the_session_of_the_newest_event_and_its_turn() -> None:
    check([event(session="monday", turn=8), event(session="tuesday", turn=2)], ("tuesday", 2, 3))


def test_a_session_that_goes_on_after_a_later_one_began() -> None:
    events = [event(session="monday", turn=8), event(session="tuesday", turn=2), event(session="monday", turn=9)]
    check(events, ("monday", 9, 10))


def test_an_event_without_a_turn_does_not_begin_the_session_anew() -> None:
    check([event(session="monday", turn=8), event("session.ended", session="monday")], ("monday", 8, 9))


def test_an_event_without_a_session_ends_none() -> None:
    check([event(session="monday", turn=8), event("world.observed", turn=40)], ("monday", 8, 9))


def test_without_sessions_the_highest_turn_counts() -> None:
    check([event(turn=3), event(turn=5), event(turn=4)], (None, 5, 6))
    check([event(turn=3), event(turn=5), event(turn=4)], (None, 5, 6), "baker")


@pytest.mark.models("long_term")
def test_what_the_memory_writes_by_itself_and_entries_move_nothing() -> None:
    events = [
        event(session="monday", turn=8),
        event("memory.accessed", session="sunday", turn=90, payload={"counts": {}, "misses": 1}),
        event("memory.retained", session="sunday", turn=90, payload={"text": "The miller pays late.", "type": "fact"}),
    ]
    check(events, ("monday", 8, 9))
    check(events, ("monday", 8, 9), "baker")


def test_each_of_two_assistants_goes_on_with_the_session_that_it_may_see() -> None:
    events = [
        event("user.injected", agent="ann", audience=["helper"], session="ann-1", turn=1),
        event(agent="helper", session="ann-1", turn=1),
        event("user.injected", agent="bob", audience=["tutor"], session="bob-1", turn=5),
    ]
    check(events, ("ann-1", 1, 2), "helper")
    check(events, ("bob-1", 5, 6), "tutor")
    check(events, ("bob-1", 5, 6))


def test_an_agent_that_has_only_read_goes_on_with_what_is_shared() -> None:
    events = [event("world.observed", session="monday", turn=4), event("agent.thought", session="secret", turn=9)]
    check(events, ("monday", 4, 5), "miller")


def test_the_turn_of_a_session_counts_only_what_the_agent_may_see() -> None:
    events = [event("world.observed", session="monday", turn=4), event("agent.thought", session="monday", turn=9)]
    check(events, ("monday", 4, 5), "miller")
    check(events, ("monday", 9, 10), "baker")


def test_the_state_of_a_past_moment() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            first, last = (
                await memory.publish_many([event(session="monday", turn=8), event(session="tuesday", turn=2)])
            ).items
            for agent in (None, "baker"):
                assert await resumed(memory, agent, as_of=first) == ("monday", 8, 9)
                assert await resumed(memory, agent, after=last) == ("tuesday", 2, 3)

    run(work())


def test_a_wrong_name_is_an_invalid_argument() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidArgument, match="agent: "):
                await memory.resume("village", agent="no name ")

    run(work())


def test_the_command(tmp_path: Path) -> None:
    without_events(tmp_path)
    empty = recallog("resume", "village", "--home", tmp_path)
    assert (empty.code, "the memory has no events yet" in empty.err) == (1, True)
    recallog("publish", "village", "baker", "agent.configured", "--payload", '{"window": 3}', "--home", tmp_path)
    nothing = recallog("resume", "village", "--home", tmp_path)
    assert (nothing.code, nothing.out) == (1, "nothing to restore\n")
    recallog("publish", "village", "baker", "agent.spoke", "Bread!", "--turn", 3, "--home", tmp_path)
    assert recallog("resume", "village", "--home", tmp_path).out == "no session, turn 3, next turn 4\n"
    spoken = ("publish", "village", "baker", "agent.spoke", "Bread!", "--turn", 5, "--session", "monday")
    recallog(*spoken, "--home", tmp_path)
    found = recallog("resume", "village", "--agent", "baker", "--home", tmp_path)
    assert (found.code, found.out) == (0, "session monday, turn 5, next turn 6\n")
    as_json = recallog("resume", "village", "--json", "--home", tmp_path).json
    assert (as_json["session"], as_json["turn"], as_json["next_turn"]) == ("monday", 5, 6)
    misspelt = recallog("resume", "village", "--agent", "bakre", "--home", tmp_path)
    assert (misspelt.code, "did you mean 'baker'?" in misspelt.err) == (1, True)


SAID = st.builds(
    lambda kind, agent, session, turn, audience: event(
        kind, agent=agent, session=session, turn=turn, payload={"text": "Bread!"}, **audience
    ),
    st.sampled_from(["agent.spoke", "world.observed", "agent.thought", "memory.retained"]),
    st.sampled_from(["baker", "miller"]),
    st.sampled_from([None, "a", "b"]),
    st.integers(0, 5),
    st.sampled_from([{}, {"audience": ["miller"]}]),
)


def expected_of(events: Sequence[Event], agent: str | None) -> Stopped:
    memories = [each for each in events if each.kind != "memory.retained"]
    if agent is not None:
        memories = [
            each
            for each in memories
            if each.agent == agent
            or agent in (each.audience or ())
            or (each.kind == "world.observed" and each.audience is None)
        ]
    if not memories:
        return None, None, 0
    sessions = [each.session for each in memories if each.session is not None]
    session = sessions[-1] if sessions else None
    turn = max(each.turn for each in memories if session is None or each.session == session)
    return session, turn, turn + 1


@pytest.mark.models("long_term")
@given(events=st.lists(SAID, max_size=8))
def test_any_events_give_what_a_list_of_them_gives(events: list[Event]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)
            for agent in (None, "baker", "miller"):
                assert await resumed(memory, agent) == expected_of(events, agent)

    with one_loop():
        run(work())
