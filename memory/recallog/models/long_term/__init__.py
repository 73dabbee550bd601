"""Long-term memory: the entries that agents keep on purpose, change, forget and share."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
