"""Recall: finding candidates, ranking and reranking them.

Each module is imported when it is first used, as `retrieval.<module>`: only recall needs numpy.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recallog.retrieval import by_index, query, recall

__all__ = ["by_index", "query", "recall"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
