"""Closeness: which memories are weak, by the cosine, by late interaction and by words; it does not depend on scores."""

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.retrieval import closeness
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.closeness import BY_WORDS, WITH_LATE_INTERACTION, WITHOUT_LATE_INTERACTION
from recallog.retrieval.weights import AROUND
from support.events import event, run

WORDS = ("mill", "burn")
PAIRS = ("磨坊", "坊烧", "烧毁")


def candidate(offset: int, **fields: Any) -> Candidate:
    """A candidate far from all others in its session."""
    known = {"id": f"point {offset}", "agent": "baker", "kind": "agent.spoke", "session": "", "ordinal": 100 * offset}
    return Candidate(**{**known, "offset": offset, "turn": 0, "at": 0, "is_question": False, **fields})


def weak(*found: Candidate, searched: Collection[str] = WORDS) -> set[int]:
    return set(closeness.weak(found, found, searched))


def test_a_memory_that_is_less_close_than_its_limit_is_weak() -> None:
    near = candidate(0, semantic=0.5, late_interaction=[0.3, 0.3])
    least = candidate(1, semantic=0.2, late_interaction=[0.1, 0.1])
    far = candidate(2, semantic=0.2, late_interaction=[0.1, 0.09])
    assert sum((0.2, 0.1, 0.1)) >= WITH_LATE_INTERACTION.each > sum((0.2, 0.1, 0.09))
    assert weak(near, least, far) == {2}


def test_all_are_weak_if_not_even_the_closest_reaches_the_limit_of_an_answer() -> None:
    best = candidate(0, semantic=0.3, late_interaction=[0.2, 0.19])
    assert WITH_LATE_INTERACTION.each < 0.69 < WITH_LATE_INTERACTION.best
    assert weak(best, candidate(1, semantic=0.3, late_interaction=[0.1, 0.2])) == {0, 1}
    assert weak(best, candidate(1, semantic=0.3, late_interaction=[0.2, 0.21])) == set()


def test_without_token_vectors_words_take_the_place_of_late_interaction() -> None:
    by_meaning, by_words = candidate(0, semantic=0.51), candidate(1, semantic=0.0, coverage=0.51)
    far = candidate(2, semantic=0.1, coverage=0.09)
    assert WITHOUT_LATE_INTERACTION.each > 0.19
    assert weak(by_meaning, by_words, far) == {2}
    assert weak(candidate(0, semantic=0.25, coverage=0.2)) == {0}


def test_a_long_text_must_be_closer() -> None:
    near = {"semantic": 0.35, "late_interaction": [0.2, 0.2]}
    assert weak(candidate(0, **near, length=600)) == set()
    assert weak(candidate(0, **near, length=4200)) == {0}
    assert weak(candidate(0, **{**near, "semantic": 0.4}, length=4200)) == set()


def test_without_a_cosine_words_alone_decide() -> None:
    assert weak(candidate(0, coverage=BY_WORDS.best)) == set()
    assert weak(candidate(0, coverage=BY_WORDS.best - 0.01)) == {0}
    assert weak(candidate(0, coverage=0.5), candidate(1)) == {1}


def test_a_memory_with_the_exact_strings_of_the_query_is_not_weak() -> None:
    found = [candidate(0, semantic=0.1, late_interaction=[0.1, 0.0], exact=0.5), candidate(1, semantic=0.3)]
    assert weak(*found) == set()
    assert weak(candidate(0, exact=0.5), candidate(1), searched=["=prices.py"]) == {1}
    assert weak(candidate(0, semantic=0.1, exact=0.4)) == {0}


def test_by_words_a_neighbour_of_a_memory_with_a_common_word_is_not_weak() -> None:
    found = [candidate(0, ordinal=10, coverage=0.5)]
    found += [candidate(n, ordinal=10 + n) for n in (AROUND, AROUND + 1)]
    assert weak(*found) == {AROUND + 1}


def test_a_neighbour_counts_even_if_it_is_not_among_the_hits() -> None:
    hit, elsewhere = candidate(1, ordinal=11), candidate(2, coverage=0.5)
    left_out = candidate(0, ordinal=10, coverage=0.5)
    assert closeness.weak([hit, elsewhere], [hit, elsewhere, left_out], WORDS) == frozenset()


def test_a_memory_that_is_not_indexed_yet_is_measured_by_words_beside_indexed_ones() -> None:
    indexed = candidate(0, semantic=0.1, late_interaction=[0.1, 0.1])
    assert weak(indexed, candidate(1, coverage=0.6)) == {0}


