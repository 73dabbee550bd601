"""Reactors: code that answers triggers with new events, the loop that runs them, and the models that they call.

Reflectors write beliefs, extractors extract facts, synthesizers answer questions. Each module is imported when it is
first used, as `reactors.<module>`.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
