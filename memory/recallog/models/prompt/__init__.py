"""The prompt of an agent: its identity, knowledge and memories, within a budget."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.prompt import explain as explain
    from recallog.models.prompt import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