def test_only_the_first_memories_are_marked_and_all_count_for_the_closest() -> None:
    hits = [candidate(0, coverage=0.1), candidate(1), candidate(2, coverage=0.9), candidate(3)]
    assert closeness.weak(hits, hits, WORDS, first=2) == {1}
    assert closeness.weak(hits[:2], hits, WORDS, first=1) == {0}


def test_a_query_of_names_and_function_words_makes_nothing_weak() -> None:
    assert weak(candidate(0), candidate(1, semantic=-0.1), searched=()) == set()


def test_pairs_of_characters_need_a_smaller_share_than_words() -> None:
    found = candidate(0, coverage=BY_WORDS.best / closeness.PAIRS_PER_WORD + 0.01)
    assert weak(found, searched=PAIRS) == set()
    assert weak(found, searched=WORDS) == {0}


def test_of_a_question_that_is_not_in_english_the_cosine_of_an_english_model_does_not_count() -> None:
    found = [candidate(0, semantic=0.9, late_interaction=[0.2, 0.1])]
    assert closeness.weak(found, found, WORDS, is_english=False) == {0}
    assert closeness.weak(found, found, WORDS) == set()
    said = [candidate(0, semantic=0.0, late_interaction=[0.2, 0.1], coverage=0.1)]
    assert closeness.weak(said, said, WORDS, is_english=False) == set()


def test_words_count_less_beside_the_cosine_of_a_model_of_many_languages() -> None:
    assert weak(candidate(0, semantic=0.25, coverage=0.3, is_multilingual=True)) == set()
    assert weak(candidate(0, semantic=0.2, coverage=0.3, is_multilingual=True)) == {0}


def test_a_memory_without_a_cosine_is_measured_by_words_beside_one_with_a_cosine() -> None:
    readable, unreadable = candidate(0, semantic=0.4, late_interaction=[0.4]), candidate(1, coverage=BY_WORDS.best)
    assert weak(readable, unreadable) == set()
    assert weak(readable, candidate(1)) == {1}


measures = st.builds(
    dict,
    semantic=st.none() | st.floats(-1, 1),
    late_interaction=st.none() | st.lists(st.floats(0, 0.5), min_size=2, max_size=2),
    coverage=st.floats(0, 1),
)


@given(st.lists(measures, min_size=1, max_size=8), st.integers(0, 7))
def test_a_closer_memory_is_never_weak_where_a_less_close_one_is_not(found: list[dict[str, Any]], which: int) -> None:
    before = [candidate(offset, **fields) for offset, fields in enumerate(found)]
    offset = which % len(found)
    nearer = dict(found[offset], coverage=1.0)
    if nearer["semantic"] is not None:
        nearer["semantic"] = 1.0
    after = [candidate(n, **(nearer if n == offset else fields)) for n, fields in enumerate(found)]
    assert weak(*after) <= weak(*before)


TEXTS = ["The mill burned.", "Nine sacks are still unpaid.", "It was dark."]
FAR = "Which harbour master of Genoa was unpaid?"


async def asked(memory: Memory, question: str, **more: Any) -> tuple[list[str], list[str], str]:
    """The texts of the hits, those of weak hits, and the answer as a prompt has it."""
    view = await memory.recall("village", "baker", question, **more)
    page = await memory.search("village", "baker", question, **more)
    assert [hit.weak for hit in page.hits] == [hit.weak for hit in view.hits]
    assert (page.nothing_close, page.format()) == (view.nothing_close, view.format())
    assert view.nothing_close == all(hit.weak for hit in view.hits)
    return [hit.text for hit in view.hits], [hit.text for hit in view.hits if hit.weak], view.format()


@pytest.fixture
def events() -> list[Event]:
    return [event(payload={"text": text}, session=f"s-{turn}", turn=turn) for turn, text in enumerate(TEXTS)]


def test_prompts_leave_out_weak_hits_and_the_view_has_them(events: list[Event]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)
            assert await asked(memory, FAR) == ([TEXTS[1]], [TEXTS[1]], "")
            found, far, prompt = await asked(memory, "the unpaid sacks")
            assert (found, far) == ([TEXTS[1]], [])
            assert prompt.endswith(TEXTS[1])

    run(work())


def test_whether_a_hit_is_weak_does_not_depend_on_how_many_are_requested(events: list[Event]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)
            for question in (FAR, "the burned mill and nine sacks in the dark"):
                whole = (await memory.recall("village", "baker", question)).hits
                for top_k in range(1, len(whole) + 1):
                    hits = (await memory.recall("village", "baker", question, top_k=top_k)).hits
                    assert hits == whole[:top_k]

    run(work())
