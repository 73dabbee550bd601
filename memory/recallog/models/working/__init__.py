"""Working memory: the blocks of an agent and the scratchpads of its sessions, which are items."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.working import commands as commands
    from recallog.models.working import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
