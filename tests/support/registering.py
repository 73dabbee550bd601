"""Kinds that a test registers, for the time of the test: a registration holds for the whole process otherwise."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from recallog_schemas import kinds
from recallog_schemas.kinds import Kind, catalogue


@contextmanager
def registered(model: str = "", of: Iterable[Kind] = ()) -> Iterator[None]:
    """Register the kinds `of` a model, and forget at the end whatever was registered meanwhile."""
    try:
        if model:
            kinds.register(model, of)
        yield
    finally:
        for name in kinds.list_registered():
            del catalogue._catalogue[name], catalogue._models[name]
        for clear in catalogue._cached:
            clear()
