"""What adapters do alike: a filter as the few conditions that it is made of, and searches that need no engine."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from recallog_projections.index.engine import Filter, Search


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The field, or one of its elements, is one of `values`; of no values, nothing passes."""

    field: str
    values: list[str]


@dataclass(frozen=True, slots=True)
class Between:
    """The field is within the bounds that are not None."""

    field: str
    at_least: int | None = None
    below: int | None = None
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """The point is one of these; of none, nothing passes."""

    ids: Collection[str]


def conditions(filter: Filter) -> Iterator[AnyOf | Between | OneOf]:  # noqa: A002
    """What must all hold, the space first."""
    yield AnyOf("space", [filter.space])
    yield AnyOf("readers", [*filter.readers])
    if filter.agents is not None:
        yield AnyOf("agent", [*filter.agents])
    if filter.kinds is not None:
        yield AnyOf("kind", [*filter.kinds])
    if filter.session is not None:
        yield AnyOf("session", [filter.session])
    if filter.since is not None or filter.until is not None:
        yield Between("at", at_least=filter.since, below=filter.until)
    if filter.offset_until is not None:
        yield Between("offset", at_most=filter.offset_until)
    if filter.ids is not None:
        yield OneOf(filter.ids)


def finds_nothing(search: Search) -> bool:
    """Whether no point can answer, where engines fail or differ: no hit is wanted, or nothing is looked for."""
    if search.limit <= 0 or (search.sparse is not None and not len(search.sparse.indices)):
        return True
    return search.pieces is not None and not len(search.pieces)
