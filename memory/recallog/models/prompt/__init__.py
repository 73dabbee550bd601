"""The prompt of an agent: its identity, knowledge and memories, within a budget."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
