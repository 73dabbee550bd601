"""The prompt of an agent: what it is, knows and remembers, fitted to a budget."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
