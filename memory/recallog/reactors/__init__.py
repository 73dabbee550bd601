"""Reactors: code that answers triggers with new events, the loop that runs them, and the reflectors that write beliefs.

Each module is imported when it is first used, as `reactors.<module>`.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.reactors import endpoint as endpoint
    from recallog.reactors import extractive as extractive
    from recallog.reactors import loop as loop
    from recallog.reactors import migration as migration
    from recallog.reactors import reactor as reactor
    from recallog.reactors import reflection as reflection
    from recallog.reactors import reflector as reflector
    from recallog.reactors import retraction as retraction
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {},
        submodules=["endpoint", "extractive", "loop", "migration", "reactor", "reflection", "reflector", "retraction"],
    )
