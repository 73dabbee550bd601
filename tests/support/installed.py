"""Which distributions are installed, for a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution
from typing import Any

import pytest

from recallog_service.formats import registry


@contextmanager
def formats_read_again() -> Iterator[None]:
    """The formats of the distributions that are installed meanwhile."""
    registry.load_installed.cache_clear()
    try:
        yield
    finally:
        registry.load_installed.cache_clear()


@contextmanager
def without_ours() -> Iterator[None]:
    """Only Recallog is installed, without the packages under `adapters`."""
    discover = Distribution.discover

    def others(**context: Any) -> Iterator[Distribution]:
        return (each for each in discover(**context) if not each.name.startswith("recallog-"))

    with formats_read_again(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Distribution, "discover", others)
        yield
