"""Ranking of candidates: each term by an example, and invariants of the whole by properties."""

import math
import random
from collections.abc import Mapping
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog.retrieval import weights
from recallog.retrieval.candidates import Candidate, RankingQuery
from recallog.retrieval.channels import (
    DEFAULT_CHANNELS,
    KEYWORD,
    LATE_INTERACTION,
    RANKED,
    RRF,
    SALIENCE,
    SEMANTIC,
    STRUCTURE,
    TEMPORAL,
    Fusion,
)
from recallog.retrieval.ranking import Ranked, rank

DAY = 86_400 * 1_000_000
SCORED = {*RANKED} - {STRUCTURE, TEMPORAL, SALIENCE}


def candidate(offset: int, **fields: Any) -> Candidate:
    """A candidate at an offset; by default far from all others in its session."""
    known = {"id": f"point {offset}", "agent": "baker", "kind": "agent.spoke", "session": "", "ordinal": 100 * offset}
    return Candidate(**{**known, "offset": offset, "turn": 0, "at": 0, "is_question": False, **fields})


def turns(*keywords: float, **fields: Any) -> list[Candidate]:
    """Candidates on consecutive ordinals of one session."""
    return [candidate(ordinal, ordinal=ordinal, keyword=worth, **fields) for ordinal, worth in enumerate(keywords)]


def scores(candidates: list[Candidate], **query: Any) -> list[float]:
    """The scores by offset."""
    ranked = sorted(rank(candidates, RankingQuery(**query)), key=lambda one: one.candidate.offset)
    return [one.score for one in ranked]


def parts(candidates: list[Candidate], offset: int, **query: Any) -> Mapping[str, float]:
    (found,) = [one for one in rank(candidates, RankingQuery(**query)) if one.candidate.offset == offset]
    return found.parts


def offsets(ranked: list[Ranked]) -> list[int]:
    return [one.candidate.offset for one in ranked]


# Channels and their weights.


def test_each_channel_has_its_configured_weight() -> None:
    one = candidate(0, keyword=2.0, semantic=0.6, late_interaction=[0.3, 0.2])
    late_interaction, semantic, words = (
        weights.WITH_LATE_INTERACTION,
        weights.WITHOUT_LATE_INTERACTION,
        weights.BY_WORDS,
    )
    assert parts([one], 0, channels=SCORED, idf={"mill": 2.0}) == {
        KEYWORD: pytest.approx(late_interaction.keyword),
        SEMANTIC: pytest.approx(late_interaction.semantic * 0.6),
        LATE_INTERACTION: pytest.approx(late_interaction.late_interaction * 0.5),
    }
    assert parts([one], 0, channels={KEYWORD, SEMANTIC}, idf={"mill": 2.0}) == {
        KEYWORD: pytest.approx(semantic.keyword),
        SEMANTIC: pytest.approx(semantic.semantic * 0.6),
    }
    assert parts([one], 0, channels={KEYWORD}, idf={"mill": 2.0}) == {KEYWORD: pytest.approx(words.keyword)}


def test_keywords_weigh_more_when_fewer_channels_are_available() -> None:
    assert weights.WITH_LATE_INTERACTION.keyword < weights.WITHOUT_LATE_INTERACTION.keyword < weights.BY_WORDS.keyword


def test_a_channel_without_any_value_is_left_out() -> None:
    assert parts([candidate(0, keyword=1.0)], 0, channels=SCORED, idf={"mill": 1.0}) == {
        KEYWORD: weights.BY_WORDS.keyword
    }
    assert LATE_INTERACTION not in parts([candidate(0, semantic=0.5)], 0)


def test_a_channel_with_a_value_for_one_candidate_weighs_for_all() -> None:
    """A candidate known only to the views has no vector, and is compared with those of the index."""
    indexed, newer = candidate(0, keyword=1.0, semantic=0.5), candidate(1, keyword=1.0)
    found = parts([indexed, newer], 1, channels={KEYWORD, SEMANTIC}, idf={"mill": 1.0})
    assert found == {KEYWORD: weights.WITHOUT_LATE_INTERACTION.keyword, SEMANTIC: 0.0}


def test_keywords_are_scaled_between_the_best_text_and_the_whole_query() -> None:
    """The whole query is worth 4 and the best text 1: the scale is their geometric mean."""
    found = scores([candidate(0, keyword=0.5), candidate(1, keyword=1.0)], channels={KEYWORD}, idf={"a": 1.0, "b": 3.0})
    assert found == pytest.approx([weights.BY_WORDS.keyword * 0.25, weights.BY_WORDS.keyword * 0.5])


