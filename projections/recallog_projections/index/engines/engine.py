"""The engine port: collections of points, which Qdrant keeps and searches.

A collection holds one generation of one index. Points are written by id, and writing one again replaces it, so that a
commit which was cut off can simply be made again.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

EVERYBODY = "*"
"""The reader of what all agents of a space may see. No agent can be named so."""

KEYWORD_FIELDS = ("space", "readers", "agent", "kind", "session")
INTEGER_FIELDS = ("offset", "at")
"""Fields of the payload that filters name; the engine indexes them, `space` as the tenant."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the vectors of a collection are. A collection's shape never changes."""

    dimension: int
    token_vectors: bool
    """Whether points also have a vector for each word-piece (a multivector, for late interaction)."""


class Sparse(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A sparse vector: distinct dimensions and their weights."""

    indices: Sequence[int]
    """0 to 2**32 - 1."""
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Point:
    """What is written for one memory."""

    id: str
    """A UUID."""
    dense: NDArray[np.float32]
    """(dimension,), of length 1."""
    sparse: Sparse
    """Term weights; the engine multiplies them by the idf of the question's corpus."""
    token_vectors: NDArray[np.float32]
    """(n, dimension), each of length 1; n may be 0, and the rest is then still found."""
    payload: Mapping[str, Any]
    """Strings, integers, booleans, and `readers`, a list of strings."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which points may answer; what is None lets all pass. It is part of every search, never applied after."""

    space: str
    readers: Collection[str]
    """A point passes whose readers are one of these: the agent who asks, and `EVERYBODY`."""
    agents: Collection[str] | None = None
    kinds: Collection[str] | None = None
    session: str | None = None
    since: int | None = None
    """at >= since, microseconds since 1970."""
    until: int | None = None
    """at < until."""
    offset_until: int | None = None
    """offset <= offset_until."""
    ids: Collection[str] | None = None
    """Only these points."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search of a batch: by exactly one of `dense`, `sparse` and `token_vectors`."""

    filter: Filter
    limit: int
    dense: NDArray[np.float32] | None = None
    """(dimension,): the score is the dot product. Exact below the engine's threshold, else by its graph."""
    sparse: Sparse | None = None
    """The score is the sum over shared dimensions of weight * weight * idf, idf over `corpus`."""
    token_vectors: NDArray[np.float32] | None = None
    """(n, dimension): the score is the sum over these of the best dot product with one of the point's pieces."""
    corpus: Filter | None = None
    """The points whose idf counts: ln(1 + (N - df + 0.5) / (df + 0.5)). None: those of the whole collection."""
    exact: bool = False
    payload: Collection[str] = ()
    """Fields of the payload that hits bring along."""
    with_sparse: bool = False
    """Whether hits bring their sparse vector along."""


class Hit(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A point that was found."""

    id: str
    score: float
    payload: Mapping[str, Any] = {}
    sparse: Sparse | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A point as it is kept."""

    id: str
    payload: Mapping[str, Any]
    dense: NDArray[np.float32] | None = None
    sparse: Sparse | None = None
    token_vectors: NDArray[np.float32] | None = None


class Engine(ABC):
    """Keeps and searches collections. Every call may raise `IndexUnavailable`: trying again later may help."""

    @abstractmethod
    async def create(self, collection: str, shape: Shape) -> None:
        """Make an empty collection, unless it is there."""

    @abstractmethod
    async def collections(self) -> set[str]:
        """The names of all that are there."""

    @abstractmethod
    async def drop(self, collection: str) -> None:
        """Delete a collection; none of that name is fine."""

    @abstractmethod
    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write points, each instead of one of the same id. They are durable, and found, on return.

        Raises `IndexLost` where there is no such collection: writing must never make one.
        """

    @abstractmethod
    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        """The hits of each search, best first. Raises `IndexLost`."""

    @abstractmethod
    async def retrieve(
        self, collection: str, ids: Sequence[str], *, payload: Collection[str] | None = None, vectors: bool = False
    ) -> dict[str, Stored]:
        """Points by id, those that are there; with the payload's fields named, or all. Raises `IndexLost`."""

    @abstractmethod
    async def scroll(self, collection: str, after: str | None, limit: int, *, vectors: bool = False) -> list[Stored]:
        """Up to `limit` points with all their payload, in order of their ids behind `after`. Raises `IndexLost`."""

    @abstractmethod
    async def count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        """How many points pass, exactly. Raises `IndexLost`."""

    @abstractmethod
    async def size_bytes(self) -> int | None:
        """What it takes on its medium; None where it does not tell."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of files and connections."""
