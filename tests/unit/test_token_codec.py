"""Token vectors as text: small, and with the same dot products except for a small error without bias."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from recallog_projections.index import token_codec


def vectors(count: int, dimension: int, seed: int = 1) -> NDArray[np.float32]:
    """Random vectors of length 1."""
    drawn = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def decoded_from(texts: list[str], dimension: int) -> NDArray[np.float32]:
    """The vectors of `texts`: their dot products with all axes."""
    return token_codec.dot_products(texts, np.eye(dimension, dtype=np.float32))


@pytest.mark.parametrize("dimension", [384, 382, 16, 1])
def test_texts_are_decoded_one_after_another(dimension: int) -> None:
    one, other = vectors(3, dimension), vectors(2, dimension, seed=2)
    texts = [token_codec.encode(one), token_codec.encode(one[:0]), token_codec.encode(other)]
    decoded = decoded_from(texts, dimension)
    assert decoded.shape == (5, dimension)
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded[3:], decoded_from(texts[2:], dimension))


def test_more_vectors_than_are_decoded_at_once_give_each_its_own_products() -> None:
    stored, queries = vectors(1_300, 16), vectors(3, 16, seed=2)
    text = token_codec.encode(stored)
    np.testing.assert_allclose(
        token_codec.dot_products([text], queries), decoded_from([text], 16) @ queries.T, rtol=0, atol=1e-5
    )
    alone = [token_codec.dot_products([text[4 * n : 4 * n + 4]], queries)[0] for n in (0, 511, 512, 1_299)]
    np.testing.assert_allclose(
        token_codec.dot_products([text], queries)[[0, 511, 512, 1_299]], alone, rtol=0, atol=1e-5
    )


def test_no_vectors_are_an_empty_text() -> None:
    assert token_codec.encode(vectors(0, 384)) == ""
    assert decoded_from([], 384).shape == (0, 384)


def test_json_takes_one_byte_for_four_numbers() -> None:
    text = token_codec.encode(vectors(50, 384))
    assert len(json.dumps(text)) == 50 * 96 + 2


def test_dot_products_are_kept_without_bias() -> None:
    stored = vectors(400, 384)
    queries = (stored[:100] + vectors(100, 384, seed=3)) / np.sqrt(2)  # cosines about 0.7 with one of the stored
    errors = token_codec.dot_products([token_codec.encode(stored)], queries).T - queries @ stored.T
    assert abs(errors.mean()) < 0.002
    assert errors.std() < 0.03
    assert abs(np.diag(errors[:, :100]).mean()) < 0.01


def test_an_encoded_vector_is_encoded_to_the_same_text() -> None:
    text = token_codec.encode(vectors(20, 384))
    decoded = decoded_from([text], 384)
    assert token_codec.encode(decoded / np.linalg.norm(decoded, axis=1, keepdims=True)) == text


# Prints the processor time of the process and of its main thread.
_PRODUCTS = """
import time
import numpy as np
from recallog_projections.index import token_codec

stored, queries = np.eye(384, dtype=np.float32), np.eye(384, dtype=np.float32)[:{queries}]
text = token_codec.encode(stored)
token_codec.dot_products([text], queries)
began = time.process_time(), time.thread_time()
for _ in range(10):
    token_codec.dot_products([text] * 10, queries)
print(time.process_time() - began[0], time.thread_time() - began[1])
"""


@pytest.mark.parametrize("queries", [1, 12, 64])
def test_products_use_the_calling_thread_alone_in_a_process_that_does_not_limit_blas(queries: int) -> None:
    """With threads of OpenBLAS, 3 to 30 times the processor time was taken on a busy machine."""
    limits = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-c", _PRODUCTS.format(queries=queries)],
        env={name: value for name, value in os.environ.items() if name not in limits},
        capture_output=True,
        text=True,
        check=True,
    )
    of_process, of_thread = map(float, done.stdout.split())
    assert of_process < 1.3 * of_thread + 0.02
