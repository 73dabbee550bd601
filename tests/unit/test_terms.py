"""The terms of a text and their weights."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog.retrieval import by_words
from recallog_projections.index import identifiers, points, terms
from recallog_projections.index.language.stems import english
from recallog_projections.index.terms import FUNCTION_WORDS, dimension, sparse, weights

# Terms.


def words_of(text: str) -> list[str]:
    """The terms of `text` without those of exact strings."""
    return [term for term in terms.terms(text) if not identifiers.is_exact(term)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" \n\t?!…\u3000", []),
        ("_ __ ___", []),
        ("The mills were burning, and the millers ran.", ["mill", "burn", "miller", "ran"]),
        ("bread Bread BREAD", ["bread", "bread", "bread"]),
        ("who is it that they don't know?", ["know"]),
        ("C++ and C#", ["c", "c"]),
        ('the "old mill"', ["old", "mill"]),
        ("“old mill”", ["old", "mill"]),
        ("user_id=42; path/to/file.txt", ["user", "id", "42", "path", "file", "txt"]),
        ("GPT-4 at 3.5", ["gpt", "4", "3", "5"]),
        ("baker's it'll we've", ["baker"]),
        ("🥖", []),
    ],
)
def test_the_terms_of_a_text_are_the_stems_of_its_content_words(text: str, found: list[str]) -> None:
    assert words_of(text) == found


def test_function_words_including_question_words_are_no_terms() -> None:
    assert terms.terms(" ".join(sorted(FUNCTION_WORDS))) == []
    assert {"who", "what", "when", "where", "why", "how", "which"} <= FUNCTION_WORDS


def test_a_question_and_its_answer_share_stems() -> None:
    assert english("burned") == english("burning") == english("burns") == "burn"


@given(st.text())
def test_a_term_has_no_upper_case_and_is_never_empty(text: str) -> None:
    assert all(term and term == term.lower() for term in words_of(text))


LINES = st.lists(st.sampled_from(["the", "mill", "burning", "Bread", "42", "isn't", "?", "’"])).map(" ".join)


@given(LINES, LINES)
def test_the_terms_of_two_lines_are_those_of_the_first_and_then_of_the_second(one: str, other: str) -> None:
    assert words_of(f"{one.lower()}\n{other.lower()}") == words_of(one.lower()) + words_of(other.lower())


def test_the_date_of_an_event_is_a_term() -> None:
    # 2026-03-01T12:00:00Z
    assert points.terms_of("The mill burned.", 1_772_366_400_000_000) == ["1", "march", "2026", "mill", "burn"]


def test_a_date_before_1970_is_a_term() -> None:
    assert points.terms_of("", -1) == ["31", "decemb", "1969"]


# Weights. BM25 with k1 .9, b .4, and 25 terms as the average, worked out by hand.


def test_a_single_term_has_the_weight_of_the_formula() -> None:
    # 1 * 1.9 / (1 + .9 * (.6 + .4 * 1 / 25)) = 1.9 / 1.5544
    assert weights(["mill"]) == {"mill": pytest.approx(1.22233659)}


def test_a_repeated_term_weighs_more_and_less_than_twice_as_much() -> None:
    # A text of 25 terms is of average length: tf * 1.9 / (tf + .9).
    found = weights(["mill"] * 3 + ["bread"] + [f"w{n}" for n in range(21)])
    assert found["mill"] == pytest.approx(3 * 1.9 / 3.9)
    assert found["bread"] == pytest.approx(1.0)


def test_a_term_of_a_long_text_weighs_less() -> None:
    # 100 terms: 1.9 / (1 + .9 * (.6 + 1.6)) = 1.9 / 2.98
    assert weights(["mill"] + [f"w{n}" for n in range(99)])["mill"] == pytest.approx(1.9 / 2.98)


def test_a_text_without_terms_has_no_weights() -> None:
    assert weights([]) == {}
    assert sparse({}).indices == []


def test_the_inverse_frequency_is_that_of_lucene() -> None:
    assert by_words.inverse_frequency(3, 1) == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert by_words.inverse_frequency(3, 3) == pytest.approx(math.log(1 + 0.5 / 3.5))
    assert by_words.inverse_frequency(0, 0) == pytest.approx(math.log(2))


@given(st.integers(0, 10_000).flatmap(lambda texts: st.tuples(st.just(texts), st.integers(0, texts))))
def test_no_term_has_a_negative_weight_and_rarer_terms_weigh_more(counts: tuple[int, int]) -> None:
    texts, holding = counts
    assert by_words.inverse_frequency(texts, holding) > 0
    assert holding == 0 or by_words.inverse_frequency(texts, holding) < by_words.inverse_frequency(texts, holding - 1)


# Sparse vectors.


def test_a_term_has_the_same_dimension_on_every_machine() -> None:
    assert dimension("mill") == 1_754_568_488


@given(st.dictionaries(st.text(max_size=5), st.floats(0.1, 3), max_size=50))
def test_a_sparse_vector_has_distinct_dimensions_of_32_bits_and_all_the_weight(weighted: dict[str, float]) -> None:
    vector = sparse(weighted)
    assert len(set(vector.indices)) == len(vector.indices) == len(vector.values)
    assert all(0 <= index < 2**32 for index in vector.indices)
    assert sum(vector.values) == pytest.approx(sum(weighted.values()))
