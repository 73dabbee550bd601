"""The vocabulary of Recallog: events, kinds of events, the codec, the shapes of views, errors and limits."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
