"""What prompts leave out: erased events, and messages that the caller passes beside the prompt."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Event, InvalidArgument, Memory
from support.events import run

pytestmark = pytest.mark.models("prompt")

SPACE, AGENT = "home", "helper"


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def test_an_erased_event_is_in_no_section_and_takes_no_place_in_the_window(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.configure_agent(SPACE, AGENT, window=2)
            texts = ["Plums are sweet.", "Rye is dear.", "Bread is ready."]
            for number, text in enumerate(texts):
                thought = {"kind": "agent.thought", "id": f"t-{number}", "payload": {"text": text}}
                await memory.publish({"space": SPACE, "agent": AGENT, **thought})
            for kind in ("agent.thought", "user.injected", "world.observed"):
                about = Event(space=SPACE, agent="ann", kind=kind, payload={"text": "I hide plums."}, audience=[AGENT])
                await memory.publish(about.model_copy(update={"id": kind, "subject": "ann"}))
            assert (await memory.erase(SPACE, subject="ann")).erased == 3
            prompt = await memory.context(SPACE, AGENT)
            assert "erased" not in prompt.text
            assert [text for text in texts if text in prompt.text] == texts[1:]
            verdict = await memory.explain(SPACE, AGENT, "user.injected")
            assert (verdict.verdict, verdict.sections) == ("erased", ())
            shown = [each.text for each in (await memory.episodic(SPACE, AGENT, window=5)).memories]
            assert shown == [*texts[1:], "[erased]", "[erased]", "[erased]"]

    run(work())


def test_a_person_who_says_that_something_was_erased_is_not_left_out() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.conversation.add(SPACE, AGENT, "today", said("user", "[erased]"))
            assert "[erased]" in (await memory.context(SPACE, AGENT)).text

    run(work())


def test_no_evidence_of_a_due_reflection_is_erased(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.configure_agent(SPACE, AGENT, reflection_threshold=2)
            for number, subject in enumerate(["ann", None, None]):
                seen = {"agent": AGENT, "kind": "agent.thought", "payload": {"text": f"Sack {number} is missing."}}
                await memory.publish({"space": SPACE, "id": f"e-{number}", "subject": subject, **seen})
            await memory.erase(SPACE, subject="ann")
            prompt = await memory.context(SPACE, AGENT)
            assert prompt.reflection.due
            evidence = prompt.text[prompt.sections[-1].start :]
            assert ["e-0" in evidence, "e-1" in evidence, "erased" in prompt.text] == [False, True, False]

    run(work())


def test_beside_its_messages_a_prompt_has_what_other_sessions_said() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.configure_agent(SPACE, AGENT, auto_recall=True)
            monday = [said("user", "My sister lives in Oslo."), said("assistant", "Noted.")]
            await memory.conversation.add(SPACE, AGENT, "monday", monday)
            friday = [said("user", "Good morning!"), said("assistant", "Hello."), said("user", "Where is my sister?")]
            await memory.conversation.add(SPACE, AGENT, "friday", friday)
            alone = await memory.context(SPACE, AGENT, session="friday")
            beside = await memory.context(SPACE, AGENT, session="friday", beside_messages=True)
            assert all(message["content"] in alone.text for message in friday)
            assert not any(message["content"] in beside.text for message in friday)
            assert all(message["content"] in beside.text for message in monday)
            assert "quiet" not in (await memory.context(SPACE, AGENT, session="monday", beside_messages=True)).text

    run(work())


async def test_events_of_the_session_that_are_not_among_the_messages_of_the_agent_are_shown() -> None:
    """They were once left out of the prompt too, so that the model got them nowhere."""
    async with Memory.in_memory() as memory:
        await memory.configure_space(SPACE, shared_kinds=["tool.used", "user.injected", "agent.spoke"])
        others = {"tool": "scale", "arguments": {}, "result": "Nine sacks."}
        told = Event(space=SPACE, agent=AGENT, session="friday", kind="user.injected", payload={"text": "Ask Ann."})
        await memory.publish(told.model_copy(update={"audience": ["miller"]}))
        await memory.publish(
            {"space": SPACE, "agent": "miller", "session": "friday", "kind": "tool.used", "payload": others}
        )
        await memory.publish(told.model_copy(update={"id": "rye", "payload": {"text": "Rye is dear."}}))
        await memory.conversation.add(SPACE, AGENT, "friday", said("user", "Good morning!"))
        messages = (await memory.conversation.messages(SPACE, AGENT, "friday")).messages
        assert [message["content"] for message in messages] == ["Rye is dear.", "Good morning!"]
        prompt = (await memory.context(SPACE, AGENT, session="friday", beside_messages=True)).text
        assert [text for text in ("Nine sacks.", "Ask Ann.") if text not in prompt] == []
        assert [text for text in ("Rye is dear.", "Good morning!") if text in prompt] == []


async def test_a_prompt_beside_messages_needs_the_session_that_has_them() -> None:
    # It once did nothing. An agent may have several conversations at once, so that the newest one may be another.
    async with Memory.in_memory() as memory:
        with pytest.raises(InvalidArgument, match="session: name one, for beside_messages") as raised:
            await memory.context(SPACE, AGENT, beside_messages=True)
        assert raised.value.path == "session"


def test_a_prompt_does_not_repeat_messages_that_are_older_than_the_memories_that_it_reads() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            messages = [said("user", "Order nine sacks."), said("assistant", "I order nine sacks.")]
            await memory.conversation.add(SPACE, AGENT, "friday", messages)
            noise = {"space": SPACE, "agent": "miller", "kind": "world.observed"}
            await memory.publish_many([{**noise, "payload": {"text": f"Loaf {number}"}} for number in range(150)])
            assert "nine sacks" in (await memory.context(SPACE, AGENT)).text
            assert "nine sacks" not in (await memory.context(SPACE, AGENT, session="friday", beside_messages=True)).text

    run(work())


def test_messages_that_were_compacted_are_recalled_again() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.configure_agent(SPACE, AGENT, window=1)
            texts = ["My sister lives in Oslo.", *(f"Loaf {number} is in the oven." for number in range(20))]
            await memory.conversation.add(SPACE, AGENT, "today", [said("user", text) for text in texts])
            asked = {"query": "Where does my sister live?", "session": "today", "beside_messages": True}
            assert "Oslo" not in (await memory.context(SPACE, AGENT, **asked)).text
            await memory.conversation.compact(SPACE, AGENT, "today")
            assert "My sister lives in Oslo." in (await memory.context(SPACE, AGENT, **asked)).text

    run(work())


TURNS = st.lists(
    st.tuples(st.sampled_from(["one", "two"]), st.sampled_from(["user", "assistant"])), min_size=1, max_size=12
)


@given(turns=TURNS, window=st.integers(1, 6), salient=st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_prompt_and_its_messages_never_say_the_same(turns: list[tuple[str, str]], window: int, salient: bool) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.configure_agent(SPACE, AGENT, window=window, use_salience=salient, salience_top_k=window)
            for number, (session, role) in enumerate(turns):
                message = said(role, f"Loaf {number + 500} is ready.")
                await memory.conversation.add(SPACE, AGENT, session, message, continues=True)
            prompt = (await memory.context(SPACE, AGENT, query="loaf", session="one", beside_messages=True)).text
            for number, (session, _) in enumerate(turns):
                assert session == "two" or f"{number + 500}" not in prompt
            others = [f"{number + 500}" for number, (session, _) in enumerate(turns) if session == "two"]
            assert sum(other in prompt for other in others) >= min(window, len(others))

    asyncio.run(work())
