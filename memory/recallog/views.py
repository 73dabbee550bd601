"""The answers of operations, and the base classes for views of custom memory models."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, is_documented=True)
