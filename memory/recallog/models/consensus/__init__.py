"""Consensus: what agents agreed on, and who disagreed."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_submodules

if TYPE_CHECKING:
    from recallog.models.consensus import commands as commands
    from recallog.models.consensus import queries as queries
else:
    __getattr__ = lazy_submodules(__name__)
