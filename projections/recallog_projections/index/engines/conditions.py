"""Code shared by the adapters of Qdrant: names, the conditions of a filter, empty searches, conversion of results."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from recallog_projections.index.engines.engine import (
    Filter,
    FloatField,
    Hit,
    IntegerField,
    KeywordField,
    Point,
    Search,
    Sparse,
    StoredPoint,
    in_points,
    past_of,
)
from recallog_projections.index.engines.folder import NAME
from recallog_schemas.errors import InvariantViolation

DENSE, MULTILINGUAL = "dense", "multilingual"
"""The names of vectors in a collection, besides "terms"."""


def check_name(collection: str) -> None:
    """Raise `InvariantViolation` if a collection cannot have this name."""
    if not NAME.fullmatch(collection):
        raise InvariantViolation(f"{collection!r} is not the name of a collection: 1 to 128 letters, digits, _ and -")


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The field, or one of its elements, is one of `values`. Without values nothing matches."""

    field: KeywordField
    values: list[str]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """The field has no value of `values`."""

    field: KeywordField
    values: list[str]


@dataclass(frozen=True, slots=True)
class Between:
    """The field is within the bounds that are not None."""

    field: IntegerField | FloatField
    at_least: float | None = None
    below: int | None = None
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class NotBetween:
    """The field is not within the bounds that are not None, or the point does not have it."""

    field: IntegerField
    above: int | None = None
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class IdIn:
    """The point's id is one of `ids`. Without ids nothing matches."""

    ids: Collection[str]


@dataclass(frozen=True, slots=True)
class NoVector:
    """The point has no vector of this name."""

    name: str


Required = AnyOf | NoneOf | Between | IdIn
Condition = Required | NotBetween | NoVector


def conditions(filter: Filter) -> Iterator[Condition]:  # noqa: A002
    """The conditions of `filter`, all of which must hold; the space comes first."""
    yield AnyOf("space", spaces(filter))
    yield AnyOf("readers", [*filter.readers])
    if filter.agents is not None:
        yield AnyOf("agent", [*filter.agents])
    if filter.kinds is not None:
        yield AnyOf("kind", [*filter.kinds])
    if filter.kinds_except is not None:
        yield NoneOf("kind", [*filter.kinds_except])
    if filter.types is not None:
        yield AnyOf("type", [*filter.types])
    if filter.tiers is not None:
        yield AnyOf("tier", [*filter.tiers])
    if filter.session is not None:
        yield AnyOf("session", [filter.session])
    if filter.since is not None or filter.until is not None:
        yield Between("at", at_least=filter.since, below=filter.until)
    if filter.offset_from is not None:
        yield Between("offset", at_least=filter.offset_from)
    if filter.offset_until is not None:
        yield Between("offset", at_most=filter.offset_until)
        yield NotBetween("since", above=filter.offset_until)
        yield NotBetween("until", at_most=filter.offset_until)
    if filter.at_until is not None:
        yield Between("at", at_most=filter.at_until)
        yield NotBetween("since_at", above=filter.at_until)
        yield NotBetween("until_at", at_most=filter.at_until)
    if filter.importance_min is not None:
        yield Between("importance", at_least=filter.importance_min)
    if filter.ids is not None:
        yield IdIn(filter.ids)
    if filter.only_multilingual:
        yield NoVector(DENSE)


def spaces(filter: Filter) -> list[str]:  # noqa: A002
    """The spaces of the engine that a filter selects: forms of entries that have ended match only in the past."""
    if filter.offset_until is None and filter.at_until is None:
        return [in_points(filter.space)]
    return [in_points(filter.space), past_of(filter.space)]


def finds_nothing(search: Search) -> bool:
    """Whether the search is empty (a limit of 0 or no terms). Engines fail or differ on these."""
    return search.limit <= 0 or (search.sparse is not None and not len(search.sparse.indices))


def hit(point: Any) -> Hit:
    """The `Hit` of a scored point of either library; their attributes have the same names."""
    return Hit(str(point.id), point.score, point.payload or {}, terms_of(point))


def make_point(record: Any) -> StoredPoint:
    """The `StoredPoint` of a record of either library."""
    vectors = _vectors(record)
    dense, multilingual = (
        None if (found := vectors.get(name)) is None else np.asarray(found, np.float32)
        for name in (DENSE, MULTILINGUAL)
    )
    return StoredPoint(
        str(record.id), record.payload or {}, dense, _sparse(vectors.get("terms")), multilingual=multilingual
    )


def terms_of(found: Any) -> Sparse | None:
    """The sparse vector of a scored point, or of a record, of either library."""
    return _sparse(_vectors(found).get("terms"))


def dense_vectors(point: Point) -> dict[str, Any]:
    """The dense vectors of a point as lists: libraries take twice as long for two-dimensional arrays. An empty
    multivector is refused, a missing one is not."""
    named = {DENSE: point.dense, MULTILINGUAL: point.multilingual}
    return {name: vectors.tolist() for name, vectors in named.items() if len(vectors)}


def vector_name(search: Search) -> str:
    """The name of the vectors that a search by `dense` compares."""
    return MULTILINGUAL if search.multilingual else DENSE


def _vectors(found: Any) -> dict[str, Any]:
    vectors = found.vector  # read once: the embedded library builds it at each access
    return vectors if isinstance(vectors, dict) else {}


def _sparse(vector: Any) -> Sparse | None:
    return None if vector is None else Sparse(vector.indices, vector.values)
