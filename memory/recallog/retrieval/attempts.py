"""Questions to the index that may fail: some are put again, and damage that they find is noted, to be repaired."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from recallog.index.semantic_index import SemanticIndex
from recallog_schemas.errors import IndexDamaged, IndexLost, IndexUnavailable

Result = TypeVar("Result")

_TRIES = 3


async def attempt(
    index: SemanticIndex, partition: int, ask: Callable[[], Awaitable[Result]]
) -> Result | IndexUnavailable:
    """What `ask` returns, or why the index cannot answer.

    It is called again, a few times, where another generation of the index was activated meanwhile.
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
    """Examine and repair the index, if the error says that it is damaged."""
    if index is not None and isinstance(error, IndexDamaged):
        index.note_damage(partition, str(error))
