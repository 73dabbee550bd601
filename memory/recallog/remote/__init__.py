"""The memory of a server: `Remote`, with the operations and facades of `recallog.Memory`, over HTTP.

A type checker reads `__init__.pyi`, which `make generate` derives from the same classes.
"""

from recallog.remote.client import Remote
from recallog.remote.deriving import RemoteFacade
from recallog.remote.streams import Gap as Gap
from recallog.remote.streams import Tailed as Tailed

_PARTS = {part.__name__: part for part in Remote.facades.values() if issubclass(part, RemoteFacade)}

globals().update(_PARTS)

__all__ = sorted(["Gap", "Remote", "Tailed", *_PARTS])
