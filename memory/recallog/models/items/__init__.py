"""Items: values under a namespace and a key, which change as events do."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
