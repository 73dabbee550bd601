"""The workspace: documents of an agent, which are items, and its daily log."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.workspace import commands as commands
    from recallog.models.workspace import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
