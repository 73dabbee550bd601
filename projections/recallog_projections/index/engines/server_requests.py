"""Points, searches and filters as the API of a Qdrant server has them."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from qdrant_client import models as qdrant

from recallog_projections.index.engines.conditions import (
    AnyOf,
    Between,
    IdIn,
    NoneOf,
    NotBetween,
    NoVector,
    Required,
    conditions,
    dense_vectors,
    vector_name,
)
from recallog_projections.index.engines.engine import Filter, Point, Search, Sparse
from recallog_projections.index.engines.server_collections import GENERATION, Tenancy

UPSERT_BYTES = 8 * 1024 * 1024
"""JSON of one request, by an estimate; a server accepts 32 MB."""

_NUMBER_BYTES = 22
"""A float of a vector in JSON."""


def split_upserts(points: Sequence[Point], tenancy: Tenancy) -> Iterator[list[qdrant.PointStruct]]:
    """The points in parts of at most `UPSERT_BYTES`, or of a single larger point."""
    part: list[qdrant.PointStruct] = []
    part_bytes = 0
    for point in points:
        size = (point.dense.size + point.multilingual.size) * _NUMBER_BYTES + len(msgspec.json.encode(point.payload))
        if part and part_bytes + size > UPSERT_BYTES:
            yield part
            part, part_bytes = [], 0
        part.append(_convert_point(point, tenancy))
        part_bytes += size
    if part:
        yield part


def _convert_point(point: Point, tenancy: Tenancy) -> qdrant.PointStruct:
    vectors = {"terms": _sparse_vector(point.sparse), **dense_vectors(point)}
    payload = {**point.payload, GENERATION: tenancy.name} if tenancy.name else dict(point.payload)
    return qdrant.PointStruct(id=tenancy.stored_id(point.id), vector=vectors, payload=payload)


def make_request(search: Search, tenancy: Tenancy) -> qdrant.QueryRequest:
    """The request of a search among the points of a generation."""
    vector: Any = None
    using = None
    params = qdrant.SearchParams(exact=True) if search.exact else None
    if search.dense is not None:
        using, vector = vector_name(search), [search.dense.tolist()]
    elif search.sparse is not None:
        using, vector = "terms", _sparse_vector(search.sparse)
        corpus = qdrant.IdfCorpusParams(corpus=make_filter(search.corpus, tenancy))
        params = qdrant.SearchParams(exact=search.exact or None, idf=corpus)
    return qdrant.QueryRequest(
        query=None if vector is None else qdrant.NearestQuery(nearest=vector),
        using=using,
        filter=make_filter(search.filter, tenancy),
        params=params,
        limit=search.limit,
        with_payload=list(search.payload) or False,
        with_vector=["terms"] if search.with_sparse else False,
    )


def make_filter(filter: Filter | None, tenancy: Tenancy) -> qdrant.Filter:  # noqa: A002
    """The filter for points of a generation, of which None selects all."""
    must = tenancy.conditions()
    must_not: list[qdrant.Condition] = []
    for condition in conditions(filter) if filter is not None else ():
        if isinstance(condition, NotBetween):
            excluded = qdrant.Range(gt=condition.above, lte=condition.at_most)
            must_not.append(qdrant.FieldCondition(key=condition.field, range=excluded))
        elif isinstance(condition, NoVector):
            must_not.append(qdrant.HasVectorCondition(has_vector=condition.name))
        else:
            must.append(_condition(condition, tenancy))
    return qdrant.Filter(must=must, must_not=must_not)


def _condition(condition: Required, tenancy: Tenancy) -> qdrant.FieldCondition | qdrant.HasIdCondition:
    match condition:
        case AnyOf(field, [value]):
            return qdrant.FieldCondition(key=field, match=qdrant.MatchValue(value=value))
        case AnyOf(field, values):
            return qdrant.FieldCondition(key=field, match=qdrant.MatchAny(any=values))
        case NoneOf(field, values):
            return qdrant.FieldCondition(key=field, match=qdrant.MatchExcept(**{"except": values}))
        case Between(field, at_least, below, at_most):
            # Numbers go as floats, which are exact up to 2**53: offsets, and microseconds until the year 2255.
            return qdrant.FieldCondition(key=field, range=qdrant.Range(gte=at_least, lt=below, lte=at_most))
        case IdIn(ids):
            return qdrant.HasIdCondition(has_id=[tenancy.stored_id(each) for each in ids])


def _sparse_vector(sparse: Sparse) -> qdrant.SparseVector:
    return qdrant.SparseVector(indices=list(sparse.indices), values=list(sparse.values))