def test_no_common_term_with_the_query_scores_zero() -> None:
    assert parts([candidate(0)], 0, channels={KEYWORD}, idf={"a": 1.0}) == {KEYWORD: 0.0}
    assert parts([candidate(0)], 0, channels={KEYWORD}) == {KEYWORD: 0.0}


def test_dissimilarity_to_the_query_does_not_lower_the_score() -> None:
    assert parts([candidate(0, semantic=-0.4)], 0, channels={SEMANTIC}) == {SEMANTIC: 0.0}


def test_age_is_measured_from_the_given_time_and_halves_in_a_week() -> None:
    week = [candidate(0, at=0), candidate(1, at=7 * DAY), candidate(2, at=9 * DAY)]
    assert scores(week, channels={TEMPORAL}, now=7 * DAY) == pytest.approx([0.15, 0.3, 0.3])


def test_salience_is_recency_and_importance_without_relevance() -> None:
    one = candidate(0, importance=0.7, turn=5)
    expected = 0.3 * (0.4 * math.exp(-0.1 * 3) + 0.3 * 0.7) / 0.7
    assert parts([one], 0, channels={SALIENCE}, turn=8) == {SALIENCE: pytest.approx(expected)}


def test_ranking_no_candidates_gives_none() -> None:
    for fusion in get_args(Fusion):
        assert rank([], RankingQuery(fusion=fusion, channels=RANKED, sessions={"a": 1.0})) == []


# Neighbours. Without an index: .3 of a neighbour, times .4 with each further step, over two steps.


def test_a_good_turn_raises_its_neighbours_less_with_each_step() -> None:
    near, own = weights.BY_WORDS.neighbour, weights.BY_WORDS.keyword
    far = near * weights.BY_WORDS.decay
    found = scores(turns(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0), idf={"mill": 1.0})
    assert found == pytest.approx([0.0, own * far, own * near, own, own * near, own * far, 0.0])


def test_only_the_better_of_two_neighbours_at_one_distance_counts() -> None:
    found = turns(1.0, 0.0, 0.5)
    best = weights.BY_WORDS.keyword
    assert parts(found, 1, idf={"mill": 1.0})["neighbours"] == pytest.approx(weights.BY_WORDS.neighbour * best)


def test_with_vectors_only_a_neighbour_above_the_floor_counts() -> None:
    used = weights.WITHOUT_LATE_INTERACTION
    found = [
        candidate(n, ordinal=n, semantic=like) for n, like in enumerate([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.29, 0.0])
    ]
    stands_out = used.neighbour * used.semantic * (1 - used.floor)
    assert parts(found, 0)["neighbours"] == parts(found, 2)["neighbours"] == pytest.approx(stands_out)
    assert parts(found, 8)["neighbours"] == 0.0


def test_neighbours_contribute_matches_of_the_query_tokens_that_a_turn_lacks() -> None:
    first, second = (
        candidate(0, ordinal=0, late_interaction=[0.5, 0.0]),
        candidate(1, ordinal=1, late_interaction=[0.0, 0.4]),
    )
    far = candidate(2, ordinal=2 + weights.AROUND, late_interaction=[0.1, 0.1])
    both = weights.WITH_LATE_INTERACTION.around * (0.5 + 0.4)
    assert parts([first, second, far], 0)["around"] == parts([first, second, far], 1)["around"] == pytest.approx(both)
    assert parts([first, second, far], 2)["around"] == pytest.approx(weights.WITH_LATE_INTERACTION.around * 0.2)


def test_another_session_is_no_neighbour() -> None:
    apart = [candidate(0, ordinal=0, keyword=1.0, session="a"), candidate(1, ordinal=1, session="b")]
    assert parts(apart, 1)["neighbours"] == 0.0


def test_neighbours_are_adjacent_in_the_session_and_not_in_the_ledger() -> None:
    apart = [candidate(0, ordinal=7, keyword=1.0, session="a"), candidate(900, ordinal=8, session="a")]
    assert parts(apart, 900)["neighbours"] > 0


def test_an_answer_inherits_from_the_question_before_it_and_the_question_counts_less() -> None:
    query, answer = candidate(0, ordinal=0, keyword=1.0, is_question=True), candidate(1, ordinal=1)
    worth = weights.BY_WORDS.keyword
    assert parts([query, answer], 1, idf={"mill": 1.0}) == {
        KEYWORD: 0.0,
        "neighbours": pytest.approx(weights.BY_WORDS.neighbour * worth),
        "answer": pytest.approx(weights.BY_WORDS.answer * worth),
    }
    assert parts([query, answer], 0, idf={"mill": 1.0}) == {
        KEYWORD: pytest.approx(worth),
        "neighbours": 0.0,
        "question": -weights.BY_WORDS.question,
    }


