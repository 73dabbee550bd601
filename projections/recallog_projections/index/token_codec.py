"""Token vectors as text, in which a point's payload stores them: one character for each number.

A number is rounded to one of 93 levels. The characters are those that JSON writes as one byte.
"""

import math
from collections.abc import Sequence

import numpy as np

from recallog_projections.index.embedders.embedder import Vectors

_CHARACTERS = np.array([code for code in range(0x20, 0x7F) if chr(code) not in '"\\'], np.uint8)
_HALF = len(_CHARACTERS) // 2
_LEVEL_OF_CHARACTER = np.zeros(256, np.float32)
_LEVEL_OF_CHARACTER[_CHARACTERS] = np.arange(-_HALF, _HALF + 1)


def encode(vectors: Vectors) -> str:
    """The text of `vectors`, (n, dimension), each of length 1."""
    levels = np.rint(vectors / _step(vectors.shape[1])).clip(-_HALF, _HALF).astype(np.int64)
    return bytes(_CHARACTERS[levels + _HALF]).decode()


def decode(texts: Sequence[str], dimension: int) -> Vectors:
    """The vectors of all `texts`, one after another: (n, dimension)."""
    characters = np.frombuffer("".join(texts).encode(), np.uint8)
    vectors: Vectors = (_LEVEL_OF_CHARACTER * _step(dimension))[characters].reshape(-1, dimension)
    return vectors


def _step(dimension: int) -> float:
    """The distance of two levels. Numbers beyond eight times their standard deviation, 1 / √dimension, are cut off."""
    return min(1.0, 8 / math.sqrt(dimension)) / _HALF
