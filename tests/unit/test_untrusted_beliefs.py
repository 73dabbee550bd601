"""Reflections of less trusted sources do not push beliefs out of the views, live and after a rebuild."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog_schemas.kinds.trust import CLASSES, SourceClass
from recallog_schemas.models.beliefs import limits as beliefs_limits
from support.events import event, run

pytestmark = pytest.mark.models("prompt", "stream")

SPACE, AGENT = "village", "baker"
MANY = 300


def believed(number: int, **payload: Any) -> Event:
    fields = {"belief": f"Belief {number}.", "about": "the miller", **payload}
    return event("agent.reflected", id=f"b-{number}", payload=fields)


async def shown(memory: Memory) -> dict[str, list[str]]:
    """The ids of what each view of beliefs shows."""
    prompt = (await memory.context(SPACE, AGENT)).text
    graph = await memory.beliefs.graph(SPACE, AGENT)
    return {
        "beliefs": [each.event.id for each in (await memory.beliefs(SPACE, AGENT)).beliefs],
        "graph": [each.event.id for each in graph.beliefs],
        "edges": [f"{each.source} {each.relation} {each.target}" for each in graph.edges],
        "prompt": prompt.partition("YOUR BELIEFS\n")[2].partition("\n\n")[0].splitlines(),
    }


async def answers(events: Sequence[Event], trust: dict[str, Any] | None = None) -> dict[str, list[str]]:
    async with Memory.in_memory() as memory:
        await memory.publish(event("agent.configured", payload={"window": 1}))
        if trust is not None:
            await memory.configure_space(SPACE, trust=trust)
        for start in range(0, len(events), 100):
            await memory.publish_many(events[start : start + 100])
        found = await shown(memory)
        assert (await memory.admin.verify()).ok
        await memory.admin.rebuild()
        assert await shown(memory) == found
        return found


OWN = [believed(0, stance="for"), believed(1, stance="against", supersedes="b-0")]
IMPORTED = [believed(number, stance="for", trust="import") for number in range(2, 2 + MANY)]
SAID = event("user.injected", agent="ann", payload={"text": "Good morning."})


def test_many_imported_reflections_push_no_belief_out() -> None:
    async def work() -> None:
        found = await answers([*OWN, *IMPORTED, SAID])
        assert found == await answers([*OWN, SAID])
        assert found["beliefs"] == found["graph"] == ["b-0", "b-1"]
        assert found["edges"] == ["b-1 supersedes b-0"]
        assert len(found["prompt"]) == 2

    run(work())


def test_a_space_that_makes_beliefs_from_imports_sees_the_newest_of_both() -> None:
    async def work() -> None:
        found = await answers([*OWN, *IMPORTED, believed(900, stance="for"), SAID], {"beliefs": "import"})
        newest = [each.id for each in IMPORTED] + ["b-900"]
        assert found["beliefs"] == newest[-beliefs_limits.BELIEFS_KEPT :]
        assert found["graph"] == newest[-beliefs_limits.SUBJECT_BELIEFS :]
        assert len(found["prompt"]) == beliefs_limits.PROMPT_BELIEFS

    run(work())


@given(
    stated=st.lists(st.sampled_from([None, *CLASSES]), max_size=20),
    least=st.sampled_from(CLASSES),
    changed=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_the_beliefs_are_the_newest_ones_that_the_space_makes_beliefs_from(
    stated: list[SourceClass | None], least: SourceClass, changed: bool
) -> None:
    """Against a filter of the whole history by the settings at the moment of the question."""
    events = [believed(number, **({"trust": each} if each else {})) for number, each in enumerate(stated)]

    def allowed(each: SourceClass | None) -> bool:
        own = max(CLASSES.index(each or "agent"), CLASSES.index("agent"))
        return own <= CLASSES.index(least)

    async def work() -> None:
        async with Memory.in_memory() as memory:
            if not changed:
                await memory.configure_space(SPACE, trust={"beliefs": least})
            await memory.publish_many(events)
            if changed:
                await memory.configure_space(SPACE, trust={"beliefs": least})
            expected = [f"b-{number}" for number, each in enumerate(stated) if allowed(each)]
            found = [each.event.id for each in (await memory.beliefs(SPACE, AGENT)).beliefs]
            assert found == expected
            graph = [each.event.id for each in (await memory.beliefs.graph(SPACE, AGENT)).beliefs]
            assert graph == expected[-beliefs_limits.SUBJECT_BELIEFS :]

    run(work())


def test_what_a_truncated_log_may_have_superseded_is_not_shown_if_its_author_is_trusted_again() -> None:
    """The log of untrusted reflections has dropped the one that superseded the first belief."""
    others = [believed(number, about="the sacks") for number in range(2, 2 + beliefs_limits.ABOUT_KEPT)]

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(believed(0))
            await memory.configure_space(SPACE, trust={"agents": {AGENT: "import"}})
            await memory.publish_many([believed(1, supersedes="b-0"), *others])
            await memory.configure_space(SPACE, trust={})
            graph = await memory.beliefs.graph(SPACE, AGENT)
            assert [each.event.id for each in graph.beliefs] == [
                each.id for each in others[-beliefs_limits.SUBJECT_BELIEFS :]
            ]

    run(work())
