"""Automatic recall: what a prompt recalls for the newest messages of the user."""

import pytest

from recallog import Event, Memory
from recallog.models.prompt import recalled
from support.events import event, run
from support.twice import once, twice

pytestmark = pytest.mark.models("prompt")

SPACE, AGENT = "home", "helper"
CHAT = (SPACE, AGENT, "today")


def configured(*, auto_recall: bool = True) -> Event:
    payload = {"auto_recall": auto_recall, "window": 1}
    return event("agent.configured", space=SPACE, agent=AGENT, payload=payload)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def recalled_lines(prompt: str) -> list[str] | None:
    """The lines of the section RECALLED; None if there is none."""
    sections = [section.splitlines() for section in prompt.split("\n\n")]
    return next((lines[1:] for lines in sections if lines[0] == "RECALLED"), None)


async def lines_of(memory: Memory, session: str | None = None) -> list[str] | None:
    return recalled_lines((await memory.context(SPACE, AGENT, session=session)).text)


def test_the_query_has_the_last_5_messages_with_200_characters_each_and_500_in_all() -> None:
    texts = [f"{number}" * 300 for number in range(1, 8)]
    query = recalled.query_of(texts)
    assert query == "\n".join(["5" * 98, "6" * 200, "7" * 200])
    assert len(query) == 500
    assert recalled.query_of([f"message {number}" for number in range(1, 8)]).split("\n") == [
        f"message {number}" for number in range(3, 8)
    ]
    assert recalled.query_of([" ", ""]) == recalled.query_of([]) == ""


@pytest.mark.parametrize("made", [once, twice], ids=["once", "delivered twice"])
def test_the_newest_messages_of_the_user_find_what_was_said_in_other_sessions_and_what_was_kept(made: object) -> None:
    async def work() -> None:
        async with made() as memory:  # type: ignore[operator]
            await memory.publish(configured())
            await memory.conversation.add(
                SPACE, AGENT, "earlier", [user("My sister Ann lives in Oslo."), assistant("Ok.")]
            )
            await memory.long_term.retain(SPACE, AGENT, "Ann in Oslo collects stamps.")
            await memory.conversation.add(*CHAT, [user("Hello!"), user("Well?"), user("Where in Oslo is Ann?")])
            for again in range(2):
                lines = await lines_of(memory)
                assert lines is not None
                assert sorted(lines) == ["- Ann in Oslo collects stamps.", "- My sister Ann lives in Oslo."]
                if not again:
                    assert (await memory.admin.rebuild("views")).ok
            # In the session of which the question is asked.
            assert await lines_of(memory, "earlier") == ["- Ann in Oslo collects stamps."]
            await memory.publish(configured(auto_recall=False))
            assert "- " not in "".join(await lines_of(memory) or [])

    run(work())


@pytest.mark.models("workspace")
def test_documents_answer_too() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            await memory.items.put(SPACE, AGENT, "workspace", "USER.md", "# Ann\n\nAnn has a cottage in Bergen.")
            await memory.conversation.add(*CHAT, [user("What do I know of the cottage in Bergen?")])
            lines = await lines_of(memory)
            assert lines is not None
            assert "Ann has a cottage in Bergen." in lines[0]

    run(work())


@pytest.mark.models("workspace")
def test_a_document_answers_a_message_that_names_an_agent() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            await memory.items.put(SPACE, AGENT, "workspace", "notes.md", "- User asked: an oven for the helper.")
            await memory.conversation.add(*CHAT, [user("An oven?"), assistant("Yes."), user("Oven of user or helper?")])
            assert await lines_of(memory) == ["- notes.md - User asked: an oven for the helper."]

    run(work())


def test_what_the_conversation_has_itself_is_not_recalled_until_it_was_compacted() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            await memory.conversation.add(*CHAT, [user("The parrot Kiko eats walnuts."), assistant("Noted.")])
            for number in range(18):
                await memory.conversation.add(*CHAT, [user(f"Tell me about number {number}.")])
            await memory.conversation.add(*CHAT, [user("What does the parrot Kiko eat?")])
            assert "walnuts" not in "".join(await lines_of(memory) or [])
            await memory.react()
            assert "- The parrot Kiko eats walnuts." in (await lines_of(memory) or [])

    run(work())


def test_messages_that_were_taken_out_are_not_asked_with() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            await memory.conversation.add(SPACE, AGENT, "earlier", [user("The ferry to Bergen leaves at nine.")])
            morning = [user("Good morning."), assistant("Hello."), user("How are you?"), user("Well, well.")]
            await memory.conversation.add(*CHAT, [*morning, user("When does the ferry to Bergen leave?")])
            assert await lines_of(memory) == ["- The ferry to Bergen leaves at nine."]
            await memory.conversation.pop(*CHAT)
            assert await lines_of(memory) is None

    run(work())


def test_the_section_has_at_most_5_snippets_of_500_characters_together() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            for number in range(9):
                await memory.long_term.retain(SPACE, AGENT, f"The walnut tree number {number}.")
            await memory.conversation.add(*CHAT, [user("Which walnut tree?")])
            assert len(await lines_of(memory) or []) == 5
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            for number in range(9):
                await memory.long_term.retain(SPACE, AGENT, f"The walnut tree number {number} is {'very ' * 60}tall.")
            await memory.conversation.add(*CHAT, [user("Which walnut tree?")])
            lines = await lines_of(memory) or []
            assert len(lines) == 2
            assert all(len(line.removeprefix("- ")) <= 200 for line in lines)
            assert sum(len(line.removeprefix("- ")) for line in lines) <= 500

    run(work())


def test_no_hits_no_messages_and_no_session_leave_the_section_out() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            assert await lines_of(memory) is None
            await memory.long_term.retain(SPACE, AGENT, "Ann collects stamps.")
            await memory.publish(event("user.injected", space=SPACE, agent="user", payload={"text": "Ann's stamps?"}))
            assert await lines_of(memory) is None
            await memory.conversation.add(*CHAT, [assistant("What about Ann's stamps?")])
            assert await lines_of(memory) is None
            await memory.conversation.add(*CHAT, [user("Zebra!")])
            assert await lines_of(memory) is None

    run(work())


@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        ('The book "Dune" lies upstairs.', 'Where is the book "Dune'),
        ("Ann writes C++ at work.", "Does Ann write C++?"),
        ("安娜住在北京。", "安娜住在哪里？"),
        ("The file is at src/main.py:12.", "what was src/main.py:12? (AND OR NOT *)"),
    ],
)
def test_no_character_of_a_message_raises_or_hides_what_fits(kept: str, asked: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            await memory.long_term.retain(SPACE, AGENT, kept)
            await memory.conversation.add(*CHAT, [user(asked)])
            assert await lines_of(memory) == [f"- {kept}"]

    run(work())


def test_the_past_is_asked_with_the_messages_of_its_time() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(configured())
            await memory.long_term.retain(SPACE, AGENT, "Ann collects stamps.")
            then = (await memory.conversation.add(*CHAT, [user("What does Ann collect?")])).position
            await memory.conversation.add(*CHAT, [user("Zebra!") for _ in range(9)], continues=True)
            assert await lines_of(memory) is None
            prompt = await memory.context(SPACE, AGENT, as_of=then)
            assert recalled_lines(prompt.text) == ["- Ann collects stamps."]

    run(work())
