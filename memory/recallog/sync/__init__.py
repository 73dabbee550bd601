"""The synchronous API: `Memory` and its facades for scripts, notebooks and threads, derived from those of `recallog`.

A type checker reads `__init__.pyi`, which `make generate` derives from the same classes.
"""

from recallog.sync.memory import Memory

globals().update({part.__name__: part for part in Memory.facades.values()})

__all__ = sorted(["Memory", *(part.__name__ for part in Memory.facades.values())])
