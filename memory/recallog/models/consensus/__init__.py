"""Consensus: what agents agreed on, and who disagreed."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.consensus import commands as commands
    from recallog.models.consensus import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
