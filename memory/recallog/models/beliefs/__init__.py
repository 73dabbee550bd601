"""Beliefs of agents, written by reflections that fall due."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.beliefs import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
