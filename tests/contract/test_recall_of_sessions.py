"""The texts that name or close a session are not hits; they stay in the timeline."""

from recallog import Event, Memory
from support.events import event, run
from support.indexing import indexed

TITLE = "Planning the harvest festival"


def session(number: int) -> list[Event]:
    """A session whose title has all words of the question, and one turn that answers it."""
    name, turn = f"session-{number}", 10 * number
    return [
        event(kind="session.started", session=name, turn=turn, payload={"title": TITLE}),
        event(session=name, turn=turn + 1, payload={"text": f"The festival is on day {number} of the harvest."}),
        event(kind="session.ended", session=name, turn=turn + 2, payload={"outcome": "harvest festival planned"}),
    ]


async def published(memory: Memory) -> None:
    await memory.publish_many([each for number in range(4) for each in session(number)])
    await indexed(memory)


def test_titles_and_outcomes_of_sessions_are_no_hits(memory: Memory) -> None:
    async def scenario() -> None:
        async with memory:
            await published(memory)
            found = await memory.recall("village", "baker", "planning the harvest festival", top_k=20)
            assert [hit.event.kind for hit in found.hits] == ["agent.spoke"] * 4
            previews = await memory.search("village", "baker", "planning the harvest festival", limit=20)
            assert {hit.kind for hit in previews.hits} == {"agent.spoke"}

    run(scenario())


def test_titles_of_sessions_stay_in_the_memory_of_their_agents(memory: Memory) -> None:
    async def scenario() -> None:
        async with memory:
            await published(memory)
            page = await memory.timeline("village", "baker", limit=20)
            assert sum(each.text == TITLE for each in page.items) == 4

    run(scenario())
