"""Long-term memory: the entries that agents keep on purpose, change, forget and share."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.long_term import commands as commands
    from recallog.models.long_term import live_entries as live_entries
    from recallog.models.long_term import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