def test_structure_that_is_not_requested_is_left_out() -> None:
    found = turns(1.0, 0.0, is_question=True)
    assert parts(found, 1, channels={KEYWORD}, authors={"baker"}, sessions={"": 1.0}) == {KEYWORD: 0.0}


# Author and session.


def test_a_query_that_names_an_author_prefers_events_of_that_author() -> None:
    found = [candidate(0, agent="miller"), candidate(1, agent="baker")]
    assert parts(found, 0, authors={"miller"})["author"] == weights.BY_WORDS.author
    assert "author" not in parts(found, 1, authors={"miller"})


def test_without_an_index_a_matching_session_raises_all_its_turns() -> None:
    found = [candidate(n, session=name) for n, name in enumerate(["much", "some", "nothing"])]
    most = weights.BY_WORDS.session
    assert scores(found, sessions={"much": 5.0, "some": 2.5, "elsewhere": 1.0}) == pytest.approx([most, most / 2, 0.0])


# Reciprocal ranks.


def test_ranks_are_fused_as_in_the_worked_example_of_the_memory_model() -> None:
    """§3.5: sem [a, b, c], kw [b, a], ent [c], temporal [c, b, a]; late interaction is used for the entities here."""
    a = candidate(0, semantic=0.9, keyword=1.0, at=0)
    b = candidate(1, semantic=0.8, keyword=2.0, at=1 * DAY)
    c = candidate(2, semantic=0.7, late_interaction=[0.5], at=2 * DAY)
    found = rank(
        [a, b, c], RankingQuery(fusion=RRF, channels={SEMANTIC, KEYWORD, LATE_INTERACTION, TEMPORAL}, now=2 * DAY)
    )
    assert offsets(found) == [2, 1, 0]
    assert [one.score for one in found] == pytest.approx([0.048660, 0.048652, 0.048395], abs=5e-7)
    assert dict(found[0].parts) == {SEMANTIC: 1 / 63, LATE_INTERACTION: 1 / 61, TEMPORAL: 1 / 61}


def test_a_good_rank_in_two_channels_is_better_than_the_first_rank_in_one() -> None:
    both, first = candidate(0, semantic=0.5, keyword=1.0), candidate(1, semantic=0.9)
    assert offsets(rank([both, first], RankingQuery(fusion=RRF, channels={SEMANTIC, KEYWORD}))) == [0, 1]


def test_a_candidate_without_a_value_in_a_channel_has_no_rank_in_it() -> None:
    found = [candidate(0, keyword=1.0), candidate(1)]
    assert parts(found, 1, fusion=RRF, channels={KEYWORD}) == {}


def test_structure_is_scaled_to_the_size_of_reciprocal_ranks() -> None:
    found = [candidate(0, keyword=1.0), candidate(1, agent="miller")]
    assert parts(found, 1, fusion=RRF, authors={"miller"})["author"] == pytest.approx(weights.BY_WORDS.author / 61)
    assert parts(found, 0, fusion=RRF, sessions={"": 2.0})["session"] == pytest.approx(weights.BY_WORDS.session / 61)


# Properties.


def test_the_newer_of_two_equal_candidates_comes_first() -> None:
    alike = [candidate(offset, keyword=1.0, semantic=0.5) for offset in (3, 1, 2)]
    assert offsets(rank(alike, RankingQuery())) == [3, 2, 1]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_candidates_does_not_change_the_ranking(seed: int) -> None:
    found = turns(0.5, 1.0, 0.5, 0.0, 1.0, is_question=True, semantic=0.5, late_interaction=[0.1])
    query = RankingQuery(authors={"baker"}, sessions={"": 1.0})
    expected = [(one.candidate, one.score, one.parts) for one in rank(found, query)]
    random.Random(seed).shuffle(found)
    assert [(one.candidate, one.score, one.parts) for one in rank(found, query)] == expected


numbers = st.none() | st.floats(-1, 1)
some_candidates = st.lists(
    st.builds(
        candidate,
        st.integers(0, 10_000),
        agent=st.sampled_from(["baker", "miller"]),
        kind=st.sampled_from(["agent.spoke", "shop.opened"]),
        session=st.sampled_from(["", "a"]),
        ordinal=st.integers(0, 12),
        turn=st.integers(0, 20),
        at=st.integers(0, 30 * DAY),
        is_question=st.booleans(),
        semantic=numbers,
        late_interaction=st.none() | st.lists(st.floats(0, 1), min_size=2, max_size=2),
        keyword=st.floats(0, 20),
    ),
    max_size=12,
    unique_by=(lambda each: each.offset, lambda each: (each.session, each.ordinal)),
)
some_questions = st.builds(
    RankingQuery,
    authors=st.sets(st.sampled_from(["baker", "miller", "nobody"])),
    sessions=st.dictionaries(st.sampled_from(["", "a", "b"]), st.floats(0, 10)),
    idf=st.dictionaries(st.sampled_from(["mill", "bread"]), st.floats(0.01, 8)),
    channels=st.sets(st.sampled_from(sorted(RANKED))),
    fusion=st.sampled_from(get_args(Fusion)),
    now=st.integers(0, 30 * DAY),
    turn=st.integers(0, 20),
)


