"""The queries: one handler each, from a read session to a view.

Each module is imported when it is first used, as `queries.<module>`: a process that asks for recent events does not
import what scores, recalls or verifies.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recallog.queries import (
        context,
        dead_letters,
        explain,
        previews,
        rebuilds,
        reflections,
        salient,
        spaces,
        status,
        timeline,
        verification,
    )

__all__ = [
    "context",
    "dead_letters",
    "explain",
    "previews",
    "rebuilds",
    "reflections",
    "salient",
    "spaces",
    "status",
    "timeline",
    "verification",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
