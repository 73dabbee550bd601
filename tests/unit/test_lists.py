"""Questions for a list: their form, and the order of hits that lie apart."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.retrieval.candidates import Candidate, RankingQuery
from recallog.retrieval.lists import asks_for_list, spread
from recallog.retrieval.ranking import Ranked, rank
from recallog.retrieval.weights import LIST_HITS


@pytest.mark.parametrize(
    "question",
    [
        "What pets does she have?",
        "Which classical musicians does Melanie enjoy?",
        "In what ways is Jon practising?",
        "what kinds of books does Caroline have in her library",
        "What has Melanie painted?",
        "Where has she camped?",
        "Who have written notes to Maria?",
        "What do Jon and Gina have in common?",
        "How do Jon and Gina both like to relax?",
        "我有哪些爱好？",
    ],
)
def test_a_question_for_several_things_is_known_by_its_form(question: str) -> None:
    assert asks_for_list(question)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "When did Melanie paint a sunrise?",
        "What does Jon offer?",
        "What is Caroline's identity?",
        "What was the focus of the meeting about the shoes?",
        "What kind of car does she drive?",
        "What class is she in?",
        "What status does it have?",
        "Has she been there always?",
        "She has two cats.",
        "小宁喜欢星星",
    ],
)
def test_other_questions_and_statements_ask_for_one_thing(question: str) -> None:
    assert not asks_for_list(question)


def turn(ordinal: int, keyword: float, session: str = "first") -> Candidate:
    return Candidate(
        id=f"{session} {ordinal}", offset=ordinal, agent="ann", kind="agent.spoke", session=session, ordinal=ordinal,
        turn=0, at=0, is_question=False, keyword=keyword,
    )  # fmt: skip


def ranked(*candidates: Candidate) -> list[Ranked]:
    return [one for one in rank(candidates, RankingQuery()) if one.score > 0]


def ids(found: list[Ranked]) -> list[str]:
    return [one.candidate.id for one in found]


def test_an_answer_elsewhere_comes_before_the_turns_around_a_better_one() -> None:
    candidates = [turn(1, 4.0), turn(2, 1.6), turn(30, 2.4)]
    assert ids(ranked(*candidates)) == ["first 1", "first 2", "first 30"]
    found = spread(ranked(*candidates))
    assert ids(found) == ["first 1", "first 30", "first 2"]
    assert found[1].score == found[2].score
    assert found[1].parts["list"] > 0
    assert "list" not in found[2].parts


TURNS = st.lists(
    st.tuples(st.sampled_from(["first", "second", "third"]), st.integers(0, 12), st.sampled_from([0.5, 1.0, 2.0, 4.0])),
    min_size=1,
    max_size=36,
    unique_by=lambda each: each[:2],
)


@given(TURNS)
def test_only_the_first_places_change_and_scores_follow_the_order(given_turns: list[tuple[str, int, float]]) -> None:
    candidates = [turn(ordinal, keyword, session) for session, ordinal, keyword in given_turns]
    before, found = ranked(*candidates), spread(ranked(*candidates))
    assert ids(found)[0] == ids(before)[0]
    assert sorted(ids(found)) == sorted(ids(before))
    first = set(ids(found)[:LIST_HITS])
    assert ids(found)[LIST_HITS:] == [id_ for id_ in ids(before) if id_ not in first]
    own = {one.candidate.id: one.score for one in before}
    for one, following in zip(found, [*found[1:], None], strict=True):
        # The better of its own score and that of the next one.
        assert one.score == max(own[one.candidate.id], following.score if following else -math.inf)
        assert one.score == pytest.approx(sum(one.parts.values()))


@given(TURNS)
def test_nothing_changes_where_no_turns_are_adjacent(given_turns: list[tuple[str, int, float]]) -> None:
    candidates = [turn(10 * ordinal, keyword, session) for session, ordinal, keyword in given_turns]
    assert ids(spread(ranked(*candidates))) == ids(ranked(*candidates))


def test_recall_spreads_the_hits_of_a_question_for_a_list_only() -> None:
    beside = "Nice at home."
    elsewhere = (
        "Of all my pets the old grey parrot with one broken wing, a gift of our neighbour, lives longest at home."
    )
    said = (
        ("ann", "The pets I keep at home: a tabby cat and a dog."),
        ("bob", beside),
        *(("bob", f"Number {number} is next.") for number in range(8)),
        ("ann", elsewhere),
    )

    async def asked(question: str) -> list[str]:
        async with Memory.in_memory() as memory:
            for number, (agent, text) in enumerate(said, 1):
                about = {"space": "house", "session": "talk", "turn": number, "audience": ["ann", "bob"]}
                await memory.publish(Event(agent=agent, kind="agent.spoke", payload={"text": text}, **about))
            view = await memory.recall("house", "bob", question)
            return [hit.event.text for hit in view.hits[1:3]]

    assert asyncio.run(asked("Tell me: pets does she keep at home?")) == [beside, elsewhere]
    assert asyncio.run(asked("Which pets does she keep at home?")) == [elsewhere, beside]
