"""Runs the coroutines of tests that are plain functions."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

_runners: list[asyncio.Runner] = []


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine, for tests that are plain functions."""
    return _runners[-1].run(work) if _runners else asyncio.run(work)


@contextmanager
def one_loop() -> Iterator[None]:
    """Calls of `run` within it share one event loop, which connections to a service need."""
    with asyncio.Runner() as runner:
        _runners.append(runner)
        try:
            yield
        finally:
            _runners.pop()
