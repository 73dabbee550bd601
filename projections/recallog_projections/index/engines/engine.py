"""The engine port: collections of points, stored and searched by Qdrant.

A collection holds one generation of one index. Writing a point replaces the one with the same id, so that an
interrupted commit can be repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from recallog_schemas.errors import IndexUnavailable

if TYPE_CHECKING:  # commands that compare no vectors use filters and terms, and start without numpy
    import numpy as np
    from numpy.typing import NDArray

EVERYBODY = "*"
"""The reader in points that all agents of a space may see. It is not a valid name of an agent."""

_PAST, _APART, _ANY = "-", "+", "*"
"""How the spaces of points begin. No name of a space has the third one."""

KeywordField = Literal["space", "readers", "agent", "kind", "type", "tier", "session"]
IntegerField = Literal["offset", "at", "since", "since_at", "until", "until_at"]
FloatField = Literal["importance"]
"""Fields of the payload that the conditions of filters may name."""
KEYWORD_FIELDS: tuple[KeywordField, ...] = get_args(KeywordField)
INTEGER_FIELDS: tuple[IntegerField, ...] = get_args(IntegerField)
FLOAT_FIELDS: tuple[FloatField, ...] = get_args(FloatField)
"""The same fields: the engine indexes all of them, `space` as the tenant. A server in strict mode refuses a filter on a
field without an index."""
TEXT_FIELDS = frozenset({"event", "text", "before", "space", "readers", "is_action", "made_with", "checksum"})
"""Texts, and other fields that searches seldom return: an engine does not cache them."""


def apart_from(space: str) -> str:
    """The space of texts of `space` that only queries for such texts search, so that queries for other memories do not
    pass them."""
    return f"{_ANY}{space}"


def in_points(space: str) -> str:
    """The name of a space, or of what is `apart_from` one, in points of the present. Different names stay different."""
    if space.startswith(_ANY):
        return f"{_APART}{space.removeprefix(_ANY)}"
    return f"{_ANY}{space}" if space.startswith((_PAST, _APART)) else space


def past_of(space: str) -> str:
    """The name in points of the space of what has ended in `space`, so that queries to the present do not read it."""
    return f"{_PAST}{in_points(space)}"


def of_points(space: str) -> str:
    """The space from which `in_points` or `past_of` has made this name."""
    present = space.removeprefix(_PAST)
    if present.startswith(_APART):
        return apart_from(present.removeprefix(_APART))
    return present.removeprefix(_ANY)


class Sparse(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A sparse vector: distinct dimensions and their weights."""

    indices: Sequence[int]
    """0 to 2**32 - 1."""
    values: Sequence[float]


def no_vectors() -> "NDArray[np.float32]":
    """The vectors of a point that has none: an array of the shape (0, 0)."""
    import numpy as np

    return np.empty((0, 0), np.float32)


@dataclass(frozen=True, slots=True)
class Point:
    """The point of one memory, to be written."""

    id: str
    """A UUID."""
    dense: "NDArray[np.float32]"
    """(passages, dimension), each of length 1. Without passages no search by `dense` finds the point."""
    sparse: Sparse
    """Term weights. The engine multiplies them by the idf over the corpus of a search."""
    payload: Mapping[str, Any]
    """Strings, numbers, booleans, and lists of them; `readers` is a list of strings."""
    multilingual: "NDArray[np.float32]" = field(default_factory=no_vectors)
    """As `dense`, by a model of many languages."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which points a search may return. A field that is None matches all points. Engines filter while they search."""

    space: str
    readers: Collection[str]
    """Matches points with at least one of these readers: the agent of the query, and `EVERYBODY`."""
    agents: Collection[str] | None = None
    kinds: Collection[str] | None = None
    kinds_except: Collection[str] | None = None
    """Matches points of other kinds."""
    types: Collection[str] | None = None
    """Matches entries of these types."""
    tiers: Collection[str] | None = None
    """Matches entries that are in one of these tiers."""
    session: str | None = None
    since: int | None = None
    """at >= since, microseconds since 1970."""
    until: int | None = None
    """at < until."""
    offset_from: int | None = None
    """offset >= offset_from."""
    offset_until: int | None = None
    """offset <= offset_until. Entries match in the form that they had at this offset."""
    at_until: int | None = None
    """at <= at_until, microseconds since 1970. Entries match in the form that they had then."""
    importance_min: float | None = None
    """importance >= importance_min."""
    ids: Collection[str] | None = None
    """Only these points."""
    only_multilingual: bool = False
    """Only points without `dense`: the multilingual model has read their text, or no model has yet."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search of a batch: by `dense` or by `sparse`. With neither, the hits are points of the filter in any order,
    and their scores mean nothing."""

    filter: Filter | None
    """None matches all points of the collection."""
    limit: int
    dense: "NDArray[np.float32] | None" = None
    """(dimension,): the score is the highest dot product with a passage of the point. Exact below the engine's
    threshold, else by its graph."""
    multilingual: bool = False
    """Whether `dense` is compared with the points' multilingual vectors instead."""
    sparse: Sparse | None = None
    """The score is the sum over shared dimensions of weight * weight * idf, with the idf over `corpus`."""
    corpus: Filter | None = None
    """The points over which idf = ln(1 + (N - df + 0.5) / (df + 0.5)) is computed; None means all of the collection."""
    exact: bool = False
    """Whether the search must not use the graph."""
    payload: Collection[str] = ()
    """Fields of the payload to return with hits, which may have further ones."""
    with_sparse: bool = False
    """Whether to return the sparse vectors of hits."""


