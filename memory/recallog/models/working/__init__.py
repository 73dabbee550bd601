"""Working memory: the blocks of an agent and the scratchpads of its sessions, which are items."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
