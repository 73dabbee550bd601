"""Conversations: messages of sessions with models, compacted when they grow long."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