@given(some_candidates, some_questions)
def test_a_score_is_the_sum_of_its_parts_and_the_best_comes_first(
    candidates: list[Candidate], query: RankingQuery
) -> None:
    ranked = rank(candidates, query)
    assert sorted(offsets(ranked)) == sorted(each.offset for each in candidates)
    for one in ranked:
        assert one.score == pytest.approx(sum(one.parts.values()), rel=1e-12)
        assert math.isfinite(one.score)
        assert all(part >= 0 for name, part in one.parts.items() if name != "question")
    assert ranked == sorted(ranked, key=lambda one: (-one.score, -one.candidate.offset))


@given(some_candidates, some_questions)
def test_only_the_requested_channels_count(candidates: list[Candidate], query: RankingQuery) -> None:
    structure = (
        {"neighbours", "around", "answer", "question", "author", "session"} if STRUCTURE in query.channels else set()
    )
    for one in rank(candidates, query):
        assert one.parts.keys() <= set(query.channels) | structure
        assert STRUCTURE not in one.parts
        if "author" in one.parts:
            assert one.candidate.agent in query.authors


def test_the_default_is_all_but_age_and_salience() -> None:
    assert {*RANKED} - {TEMPORAL, SALIENCE} == DEFAULT_CHANNELS


def test_late_interaction_does_not_dominate_reciprocal_ranks() -> None:
    def one(offset: int, late_interaction: float, semantic: float, keyword: float) -> Candidate:
        return Candidate(
            "", offset, "a", "agent.spoke", "", offset * 100, 0, 0, False, semantic, [late_interaction], keyword
        )

    best_twice, best_once = one(0, 0.4, 0.9, 2.0), one(1, 0.9, 0.1, 1.0)
    assert rank([best_twice, best_once], RankingQuery(fusion=RRF, idf={"mill": 1.0}))[0].candidate is best_twice


def test_a_question_that_shares_a_word_with_the_query_is_a_hit_even_if_weak() -> None:
    def one(offset: int, keyword: float, is_question: bool) -> Candidate:
        return Candidate("", offset, "a", "agent.spoke", "", offset * 100, 0, 0, is_question, None, None, keyword)

    weak = rank(
        [one(0, 0.4, True), one(1, 9.0, False)], RankingQuery(idf={"mill": 5.0, "the common word": 0.2, "c": 5.0})
    )[1]
    assert weak.score > 0


# Long texts.


def test_a_long_text_ranks_below_a_short_one_that_matches_as_well() -> None:
    long, short = candidate(0, keyword=2.0, length=3000), candidate(1, keyword=2.0, length=300)
    assert offsets(rank([long, short], RankingQuery(idf={"mill": 2.0}))) == [1, 0]
    assert parts([long], 0, channels={KEYWORD}, idf={"mill": 2.0}) == {
        KEYWORD: pytest.approx(weights.BY_WORDS.keyword * 5**-weights.LONG_TEXT_DISCOUNT)
    }


def test_texts_of_one_passage_have_the_same_scores_whatever_their_length() -> None:
    assert scores([candidate(0, keyword=2.0, length=600)]) == scores([candidate(0, keyword=2.0)])


def test_a_long_text_takes_less_from_the_turns_around_it() -> None:
    def added(length: int) -> Mapping[str, float]:
        question = candidate(0, ordinal=0, keyword=2.0, semantic=0.5, late_interaction=[0.5, 0.1], is_question=True)
        own = candidate(1, ordinal=1, semantic=0.0, late_interaction=[0.0, 0.0], length=length)
        return parts([question, own], 1, idf={"mill": 2.0})

    short, long = added(600), added(2400)
    for name in ("neighbours", "around", "answer"):
        assert long[name] == pytest.approx(short[name] / 4)
        assert short[name] > 0


def test_a_long_text_that_ends_with_a_question_loses_less() -> None:
    (short,), (long,) = (
        [parts([candidate(0, keyword=2.0, is_question=True, length=length)], 0)["question"]] for length in (600, 2400)
    )
    assert long == pytest.approx(short / 4)


def test_a_question_is_as_good_as_any_text_for_a_query_that_is_a_statement() -> None:
    one = candidate(0, keyword=2.0, is_question=True)
    assert parts([one], 0)["question"] < 0
    assert "question" not in parts([one], 0, is_question=False)
