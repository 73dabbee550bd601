"""Token vectors as text: small, and with the same dot products except for a small error without bias."""

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from recallog_projections.index import token_codec


def vectors(count: int, dimension: int, seed: int = 1) -> NDArray[np.float32]:
    """Random vectors of length 1."""
    drawn = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.mark.parametrize("dimension", [384, 382, 16, 1])
def test_texts_are_decoded_one_after_another(dimension: int) -> None:
    one, other = vectors(3, dimension), vectors(2, dimension, seed=2)
    texts = [token_codec.encode(one), token_codec.encode(one[:0]), token_codec.encode(other)]
    decoded = token_codec.decode(texts, dimension)
    assert decoded.shape == (5, dimension)
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded[3:], token_codec.decode(texts[2:], dimension))


def test_no_vectors_are_an_empty_text() -> None:
    assert token_codec.encode(vectors(0, 384)) == ""
    assert token_codec.decode([], 384).shape == (0, 384)


def test_json_takes_one_byte_for_four_numbers() -> None:
    text = token_codec.encode(vectors(50, 384))
    assert len(json.dumps(text)) == 50 * 96 + 2


def test_dot_products_are_kept_without_bias() -> None:
    stored = vectors(400, 384)
    queries = (stored[:100] + vectors(100, 384, seed=3)) / np.sqrt(2)  # cosines about 0.7 with one of the stored
    errors = queries @ token_codec.decode([token_codec.encode(stored)], 384).T - queries @ stored.T
    assert abs(errors.mean()) < 0.002
    assert errors.std() < 0.03
    assert abs(np.diag(errors[:, :100]).mean()) < 0.01


def test_an_encoded_vector_is_encoded_to_the_same_text() -> None:
    text = token_codec.encode(vectors(20, 384))
    decoded = token_codec.decode([text], 384)
    assert token_codec.encode(decoded / np.linalg.norm(decoded, axis=1, keepdims=True)) == text
