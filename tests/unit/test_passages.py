"""Passages of a text: their lengths, where they are cut, and which are embedded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_projections.index import passages
from recallog_projections.index.passages import EMBEDDED_MAX, PASSAGE_LENGTH

SENTENCE = "The miller counted forty-one sacks of flour. "
ITEM = "- Forty-one sacks of flour for the baker on Monday\n"


def parts(text: str) -> list[str]:
    return [text[start:end] for start, end in passages.spans(text)]


PIECES = st.sampled_from(
    [SENTENCE, ITEM, "\n\n", "# Heading\n", "word ", "x" * 50, "磨坊主数了四十一袋面粉。", "粉", "?"]
)


@given(st.lists(PIECES, max_size=200).map("".join))
def test_passages_cover_a_text_without_gaps_and_none_is_too_long(text: str) -> None:
    found = parts(text)
    assert "".join(found) == text
    assert all(passages.length(part) <= PASSAGE_LENGTH for part in found)
    assert len(found) == 1 or all(found)
    assert (len(found) == 1) == (passages.length(text) <= PASSAGE_LENGTH)


@given(st.lists(PIECES, min_size=30, max_size=200).map("".join))
def test_passages_are_of_similar_length(text: str) -> None:
    lengths = [passages.length(part) for part in parts(text)]
    assert min(lengths) >= min(PASSAGE_LENGTH / 4 - 4, passages.length(text))


def test_a_text_is_cut_between_sentences() -> None:
    found = parts(SENTENCE * 40)
    assert len(found) > 1
    assert all(part.endswith("flour. ") for part in found)


def test_paragraphs_are_kept_together_where_they_fit() -> None:
    paragraph = SENTENCE * 10 + "\n\n"
    assert parts(paragraph * 4) == [paragraph] * 4


def test_lists_and_code_are_cut_between_lines() -> None:
    assert all(part.endswith("Monday\n") for part in parts(ITEM * 40))
    code = "".join(f"    total_{number} = total_{number - 1} + sacks[{number}].weight\n" for number in range(60))
    assert all(part.endswith(".weight\n") for part in parts(code))


@pytest.mark.parametrize("lead", ["## The sacks of this week\n", "These are the sacks of this week:\n"])
def test_a_heading_stays_with_what_follows(lead: str) -> None:
    for items in range(5, 15):
        assert not any(part.endswith(lead) for part in parts((lead + ITEM * items) * 6))


def test_chinese_is_cut_into_shorter_passages_between_sentences() -> None:
    found = parts("磨坊主数了四十一袋面粉。" * 40)
    assert all(len(part) <= PASSAGE_LENGTH / 4 and part.endswith("。") for part in found)


def test_a_text_without_any_boundary_is_cut_at_the_limit() -> None:
    assert {len(part) for part in parts("x" * 10 * PASSAGE_LENGTH)} == {PASSAGE_LENGTH}


def test_of_a_very_long_text_the_first_and_the_last_passages_are_embedded() -> None:
    text = SENTENCE * 3000
    found = passages.spans(text)
    embedded = passages.select_embedded(text)
    assert len(embedded) == EMBEDDED_MAX < len(found)
    assert embedded == found[: EMBEDDED_MAX // 2] + found[-EMBEDDED_MAX // 2 :]
    assert passages.select_embedded(SENTENCE * 40) == passages.spans(SENTENCE * 40)
