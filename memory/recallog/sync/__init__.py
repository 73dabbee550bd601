"""The synchronous API: `Memory`, `Remote` and their facades for scripts, notebooks and threads, derived from the
asynchronous ones of `recallog`.

A type checker reads `__init__.pyi`, which `make generate` derives from the same classes.
"""

from recallog.sync.memory import Memory
from recallog.sync.remote import Remote

_PARTS = {part.__name__: part for whole in (Memory, Remote) for part in whole.facades.values()}

globals().update(_PARTS)

__all__ = sorted(["Memory", "Remote", *_PARTS])
