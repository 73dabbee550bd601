"""Facts: entries extracted from what agents said, and the entities that link entries."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
