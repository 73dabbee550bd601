"""Queries of the index that may fail. Some are retried, and damage that they find is noted for repair."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from recallog.index.semantic_index import SemanticIndex
from recallog_schemas.errors import IndexDamaged, IndexLost, IndexUnavailable

Result = TypeVar("Result")

_TRIES = 3


async def attempt(
    index: SemanticIndex, partition: int, ask: Callable[[], Awaitable[Result]]
) -> Result | IndexUnavailable:
    """The result of `ask`, or the error if the index cannot answer.

    `ask` is called again, a few times, if another generation of the index was activated meanwhile.
    """
    tries = _TRIES
    while True:
        tries -= 1
        try:
            return await ask()
        except IndexUnavailable as error:
            if not tries or not isinstance(error, IndexLost):
                note(index, partition, error)
                return error


def note(index: SemanticIndex | None, partition: int, error: IndexUnavailable) -> None:
    """Note damage, so that the index is examined and repaired, if the error reports it."""
    if index is not None and isinstance(error, IndexDamaged):
        index.note_damage(partition, str(error))
