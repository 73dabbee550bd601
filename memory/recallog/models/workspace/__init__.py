"""The workspace: documents of an agent, which are items, and its daily log."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