class Hit(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A point that a search found, with the requested fields."""

    id: str
    score: float
    payload: Mapping[str, Any] = {}
    sparse: Sparse | None = None


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point as it is stored; vectors are None unless they were requested."""

    id: str
    payload: Mapping[str, Any]
    dense: "NDArray[np.float32] | None" = None
    """(passages, dimension); None also for a point without passages."""
    sparse: Sparse | None = None
    multilingual: "NDArray[np.float32] | None" = None
    damage: str = ""
    """What an engine with checksums of vectors found wrong with them, in words; "" if nothing, or if not requested."""


def closed_error() -> IndexUnavailable:
    """The error of every call after `close`."""
    return IndexUnavailable("the memory is closed, and with it its semantic index; open it again")


class Engine(ABC):
    """Stores and searches collections. Every method may raise `IndexUnavailable`, which is retryable, and
    `IndexDamaged` if it finds that its files are damaged."""

    @abstractmethod
    async def create(self, collection: str, dimension: int, *, multilingual: bool = False) -> None:
        """Create an empty collection for dense vectors of this length, and also for `multilingual` ones, unless it
        exists."""

    @abstractmethod
    async def collections(self) -> set[str]:
        """The names of all collections."""

    @abstractmethod
    async def drop(self, collection: str) -> None:
        """Delete a collection if it exists."""

    @abstractmethod
    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write points; each replaces the one with the same id. They are durable and searchable on return.

        Raises `IndexLost` if the collection does not exist: writing never creates one.
        """

    @abstractmethod
    async def delete(self, collection: str, ids: Collection[str]) -> None:
        """Delete the points with these ids; those that do not exist are ignored. Durable on return.

        Deleted points are in no search, count or corpus. Raises `IndexLost`.
        """

    @abstractmethod
    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        """The hits of each search, best first. Raises `IndexLost`."""

    @abstractmethod
    async def retrieve(
        self, collection: str, ids: Sequence[str], *, payload: Collection[str] | None = None, vectors: bool = False
    ) -> dict[str, StoredPoint]:
        """The existing points with these ids, with the fields `payload` or all fields. Raises `IndexLost`."""

    @abstractmethod
    async def scroll(
        self, collection: str, after: str | None, limit: int, *, vectors: bool = False
    ) -> list[StoredPoint]:
        """Up to `limit` points with ids greater than `after`, in order of id, with payload. Raises `IndexLost`."""

    @abstractmethod
    async def count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        """The exact number of points that match `filter`, or of all. Raises `IndexLost`."""

    async def estimate_count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        """About the number of points that match `filter`, for questions: an engine may know it sooner than `count`.

        Raises `IndexLost`.
        """
        return await self.count(collection, filter)

    async def has_any(self, collection: str, filter: Filter) -> bool:  # noqa: A002
        """Whether a point matches `filter`. Raises `IndexLost`."""
        return await self.count(collection, filter) > 0

    @abstractmethod
    async def size_bytes(self) -> int | None:
        """The size on disk; None if the engine does not report it."""

    def cause_of_loss(self, collection: str) -> str:
        """Why a collection that existed is gone, in words; "" if the engine does not know."""
        return ""

    @abstractmethod
    async def close(self) -> None:
        """Close files and connections."""
