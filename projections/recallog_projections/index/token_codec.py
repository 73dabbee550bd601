"""Token vectors as text, in which a point's payload stores them: three levels per number, four numbers a character.

A number of a vector of length 1 has a standard deviation of about 1 / √dimension. It is rounded to the nearest of three
levels, those with the least squared error for a normal distribution (Max, 1960), and the vector is scaled so that dot
products with other vectors have no bias. Their error has a standard deviation of 0.025 at 384 dimensions. ADR 0023
compares other numbers of levels.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from recallog_projections.index.embedders.embedder import Vectors

_THRESHOLDS = np.array((-0.612, 0.612))  # in 64 bits, so that numbers in 32 bits are compared exactly
_LEVELS = (-1.224, 0.0, 1.224)
"""In standard deviations."""
_KEPT = 0.81
"""The share of a vector's squared length that its levels keep."""

_NUMBERS = 4
"""Numbers per character."""
_PLACES = (len(_LEVELS) ** np.arange(_NUMBERS - 1, -1, -1)).astype(np.uint8)

_AT_ONCE = 512
"""How many vectors are decoded at once at most. They stay in the processor's cache: with 40,000 at once the products
took 2.4 times as long."""
_MULTIPLICATIONS = 1 << 19
"""How many one product of matrices has at most: OpenBLAS computes as few in the calling thread. For larger products it
wakes a thread for each core, and on a busy machine waits for them: 10 to 100 times as long (ADR 0083)."""

_CODES = [code for code in range(0x20, 0x7F) if chr(code) not in '"\\'][: len(_LEVELS) ** _NUMBERS]
_CHARACTERS = np.array(_CODES, np.uint8)
"""Characters that JSON writes as one byte, for all combinations of levels."""


def _numbers_of_characters() -> NDArray[np.float32]:
    """(128, _NUMBERS): the numbers that each character stands for, in standard deviations."""
    table = np.zeros((128, _NUMBERS), np.float32)
    table[_CHARACTERS] = [*product(_LEVELS, repeat=_NUMBERS)]
    return table / np.float32(_KEPT)


_TABLE = _numbers_of_characters()


def encode(vectors: Vectors) -> str:
    """The text of `vectors`, (n, dimension), each of length 1."""
    number, dimension = vectors.shape
    characters = math.ceil(dimension / _NUMBERS)
    scaled = vectors * math.sqrt(dimension)
    digits = np.ones((number, characters * _NUMBERS), np.uint8)  # the level of 0, which pads a vector
    digits[:, :dimension] = scaled >= _THRESHOLDS[0]
    digits[:, :dimension] += scaled >= _THRESHOLDS[1]
    return bytes(_CHARACTERS[digits.reshape(number, characters, _NUMBERS) @ _PLACES]).decode()


def dot_products(texts: Sequence[str], queries: Vectors) -> Vectors:
    """The dot products of the vectors of all `texts`, one after another, with `queries`: (n, len(queries)).

    `queries` is (m, dimension).
    """
    dimension = queries.shape[1]
    width = math.ceil(dimension / _NUMBERS)
    characters = np.frombuffer("".join(texts).encode(), np.uint8).reshape(-1, width)
    table = _TABLE / np.float32(math.sqrt(dimension))
    columns = np.ascontiguousarray(np.pad(queries, ((0, 0), (0, width * _NUMBERS - dimension))).T)
    products = np.empty((len(characters), len(queries)), np.float32)
    at_once = max(1, min(_AT_ONCE, _MULTIPLICATIONS // max(1, columns.size)))
    numbers = np.empty((min(len(characters), at_once), width, _NUMBERS), np.float32)
    for start in range(0, len(characters), at_once):
        some = characters[start : start + at_once]
        decoded = np.take(table, some, axis=0, out=numbers[: len(some)], mode="clip")
        np.matmul(decoded.reshape(len(some), -1), columns, out=products[start : start + len(some)])
    return products
