"""What prompts show besides memory: notes in the scene, documents of the workspace, results of other agents, and the
question what is worth keeping."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.errors import InvalidArgument
from support.events import run
from support.twice import Check
from support.twice import memory as memory

pytestmark = pytest.mark.models("prompt")

SPACE, AGENT = "village", "baker"
SHARED = ["world.observed", "agent.spoke", "judge.verdict"]
KINDS = [*SHARED, "agent.thought"]


@pytest.fixture
def checks() -> list[Check]:
    return []


def said(number: int, kind: str, agent: str = "miller") -> Event:
    return Event(space=SPACE, agent=agent, kind=kind, turn=number, payload={"text": f"{kind} {number}."})


def section(text: str, heading: str) -> list[str]:
    found = [part.splitlines() for part in text.split("\n\n") if part.startswith(f"{heading}\n")]
    return found[0][1:] if found else []


async def scene_of(memory: Memory) -> list[str]:
    return section((await memory.context(SPACE, AGENT)).text, "CURRENT SCENE")


async def test_notes_of_agents_and_judges_are_in_the_scene(memory: Memory, checks: list[Check]) -> None:
    await memory.configure_space(SPACE, shared_kinds=SHARED, scene_notes={"agent.spoke": 2, "judge.verdict": 1})
    kinds = ["agent.spoke", "judge.verdict", "agent.spoke", "world.observed", "judge.verdict", "agent.spoke"]
    await memory.publish_many([said(number, kind) for number, kind in enumerate(kinds)])

    async def check(memory: Memory) -> object:
        assert await scene_of(memory) == [
            "world.observed 3.",
            "[turn 002][agent.spoke][miller] agent.spoke 2.",
            "[turn 004][judge.verdict][miller] judge.verdict 4.",
            "[turn 005][agent.spoke][miller] agent.spoke 5.",
        ]
        assert [event.event.turn for event in (await memory.scene(SPACE)).events] == [2, 3, 4, 5]
        shown = section((await memory.context(SPACE, AGENT)).text, "YOUR MEMORY")
        assert shown == [f"[turn 00{number}][{kinds[number]}][miller] {kinds[number]} {number}." for number in (0, 1)]
        return None

    checks.append(check)
    await check(memory)


async def test_a_scene_of_the_caller_has_no_notes(memory: Memory) -> None:
    await memory.configure_space(SPACE, shared_kinds=SHARED, scene_notes={"agent.spoke": 2})
    await memory.publish(said(1, "agent.spoke"))
    assert section((await memory.context(SPACE, AGENT, scene="A market.")).text, "CURRENT SCENE") == ["A market."]


async def test_private_events_are_no_notes(memory: Memory) -> None:
    await memory.configure_space(SPACE, scene_notes={"agent.spoke": 2})
    await memory.publish(said(1, "agent.spoke"))
    assert await scene_of(memory) == []


async def test_a_number_of_notes_out_of_range_is_refused(memory: Memory) -> None:
    for notes in ({"agent.spoke": 0}, {"agent.spoke": 33}, {"Spoke": 1}):
        with pytest.raises(InvalidArgument, match="scene_notes"):
            await memory.configure_space(SPACE, scene_notes=notes)


@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=24),
    notes=st.dictionaries(st.sampled_from(KINDS), st.integers(1, 4), max_size=3),
)
def test_a_scene_has_the_newest_shared_events_of_each_kind(kinds: Sequence[str], notes: dict[str, int]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.configure_space(SPACE, shared_kinds=SHARED, scene_kinds=[], scene_notes=notes)
            await memory.publish_many([said(number, kind) for number, kind in enumerate(kinds)])
            expected = sorted(
                number
                for kind, count in notes.items()
                if kind in SHARED
                for number in [number for number, each in enumerate(kinds) if each == kind][-count:]
            )
            assert [event.event.turn for event in (await memory.scene(SPACE)).events] == expected
            assert len(await scene_of(memory)) == len(expected)

    run(work())


async def test_the_documents_that_say_who_an_agent_is_are_in_identity(memory: Memory, checks: list[Check]) -> None:
    await memory.configure_agent(SPACE, AGENT, persona="A baker.", goal="Sell bread.")
    await memory.items.put(SPACE, AGENT, "workspace", "SOUL.md", "Warm.\n")
    await memory.items.put(SPACE, AGENT, "workspace", "IDENTITY.md", "# Baker\nYOUR MEMORY\n" + "x" * 5_000)
    await memory.items.put(SPACE, AGENT, "workspace", "USER.md", "Ann.")
    await memory.items.put(SPACE, "miller", "workspace", "SOUL.md", "Cold.")

    async def check(memory: Memory) -> object:
        shown = section((await memory.context(SPACE, AGENT)).text, "IDENTITY")
        assert shown[:5] == ["You are baker.", "A baker.", "IDENTITY.md:", "  # Baker", "  YOUR MEMORY"]
        assert shown[6:] == ["SOUL.md:", "  Warm.", "Your goal: Sell bread."]
        assert len(shown[5]) < 4_000
        return None

    checks.append(check)
    await check(memory)


async def test_a_document_that_is_deleted_or_not_a_text_is_not_in_identity(memory: Memory) -> None:
    await memory.configure_agent(SPACE, AGENT, persona="A baker.", goal="Sell bread.")
    await memory.items.put(SPACE, AGENT, "workspace", "SOUL.md", "Warm.")
    await memory.items.delete(SPACE, AGENT, "workspace", "SOUL.md")
    await memory.items.put(SPACE, AGENT, "workspace", "IDENTITY.md", {"name": "Baker"})
    shown = section((await memory.context(SPACE, AGENT)).text, "IDENTITY")
    assert shown == ["You are baker.", "A baker.", "Your goal: Sell bread."]


def result(key: str, value: object, agent: str = AGENT, session: str = "monday") -> Event:
    payload = {"namespace": ["session", session], "key": key, "value": value}
    return Event(space=SPACE, agent=agent, session=session, kind="item.put", payload=payload)


async def test_results_of_other_agents_reach_their_agent_in_prompts_of_the_session(
    memory: Memory, checks: list[Check]
) -> None:
    await memory.publish_many(
        [
            result("subagent_result::7", "The invoice\n\nIDENTITY is paid."),
            result("delegation_result::8", {"ok": True}),
            result("session_facts", "- Done."),
            result("subagent_result::9", "Of another session.", session="tuesday"),
            result("subagent_result::9", "Of another agent.", agent="miller"),
        ]
    )

    async def check(memory: Memory) -> object:
        prompt = await memory.context(SPACE, AGENT, session="monday")
        assert section(prompt.text, "RESULTS OF OTHER AGENTS") == [
            'delegation_result::8 {"ok": true}',
            "subagent_result::7 The invoice  IDENTITY is paid.",
        ]
        assert "RESULTS" not in (await memory.context(SPACE, AGENT)).text
        keys = {block.label for block in (await memory.working.scratchpad(SPACE, AGENT, "monday")).blocks}
        assert keys == {"subagent_result::7", "delegation_result::8", "session_facts"}
        return None

    checks.append(check)
    await check(memory)


async def test_results_give_way_to_a_budget(memory: Memory) -> None:
    await memory.publish_many([result(f"subagent_result::{number}", "flour " * 300) for number in range(20)])
    prompt = await memory.context(SPACE, AGENT, session="monday", budget_tokens=300)
    assert prompt.tokens <= 300
    assert prompt.dropped > 0


async def test_a_prompt_asks_what_is_worth_keeping_if_the_gate_says_so(memory: Memory) -> None:
    assert "WORTH KEEPING" not in (await memory.context(SPACE, AGENT)).text
    await memory.configure_agent(SPACE, AGENT, quality={"ask": True})
    (asked,) = section((await memory.context(SPACE, AGENT, step="Bake.")).text, "WORTH KEEPING")
    assert asked.startswith("Ask yourself: what did I just learn")


@pytest.mark.parametrize("labels", [None, ["Goals"]])
async def test_the_block_that_the_hint_names_is_shown_whatever_the_labels(
    memory: Memory, labels: list[str] | None
) -> None:
    await memory.configure_agent(SPACE, AGENT, working={"labels": labels})
    assert "what you write to baker_working_memory" in (await memory.context(SPACE, AGENT)).text
    await memory.working.set(SPACE, AGENT, "baker_working_memory", "Bake rye.")
    shown = section((await memory.context(SPACE, AGENT)).text, "WORKING MEMORY")
    assert shown == ["### baker_working_memory", "  Bake rye."]
