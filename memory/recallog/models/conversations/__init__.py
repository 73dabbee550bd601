"""Conversations: messages of sessions with models, compacted where they grow long."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
