"""Equal texts: the newer one comes first, in recall and in salience, whatever was said just before each of them."""

import pytest

from recallog import Event, Memory
from support.events import event, run
from support.indexing import indexed

QUESTION = "Who burned the mill?"
ANSWER = "The smith burned the mill."
RELATED = "Who burned the mill, who burned it?"
UNRELATED = ["Bread!", "Flour is dear.", "I saw the river.", "It was dark."]


def spoke(text: str, **fields: object) -> Event:
    return event(payload={"text": text}, **fields)


def conversation(distance: int) -> list[Event]:
    """The answer twice, `distance` turns apart. Only before the older one is a turn that the question is close to."""
    texts = [RELATED, ANSWER, *UNRELATED[: distance - 1], ANSWER, *UNRELATED]
    return [spoke(text, turn=turn) for turn, text in enumerate(texts)]


async def published(memory: Memory, events: list[Event]) -> None:
    await memory.publish_many(events)
    await indexed(memory)


@pytest.mark.parametrize("distance", [1, 2, 3, 4])
def test_of_two_equal_texts_recall_returns_the_newer_one_first_with_the_same_score(
    memory: Memory, distance: int
) -> None:
    events = conversation(distance)

    async def scenario() -> None:
        async with memory:
            await published(memory, events)
            found = await memory.recall("village", "baker", QUESTION, top_k=10)
            older, newer = (each.id for each in events if each.text == ANSWER)
            scores = {hit.event.id: hit.score for hit in found.hits}
            order = list(scores)
            assert order.index(newer) == order.index(older) - 1
            assert scores[newer] == scores[older]
            for hit in found.hits:
                assert sum(hit.parts.values()) == pytest.approx(hit.score)

    run(scenario())


@pytest.mark.parametrize("distance", [1, 2, 3, 4])
def test_of_two_equal_texts_the_newer_one_is_more_salient(memory: Memory, distance: int) -> None:
    events = conversation(distance)

    async def scenario() -> None:
        async with memory:
            await published(memory, events)
            found = await memory.salient("village", "baker", QUESTION, top_k=len(events))
            older, newer = (each for each in found.memories if each.text == ANSWER)
            assert newer.score > older.score
            assert newer.relevance == older.relevance > 0

    run(scenario())


def test_the_newer_of_equal_texts_is_the_only_hit_when_one_is_asked_for(memory: Memory) -> None:
    events = conversation(3)

    async def scenario() -> None:
        async with memory:
            await published(memory, [*events, spoke(ANSWER, turn=20)])
            (hit,) = (await memory.recall("village", "baker", ANSWER, top_k=1)).hits
            assert hit.event.turn == 20

    run(scenario())
