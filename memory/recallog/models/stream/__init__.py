"""The stream of an agent: what happened to it, scored, summarised, and the insights from it."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
