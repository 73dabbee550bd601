"""Tiers: how fast entries age, and the plans that move and archive them."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.tiers import commands as commands
    from recallog.models.tiers import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
