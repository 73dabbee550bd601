"""All errors of Recallog, which `recallog` exports too; `recallog_schemas.errors` shows them as a tree."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, is_documented=True)
