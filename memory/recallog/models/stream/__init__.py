"""The stream of an agent: what happened to it, scored, summarised, and the insights from it."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.stream import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
