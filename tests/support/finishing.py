"""Running coroutines that work in memory only, without an event loop."""

from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def finish(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that works in memory only, without an event loop."""
    try:
        while True:
            work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
