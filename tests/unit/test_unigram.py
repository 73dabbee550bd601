"""The tokenizer of a unigram model."""

import pytest

from recallog_projections.index.embedders.unigram import SpecialTokens, UnigramTokenizer

pytestmark = pytest.mark.models()

_SCORES = {
    "<s>": 0.0,
    "<pad>": 0.0,
    "</s>": 0.0,
    "<unk>": 0.0,
    "\u2581": -5.0,
    "\u2581mill": -6.0,
    "er": -4.0,
    "m": -7.0,
    "i": -7.0,
    "l": -7.0,
    "\u2581miller": -11.0,
}
_PIECES = {piece: (number, score) for number, (piece, score) in enumerate(_SCORES.items())}
_ROMAN = "\u216f"


def tokenizer(tokens_max: int = 16) -> UnigramTokenizer:
    return UnigramTokenizer(_PIECES, SpecialTokens(0, 2, 1, 3), {_ROMAN: "mi", "\t": " ", "\x01": ""}, tokens_max)


def pieces(text: str) -> list[str]:
    names = {number: piece for piece, (number, _) in _PIECES.items()}
    return [names[token] for token in tokenizer().encode(text).ids[1:-1]]


def test_a_word_is_split_into_the_most_probable_pieces() -> None:
    assert pieces("miller mill") == ["\u2581mill", "er", "\u2581mill"]


def test_characters_without_a_piece_are_unknown() -> None:
    assert pieces("mill粉") == ["\u2581mill", "<unk>"]


def test_offsets_count_characters_of_the_text_as_it_was_given() -> None:
    text = f" \tmiller  {_ROMAN}ll\x01"
    encoding = tokenizer().encode(text)
    assert [text[start:end] for start, end in encoding.offsets[1:-1]] == ["mill", "er", f"{_ROMAN}ll"]


def test_the_space_before_a_word_is_a_token_without_characters() -> None:
    assert tokenizer().encode("er").offsets == [(0, 0), (0, 0), (0, 2), (0, 0)]


def test_each_encoding_begins_and_ends_with_special_tokens() -> None:
    encoding = tokenizer().encode("mill")
    assert encoding.ids == [0, 5, 2]
    assert encoding.special_tokens_mask == [1, 0, 1]


def test_tokens_beyond_the_maximum_overflow() -> None:
    encoding = tokenizer(tokens_max=4).encode("mill mill miller")
    assert encoding.ids == [0, 5, 5, 2]
    assert [each.ids for each in encoding.overflowing] == [[0, 5, 6, 2]]


@pytest.mark.parametrize("text", ["", "  ", "\x01"])
def test_a_text_without_characters_has_no_tokens(text: str) -> None:
    assert tokenizer().encode(text).ids == [0, 2]
